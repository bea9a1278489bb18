"""Keeps a lakehouse fast and small, beside the pipeline that writes to it.

For each table it first deletes rows that are older than `keep`, and provisional rows that a newer or the final row replaces. Then it
merges small files into larger ones, sorted as queries ask for rows. Last it deletes files that were replaced long ago.

Each step is one commit, or deletes what no reader needs: it may be killed anywhere, and the next call continues. Who follows a table knows
its files by the micro-batch that wrote them, so a file is left alone until all of them have read it, however old it is.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial
from typing import Final
from urllib.parse import unquote

from jobs.common.errors import UserError
from jobs.common.stores import Place
from jobs.common.times import epoch_ms
from jobs.lakehouse import delta_files, followers, locks, opening, tables
from jobs.lakehouse.delta_files import FILE_BYTES, ROW_GROUP, STATISTICS_CUT, DataFile
from jobs.lakehouse.event_copy import EXPIRED_UNTIL
from jobs.lakehouse.folder import Lakehouse, present
from jobs.lakehouse.parquet import is_plain, rows_of_files
from jobs.lakehouse.reader import check_events
from schemas.names import AT_END, GROUP_EVENTS, REBALANCES, REBALANCES_PROVISIONAL, TIME, TIMES, TRACK

LONGEST_GRACE: Final = timedelta(days=7)
"""Delta forgets after this time when a file was replaced."""
_ORPHAN_AGE: Final = timedelta(days=1)
"""A younger file that no commit names may be one that is being written."""
_SMALL: Final = FILE_BYTES // 2
_PORTION_BYTES: Final = 8 * FILE_BYTES
"""Size of the files that are sorted together: one commit replaces them, and a kill loses that much work."""

_KEYS: Final = (("cluster", "group_id"), ("cluster", "broker", "origin"), ("cluster",), ())
"""The columns that queries ask by: the first of these that a table has. Rows are sorted by them, then by time."""
_REBALANCE: Final = "cluster, group_id, coalesce(generation, -1), coalesce(joined_at, ended_at)"
"""What a rebalance is known by, as in sql/views/rebalances_waiting.sql."""
_OF_OPEN: Final = "outcome IN ('OPEN', 'ENDED')"
"""Provisional rows of rebalances that had not ended. The newest of a group counts, as in sql/views/rebalances_open.sql, however old."""


@dataclass(frozen=True)
class Policy:
    """What is kept, and for how long. None: for ever."""

    keep: timedelta | None = None
    keep_events: timedelta | None = None  # of group_events, if it differs
    grace: timedelta = LONGEST_GRACE  # for which replaced files stay, for readers that began before
    row_group: int = ROW_GROUP

    def of(self, table: str) -> timedelta | None:
        """How long rows of a table are kept."""
        return self.keep_events if table == GROUP_EVENTS and self.keep_events is not None else self.keep


@dataclass(frozen=True)
class MaintainedTable:
    """What was done to a table, or would be done."""

    table: str
    rows_removed: int = 0
    files: tuple[int, int] = (0, 0)  # before and after
    size: tuple[int, int] = (0, 0)  # bytes, before and after
    deleted: int = 0  # files that were replaced earlier
    deleted_bytes: int = 0
    left_alone: str = ""  # why nothing was done


def maintain(
    folder: Place, policy: Policy, *, now: datetime, dry_run: bool = False, show: Callable[[str], None] = lambda _: None
) -> Iterator[MaintainedTable]:
    """Works through the tables of a lakehouse. UserError: there is none that can be read, or another process maintains it.

    Ages are counted from the newest event, or from `now` if that is older. `show` gets the name of each table when its turn comes.
    """
    if policy.grace > LONGEST_GRACE:
        raise UserError(f"replaced files are kept for {LONGEST_GRACE.days} days at most")
    house = Lakehouse(folder)
    check_events(folder)
    with locks.held(house.maintain_lock, f"another `rebalance maintain` or a replay is working with the lakehouse {folder}: wait for it"):
        shutil.rmtree(house.scratch, ignore_errors=True)
        newest = _newest(folder / GROUP_EVENTS) or now
        for name in sorted(present(folder), key=lambda name: (name != REBALANCES_PROVISIONAL, name)):  # before final rows go
            show(name)
            yield _Table(house, name, policy, min(newest, now), dry_run=dry_run).work()


class _Table:
    """Maintains one table."""

    def __init__(self, house: Lakehouse, name: str, policy: Policy, newest: datetime, *, dry_run: bool) -> None:
        self._name = name
        self._folder = house.folder / name
        self._policy = policy
        self._dry_run = dry_run
        self._scratch = house.scratch / name
        table = opening.opened(self._folder)
        self._is_plain = is_plain(table)
        nullable = {field.name: field.nullable for field in table.schema().fields}
        self._time = next((column for column in TIMES if column in nullable), None)
        # A row without a time is kept, and the bounds of a file say nothing about it.
        self._bounded = self._time is not None and not nullable[self._time] and name != REBALANCES_PROVISIONAL
        keep = policy.of(name)
        self._oldest = newest - keep if keep is not None and self._time is not None else None
        keys = next(keys for keys in _KEYS if set(keys) <= set(nullable))
        self._order = ", ".join(f'"{column}"' for column in (*keys, self._time or "batch_id") if column in nullable) or "ALL"
        self._followed = followers.of_table(house, name)
        self._known = delta_files.data_files(table, self._time) if self._is_plain else None

    def work(self) -> MaintainedTable:
        if not self._is_plain:
            return MaintainedTable(self._name, left_alone="another program changed how it is stored")
        before = self._files()
        removed = self._drop_replaced() if self._name == REBALANCES_PROVISIONAL else 0
        removed += self._expire(self._free())  # then: nothing brings a row back whose end is too old
        if not self._dry_run:
            for portion in _portions([file for file in self._free() if file.size < _SMALL]):
                if len(portion) > 1:
                    self._rewrite(portion)
        after = self._files()
        deleted = self._vacuum()
        return MaintainedTable(
            self._name,
            removed,
            (len(before), len(after)),
            (sum(file.size for file in before), sum(file.size for file in after)),
            len(deleted),
            sum(deleted),
        )

    def _files(self) -> list[DataFile]:
        """Those that were there after the last change of this process. What others add meanwhile waits for the next run."""
        if self._known is None:
            self._known = delta_files.data_files(opening.opened(self._folder), self._time)
        return self._known

    def _free(self) -> list[DataFile]:
        """The files that everybody has read who follows the table, and that are to stay (the last ones of track may have AT_END)."""
        last = max((file.batch.batch_id for file in self._files() if file.batch is not None and file.batch.app_id == TRACK), default=-1)
        own = (file for file in self._files() if file.batch is None or (file.batch.app_id, file.batch.batch_id) != (TRACK, last))
        return [file for file in own if not any(follower.waits_for(file) for follower in self._followed)]

    def _rewrite(self, files: Sequence[DataFile], keep: str | None = None) -> int:
        self._known = None
        return delta_files.rewrite(self._folder, files, self._scratch, order=self._order, keep=keep, row_group=self._policy.row_group)

    def _expire(self, files: Sequence[DataFile]) -> int:
        """Deletes rows that are too old; returns how many. Files without such rows are not touched."""
        oldest = self._oldest
        if oldest is None:
            return 0
        limit = f"TIMESTAMPTZ '{oldest.isoformat()}'"
        spared = (
            "outcome = 'OPEN'" if self._name == REBALANCES_PROVISIONAL else "false"
        )  # `_drop_replaced` drops those that are open no more
        too_old = f'("{self._time}" < {limit} AND NOT {spared})'
        whole = [file for file in files if self._bounded and file.rows is not None and file.newest is not None and file.newest < oldest]
        mixed = [file for file in files if file not in whole and (file.oldest is None or file.oldest < oldest)]
        counts = {file: rows for file in mixed if (rows := delta_files.count(self._folder, [file], too_old, self._scratch))}
        removed = sum(file.rows or 0 for file in whole)
        if self._dry_run:
            return removed + sum(counts.values())
        if self._name == GROUP_EVENTS and (whole or counts):
            tables.commit(self._folder, opening.opened(self._folder), [], {EXPIRED_UNTIL: epoch_ms(oldest)})
        if whole:
            self._known = None
            delta_files.replace(self._folder, whole, [], changes=True)
        for portion in _portions(list(counts)):
            removed += self._rewrite(portion, f"coalesce(NOT {too_old}, true)")
        return removed

    def _drop_replaced(self) -> int:
        """Deletes provisional rows that a newer or the final row of their rebalance replaces; returns how many."""
        final, provisional = (self._rows_of(self._folder.with_name(name)) for name in (REBALANCES, REBALANCES_PROVISIONAL))
        place = "row(batch_id, started_at, outcome <> 'OPEN')"
        open_before = (
            f"row(cluster, group_id, {place}) NOT IN "  # noqa: S608
            f"(SELECT row(cluster, group_id, max({place})) FROM ({provisional}) WHERE {_OF_OPEN} GROUP BY cluster, group_id)"
        )
        ended = (
            f"row({_REBALANCE}) IN (SELECT row({_REBALANCE}) FROM ({final})) OR row({_REBALANCE}, batch_id) NOT IN "  # noqa: S608
            f"(SELECT row({_REBALANCE}, max(batch_id)) FROM ({provisional}) WHERE NOT {_OF_OPEN} GROUP BY {_REBALANCE})"
        )
        replaced = f"(CASE WHEN {_OF_OPEN} THEN {open_before} ELSE {ended} END)"
        removed = 0
        for portion in _portions(self._free()):
            rows = delta_files.count(self._folder, portion, replaced, self._scratch)
            removed += rows if self._dry_run or not rows else self._rewrite(portion, f"NOT {replaced}")
        return removed

    def _rows_of(self, folder: Place) -> str:
        """Those that stay, as a query."""
        table = opening.opened(folder)
        rows = rows_of_files(table, folder, [file.path for file in delta_files.data_files(table)])
        return f"SELECT * FROM ({rows}) WHERE NOT {AT_END}"  # noqa: S608

    def _vacuum(self) -> list[int]:
        """Deletes files that no reader needs; returns the bytes of each: those replaced long ago, and those that no commit names."""
        table, hours = opening.opened(self._folder), _hours(self._policy.grace)
        present = {path.name: path.stat().st_size for path in self._folder.glob("*.parquet")}
        gone: set[str] = set()
        for retention, full in ((hours, False), (max(hours, _hours(_ORPHAN_AGE)), True)):
            delete = partial(table.vacuum, retention, full=full, enforce_retention_duration=False)
            found = set(map(unquote, delete(dry_run=True))) & present.keys()  # it names also what was deleted earlier
            gone |= found
            if found and not self._dry_run:
                delete(dry_run=False)
        return [present[name] for name in gone]


def _portions(files: Sequence[DataFile]) -> Iterator[list[DataFile]]:
    """The files in order, so many bytes at a time."""
    portion: list[DataFile] = []
    for file in files:
        portion.append(file)
        if sum(one.size for one in portion) >= _PORTION_BYTES:
            yield portion
            portion = []
    if portion:
        yield portion


def _newest(events: Place) -> datetime | None:
    """The time of the newest event, cut to milliseconds."""
    table = opening.opened(events)
    bounds = [file.newest for file in delta_files.data_files(table, TIME) if file.newest is not None]
    return max(bounds) - STATISTICS_CUT if bounds else None


def _hours(span: timedelta) -> int:
    """Whole hours, rounded up."""
    return -(-int(span.total_seconds()) // 3_600)
