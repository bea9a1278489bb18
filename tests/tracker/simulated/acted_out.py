"""Groups that the specification's coordinator and the client model act out: the events of both logs, and what truly happened.

The lines are those that jobs/generate/logged_group.py writes; what happened is in the specification's effects.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial

from coordinator_model import events as kinds
from coordinator_model.clients.simulation import Application, Connection
from coordinator_model.errors import Error
from coordinator_model.events import Event, MemberEntry
from coordinator_model.specification.coordinator import CoordinatorOutcome
from coordinator_model.specification.effects import Effect, MemberAdded, MemberRemoved, StaticMemberReplaced, Transition
from coordinator_model.specification.requests import Request, SyncGroup
from coordinator_model.specification.transitions import Trigger
from coordinator_model.states import State
from jobs.generate.logged_group import Answered, LoggedGroup, Said
from jobs.generate.sentences import Words
from tests.clients.watched import round_robin
from tests.tracker.logged import request_line
from tests.tracker.story import START_MS

GROUP = "orders"
BROKER, OTHER = "broker-1", "broker-2"


@dataclass
class TrueRebalance:
    """A rebalance as the specification went through it."""

    started_ms: int
    generation: int | None = -1
    joined_ms: int | None = None
    ended_ms: int = -1
    outcome: str = ""
    trigger: str = ""
    before: int = 0
    after: int | None = 0
    joined: set[str] = field(default_factory=set)
    left: set[str] = field(default_factory=set)


def dealt(digest: str) -> tuple[str, ...]:
    """The partitions of an assignment, as `round_robin` writes them."""
    return tuple(f"t-{number}" for number in bytes.fromhex(digest).decode().split())


class EventPen:
    """Writes events, as the parsers read them from both logs."""

    def __init__(self, release: str, applications: Sequence[Application], partitions: Callable[[str], tuple[str, ...]] = dealt) -> None:
        self.events: list[Event] = []
        self._partitions = partitions
        self._applications = applications
        self._words = Words(release)
        self._scala = not release.startswith("4")
        self._broker = BROKER
        self._connected: dict[Connection, str] = {}

    def say(self, said: Said) -> None:
        if said.kind == kinds.STATIC_MEMBER_KEPT:
            return  # the line names no group
        leads = said.kind == kinds.ASSIGNMENT_RECEIVED
        counts = said.kind in {kinds.ASSIGNMENT_RECEIVED, kinds.STABILIZED, kinds.GROUP_LOADED}
        prepares = said.kind == kinds.PREPARING_REBALANCE
        self._add(
            Event(
                self._broker,
                "coordinator",
                "coordinator.log",
                0,
                START_MS + said.at_ms,
                START_MS + said.at_ms,
                said.kind,
                group_id=GROUP,
                generation=-1 if said.kind == kinds.GROUP_LOADED and not self._scala else said.generation,
                member_id="" if leads else said.member_id,
                members=() if prepares else tuple(MemberEntry(m, "", 0, "", None) for m in said.member_ids),
                instance_id=said.instance_id if not prepares or "instance" in self._words.reasons[said.trigger].groups else "",
                leader_id=said.member_id if leads else "",
                reason=self._words.reason(said, GROUP).removesuffix(".") if prepares else said.reason,
                member_count=said.member_count if counts else -1,
                state=said.state.value if said.kind in {kinds.MEMBER_ADDED, kinds.MEMBER_ID_ISSUED} else "",
            )
        )

    def answer(self, answered: Answered) -> None:
        line = request_line(0, answered.received_ms, answered.at_ms, answered.connection, answered.request, answered.answer)
        config = self._applications[answered.connection[0]].config
        leaves = line.kind == kinds.LEAVE_GROUP
        self._add(
            line._replace(
                broker=self._connected[answered.connection],
                group_id=GROUP,
                correlation_id=len(self.events) + 1,
                client_id=config.client_id,
                instance_id=config.group_instance_id or "",
                reason=answered.reason,
                protocols=tuple(protocol._replace(topics=("t",)) for protocol in line.protocols),
                members=tuple(m._replace(reason=answered.reason if leaves else "", topics=("t",)) for m in line.members),
                assignments=tuple(given._replace(partitions=self._partitions(given.digest)) for given in line.assignments),
            )
        )

    def meet(self, connection: Connection) -> None:
        self._connected[connection] = self._broker

    def move(self) -> None:
        self._broker = OTHER if self._broker == BROKER else BROKER

    def _add(self, event: Event) -> None:
        position = len(self.events) + 1
        beats = {"positions": (position,)} if event.kind == kinds.HEARTBEAT else {}
        self.events.append(event._replace(position=position, **beats))


class FailingWrites:
    """A LoggedGroup with `append_errors`: spans of time in which its broker cannot store assignments, and the error."""

    append_errors: Sequence[tuple[int, int, Error]] = ()

    def ask(self, request: Request, ticket: int) -> CoordinatorOutcome:
        error = next((e for begin, end, e in self.append_errors if begin <= self.now_ms < end), Error.NONE)
        if not isinstance(request, SyncGroup) or error is Error.NONE:
            return super().ask(request, ticket)
        outcome = self.coordinator.handle(self.group_id, request, self.now_ms, ticket, append_error=error)
        if any(isinstance(e, Transition) and e.trigger is Trigger.ASSIGNMENT_APPEND_FAILED for _, e in outcome.effects):
            self.tell(Said(self.now_ms, kinds.ASSIGNMENT_RECEIVED, generation=request.generation, member_id=request.member_id))
        return outcome


class Broker(FailingWrites, LoggedGroup):
    """A simulation whose broker writes both logs."""

    def __init__(
        self,
        release: str,
        applications: Sequence[Application],
        *,
        append_errors: Sequence[tuple[int, int, Error]] = (),
        hangs: Sequence[tuple[int, int]] = (),
    ) -> None:
        """`hangs`: spans of time in which it reads requests and handles none of them; its timers go on."""
        self._hangs = hangs
        self._arrived: dict[Connection, int] = {}
        self._pen = EventPen(release, applications)
        super().__init__(release, applications, group_id=GROUP, assignor=partial(round_robin, 6))
        self.append_errors = append_errors
        self.events = self._pen.events
        self.rebalances: list[TrueRebalance] = []
        self._members: set[str] = set()
        self._came: set[str] = set()
        self._gone: set[str] = set()

    def say(self, said: Said) -> None:
        self._pen.say(said)

    def answer(self, answered: Answered) -> None:
        self._pen.answer(answered)

    def meet(self, connection: Connection) -> None:
        self._pen.meet(connection)

    def handle(self, connection: Connection) -> None:
        until_ms = next((end for begin, end in self._hangs if begin <= self.now_ms < end), None)
        self._arrived.setdefault(connection, self.now_ms)
        if until_ms is None:
            super().handle(connection)
        else:
            self._at(until_ms, partial(self.handle, connection))

    def received_ms(self, connection: Connection) -> int:
        return self._arrived.pop(connection)

    def moves(self) -> None:
        running = self._running()
        if running is not None:
            running.outcome, running.ended_ms = "ABANDONED", self.now_ms
            if running.joined_ms is None:
                self._settle(running)
                running.generation, running.after = None, None
        super().moves()
        self._pen.move()

    def loaded(self) -> None:
        super().loaded()
        group = self.coordinator.groups.get(GROUP)
        self._members = set(group.members) if group is not None else set()
        self._came, self._gone = set(), set()

    def write_log(self, effects: Sequence[Effect]) -> None:
        super().write_log(effects)
        for effect in effects:
            self._note(effect)

    def _note(self, effect: Effect) -> None:
        if isinstance(effect, MemberAdded):
            self._members.add(effect.member_id)
            self._came.add(effect.member_id)
        elif isinstance(effect, StaticMemberReplaced):
            for members in (self._members, self._came):
                if effect.old_member_id in members:
                    members.remove(effect.old_member_id)
                    members.add(effect.member_id)
        elif isinstance(effect, MemberRemoved) and not effect.pending:
            self._members.discard(effect.member_id)
            if effect.member_id in self._came:
                self._came.remove(effect.member_id)
            else:
                self._gone.add(effect.member_id)
        elif isinstance(effect, Transition) and effect.to_state is not State.DEAD:
            self._note_transition(effect)

    def _note_transition(self, effect: Transition) -> None:
        at_ms, running = effect.at_ms, self._running()
        if effect.to_state is State.PREPARING_REBALANCE:
            if running is not None:
                running.outcome, running.ended_ms = "SUPERSEDED", at_ms
            before = len(self._members) - len(self._came) + len(self._gone)
            self.rebalances.append(TrueRebalance(at_ms, trigger=effect.trigger.value, before=before))
            return
        assert running is not None
        if effect.to_state is State.COMPLETING_REBALANCE:
            running.joined_ms, running.generation, running.after = at_ms, effect.generation, len(self._members)
            self._settle(running)
        elif effect.to_state is State.STABLE:
            running.outcome, running.ended_ms = "COMPLETED", at_ms
        elif effect.to_state is State.EMPTY:
            running.outcome, running.ended_ms, running.generation = "EMPTIED", at_ms, effect.generation
            self._settle(running)

    def _running(self) -> TrueRebalance | None:
        return self.rebalances[-1] if self.rebalances and not self.rebalances[-1].outcome else None

    def _settle(self, running: TrueRebalance) -> None:
        running.joined, running.left = self._came, self._gone
        self._came, self._gone = set(), set()
