"""`rebalance maintain`: what a lakehouse that goes on for weeks needs now and then, beside the pipeline that writes to it.

Of each table, in this order: rows that are older than they have to be kept go (`keep`); small files become larger ones, in the order in
which they are asked for; files that were replaced long ago are deleted; the log gets a checkpoint, and loses what that made superfluous.

Each step is one commit, or deletes what no reader needs. So it may be killed anywhere; the next call goes on. It writes no row, and takes
none away before the pipeline has read it: track reads the commits of group_events one after the other, and passes over those
made here. Files and commits that it has not read are kept, however old.
"""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import Final

from deltalake import DeltaTable

from jobs.common.errors import LakehouseError, UserError
from jobs.lakehouse import delta_files, delta_log, locks
from jobs.lakehouse.delta_files import FILE_BYTES, UNSAID, DataFile
from jobs.lakehouse.folder import Lakehouse
from jobs.lakehouse.parquet import is_plain
from schemas.names import GROUP_EVENTS

LONGEST_GRACE: Final = timedelta(days=7)
"""Delta forgets after this time when a file was replaced."""
_ORPHAN_AGE: Final = timedelta(days=1)
"""A file that no commit names may be one that is being written: not after this time."""
_SMALL: Final = FILE_BYTES // 2
_PORTION_BYTES: Final = 8 * FILE_BYTES
"""Of files that are put in order together: what a commit replaces, and what is lost by a kill."""

_TIMES: Final = ("ended_at", "at")
"""The column that says how old a row is: the first of these that a table has."""
_KEYS: Final = (("cluster", "group_id"), ("cluster", "broker", "origin"), ("cluster",), ())
"""What rows are asked for by: the first of these that a table has. Within it, they lie in the order of their times."""


@dataclass(frozen=True)
class Policy:
    """What is kept, and for how long. None: for ever."""

    keep: timedelta | None = None
    keep_events: timedelta | None = None  # of group_events, if it is another time
    grace: timedelta = LONGEST_GRACE  # for which replaced files stay, for readers that began before
    log_grace: timedelta = timedelta(days=1)  # for which commits stay that a checkpoint made superfluous

    def of(self, table: str) -> timedelta | None:
        """How long rows of a table are kept."""
        return self.keep_events if table == GROUP_EVENTS and self.keep_events is not None else self.keep


@dataclass(frozen=True)
class Done:
    """What was done to a table, or would be."""

    table: str
    rows_removed: int = 0
    files: tuple[int, int] = (0, 0)  # before and after
    size: tuple[int, int] = (0, 0)  # bytes that they have
    deleted: int = 0  # files that were replaced earlier
    deleted_bytes: int = 0
    commits_deleted: int = 0
    left_alone: str = ""  # why nothing was done


def maintain(
    folder: Path, policy: Policy, *, now: datetime, dry_run: bool = False, told: Callable[[str], None] = lambda _: None
) -> Iterator[Done]:
    """Works through the tables of a lakehouse, and tells of each. UserError: there is none, or it is being maintained.

    `now`: what ages are counted from, unless the newest event is older. `told` hears which table is worked at.
    """
    if policy.grace > LONGEST_GRACE:
        raise UserError(f"replaced files are kept for {LONGEST_GRACE.days} days at most")
    house = Lakehouse(folder)
    if not DeltaTable.is_deltatable(str(folder / GROUP_EVENTS)):
        raise LakehouseError(f"no lakehouse at {folder}: no table {GROUP_EVENTS} in it")
    with locks.held(house.maintain_lock, f"another `rebalance maintain` or a replay is working with the lakehouse {folder}: wait for it"):
        shutil.rmtree(house.scratch, ignore_errors=True)
        newest = _newest(folder / GROUP_EVENTS) or now
        for name in sorted(path.parent.name for path in folder.glob(f"*/{delta_log.LOG}")):
            told(name)
            keep = policy.of(name)
            yield _Table(house, name, policy, min(newest, now) - keep if keep is not None else None, dry_run=dry_run).work()


def unread_from(checkpoint: Path) -> int:
    """The first commit of group_events that track may still ask for: 0 if it has read none.

    Spark looks at the last batch that was done once more when a query starts again, and so at where the one before it ended.
    """
    done = sorted((int(path.name) for path in (checkpoint / "commits").glob("[0-9]*") if path.name.isdigit()), reverse=True)
    if len(done) < 2:
        return 0
    try:
        lines = (checkpoint / "offsets" / str(done[1])).read_text(encoding="utf-8").splitlines()
        return int(json.loads(lines[-1])["reservoirVersion"])
    except (OSError, ValueError, KeyError, IndexError, TypeError):
        return 0


