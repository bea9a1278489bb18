"""The records that a source gives to ingest: log lines with their places, and how far each log was read.

A source reads bytes in order, so it alone can resolve a local timestamp in the repeated hour of a
daylight-saving change and tell a timestamp that does not fit its neighbours.
"""

from __future__ import annotations

from typing import Final

from pyspark.sql.types import BinaryType, StructType

from schemas.columns import CLUSTER, column, int64, text, time

SCHEMA: Final = StructType(
    [
        CLUSTER,
        text("broker", "Broker name: folder, header or setting.", nullable=False),
        text("record", "line, part, fetches, heartbeats, clock or end.", nullable=False),
        text("origin", "File (relative to the input) or topic-partition.", nullable=False),
        int64("position", "Line number in the file, from 1, or offset.", nullable=False),
        time("at", "Time of the line, UTC; null if it has none. For clock: newest time read."),
        text(
            "text",
            "The line without its line end. For clock: JSON array of the seconds (UTC epoch) with lines: first, last, first, last, …",
        ),
        text("fault", "Why the source itself found the line unreadable; null if it is text with a time."),
        int64("lines", "Input lines that this record stands for: a line and those that repeat it; skipped ones for clock.", nullable=False),
        text("context", "What earlier lines say about this one: the group that a client line lacks. Null if nothing."),
        column(
            "repeated",
            "Later lines that repeat this heartbeat: the numbers of each (jobs/logs/heartbeats/beats.py). Of heartbeats: the bundle. Of fetches: the numbers (jobs/logs/fetches). Null if none.",
            BinaryType(),
        ),
        text("around", "What stands around the line in its file (jobs/logs/faults.py). Null if nothing does."),
    ]
)
