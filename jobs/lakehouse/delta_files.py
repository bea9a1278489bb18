"""Replaces files of a Delta table by files with the same rows, sorted so that readers skip most of them, or with fewer rows.

delta-rs's own OPTIMIZE blocks Spark's commits for as long as it runs, and its z-order rewrites the whole table each time. Here files are
first written beside the table; then one commit takes the old ones out and the new ones in. A killed process leaves files that no commit
names; `unneeded` finds them when they are old.
"""

from __future__ import annotations

import json
import shutil
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import Final
from urllib.parse import unquote

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
from deltalake import (
    CommitProperties,
    DeltaTable,
    PostCommitHookProperties,
    Transaction,
    WriterProperties,
    write_deltalake,
)
from deltalake.exceptions import CommitFailedError
from deltalake.transaction import AddAction, RemoveAction

from jobs.common.errors import UserError
from jobs.common.files import sync
from jobs.lakehouse.delta_log import commits
from jobs.lakehouse.parquet import rows_of_files

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
_LEVEL: Final = 9
"""Of compression, for rows that are written once and kept for months."""
_MEMORY: Final = "512MB"
_BATCH_ROWS: Final = 10_000
_TRIES: Final = 1_000
"""A writer of small batches commits more quickly than this looks at what others wrote. Delta-rs gives up after 15 such commits."""


class ChangedError(UserError):
    """Another process replaced files of the table in the meantime."""


@dataclass(frozen=True)
class DataFile:
    """A file of a table. `oldest` and `newest`: bounds of the table's time column, None where the log has none."""

    path: str  # as in the log, relative to the table
    size: int  # bytes
    written_ms: int
    rows: int | None
    oldest: datetime | None
    newest: datetime | None


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
        )
        for entry in pa.table(table.get_add_actions(flatten=True)).to_pylist()
    ]
    return sorted(files, key=lambda file: (file.written_ms, file.path))


def connection(spill: Path) -> duckdb.DuckDBPyConnection:
    """A DuckDB that sorts in the folder `spill` what does not fit into memory."""
    duck = duckdb.connect()
    duck.execute(f"SET TimeZone = 'UTC'; SET threads = 2; SET memory_limit = '{_MEMORY}'; SET preserve_insertion_order = false")
    duck.execute("SET temp_directory = $1", [str(spill)])
    return duck


def arrow_schema(table: DeltaTable) -> pa.Schema:
    """The columns of a table."""
    return pa.schema(table.schema().to_arrow())


def read(table: DeltaTable, folder: Path, paths: Sequence[str], spill: Path, *, rest: str = "") -> Iterator[pa.RecordBatch]:
    """Rows of some files, in the columns of the table. `rest`: the end of the DuckDB query, from WHERE on."""
    schema = arrow_schema(table)
    query = f"SELECT * FROM ({rows_of_files(table, folder, paths)}) {rest}"  # noqa: S608 - nothing in it is typed by a user
    for batch in connection(spill).execute(query).to_arrow_reader(_BATCH_ROWS):
        # DuckDB does not say which columns may be null, nor how the entries of a list are called.
        yield pa.RecordBatch.from_arrays([batch[field.name].cast(field.type) for field in schema], schema=schema)


def count(folder: Path, files: Sequence[DataFile], condition: str, spill: Path) -> int:
    """How many rows of some files meet a condition."""
    source = rows_of_files(DeltaTable(str(folder)), folder, [file.path for file in files])
    rows: list[tuple[int]] = connection(spill).execute(f"SELECT count(*) FROM ({source}) WHERE {condition}").fetchall()  # noqa: S608
    return rows[0][0]


def rewrite(
    folder: Path, files: Sequence[DataFile], scratch: Path, *, order: str, keep: str | None = None, row_group: int = ROW_GROUP
) -> int:
    """Rewrites some files of a table in this order and replaces them; returns how many rows were dropped.

    `keep`: a condition; rows that do not meet it are dropped. ChangedError: the files left the table meanwhile; nothing was changed.
    """
    table = DeltaTable(str(folder))
    before = sum(file.rows if file.rows is not None else count(folder, [file], "true", scratch / "_spill") for file in files)

    def changed(after: int) -> bool:
        if after > before or (keep is None and after != before):
            raise RuntimeError(f"{folder}: {before} rows became {after}; the table was not changed")
        return after != before

    rest = f"{f'WHERE {keep}' if keep else ''} ORDER BY {order}"
    rows = read(table, folder, [file.path for file in files], scratch / "_spill", rest=rest)
    return before - substitute(folder, files, rows, scratch, changed=changed, row_group=row_group)


