"""Every change of state of every group."""

from __future__ import annotations

from typing import Final

from pyspark.sql.types import StructType

from schemas.columns import BATCH_ID, CLUSTER, EVIDENCE, GROUP_ID, int32, occurred_at, text

SCHEMA: Final = StructType(
    [
        CLUSTER,
        GROUP_ID,
        occurred_at("When the group changed state."),
        text(
            "from_state",
            "State before: Empty, PreparingRebalance, CompletingRebalance, Stable or Dead; Empty, Reconciling or Stable in the consumer protocol.",
            nullable=False,
        ),
        text("to_state", "State after.", nullable=False),
        int32("generation", "Generation after the change."),
        text(
            "trigger",
            "What made it change: the cause of the row of `rebalances`, or the step of the protocol. A change to PreparingRebalance waits "
            "while a line may yet show another cause, 30 s at most. LINES_MISSING: the log does not show it. "
            "CONVERTED_TO_CONSUMER and CONVERTED_TO_CLASSIC: the group follows another protocol from then on, and may be in the same state "
            "(KIP-848).",
            nullable=False,
        ),
        text("member_id", "Member that made it change."),
        text("client_id", "Its client.id."),
        text("client_host", "Its host."),
        text("reason", "The coordinator's or the client's own words."),
        EVIDENCE,
        BATCH_ID,
    ]
)
