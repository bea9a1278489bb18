"""Heartbeats of a calm group as numbers: of each its member, its source, its arrival and its position, in `Calm.beats`.

As an event, each member of a group would take 3 µs in each batch to be read and written again. Those that the specification would have
handled by now are only counted, each member's own in its `Hearing`. So a group may be calm for days, and is not unpacked for it.
"""

from __future__ import annotations

import struct
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from operator import sub
from typing import Final

from coordinator_model.group_beats import Run, Shared, instance_of
from coordinator_model.tracker.codec import Calm, Hearing

_BEAT: Final = struct.Struct("<HHii")


class Numbers:
    """Adds to the numbers of a calm group. `store` keeps what was added."""

    def __init__(self, calm: Calm, counted_ms: int = -1) -> None:
        """Heartbeats before `counted_ms` are counted."""
        self._calm = calm
        self._counted_ms = counted_ms
        self._members = {member_id: number for number, member_id in enumerate(calm.members)}
        self._last: tuple[Shared | None, int] = (None, -1)
        self._added: list[bytes] = []
        if counted_ms >= 0:
            self._count_waiting()

    def take(self, run: Run) -> bool:
        """Takes heartbeats that only renew the session of their member. False: they do not, or are too different to be numbers."""
        shared, member_id, sender, arrivals, positions = run
        calm = self._calm
        hearing, source = calm.members.get(member_id), self._source(shared)
        if hearing is None or source < 0 or sender != (hearing.sender or sender):
            return False
        if not hearing.sender and instance_of(sender) != hearing.instance_id:
            return False
        early = bisect_left(arrivals, self._counted_ms)
        packed = self._packed(self._members[member_id], source, arrivals[early:], positions[early:])
        pause_ms = 0 if packed is None else renews(hearing, arrivals)
        if packed is None or not pause_ms:
            return False
        hearing.sender = sender
        calm.least_ms = min(calm.least_ms, pause_ms)
        if early:
            _count(hearing, arrivals[:early], positions[early - 1], source)
        self._added += packed
        return True

    def _packed(self, member: int, source: int, arrivals: Sequence[int], positions: Sequence[int]) -> list[bytes] | None:
        """Heartbeats as numbers. None: one is too far from the first one."""
        if arrivals and not self._calm.beats and not self._added:
            self._calm.base = arrivals[0], positions[0]
        base_ms, base_position = self._calm.base
        try:
            return [_BEAT.pack(member, source, at - base_ms, place - base_position) for at, place in zip(arrivals, positions, strict=True)]
        except struct.error:
            return None

    def _source(self, shared: Shared) -> int:
        """The place of a source among those of the group; -1 if it is not the group's coordinator, or of another generation."""
        if shared is self._last[0]:
            return self._last[1]
        calm = self._calm
        place = -1
        if (shared.broker, shared.generation) == (calm.broker, calm.generation):
            if shared not in calm.sources:
                calm.sources.append(shared)
            place = calm.sources.index(shared)
        self._last = shared, place
        return place

    def _count_waiting(self) -> None:
        """Counts those that wait, each member's in order, and forgets sources that no number needs: a log is renamed every hour or so."""
        calm = self._calm
        hearings, (base_ms, base_position) = [*calm.members.values()], calm.base
        until_ms = self._counted_ms - base_ms
        kept = []
        for member, source, arrival, position in _BEAT.iter_unpack(calm.beats):
            if arrival < until_ms:
                _count(hearings[member], (base_ms + arrival,), base_position + position, source)
            else:
                kept.append((member, source, arrival, position))
        counted = [hearing for hearing in hearings if hearing.count]
        used = sorted({hearing.last_source for hearing in counted} | {source for _, source, *_ in kept})
        places = {source: place for place, source in enumerate(used)}
        for hearing in counted:
            hearing.last_source = places[hearing.last_source]
        calm.sources, calm.beats = [calm.sources[source] for source in used], b""
        self._added = [_BEAT.pack(member, places[source], *place) for member, source, *place in kept]

    def store(self) -> None:
        """Lets the heartbeats wait."""
        self._calm.beats += b"".join(self._added)


def _count(hearing: Hearing, arrivals: Sequence[int], last_position: int, source: int) -> None:
    """Counts heartbeats of a member, which come after those counted before. `last_position`: that of the last one."""
    gaps = map(sub, arrivals[1:], arrivals)
    if hearing.count:
        hearing.gap_ms = max(hearing.gap_ms, arrivals[0] - hearing.last_ms, *gaps)
    else:
        hearing.first_ms, hearing.gap_ms = arrivals[0], max(gaps, default=-1)
    hearing.last_ms, hearing.last_position, hearing.last_source = arrivals[-1], last_position, source
    hearing.count += len(arrivals)


def last_counted(calm: Calm) -> Iterator[tuple[Hearing, Run]]:
    """The members that count heartbeats, each with the last one of these."""
    for member_id, hearing in calm.members.items():
        if hearing.count:
            yield hearing, Run(calm.sources[hearing.last_source], member_id, hearing.sender, [hearing.last_ms], [hearing.last_position])


def runs_of(calm: Calm) -> Iterator[Run]:
    """The heartbeats that wait: a run for each member and source."""
    runs: dict[tuple[int, int], tuple[list[int], list[int]]] = {}
    base_ms, base_position = calm.base
    for member, source, arrival, position in _BEAT.iter_unpack(calm.beats):
        arrivals, positions = runs.setdefault((member, source), ([], []))
        arrivals.append(base_ms + arrival)
        positions.append(base_position + position)
    members = [*calm.members.items()]
    for (member, source), (arrivals, positions) in runs.items():
        member_id, hearing = members[member]
        yield Run(calm.sources[source], member_id, hearing.sender, arrivals, positions)


def renews(hearing: Hearing, arrivals: Sequence[int]) -> int:
    """The shortest pause before signs of a member if they do nothing but renew its session, which is heard until the last then; else 0."""
    if arrivals[0] <= hearing.newest_ms:
        return 0
    since_ms, shortest = hearing.since_ms, hearing.widest_ms
    for arrival in arrivals:
        pause_ms = arrival - since_ms
        if not 0 < pause_ms < hearing.widest_ms:
            return 0
        shortest = min(shortest, pause_ms)
        since_ms = arrival
    hearing.since_ms = hearing.newest_ms = since_ms
    return shortest
