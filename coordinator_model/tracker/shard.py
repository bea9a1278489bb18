"""The groups of one coordinator shard: a reorder buffer, the brokers' clocks, and one blob per group.

Theory of operation. A batch brings events in any order. Each waits in the buffer until its broker's log was read
`lateness_ms` past it; then the events of a group are told to its tracker in one total order. Groups that got no event and
have nothing due are not decoded. All results are functions of the set of events, never of how it was cut into batches:

* the order is order.sort_key;
* time is moved by clock rows alone, never by a line: of a topic, lines of one partition may be read long before those of another;
* an event before its group's horizon is late: it is counted and not told, since what it could change is written;
* a group with several brokers in its history waits for the slowest of them, but not longer than `max_silence_ms`;
* brokers that are followed are waited for by all groups, as any of them may be about to speak, and longer: `max_absence_ms`;
* logs of clients wait for nobody and hold nobody up: what comes after its group's horizon is late.
* a group that had no members for `FORGET_MS` is forgotten; what is said of it afterwards is said of a new one;
* records and polls move no group that a broker speaks for: they wait for it. A group that they alone tell of waits for the slowest
  of all brokers, as one of them may be about to speak.
"""

from __future__ import annotations

import itertools
from collections.abc import Collection, Iterable, Sequence
from typing import Final

from coordinator_model import events as kinds
from coordinator_model.events import Event
from coordinator_model.states import State
from coordinator_model.tracker import codec
from coordinator_model.tracker.codec import MODEL_VERSION
from coordinator_model.tracker.group import GroupTracker
from coordinator_model.tracker.order import heartbeats, sort_key
from coordinator_model.view.clock import SECOND_MS, BrokerClock
from coordinator_model.view.rows import Row, ref
from coordinator_model.view.settings import TrackerSettings
from coordinator_model.view.view import View

_NO_WORD_OF_IT: Final = frozenset({kinds.FIND_COORDINATOR, kinds.OFFSET_FETCH})
"""Requests about an id that need not be a group with members."""

FORGET_MS: Final = 30 * 24 * 3_600_000
"""Four times as long as Kafka keeps a group without members by default (offsets.retention.minutes). Tools make a group for every run."""
_NO_BROKERS: Final = kinds.PSEUDO_BROKERS | {kinds.CLIENTS}
"""Have clocks, and are not waited for by groups that a broker speaks for."""
_EMPTIED: Final = (None, State.EMPTY, State.DEAD)


