"""Appending to the lakehouse's Delta tables, exactly once per (application, version).

A batch that is run again after a crash finds its version in the table's log and changes nothing: `SetTransaction` of the Delta
protocol. Written by delta-rs, a commit takes milliseconds; by Spark it is most of a second.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Final

import pyarrow as pa
from deltalake import CommitProperties, DeltaTable, Transaction, write_deltalake
from deltalake.schema import Schema
from pyspark.sql.types import StructType

_CONFIGURATION: Final = {
    # A checkpoint of the log costs Spark two seconds, reading a hundred small commits costs less.
    "delta.checkpointInterval": "100",
    # Statistics of the first columns suffice to skip files: cluster, broker, time, group.
    "delta.dataSkippingNumIndexedCols": "9",
    # Track reads group_events commit by commit, however far it is behind: `rebalance maintain`, which looks where it is, tidies the log.
    "delta.logRetentionDuration": "interval 3650 days",
}
ONE_FILE: Final = 1 << 40
"""A size that no file reaches, in bytes: a commit then has one file."""


def table_path(lakehouse: Path, name: str) -> Path:
    """The folder of a table."""
    return lakehouse / name


def for_spark(path: Path) -> str:
    """A path of this machine's file system, for Spark: a cluster's default may be another one, such as HDFS."""
    return f"file://{path.absolute()}"


def ensure_table(lakehouse: Path, name: str, schema: StructType, configuration: Mapping[str, str] = _CONFIGURATION) -> Path:
    """Create an empty table with column comments, or add the columns that an older version made it without. Its folder.

    `configuration`: Delta's properties of a new one.
    """
    path = table_path(lakehouse, name)
    wanted = Schema.from_json(schema.json())
    if not DeltaTable.is_deltatable(str(path)):
        path.mkdir(parents=True, exist_ok=True)
        DeltaTable.create(str(path), schema=wanted, mode="ignore", name=name, configuration=dict(configuration))
    table = DeltaTable(str(path))
    known = {field.name for field in table.schema().fields}
    if added := [field for field in wanted.fields if field.name not in known]:
        table.alter.add_columns(added)
    return path


def last_version(path: Path, app_id: str) -> int | None:
    """The last version that the application wrote to the table."""
    return DeltaTable(str(path)).transaction_version(app_id)


def append(path: Path, rows: pa.Table, app_id: str, version: int) -> bool:
    """Append as one file unless this version was written before. Whether it was written now.

    Track reads so many files a batch, and whole commits only if a commit is a file: a clock must not overtake the events before it.
    """
    table = DeltaTable(str(path))
    done = table.transaction_version(app_id)
    if done is not None and done >= version:
        return False
    properties = CommitProperties(app_transactions=[Transaction(app_id, version)])
    write_deltalake(table, rows, mode="append", commit_properties=properties, target_file_size=ONE_FILE)
    return True
