"""Finds where one log ends and the next begins in a file that several logs were written into, one after the other.

`cat broker-1.log broker-2.log > all.log` and `grep -h GroupCoordinator *.log` make such files. Time falls back where the next log begins.
Each section is then read as a log of its own, because a log is read in the order of its time.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterable, Iterator
from datetime import datetime
from statistics import median_low
from typing import Final, NamedTuple
from zoneinfo import ZoneInfo

from jobs.logs.bytes import LogBytes

FALL_BACK_SECONDS: Final = 60
"""Time has to fall back by more than this: lines of several brokers that were merged as they came are only seconds out of order."""

MOST_SECTIONS: Final = 1_000
_WITNESSES: Final = 8  # lines before and after that must agree, so that no damaged time makes a section
_LEAST_WITNESSES: Final = 4  # at the ends of the file
_LEAST_FALLS: Final = 8  # of a file that lists its newest line first,
_FALLS_TO_RISES: Final = 9  # and how many for each line whose time is later than that of the line before
_BLOCK_BYTES: Final = 256 << 10  # a processor keeps it at hand while it is looked at three times
_LONGEST_LINE: Final = 64 << 20
_OWN_TIME: Final = re.compile(rb"\n[^\n]{0,200}?\[(\d{4}-\d\d-\d\d[ T]\d\d:\d\d:\d\d)")
_ANY_TIME: Final = re.compile(rb"\n[^\n]{0,200}?(\d{4}-\d\d-\d\d[ T]\d\d:\d\d:\d\d)")
"""In a log without times in brackets. Else that of the broker counts: the time of a collector may be of another zone."""
TIME: Final = re.compile(rb"\d{4}-\d\d-\d\d[ T]\d\d:\d\d:\d\d")
_TIME_LENGTH: Final = 19
_MINUTE: Final = re.compile(rb"\[\d{4}-\d\d-\d\d[ T]\d\d:\d\d:")
_MINUTE_LENGTH: Final = 18

Block = tuple[int, bytes]


class Section(NamedTuple):
    """Where a log begins in its file."""

    offset: int  # bytes, uncompressed
    line: int  # lines before it


WHOLE: Final = (Section(0, 0),)


def sections(blocks: Iterable[Block], zone: str) -> tuple[Section, ...]:
    """The logs in a file, in the order of the file; a single one in most. Empty if the file lists its newest line first.

    `blocks`: those of the file. `zone`: that of times without an offset.
    """
    search = _Search(ZoneInfo(zone))
    for offset, block in blocks:
        search.take(offset, block)
        if len(search.found) > MOST_SECTIONS:
            break
    found = search.end()
    return () if search.is_reversed else (*WHOLE, *found[: MOST_SECTIONS - 1])


class Part(LogBytes):
    """The bytes of a file up to where a section ends."""

    def __init__(self, log: LogBytes, end: int) -> None:
        super().__init__()
        self.signature = log.signature
        self._log = log
        self._left = end

    def head(self) -> bytes:
        """That of the file, by which the file is recognised."""
        return self._log.head()

    def read(self, size: int) -> bytes:
        """The next bytes of the section."""
        data = self._log.read(min(size, self._left)) if self._left else b""
        self._left -= len(data)
        return data

    def skip(self, size: int) -> bool:
        """Moves on within the section."""
        if size > self._left or not self._log.skip(size):
            return False
        self._left -= size
        return True

    def file_position(self) -> int:
        """That of the file."""
        return self._log.file_position()

    def close(self) -> None:
        """Closes the file."""
        self._log.close()


class _Search:
    """Follows the times of a file's lines."""

    def __init__(self, zone: ZoneInfo) -> None:
        self.found: list[Section] = []
        self._zone = zone
        self._time = _OWN_TIME
        self._lines = 0  # before the block
        self._last = b""  # the time of the last line
        self._recent: deque[float] = deque(maxlen=_WITNESSES)
        self._start: Section | None = None  # of what may be a section
        self._later: list[float] = []  # times since then, all before `_limit`
        self._limit = 0.0
        self._rises = self._falls = 0  # of the time from one line to the next

    def take(self, offset: int, block: bytes) -> None:
        """Looks at whole lines that begin at an offset; `block` has the line end before them too."""
        if not self._lines and _OWN_TIME.search(block) is None:
            self._time = _ANY_TIME
        times = (_times_of_a_minute(block) or _first_times(block) if self._time is _OWN_TIME else None) or self._time.findall(block)
        if times:
            if self._start is None and times[0] >= self._last and times == sorted(times):
                self._recent.extend(filter(None, map(_seconds, times[-_WITNESSES:])))
                self._rises += times[0] < times[-1]
            else:
                self._look_closely(offset, block)
            self._last = times[-1]
        self._lines += block.count(b"\n") - 1

    def _look_closely(self, offset: int, block: bytes) -> None:
        line, counted, before = self._lines, 0, _seconds(self._last) or 0.0
        for match in self._time.finditer(block):
            at = _seconds(match[1])
            if at is None:
                continue
            self._rises += at > before
            self._falls += at < before
            before = at
            if self._start is None:
                if len(self._recent) < _LEAST_WITNESSES or at >= median_low(self._recent) - FALL_BACK_SECONDS or self._repeats(at):
                    self._recent.append(at)
                    continue
                line += block.count(b"\n", counted, match.start())
                counted = match.start()
                self._start = Section(offset + match.start() + 1, line)
                self._later, self._limit = [], median_low(self._recent) - FALL_BACK_SECONDS
            if at >= self._limit:  # the times between were damaged
                self._start = None
                self._recent.append(at)
                continue
            self._later.append(at)
            if len(self._later) == _WITNESSES:
                self._begin()

    def _begin(self) -> None:
        assert self._start is not None
        self.found.append(self._start)
        self._recent = deque(self._later, maxlen=_WITNESSES)
        self._start = None

    def end(self) -> list[Section]:
        """All sections but the first."""
        if self._start is not None and len(self._later) >= _LEAST_WITNESSES:
            self._begin()
        return self.found

    @property
    def is_reversed(self) -> bool:
        """Whether nearly every change of time is one to an earlier time, as in an export that lists the newest line first."""
        return self._falls >= max(_LEAST_FALLS, _FALLS_TO_RISES * self._rises)

    def _repeats(self, at: float) -> bool:
        """Whether it is in the hour that a daylight-saving change repeats: clocks fall back there by themselves."""
        local = datetime.fromtimestamp(at, ZoneInfo("UTC")).replace(tzinfo=self._zone)
        return local.utcoffset() != local.replace(fold=1).utcoffset()


