"""One row per problem that a person should look at. A healthy group has none."""

from __future__ import annotations

from typing import Final

from pyspark.sql.types import IntegerType, StringType, StructType

from schemas.columns import BATCH_ID, CLUSTER, EVIDENCE, GROUP_ID, column, occurred_at

SCHEMA: Final = StructType(
    [
        CLUSTER,
        GROUP_ID,
        occurred_at("When it happened."),
        column("code", StringType(), "What happened (docs/tables.md lists the codes).", nullable=False),
        column("severity", StringType(), "INFO, WARNING or ERROR.", nullable=False),
        column("member_id", StringType(), "Member concerned."),
        column("client_id", StringType(), "Its client.id."),
        column("client_host", StringType(), "Its host."),
        column("generation", IntegerType(), "Generation concerned."),
        column("message", StringType(), "What happened, in a sentence.", nullable=False),
        column("advice", StringType(), "What to change.", nullable=False),
        EVIDENCE,
        column("details", StringType(), "JSON object with the figures behind the message.", nullable=False),
        BATCH_ID,
    ]
)
