"""A group that the specification's coordinator and the client model act out, as both logs of its broker tell it.

The lines come in the order in which Kafka 3.9 (Scala) or 4.x (Java) writes them. A subclass makes of each what is needed: text in
`episode.py`, events in the tests.
"""

from __future__ import annotations

import uuid
from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Final, NamedTuple

from coordinator_model import events as kinds
from coordinator_model.clients.client import Assignor
from coordinator_model.clients.simulation import Application, Beats, Connection, Simulation
from coordinator_model.errors import Error
from coordinator_model.specification.config import CoordinatorConfig
from coordinator_model.specification.coordinator import CoordinatorOutcome
from coordinator_model.specification.effects import Effect, MemberAdded, MemberRemoved, RemovalCause, StaticMemberReplaced, Transition
from coordinator_model.specification.member import StoredGroup
from coordinator_model.specification.requests import Answer, JoinAnswer, JoinGroup, LeaveGroup, OffsetCommit, Reply, Request, error_answer
from coordinator_model.specification.transitions import Trigger
from coordinator_model.states import State

# Reasons that a Java client gives: KIP-800, `AbstractCoordinator.requestRejoin` and `maybeLeaveGroup`.
CLOSED: Final = "the consumer is being closed"
STALLED: Final = "consumer poll timeout has expired."
_GIVEN_ID: Final = "need to re-join with the given member-id: {member}"
_REBALANCING: Final = "group is already rebalancing"
_LEFT_BEFORE: Final = "consumer pro-actively leaving the group"


class Said(NamedTuple):
    """What a line of the coordinator's log says. `kind` decides which fields are filled (coordinator_model/events.py)."""

    at_ms: int
    kind: str
    generation: int = -1
    member_id: str = ""
    member_ids: tuple[str, ...] = ()
    instance_id: str = ""
    trigger: Trigger | None = None
    reason: str = ""
    """The client's."""
    state: State = State.EMPTY
    member_count: int = -1
    static_count: int = -1


class Answered(NamedTuple):
    """A request and its answer: a line of the request log."""

    received_ms: int
    at_ms: int
    connection: Connection
    request: Request
    answer: Answer
    reason: str
    """The client's."""


