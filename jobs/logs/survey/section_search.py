"""Finds where one log ends and the next begins in a file that several logs were written into, one after the other.

`cat broker-1.log broker-2.log > all.log` and `grep -h GroupCoordinator *.log` make such files. Time falls back where the next log begins.
Each section is then read as a log of its own, because a log is read in the order of its time.

Most blocks of lines are in order, and are told so without a look at each line. At ranges of a plain log processes look side by side: the
driver looks at none of the lines of a range in order.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime, timezone
from itertools import pairwise
from pathlib import Path
from statistics import median_low
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from jobs.common.times import zone_named
from jobs.logs.bytes import Fingerprint, LogBytes, PlainBytes
from jobs.logs.survey.block_times import TIME, WHOLE, WITNESSES, Block, Part, Section, blocks_of, each_time, has_own_times, seconds_of

FALL_BACK_SECONDS: Final = 60
"""Time has to fall back by more than this: lines of several brokers that were merged as they came are only seconds out of order."""

MOST_SECTIONS: Final = 1_000
_LEAST_WITNESSES: Final = 4  # at the ends of the file
_LEAST_BETWEEN: Final = 2  # a single line may be damaged
_LEAST_FALLS: Final = 8  # of a file that lists its newest line first,
_LEAST_RETURN: Final = 1  # seconds
_MOST_RETURNS: Final = 32  # more have other reasons
_FALLS_TO_RISES: Final = 9  # and how many for each line whose time is later than that of the line before

_TIME_LENGTH: Final = 19
_MINUTE: Final = re.compile(rb"\[\d{4}-\d\d-\d\d[ T]\d\d:\d\d:")
_MINUTE_LENGTH: Final = 18
_SECOND: Final = np.array([18, 19])  # of a line
_TENS: Final = np.array([10, 1])
_NEWLINE: Final = ord("\n")
_LOOK_BYTES: Final = 64 << 10


class SectionSearch:
    """Follows the times of a file's lines. `zone`: that of times without an offset."""

    def __init__(self, zone: str) -> None:
        self.own_times = True  # see has_own_times; decided by the first block
        self._found: list[Section] = []
        self._zone = zone_named(zone)
        self.lines = 0  # so far
        self._last = b""  # the time of the last line
        self._recent: deque[float] = deque(maxlen=WITNESSES)
        self._start: Section | None = None  # of what may be a section
        self._later: list[float] = []  # times since then, all before `_limit`
        self._limit = 0.0
        self._rises = self._falls = 0  # of the time from one line to the next
        self.returns: list[int] = []  # bytes: where the time may go back as the clock was set back
        self._two: tuple[float, ...] = (0.0, 0.0)  # the times of the last two lines
        self._return: tuple[int, float] | None = None  # what may be such a place, if the time of the next line is before this one

    @property
    def has_ended(self) -> bool:
        """Whether so many sections were found that the rest of the file is not looked at."""
        return len(self._found) > MOST_SECTIONS

    def take(self, offset: int, block: bytes) -> None:
        """Looks at the next block, which begins at an offset."""
        if not self.lines:
            self.own_times = has_own_times(block)
        if self.take_ordered(ordered_times([(offset, block)], own=self.own_times)):
            return
        self._look_closely(offset, block)
        self.lines += block.count(b"\n") - 1  # a block begins with the line end before it

    def take_ordered(self, ordered: OrderedTimes | None) -> bool:
        """Takes the next lines at once; False if they need a look at each block."""
        if ordered is None:
            return False
        if ordered.first:
            if self._start is not None or self._return is not None or ordered.first < self._last:
                return False
            self._recent.extend(ordered.recent)
            self._rises += ordered.rises
            self._last = ordered.last
            self._two = (*self._two, *ordered.recent)[-2:]
        self.lines += ordered.lines
        return True

    def _look_closely(self, offset: int, block: bytes) -> None:
        line, counted, before = self.lines, 0, seconds_of(self._last) or 0.0
        for match in each_time(block, own=self.own_times):
            self._last = match[1]
            at = seconds_of(self._last)
            if at is None:
                continue
            self._rises += at > before
            self._falls += at < before
            before = at
            self._note_return(at, offset + match.start() + 1)
            if self._falls_back(at):
                if self._start is not None:
                    self._begin()
                line += block.count(b"\n", counted, match.start())
                counted = match.start()
                self._start = Section(offset + match.start() + 1, line)
                self._later, self._limit = [], median_low(self._recent) - FALL_BACK_SECONDS
            if self._start is None or at >= self._limit:  # in the latter case the times between were damaged
                self._start = None
                self._recent.append(at)
                continue
            self._later.append(at)
            if len(self._later) == WITNESSES:
                self._begin()

    def _falls_back(self, at: float) -> bool:
        """Whether another log may begin with this time. Two lines are one between two others if the time falls back behind them, too."""
        before, least = (self._recent, _LEAST_WITNESSES) if self._start is None else (self._later, _LEAST_BETWEEN)
        return len(before) >= least and at < median_low(before) - FALL_BACK_SECONDS and not self._repeats(at)

    def _note_return(self, at: float, place: int) -> None:
        """Looks whether the time goes back at a line, and stays there."""
        if self._return is not None and at < self._return[1]:
            self.returns.append(self._return[0])
        limit, self._return = min(self._two) - _LEAST_RETURN, None
        if at < limit and len(self.returns) < _MOST_RETURNS:
            self._return = place, limit
        self._two = self._two[1], at

    def leave_out(self, place: int) -> None:
        """Learns that no other log begins there."""
        self._found = [start for start in self._found if start.offset != place]

    def _begin(self) -> None:
        assert self._start is not None
        self._found.append(self._start)
        self._recent = deque(self._later, maxlen=WITNESSES)
        self._start = None

    def end(self) -> tuple[Section, ...]:
        """The logs in the file, in its order; a single one in most. Empty if the file lists its newest line first."""
        if self._start is not None and len(self._later) >= _LEAST_WITNESSES:
            self._begin()
        if self._falls >= max(_LEAST_FALLS, _FALLS_TO_RISES * self._rises):
            return ()
        return (*WHOLE, *self._found[: MOST_SECTIONS - 1])

    def _repeats(self, at: float) -> bool:
        """Whether it is in the hour that a daylight-saving change repeats: clocks fall back there by themselves."""
        local = datetime.fromtimestamp(at, timezone.utc).replace(tzinfo=self._zone)
        return local.utcoffset() != local.replace(fold=1).utcoffset()


