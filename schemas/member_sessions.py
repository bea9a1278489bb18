"""One row per membership, written when it ends."""

from __future__ import annotations

from typing import Final

from pyspark.sql.types import IntegerType, LongType, StringType, StructType, TimestampType

from schemas.columns import BATCH_ID, CLUSTER, EVIDENCE, GROUP_ID, column

SCHEMA: Final = StructType(
    [
        CLUSTER,
        GROUP_ID,
        column("member_id", StringType(), "Member id.", nullable=False),
        column("instance_id", StringType(), "group.instance.id of a static member."),
        column("client_id", StringType(), "client.id."),
        column("client_host", StringType(), "Host."),
        column("software", StringType(), "Client software and version."),
        column(
            "joined_at",
            TimestampType(),
            "When the member joined: its JoinGroup arrived, or the coordinator added it. Null if no line shows it.",
        ),
        column("ended_at", TimestampType(), "When the membership ended.", nullable=False),
        column(
            "end_kind",
            StringType(),
            "LEFT, ADMIN_REMOVED, SESSION_TIMEOUT, POLL_TIMEOUT, JOIN_TIMEOUT, SYNC_TIMEOUT, REBALANCE_TIMEOUT, REPLACED, GROUP_GONE or UNKNOWN.",
            nullable=False,
        ),
        column(
            "session_timeout_ms",
            IntegerType(),
            "Its session.timeout.ms; null of members that speak the consumer protocol: it is a setting of the broker.",
        ),
        column("rebalance_timeout_ms", IntegerType(), "Its rebalance timeout (max.poll.interval.ms)."),
        column("heartbeats", LongType(), "Heartbeats seen; null without a request log."),
        column("longest_gap_ms", LongType(), "Longest time between two signs of life; null without a request log."),
        EVIDENCE,
        BATCH_ID,
    ]
)