def _times_of_a_minute(block: bytes) -> list[bytes] | None:
    """Some times of a block in order, the first and the last ones among them, if all its lines begin with times of one minute. Else None.

    Most blocks of a large log are such, and within a minute time cannot fall back far enough.
    """
    lines = block.split(b"\n")[1:-1]
    if len({line[:_MINUTE_LENGTH] for line in lines}) != 1 or _MINUTE.match(lines[0]) is None:
        return None
    first, *last = (line[1 : 1 + _TIME_LENGTH] for line in [lines[0], *lines[-_WITNESSES:]])
    times = [first, *sorted(last)]
    return times if first <= times[1] and all(map(TIME.fullmatch, times)) else None


def _first_times(block: bytes) -> list[bytes] | None:
    """The times with which all lines of a block begin, if they are in order. Else None: then a pattern has to find them."""
    lines = block.split(b"\n[")
    if len(lines) != block.count(b"\n"):
        return None
    times = [line[:_TIME_LENGTH] for line in lines[1:]]
    in_order = TIME.fullmatch(times[0]) and TIME.fullmatch(times[-1]) and times == sorted(times)
    return times if in_order else None


def blocks_of(log: LogBytes) -> Iterator[Block]:
    """Whole lines with the offset of the line end before them, which each block has too; -1 is that of the first."""
    offset, rest = -1, b"\n"
    while data := log.read(_BLOCK_BYTES):
        text = rest + data
        end = text.rfind(b"\n")
        if end > 0:
            yield offset, text[: end + 1]
            offset += end
            text = text[end:]
        elif len(text) > _LONGEST_LINE:
            return  # no log
        rest = text
    if len(rest) > 1:
        yield offset, rest + b"\n"


def _seconds(time: bytes) -> float | None:
    try:
        return datetime.fromisoformat(f"{time.decode()}+00:00").timestamp()
    except ValueError:
        return None
