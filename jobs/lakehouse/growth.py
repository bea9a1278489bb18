"""Follows tables while other processes write to them: which files came since the last look.

A look costs the listing of one folder as long as nothing was committed. Commits that replace files (`rebalance maintain`) bring nothing
new. Where commits are missing, or the table is another one (`rebalance replay --swap`), all files count as new again.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Final, TypeAlias

from deltalake import DeltaTable
from deltalake.exceptions import TableNotFoundError

from jobs.lakehouse.delta_log import LOG, commits
from jobs.lakehouse.parquet import is_plain

_Listing: TypeAlias = tuple[int, int, int]
_NONE: Final = -1


@dataclass(frozen=True)
class Growth:
    """What came to a table since the last look."""

    table: DeltaTable
    files: list[str] | None
    """New files, as in the table's log. None: the whole table has to be read, which may hold rows that came earlier."""


class GrowingTable:
    """A table that may not exist yet, may vanish, and may be made anew."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._listing: _Listing | None = None
        self._version = _NONE

    def look(self) -> Growth | None:
        """What came since the last look; None: nothing, or there is no table."""
        listing = _listing(self._folder / LOG)
        if listing == self._listing:
            return None
        if listing is None:
            self.forget()
            return None
        try:
            growth = self._growth(listing)
        except (TableNotFoundError, FileNotFoundError):  # it is being made, or another one takes its place
            self.forget()
            return None
        self._listing = listing
        return growth

    def forget(self) -> None:
        """Lets the next look find the whole table."""
        self._listing, self._version = None, _NONE

    def _growth(self, listing: _Listing) -> Growth | None:
        table = DeltaTable(str(self._folder))
        before, now = self._version, table.version()
        is_same = before != _NONE and self._listing is not None and self._listing[0] == listing[0] and before <= now
        self._version = now
        if not is_same or not is_plain(table):
            return Growth(table, None)
        news = [commit for commit in commits(self._folder, before + 1) if commit.version <= now]
        if len(news) != now - before:
            return Growth(table, None)
        files = [path for commit in news for path in commit.appended]
        return Growth(table, files) if files else None


def _listing(folder: Path) -> _Listing | None:
    """What changes when a file comes to a folder or leaves it, or another folder takes its place; None: there is no folder."""
    try:
        status = folder.stat()
        return status.st_ino, status.st_mtime_ns, sum(1 for _ in folder.iterdir())
    except FileNotFoundError:
        return None
