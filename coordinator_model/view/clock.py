"""How far a broker's log was read, and when the broker was heard.

Silence is evidence only when its source is heard again: time is kept per broker and moved by that broker's lines alone.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable
from dataclasses import dataclass, field

SECOND_MS = 1_000
TAKEOVERS_KEPT = 64


@dataclass(slots=True)
class BrokerClock:
    """Newest time read of one broker, the stretches in which it was heard, and whether its input has ended.

    `heard` holds [first, last] seconds, ascending and disjoint; seconds that touch are one stretch. It is the same for
    any batching, since it is a union of seconds.
    """

    newest_ms: int = -1
    ended: bool = False
    heard: list[list[int]] = field(default_factory=list)
    took_over: list[int] = field(default_factory=list)  # when it became the coordinator of partitions, ascending
    elections: dict[int, tuple[str, str, int]] = field(default_factory=dict)  # the line that tells it, by that time
    followed: bool = False  # somebody says how far the logs are read, whether they say something or not

    def read_to(self, at_ms: int) -> None:
        """Lines up to `at_ms` were read. Time never goes back."""
        if at_ms > self.newest_ms:
            self.newest_ms = at_ms
            self.ended = False

    def hear(self, seconds: Iterable[tuple[int, int]]) -> None:
        """Adds stretches (first, last second) in which the broker wrote lines."""
        merged: list[list[int]] = []
        for first, last in sorted([*map(list, self.heard), *map(list, seconds)]):
            if merged and first <= merged[-1][1] + 1:
                merged[-1][1] = max(merged[-1][1], last)
            else:
                merged.append([first, last])
        self.heard = merged

    def horizon_ms(self, lateness_ms: int) -> int:
        """Events before this time are complete."""
        return self.newest_ms + 1 if self.ended else self.newest_ms - lateness_ms

    def decided_ms(self, max_silence_ms: int) -> int:
        """Of which times it is decided whether the broker lived: those before this one.

        A clock that a shipper moves may stand behind the last line. Until the silence since then is a long one, the next line may still
        show that it was a short one.
        """
        silent_from_ms = (self.heard[-1][1] + 1) * SECOND_MS if self.heard else 0
        return silent_from_ms if self.newest_ms - silent_from_ms <= max_silence_ms else self.newest_ms + 1

    def lived_through(self, at_ms: int, max_silence_ms: int) -> bool:
        """Whether the broker was heard at or after `at_ms`, with no long silence around it."""
        if at_ms > self.newest_ms:
            return False
        second = at_ms // SECOND_MS
        before = after = None
        for first, last in self.heard:
            if first <= second <= last:
                return True
            if last < second:
                before = last
            elif after is None:
                after = first
        return before is not None and after is not None and (after - before) * SECOND_MS <= max_silence_ms

    def longest_silence_ms(self, from_ms: int, to_ms: int) -> int:
        """The longest time without a line that touches `from_ms` to `to_ms`, as far as still known."""
        first, last = from_ms // SECOND_MS, to_ms // SECOND_MS
        gaps = ((one[1], other[0]) for one, other in itertools.pairwise(self.heard))
        return max((after - before - 1 for before, after in gaps if before < last and after > first), default=0) * SECOND_MS

    def take_over(self, at_ms: int, line: tuple[str, str, int]) -> None:
        """The broker was elected coordinator of a partition: another one has gone, or given it up. `line`: the Ref that tells it."""
        if at_ms not in self.took_over:
            self.took_over = sorted([*self.took_over, at_ms])[-TAKEOVERS_KEPT:]
        told = {**self.elections, at_ms: min(line, self.elections.get(at_ms, line))}
        self.elections = {at: told[at] for at in self.took_over if at in told}

    def took_over_between(self, from_ms: int, to_ms: int) -> int:
        """When it first became the coordinator of anything in that time; -1 if it did not."""
        return next((at_ms for at_ms in self.took_over if from_ms <= at_ms <= to_ms), -1)

    def forget_before(self, at_ms: int) -> None:
        """Drops stretches that ended before `at_ms`, but for the last of them: silence is measured from it."""
        second = at_ms // SECOND_MS
        old = sum(1 for _, last in self.heard if last < second)
        del self.heard[: max(old - 1, 0)]
        if self.heard and self.heard[0][0] < second <= self.heard[0][1]:
            self.heard[0][0] = second
