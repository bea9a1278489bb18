"""The times of blocks of lines, and of ranges of a plain log, at which processes look side by side.

Most blocks are in order, and are told so without a look at each line. The driver looks at none of the lines of a range.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from jobs.logs.bytes import Fingerprint, LogBytes, PlainBytes
from jobs.logs.survey.block_times import TIME, WITNESSES, Block, Part, blocks_of, each_time, seconds_of

_TIME_LENGTH: Final = 19
_MINUTE: Final = re.compile(rb"\[\d{4}-\d\d-\d\d[ T]\d\d:\d\d:")
_MINUTE_LENGTH: Final = 18
_SECOND: Final = np.array([18, 19])  # of a line
_TENS: Final = np.array([10, 1])
_NEWLINE: Final = ord("\n")
_LOOK_BYTES: Final = 64 << 10


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


def ranges_of(path: Path, fingerprint: Fingerprint, log: PlainBytes, line_end: int, size: int, *, own_times: bool) -> list[TimeRange]:
    """A log from a line end on, in ranges of about `size` bytes."""
    last = log.length()
    ends = [line_end]
    while ends[-1] + 1 < last:
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
