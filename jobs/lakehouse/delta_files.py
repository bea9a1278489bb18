"""Replaces files of a Delta table by others: with the same rows in an order that lets readers skip most of them, or with fewer rows.

delta-rs's own OPTIMIZE would hold Spark off for as long as it takes, and its z-order writes the whole table anew each time. Here files are
written first, beside the table, and one commit then takes the old ones out and the new ones in. A process that is killed leaves files
that no commit names; they are deleted when they are old.
"""

from __future__ import annotations

import json
import shutil
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import Final
from urllib.parse import unquote

import duckdb
import pyarrow as pa
from deltalake import CommitProperties, DeltaTable, PostCommitHookProperties, WriterProperties, write_deltalake
from deltalake.exceptions import CommitFailedError
from deltalake.transaction import AddAction, RemoveAction

from jobs.common.errors import UserError
from jobs.common.files import sync
from jobs.lakehouse.delta_log import LOG, commits
from jobs.lakehouse.parquet import rows_of_files

FILE_BYTES: Final = 64 << 20
"""Of a file that is written, about. The rows of a group lie in one or two files of each portion."""
ROW_GROUP: Final = 20_000
"""Rows: what a reader takes of a file at least. A group's rows lie in few of its row groups, since they are in order."""
_MEMORY: Final = "512MB"
_BATCH_ROWS: Final = 10_000
UNSAID: Final = timedelta(milliseconds=1)
"""Statistics of times are cut to milliseconds."""


class ChangedError(UserError):
    """Another process replaced files of the table in the meantime."""


@dataclass(frozen=True)
class DataFile:
    """A file of a table. `oldest` and `newest`: bounds of the table's time column, None where the log has none."""

    path: str  # as the log has it, relative to the table
    size: int  # bytes
    written_ms: int
    rows: int | None
    oldest: datetime | None
    newest: datetime | None


def data_files(table: DeltaTable, time_column: str | None = None) -> list[DataFile]:
    """The files that make up the table, in the order in which they were written."""
    found = pa.table(table.get_add_actions(flatten=True)).to_pylist()
    files = [
        DataFile(
            entry["path"],
            entry["size_bytes"],
            entry["modification_time"],
            entry.get("num_records"),
            entry.get(f"min.{time_column}"),
            newest + UNSAID if (newest := entry.get(f"max.{time_column}")) is not None else None,
        )
        for entry in found
    ]
    return sorted(files, key=lambda file: (file.written_ms, file.path))


def connection(spill: Path) -> duckdb.DuckDBPyConnection:
    """A DuckDB that sorts what does not fit into memory in the folder `spill`."""
    found = duckdb.connect()
    found.execute(f"SET TimeZone = 'UTC'; SET threads = 2; SET memory_limit = '{_MEMORY}'; SET preserve_insertion_order = false")
    found.execute("SET temp_directory = $1", [str(spill)])
    return found


def read(table: DeltaTable, folder: Path, paths: Sequence[str], spill: Path, *, rest: str = "") -> Iterator[pa.RecordBatch]:
    """Rows of some files, in the columns of the table. `rest`: of the query, from WHERE on, in DuckDB's words."""
    schema = pa.schema(table.schema().to_arrow())
    source = rows_of_files(table, [folder / unquote(path) for path in paths])
    for batch in connection(spill).execute(f"SELECT * FROM ({source}) {rest}").to_arrow_reader(_BATCH_ROWS):  # noqa: S608 - of our own
        yield typed(batch, schema)


