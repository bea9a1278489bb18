"""The records that a source gives to ingest: log lines with their places, and how far each log was read.

A source reads bytes in order, so it alone can resolve a local timestamp in the repeated hour of a
daylight-saving change and tell a timestamp that does not fit its neighbours.
"""

from __future__ import annotations

from typing import Final

from pyspark.sql.types import BinaryType, LongType, StringType, StructType, TimestampType

from schemas.columns import CLUSTER, column

SCHEMA: Final = StructType(
    [
        CLUSTER,
        column("broker", StringType(), "Broker name: folder, header or setting.", nullable=False),
        column("record", StringType(), "line, part, fetches, heartbeats, clock or end.", nullable=False),
        column("origin", StringType(), "File (relative to the input) or topic-partition.", nullable=False),
        column("position", LongType(), "Line number in the file, from 1, or offset.", nullable=False),
        column("at", TimestampType(), "Time of the line, UTC; null if it has none. For clock: newest time read."),
        column(
            "text",
            StringType(),
            "The line without its line end. For clock: JSON array of the seconds (UTC epoch) with lines: first, last, first, last, …",
        ),
        column("fault", StringType(), "Why the source itself found the line unreadable; null if it is text with a time."),
        column(
            "lines",
            LongType(),
            "Input lines that this record stands for: a line and those that repeat it; skipped ones for clock.",
            nullable=False,
        ),
        column("context", StringType(), "What earlier lines say about this one: the group that a client line lacks. Null if nothing."),
        column(
            "repeated",
            BinaryType(),
            "Later lines that repeat this heartbeat: the numbers of each (jobs/logs/heartbeats/beats.py). Of heartbeats: the bundle. Of fetches: the numbers (jobs/logs/fetches). Null if none.",
        ),
        column("around", StringType(), "What stands around the line in its file (jobs/logs/faults.py). Null if nothing does."),
    ]
)
