"""Opens Delta tables, for readers that do without Spark, pandas and PyArrow. Tables may stay open: that costs 1 ms a look instead of 4."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from threading import Lock, RLock
from typing import Final

from deltalake import DeltaTable
from deltalake.exceptions import DeltaError, TableNotFoundError

from jobs.common.errors import LakehouseError
from jobs.common.failures import damaged_text
from jobs.common.stores import Place, StorePath, asked, delta_options


class DamagedTableError(LakehouseError, DeltaError):
    """The log of a table is there, and cannot be read."""


def is_table(path: Place) -> bool:
    """Whether a folder has a Delta table. Not by delta-rs, during whose request to a store no other thread of this process would run."""
    log = path / "_delta_log"
    return log.is_dir() if isinstance(log, StorePath) else os.path.isdir(log)  # noqa: PTH112 - a name may be too long, which Path tells


def opened(path: Place, version: int | None = None) -> DeltaTable:
    """A table, by default as it is now. TableNotFoundError: there is none. DamagedTableError: its log cannot be read."""
    try:
        return asked(path, lambda: DeltaTable(str(path), version=version, storage_options=delta_options(path)))
    except DeltaError as error:
        if type(error) is not DeltaError or not is_table(path):
            raise
        raise DamagedTableError(damaged_text(str(path / "_delta_log"), str(error).partition("\n")[0])) from error


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
                asked(self._path, self._table.update_incremental)
            self._commit = self._newest(self._table)
            yield self._table

    @contextmanager
    def known(self) -> Iterator[DeltaTable]:
        """The table as it was last, for this thread alone."""
        with self._lock:
            if self._table is None:
                with self.current():
                    pass
            assert self._table is not None
            yield self._table

    def last_version(self, table: DeltaTable, app_id: str) -> int | None:
        """The last version of an application. To find it, delta-rs reads all commits since the last checkpoint: 50 as a rule."""
        if table.version() != self._done_at:  # another than this process has committed
            self._done, self._done_at = {}, table.version()
        if app_id not in self._done:
            self._done[app_id] = asked(self._path, lambda: table.transaction_version(app_id))
        return self._done[app_id]

    def noted(self, table: DeltaTable, versions: Mapping[str, int]) -> None:
        """Remembers that this process has just made the next commit to the table, with these versions of applications."""
        self._done |= versions
        self._done_at = table.version() + 1

    def _newest(self, table: DeltaTable) -> tuple[int, int] | None:
        if isinstance(self._path, StorePath):
            return None  # nobody can rename a table in a store
        try:
            status = (self._path / "_delta_log" / f"{table.version():020d}.json").stat()
        except FileNotFoundError:
            return None
        return status.st_ino, status.st_mtime_ns


_MOST_KEPT: Final = 64  # tables: those of three lakehouses
_KEPT: Final[dict[Place, _Kept]] = {}  # what was asked for last comes last
_KEPT_LOCK: Final = Lock()


def kept(path: Place) -> _Kept:
    """The table that this process keeps open."""
    with _KEPT_LOCK:
        its = _KEPT[path] = _KEPT.pop(path) if path in _KEPT else _Kept(path)
        if len(_KEPT) > _MOST_KEPT:
            del _KEPT[next(iter(_KEPT))]
        return its


@contextmanager
def current(path: Place) -> Iterator[DeltaTable]:
    """A table as it is now, for this thread alone. One in a store is opened anew: another may be in its place, which no look shows."""
    if isinstance(path, StorePath):
        yield opened(path)
    else:
        with kept(path).current() as table:
            yield table


def version_of(path: Place) -> tuple[str, int] | None:
    """The id of a table and its version, which changes with each commit; None: there is no table."""
    if not isinstance(path, StorePath) and not is_table(path):
        return None
    try:
        with kept(path).current() as table:
            return str(table.metadata().id), table.version()
    except TableNotFoundError:
        return None
