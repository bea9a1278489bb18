"""Replaces files of a Delta table by files with the same rows, sorted so that readers skip most of them, or with fewer rows.

delta-rs's own OPTIMIZE rewrites files that track has not read yet, and its z-order the whole table each time. Here files are written
first; then one commit takes the old ones out and the new ones in. A killed process leaves files that no commit names.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime, timedelta
from pathlib import Path
from typing import Final
from urllib.parse import unquote
from uuid import uuid4

import duckdb
import msgspec
import pyarrow as pa
from deltalake import CommitProperties, DeltaTable, PostCommitHookProperties
from deltalake.exceptions import CommitFailedError
from deltalake.transaction import AddAction, RemoveAction

from jobs.common.errors import UserError
from jobs.common.files import sync
from jobs.common.stores import Place, for_duckdb
from jobs.lakehouse import opening, tables
from jobs.lakehouse.added_files import AddedFile, AddedFileWriter, BatchFile, Layout, batch_file
from jobs.lakehouse.parquet import rows_of_files
from jobs.lakehouse.tables import arrow_schema

FILE_BYTES: Final = 64 << 20
"""Size of a file that is written, about. The rows of a group lie in one or two files of each portion."""
ROW_GROUP: Final = 20_000
"""Rows that a reader takes of a file at least. A group's rows lie in few row groups, since the rows are sorted."""
STATISTICS_CUT: Final = timedelta(milliseconds=1)
"""Delta cuts the statistics of times to milliseconds."""
_ASCENDING: Final = ("position", "correlation_id", "received_at", "occurred_at", "last_at", "positions.list.element")
"""Columns of group_events whose numbers grow, or nearly: their differences take half the bytes of the numbers."""
_IDS: Final = ("member_id", "connection")
"""Columns of group_events with long values of which one is like the one before."""
_ENCODINGS: Final = dict.fromkeys(_ASCENDING, "DELTA_BINARY_PACKED") | dict.fromkeys(_IDS, "DELTA_BYTE_ARRAY")
_LEVEL: Final = 9
"""Of compression, for rows that are written once and kept for months."""
_MEMORY: Final = "512MB"
_BATCH_ROWS: Final = 10_000
_NO_HOOKS: Final = PostCommitHookProperties(create_checkpoint=False, cleanup_expired_logs=False)


class ChangedError(UserError):
    """Another process replaced files of the table in the meantime."""


class DataFile(msgspec.Struct, frozen=True):
    """A file of a table. `oldest` and `newest`: bounds of the table's time column, None where the log has none."""

    path: str  # as in the log, relative to the table
    size: int  # bytes
    written_ms: int
    rows: int | None
    oldest: datetime | None
    newest: datetime | None
    batch: BatchFile | None  # which micro-batch wrote it; None: another process put it together of several


def data_files(table: DeltaTable, time_column: str | None = None) -> list[DataFile]:
    """The files that make up the table, in the order in which they were written."""
    files = [
        DataFile(
            entry["path"],
            entry["size_bytes"],
            entry["modification_time"],
            entry.get("num_records"),
            entry.get(f"min.{time_column}"),
            newest + STATISTICS_CUT if (newest := entry.get(f"max.{time_column}")) is not None else None,
            batch_file(unquote(entry["path"])),
        )
        for entry in pa.table(table.get_add_actions(flatten=True)).to_pylist()
    ]
    return sorted(files, key=lambda file: (file.written_ms, file.path))


def connection(spill: Path, folder: Place) -> duckdb.DuckDBPyConnection:
    """A DuckDB that sorts in the folder `spill` what does not fit into memory. `folder`: of the table that it reads."""
    duck = duckdb.connect()
    for_duckdb(duck, folder, {})
    duck.execute(f"SET TimeZone = 'UTC'; SET threads = 2; SET memory_limit = '{_MEMORY}'; SET preserve_insertion_order = false")
    duck.execute("SET temp_directory = $1", [str(spill)])
    return duck


