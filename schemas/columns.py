"""Shared pieces of the table schemas: every column is written with its comment, once."""

from __future__ import annotations

from typing import Final

from pyspark.sql.types import DataType, LongType, StringType, StructField, TimestampType


def column(name: str, data_type: DataType, comment: str, *, nullable: bool = True) -> StructField:
    """A column with its comment, which Delta stores and docs/tables.md shows."""
    return StructField(name, data_type, nullable, {"comment": comment})


CLUSTER: Final = column("cluster", StringType(), "Cluster name: folder, header or setting.", nullable=False)
GROUP_ID: Final = column("group_id", StringType(), "Consumer group.", nullable=False)
BATCH_ID: Final = column(
    "batch_id",
    LongType(),
    "Micro-batch of the tracker that wrote the row; joins the tables of one batch.",
    nullable=False,
)
EVIDENCE: Final = column(
    "evidence",
    StringType(),
    "JSON array of {source, origin, position}: the lines (file and line, or topic-partition and offset) that prove the row.",
    nullable=False,
)


def occurred_at(comment: str) -> StructField:
    """The row's own time, UTC."""
    return column("occurred_at", TimestampType(), comment, nullable=False)
