"""The groups of one coordinator shard: a reorder buffer, the brokers' clocks, and the stored view of each group.

A batch brings events in any order. Each event waits until its broker's log was read `lateness_ms` past it. Then the events of a group
go to its tracker in one total order. A group that has no event ready and nothing due is not decoded. One that has no members either rests
(quiet/resting.py), and in one that is calm signs of life wait on (quiet/calm.py). The results depend on the set of events only, not on
the batches:

* `order.sort_key` gives the order;
* only clock rows move time: in a topic, lines of one partition may be read long before those of another;
* an event before its group's horizon is late: it is counted and left out, because what it could change is already written;
* a group whose history has several brokers waits for the slowest of them, but not longer than `max_silence_ms`;
* all groups wait for brokers that are followed, since any of them may be about to speak, and up to `max_absence_ms`;
* no group waits for logs of clients: their lines before the group's horizon are late;
* a group without members for `FORGET_MS` is forgotten; later events about it belong to a new group;
* stored records and polls do not move a group for which a broker speaks: they wait for the broker. A group that only they show waits
  for the slowest of all brokers, since one of them may be about to speak.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from itertools import chain
from typing import Final

from coordinator_model import events as kinds
from coordinator_model.diagnosis.bursts import QUIET_MS
from coordinator_model.events import Event
from coordinator_model.group_beats import GroupBeats
from coordinator_model.offsets.reads import Reads
from coordinator_model.specification.timers import NEVER
from coordinator_model.states import State
from coordinator_model.tracker import codec, order, provisional, unended
from coordinator_model.tracker.codec import ShardState
from coordinator_model.tracker.group import GroupTracker
from coordinator_model.tracker.ledgers import Ledgers, Readings
from coordinator_model.tracker.quiet import calm, runs
from coordinator_model.tracker.quiet.resting import REST_MS, Resting
from coordinator_model.view.clock import SECOND_MS, BrokerClock
from coordinator_model.view.rows import Row, ref
from coordinator_model.view.settings import TrackerSettings
from coordinator_model.view.view import View

FORGET_MS: Final = 30 * 24 * 3_600_000
"""Four times as long as Kafka keeps a group without members by default (offsets.retention.minutes). Tools make a group for every run."""

_PROVE_NO_GROUP: Final = frozenset({kinds.FIND_COORDINATOR, kinds.OFFSET_FETCH})
"""Requests that name a group id although the group may not exist."""

_NO_BROKERS: Final = kinds.PSEUDO_BROKERS | {kinds.CLIENTS}
"""Sources with a clock that a group does not wait for if a broker speaks for it."""

_MEMBERLESS: Final = (None, State.EMPTY, State.DEAD)


class Shard:
    """The trackers of all groups of one (cluster, shard)."""

    def __init__(self, settings: TrackerSettings | None = None, state: ShardState | None = None) -> None:
        self.settings = settings or TrackerSettings()
        self._state = state or ShardState()
        self.provisional: list[Row] = []
        """What the last batch shows of rebalances that `observe` has not told yet."""
        self._resting = Resting(self._state)
        self._ledgers = Ledgers(self._state, self.settings)
        self._readings = Readings(self._state, self._ledgers)
        self._waiting: dict[str, list[Event]] = {}
        self._horizons: dict[frozenset[str], int] = {}  # of groups with these brokers, in this batch
        self._heard: dict[str, list[GroupBeats]] = {}  # of calm groups, in this batch
        for event in self._state.waiting:
            self._waiting.setdefault(event.group_id, []).append(event)

    @classmethod
    def decode(cls, blob: bytes, settings: TrackerSettings | None = None) -> Shard:
        """The shard that `encode` stored."""
        return cls(settings, codec.decode_shard(blob))

    def encode(self) -> bytes:
        """The whole shard as bytes that this version reads."""
        state = self._state
        newest = max((clock.newest_ms for clock in state.clocks.values()), default=-1)
        at_rest = [g for g, one in state.groups.items() if one.idle_ms + REST_MS < newest <= one.idle_ms + FORGET_MS]
        self._resting.put_away([g for g in at_rest if g not in self._waiting and g not in state.unexplained])
        self._state.waiting = [event for events in self._waiting.values() for event in events]
        return codec.encode_shard(self._state)

    def summary(self) -> tuple[int, int, int]:
        """How many groups are known, how many events wait, and how many events have been late so far."""
        held = sum(len(event.beats) or 1 for events in self._waiting.values() for event in events)
        return sum(bool(one.view) for one in self._state.groups.values()) + len(self._resting), held, self._state.late

    def observe(self, events: Iterable[Event], beats: Iterable[GroupBeats] = (), reads: Iterable[Reads] = ()) -> list[Row]:
        """Takes a batch of events in any order, and of heartbeats and reads that are none; returns the rows that it completes."""
        self._heard.clear()
        for group in beats:
            self._hear(group)
        for event in events:
            self._take(event)
        self._readings.take(reads)
        self._place()
        rows, self.provisional = list[Row](), []
        self._horizons.clear()
        for group_id in sorted({*self._waiting, *self._heard, *self._state.due}):
            rows += self._release(group_id)
        rows += self._ledgers.explain(rows, self._horizon_ms, lambda group_id: self._all_ended(self._state.known(group_id).brokers))
        going = [clock.newest_ms for broker, clock in self._state.clocks.items() if broker not in _NO_BROKERS and not clock.ended]
        for clock in self._state.clocks.values():  # a group may wait for the slowest
            clock.forget_before(min([clock.newest_ms, *going]) - self._memory_ms())
        self._readings.forget_before(min(going, default=-1))
        self._forget()
        return rows

    # Events come in.

    def _take(self, event: Event) -> None:
        state = self._state
        clock = state.clocks.setdefault(event.broker, BrokerClock())
        if event.kind in (kinds.CLOCK, kinds.FOLLOWED, kinds.END):
            clock.read_to(event.at_ms)
            clock.followed = clock.followed or event.kind == kinds.FOLLOWED
            if event.kind == kinds.END:
                clock.ended = True
            base = event.received_ms // SECOND_MS
            clock.add_active((base + first, base + last) for first, last in zip(event.beats[::2], event.beats[1::2], strict=True))
            return
        group_id = event.group_id
        if not group_id:
            if event.kind in (kinds.INSTANCE_FENCED, kinds.GROUPS_CLEANED):
                state.unplaced.append(event)
            elif event.kind == kinds.COORDINATOR_ELECTED and event.generation != 0:  # 0: the partition was just created
                clock.take_over(event.at_ms, ref(event))
            elif event.kind == kinds.BROKER_RELEASE:
                clock.note_release(event.at_ms, event.software)
            elif event.kind == kinds.TOPIC_NAMED:
                self._readings.learn(event)
            elif event.kind == kinds.TOPIC_COMPACTED:
                self._readings.learn_compacted(event)
            return
        self._resting.wake(group_id)
        self._ledgers.take(event)
        self._readings.know(event)
        if event.kind in kinds.OFFSETS_ALONE:
            return
        if event.source == "coordinator" and event.coordinator_partition >= 0:
            group = state.group(group_id)
            group.partition, group.since_ms = event.coordinator_partition, min(group.since_ms, event.at_ms)
        if event.instance_id and event.source not in kinds.PSEUDO_BROKERS:
            state.note_instance(event)
        for one in runs.as_runs(event) if event.beats else (event,):
            self._enqueue(one)

    def _hear(self, beats: GroupBeats) -> None:
        """Takes heartbeats: as they are, if their group is calm."""
        group_id = beats.shared.group_id
        if group_id in self._state.calm and min(beats.arrivals) >= self._state.known(group_id).horizon_ms:
            self._heard.setdefault(group_id, []).append(beats)
        else:
            self._tell([beats])

    def _tell(self, pieces: Iterable[GroupBeats]) -> None:
        """Takes heartbeats as events."""
        for beats in pieces:
            for run in beats.runs():
                self._take(run.event())

    def _enqueue(self, event: Event) -> None:
        horizon = self._state.known(event.group_id).horizon_ms
        late, in_time = ([], [event]) if event.at_ms >= horizon else runs.divided((event,), horizon)
        self._state.late += sum(len(one.beats) or 1 for one in late)
        if in_time:
            self._waiting.setdefault(event.group_id, []).extend(in_time)

    def _place(self) -> None:
        """Assigns lines that name no group, and so reach every shard, to the one group that they can be about.

        A fencing line is about the group that used the instance id by then, a clean-up of expired offsets about the only group that
        was known in its partition. A line is dropped if this shard has no such group, or several.
        """
        state = self._state
        unplaced, state.unplaced = state.unplaced, []
        for event in unplaced:
            if event.at_ms >= self._complete_ms([state.clocks[event.broker]]):
                state.unplaced.append(event)
                continue
            groups = [group_id for group_id, since_ms in self._may_be_about(event).items() if since_ms <= event.at_ms]
            if len(groups) == 1:
                self._resting.wake(groups[0])
                self._enqueue(event._replace(group_id=groups[0]))

    def _may_be_about(self, event: Event) -> dict[str, int]:
        """The groups of the line's partition that it can be about, and since when. Scala coordinators name none of an instance."""
        partition = event.coordinator_partition
        if event.kind == kinds.GROUPS_CLEANED:
            users = {group_id: one.since_ms for group_id, one in self._state.groups.items() if one.since_ms < NEVER}
            resting = dict(self._resting.of_partition(partition))
        else:
            users, resting = self._users_of_instance(event), {}
            if partition < 0:
                return users
        return resting | {group_id: at_ms for group_id, at_ms in users.items() if self._state.known(group_id).partition == partition}

    def _users_of_instance(self, event: Event) -> dict[str, int]:
        """The groups that use an instance id, and since when; if the line names no partition, under a member id that it names."""
        users = {}
        named = {event.member_id, event.answer_member_id} - {""}
        for group_id, since in self._state.instances.get(event.instance_id, {}).items():
            self._resting.wake(group_id)
            if own := since.keys() if event.coordinator_partition >= 0 else since.keys() & named:
                users[group_id] = min(since[member_id] for member_id in own)
        return users

    # How far the logs of a group are complete.

    def _horizon_ms(self, group_id: str) -> int:
        """The time before which all events of the group are there."""
        clocks = self._state.clocks
        waiting = self._waiting.get(group_id, ())
        spoken = (e for e in waiting if e.kind not in _PROVE_NO_GROUP and e.source != kinds.CLIENT_SOURCE)
        brokers = {*self._state.known(group_id).brokers, *(e.broker for e in spoken)}
        brokers = set(_speaking(brokers or {e.broker for e in waiting}))
        if brokers <= _NO_BROKERS and brokers:
            brokers |= clocks.keys() - _NO_BROKERS
        speaking = frozenset(brokers)
        if speaking not in self._horizons:
            self._horizons[speaking] = self._horizon_of(speaking)
        return self._horizons[speaking]

    def _horizon_of(self, brokers: frozenset[str]) -> int:
        clocks = self._state.clocks
        own = [clocks[broker] for broker in brokers if broker in clocks]
        if not own:
            return -1
        # Sessions are judged `grace_ms` after they ran out: by then it must be decided whether their broker was alive.
        decided = (clock.decided_ms(self.settings.max_silence_ms) + self.settings.grace_ms for clock in own if not clock.ended)
        return min([self._complete_ms(own), *decided])

    def _complete_ms(self, clocks: Sequence[BrokerClock]) -> int:
        """The time before which all lines of these brokers are there; if one of them is followed, of all followed brokers."""
        lateness = self.settings.lateness_ms
        if all(clock.ended for clock in clocks):
            return max(clock.horizon_ms(lateness) for clock in clocks)
        if any(clock.followed for clock in clocks):
            clocks = [*clocks, *(c for broker, c in self._state.clocks.items() if c.followed and broker not in _NO_BROKERS)]
        horizons = [(clock.horizon_ms(lateness), clock) for clock in clocks if not clock.ended]
        newest = max(horizon for horizon, _ in horizons)
        return min(horizon for horizon, clock in horizons if horizon >= newest - self._patience_ms(clock))

    def _patience_ms(self, clock: BrokerClock) -> int:
        return self.settings.max_absence_ms if clock.followed else self.settings.max_silence_ms

    def _memory_ms(self) -> int:
        """How long before its newest time a broker's silence can still matter."""
        s = self.settings
        return s.lateness_ms + s.grace_ms + 4 * s.max_silence_ms + s.max_absence_ms + calm.KEEP_MS

    def _all_ended(self, brokers: Collection[str]) -> bool:
        """Whether nothing more comes from these brokers; from nobody, where there are none: only clients have spoken."""
        clocks = self._state.clocks
        return all(clocks[broker].ended for broker in _speaking(brokers or clocks.keys()) if broker in clocks)

    def _after_brokers(self, events: Iterable[Event], brokers: Collection[str]) -> list[Event]:
        """What clients say a while after the logs of all brokers of their group have ended, once their own logs have ended, too."""
        clocks = self._state.clocks
        own = [clocks[broker] for broker in brokers if broker in clocks and broker not in _NO_BROKERS]
        if not own or not all(clock.ended for clock in (*own, clocks.get(kinds.CLIENTS, BrokerClock()))):
            return []
        ends_ms = max(clock.newest_ms for clock in own) + QUIET_MS
        return sorted((e for e in events if e.source == kinds.CLIENT_SOURCE and e.at_ms > ends_ms), key=order.sort_key)

    # Events go to their group.

    def _release(self, group_id: str) -> list[Row]:
        state = self._state
        if group_id in state.calm and self._stays_calm(group_id):
            return []
        self._tell(self._heard.pop(group_id, ()))
        horizon = self._horizon_ms(group_id)
        ready, rest = order.divided(self._waiting.get(group_id, []), horizon)
        later = runs.after_a_silence(ready, FORGET_MS)
        if later is not None:  # in two turns, as if the batches had come so: the group may be forgotten in between
            horizon = later
            ready, rest = order.divided(self._waiting[group_id], horizon)
        due, known = state.due.get(group_id), state.known(group_id)
        if (
            not ready
            and not self._after_brokers(rest, known.brokers)
            and (due is None or (due > horizon and not self._all_ended(known.brokers)))
        ):
            return []
        found = codec.decode_calm(state.calm.pop(group_id)) if group_id in state.calm else None
        if found is not None:
            ready, rest = order.divided([*calm.waiting(found), *self._waiting.get(group_id, ())], horizon)
        blob = b"" if ready and ready[0].at_ms > known.idle_ms + FORGET_MS else known.view
        if not blob and all(event.kind in _PROVE_NO_GROUP for event in ready):
            # Its coordinator is kept in case the id becomes a group.
            answers = [event for event in ready if event.kind == kinds.FIND_COORDINATOR]
            self._waiting[group_id] = [*answers[-1:], *rest]
            return []
        self._wait(group_id, rest)
        view = codec.decode_view(blob) if blob else View(group_id)
        if found is not None:
            calm.catch_up(view, found)
        tracker = GroupTracker(view, self.settings, state.clocks)
        waited = provisional.waiting(tracker)
        tracker.follow(ready)
        tracker.advance(horizon)
        view.horizon_ms = max(view.horizon_ms, horizon)
        if ended := self._all_ended(view.brokers):
            tracker.flush()
        if later_words := self._after_brokers(rest, view.brokers):
            self._wait(group_id, [event for event in rest if event not in later_words])
            tracker.hear_clients(later_words)
        self.provisional += unended.take_news(tracker, input_ended=ended)
        if (first := provisional.first_changed(waited, waiting := provisional.waiting(tracker))) < len(waiting):
            self.provisional += provisional.told_so_far(tracker)[first:]
        self._store(tracker, max(map(runs.last_ms, ready), default=due))
        return tracker.rows if later is None else [*tracker.rows, *self._release(group_id)]

    def _stays_calm(self, group_id: str) -> bool:
        """Lets signs of life of a calm group wait. False: something else has come, or is due."""
        state, horizon = self._state, self._horizon_ms(group_id)
        events, pieces = self._waiting.get(group_id, ()), self._heard.get(group_id, ())
        if self._all_ended(state.known(group_id).brokers):
            return False
        first_ms = min(chain((event.received_ms for event in events), *(beats.arrivals for beats in pieces)), default=None)
        if first_ms is None and state.due.get(group_id, NEVER) > horizon:
            return True
        found = codec.decode_calm(state.calm[group_id])
        if first_ms is not None:
            calm.begin(found, group_id, first_ms)
        if not calm.keep(found, events, pieces, horizon) or (due := calm.next_ms(found)) <= horizon:
            return False
        for table in (self._waiting, self._heard):
            table.pop(group_id, None)
        self._keep(group_id, found, due)
        group = state.group(group_id)
        group.horizon_ms = max(group.horizon_ms, horizon)  # a broker that comes back moves time backwards
        return True

    def _keep(self, group_id: str, found: codec.Calm, due: int) -> None:
        """Stores a calm group. `due`: when it is to be handled."""
        self._state.calm[group_id] = codec.encode_calm(found)
        self._note_due(group_id, due if due < NEVER else None)

    def _note_due(self, group_id: str, due: int | None) -> None:
        self._state.due.pop(group_id, None)
        if due is not None:
            self._state.due[group_id] = due

    def _wait(self, group_id: str, events: list[Event]) -> None:
        self._waiting.pop(group_id, None)
        if events:
            self._waiting[group_id] = events

    def _store(self, tracker: GroupTracker, last_ms: int | None) -> None:
        """Keeps a group until its next event. `last_ms`: its last event, or what was due."""
        state, view, group_id = self._state, tracker.view, tracker.view.group_id
        next_ms = tracker.next_ms()
        if next_ms is not None and (found := calm.calm(tracker)) is not None:
            self._keep(group_id, found, calm.next_ms(found))
            next_ms = state.due.get(group_id)
        self._ledgers.note_unwritten(view)
        group = state.group(group_id)
        group.view, group.brokers, group.horizon_ms = codec.encode_view(view), list(view.brokers), view.horizon_ms
        self._note_due(group_id, next_ms)
        members = view.members or (view.consumer is not None and view.consumer.members)
        is_idle = next_ms is None and not members and view.state in _MEMBERLESS
        before_ms = -1 if group.idle_ms == NEVER else group.idle_ms
        group.idle_ms = max(before_ms, -1 if last_ms is None else last_ms) if is_idle else NEVER

    def _forget(self) -> None:
        """Drops groups that had no members for FORGET_MS, and ids that were only asked for."""
        state = self._state
        newest = max((clock.newest_ms for clock in state.clocks.values()), default=-1)
        unproven = {
            group_id: runs.last_ms(events[-1]) for group_id, events in self._waiting.items() if events and not state.known(group_id).view
        }
        forgotten = set()
        self._resting.wake_idle_before(newest - FORGET_MS)
        idle = {group_id: one.idle_ms for group_id, one in state.groups.items() if one.idle_ms < NEVER}
        for group_id, at_ms in (idle | unproven).items():
            if newest <= at_ms + FORGET_MS or self._horizon_ms(group_id) <= at_ms + FORGET_MS:
                continue
            if self._waiting.get(group_id) and state.known(group_id).view:
                continue
            self._waiting.pop(group_id, None)
            state.groups.pop(group_id, None)
            self._ledgers.forget(group_id)
            forgotten.add(group_id)
        if forgotten:
            used = {i: {group: since for group, since in users.items() if group not in forgotten} for i, users in state.instances.items()}
            state.instances = {instance_id: users for instance_id, users in used.items() if users}


def _speaking(brokers: Collection[str]) -> Collection[str]:
    """The sources whose time counts for a group: the brokers, if there are any."""
    return [broker for broker in brokers if broker not in kinds.PSEUDO_BROKERS] or brokers
