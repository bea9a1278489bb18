"""Lines that could not be read, each with the reason. Every line that ingest refuses is here."""

from __future__ import annotations

from typing import Final

from pyspark.sql.types import StructType

from schemas.columns import BATCH_ID, CLUSTER, int64, text, time

SCHEMA: Final = StructType(
    [
        CLUSTER,
        text("broker", "Broker name.", nullable=False),
        text("raw", "The line, cut after 4,096 characters; unreadable bytes shown as \\xNN."),
        text("reason", "Code of what is wrong with it, with the detail after a colon.", nullable=False),
        text("source", "request, coordinator, offsets, poll or unknown.", nullable=False),
        text("origin", "File or topic-partition.", nullable=False),
        int64("position", "Line number or offset.", nullable=False),
        time("occurred_at", "Time of the line, UTC, where it has one."),
        BATCH_ID,
    ]
)