class Shard:
    """State machines of all groups of one shard. One instance per (cluster, shard)."""

    def __init__(self, settings: TrackerSettings | None = None) -> None:
        self.settings = settings or TrackerSettings()
        self._clocks: dict[str, BrokerClock] = {}
        self._blobs: dict[str, bytes] = {}
        self._next: dict[str, int] = {}  # group: when it has something due
        self._brokers: dict[str, list[str]] = {}  # group: brokers that spoke for it, the coordinator first
        self._told: dict[str, int] = {}  # group: its horizon
        self._held: dict[str, list[Event]] = {}
        self._unplaced: list[Event] = []  # lines about a group that they do not name
        self._instances: dict[str, dict[str, int]] = {}  # group.instance.id: groups that use it, and since when
        self._partitions: dict[str, int] = {}  # group: its partition of __consumer_offsets, as the coordinator logs it
        self._late = 0
        self._since: dict[str, int] = {}  # group: when the coordinator logged its partition first
        self._idle: dict[str, int] = {}  # group without members, of which nothing is due: when something happened to it last

    def observe(self, events: Iterable[Event]) -> list[Row]:
        """Takes a batch of events in any order; returns the rows that it completes."""
        for event in events:
            self._take(event)
        self._place()
        rows: list[Row] = []
        for group_id in sorted({*self._held, *self._next}):
            rows += self._release(group_id)
        for clock in self._clocks.values():
            clock.forget_before(clock.newest_ms - self._memory_ms())
        self._forget()
        return rows

    def _forget(self) -> None:
        """Lets go of groups that were without members for long, and of ids that were only asked for."""
        newest = max((clock.newest_ms for clock in self._clocks.values()), default=-1)
        asked = {group_id: events[-1].at_ms for group_id, events in self._held.items() if events and group_id not in self._blobs}
        gone = set()
        for group_id, at_ms in [*self._idle.items(), *asked.items()]:
            if newest <= at_ms + FORGET_MS or self._horizon_ms(group_id) <= at_ms + FORGET_MS:
                continue
            if self._held.get(group_id) and group_id in self._blobs:
                continue
            for known in (self._held, self._idle, self._blobs, self._told, self._brokers, self._partitions, self._since):
                known.pop(group_id, None)
            gone.add(group_id)
        if gone:
            used = {i: {group: since for group, since in users.items() if group not in gone} for i, users in self._instances.items()}
            self._instances = {instance_id: users for instance_id, users in used.items() if users}

    def _memory_ms(self) -> int:
        """How long before its newest time a broker's silence may still be asked for."""
        known = self.settings
        return known.lateness_ms + known.grace_ms + 4 * known.max_silence_ms + known.max_absence_ms

    def summary(self) -> tuple[int, int, int]:
        """Groups known, events held, late events so far."""
        return len(self._blobs), sum(map(len, self._held.values())), self._late

    def _take(self, event: Event) -> None:
        if event.kind in (kinds.CLOCK, kinds.FOLLOWED, kinds.END):
            clock = self._clocks.setdefault(event.broker, BrokerClock())
            clock.read_to(event.at_ms)
            clock.followed = clock.followed or event.kind == kinds.FOLLOWED
            if event.kind == kinds.END:
                clock.ended = True
            base = event.received_ms // SECOND_MS
            clock.hear((base + first, base + last) for first, last in zip(event.beats[::2], event.beats[1::2], strict=True))
            return
        clock = self._clocks.setdefault(event.broker, BrokerClock())
        if not event.group_id:
            if event.kind in (kinds.INSTANCE_FENCED, kinds.GROUPS_CLEANED):
                self._unplaced.append(event)
            elif event.kind == kinds.COORDINATOR_ELECTED and event.generation != 0:  # 0: the partition was just made
                clock.take_over(event.at_ms, ref(event))
            return
        if event.source == "coordinator" and event.coordinator_partition >= 0:
            self._partitions[event.group_id] = event.coordinator_partition
            self._since[event.group_id] = min(self._since.get(event.group_id, event.at_ms), event.at_ms)
        if event.instance_id and event.source not in kinds.PSEUDO_BROKERS:
            users = self._instances.setdefault(event.instance_id, {})
            users[event.group_id] = min(users.get(event.group_id, event.at_ms), event.at_ms)
        for single in heartbeats(event) if event.kind == kinds.HEARTBEAT else (event,):
            self._hold(single)

    def _place(self) -> None:
        """Gives lines that name only a partition, so that every shard gets them, to the one group that they can be about.

        A fencing line is about the group that used the instance id by then, a clean-up of what expired about the only group that was
        known in its partition. If there is none here, or several, the line stays out.
        """
        waiting, self._unplaced = self._unplaced, []
        for event in waiting:
            if event.at_ms >= self._complete_ms([self._clocks[event.broker]]):
                self._unplaced.append(event)
                continue
            users = self._since if event.kind == kinds.GROUPS_CLEANED else self._instances.get(event.instance_id, {})
            groups = [
                group_id
                for group_id, since_ms in users.items()
                if since_ms <= event.at_ms and self._partitions.get(group_id, -1) == event.coordinator_partition
            ]
            if len(groups) == 1:
                self._hold(event._replace(group_id=groups[0]))

    def _hold(self, event: Event) -> None:
        if event.at_ms < self._told.get(event.group_id, -1):
            self._late += 1
        else:
            self._held.setdefault(event.group_id, []).append(event)

    def _horizon_ms(self, group_id: str) -> int:
        """Events of the group before this time are complete."""
        held = self._held.get(group_id, ())
        spoken = (e for e in held if e.kind not in _NO_WORD_OF_IT and e.source != kinds.CLIENT_SOURCE)
        brokers = {*self._brokers.get(group_id, ()), *(e.broker for e in spoken)}
        brokers = set(_speaking(brokers or {e.broker for e in held}))
        if brokers <= kinds.PSEUDO_BROKERS and brokers:
            brokers |= self._clocks.keys() - _NO_BROKERS
        clocks = [self._clocks[b] for b in brokers if b in self._clocks]
        if not clocks:
            return -1
        # Sessions are judged `grace_ms` after they ran out: by then it must be decided whether their broker lived.
        decided = (clock.decided_ms(self.settings.max_silence_ms) + self.settings.grace_ms for clock in clocks if not clock.ended)
        return min([self._complete_ms(clocks), *decided])

    def _complete_ms(self, clocks: Sequence[BrokerClock]) -> int:
        """Lines before this time are there: those of some brokers and, if these are followed, of all that are."""
        lateness = self.settings.lateness_ms
        if all(clock.ended for clock in clocks):
            return max(clock.horizon_ms(lateness) for clock in clocks)
        if any(clock.followed for clock in clocks):
            clocks = [*clocks, *(c for broker, c in self._clocks.items() if c.followed and broker not in _NO_BROKERS)]
        horizons = [(clock.horizon_ms(lateness), clock) for clock in clocks if not clock.ended]
        newest = max(horizon for horizon, _ in horizons)
        return min(horizon for horizon, clock in horizons if horizon >= newest - self._patience_ms(clock))

    def _patience_ms(self, clock: BrokerClock) -> int:
        return self.settings.max_absence_ms if clock.followed else self.settings.max_silence_ms

    def _release(self, group_id: str) -> list[Row]:
        horizon = self._horizon_ms(group_id)
        held = self._held.get(group_id, [])
        ready = sorted((e for e in held if e.at_ms < horizon), key=sort_key)
        later = next((after for before, after in itertools.pairwise(ready) if after.at_ms > before.at_ms + FORGET_MS), None)
        if later is not None:  # told in two turns, as if it had come so: the group may be forgotten in between
            horizon = later.at_ms
            ready = [event for event in ready if event.at_ms < horizon]
        ended = all(self._clocks[b].ended for b in _speaking(self._brokers.get(group_id, ())) if b in self._clocks)
        due = self._next.get(group_id)
        if not ready and (due is None or (due > horizon and not ended)):
            return []
        blob = self._blobs.get(group_id)
        if ready and ready[0].at_ms > self._idle.get(group_id, ready[0].at_ms) + FORGET_MS:
            blob = None
        if blob is None and all(event.kind in _NO_WORD_OF_IT for event in ready):
            # An id that was only asked for is no group: where it lives is kept in case it becomes one.
            found = [event for event in ready if event.kind == kinds.FIND_COORDINATOR]
            self._held[group_id] = [*found[-1:], *(e for e in held if e.at_ms >= horizon)]
            return []
        if len(ready) == len(held):
            self._held.pop(group_id, None)
        else:
            self._held[group_id] = [e for e in held if e.at_ms >= horizon]
        view = View(group_id) if blob is None else codec.view(codec.unpack(blob), self.settings)
        tracker = GroupTracker(view, self.settings)
        for event in ready:
            tracker.observe(event, self._clocks)
        tracker.advance(horizon, self._clocks)
        view.horizon_ms = max(view.horizon_ms, horizon)
        if all(self._clocks[b].ended for b in _speaking(view.brokers) if b in self._clocks):
            tracker.flush(self._clocks)
        self._told[group_id] = view.horizon_ms
        self._brokers[group_id] = list(view.brokers)
        self._blobs[group_id] = codec.pack(view)
        next_ms = tracker.next_ms()
        if next_ms is None:
            self._next.pop(group_id, None)
        else:
            self._next[group_id] = next_ms
        if next_ms is None and not view.members and view.state in _EMPTIED:
            last_ms = ready[-1].at_ms if ready else due
            self._idle[group_id] = max(self._idle.get(group_id, -1), last_ms if last_ms is not None else -1)
        else:
            self._idle.pop(group_id, None)
        return tracker.rows if later is None else [*tracker.rows, *self._release(group_id)]

    def encode(self) -> bytes:
        """The whole shard as bytes: explicit, versioned, read by every later version."""
        body = (
            self._clocks,
            self._blobs,
            self._next,
            self._brokers,
            self._told,
            [e for events in self._held.values() for e in events],
            self._unplaced,
            self._instances,
            self._partitions,
            self._late,
            self._since,
            self._idle,
        )
        return codec.pack((MODEL_VERSION, body))

    @classmethod
    def decode(cls, blob: bytes, settings: TrackerSettings | None = None) -> Shard:
        """The shard that `encode` wrote."""
        version, body = codec.unpack(blob)
        if version not in codec.READABLE:
            raise ValueError(f"state of model version {version} cannot be read by version {MODEL_VERSION}")
        clocks, blobs, due, brokers, told, held, unplaced, instances, partitions, late, *newer = body
        shard = cls(settings)
        shard._clocks = {broker: codec.clock(data) for broker, data in clocks.items()}
        shard._blobs, shard._next, shard._brokers, shard._told, shard._late = blobs, due, brokers, told, late
        shard._unplaced = [codec.event(data) for data in unplaced]
        shard._instances, shard._partitions = instances, partitions
        shard._since, shard._idle = (*newer, {}, {})[:2]
        for data in held:
            event = codec.event(data)
            shard._held.setdefault(event.group_id, []).append(event)
        return shard


def _speaking(brokers: Collection[str]) -> Collection[str]:
    """Those whose time is a group's: brokers, if there are any."""
    return [broker for broker in brokers if broker not in kinds.PSEUDO_BROKERS] or brokers