class OrderedTimes(NamedTuple):
    """Lines whose times do not go back."""

    lines: int = 0
    first: bytes = b""  # time; empty: no line has one
    last: bytes = b""
    recent: tuple[float, ...] = ()  # the last times, at most WITNESSES, as seconds
    rises: int = 0  # blocks that end later than they begin


def ordered_times(blocks: Iterable[Block], *, own: bool) -> OrderedTimes | None:
    """Of blocks that follow each other; None if a time goes back."""
    lines, first, last, rises = 0, b"", b"", 0
    recent: deque[float] = deque(maxlen=WITNESSES)
    for _, block in blocks:
        starts = np.flatnonzero(np.frombuffer(block, np.uint8) == _NEWLINE)[:-1] + 1
        times = _times_of(block, starts, own=own)
        if times:
            if times[0] < last or times != sorted(times):
                return None
            first, last = first or times[0], times[-1]
            rises += times[0] < last
            recent.extend(filter(None, map(seconds_of, times[-WITNESSES:])))
        lines += len(starts)
    return OrderedTimes(lines, first, last, tuple(recent), rises)


def _times_of(block: bytes, starts: npt.NDArray[np.int64], *, own: bool) -> list[bytes]:
    """The times of a block; of a block in order perhaps only some, the first and the last ones among them."""
    return (_times_of_a_minute(block, starts) if own else None) or [match[1] for match in each_time(block, own=own)]


def _times_of_a_minute(block: bytes, starts: npt.NDArray[np.int64]) -> list[bytes] | None:
    """Some times of a block in order, the first and the last ones among them, if all its lines begin with times of one minute. Else None.

    Most blocks of a large log are such.
    """
    if _MINUTE.match(block, starts[0]) is None or starts[-1] + _TIME_LENGTH >= len(block):
        return None
    every: npt.NDArray[np.bytes_] = np.ndarray((len(block) - _MINUTE_LENGTH + 1,), f"S{_MINUTE_LENGTH}", block, strides=(1,))
    minutes = every[starts]
    if (minutes != minutes[0]).any():
        return None
    digits = np.frombuffer(block, np.uint8)[starts[:, None] + _SECOND].astype(np.int64) @ _TENS
    if (np.diff(digits) < -1).any():
        return None
    first, *last = (block[start + 1 : start + 1 + _TIME_LENGTH] for start in [starts[0], *starts[-WITNESSES:]])
    times = [first, *sorted(last)]
    return times if first <= times[1] and all(map(TIME.fullmatch, times)) else None


@dataclass(frozen=True)
class TimeRange:
    """Whole lines of a log: those between two line ends, which lie at `start` and `end`. `own_times`: see has_own_times."""

    path: Path
    fingerprint: Fingerprint
    start: int
    end: int
    own_times: bool


def ranges_of(path: Path, fingerprint: Fingerprint, line_end: int, size: int, *, own_times: bool) -> list[TimeRange]:
    """A plain log from a line end on, in ranges of about `size` bytes; none if the log is not there."""
    ends = [line_end]
    with fingerprint.opened(path) or LogBytes() as log:
        while isinstance(log, PlainBytes) and ends[-1] + 1 < (last := log.length()):
            ends.append(_line_end(log, ends[-1] + size, last))
    return [TimeRange(path, fingerprint, start, end, own_times) for start, end in pairwise(ends)]


def ordered_times_of(one: TimeRange) -> OrderedTimes | None:
    """The times of a range; None if one goes back, or the log is not there."""
    times = ordered_times(blocks_within(one), own=one.own_times)
    return times if times is not None and times.lines else None


def blocks_within(one: TimeRange) -> Iterator[Block]:
    """The blocks of a range; none if the log is not there."""
    with one.fingerprint.opened(one.path) or LogBytes() as log:
        if log.skip(one.start + 1):
            yield from blocks_of(Part(log, one.end - one.start), one.start)


def _line_end(log: PlainBytes, position: int, last: int) -> int:
    """The first line end at or after a position; the end of the log if there is none."""
    while position < last:
        found = log.at(position, _LOOK_BYTES).find(b"\n")
        if found >= 0:
            return position + found
        position += _LOOK_BYTES
    return last
