"""One group under observation: events in, rows out.

The tracker believes the broker. Every line corrects its estimate of the group. It writes a row for each fact that is certain, and
concludes from silence only once the silent broker writes lines again.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Collection, Iterator, Mapping
from itertools import islice
from typing import Any, Final

from coordinator_model import events as kinds
from coordinator_model.diagnosis import bursts, clients_alone, consumer_findings, departures, incidents, troubles
from coordinator_model.events import Event
from coordinator_model.specification.timers import NEVER
from coordinator_model.states import State
from coordinator_model.tracker import closing, coordinators, expiry, failed_writes, hindsight, holes, phases, prediction, unended
from coordinator_model.tracker.consumer import calm, following, migrations, undecided
from coordinator_model.tracker.consumer import closing as consumer_closing
from coordinator_model.tracker.consumer import prediction as consumer_prediction
from coordinator_model.tracker.consumer.without_logs import client_words, polled
from coordinator_model.tracker.lines import client_lines, coordinator_lines, request_lines, stored
from coordinator_model.tracker.order import same_line, sort_key
from coordinator_model.tracker.quiet import runs, steady
from coordinator_model.view import reasons
from coordinator_model.view.clock import BrokerClock
from coordinator_model.view.emit import Emitter
from coordinator_model.view.rows import REBALANCES, Row, ref
from coordinator_model.view.settings import TrackerSettings
from coordinator_model.view.view import View

MOVE_GUARD_MS = 5_000
LOADED_GUARD_MS = 30_000
"""A coordinator that was just replaced is not believed again for so long unless it loads the group: brokers' clocks differ. Where a line
says that the new one has loaded it, such a line is missed of one that does not."""

_UNSTEADY_MS: Final = 1_000
_UNSTEADY_AT_MOST_MS: Final = 8_000
"""How long a group is followed event by event before it is looked at again whether it is calm: longer each time it is not."""

_BEYOND_REQUESTS: Final = frozenset(
    {kinds.GROUP_LOADED, kinds.GROUP_UNLOADED, kinds.GROUP_DEAD, kinds.GROUP_CONVERTED, kinds.CONSUMER_GROUP_LOG}
)
"""Lines about changes of the group that no request shows."""

_SAY_NOTHING_OF_THE_STATE: Final[dict[str, Callable[[Emitter, Event], None]]] = {
    kinds.FIND_COORDINATOR: coordinators.on_find_coordinator,
    kinds.OFFSET_FETCH: request_lines.offset_fetch,
    kinds.COORDINATOR_NOTE: troubles.note,
    kinds.NO_MEMBER_REJOINED: troubles.note,
    **dict.fromkeys(kinds.SHARE_RECORDS, consumer_findings.acknowledged_late),
}
"""Lines that neither renew a session nor show which broker coordinates the group."""

_WAITS: Final[tuple[tuple[Callable[[Emitter], int], Callable[..., None]], ...]] = (
    (hindsight.next_ms, prediction.close_due),
    (departures.next_ms, departures.close_due),
    (closing.next_ms, closing.close_due),
    (incidents.next_ms, incidents.close_due),
    (consumer_closing.next_ms, consumer_closing.close_due),
    (consumer_prediction.next_ms, consumer_prediction.close_due),
    (bursts.next_ms, bursts.close_due),
    (clients_alone.next_ms, clients_alone.close_due),
)
"""What waits for its time, but for sessions: when the next of it is due, and what does it. First comes what decides other things."""

_NO_CLOCKS: Final[Mapping[str, BrokerClock]] = {}
_UNHEARD: Final = BrokerClock()


class GroupTracker:
    """Follows one group. `observe` must be called in the order of order.sort_key."""

    def __init__(self, view: View, settings: TrackerSettings, clocks: Mapping[str, BrokerClock] = _NO_CLOCKS) -> None:
        self.view = view
        self.settings = settings
        self._clocks = clocks
        self.rows: list[Row] = []
        self._last: Event | None = None
        self._at_ms = view.horizon_ms  # followed up to here
        self._is_new = False  # an event came since, or something was done
        self._dues = self._due_times()
        self._next_ms = self._next_look_ms()  # when to look at anything but sessions
        self._session_ms = expiry.next_ms(self)  # no session runs out before

    @property
    def clock(self) -> BrokerClock:
        """How far the log of the group's coordinator was read, and in which seconds it wrote lines."""
        return self._clocks.get(self.view.broker, _UNHEARD)

    def emit(self, table: str, stopped: Mapping[str, int] | None = None, **values: Any) -> None:
        """Adds a finished row. Of lines without times it has no durations."""
        if table == REBALANCES and values["started_at"] < kinds.TIMES_FROM_MS:
            values |= dict.fromkeys((name for name in values if name.endswith("_ms")), None)
        self.rows.append(Row(table, {"group_id": self.view.group_id, **values}, stopped or {}))

    def follow(self, events: Collection[Event]) -> None:
        """Takes events in the order of order.sort_key: signs of life at once where nothing happens in the group, else one by one."""
        signs, others = deque[Event](), deque[Event]()
        for event in events:
            (signs if runs.is_sign(event) else others).append(event)
        begun: list[Event] = []
        step_ms = _UNSTEADY_MS
        while others or signs or begun:
            protocol, due_ms = (calm, self._look_ms(NEVER)) if self.view.consumer_protocol else (steady, NEVER)
            if protocol.is_calm(self):
                until = min(others[0].at_ms if others else NEVER, due_ms)
                begun, last = protocol.take(self, [*begun, *_before(signs, until)], until)
                if last is not None:
                    self._last, step_ms = last, _UNSTEADY_MS
                    self._at_ms = max(self._at_ms, last.at_ms)
                    self._note_due()
            starts = [event.at_ms for event in (*begun, *islice(signs, 1), *islice(others, 1))]
            until = min(starts, default=0) + step_ms
            step_ms = min(2 * step_ms, _UNSTEADY_AT_MOST_MS)
            now, begun = runs.divided([*begun, *_before(signs, until)], until)
            for event in sorted([*runs.one_by_one(now), *_before(others, until)], key=sort_key):
                self.observe(event)

    def observe(self, event: Event) -> None:
        """Takes one event, after whatever was due before it."""
        if self._last is not None and same_line(self._last, event):
            return
        self._last = event
        self.advance(event.at_ms)
        view, failed, since_ms = self.view, False, self.view.since_ms
        if self._observe_others(event):
            return
        if event.source == "coordinator":
            handler = coordinator_lines.HANDLERS.get(event.kind)
            if handler is None or not self._authorise(event):
                return
            view.logged = True
        else:
            handler = request_lines.HANDLERS[event.kind]
            if request_lines.authoritative(event) and not self._authorise(event):
                return
            incidents.watch(self, event)
            failed = failed_writes.not_stored(self, event)
            if event.error_code in failed_writes.NOT_IN_CHARGE and not failed:
                self._refused(event)
                return
        self._note_release(event)
        self._note_conversion(event)
        if view.consumer_protocol and event.kind != kinds.GROUP_CONVERTED:
            polled.give_way(self)
            following.observe(self, event)
            self._note_due()
            return
        if event.source == kinds.COORDINATOR_SOURCE:
            holes.note(self, event)
        handler(self, event)
        if failed:
            prediction.drop(self, event.at_ms)
        elif event.source != "coordinator":
            prediction.observe(self, event)
        elif event.kind in _BEYOND_REQUESTS or (event.kind == kinds.GROUPS_CLEANED and view.state is State.DEAD):
            prediction.drop(self, event.at_ms)
        self._note_due(event if view.since_ms == since_ms and _concerns_one_session(event) else None)

    def _note_conversion(self, event: Event) -> None:
        """The group is classic again, as another line shows than the one that says so."""
        if self.view.consumer_protocol and migrations.proves_classic(self.view, event):
            migrations.become_classic_group(self, event)
            prediction.drop(self, event.at_ms)

    def _refused(self, event: Event) -> None:
        """Takes an answer that the broker is not in charge of the group."""
        view = self.view
        member = view.members.get(event.member_id) if event.kind == kinds.LEAVE_GROUP else None
        if member is not None and reasons.of_leave(event.reason, by_admin=False) == reasons.POLL_TIMEOUT:
            member.says_it_stalled(event)  # it gives its id up, whatever the answer is
        if view.consumer is not None and event.broker == (view.broker or event.broker):
            consumer_prediction.not_in_charge(view.consumer, event)
        elif event.broker == view.broker and not view.consumer_protocol:
            failed_writes.take(self, event)
            prediction.drop(self, event.at_ms)
        else:
            return
        self._note_due()

    def _observe_others(self, event: Event) -> bool:
        """Takes an event that does not come from the group's coordinator: it moves no broker and no timer."""
        if event.kind in _SAY_NOTHING_OF_THE_STATE:
            _SAY_NOTHING_OF_THE_STATE[event.kind](self, event)
        elif event.source in kinds.PSEUDO_BROKERS:
            if event.broker not in self.view.brokers:
                self.view.brokers.append(event.broker)
            stored.HANDLERS[event.kind](self, event)
            self._note_due()
        elif event.source != kinds.CLIENT_SOURCE:
            return False
        else:
            if clients_alone.is_unheard(self):
                clients_alone.take(self, event, client_lines.member_of(self, event))
            if self.view.consumer_protocol:
                client_words.take(self, following.view_of(self), event)
            elif event.kind in client_lines.HANDLERS:
                client_lines.HANDLERS[event.kind](self, event)
            self._note_due()
        return True

    def advance(self, now_ms: int) -> None:
        """Does what is due up to `now_ms`, each thing at its own time: so it does not matter how often this is called."""
        while (look_ms := self._look_ms(now_ms)) <= now_ms:
            self._at_ms = look_ms
            self._do_due()
        self._at_ms = max(self._at_ms, now_ms)

    def _do_due(self) -> None:
        """Does what is due now."""
        now_ms, before = self._at_ms, (*self._dues, self._session_ms)
        session_is_due = self._session_ms <= now_ms
        if session_is_due:
            expiry.claim_due(self, now_ms)
        self._close(now_ms)
        if session_is_due or self._due_times() != self._dues:
            self._note_due()  # what was done may have made other things due
        if (*self._dues, self._session_ms) == before:  # what is still due waits for something else
            self._is_new = False
            self._next_ms = self._next_look_ms()

    def _close(self, now_ms: int, *, flush: bool = False) -> None:
        """Does what has waited long enough. `flush`: nothing more will come."""
        for _, close_due in _WAITS:
            close_due(self, now_ms, flush=flush)

    def _look_ms(self, now_ms: int) -> int:
        """When anything is to be done next. Looks at all members only if a session may run out by then: a group may have thousands."""
        if self._session_ms <= now_ms:
            self._session_ms = expiry.next_ms(self)
        return min(self._next_ms, self._look_at(self._session_ms))

    def _next_look_ms(self) -> int:
        due_ms = min(self._dues)
        return due_ms if due_ms > self._at_ms else min(map(self._look_at, self._dues))

    def _look_at(self, due_ms: int) -> int:
        """When to look at what is due then: at that time. If it still waits for something else, when that has come."""
        if due_ms > self._at_ms:
            return due_ms
        return self._at_ms if self._is_new else NEVER

    def _note_due(self, event: Event | None = None) -> None:
        """Notes what is due next. `event`: it moved no session but that of its sender."""
        self._dues = self._due_times()
        self._is_new = True
        self._next_ms = self._next_look_ms()
        if event is None:
            self._session_ms = expiry.next_ms(self)
        else:
            self._session_ms = min(self._session_ms, expiry.next_of(self, (event.member_id, event.answer_member_id)))

    def flush(self) -> None:
        """Writes what still waits for more lines: the input ended."""
        self._close(self.view.horizon_ms, flush=True)
        self._note_due()

    def hear_clients(self, events: Collection[Event]) -> None:
        """Takes what clients say after the logs of all brokers have ended, which `flush` has told: they move no time of the group."""
        for event in events:
            clients_alone.close_due(self, event.at_ms)
            clients_alone.take(self, event, client_lines.member_of(self, event))
        clients_alone.close_due(self, self.view.horizon_ms, flush=True)

    def next_ms(self) -> int | None:
        """When there is work next, if no event comes; NEVER: what waits, waits for events or their end. None: nothing waits."""
        look_ms = min(self._look_ms(NEVER), unended.next_ms(self))
        return None if look_ms == min(*self._dues, self._session_ms) == NEVER else look_ms

    def _due_times(self) -> tuple[int, ...]:
        """When each kind of thing but a session is due next."""
        return tuple(next_ms(self) for next_ms, _ in _WAITS)

    def _authorise(self, event: Event) -> bool:
        """Whether the event's broker coordinates the group; notes the move when another broker does from now on."""
        view = self.view
        if event.kind == kinds.GROUP_LOADED:
            coordinators.forget(self)
        coordinators.on_answer(self, event)
        if event.broker == view.broker:
            return True
        if event.broker not in view.brokers:
            view.brokers.append(event.broker)
        if not view.broker:
            view.broker, view.since_ms = event.broker, event.at_ms
            return True
        if event.kind in (kinds.GROUP_UNLOADED, kinds.MEMBER_LOADED) or event.state == kinds.GIVEN_UP:
            return False  # another broker that gives the group up, or reads it back, does not coordinate it yet
        guard_ms = LOADED_GUARD_MS if view.loaded_ms >= view.since_ms else MOVE_GUARD_MS
        if event.kind != kinds.GROUP_LOADED and event.at_ms < view.since_ms + guard_ms:
            return False
        self._moved(event)
        return True

    def _note_release(self, event: Event) -> None:
        """Takes the release that the coordinator ran then. What the specification followed was by the rules of another one."""
        view = self.view
        release = self._clocks.get(event.broker, _UNHEARD).release_at(event.at_ms) or self.settings.kafka_version
        if release == view.release:
            return
        view.release = release
        if view.prediction.group is not None:
            prediction.drop(self, event.at_ms)
        if view.consumer is not None:
            consumer_prediction.drop(view.consumer, undecided.RELEASE)

    def _moved(self, event: Event) -> None:
        """Another broker is the coordinator now. It starts from what was stored (onClassicGroupLoaded / onLoadGroup)."""
        view = self.view
        signs = [ref(event)]
        is_hole = not view.consumer_protocol and holes.note(self, event, moved=True)
        at_ms = max(event.received_ms, view.completed_ms)  # by then: the event itself may begin a rebalance
        phases.abandon(self, at_ms, signs)
        prediction.drop(self, at_ms)
        if view.consumer is not None:
            consumer_prediction.note_reload(view.consumer, event)
        incidents.coordinator_moved(self, at_ms, view.broker, event.broker, ref(event))
        view.moved_ms = at_ms
        recent = [old.client_id for old in view.ended if old.at_ms >= at_ms - incidents.SPAN_MS]
        view.moved_clients = sorted({*(member.client_name() for member in view.members.values()), *recent} - {""})
        was = view.state
        if was is not None:
            phases.change_state(self, at_ms, State.DEAD, reasons.COORDINATOR_MOVED, signs)
        view.broker, view.since_ms, view.logged, view.unloaded_ms = event.broker, at_ms, False, -1
        view.forget_requests()
        phases.read_back(self, at_ms, signs)
        for member in view.members.values():
            member.renewed_ms = max(member.renewed_ms, at_ms)
        if was is not None and event.kind != kinds.GROUP_LOADED:
            populated = bool(view.members) or is_hole or (view.stored is None and view.member_count > 0)
            phases.loaded(self, at_ms, signs, populated=populated)


def _before(events: deque[Event], at_ms: int) -> Iterator[Event]:
    """Takes out the events before a time; they are in the order of time."""
    while events and events[0].at_ms < at_ms:
        yield events.popleft()


def _concerns_one_session(event: Event) -> bool:
    """Whether a request moves no other session than that of its sender."""
    if event.kind in (kinds.HEARTBEAT, kinds.OFFSET_COMMIT):
        return True
    return event.kind in (kinds.JOIN_GROUP, kinds.SYNC_GROUP) and not event.members and len(event.assignments) <= 1
