"""Lines that could not be read, each with the reason. Every line that ingest refuses is here."""

from __future__ import annotations

from typing import Final

from pyspark.sql.types import LongType, StringType, StructType, TimestampType

from schemas.columns import BATCH_ID, CLUSTER, column

SCHEMA: Final = StructType(
    [
        CLUSTER,
        column("broker", StringType(), "Broker name.", nullable=False),
        column("raw", StringType(), "The line, cut after 4,096 characters; unreadable bytes shown as \\xNN."),
        column("reason", StringType(), "Code of what is wrong with it, with the detail after a colon.", nullable=False),
        column("source", StringType(), "request, coordinator, offsets, poll or unknown.", nullable=False),
        column("origin", StringType(), "File or topic-partition.", nullable=False),
        column("position", LongType(), "Line number or offset.", nullable=False),
        column("occurred_at", TimestampType(), "Time of the line, UTC, where it has one."),
        BATCH_ID,
    ]
)
