"""Shared pieces of the table schemas: every column is written with its comment, once."""

from __future__ import annotations

from functools import partial
from typing import Final

from pyspark.sql.types import DataType, IntegerType, LongType, StringType, StructField, TimestampType


def column(name: str, comment: str, data_type: DataType, *, nullable: bool = True) -> StructField:
    """A column with its comment, which Delta stores and docs/tables.md shows."""
    return StructField(name, data_type, nullable, {"comment": comment})


text: Final = partial(column, data_type=StringType())
int32: Final = partial(column, data_type=IntegerType())
int64: Final = partial(column, data_type=LongType())
time: Final = partial(column, data_type=TimestampType())  # UTC

CLUSTER: Final = text("cluster", "Cluster name: folder, header or setting.", nullable=False)
GROUP_ID: Final = text("group_id", "Consumer group.", nullable=False)
BATCH_ID: Final = int64("batch_id", "Micro-batch of the tracker that wrote the row; joins the tables of one batch.", nullable=False)
EVIDENCE: Final = text(
    "evidence",
    "JSON array of {source, origin, position}: the lines (file and line, or topic-partition and offset) that prove the row.",
    nullable=False,
)


def occurred_at(comment: str) -> StructField:
    """The row's own time."""
    return time("occurred_at", comment, nullable=False)
