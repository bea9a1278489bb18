"""How long the log of a partition was, as polls and answers to FETCH and LIST_OFFSETS tell."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable
from itertools import pairwise
from typing import Final

from msgspec import Struct

_ENDS: Final = 128
"""Of a log: with a poll every ten seconds those of twenty minutes."""


def intervals(commits: Iterable[tuple[int, int]]) -> list[int]:
    """The times between commits that follow each other, in ms."""
    return [after_ms - before_ms for (before_ms, _), (after_ms, _) in pairwise(commits)]


class Ends(Struct, array_like=True):
    """How long the log of a partition was at some times."""

    times: list[int] = []
    offsets: list[int] = []

    def add(self, at_ms: int, end: int, since_ms: int) -> None:
        """Takes an end that is not before the last one. `since_ms`: when it was still the end before; -1: not known."""
        if self.times and self.times[-1] < since_ms < at_ms:
            self._add(since_ms, self.offsets[-1])
        self._add(at_ms, end)

    def _add(self, at_ms: int, end: int) -> None:
        if self.times and at_ms <= self.times[-1]:
            return
        self.times.append(at_ms)
        self.offsets.append(max(end, self.offsets[-1]) if self.offsets else end)
        del self.times[:-_ENDS], self.offsets[:-_ENDS]

    def at(self, at_ms: int) -> int | None:
        """The end at a time, by a line between those before and after. None: there are no two."""
        if not self.times or not self.times[0] <= at_ms <= self.times[-1]:
            return None
        place = bisect_left(self.times, at_ms)
        if self.times[place] == at_ms:
            return self.offsets[place]
        (before_ms, after_ms), (before, after) = self.times[place - 1 : place + 1], self.offsets[place - 1 : place + 1]
        return before + round((after - before) * (at_ms - before_ms) / (after_ms - before_ms))

    def passed(self, offset: int) -> int | None:
        """When the log was first seen to be longer than an offset. None: it was not."""
        place = bisect_right(self.offsets, offset)
        return self.times[place] if place < len(self.times) else None
