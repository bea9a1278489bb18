"""One row per round of a rebalance of the consumer protocol (KIP-848): each time that the group's epoch was raised."""

from __future__ import annotations

from typing import Final

from pyspark.sql.types import BooleanType, StructType

from schemas.columns import BATCH_ID, CLUSTER, EVIDENCE, GROUP_ID, column, int32, text, time

SCHEMA: Final = StructType(
    [
        CLUSTER,
        GROUP_ID,
        int32("generation", "Of the row in `rebalances`: the epoch with which the rebalance ended.", nullable=False),
        int32("epoch", "The group epoch that this round began.", nullable=False),
        time("started_at", "When the epoch was raised.", nullable=False),
        column(
            "start_exact",
            "Whether the coordinator's own line or record gives that time; else the first answer that shows it.",
            BooleanType(),
        ),
        time(
            "computed_at",
            "When its target assignment was computed: the time of the line or the record; since Kafka 4.3 else that of the first heartbeat "
            "that was answered with the epoch. Null if no line shows it, and if the next epoch came before.",
        ),
        time("reconciled_at", "When all members had its assignment; null if another round came before, or no line shows it."),
        column("superseded", "Whether another round began before all members had its assignment.", BooleanType(), nullable=False),
        text("cause", "What raised the epoch (docs/tables.md lists the causes).", nullable=False),
        text("member_id", "Member that it is about; null if none, or unknown."),
        text("instance_id", "Its group.instance.id."),
        text("client_id", "Its client.id."),
        text("client_host", "Its host."),
        text(
            "revocations",
            "JSON array, one entry for each member that was told in this round to give partitions up: {member_id, client_id, partitions (how many), told_at, ended_at (epoch ms), end}. `end`: ACKNOWLEDGED, AWAY (a static member left for a while), or how its membership ended. Null without a request log.",
        ),
        EVIDENCE,
        BATCH_ID,
    ]
)
