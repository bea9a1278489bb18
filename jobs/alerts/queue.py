"""What a receiver has not got yet: rows of `findings`, and those about open rebalances, in the order in which track wrote them.

The table is the queue, read file by file, without Spark: track writes one file in each micro-batch, and a second one for rows with
AT_END. A place in it is a micro-batch and a row of that. `rebalance maintain` leaves the files alone that a receiver has not got
(jobs/lakehouse/followers.py).

The table of incidents is written as a whole, so its rows have no place: those that need not be sent any more are known by what they are.
Only those are sent of which no finding tells: a crash that the broker's own log alone shows. It waits until what it did to groups is
known: what findings tell of it by then is sent instead, so no crash is told twice.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import timedelta
from itertools import groupby, islice, takewhile
from typing import Any, Final, TypeVar
from urllib.parse import unquote

import msgspec
import pyarrow.parquet as pq

from coordinator_model.diagnosis.incidents import OVER_MS
from jobs.alerts.finding import COLUMNS, Finding, of_incidents, wanted_by, with_incidents
from jobs.answers.duckdb_views import QuestionReader
from jobs.common.alert_settings import ReceiverSettings
from jobs.common.errors import LakehouseError
from jobs.common.files import write_whole
from jobs.common.stores import Place, readable
from jobs.common.times import milliseconds
from jobs.lakehouse import opening
from jobs.lakehouse.added_files import LAST
from jobs.lakehouse.delta_files import data_files
from jobs.lakehouse.followers import NewFile, files_after
from jobs.lakehouse.reader import table_rows
from schemas.names import REBALANCES_PROVISIONAL, TRACK

_ROWS: Final = 1_000
"""Rows of a file that are in memory at a time."""
_KEPT: Final = 10_000  # keys of what was told
_HELD_MS: Final = OVER_MS + 30_000  # groups tell of a broker's trouble once it is over for them, and the pipeline is some seconds behind
_NOTE_SECONDS: Final = 30.0  # between two notes of progress without a message


_Note = TypeVar("_Note")


@dataclass(frozen=True, order=True)
class Position:
    """All rows before row `row` of a micro-batch of track."""

    batch: int
    row: int = 0


@dataclass(frozen=True)
class Progress:
    """How far a receiver is. It stands in a file, so that the next process goes on there."""

    table: str  # id of the Delta table: another one begins with its first micro-batch
    done: Position  # what is before it was sent, or need not be
    sending: Position | None = None  # the end of the message that may have been posted already
    newest_ms: int = 0  # newest time of a finding before `done`
    told_until_ms: int = 0  # findings of that time and before it were told out of an earlier table
    at_end: list[str] = field(default_factory=list)  # keys of those that were told out of rows with AT_END, which come again


class Queue:
    """What waits in `findings` or `rebalances_provisional` for one receiver. The table may not exist yet, and another may replace it."""

    def __init__(self, table: Place, notes: Place, receiver: ReceiverSettings, max_age_ms: int, warn: Callable[[str], None]) -> None:
        self.waiting = 0  # findings
        self.old = 0  # those that are left out because they were too old when they were found
        self._folder = table
        self._file = notes / f"{receiver.name}.json"
        self._receiver, self._max_age_ms, self._warn = receiver, max_age_ms, warn
        self._of_open = table.name == REBALANCES_PROVISIONAL
        self._id = ""  # of the table; empty while there is none
        self._progress, self._is_noted = Progress("", Position(0)), False  # a table that is made from now on is new as a whole
        self._counted = Position(0)  # what is before it was counted
        self._is_gone, self._noted_s = False, 0.0

    def start(self) -> None:
        """Notes where to begin. LakehouseError: the note of an earlier process is damaged."""
        if noted := self._noted(Progress, "finding"):
            self._progress, self._is_noted = noted, True
        if not self._open() and not self._is_noted:
            self._note(self._progress)

    def _noted(self, kind: type[_Note], what: str) -> _Note | None:
        """What an earlier process noted; None: there was none. LakehouseError: the note is damaged."""
        try:
            return msgspec.json.decode(self._file.read_bytes(), type=kind)
        except FileNotFoundError:
            return None
        except (OSError, msgspec.MsgspecError):
            raise LakehouseError(f"{self._file} is damaged: delete it; alerts then begin with the next {what}") from None

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

    def take(self, most: int) -> list[tuple[Position, Finding]]:
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

    def done(self, batch: list[tuple[Position, Finding]]) -> None:
        """The findings were sent, or are given up."""
        self.waiting = max(self.waiting - len(batch), 0)
        newest_ms = max([self._progress.newest_ms, *(finding.occurred_ms for _, finding in batch)])
        at_end = [*self._progress.at_end, *(finding.key for _, finding in batch if finding.at_end)][-_KEPT:]
        self._note(replace(self._progress, done=batch[-1][0], sending=None, newest_ms=newest_ms, at_end=at_end))

    def _open(self) -> bool:
        """Goes to the right place in the table if it is another one than before. False: there is no table yet."""
        found = opening.version_of(self._folder)
        if found is not None and found[0] != self._id:
            self._begin(found[0])
            self._id = found[0]
        return bool(self._id)

    def _begin(self, table_id: str) -> None:
        """Where nobody sent before, at the end. Where there was no table, or another one (`rebalance replay --swap`), at the beginning.

        Findings of times that were told out of the other one are left out.
        """
        newest_ms = self._progress.newest_ms
        if not self._is_noted:
            last = opening.opened(self._folder).transaction_version(TRACK)
            self._note(Progress(table_id, Position(0 if last is None else last + 1)))
        elif self._progress.table != table_id:
            self._note(Progress(table_id, Position(0), newest_ms=newest_ms, told_until_ms=newest_ms))
        self.waiting, self._counted = 0, self._progress.done
        merged = [file.path for file in data_files(opening.opened(self._folder)) if file.batch is None]
        batches = (row["batch_id"] for row in table_rows(self._folder, ["batch_id"], files=merged)) if merged else ()
        if max(batches, default=-1) >= self._progress.done.batch:
            self._tell_gone()

    def _rows(self, start: Position) -> Iterator[tuple[Position, Finding | None]]:
        """What came for this receiver, from a place on, each with the place behind it. None: the end of a micro-batch."""
        with opening.kept(self._folder).current() as table:
            files = files_after(table, {TRACK: [start.batch - 1, LAST]}, (TRACK,))
        for batch, own in groupby(files, lambda new: new.file.batch_id):
            try:
                yield from self._rows_of(list(own), start.row if batch == start.batch else 0)
            except FileNotFoundError:
                self._tell_gone()
            yield Position(batch + 1), None

    def _rows_of(self, files: Sequence[NewFile], first: int) -> Iterator[tuple[Position, Finding]]:
        """What one micro-batch added for it, from a row on. FileNotFoundError: it was deleted since."""
        columns, told = None if self._of_open else [*COLUMNS, "occurred_at"], set(self._progress.at_end)
        for number, (new, row) in enumerate(((file, row) for file in files for row in self._read(file, columns)), 1):
            if number <= first or (self._of_open and not row["alarm"]):
                continue
            one, until_ms = Finding.of(row), self._progress.told_until_ms
            is_new = (not until_ms or one.occurred_ms > until_ms) and (not told or one.key not in told)
            if is_new and wanted_by(self._receiver, one):
                place, is_old = Position(new.file.batch_id, number), one.occurred_ms < new.written_ms - self._max_age_ms
                self.old += is_old and place > self._counted
                if not is_old:
                    yield place, one

    def _read(self, new: NewFile, columns: list[str] | None) -> Iterator[dict[str, Any]]:
        file = pq.ParquetFile(readable(self._folder / unquote(new.path)))
        return (row for batch in file.iter_batches(_ROWS, columns=columns, use_threads=False) for row in batch.to_pylist())

    def _tell_gone(self) -> None:
        """Once. `rebalance maintain` keeps what was not sent, unless the note of progress was not there."""
        if not self._is_gone:
            self._is_gone = True
            self._warn(f"alerts: findings for {self._receiver.name} were deleted from the table before they were sent")

    def _note(self, progress: Progress) -> None:
        self._progress, self._is_noted, self._noted_s = progress, True, time.monotonic()
        write_whole(self._file, msgspec.json.encode(progress))


class IncidentQueue(Queue):
    """What waits in `incidents` for one receiver."""

    _done: Mapping[str, None] = {}  # by key: what was sent, or need not be
    _found: Sequence[Finding] = ()  # of the table at the last look: what is to be sent, now or later
    _found_ms = 0  # when that was written
    _left: Sequence[Finding] = ()  # what is to be sent now
    _log: tuple[str, int] | None = None  # of the table at the last look

    def start(self) -> None:
        """Notes what is there, where nobody sent before. LakehouseError: the note of an earlier process is damaged."""
        keys = self._noted(list[str], "incident")
        self._done = dict.fromkeys(keys or ())
        if keys is None:
            self._tell(of_incidents(self._folder.parent))

    def look(self) -> None:
        """Counts what came."""
        log = opening.version_of(self._folder)
        if log is not None and log != self._log:
            self._found = [one for one in of_incidents(self._folder.parent) if wanted_by(self._receiver, one)]
            self._found_ms = max((file.written_ms for file in data_files(opening.opened(self._folder))), default=0)
            self._log = log
        until_ms = time.time_ns() // 1_000_000 - _HELD_MS
        self._left = [one for one in self._found if one.key not in self._done and min(one.occurred_ms, self._found_ms) <= until_ms]
        old = [one for one in self._left if one.occurred_ms < self._found_ms - self._max_age_ms]
        self.old += len(old)
        self._tell(old)

    def take(self, most: int) -> list[tuple[Position, Finding]]:
        """What the next message tells."""
        return [(Position(0), one) for one in self._left[:most]]

    def done(self, batch: list[tuple[Position, Finding]]) -> None:
        """They were sent, or are given up."""
        self._tell([one for _, one in batch])

    def pass_over(self, *, at_once: bool = False) -> None:
        """What is not wanted needs no note."""

    def _tell(self, done: Sequence[Finding]) -> None:
        self._done = dict.fromkeys([*self._done, *(one.key for one in done)][-_KEPT:])
        self._left = [one for one in self._left if one.key not in self._done]
        self.waiting = len(self._left)
        if done or not self._file.exists():
            write_whole(self._file, msgspec.json.encode([*self._done]))


def past_findings(lakehouse: Place, since: timedelta) -> list[Finding]:
    """Findings up to so long before the newest one, in order of time. LakehouseError: there is no table of them."""
    try:
        rows = QuestionReader(lakehouse).ask("SELECT * FROM findings_with_broker", {}).by_name()
    except LakehouseError:
        raise LakehouseError(f"no findings at {lakehouse}: no lakehouse of `rebalance run`") from None
    found = sorted(map(Finding.of, rows), key=lambda finding: (finding.occurred_ms, finding.key))
    first_ms = found[-1].occurred_ms - milliseconds(since) if found else 0
    return with_incidents(lakehouse, [finding for finding in found if finding.occurred_ms >= first_ms])
