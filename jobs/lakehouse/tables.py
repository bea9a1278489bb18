"""Makes the Delta tables and appends to them, exactly once for each application and version.

All commits are those of delta-rs. A batch that runs again after a crash finds its version in the table's log and changes nothing
(`SetTransaction` of the Delta protocol). Two processes that write the same application's versions cannot both commit: the second one
fails, since the first one's transaction came in between. Tables stay open: to open one takes 4 ms, to bring it up to date 1 ms.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from threading import Lock, RLock
from typing import TYPE_CHECKING, Final

import pyarrow as pa
from deltalake import CommitProperties, DeltaTable, PostCommitHookProperties, Transaction
from deltalake.exceptions import CommitFailedError, TableNotFoundError
from deltalake.schema import Schema
from deltalake.transaction import AddAction, RemoveAction

from jobs.common.stores import Place, StorePath, check_guards, delta_options, told
from jobs.lakehouse.added_files import INDEXED_COLUMNS, LAST, AddedFile, AddedFileWriter, BatchFile

if TYPE_CHECKING:
    from pyspark.sql.types import StructType  # which costs a reader a second

CHECKPOINT_COMMITS: Final = 100
_CONFIGURATION: Final = {
    # delta-rs opens a table by its newest checkpoint and the commits since then.
    "delta.checkpointInterval": str(CHECKPOINT_COMMITS),
    # Readers skip files by the statistics of the first columns: cluster, broker, time, group.
    "delta.dataSkippingNumIndexedCols": str(INDEXED_COLUMNS),
    # Nobody reads the commits one by one, and a following run makes one every few seconds.
    "delta.logRetentionDuration": "interval 1 days",
}


def table_path(lakehouse: Place, name: str) -> Place:
    """The folder of a table."""
    return lakehouse / name


def for_spark(path: Place) -> str:
    """A place as Spark is told of it, whose default file system may be another one, such as HDFS."""
    return f"s3a://{path.bucket}/{path.key}" if isinstance(path, StorePath) else f"file://{path.absolute()}"


def is_table(path: Place) -> bool:
    """Whether a folder has a Delta table. Not by delta-rs, during whose request to a store no other thread of this process would run."""
    return (path / "_delta_log").is_dir()


def opened(path: Place, version: int | None = None) -> DeltaTable:
    """A table, by default as it is now. TableNotFoundError: there is none."""
    with told(path):
        return DeltaTable(str(path), version=version, storage_options=delta_options(path))


def ensure_table(lakehouse: Place, name: str, schema: StructType, configuration: Mapping[str, str] = _CONFIGURATION) -> Place:
    """Creates an empty table with column comments, or adds the columns that a table lacks; returns its folder.

    `configuration`: Delta's properties of a new table.
    """
    path = table_path(lakehouse, name)
    wanted = Schema.from_json(schema.json())
    try:
        table = opened(path)
    except TableNotFoundError:
        path.mkdir(parents=True, exist_ok=True)
        options = delta_options(path)
        DeltaTable.create(str(path), schema=wanted, mode="ignore", name=name, configuration=dict(configuration), storage_options=options)
        table = opened(path)
    known = {field.name for field in table.schema().fields}
    if added := [field for field in wanted.fields if field.name not in known]:
        table.alter.add_columns(added)
    return path


class _Kept:
    """A table that stays open in this process. `commit`: which file its newest commit is: another table may take its place."""

    def __init__(self, path: Place) -> None:
        self._path = path
        self._table: DeltaTable | None = None
        self._commit: tuple[int, int] | None = None
        self._done: dict[str, int | None] = {}  # the last versions of applications, at a version of the table
        self._done_at = -1
        self._lock = RLock()

    @contextmanager
    def current(self) -> Iterator[DeltaTable]:
        """The table as it is now, for this thread alone."""
        with self._lock:
            if self._table is None or self._newest(self._table) != self._commit:
                self._table = opened(self._path)
                self._done_at = -1
            else:
                self._table.update_incremental()
            self._commit = self._newest(self._table)
            yield self._table

    def last_version(self, table: DeltaTable, app_id: str) -> int | None:
        """The last version of an application. To find it, delta-rs reads all commits since the last checkpoint: 50 as a rule."""
        if table.version() != self._done_at:  # another than this process has committed
            self._done, self._done_at = {}, table.version()
        if app_id not in self._done:
            self._done[app_id] = table.transaction_version(app_id)
        return self._done[app_id]

    def commit(self, table: DeltaTable, files: Sequence[AddedFile], app_id: str, version: int) -> None:
        """Adds files to the table as a version of an application."""
        before = table.version()
        commit(self._path, table, files, {app_id: version})
        self._done[app_id], self._done_at = version, before + 1

    def _newest(self, table: DeltaTable) -> tuple[int, int] | None:
        if isinstance(self._path, StorePath):
            return None  # nobody can rename a table in a store
        try:
            status = (self._path / "_delta_log" / f"{table.version():020d}.json").stat()
        except FileNotFoundError:
            return None
        return status.st_ino, status.st_mtime_ns


_KEPT: Final[dict[Place, _Kept]] = {}
_KEPT_LOCK: Final = Lock()


def kept(path: Place) -> _Kept:
    """The table that this process keeps open."""
    with _KEPT_LOCK:
        return _KEPT.setdefault(path, _Kept(path))


def version_of(path: Place) -> tuple[str, int] | None:
    """The id of a table and its version, which changes with each commit; None: there is no table."""
    if not isinstance(path, StorePath) and not (path / "_delta_log").is_dir():
        return None
    try:
        with kept(path).current() as table:
            return str(table.metadata().id), table.version()
    except TableNotFoundError:
        return None


def last_version(path: Place, app_id: str) -> int | None:
    """The last version that the application wrote to the table."""
    return opened(path).transaction_version(app_id)


def append(path: Place, rows: pa.Table, app_id: str, version: int, files: Sequence[AddedFile] = ()) -> bool:
    """Appends the rows as one file unless this version was written before; returns whether it wrote.

    `files`: files that others wrote. They come before the rows, and track reads them in that order: the rows have the clocks, and a clock
    must not overtake the events before it. ValueError: the rows do not fit the table.
    """
    own: AddedFile | None = None
    for _ in range(2):
        own_table = kept(path)
        with own_table.current() as table:
            done = own_table.last_version(table, app_id)
            if done is not None and done >= version:
                return False
            own = own or _written(path, rows, pa.schema(table.schema().to_arrow()), BatchFile(app_id, version, LAST))
            try:
                own_table.commit(table, [*files, *([own] if own is not None else [])], app_id, version)
            except CommitFailedError as error:  # perhaps by another process that had this very version to write
                failed = error
            else:
                return True
    raise failed


def commit(place: Place, table: DeltaTable, files: Sequence[AddedFile], transactions: Mapping[str, int]) -> None:
    """Adds files to a table, and notes the last versions of applications."""
    check_guards(place)
    now = time.time_ns() // 1_000_000  # says when the files were written
    actions: list[AddAction | RemoveAction] = [AddAction(file.name, file.size, {}, now, True, file.stats) for file in files]
    properties = CommitProperties(app_transactions=[Transaction(*one) for one in transactions.items()])
    # To look for commits that are too old is to list the log, so it is not done at each commit.
    is_due = table.version() % CHECKPOINT_COMMITS == 0
    hooks = PostCommitHookProperties(create_checkpoint=True, cleanup_expired_logs=is_due)
    table.create_write_transaction(
        actions, mode="append", schema=table.schema(), commit_properties=properties, post_commithook_properties=hooks
    )


def _written(path: Place, rows: pa.Table, schema: pa.Schema, file: BatchFile) -> AddedFile | None:
    writer = AddedFileWriter(path, file.new_name())
    writer.write(rows.cast(pa.schema([schema.field(name) for name in rows.column_names])))
    return writer.close()
