"""The tables of the lakehouse: one module each, the only place where a schema is written."""

from __future__ import annotations

from typing import Final

from pyspark.sql.types import StructType

from schemas import (
    findings,
    group_events,
    group_transitions,
    input_lines,
    member_sessions,
    quarantine,
    rebalances,
)

INGEST_TABLES: Final[dict[str, StructType]] = {table.NAME: table.SCHEMA for table in (group_events, quarantine, input_lines)}
TRACK_TABLES: Final[dict[str, StructType]] = {
    table.NAME: table.SCHEMA for table in (group_transitions, rebalances, member_sessions, findings)
}
TABLES: Final[dict[str, StructType]] = INGEST_TABLES | TRACK_TABLES
