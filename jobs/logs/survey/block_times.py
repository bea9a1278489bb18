"""The times of a log's lines, taken from blocks of whole lines. Most blocks are in order, and are told so without a look at each line."""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterable, Iterator
from datetime import datetime
from typing import Final, NamedTuple

from jobs.logs.bytes import LogBytes

WITNESSES: Final = 8
"""Lines before and after a place that must agree on the time there, so that no damaged time counts."""

_BLOCK_BYTES: Final = 256 << 10  # a processor keeps it at hand while it is looked at three times
_LONGEST_LINE: Final = 64 << 20
_OWN_TIME: Final = re.compile(rb"\n[^\n]{0,200}?\[(\d{4}-\d\d-\d\d[ T]\d\d:\d\d:\d\d)")
_ANY_TIME: Final = re.compile(rb"\n[^\n]{0,200}?(\d{4}-\d\d-\d\d[ T]\d\d:\d\d:\d\d)")
TIME: Final = re.compile(rb"\d{4}-\d\d-\d\d[ T]\d\d:\d\d:\d\d")
_TIME_LENGTH: Final = 19
_MINUTE: Final = re.compile(rb"\[\d{4}-\d\d-\d\d[ T]\d\d:\d\d:")
_MINUTE_LENGTH: Final = 18

Block = tuple[int, bytes]
"""Whole lines, and the line end before them; where that lies in the log (-1 is that of the first line)."""


class OrderedTimes(NamedTuple):
    """Lines whose times do not go back."""

    lines: int = 0
    first: bytes = b""  # time; empty: no line has one
    last: bytes = b""
    recent: tuple[float, ...] = ()  # the last times, at most WITNESSES, as seconds
    rises: int = 0  # blocks that end later than they begin


def blocks_of(log: LogBytes, line_end: int = -1) -> Iterator[Block]:
    """Whole lines from where a log stands, which is behind the line end at `line_end`."""
    offset, rest = line_end, b"\n"
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


def lines_in(block: bytes) -> int:
    """How many lines a block has."""
    return block.count(b"\n") - 1


def has_own_times(block: bytes) -> bool:
    """Whether times stand in brackets. Only they count then: the time of a collector before them may be of another zone."""
    return _OWN_TIME.search(block) is not None


def each_time(block: bytes, *, own: bool) -> Iterator[re.Match[bytes]]:
    """The times of a block, as group 1 of matches that begin at the line end before their line. `own`: those in brackets."""
    return (_OWN_TIME if own else _ANY_TIME).finditer(block)


def times_of(block: bytes, *, own: bool) -> list[bytes]:
    """The times of a block; of a block in order perhaps only some, the first and the last ones among them."""
    return (_times_of_a_minute(block) or _first_times(block) if own else None) or [match[1] for match in each_time(block, own=own)]


def ordered_times(blocks: Iterable[Block], *, own: bool) -> OrderedTimes | None:
    """Of blocks that follow each other; None if a time goes back."""
    lines, first, last, rises = 0, b"", b"", 0
    recent: deque[float] = deque(maxlen=WITNESSES)
    for _, block in blocks:
        times = times_of(block, own=own)
        if times:
            if times[0] < last or times != sorted(times):
                return None
            first, last = first or times[0], times[-1]
            rises += times[0] < last
            recent.extend(filter(None, map(seconds_of, times[-WITNESSES:])))
        lines += lines_in(block)
    return OrderedTimes(lines, first, last, tuple(recent), rises)


def seconds_of(time: bytes) -> float | None:
    """Seconds since 1970 by a clock of UTC; None if there is no such time."""
    try:
        return datetime.fromisoformat(f"{time.decode()}+00:00").timestamp()
    except ValueError:
        return None


def _times_of_a_minute(block: bytes) -> list[bytes] | None:
    """Some times of a block in order, the first and the last ones among them, if all its lines begin with times of one minute. Else None.

    Most blocks of a large log are such, and within a minute time cannot fall back far enough.
    """
    lines = block.split(b"\n")[1:-1]
    if len({line[:_MINUTE_LENGTH] for line in lines}) != 1 or _MINUTE.match(lines[0]) is None:
        return None
    first, *last = (line[1 : 1 + _TIME_LENGTH] for line in [lines[0], *lines[-WITNESSES:]])
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
