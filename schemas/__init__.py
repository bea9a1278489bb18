"""The tables of the lakehouse: one module each, the only place where a schema is written."""

from __future__ import annotations

from typing import Final

from pyspark.sql.types import StructType

from schemas import findings, group_events, group_transitions, input_lines, member_sessions, pipeline_health, quarantine, rebalances

INGEST_TABLES: Final[dict[str, StructType]] = {table.NAME: table.SCHEMA for table in (group_events, quarantine, input_lines)}
TRACK_TABLES: Final[dict[str, StructType]] = {
    table.NAME: table.SCHEMA for table in (group_transitions, rebalances, member_sessions, findings)
}
TABLES: Final[dict[str, StructType]] = INGEST_TABLES | TRACK_TABLES
"""What follows from the logs: the same lines make the same rows."""
HEALTH_TABLES: Final[dict[str, StructType]] = {pipeline_health.NAME: pipeline_health.SCHEMA}
"""What tells of the pipeline itself."""