def typed(batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    """What DuckDB says does not tell what may be null, nor how the entries of a list are called."""
    return pa.RecordBatch.from_arrays([batch[field.name].cast(field.type) for field in schema], schema=schema)


def rewrite(folder: Path, files: Sequence[DataFile], scratch: Path, *, order: str, keep: str | None = None) -> int:
    """Writes rows of some files of a table anew, in this order, and puts the new files in the place of those. Rows that went.

    `keep`: a condition; rows that do not meet it go. ChangedError: the files are no longer the table's; nothing was changed.
    """
    shutil.rmtree(scratch, ignore_errors=True)
    table = DeltaTable(str(folder))
    copy = DeltaTable.create(str(scratch), schema=table.schema(), configuration=table.metadata().configuration)
    rest = f"{f'WHERE {keep}' if keep else ''} ORDER BY {order}"
    rows = read(table, folder, [file.path for file in files], scratch / "_spill", rest=rest)
    properties = WriterProperties(compression="ZSTD", max_row_group_size=ROW_GROUP)
    reader = pa.RecordBatchReader.from_batches(pa.schema(table.schema().to_arrow()), rows)
    write_deltalake(copy, reader, mode="append", target_file_size=FILE_BYTES, writer_properties=properties)
    added = [action["add"] for commit in commits(scratch, 1) for action in commit.actions if "add" in action]
    before = sum(_rows(table, folder, file, scratch / "_spill") for file in files)
    after: int = sum(json.loads(add["stats"])["numRecords"] for add in added)
    if after > before or (keep is None and after != before):
        raise RuntimeError(f"{folder}: {before} rows became {after}; the table was not changed")
    for add in added:
        written = scratch / unquote(add["path"])
        sync(written)
        written.rename(folder / written.name)
    sync(folder)
    changes = after != before
    replace(
        folder,
        files,
        [AddAction(add["path"], add["size"], {}, add["modificationTime"], changes, add["stats"]) for add in added],
        changes=changes,
    )
    shutil.rmtree(scratch, ignore_errors=True)
    return before - after


def count(folder: Path, files: Sequence[DataFile], condition: str, spill: Path) -> int:
    """How many rows of some files meet a condition."""
    source = rows_of_files(DeltaTable(str(folder)), [folder / unquote(file.path) for file in files])
    found: list[tuple[int]] = connection(spill).execute(f"SELECT count(*) FROM ({source}) WHERE {condition}").fetchall()  # noqa: S608
    return found[0][0]


def replace(folder: Path, removed: Sequence[DataFile], added: list[AddAction], *, changes: bool) -> None:
    """One commit that takes files out and others in. `changes`: whether rows go with it. ChangedError: nothing was changed."""
    table = DeltaTable(str(folder))
    if not {file.path for file in removed} <= {file.path for file in data_files(table)}:
        raise _changed(folder)
    now = int(time.time() * 1_000)
    out = [RemoveAction(path=f.path, data_change=changes, deletion_timestamp=now, size=f.size, partition_values={}) for f in removed]
    try:
        table.create_write_transaction(
            [*out, *added],
            mode="append",
            schema=table.schema(),
            commit_properties=CommitProperties(custom_metadata={"isBlindAppend": False}),
            post_commithook_properties=PostCommitHookProperties(create_checkpoint=False, cleanup_expired_logs=False),
        )
    except CommitFailedError:
        raise _changed(folder) from None


def _changed(folder: Path) -> ChangedError:
    return ChangedError(f"{folder} was changed by another program meanwhile; run the command again")


def unneeded(folder: Path, *, hours: int, orphan_hours: int, needed: set[str]) -> list[Path]:
    """Files that no reader needs: replaced so long ago, or named by no commit and as old as `orphan_hours`.

    `needed`: paths that somebody who follows the commits has still to read.
    """
    table = DeltaTable(str(folder))
    replaced = table.vacuum(retention_hours=hours, dry_run=True, enforce_retention_duration=False)
    orphans = table.vacuum(retention_hours=orphan_hours, dry_run=True, enforce_retention_duration=False, full=True)
    kept = {unquote(path) for path in needed} | {unquote(file.path) for file in data_files(table)}
    found = {folder / unquote(path) for path in (*replaced, *orphans) if unquote(path) not in kept}
    return sorted(path for path in found if path.suffix == ".parquet" and path.parent == folder and LOG not in path.parts and path.exists())


def delete(path: Path) -> None:
    """A data file, and the checksum that Spark keeps beside it."""
    path.unlink(missing_ok=True)
    path.with_name(f".{path.name}.crc").unlink(missing_ok=True)


def _rows(table: DeltaTable, folder: Path, file: DataFile, spill: Path) -> int:
    if file.rows is not None:
        return file.rows
    return sum(len(batch) for batch in read(table, folder, [file.path], spill))
