"""Rows of `findings`, and those about open rebalances, in the order in which track wrote them: commit by commit, without Spark.

A place in the table is a commit and a row of it. Only commits that added rows count; those of `rebalance maintain` move rows. `maintain`
keeps the commits and files that a sender has not read (`unsent_from`).
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final
from urllib.parse import unquote

import msgspec
import pyarrow.parquet as pq
from deltalake import DeltaTable

from jobs.alerts.finding import COLUMNS, Finding
from jobs.common.errors import LakehouseError
from jobs.common.files import write_whole
from jobs.lakehouse import delta_log
from schemas.names import REBALANCES_PROVISIONAL

_ROWS: Final = 1_000
"""Rows of a file that are in memory at a time."""


@dataclass(frozen=True, order=True)
class Place:
    """All rows before row `row` of a commit."""

    commit: int
    row: int = 0


@dataclass(frozen=True)
class NewFinding:
    """A finding, the place behind it, and when its commit was made, epoch ms."""

    finding: Finding
    after: Place
    written_ms: int


@dataclass(frozen=True)
class Progress:
    """How far a sender is. It stands in a file, so that the next process goes on there."""

    table: str  # id of the Delta table: another one begins with its first commit
    done: Place  # what is before it was sent, or need not be
    sending: Place | None = None  # the end of the message that may have been posted already
    newest_ms: int = 0  # newest time of a finding before `done`
    told_until_ms: int = 0  # findings of that time and before it were told out of an earlier table

    @classmethod
    def read(cls, path: Path) -> Progress | None:
        """None: there is no file yet. LakehouseError: it is damaged."""
        try:
            return msgspec.json.decode(path.read_bytes(), type=Progress)
        except FileNotFoundError:
            return None
        except (OSError, msgspec.MsgspecError):
            raise LakehouseError(f"{path} is damaged: delete it; alerts then begin with the next finding") from None

    def write(self, path: Path) -> None:
        """Replaces the file. OSError: it could not be written."""
        write_whole(path, json.dumps(asdict(self)).encode())


class FindingsTable:
    """The table `findings` of a lakehouse, or its `rebalances_provisional`. It may not exist yet, and another may replace it."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._of_open = folder.name == REBALANCES_PROVISIONAL
        self._log = folder / delta_log.LOG
        self._inode: int | None = None
        self.id = ""

    def open(self) -> bool:
        """Whether the table is another one than at the last call. Its `id` is empty while there is no table."""
        try:
            inode: int | None = self._log.stat().st_ino
        except OSError:
            inode = None
        if inode is None or inode == self._inode or not DeltaTable.is_deltatable(str(self._folder)):
            return False
        table = DeltaTable(str(self._folder))
        known, self.id, self._inode = self.id, str(table.metadata().id), inode
        return self.id != known

    def end(self) -> Place:
        """The place behind all rows."""
        return Place(delta_log.versions(self._folder)[-1] + 1)

    def oldest(self) -> int:
        """The first commit that is there."""
        return delta_log.versions(self._folder)[0]

    def has(self, commit: int) -> bool:
        """Whether a commit is there."""
        return (self._log / f"{commit:020d}.json").exists()

    def rows(self, start: Place) -> Iterator[NewFinding]:
        """The findings that one commit added, from a row on. FileNotFoundError: they were deleted since."""
        count = 0
        for path, written_ms in delta_log.commit_of(self._folder, start.commit).appended_at:
            with pq.ParquetFile(self._folder / unquote(path)) as file:
                columns = None if self._of_open else [*COLUMNS, "occurred_at"]
                for batch in file.iter_batches(_ROWS, columns=columns, use_threads=False):
                    new = batch.slice(min(max(start.row - count, 0), len(batch)))
                    first = count + len(batch) - len(new)
                    count += len(batch)
                    for number, row in enumerate(new.to_pylist(), first + 1):
                        if not self._of_open or row["alarm"]:
                            one = Finding.of_open(row) if self._of_open else Finding.of(row)
                            yield NewFinding(one, Place(start.commit, number), written_ms)


def first_progress(table: FindingsTable, known: Progress | None) -> Progress:
    """Where to begin in a table that has just been opened.

    Nobody sent before: at its end. There was no table, or another one (`rebalance replay --swap`): at its beginning, but for findings of
    times that were told.
    """
    if known is None:
        return Progress(table.id, table.end())
    if known.table != table.id:
        return Progress(table.id, Place(0), newest_ms=known.newest_ms, told_until_ms=known.newest_ms)
    return known
