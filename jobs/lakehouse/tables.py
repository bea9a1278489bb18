"""Appends to the Delta tables, exactly once for each application and version.

A batch that runs again after a crash finds its version in the table's log and changes nothing (`SetTransaction` of the Delta protocol).
`appending.py` commits in milliseconds; Spark takes most of a second.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

import pyarrow as pa
from deltalake import DeltaTable
from deltalake.schema import Schema
from pyspark.sql.types import StructType

from jobs.lakehouse import appending
from jobs.lakehouse.added_files import INDEXED_COLUMNS, AddedFile
from jobs.lakehouse.version_checksum import write_checksum
from schemas import names

# Spark takes two seconds for a checkpoint of the log, and less to read a hundred small commits.
_CHECKPOINT_INTERVAL: Final = 100
_CONFIGURATION: Final = {
    "delta.checkpointInterval": str(_CHECKPOINT_INTERVAL),
    # Readers skip files by the statistics of the first columns: cluster, broker, time, group.
    "delta.dataSkippingNumIndexedCols": str(INDEXED_COLUMNS),
    # Only `rebalance maintain` deletes old commits: it knows which of them track has still to read.
    "delta.logRetentionDuration": "interval 3650 days",
}


def table_path(lakehouse: Path, name: str) -> Path:
    """The folder of a table."""
    return lakehouse / name


def for_spark(path: Path) -> str:
    """A path on this machine, for Spark, whose default file system may be another one, such as HDFS."""
    return f"file://{path.absolute()}"


def ensure_table(lakehouse: Path, name: str, schema: StructType, configuration: Mapping[str, str] = _CONFIGURATION) -> Path:
    """Creates an empty table with column comments, or adds the columns that a table lacks; returns its folder.

    `configuration`: Delta's properties of a new table.
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


def append(path: Path, rows: pa.Table, app_id: str, version: int, files: Sequence[AddedFile] = ()) -> bool:
    """Appends the rows as one file unless this version was written before; returns whether it wrote.

    `files`: files that others wrote. They come before the rows in the commit, and track reads them in that order: the rows have the clocks,
    and a clock must not overtake the events before it.
    """
    made = appending.append(path, rows, app_id, version, files, _CHECKPOINT_INTERVAL)
    if made is not None and path.name == names.GROUP_EVENTS:  # the table that Spark looks at before each micro-batch
        write_checksum(path, made)
    return made is not None