def substitute(
    folder: Path,
    files: Sequence[DataFile],
    rows: Iterator[pa.RecordBatch],
    scratch: Path,
    *,
    changed: Callable[[int], bool],
    row_group: int = ROW_GROUP,
) -> int:
    """Writes rows beside a table, and replaces some of its files by them in one commit; returns how many rows there are.

    `changed` gets that number, and says whether they are other rows than before; it may raise: then the table stays as it was.
    ChangedError: the files left the table meanwhile; nothing was changed.
    """
    shutil.rmtree(scratch, ignore_errors=True)
    table = DeltaTable(str(folder))
    copy = DeltaTable.create(str(scratch), schema=table.schema(), configuration=table.metadata().configuration)
    properties = WriterProperties(compression="ZSTD", max_row_group_size=row_group)
    reader = pa.RecordBatchReader.from_batches(arrow_schema(table), rows)
    write_deltalake(copy, reader, mode="append", target_file_size=FILE_BYTES, writer_properties=properties)
    added = [action["add"] for commit in commits(scratch, 1) for action in commit.actions if "add" in action]
    after: int = sum(json.loads(add["stats"])["numRecords"] for add in added)
    changes = changed(after)
    for add in added:
        written = scratch / unquote(add["path"])
        _pack(written, row_group)
        sync(written)
        written.rename(folder / written.name)
        add["size"] = (folder / written.name).stat().st_size
    sync(folder)
    actions = [AddAction(add["path"], add["size"], {}, add["modificationTime"], changes, add["stats"]) for add in added]
    replace(folder, files, actions, changes=changes)
    shutil.rmtree(scratch, ignore_errors=True)
    return after


def _pack(file: Path, row_group: int) -> None:
    """Writes a file of group_events again, with differences in place of values. delta-rs cannot do so in lists."""
    rows = pq.ParquetFile(file)
    columns = [rows.metadata.schema.column(number).path for number in range(rows.metadata.num_columns)]
    if not {*_ASCENDING, *_IDS} <= set(columns):
        return
    packed = file.with_suffix(".packed")
    with pq.ParquetWriter(
        packed,
        rows.schema_arrow,
        compression="zstd",
        compression_level=_LEVEL,
        use_dictionary=[column for column in columns if column not in (*_ASCENDING, *_IDS)],
        column_encoding={**dict.fromkeys(_ASCENDING, "DELTA_BINARY_PACKED"), **dict.fromkeys(_IDS, "DELTA_BYTE_ARRAY")},
    ) as writer:
        for number in range(rows.num_row_groups):
            writer.write_table(rows.read_row_group(number, use_threads=False), row_group_size=row_group)
    packed.replace(file)


def replace(folder: Path, removed: Sequence[DataFile], added: list[AddAction], *, changes: bool) -> None:
    """One commit that replaces files. `changes`: whether it drops rows. ChangedError: nothing was changed."""
    changed = ChangedError(f"{folder} was changed by another program meanwhile; run the command again")
    table = DeltaTable(str(folder))
    if not {file.path for file in removed} <= {file.path for file in data_files(table)}:
        raise changed
    now = int(time.time() * 1_000)
    out = [RemoveAction(path=f.path, data_change=changes, deletion_timestamp=now, size=f.size, partition_values={}) for f in removed]
    try:
        _commit(table, [*out, *added], CommitProperties(custom_metadata={"isBlindAppend": False}, max_commit_retries=_TRIES))
    except CommitFailedError:
        raise changed from None


def mark(folder: Path, marks: Mapping[str, int]) -> None:
    """A commit without files that keeps numbers by name: `DeltaTable.transaction_version` reads them."""
    transactions = [Transaction(name, number) for name, number in marks.items()]
    _commit(DeltaTable(str(folder)), [], CommitProperties(app_transactions=transactions, max_commit_retries=_TRIES))


def _commit(table: DeltaTable, actions: list[AddAction | RemoveAction], properties: CommitProperties) -> None:
    table.create_write_transaction(
        actions,
        mode="append",
        schema=table.schema(),
        commit_properties=properties,
        post_commithook_properties=PostCommitHookProperties(create_checkpoint=False, cleanup_expired_logs=False),
    )


def unneeded(folder: Path, *, hours: int, orphan_hours: int, needed: set[str]) -> list[Path]:
    """Files that no reader needs: those replaced so many hours ago, and those that no commit names and that are `orphan_hours` old.

    `needed`: paths that a reader of the commits has still to read.
    """
    table = DeltaTable(str(folder))
    replaced = table.vacuum(retention_hours=hours, dry_run=True, enforce_retention_duration=False)
    orphans = table.vacuum(retention_hours=orphan_hours, dry_run=True, enforce_retention_duration=False, full=True)
    kept = {unquote(path) for path in (*needed, *(file.path for file in data_files(table)))}
    paths = {folder / unquote(path) for path in (*replaced, *orphans) if unquote(path) not in kept}
    return sorted(path for path in paths if path.suffix == ".parquet" and path.parent == folder and path.exists())


def delete(path: Path) -> None:
    """Deletes a data file and the checksum that Spark keeps beside it."""
    path.unlink(missing_ok=True)
    path.with_name(f".{path.name}.crc").unlink(missing_ok=True)