class LoggedGroup(Simulation, ABC):
    """A simulation whose broker writes both logs."""

    def __init__(
        self, release: str, applications: Sequence[Application], *, group_id: str, assignor: Assignor, begin_ms: int = 0, salt: str = ""
    ) -> None:
        super().__init__(CoordinatorConfig.of(release), applications, group_id=group_id, assignor=assignor, begin_ms=begin_ms)
        self.scala = not release.startswith("4")
        self.member_count = 0
        self._salt = salt
        self._state = State.EMPTY
        self._generation = 0
        self._handled: dict[Connection, tuple[int, Request, str]] = {}
        self._reason = ""
        """The client's, in the request that is being handled."""
        self._moves = 0
        self._met: dict[Connection, int] = {}
        """How often the group had moved when a connection was made."""
        self._closing: set[int] = set()
        self._left: set[int] = set()
        self._given: dict[int, str] = {}

    @abstractmethod
    def say(self, said: Said) -> None:
        """A line of the coordinator's log."""

    @abstractmethod
    def answer(self, answered: Answered) -> None:
        """A line of the request log."""

    @abstractmethod
    def meet(self, connection: Connection) -> None:
        """The first request on a connection: the client has looked up its coordinator, and is connected to it now."""

    def resume(self, stored: StoredGroup, members: Sequence[Beats]) -> None:
        """Begin with a group that has been Stable for a while."""
        super().resume(stored, members)
        self._met.update(((beats.client, 0), 0) for beats in members)
        self._state, self._generation, self.member_count = State.STABLE, stored.generation, len(stored.members)

    def move_coordinator(self, at_ms: int, away_ms: int) -> None:
        """The group's partition moves to the other broker, which has it `away_ms` later."""
        super().move_coordinator(at_ms, away_ms)
        self._at(at_ms, self.moves)
        self._at(at_ms + away_ms, self.loaded)

    def moves(self) -> None:
        """The group was unloaded just now."""
        self.tell(Said(self.now_ms, kinds.GROUP_UNLOADED, generation=self._generation))
        self._moves += 1

    def loaded(self) -> None:
        """Its new coordinator has loaded the group just now."""
        group = self.coordinator.groups.get(self.group_id)
        self.member_count = 0
        if group is not None:
            self._generation, self._state, self.member_count = group.generation, group.state, len(group.members)
            self.tell(Said(self.now_ms, kinds.GROUP_LOADED, generation=group.generation))

    # What the simulation does, overheard.

    def _close(self, number: int) -> None:
        self._closing.add(number)
        super()._close(number)

    def handle(self, connection: Connection) -> None:
        """The coordinator handles the first request on a connection."""
        request = self.unanswered[connection][0]
        if connection not in self._met:
            self._met[connection] = self._moves
            self.meet(connection)
        if isinstance(request, JoinGroup):  # Kafka gives random ids
            prefix = request.instance_id or request.client_id
            unique = f"{self._salt}{self.group_id}/{self.now_ms}/{connection[0]}/{len(self.tickets)}"
            request = request._replace(fresh_member_id=f"{prefix}-{uuid.uuid5(uuid.NAMESPACE_OID, unique)}")
        self._reason = self._reason_of(connection[0], request)
        self._handled[connection] = (self.received_ms(connection), request, self._reason)
        ticket = len(self.tickets)
        self.tickets.append(connection)
        if self._met[connection] == self._moves:
            self.take_outcome(self.ask(request, ticket))
        else:  # the broker at its other end no longer has the group
            self.take_outcome(CoordinatorOutcome([Reply(ticket, self.now_ms, error_answer(request, Error.NOT_COORDINATOR))], []))
        self._reason = ""

    def received_ms(self, connection: Connection) -> int:  # noqa: ARG002 - for brokers that let requests wait
        """When the broker read the first request on a connection."""
        return self.now_ms

    def ask(self, request: Request, ticket: int) -> CoordinatorOutcome:
        """The coordinator answers a request."""
        return self.coordinator.handle(self.group_id, request, self.now_ms, ticket)

    def commit(self, number: int) -> None:
        """A consumer commits its offsets now."""
        client = self.clients[number]
        self._send(number, [OffsetCommit(client.member_id, client.generation, client.config.group_instance_id, 9)])

    def take_outcome(self, outcome: CoordinatorOutcome) -> None:
        """Write the log, and send the replies."""
        if not (outcome.effects or outcome.replies):
            return
        self.write_log([effect for _, effect in outcome.effects])
        for reply in outcome.replies:
            connection = self.tickets[int(reply.ticket)]
            received_ms, request, reason = self._handled[connection]
            at_ms = max(reply.at_ms, received_ms)
            if isinstance(reply.answer, JoinAnswer):
                self._note_join(connection[0], reply.answer, at_ms)
            self.answer(Answered(received_ms, at_ms, connection, request, reply.answer, reason))
        super().take_outcome(outcome)

    def _note_join(self, number: int, answer: JoinAnswer, at_ms: int) -> None:
        if answer.error is Error.MEMBER_ID_REQUIRED:
            self.tell(Said(at_ms, kinds.MEMBER_ID_ISSUED, member_id=answer.member_id))
            self._given[number] = answer.member_id
        elif answer.error is Error.NONE:
            self._given.pop(number, None)

    def _reason_of(self, number: int, request: Request) -> str:
        """The reason that a Java client gives in a JoinGroup or LeaveGroup."""
        if isinstance(request, LeaveGroup):
            self._left.add(number)
            return CLOSED if number in self._closing else STALLED
        if not isinstance(request, JoinGroup):
            return ""
        if number in self._given:
            return _GIVEN_ID.format(member=self._given[number])
        if request.member_id:
            return _REBALANCING
        return _LEFT_BEFORE if number in self._left else ""

    # The coordinator's log.

    def write_log(self, effects: Sequence[Effect]) -> None:
        """Write the coordinator's lines about what happened."""
        late: list[Said] = []  # Scala logs that a member left after what follows from it
        not_rejoined: list[str] = []
        not_synced = tuple(e.member_id for e in effects if isinstance(e, MemberRemoved) and e.cause is RemovalCause.SYNC_EXPIRED)
        kept = False
        for effect in effects:
            if not_rejoined and not _is_removal(effect, RemovalCause.JOIN_EXPIRED):
                self.tell(Said(effect.at_ms, kinds.MEMBERS_NOT_REJOINED, member_ids=tuple(not_rejoined)))
                not_rejoined.clear()
            if isinstance(effect, MemberAdded):
                self.member_count += 1
                self.tell(Said(effect.at_ms, kinds.MEMBER_ADDED, member_id=effect.member_id, instance_id=effect.instance_id or ""))
            elif isinstance(effect, StaticMemberReplaced):
                kept = self._state is State.STABLE
                self.tell(Said(effect.at_ms, kinds.STATIC_MEMBER_REPLACED, member_id=effect.old_member_id, instance_id=effect.instance_id))
            elif isinstance(effect, MemberRemoved) and not effect.pending:
                self.member_count -= 1
                if effect.cause is RemovalCause.JOIN_EXPIRED:
                    not_rejoined.append(effect.member_id)
                else:
                    self._write_removal(effect, late)
            elif isinstance(effect, Transition):
                kept = False
                self._write_transition(effect, not_synced)
        if kept:
            self.tell(Said(effects[-1].at_ms, kinds.STATIC_MEMBER_KEPT))
        for said in late:
            self.tell(said)

    def _write_removal(self, effect: MemberRemoved, late: list[Said]) -> None:
        if effect.cause is RemovalCause.SESSION_EXPIRED:
            self.tell(Said(effect.at_ms, kinds.MEMBER_FAILED, member_id=effect.member_id))
        elif effect.cause is RemovalCause.SYNC_EXPIRED:
            self.tell(Said(effect.at_ms, kinds.MEMBERS_NOT_SYNCED, member_ids=(effect.member_id,)))
        elif effect.cause is RemovalCause.LEAVE:
            said = Said(effect.at_ms, kinds.MEMBER_LEFT, member_id=effect.member_id, reason=self._reason)
            if self.scala:
                late.append(said)
            else:
                self.tell(said)

    def _write_transition(self, effect: Transition, not_synced: tuple[str, ...]) -> None:
        self._generation = effect.generation
        if effect.to_state is State.PREPARING_REBALANCE:
            self._write_beginning(effect, not_synced)
        elif effect.to_state is State.COMPLETING_REBALANCE:
            self.tell(Said(effect.at_ms, kinds.STABILIZED, generation=effect.generation))
        elif effect.to_state is State.STABLE:
            leader = self.coordinator.groups[self.group_id].leader or ""
            self.tell(Said(effect.at_ms, kinds.ASSIGNMENT_RECEIVED, generation=effect.generation, member_id=leader))
        elif effect.to_state is State.EMPTY:
            self.tell(Said(effect.at_ms, kinds.GROUP_EMPTY, generation=effect.generation))
        self._state = effect.to_state

    def _write_beginning(self, effect: Transition, not_synced: tuple[str, ...]) -> None:
        member = self.coordinator.groups[self.group_id].members.get(effect.member_id)
        self.tell(
            Said(
                effect.at_ms,
                kinds.PREPARING_REBALANCE,
                generation=effect.generation,
                member_id=effect.member_id,
                member_ids=not_synced,
                instance_id=(member.instance_id or "") if member is not None else "",
                trigger=effect.trigger,
                reason=self._reason,
            )
        )

    def tell(self, said: Said) -> None:
        """Says it, with the state that the group has."""
        group = self.coordinator.groups.get(self.group_id)
        static = len(group.static_members) if group is not None else 0
        self.say(said._replace(state=self._state, member_count=self.member_count, static_count=static))


def _is_removal(effect: Effect, cause: RemovalCause) -> bool:
    return isinstance(effect, MemberRemoved) and effect.cause is cause and not effect.pending
