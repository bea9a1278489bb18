"""Tells whether a broker's clock was set back where the time of its log goes back, as NTP sets a clock that is ahead.

A connection numbers its requests, and a group its generations, both upwards. So a line with a higher number and an earlier time than
another line of the same connection, or group, was written later by a clock that stood earlier. No damage, no other order of files and no
mixture of logs looks so. All logs of a broker have one clock: what the lines of one prove holds for the others.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final, NamedTuple

from jobs.logs.bytes import LogBytes
from jobs.logs.formats.compression import first_bytes
from jobs.logs.jumps import LEAST_STEP_MS
from jobs.logs.times import NEVER, LocalTimes

_LOOKED_AT: Final = 256 << 10  # bytes before a place, and behind it
_LEAST_WITNESSES: Final = 2  # on either side: a single line may be damaged
_FIRST_LINES: Final = 3
_NUMBERED: Final = (
    re.compile(rb'correlationId"?[:=](?P<number>\d{1,9})\b.*?\bconnection"?[: ]"?(?P<of>[^",;]{1,200})'),
    re.compile(rb"\bgroup (?P<of>\S{1,300}) .{0,300}?\bgeneration (?P<number>\d{1,9})\b"),
)


class Fall(NamedTuple):
    """Where the time of a log goes back: from one to another, epoch ms. `proven`: by its lines, since its clock was set back."""

    last_ms: int
    first_ms: int
    proven: bool

    def meets(self, other: Fall) -> bool:
        """Whether both may be one moment."""
        return self.first_ms <= other.last_ms and other.first_ms <= self.last_ms


def fall_at(log: LogBytes, offset: int, bare: Callable[[bytes], bytes] | None, local: LocalTimes) -> Fall | None:
    """The times around a place, if time goes back there, and whether lines before and behind it prove that the clock was set back."""
    start = max(0, offset - _LOOKED_AT)
    if not log.skip(start):
        return None
    text = first_bytes(log, offset - start + _LOOKED_AT)
    before = _timed(text[: offset - start], bare, local, NEVER)
    after = _timed(text[offset - start :], bare, local, before[-1][0] if before else NEVER)
    if not before or not after or before[-1][0] <= after[0][0]:
        return None
    earlier: dict[bytes, list[tuple[int, int]]] = {}
    for then, key, number in before:
        earlier.setdefault(key, []).append((then, number))
    # What was written before the first lines behind the place, though at a later time, of the same connections and groups.
    known = [(at, [then for then, less in earlier.get(key, ()) if less < number]) for at, key, number in after if key]
    first = [(at, thens) for at, thens in known if thens][:_FIRST_LINES]
    witnesses = [[then for then in thens if then > at + LEAST_STEP_MS] for at, thens in first]
    proven = sum(map(bool, witnesses)) >= _LEAST_WITNESSES and len(set().union(*witnesses)) >= _LEAST_WITNESSES
    return Fall(before[-1][0], after[0][0], proven)


def _timed(text: bytes, bare: Callable[[bytes], bytes] | None, local: LocalTimes, near_ms: int) -> list[tuple[int, bytes, int]]:
    """Times of lines, each with the connection or group of the line and the number of that; empty, 0 if there is none."""
    timed = []
    for written in text.split(b"\n"):
        line = bare(written) if bare is not None else written
        at = local.read(line, near_ms)
        if at is not None:
            found = next((found for found in (pattern.search(line) for pattern in _NUMBERED) if found is not None), None)
            timed.append((at, found["of"], int(found["number"])) if found is not None else (at, b"", 0))
            near_ms = at
    return timed
