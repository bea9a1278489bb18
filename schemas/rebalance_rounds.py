"""One row per round of a rebalance of the consumer protocol (KIP-848): each time that the group's epoch was raised."""

from __future__ import annotations

from typing import Final

from pyspark.sql.types import BooleanType, IntegerType, StringType, StructType, TimestampType

from schemas.columns import BATCH_ID, CLUSTER, EVIDENCE, GROUP_ID, column

SCHEMA: Final = StructType(
    [
        CLUSTER,
        GROUP_ID,
        column("generation", IntegerType(), "Of the row in `rebalances`: the epoch with which the rebalance ended.", nullable=False),
        column("epoch", IntegerType(), "The group epoch that this round began.", nullable=False),
        column("started_at", TimestampType(), "When the epoch was raised.", nullable=False),
        column(
            "start_exact",
            BooleanType(),
            "Whether the coordinator's own line or record gives that time; else the first answer that shows it.",
        ),
        column(
            "computed_at",
            TimestampType(),
            "When its target assignment was computed: the time of the line or the record; since Kafka 4.3 else that of the first heartbeat "
            "that was answered with the epoch. Null if no line shows it, and if the next epoch came before.",
        ),
        column(
            "reconciled_at",
            TimestampType(),
            "When all members had its assignment; null if another round came before, or no line shows it.",
        ),
        column("superseded", BooleanType(), "Whether another round began before all members had its assignment.", nullable=False),
        column("cause", StringType(), "What raised the epoch (docs/tables.md lists the causes).", nullable=False),
        column("member_id", StringType(), "Member that it is about; null if none, or unknown."),
        column("instance_id", StringType(), "Its group.instance.id."),
        column("client_id", StringType(), "Its client.id."),
        column("client_host", StringType(), "Its host."),
        column(
            "revocations",
            StringType(),
            "JSON array, one entry for each member that was told in this round to give partitions up: {member_id, client_id, partitions (how many), told_at, ended_at (epoch ms), end}. `end`: ACKNOWLEDGED, AWAY (a static member left for a while), or how its membership ended. Null without a request log.",
        ),
        EVIDENCE,
        BATCH_ID,
    ]
)
