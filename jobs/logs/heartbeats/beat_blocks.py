"""Heartbeats that repeat others (beats.py), found for all lines of a block at once.

The verdict on each line is that of `LogBeats.take`: a line is a repetition if its first line is known, and if nothing but numbers differs.
Lines of members that are new to the slice are left to it.
"""

from __future__ import annotations

from array import array
from collections.abc import Mapping
from itertools import compress
from typing import Final, NamedTuple

import numpy as np

from jobs.logs.blocks import Block, Flags, Numbers
from jobs.logs.heartbeats.beats import CORRELATION, TOTAL, LogBeats, are_times
from jobs.logs.times import LENGTH

_MOST_DIGITS: Final = 9  # as in `beats.numbers_in`
_TEN: Final = 10
_ZERO: Final = ord("0")
_COMMA: Final = ord(",")


class Found(NamedTuple):
    """Repeated heartbeats of a block, in order."""

    lines: Numbers  # indexes in the block
    rows: Numbers  # of the lines that they repeat
    correlation_ids: Numbers
    times: list[bytes]  # the durations, as logged


def repeats_in(block: Block, most: int, log: LogBeats) -> Found:
    """Those of the first `most` lines of a block that repeat lines which the log has had before."""
    lines, number_starts, before = _with_header(block, most, log.befores)
    digits, numbers = _correlation_ids(block, number_starts)
    is_number = digits > 0
    lines, before, numbers, name_starts = (column[is_number] for column in (lines, before, numbers, number_starts + digits))

    members, times_starts = _members(block, lines, name_starts, log.known)
    is_known = members >= 0
    lines, before, numbers, members, times_starts = (column[is_known] for column in (lines, before, numbers, members, times_starts))

    is_same = _of(log.before_of, members) == before
    times_ends = _times_ends(block, lines, _of(log.after_of, members), log.afters)
    is_same &= times_ends > times_starts
    lines, numbers, members, times_starts, times_ends = (c[is_same] for c in (lines, numbers, members, times_starts, times_ends))

    texts = [block.text[start:end] for start, end in zip(times_starts.tolist(), times_ends.tolist(), strict=True)]
    fits = np.array([found is not None for found in map(are_times, texts)], np.bool_)
    times = texts if fits.all() else list(compress(texts, fits))
    return Found(lines[fits], _of(log.rows, members[fits]), numbers[fits], times)


def _of(values: array[int], indexes: Numbers) -> Numbers:
    """Some of the values; the array may grow afterwards."""
    found: Numbers = np.frombuffer(values, np.int64)[indexes]
    return found


def _with_header(block: Block, most: int, befores: Mapping[bytes, int]) -> tuple[Numbers, Numbers, Numbers]:
    """Lines with a header that a first line has: where their correlation id begins, and the index of the header."""
    left = np.flatnonzero(block.own[:most])
    lines, number_starts, of = [left[:0]], [left[:0]], [left[:0]]
    for before, index in befores.items():
        text = before + CORRELATION
        room = block.ends[left] - block.starts[left] >= LENGTH + len(text) + _MOST_DIGITS + 1
        here = left[room]
        has = here[_equal(block, block.starts[here] + LENGTH, text)]
        lines.append(has)
        number_starts.append(block.starts[has] + LENGTH + len(text))
        of.append(np.full(len(has), index))
        left = np.setdiff1d(left, has, assume_unique=True)
        if not len(left):
            break
    every = np.concatenate(lines)
    order = np.argsort(every, kind="stable")
    return every[order], np.concatenate(number_starts)[order], np.concatenate(of)[order]


def _equal(block: Block, places: Numbers, text: bytes) -> Flags:
    """Whether the text stands at each of these places."""
    equal: Flags = block.windows(len(text), places) == text
    return equal


def _correlation_ids(block: Block, starts: Numbers) -> tuple[Numbers, Numbers]:
    """How many digits each number has, which begins there and ends with a comma, and the number; no digits if it is none that is read."""
    digits = block.bytes_at(_MOST_DIGITS + 1, starts).astype(np.int64) - _ZERO
    is_digit = (digits >= 0) & (digits < _TEN)
    count: Numbers = np.argmin(is_digit, axis=1)
    ends_well = digits[np.arange(len(digits)), count] == _COMMA - _ZERO
    values: Numbers = np.zeros(len(digits), np.int64)
    for column in range(int(count.max(initial=0))):
        values = np.where(column < count, values * _TEN + digits[:, column], values)
    return np.where(ends_well & (digits[:, 0] != 0), count, 0), values


def _members(block: Block, lines: Numbers, starts: Numbers, known: Mapping[bytes, int]) -> tuple[Numbers, Numbers]:
    """Who sent each line, -1 if that is new, and where its durations begin. `starts`: where the part begins that names the member."""
    text, find, member_of = block.text, block.text.find, known.get
    totals = [find(TOTAL, start, end) for start, end in zip(starts.tolist(), block.ends[lines].tolist(), strict=True)]
    members = [-1 if total < 0 else member_of(text[start:total], -1) for start, total in zip(starts.tolist(), totals, strict=True)]
    return np.array(members, np.int64), np.array(totals, np.int64) + len(TOTAL)


def _times_ends(block: Block, lines: Numbers, of: Numbers, afters: Mapping[bytes, int]) -> Numbers:
    """Where the durations of each line end, by what stands after them in its first line; 0 if something else does."""
    ends = np.zeros(len(lines), np.int64)
    present = np.bincount(of, minlength=len(afters))
    for after, index in afters.items():
        if present[index]:
            here = np.flatnonzero(of == index)
            places = block.ends[lines[here]] - len(after)
            inside = places >= block.starts[lines[here]]
            has = here[inside][_equal(block, places[inside], after)]
            ends[has] = block.ends[lines[has]] - len(after)
    return ends
