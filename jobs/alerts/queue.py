"""What a receiver has not got yet: rows of `findings`, and those about open rebalances, in the order in which track wrote them.

The table is the queue, read commit by commit, without Spark. A place in it is a commit and a row of that. Only commits that added rows
count; those of `rebalance maintain` move rows. `maintain` keeps the commits and files that a receiver has not got (`unsent_from`).
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import timedelta
from itertools import islice, takewhile
from pathlib import Path
from typing import Final
from urllib.parse import unquote

import msgspec
import pyarrow.parquet as pq
from deltalake import DeltaTable
from deltalake.exceptions import TableNotFoundError

from jobs.alerts.finding import COLUMNS, Finding, wanted_by, with_brokers
from jobs.common.alert_settings import ReceiverSettings
from jobs.common.errors import LakehouseError
from jobs.common.files import write_whole
from jobs.common.times import milliseconds
from jobs.lakehouse import delta_log
from jobs.lakehouse.reader import table_rows
from schemas.names import FINDINGS, REBALANCES_PROVISIONAL

_ROWS: Final = 1_000
"""Rows of a file that are in memory at a time."""
_NOTE_SECONDS: Final = 30.0  # between two notes of progress without a message


@dataclass(frozen=True, order=True)
class Place:
    """All rows before row `row` of a commit."""

    commit: int
    row: int = 0


@dataclass(frozen=True)
class Progress:
    """How far a receiver is. It stands in a file, so that the next process goes on there."""

    table: str  # id of the Delta table: another one begins with its first commit
    done: Place  # what is before it was sent, or need not be
    sending: Place | None = None  # the end of the message that may have been posted already
    newest_ms: int = 0  # newest time of a finding before `done`
    told_until_ms: int = 0  # findings of that time and before it were told out of an earlier table


class Queue:
    """What waits in `findings` or `rebalances_provisional` for one receiver. The table may not exist yet, and another may replace it."""

    def __init__(self, table: Path, notes: Path, receiver: ReceiverSettings, max_age_ms: int, warn: Callable[[str], None]) -> None:
        self.waiting = 0  # findings
        self.old = 0  # those that are left out because they were too old when they were found
        self._folder, self._log = table, table / delta_log.LOG
        self._file = notes / f"{receiver.name}.json"
        self._receiver, self._max_age_ms, self._warn = receiver, max_age_ms, warn
        self._of_open = table.name == REBALANCES_PROVISIONAL
        self._inode, self._id = 0, ""  # of the table; empty while there is none
        self._progress, self._is_noted = Progress("", Place(0)), False  # a table that is made from now on is new as a whole
        self._oldest = self._counted = Place(0)  # where the table begins now; what is before it was counted
        self._is_gone, self._noted_s = False, 0.0

    def start(self) -> None:
        """Notes where to begin. LakehouseError: the note of an earlier process is damaged."""
        try:
            self._progress, self._is_noted = msgspec.json.decode(self._file.read_bytes(), type=Progress), True
        except FileNotFoundError:
            pass
        except (OSError, msgspec.MsgspecError):
            raise LakehouseError(f"{self._file} is damaged: delete it; alerts then begin with the next finding") from None
        if not self._open() and not self._is_noted:
            self._note(self._progress)

    def look(self) -> None:
        """Counts what came."""
        for place, finding in self._rows(max(self._counted, self._progress.done)) if self._open() else ():
            self.waiting += finding is not None
            self._counted = place
        self.pass_over()

    def pass_over(self, *, at_once: bool = False) -> None:
        """Notes, now and then or `at_once`, that nothing is to be sent up to here."""
        is_time = at_once or time.monotonic() - self._noted_s > _NOTE_SECONDS
        if is_time and not self.waiting and self._progress.table and self._progress.done < self._counted:
            self._note(replace(self._progress, done=self._counted, sending=None))

    def take(self, most: int) -> list[tuple[Place, Finding]]:
        """The findings of the next message, once more if it may have been posted already. The place behind the last is noted first."""
        progress = self._progress
        until = progress.sending or self._counted
        rows = takewhile(lambda row: row[0] <= until, self._rows(progress.done))
        batch = list(islice(((place, finding) for place, finding in rows if finding is not None), most))
        if not batch and progress.sending is None:  # they were deleted since they were counted
            self.waiting = 0
        sending = batch[-1][0] if batch else None  # None: what was about to be sent is not wanted any more
        if progress.sending != sending:
            self._note(replace(progress, sending=sending))
        return batch

    def done(self, batch: list[tuple[Place, Finding]]) -> None:
        """The findings were sent, or are given up."""
        self.waiting = max(self.waiting - len(batch), 0)
        newest_ms = max([self._progress.newest_ms, *(finding.occurred_ms for _, finding in batch)])
        self._note(replace(self._progress, done=batch[-1][0], sending=None, newest_ms=newest_ms))

    def _open(self) -> bool:
        """Goes to the right place in the table if it is another one than before. False: there is no table yet."""
        inode = 0
        with suppress(OSError):
            inode = self._log.stat().st_ino
        if inode not in {0, self._inode} and DeltaTable.is_deltatable(str(self._folder)):
            table_id = str(DeltaTable(str(self._folder)).metadata().id)
            if table_id != self._id:
                self._begin(table_id)
            self._inode, self._id = inode, table_id
        return bool(self._id)

    def _begin(self, table_id: str) -> None:
        """Where nobody sent before, at the end. Where there was no table, or another one (`rebalance replay --swap`), at the beginning.

        Findings of times that were told out of the other one are left out.
        """
        commits, newest_ms = delta_log.versions(self._folder), self._progress.newest_ms
        if not self._is_noted:
            self._note(Progress(table_id, Place(commits[-1] + 1)))
        elif self._progress.table != table_id:
            self._note(Progress(table_id, Place(0), newest_ms=newest_ms, told_until_ms=newest_ms))
        self.waiting, self._oldest = 0, Place(commits[0])
        self._counted = max(self._progress.done, self._oldest)
        if self._progress.done < self._oldest:
            self._tell_gone()

    def _rows(self, start: Place) -> Iterator[tuple[Place, Finding | None]]:
        """What commits added for this receiver, from a place on, each with the place behind it. None: the end of a commit."""
        place = max(start, self._oldest)
        while (self._log / f"{place.commit:020d}.json").exists():
            try:
                yield from self._rows_of(place)
            except FileNotFoundError:
                self._tell_gone()
            place = Place(place.commit + 1)
            yield place, None

    def _rows_of(self, start: Place) -> Iterator[tuple[Place, Finding]]:
        """What one commit added for it, from a row on. FileNotFoundError: it was deleted since."""
        columns = None if self._of_open else [*COLUMNS, "occurred_at"]
        rows = (
            (row, written_ms)
            for path, written_ms in delta_log.commit_of(self._folder, start.commit).appended_at
            for batch in pq.ParquetFile(self._folder / unquote(path)).iter_batches(_ROWS, columns=columns, use_threads=False)
            for row in batch.to_pylist()
        )
        for number, (row, written_ms) in enumerate(rows, 1):
            if number <= start.row or (self._of_open and not row["alarm"]):
                continue
            one, until_ms = Finding.of(row), self._progress.told_until_ms
            if wanted_by(self._receiver, one) and (not until_ms or one.occurred_ms > until_ms):
                place, is_old = Place(start.commit, number), one.occurred_ms < written_ms - self._max_age_ms
                self.old += is_old and place > self._counted
                if not is_old:
                    yield place, one

    def _tell_gone(self) -> None:
        """Once. `rebalance maintain` keeps what was not sent, unless the note of progress was not there."""
        if not self._is_gone:
            self._is_gone = True
            self._warn(f"alerts: findings for {self._receiver.name} were deleted from the table before they were sent")

    def _note(self, progress: Progress) -> None:
        self._progress, self._is_noted, self._noted_s = progress, True, time.monotonic()
        write_whole(self._file, msgspec.json.encode(progress))


def past_findings(lakehouse: Path, since: timedelta) -> list[Finding]:
    """Findings up to so long before the newest one, in order of time. LakehouseError: there is no table of them."""
    try:
        rows = table_rows(lakehouse / FINDINGS, [*COLUMNS, "occurred_at"])
    except TableNotFoundError:
        raise LakehouseError(f"no findings at {lakehouse}: no lakehouse of `rebalance run`") from None
    found = sorted(map(Finding.of, rows), key=lambda finding: (finding.occurred_ms, finding.key))
    first_ms = found[-1].occurred_ms - milliseconds(since) if found else 0
    return with_brokers(lakehouse, [finding for finding in found if finding.occurred_ms >= first_ms])
