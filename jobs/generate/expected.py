"""Rebalances that incidents should cause, by the time at which they should begin."""

from __future__ import annotations

from bisect import bisect_right, insort
from collections.abc import Iterable
from typing import Final

SOON_MS: Final = 10_000
_GUESSED: Final = 10


class Expected:
    """Some do not come: the group rebalances already, or the member is static. The share that came is expected of the others too."""

    def __init__(self) -> None:
        self._times: list[int] = []
        self._now_ms = 0
        self._past = 0

    def add(self, times: Iterable[int]) -> None:
        """Rebalances of an incident."""
        for at_ms in times:
            insort(self._times, at_ms)

    def pass_to(self, now_ms: int) -> None:
        """Time passes."""
        self._now_ms = now_ms
        over = bisect_right(self._times, now_ms)
        self._past += over
        del self._times[:over]

    def soon(self, came: int) -> float:
        """How many begin within ten seconds. `came`: how many there were so far."""
        share = (came + _GUESSED) / (self._past + 2 * _GUESSED)  # a half, until there are figures
        return share * bisect_right(self._times, self._now_ms + SOON_MS)
