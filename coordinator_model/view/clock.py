"""How far a broker's log was read, and in which seconds the broker wrote lines.

Silence is evidence only once the broker writes again: each broker has a clock, which only its own lines move.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator

from msgspec import Struct

from coordinator_model.specification.releases import release_numbers
from coordinator_model.view.rows import Ref

SECOND_MS = 1_000
TAKEOVERS_KEPT = 64
RELEASES_KEPT = 16


class BrokerClock(Struct, array_like=True):
    """The newest time read of one broker, the stretches in which it wrote lines, and whether its input has ended.

    `active` holds [first, last] seconds, ascending and disjoint; adjacent seconds are one stretch. Batching does not change it: it is
    a union of seconds.
    """

    newest_ms: int = -1
    ended: bool = False
    active: list[list[int]] = []
    took_over: list[int] = []  # when it became the coordinator of partitions, ascending
    elections: dict[int, Ref] = {}  # by that time: the line that says so
    followed: bool = False  # a shipper reports how far the logs are read, even while they are silent
    releases: dict[int, str] = {}  # by the time of the line that says so: the release that it runs

    def read_to(self, at_ms: int) -> None:
        """Notes that lines up to `at_ms` were read. Time never goes back."""
        if at_ms > self.newest_ms:
            self.newest_ms = at_ms
            self.ended = False

    def add_active(self, seconds: Iterable[tuple[int, int]]) -> None:
        """Adds stretches, (first, last) second, in which the broker wrote lines."""
        merged: list[list[int]] = []
        for first, last in sorted([*map(list, self.active), *map(list, seconds)]):
            if merged and first <= merged[-1][1] + 1:
                merged[-1][1] = max(merged[-1][1], last)
            else:
                merged.append([first, last])
        self.active = merged

    def horizon_ms(self, lateness_ms: int) -> int:
        """Events before this time are complete."""
        return self.newest_ms + 1 if self.ended else self.newest_ms - lateness_ms

    def decided_ms(self, max_silence_ms: int) -> int:
        """The time before which it is decided whether the broker was alive.

        A shipper may move the clock past the last line. Until the silence since that line is long, the next line may still show that it
        was a short one.
        """
        silent_from_ms = (self.active[-1][1] + 1) * SECOND_MS if self.active else 0
        return silent_from_ms if self.newest_ms - silent_from_ms <= max_silence_ms else self.newest_ms + 1

    def lived_through(self, at_ms: int, max_silence_ms: int) -> bool:
        """Whether the broker wrote lines at or after `at_ms`, without a long silence around that time."""
        if at_ms > self.newest_ms:
            return False
        second = at_ms // SECOND_MS
        before = after = None
        for first, last in self.active:
            if first <= second <= last:
                return True
            if last < second:
                before = last
            elif after is None:
                after = first
        return before is not None and after is not None and (after - before) * SECOND_MS <= max_silence_ms

    def longest_silence_ms(self, from_ms: int, to_ms: int) -> int:
        """The longest time without a line between `from_ms` and `to_ms`, or around them, as far as it is still known."""
        first, last = from_ms // SECOND_MS, to_ms // SECOND_MS
        gaps = ((one[1], other[0]) for one, other in itertools.pairwise(self.active))
        return max((after - before - 1 for before, after in gaps if before < last and after > first), default=0) * SECOND_MS

    def take_over(self, at_ms: int, line: Ref) -> None:
        """Notes that the broker was elected coordinator of a partition, which another broker lost or gave up. `line` says so."""
        if at_ms not in self.took_over:
            self.took_over = sorted([*self.took_over, at_ms])[-TAKEOVERS_KEPT:]
        elections = {**self.elections, at_ms: min(line, self.elections.get(at_ms, line))}
        self.elections = {at: elections[at] for at in self.took_over if at in elections}

    def took_over_between(self, from_ms: int, to_ms: int) -> int:
        """When the broker first became the coordinator of a partition in that time; -1 if it did not."""
        return next((at_ms for at_ms in self.took_over if from_ms <= at_ms <= to_ms), -1)

    def note_release(self, at_ms: int, release: str) -> None:
        """Notes which release a line says that the broker runs: "4.4.0", or its first numbers alone. What is no release is passed over."""
        try:
            release_numbers(release)
        except ValueError:
            return
        self.releases = dict(sorted({**self.releases, at_ms: release}.items()))
        if len(self.releases) > RELEASES_KEPT:
            self.releases = dict(list(self._changes_of_release())[-RELEASES_KEPT:])

    def release_at(self, at_ms: int) -> str:
        """The release that the broker ran at a time; empty: no line says so."""
        known = ""
        for since, release in self._changes_of_release():
            if since > at_ms:
                break
            known = release
        return known

    def _changes_of_release(self) -> Iterator[tuple[int, str]]:
        """When the release became another one. "4.4" after "4.4.0" is the same one, said less exactly."""
        known = ""
        for since, release in self.releases.items():
            if not f"{known}.".startswith(f"{release}."):
                known = release
                yield since, known

    def forget_before(self, at_ms: int) -> None:
        """Drops all stretches that ended before `at_ms` but the last: silence is measured from it."""
        second = at_ms // SECOND_MS
        old = sum(1 for _, last in self.active if last < second)
        del self.active[: max(old - 1, 0)]
        if self.active and self.active[0][0] < second <= self.active[0][1]:
            self.active[0][0] = second
