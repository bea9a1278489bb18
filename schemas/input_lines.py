"""How many lines of each file each batch read, and what became of them: read = skipped + events + quarantined."""

from __future__ import annotations

from typing import Final

from pyspark.sql.types import LongType, StringType, StructType

from schemas.columns import BATCH_ID, CLUSTER, column

REPEATED: Final = "repeated"

SCHEMA: Final = StructType(
    [
        CLUSTER,
        column("broker", StringType(), "Broker name.", nullable=False),
        column("origin", StringType(), "File or topic-partition.", nullable=False),
        column("lines_read", LongType(), "Lines read.", nullable=False),
        column("skipped", LongType(), "Lines that concern no consumer group.", nullable=False),
        column("events", LongType(), "Lines that became group_events.", nullable=False),
        column("quarantined", LongType(), "Lines that could not be read.", nullable=False),
        column(REPEATED, LongType(), "Repeated lines of a topic, which were ignored: not counted as read. Null if none."),
        BATCH_ID,
    ]
)
