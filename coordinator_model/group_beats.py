"""Heartbeats that say no more than that a member lives, of one group and column by column: the tracker gets them instead of events.

A cluster's logs are heartbeats for the most part, and most groups are calm (tracker/quiet/calm.py). An event for each of them costs more to
make, to move and to store than what the tracker does with it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final, NamedTuple

from coordinator_model.events import HEARTBEAT, REQUEST_SOURCE, Event

SEPARATOR: Final = "\0"
"""Stands between the values of a sender. None of them has it: a heartbeat with such a text is an event."""
SENDER: Final = ("api_version", "connection", "client_id", "client_host", "software", "instance_id")
"""Fields of Event that make up the text of a sender, in their order."""


def instance_of(sender: str) -> str:
    """`group.instance.id` of a sender; empty if it has none."""
    return sender.rpartition(SEPARATOR)[2]


class Shared(NamedTuple):
    """What all heartbeats of a GroupBeats have: fields of Event."""

    broker: str
    origin: str
    group_id: str
    coordinator_partition: int
    generation: int


class Run(NamedTuple):
    """Heartbeats of one sender, each later than the one before, with no gap that is too long for a run (`runs.as_runs`).

    A sender is what the heartbeats of a member share while it keeps its connection: the values of SENDER.
    """

    shared: Shared
    member_id: str
    sender: str
    arrivals: Sequence[int]  # epoch ms
    positions: Sequence[int]

    def event(self) -> Event:
        """The event that `runs.as_runs` makes of the row of `group_events`."""
        sender: dict[str, Any] = dict(zip(SENDER, self.sender.split(SEPARATOR), strict=True))
        sender["api_version"] = int(sender["api_version"])
        first = self.arrivals[0]
        return Event(
            **self.shared._asdict(),
            **sender,
            source=REQUEST_SOURCE,
            position=self.positions[0],
            at_ms=first,  # a prompt answer counts at the arrival of its request
            received_ms=first,
            kind=HEARTBEAT,
            member_id=self.member_id,
            beats=tuple([arrival - first for arrival in self.arrivals]),
            positions=tuple(self.positions),
        )


def run_of(event: Event) -> Run | None:
    """The run that makes this event. None: it has anything that no run has."""
    if not event.beats:
        return None
    shared = Shared(*(getattr(event, name) for name in Shared._fields))
    sender = SEPARATOR.join([str(getattr(event, name)) for name in SENDER])
    arrivals = [event.received_ms + beat for beat in event.beats]
    run = Run(shared, event.member_id, sender, arrivals, event.positions)
    return run if sender.count(SEPARATOR) == len(SENDER) - 1 and run.event() == event else None


class GroupBeats(NamedTuple):
    """Heartbeats of the classic protocol that were accepted and answered soon. Their runs are in any order."""

    shared: Shared
    member_ids: list[str]  # of each run
    senders: list[str]  # of each run
    counts: list[int]  # heartbeats of each run, at least 1
    arrivals: list[int]  # of each heartbeat, epoch ms
    positions: list[int]  # of each heartbeat

    def runs(self) -> Iterator[Run]:
        """Each run."""
        begin = 0
        for member_id, sender, count in zip(self.member_ids, self.senders, self.counts, strict=True):
            end = begin + count
            yield Run(self.shared, member_id, sender, self.arrivals[begin:end], self.positions[begin:end])
            begin = end
