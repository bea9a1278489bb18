"""One row per incident of the cluster: what happened to a broker, and what that did to the groups. The table is written anew when it changes."""

from __future__ import annotations

from typing import Final

from pyspark.sql.types import ArrayType, StringType, StructType

from schemas.columns import CLUSTER, column, int32, int64, text, time

_NAMES: Final = ArrayType(StringType())

SCHEMA: Final = StructType(
    [
        CLUSTER,
        text("id", "Hash of cluster, broker and time of the first finding: the same logs give the same id.", nullable=False),
        text("broker", "The broker that the groups left, or that was held up.", nullable=False),
        text(
            "cause",
            "BROKER_CRASHED, BROKER_SHUT_DOWN, BROKER_FAILED, BROKER_EXPIRED or BROKER_LOST, as its own lines and those of others say; "
            "COORDINATOR_MOVED, where no line says why the groups left; COORDINATOR_HELD_UP, where none left.",
            nullable=False,
        ),
        text(
            "severity",
            "ERROR if members were removed, groups rebalanced, or several groups lost a broker that nobody shut down; else WARNING.",
            nullable=False,
        ),
        time("began_at", "When the first line says that the broker went away, else when the first group noticed.", nullable=False),
        time("last_at", "When the last group noticed it, or came back.", nullable=False),
        time("stopped_at", "When its shutdown was complete; null if no line says so."),
        time("back_at", "When it was back; null if no line says so."),
        column("groups", "All groups that it touched.", _NAMES, nullable=False),
        int32("groups_moved", "How many of them left the broker.", nullable=False),
        int32("groups_returned", "How many of these came back.", nullable=False),
        int32("groups_held_up", "How many could not reach their coordinator, which stayed.", nullable=False),
        column("members_lost", "Members that missed their session timeout and were removed.", _NAMES, nullable=False),
        int32("rebalances", "Rebalances that it is blamed for, as `why` and `bill` tell.", nullable=False),
        int64("rebalance_ms", "How long they took, added up.", nullable=False),
        int64("unavailable_partition_ms", "Sum over their partitions of the time without an owner at work; null if unknown."),
        text("message", "What happened, in sentences.", nullable=False),
        text("advice", "What to change.", nullable=False),
        column("findings", "The findings COORDINATOR_MOVED of its groups, by id (view findings_with_id).", _NAMES, nullable=False),
        text("evidence", "JSON array of {source, origin, position}: lines about the broker, then lines of the groups.", nullable=False),
    ]
)