def read(table: DeltaTable, folder: Place, paths: Sequence[str], spill: Path, *, rest: str = "") -> Iterator[pa.RecordBatch]:
    """Rows of some files, in the columns of the table. `rest`: the end of the DuckDB query, from WHERE on."""
    schema = arrow_schema(table)
    query = f"SELECT * FROM ({rows_of_files(table, folder, paths)}) {rest}"  # noqa: S608 - nothing in it is typed by a user
    for batch in connection(spill, folder).execute(query).to_arrow_reader(_BATCH_ROWS):
        # DuckDB does not say which columns may be null, nor how the entries of a list are called.
        yield pa.RecordBatch.from_arrays([batch[field.name].cast(field.type) for field in schema], schema=schema)


def count(folder: Place, files: Sequence[DataFile], condition: str, spill: Path) -> int:
    """How many rows of some files meet a condition."""
    source = rows_of_files(opening.opened(folder), folder, [file.path for file in files])
    rows: list[tuple[int]] = connection(spill, folder).execute(f"SELECT count(*) FROM ({source}) WHERE {condition}").fetchall()  # noqa: S608
    return rows[0][0]


def rewrite(
    folder: Place, files: Sequence[DataFile], spill: Path, *, order: str, keep: str | None = None, row_group: int = ROW_GROUP
) -> int:
    """Rewrites some files of a table in this order and replaces them; returns how many rows were dropped.

    `keep`: a condition; rows that do not meet it are dropped. ChangedError: the files left the table meanwhile; nothing was changed.
    """
    table = opening.opened(folder)
    before = sum(file.rows if file.rows is not None else count(folder, [file], "true", spill) for file in files)
    rest = f"{f'WHERE {keep}' if keep else ''} ORDER BY {order}"
    added: list[AddedFile] = []
    try:
        added.extend(_written(folder, read(table, folder, [file.path for file in files], spill, rest=rest), row_group))
        after = sum(file.rows for file in added)
        if after > before or (keep is None and after != before):
            raise RuntimeError(f"{folder}: {before} rows became {after}; the table was not changed")
        for file in added:
            sync(folder / file.name)
        sync(folder)
        replace(folder, files, added, changes=after != before)
        added = []
    finally:
        for file in added:
            (folder / file.name).unlink(missing_ok=True)
    return before - after


def _written(folder: Place, batches: Iterable[pa.RecordBatch], row_group: int) -> Iterator[AddedFile]:
    writer: AddedFileWriter | None = None
    for batch in batches:
        if writer is None:
            of_events = {name.partition(".")[0] for name in _ENCODINGS} <= set(batch.schema.names)
            writer = AddedFileWriter(folder, f"{uuid4()}.parquet", Layout(_LEVEL, row_group, _ENCODINGS if of_events else {}))
        writer.write(pa.Table.from_batches([batch]))
        if writer.size >= FILE_BYTES and (file := writer.close()) is not None:
            yield file
            writer = None
    if writer is not None and (file := writer.close()) is not None:
        yield file


def replace(folder: Place, removed: Sequence[DataFile], added: Sequence[AddedFile], *, changes: bool) -> None:
    """One commit that replaces files. `changes`: whether it drops rows. ChangedError: nothing was changed."""
    changed = ChangedError(f"{folder} was changed by another program meanwhile; run the command again")
    table = opening.opened(folder)
    if not {file.path for file in removed} <= {file.path for file in data_files(table)}:
        raise changed
    now = int(time.time() * 1_000)
    new = [AddAction(file.name, file.size, {}, now, changes, file.stats) for file in added]
    out = [RemoveAction(path=f.path, data_change=changes, deletion_timestamp=now, size=f.size, partition_values={}) for f in removed]
    try:
        properties = CommitProperties(custom_metadata={"isBlindAppend": False}, max_commit_retries=tables.TRIES)
        tables.write(folder, table, [*out, *new], properties, _NO_HOOKS)
    except CommitFailedError:
        raise changed from None
