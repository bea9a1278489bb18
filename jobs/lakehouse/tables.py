"""Makes the Delta tables and appends to them, exactly once for each application and version.

All commits are those of delta-rs. A batch that runs again after a crash finds its version in the table's log and changes nothing
(`SetTransaction` of the Delta protocol). Two processes that write the same application's versions cannot both commit: the second one
fails, since the first one's transaction came in between. Tables stay open: to open one takes 4 ms, to bring it up to date 1 ms.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Final
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.compute as pc
from deltalake import CommitProperties, DeltaTable, PostCommitHookProperties, Transaction
from deltalake.exceptions import CommitFailedError, TableNotFoundError
from deltalake.schema import Schema
from deltalake.transaction import AddAction, RemoveAction, create_table_with_add_actions

from jobs.common.stores import Place, StorePath, asked, check_guards, delta_options
from jobs.lakehouse import opening
from jobs.lakehouse.added_files import INDEXED_COLUMNS, LAST, AddedFile, AddedFileWriter, BatchFile, batch_file
from schemas.names import AT_END, TRACK_AT_END

CHECKPOINT_COMMITS: Final = 100
TRIES: Final = 1_000
"""A writer of small batches may commit more quickly than another looks at what it wrote. Delta-rs gives up after 15 such commits."""
_CONFIGURATION: Final = {
    # delta-rs opens a table by its newest checkpoint and the commits since then.
    "delta.checkpointInterval": str(CHECKPOINT_COMMITS),
    # Readers skip files by the statistics of the first columns: cluster, broker, time, group.
    "delta.dataSkippingNumIndexedCols": str(INDEXED_COLUMNS),
    # Nobody reads the commits one by one, and a following run makes one every few seconds.
    "delta.logRetentionDuration": "interval 1 days",
}


def arrow_schema(table: DeltaTable) -> pa.Schema:
    """The columns of a table."""
    return pa.schema(table.schema().to_arrow())


def for_spark(path: Place) -> str:
    """A place as Spark is told of it, whose default file system may be another one, such as HDFS."""
    return f"s3a://{path.bucket}/{path.key}" if isinstance(path, StorePath) else f"file://{path.absolute()}"


def ensure_table(lakehouse: Place, name: str, schema: pa.Schema, configuration: Mapping[str, str] = _CONFIGURATION) -> Place:
    """Creates an empty table with column comments, or adds the columns that a table lacks; returns its folder.

    `configuration`: Delta's properties of a new table.
    """
    path = lakehouse / name
    wanted = Schema.from_arrow(schema)
    try:
        table = opening.opened(path)
    except TableNotFoundError:
        path.mkdir(parents=True, exist_ok=True)
        # Without looking at what it has made, as `DeltaTable.create` does, which takes as long again.
        create = partial(create_table_with_add_actions, storage_options=delta_options(path), configuration=dict(configuration))
        asked(path, lambda: create(str(path), wanted, [], mode="ignore", name=name))
        return path
    known = {field.name for field in table.schema().fields}
    if added := [field for field in wanted.fields if field.name not in known]:
        table.alter.add_columns(added)
    return path


def append(path: Place, rows: pa.Table, app_id: str, version: int, files: Sequence[AddedFile] = ()) -> bool:
    """Appends the rows as one file unless this version was written before; returns whether it wrote.

    `files`: files that others wrote. They come before the rows, and track reads them in that order: the rows have the clocks, and a clock
    must not overtake the events before it. Rows with AT_END go into a file of their own, which the next version takes out again.
    ValueError: the rows do not fit the table.
    """
    own: list[AddedFile] = []
    has_ends = AT_END in rows.column_names
    ends = rows.filter(rows[AT_END]) if has_ends else rows.slice(0, 0)

    def commit_unless_done() -> bool:
        own_table = opening.kept(path)
        with own_table.current() as table:
            done = own_table.last_version(table, app_id)
            if done is not None and done >= version:
                return False
            gone = _at_end(table, app_id, done) if has_ends and own_table.last_version(table, TRACK_AT_END) == done else []
            if not own:
                certain = rows.filter(pc.invert(rows[AT_END])) if len(ends) else rows
                for number, part in ((LAST - 1 if len(ends) else LAST, certain), (LAST, ends)):
                    if (made := _written(path, part, arrow_schema(table), BatchFile(app_id, version, number))) is not None:
                        own.append(made)
            versions = {app_id: version} | ({TRACK_AT_END: version} if len(ends) else {})
            if not has_ends or own or gone:
                commit(path, table, [*files, *own], versions, gone)
                own_table.noted(table, versions)
            return True

    try:
        return asked(path, commit_unless_done)
    except CommitFailedError:  # perhaps by another process that had this very version to write
        return asked(path, commit_unless_done)


def _at_end(table: DeltaTable, app_id: str, version: int | None) -> list[RemoveAction]:
    """Takes out what stood only until now: the last file of a version that wrote rows with AT_END."""
    files = zip(*(column.to_pylist() for column in pa.table(table.get_add_actions()).select(["path", "size_bytes"]).columns), strict=True)
    own = [(path, size) for path, size in files if version is not None and batch_file(unquote(path)) == BatchFile(app_id, version, LAST)]
    now = time.time_ns() // 1_000_000
    return [RemoveAction(path, data_change=True, deletion_timestamp=now, size=size, partition_values={}) for path, size in own]


def commit(
    place: Place, table: DeltaTable, files: Sequence[AddedFile], transactions: Mapping[str, int], gone: Sequence[RemoveAction] = ()
) -> None:
    """Adds files to a table, takes others out, and notes the last versions of applications."""
    now = time.time_ns() // 1_000_000  # says when the files were written
    actions: list[AddAction | RemoveAction] = [*gone, *(AddAction(file.name, file.size, {}, now, True, file.stats) for file in files)]
    properties = CommitProperties(app_transactions=[Transaction(*one) for one in transactions.items()], max_commit_retries=TRIES)
    # To look for commits that are too old is to list the log, so it is not done at each commit.
    is_due = table.version() % CHECKPOINT_COMMITS == 0
    write(place, table, actions, properties, PostCommitHookProperties(create_checkpoint=True, cleanup_expired_logs=is_due))


def write(
    place: Place, table: DeltaTable, actions: list[AddAction | RemoveAction], properties: CommitProperties, hooks: PostCommitHookProperties
) -> None:
    """Makes a commit of these actions, if this process may still write there: all commits of files are made here."""
    check_guards(place)
    table.create_write_transaction(
        actions, mode="append", schema=table.schema(), commit_properties=properties, post_commithook_properties=hooks
    )


def _written(path: Place, rows: pa.Table, schema: pa.Schema, file: BatchFile) -> AddedFile | None:
    writer = AddedFileWriter(path, file.new_name())
    writer.write(rows.cast(pa.schema([schema.field(name) for name in rows.column_names])))
    return writer.close()
