"""Every change of state of every group."""

from __future__ import annotations

from typing import Final

from pyspark.sql.types import IntegerType, StringType, StructType

from schemas.columns import BATCH_ID, CLUSTER, EVIDENCE, GROUP_ID, column, occurred_at

SCHEMA: Final = StructType(
    [
        CLUSTER,
        GROUP_ID,
        occurred_at("When the group changed state."),
        column(
            "from_state",
            StringType(),
            "State before: Empty, PreparingRebalance, CompletingRebalance, Stable or Dead; Empty, Reconciling or Stable in the consumer protocol.",
            nullable=False,
        ),
        column("to_state", StringType(), "State after.", nullable=False),
        column("generation", IntegerType(), "Generation after the change."),
        column(
            "trigger",
            StringType(),
            "What made it change: the cause of the row of `rebalances`, or the step of the protocol. A change to PreparingRebalance waits "
            "while a line may yet show another cause, 30 s at most. LINES_MISSING: the log does not show it. "
            "CONVERTED_TO_CONSUMER and CONVERTED_TO_CLASSIC: the group follows another protocol from then on, and may be in the same state "
            "(KIP-848).",
            nullable=False,
        ),
        column("member_id", StringType(), "Member that made it change."),
        column("client_id", StringType(), "Its client.id."),
        column("client_host", StringType(), "Its host."),
        column("reason", StringType(), "The coordinator's or the client's own words."),
        EVIDENCE,
        BATCH_ID,
    ]
)
