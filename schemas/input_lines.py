"""How many lines of each file each batch read, and what became of them: read = skipped + events + quarantined."""

from __future__ import annotations

from typing import Final

from pyspark.sql.types import StructType

from schemas.columns import BATCH_ID, CLUSTER, int64, text

REPEATED: Final = "repeated"

SCHEMA: Final = StructType(
    [
        CLUSTER,
        text("broker", "Broker name.", nullable=False),
        text("origin", "File or topic-partition.", nullable=False),
        int64("lines_read", "Lines read.", nullable=False),
        int64("skipped", "Lines that concern no consumer group.", nullable=False),
        int64("events", "Lines that became group_events.", nullable=False),
        int64("quarantined", "Lines that could not be read.", nullable=False),
        int64(REPEATED, "Repeated lines of a topic, which were ignored: not counted as read. Null if none."),
        BATCH_ID,
    ]
)
