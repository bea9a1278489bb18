"""The times of blocks of lines. Most blocks are in order, and are told so without a look at each line."""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterable
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from jobs.logs.survey.block_times import TIME, WITNESSES, Block, each_time, seconds_of

_TIME_LENGTH: Final = 19
_MINUTE: Final = re.compile(rb"\[\d{4}-\d\d-\d\d[ T]\d\d:\d\d:")
_MINUTE_LENGTH: Final = 18
_SECOND: Final = np.array([18, 19])  # of a line
_TENS: Final = np.array([10, 1])
_NEWLINE: Final = ord("\n")


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
