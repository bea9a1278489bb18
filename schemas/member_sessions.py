"""One row per membership, written when it ends."""

from __future__ import annotations

from typing import Final

from pyspark.sql.types import StructType

from schemas.columns import BATCH_ID, CLUSTER, EVIDENCE, GROUP_ID, int32, int64, text, time

SCHEMA: Final = StructType(
    [
        CLUSTER,
        GROUP_ID,
        text("member_id", "Member id.", nullable=False),
        text("instance_id", "group.instance.id of a static member."),
        text("client_id", "client.id."),
        text("client_host", "Host."),
        text("software", "Client software and version."),
        time("joined_at", "When the member joined: its JoinGroup arrived, or the coordinator added it. Null if no line shows it."),
        time("ended_at", "When the membership ended.", nullable=False),
        text(
            "end_kind",
            "LEFT, ADMIN_REMOVED, SESSION_TIMEOUT, POLL_TIMEOUT, JOIN_TIMEOUT, SYNC_TIMEOUT, REBALANCE_TIMEOUT, REPLACED, GROUP_GONE or UNKNOWN.",
            nullable=False,
        ),
        int32(
            "session_timeout_ms", "Its session.timeout.ms; null of members that speak the consumer protocol: it is a setting of the broker."
        ),
        int32("rebalance_timeout_ms", "Its rebalance timeout (max.poll.interval.ms)."),
        int64("heartbeats", "Heartbeats seen; null without a request log."),
        int64("longest_gap_ms", "Longest time between two signs of life; null without a request log."),
        EVIDENCE,
        BATCH_ID,
    ]
)
