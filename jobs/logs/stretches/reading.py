"""Stretches of plain logs: several processes read a log at the same time, and the rows are those of one read in order.

What becomes of a line depends on the lines before it, but on little of them: a Mark. So the mark at which a stretch begins is foretold
from the few lines before it. When all stretches of a log are read, each must have ended with the mark that the next one began with. Else
damage at that very place decides how reading goes on, and the log is read in order instead.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from itertools import chain, pairwise
from operator import attrgetter
from typing import Any, Final

import msgspec
import pyarrow as pa
from msgspec.structs import replace

from jobs.common.stores import Place
from jobs.logs.broker_judge import BrokerJudge
from jobs.logs.bytes import Fingerprint, LogBytes, PlainBytes
from jobs.logs.fetches.rows import Fetches, fetch_rows
from jobs.logs.files import LogFile
from jobs.logs.heartbeats.beat_numbers import BeatNumbers
from jobs.logs.jumps import LogEnd
from jobs.logs.mark import KeptLines, Mark
from jobs.logs.reader import FOREVER, LogReader
from jobs.logs.slice_rows import ARROW_SCHEMA, line_rows, shared, write_rows
from jobs.logs.slices import SlicerSettings
from jobs.logs.survey.block_times import Part
from jobs.logs.times import NEVER, LocalTimes

_COUNT_BYTES: Final = 4 << 20
_ROW_GROUP: Final = 1 << 30  # rows: a share has one
_HELD_BYTES: Final = 256 << 20  # of texts, before they are written


class LogPlace(msgspec.Struct, frozen=True):
    """A plain log of one broker, and how its lines are read."""

    file: LogFile
    fingerprint: Fingerprint
    zone: str
    settings: SlicerSettings

    def open(self) -> LogBytes:
        """The log, if it lies there still."""
        return self.fingerprint.opened(self.file.path) or LogBytes()

    def reader(self, mark: Mark, end: int | None = None) -> LogReader:
        """A reader from a mark on, which waits before what the log leaves open. `end`: the log ends here, bytes."""
        opened = self.open if end is None else lambda: Part(self.open(), end)
        settings, times = self.settings, LocalTimes(self.zone)
        judge = partial(BrokerJudge, unwrap=settings.unwrap)
        tolerance_ms, limits = settings.tolerance_ms, settings.limits
        return LogReader(opened, times, mark, judge=judge, final=False, tolerance_ms=tolerance_ms, limits=limits, may_step=True)


class Stretch(msgspec.Struct, frozen=True):
    """Whole lines of a log: those from `mark.offset` to `end`, bytes. Positions count from its first line."""

    log: LogPlace
    mark: Mark
    end: int
    part: Place  # the file for its rows
    shares: int  # of these rows


class StretchRead(msgspec.Struct):
    """What was read of a stretch so far. `mark`: behind the last line of that."""

    mark: Mark
    lines: int = 0
    kept: int = 0  # of them, lines in its rows
    seconds: list[int] = []  # of LogReader

    def rows(self, stretch: Stretch) -> Iterator[pa.Table]:
        """The rows in their shares, so many lines at a time as memory has room for.

        What follows the stretch may decide about its last lines: they are read as those of the whole log.
        """
        log, end = stretch.log, stretch.end
        yield from self._read(stretch, log.reader(self.mark, end), FOREVER)
        if self.mark.offset < end and (left := _count_lines(log, self.mark.offset, end)):
            yield from self._read(stretch, log.reader(self.mark), left)

    def _read(self, stretch: Stretch, reader: LogReader, left: int) -> Iterator[pa.Table]:
        log, fetches = stretch.log, Fetches()
        kept = KeptLines(beats=BeatNumbers(), fetches=fetches)
        try:
            while lines := reader.read(kept, max_lines=left, max_bytes=_HELD_BYTES, log_end=LogEnd.HOLD, fold=True):
                left -= lines
                self.lines += lines
                self.kept += len(kept) + kept.folded
                names = log.file.cluster, log.file.broker, log.file.origin
                whose = (pa.repeat(pa.scalar(name), len(kept)) for name in names)
                numbers = fetch_rows(fetches.of(reader), *names, stretch.shares)
                for rows, own in zip(shared(kept, line_rows(kept, *whose), stretch.shares), numbers, strict=True):
                    yield pa.concat_tables([rows, pa.Table.from_pylist(own, schema=ARROW_SCHEMA)])
                fetches = Fetches()
                kept = KeptLines(beats=BeatNumbers(), fetches=fetches)
        finally:
            self.mark = reader.mark
            self.seconds += reader.seconds
            reader.close()


def read_stretches(stretches: Sequence[Stretch]) -> list[StretchRead | None]:
    """Reads the stretches of a task."""
    return [read_stretch(stretch) for stretch in stretches]


def read_stretch(stretch: Stretch) -> StretchRead | None:
    """Reads a stretch and writes its rows to its part. None: the log is not there, or cannot be read up to the end of the stretch."""
    read = StretchRead(stretch.mark)
    write_rows(read.rows(stretch), stretch.part, _ROW_GROUP)
    return read if read.mark.offset == stretch.end else None


def _count_lines(log: LogPlace, start: int, end: int) -> int | None:
    """The lines that end between two places; None if the log is shorter."""
    with log.open() as source:
        if not isinstance(source, PlainBytes):
            return None
        lines = 0
        while start < end:
            block = source.at(start, min(_COUNT_BYTES, end - start))
            if not block:
                return None
            lines += block.count(b"\n")
            start += len(block)
    return lines


def foretold(log: LogPlace, base: Mark, before: int, offset: int) -> Mark | None:
    """The mark at `offset`, by the lines since `before`, both behind a line end. `base`: a mark of the same log further up."""
    lines = _count_lines(log, before, offset)
    last_ms = base.last_ms if before == base.offset else NEVER
    reader = log.reader(replace(base, offset=before, line=0, first_line=0, last_ms=last_ms, inside_pieces=""))
    try:
        if lines is None or reader.read(KeptLines(), max_lines=lines, log_end=LogEnd.HOLD) != lines:
            return None
    finally:
        reader.close()
    decisive: dict[str, Any] = dict(zip(_DECISIVE, _decisive(reader.mark), strict=True))
    return replace(base, line=0, first_line=0, **decisive)


class LogRead(msgspec.Struct, frozen=True):
    """Successive stretches of a log, all of them read. `mark`: behind the last one. `start`: the lines before the first."""

    start: int
    mark: Mark
    stretches: Sequence[tuple[Stretch, StretchRead]]

    @property
    def kept(self) -> int:
        """Lines in the rows of the parts."""
        return sum(read.kept for _, read in self.stretches)

    @property
    def seconds(self) -> Iterator[int]:
        """Seconds (UTC epoch) that have lines."""
        return chain.from_iterable(read.seconds for _, read in self.stretches)

    def places(self) -> Iterator[tuple[int, Stretch, StretchRead]]:
        """Each stretch with the number of lines before it."""
        line = self.start
        for stretch, read in self.stretches:
            yield line, stretch, read
            line += read.lines


def log_read(start: Mark, stretches: Sequence[Stretch], reads: Sequence[StretchRead | None]) -> LogRead | None:
    """A log whose successive stretches from `start` on were read, as if in order. None: that is not certain, or one was not read.

    Every stretch counted requests and other lines from the same numbers on. These decide what a line without a mark of its kind is: only by
    which of the two is more, and by whether other loggers write into the log at all. So neither may change within the stretches.
    """
    found = [read for read in reads if read is not None]
    marks = [read.mark for read in found]
    if len(marks) != len(stretches):
        return None
    if any(_decisive(end) != _decisive(stretch.mark) for end, (_, stretch) in zip(marks, pairwise(stretches), strict=False)):
        return None
    kinds = ("requests", "others", "other_loggers")
    requests, others, loggers = (sum(getattr(mark, name) - getattr(start, name) for mark in marks) for name in kinds)
    ahead = start.requests - start.others
    if not (ahead > others or -ahead >= requests) or (loggers and not start.other_loggers):
        return None
    mark = replace(
        marks[-1],
        line=start.line + sum(read.lines for read in found),
        first_line=start.first_line,
        requests=start.requests + requests,
        others=start.others + others,
        other_loggers=start.other_loggers + loggers,
        damage_told=start.damage_told,
    )
    return LogRead(start.line, mark, list(zip(stretches, found, strict=True)))


_DECISIVE: Final = ("offset", "newest_ms", "last_ms", "passed", "inside_line", "inside_pieces", "after_other", "levels")
"""What of a mark decides how reading goes on, apart from the numbers of lines by kind."""
_decisive: Final = attrgetter(*_DECISIVE)
