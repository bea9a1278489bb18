"""Ranges of a plain log whose times processes look at side by side, so that the driver looks at none of their lines."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Final

from jobs.logs.bytes import Fingerprint, PlainBytes
from jobs.logs.survey.block_times import Block, blocks_of
from jobs.logs.survey.ordered_times import OrderedTimes, ordered_times
from jobs.logs.survey.sections import Part

_LOOK_BYTES: Final = 64 << 10


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
    blocks = blocks_within(one)
    return ordered_times(blocks, own=one.own_times) if blocks is not None else None


def blocks_within(one: TimeRange) -> Iterator[Block] | None:
    """The blocks of a range; None if the log is not there."""
    log = one.fingerprint.opened(one.path)
    if isinstance(log, PlainBytes) and log.skip(one.start + 1):
        return _blocks(log, one)
    if log is not None:
        log.close()
    return None


def _blocks(log: PlainBytes, one: TimeRange) -> Iterator[Block]:
    with log:
        yield from blocks_of(Part(log, one.end - one.start), one.start)


def _line_end(log: PlainBytes, position: int, last: int) -> int:
    """The first line end at or after a position; the end of the log if there is none."""
    while position < last:
        found = log.at(position, _LOOK_BYTES).find(b"\n")
        if found >= 0:
            return position + found
        position += _LOOK_BYTES
    return last
