"""Heartbeats of a calm group that wait as numbers: of each its member, its source, its arrival and its position, in `Calm.beats`.

As an event, each member of a group would take 3 µs in each batch to be read and written again.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence
from typing import Final

from coordinator_model.group_beats import Run, Shared, instance_of
from coordinator_model.tracker.codec import Calm, Hearing

_BEAT: Final = struct.Struct("<HHii")


class Numbers:
    """Adds to the numbers of a calm group. `store` keeps what was added."""

    def __init__(self, calm: Calm) -> None:
        self._calm = calm
        self._members = {member_id: number for number, member_id in enumerate(calm.members)}
        self._last: tuple[Shared | None, int] = (None, -1)
        self._added: list[bytes] = []

    def take(self, run: Run) -> bool:
        """Takes heartbeats that only renew the session of their member. False: they do not, or are too different to be numbers."""
        shared, member_id, sender, arrivals, positions = run
        calm = self._calm
        hearing, source = calm.members.get(member_id), self._source(shared)
        if hearing is None or source < 0 or sender != (hearing.sender or sender):
            return False
        if not hearing.sender and instance_of(sender) != hearing.instance_id:
            return False
        if not calm.beats and not self._added:
            calm.base = arrivals[0], positions[0]
        base_ms, base_position = calm.base
        member, pack = self._members[member_id], _BEAT.pack
        try:
            packed = [
                pack(member, source, at_ms - base_ms, place - base_position) for at_ms, place in zip(arrivals, positions, strict=True)
            ]
        except struct.error:  # too far from the first one
            return False
        if not renews(hearing, arrivals):
            return False
        hearing.sender = sender
        self._added += packed
        return True

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

    def store(self) -> None:
        """Lets the heartbeats wait."""
        self._calm.beats += b"".join(self._added)


def runs_of(calm: Calm) -> Iterator[Run]:
    """The heartbeats that wait as numbers: a run for each member and source."""
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


def renews(hearing: Hearing, arrivals: Sequence[int]) -> bool:
    """Whether signs of a member do nothing but renew its session; then it is heard until the last of them."""
    if arrivals[0] <= hearing.newest_ms:
        return False
    since_ms = hearing.since_ms
    for arrival in arrivals:
        if not 0 < arrival - since_ms < hearing.widest_ms:
            return False
        since_ms = arrival
    hearing.since_ms = hearing.newest_ms = since_ms
    return True