class _Table:
    """One table, worked through."""

    def __init__(self, house: Lakehouse, name: str, policy: Policy, oldest: datetime | None, *, dry_run: bool) -> None:
        self._name = name
        self._folder = house.folder / name
        self._grace = policy.grace
        self._log_grace = policy.log_grace
        self._dry_run = dry_run
        self._scratch = house.scratch / name
        nullable = {field.name: field.nullable for field in DeltaTable(str(self._folder)).schema().fields}
        self._time = next((column for column in _TIMES if column in nullable), None)
        # A row without a time is kept, and the bounds of a file say nothing of it.
        self._bounded = self._time is not None and not nullable[self._time]
        self._oldest = oldest if self._time is not None else None
        keys = next(keys for keys in _KEYS if set(keys) <= set(nullable))
        self._order = ", ".join(f'"{column}"' for column in (*keys, self._time or "batch_id") if column in nullable) or "ALL"
        # Nobody of ours follows the commits of another table.
        self._unread_from = unread_from(house.track_checkpoint) if name == GROUP_EVENTS else sys.maxsize

    def work(self) -> Done:
        if not is_plain(DeltaTable(str(self._folder))):
            return Done(self._name, left_alone="another program changed how it is stored")
        before = self._files()
        removed = self._expire(before)
        self._cluster()
        after = self._files()
        gone = list(self._vacuum())
        commits = delta_log.tidy(
            self._folder,
            unread_from=self._unread_from,
            older_than_s=self._log_grace.total_seconds(),
            dry_run=self._dry_run,
        )
        return Done(
            self._name,
            removed,
            (len(before), len(after)),
            (sum(file.size for file in before), sum(file.size for file in after)),
            len(gone),
            sum(gone),
            commits,
        )

    def _files(self) -> list[DataFile]:
        return delta_files.data_files(DeltaTable(str(self._folder)), self._time)

    def _expire(self, files: Sequence[DataFile]) -> int:
        """Rows that are too old. Files that have none of them are not touched."""
        oldest = self._oldest
        if oldest is None:
            return 0
        limit = f"TIMESTAMPTZ '{oldest.isoformat()}'"
        too_old = f'"{self._time}" < {limit}'
        told = [file for file in files if self._bounded and file.rows is not None]
        whole = [file for file in told if file.newest is not None and file.newest < oldest]
        mixed = [file for file in files if file not in whole and (file.oldest is None or file.oldest < oldest)]
        mixed = [file for file in mixed if delta_files.count(self._folder, [file], too_old, self._scratch)]
        removed = sum(file.rows or 0 for file in whole)
        if self._dry_run:
            return removed + delta_files.count(self._folder, mixed, too_old, self._scratch) if mixed else removed
        if whole:
            delta_files.replace(self._folder, whole, [], changes=True)
        for portion in _portions(mixed):
            keep = f'coalesce("{self._time}" >= {limit}, true)'
            removed += delta_files.rewrite(self._folder, portion, self._scratch, order=self._order, keep=keep)
        return removed

    def _cluster(self) -> None:
        """Makes larger files of small ones, a portion at a time."""
        if self._dry_run:
            return
        for portion in _portions([file for file in self._files() if file.size < _SMALL]):
            if len(portion) > 1:
                delta_files.rewrite(self._folder, portion, self._scratch, order=self._order)

    def _vacuum(self) -> Iterator[int]:
        """Deletes files that no reader needs; the bytes of each."""
        needed: set[str] = set()
        if self._name == GROUP_EVENTS:
            needed = {path for commit in delta_log.commits(self._folder, self._unread_from) for path in commit.added}
        hours = _hours(self._grace)
        for path in delta_files.unneeded(self._folder, hours=hours, orphan_hours=max(hours, _hours(_ORPHAN_AGE)), needed=needed):
            size = path.stat().st_size
            if not self._dry_run:
                delta_files.delete(path)
            yield size


def _portions(files: Sequence[DataFile]) -> Iterator[list[DataFile]]:
    """Files that were written one after the other, so many bytes at a time."""
    portion: list[DataFile] = []
    for file in files:
        portion.append(file)
        if sum(one.size for one in portion) >= _PORTION_BYTES:
            yield portion
            portion = []
    if portion:
        yield portion


def _newest(events: Path) -> datetime | None:
    """The time of the newest event, cut to milliseconds."""
    bounds = [file.newest for file in delta_files.data_files(DeltaTable(str(events)), "at") if file.newest is not None]
    return max(bounds) - UNSAID if bounds else None


def _hours(span: timedelta) -> int:
    """Whole hours, rounded up."""
    return -(-int(span.total_seconds()) // 3_600)
