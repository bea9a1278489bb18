"""Finds where one log ends and the next begins in a file that several logs were written into, one after the other.

`cat broker-1.log broker-2.log > all.log` and `grep -h GroupCoordinator *.log` make such files. Time falls back where the next log begins.
Each section is then read as a log of its own, because a log is read in the order of its time.
"""

from __future__ import annotations

from collections import deque
from datetime import datetime, timezone
from statistics import median_low
from typing import Final

from jobs.common.times import zone_named
from jobs.logs.survey.block_times import WHOLE, WITNESSES, Section, each_time, has_own_times, seconds_of
from jobs.logs.survey.ordered_times import OrderedTimes, ordered_times

FALL_BACK_SECONDS: Final = 60
"""Time has to fall back by more than this: lines of several brokers that were merged as they came are only seconds out of order."""

MOST_SECTIONS: Final = 1_000
_LEAST_WITNESSES: Final = 4  # at the ends of the file
_LEAST_BETWEEN: Final = 2  # a single line may be damaged
_LEAST_FALLS: Final = 8  # of a file that lists its newest line first,
_LEAST_RETURN: Final = 1  # seconds
_MOST_RETURNS: Final = 32  # more have other reasons
_FALLS_TO_RISES: Final = 9  # and how many for each line whose time is later than that of the line before


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
