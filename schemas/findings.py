"""One row per problem that a person should look at. A healthy group has none."""

from __future__ import annotations

from typing import Final

from pyspark.sql.types import StructType

from schemas.columns import BATCH_ID, CLUSTER, EVIDENCE, GROUP_ID, int32, occurred_at, text

SCHEMA: Final = StructType(
    [
        CLUSTER,
        GROUP_ID,
        occurred_at("When it happened."),
        text("code", "What happened (docs/tables.md lists the codes).", nullable=False),
        text("severity", "INFO, WARNING or ERROR.", nullable=False),
        text("member_id", "Member concerned."),
        text("client_id", "Its client.id."),
        text("client_host", "Its host."),
        int32("generation", "Generation concerned."),
        text("message", "What happened, in a sentence.", nullable=False),
        text("advice", "What to change.", nullable=False),
        EVIDENCE,
        text("details", "JSON object with the figures behind the message.", nullable=False),
        BATCH_ID,
    ]
)
