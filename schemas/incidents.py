"""One row per incident of the cluster: what happened to a broker, and what that did to the groups. The table is written anew when it changes."""

from __future__ import annotations

from typing import Final

from pyspark.sql.types import ArrayType, IntegerType, LongType, StringType, StructType, TimestampType

from schemas.columns import CLUSTER, column

_NAMES: Final = ArrayType(StringType())

SCHEMA: Final = StructType(
    [
        CLUSTER,
        column(
            "id", StringType(), "Hash of cluster, broker and time of the first finding: the same logs give the same id.", nullable=False
        ),
        column("broker", StringType(), "The broker that the groups left, or that was held up.", nullable=False),
        column(
            "cause",
            StringType(),
            "BROKER_CRASHED, BROKER_SHUT_DOWN, BROKER_FAILED, BROKER_EXPIRED or BROKER_LOST, as its own lines and those of others say; "
            "COORDINATOR_MOVED, where no line says why the groups left; COORDINATOR_HELD_UP, where none left.",
            nullable=False,
        ),
        column(
            "severity",
            StringType(),
            "ERROR if members were removed, groups rebalanced, or several groups lost a broker that nobody shut down; else WARNING.",
            nullable=False,
        ),
        column(
            "began_at",
            TimestampType(),
            "When the first line says that the broker went away, else when the first group noticed.",
            nullable=False,
        ),
        column("last_at", TimestampType(), "When the last group noticed it, or came back.", nullable=False),
        column("stopped_at", TimestampType(), "When its shutdown was complete; null if no line says so."),
        column("back_at", TimestampType(), "When it was back; null if no line says so."),
        column("groups", _NAMES, "All groups that it touched.", nullable=False),
        column("groups_moved", IntegerType(), "How many of them left the broker.", nullable=False),
        column("groups_returned", IntegerType(), "How many of these came back.", nullable=False),
        column("groups_held_up", IntegerType(), "How many could not reach their coordinator, which stayed.", nullable=False),
        column("members_lost", _NAMES, "Members that missed their session timeout and were removed.", nullable=False),
        column(
            "rebalances", IntegerType(), "Rebalances of these groups that were under way then, or began within a minute.", nullable=False
        ),
        column("rebalance_ms", LongType(), "How long they took, added up.", nullable=False),
        column("unavailable_partition_ms", LongType(), "Sum over their partitions of the time without an owner at work; null if unknown."),
        column("message", StringType(), "What happened, in sentences.", nullable=False),
        column("advice", StringType(), "What to change.", nullable=False),
        column("findings", _NAMES, "The findings COORDINATOR_MOVED of its groups, by id (view findings_with_id).", nullable=False),
        column(
            "evidence",
            StringType(),
            "JSON array of {source, origin, position}: lines about the broker, then lines of the groups.",
            nullable=False,
        ),
    ]
)
