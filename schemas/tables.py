"""The schemas of all tables, by name and by the query that writes them."""

from __future__ import annotations

from typing import Final

from pyspark.sql.types import StructType

from schemas import (
    findings,
    group_events,
    group_transitions,
    incidents,
    input_lines,
    member_sessions,
    names,
    pipeline_health,
    quarantine,
    rebalance_offsets,
    rebalance_rounds,
    rebalances,
)
from schemas import rebalances_provisional as provisional

INGEST_TABLES: Final[dict[str, StructType]] = {
    names.GROUP_EVENTS: group_events.SCHEMA,
    names.QUARANTINE: quarantine.SCHEMA,
    names.INPUT_LINES: input_lines.SCHEMA,
}
TRACK_TABLES: Final[dict[str, StructType]] = {
    names.GROUP_TRANSITIONS: group_transitions.SCHEMA,
    names.REBALANCES: rebalances.SCHEMA,
    names.REBALANCE_ROUNDS: rebalance_rounds.SCHEMA,
    names.REBALANCE_OFFSETS: rebalance_offsets.SCHEMA,
    names.MEMBER_SESSIONS: member_sessions.SCHEMA,
    names.FINDINGS: findings.SCHEMA,
}
PROVISIONAL_TABLES: Final[dict[str, StructType]] = {names.REBALANCES_PROVISIONAL: provisional.SCHEMA}
"""What track tells before it is certain: which rows there are depends on how the lines come in micro-batches."""
FOLDED_TABLES: Final[dict[str, StructType]] = {names.INCIDENTS: incidents.SCHEMA}
"""What follows from rows of all groups. Track writes such a table anew when they change."""
TABLES: Final[dict[str, StructType]] = INGEST_TABLES | TRACK_TABLES
"""Tables that follow from the logs: the same lines make the same rows."""
HEALTH_TABLES: Final[dict[str, StructType]] = {names.PIPELINE_HEALTH: pipeline_health.SCHEMA}
"""Tables about the pipeline itself."""
