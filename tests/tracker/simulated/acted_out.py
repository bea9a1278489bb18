"""Groups that the specification's coordinator and the client model act out, as both logs of a broker tell them.

The coordinator's log has the lines of Kafka 3.9 or 4.2, in the order in which that release writes them. What truly happened is known
too: the specification's effects.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from coordinator_model import events as kinds
from coordinator_model.clients.simulation import Application, Connection, Simulation
from coordinator_model.errors import Error
from coordinator_model.events import Event, MemberEntry
from coordinator_model.specification.config import CoordinatorConfig
from coordinator_model.specification.coordinator import CoordinatorOutcome
from coordinator_model.specification.effects import MemberAdded, MemberRemoved, RemovalCause, StaticMemberReplaced, Transition
from coordinator_model.specification.requests import Answer, JoinAnswer, JoinGroup, Request, SyncGroup
from coordinator_model.specification.transitions import Trigger
from coordinator_model.states import State
from tests.tracker.logged import request_line
from tests.tracker.story import START_MS

GROUP = "orders"
BROKER, OTHER = "broker-1", "broker-2"
CLOSED = "the consumer is being closed"
STALLED = "consumer poll timeout has expired."


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


class Broker(Simulation):
    """A simulation whose broker writes both logs. `append_errors`: spans of time in which it cannot store assignments, and the error."""

    def __init__(
        self,
        release: str,
        applications: Sequence[Application],
        *,
        append_errors: Sequence[tuple[int, int, Error]] = (),
        partitions: int = 6,
    ) -> None:
        super().__init__(CoordinatorConfig.of(release), applications, partitions=partitions)
        self.scala = not release.startswith("4")
        self.append_errors = append_errors
        self.broker = BROKER
        self.events: list[Event] = []
        self.rebalances: list[TrueRebalance] = []
        self.removed: dict[str, RemovalCause] = {}
        self._members: set[str] = set()
        self._came: set[str] = set()
        self._gone: set[str] = set()
        self._handled: dict[Connection, tuple[int, Request]] = {}
        self._line = 0
        self._generation = 0

    def move_coordinator(self, at_ms: int, away_ms: int) -> None:
        """The group's partition moves to the other broker, which has it `away_ms` later."""
        super().move_coordinator(at_ms, away_ms)
        self._at(at_ms, self._moves)
        self._at(at_ms + away_ms, self._loaded)

    def _moves(self) -> None:
        running = self.rebalances[-1] if self.rebalances and not self.rebalances[-1].outcome else None
        if running is not None:
            running.outcome, running.ended_ms = "ABANDONED", self.now_ms
            if running.joined_ms is None:
                self._settle(running)
                running.generation, running.after = None, None
        self._log(self.now_ms, kinds.GROUP_UNLOADED, generation=self._generation)

    def _loaded(self) -> None:
        self.broker = OTHER if self.broker == BROKER else BROKER
        group = self.coordinator.groups.get("g")
        self._members = set(group.members) if group is not None else set()
        self._came, self._gone = set(), set()
        if group is not None:
            self._generation = group.generation
            self._log(self.now_ms, kinds.GROUP_LOADED, generation=group.generation if self.scala else -1, count=len(self._members))

    # What the simulation does, overheard.

    def handle(self, connection: Connection) -> None:
        request = self.unanswered[connection][0]
        if isinstance(request, JoinGroup):  # two processes with one client id get different member ids
            prefix, _, life = request.fresh_member_id.rpartition("-")
            request = request._replace(fresh_member_id=f"{prefix}-{connection[0]}.{life}")
        self._handled[connection] = (self.now_ms, request)
        ticket = len(self.tickets)
        self.tickets.append(connection)
        error = next((e for begin, end, e in self.append_errors if begin <= self.now_ms < end), Error.NONE)
        if not isinstance(request, SyncGroup):
            error = Error.NONE
        outcome = self.coordinator.handle("g", request, self.now_ms, ticket, append_error=error)
        if error is not Error.NONE and any(_of(e, Trigger.ASSIGNMENT_APPEND_FAILED) for _, e in outcome.effects):
            self._log(self.now_ms, kinds.ASSIGNMENT_RECEIVED, generation=request.generation, leader=request.member_id)
        self.take_outcome(outcome)

    def take_outcome(self, outcome: CoordinatorOutcome) -> None:
        if not (outcome.effects or outcome.replies):
            return
        self._write_log([effect for _, effect in outcome.effects])
        for reply in outcome.replies:
            connection = self.tickets[int(reply.ticket)]
            received_ms, request = self._handled[connection]
            self._write_request(connection, received_ms, max(reply.at_ms, received_ms), request, reply.answer)
        super().take_outcome(outcome)

    # The coordinator's log.

    def _write_log(self, effects: Sequence[object]) -> None:
        if self.scala:  # Scala logs that a member left after what follows from it
            leaves = [e for e in effects if isinstance(e, MemberRemoved) and e.cause is RemovalCause.LEAVE and not e.pending]
            for effect in effects:
                self._write_effect(effect, silent=effect in leaves)
            for leave in leaves:
                self._log(leave.at_ms, kinds.MEMBER_LEFT, member=leave.member_id, reason=self._why_left(leave))
        else:
            for effect in effects:
                self._write_effect(effect, silent=False)

    def _write_effect(self, effect: object, *, silent: bool) -> None:
        if isinstance(effect, MemberAdded):
            self._members.add(effect.member_id)
            self._came.add(effect.member_id)
            self._log(effect.at_ms, kinds.MEMBER_ADDED, member=effect.member_id, instance=effect.instance_id or "")
        elif isinstance(effect, StaticMemberReplaced):
            for members in (self._members, self._came):
                if effect.old_member_id in members:
                    members.remove(effect.old_member_id)
                    members.add(effect.member_id)
            self._log(effect.at_ms, kinds.STATIC_MEMBER_REPLACED, member=effect.old_member_id, instance=effect.instance_id)
        elif isinstance(effect, MemberRemoved) and not effect.pending:
            self._members.discard(effect.member_id)
            self.removed[effect.member_id] = effect.cause
            if effect.member_id in self._came:
                self._came.remove(effect.member_id)
            else:
                self._gone.add(effect.member_id)
            self._write_removal(effect, silent=silent)
        elif isinstance(effect, Transition):
            self._write_transition(effect)

    def _write_removal(self, effect: MemberRemoved, *, silent: bool) -> None:
        if effect.cause is RemovalCause.SESSION_EXPIRED:
            self._log(effect.at_ms, kinds.MEMBER_FAILED, member=effect.member_id)
        elif effect.cause is RemovalCause.JOIN_EXPIRED:
            self._log(effect.at_ms, kinds.MEMBERS_NOT_REJOINED, members=(effect.member_id,))
        elif effect.cause is RemovalCause.SYNC_EXPIRED:
            self._log(effect.at_ms, kinds.MEMBERS_NOT_SYNCED, members=(effect.member_id,))
        elif effect.cause is RemovalCause.LEAVE and not silent:
            self._log(effect.at_ms, kinds.MEMBER_LEFT, member=effect.member_id, reason=self._why_left(effect))

    def _write_transition(self, effect: Transition) -> None:
        at_ms, self._generation = effect.at_ms, effect.generation
        if effect.to_state is State.DEAD:
            return
        running = self.rebalances[-1] if self.rebalances and not self.rebalances[-1].outcome else None
        if effect.to_state is State.PREPARING_REBALANCE:
            if running is not None:
                running.outcome, running.ended_ms = "SUPERSEDED", at_ms
            before = len(self._members) - len(self._came) + len(self._gone)
            self.rebalances.append(TrueRebalance(at_ms, trigger=effect.trigger.value, before=before))
            reason = _reason(effect, self._named(effect.member_id), self._why_left(effect))
            if effect.trigger is Trigger.LEAVE and not self.scala:
                reason = f"explicit `LeaveGroup` request for ({self._named(effect.member_id)}) members"
            self._log(at_ms, kinds.PREPARING_REBALANCE, generation=effect.generation, reason=reason, member=effect.member_id)
            return
        assert running is not None
        if effect.to_state is State.COMPLETING_REBALANCE:
            running.joined_ms, running.generation, running.after = at_ms, effect.generation, len(self._members)
            self._settle(running)
            self._log(at_ms, kinds.STABILIZED, generation=effect.generation, count=len(self._members))
        elif effect.to_state is State.STABLE:
            running.outcome, running.ended_ms = "COMPLETED", at_ms
            leader = self.coordinator.groups["g"].leader or ""
            self._log(at_ms, kinds.ASSIGNMENT_RECEIVED, generation=effect.generation, leader=leader)
        elif effect.to_state is State.EMPTY:
            running.outcome, running.ended_ms, running.generation = "EMPTIED", at_ms, effect.generation
            self._settle(running)
            self._log(at_ms, kinds.GROUP_EMPTY, generation=effect.generation)

    def _settle(self, running: TrueRebalance) -> None:
        running.joined = {self._named(m) for m in self._came}
        running.left = {self._named(m) for m in self._gone}
        self._came, self._gone = set(), set()

    def _log(
        self,
        at_ms: int,
        kind: str,
        *,
        generation: int = -1,
        member: str = "",
        members: Iterable[str] = (),
        instance: str = "",
        leader: str = "",
        reason: str = "",
        count: int = -1,
    ) -> None:
        self._add(
            "coordinator",
            at_ms,
            at_ms,
            kind,
            generation=generation,
            member_id=self._named(member),
            members=tuple(MemberEntry(self._named(m), "", 0, "", None) for m in members),
            instance_id=instance,
            leader_id=self._named(leader),
            reason=reason,
            member_count=len(self._members) if kind == kinds.ASSIGNMENT_RECEIVED else count,
        )

    def _why_left(self, effect: MemberRemoved | Transition) -> str:
        client = next(
            (c for c in self.applications if c.closes_ms is not None and abs(c.closes_ms - effect.at_ms) <= 2 * self.delay_ms), None
        )
        prefix = effect.member_id.rpartition("-")[0]
        return CLOSED if client is not None and client.config.client_id == prefix else STALLED

    # The request log.

    def _write_request(self, connection: Connection, received_ms: int, at_ms: int, request: Request, answer: Answer) -> None:
        if answer.error is Error.MEMBER_ID_REQUIRED and isinstance(answer, JoinAnswer):
            self._log(at_ms, kinds.MEMBER_ID_ISSUED, member=answer.member_id)
        self._line += 1
        config = self.applications[connection[0]].config
        line = request_line(self._line, received_ms, at_ms, connection, request, answer)
        leaves = line.kind == kinds.LEAVE_GROUP
        reason = self._why_left(MemberRemoved(received_ms, line.member_id, False, RemovalCause.LEAVE)) if leaves else ""
        self.events.append(
            line._replace(
                broker=self.broker,
                group_id=GROUP,
                client_id=config.client_id,
                instance_id=config.group_instance_id or "",
                member_id=self._named(line.member_id),
                answer_member_id=self._named(line.answer_member_id),
                leader_id=self._named(line.leader_id),
                protocols=tuple(protocol._replace(topics=("t",)) for protocol in line.protocols),
                members=tuple(m._replace(member_id=self._named(m.member_id), reason=reason, topics=("t",)) for m in line.members),
                assignments=tuple(
                    given._replace(member_id=self._named(given.member_id), partitions=_partitions(given.digest))
                    for given in line.assignments
                ),
            )
        )

    def _add(self, source: str, at_ms: int, received_ms: int, kind: str, **fields: object) -> None:
        self._line += 1
        self.events.append(
            Event(
                self.broker, source, f"{source}.log", self._line, START_MS + at_ms, START_MS + received_ms, kind, group_id=GROUP, **fields
            )
        )

    def _named(self, member_id: str) -> str:
        """A member id in Kafka's form."""
        return f"{member_id.rpartition('-')[0]}-{uuid.uuid5(uuid.NAMESPACE_OID, member_id)}" if member_id else ""


def _partitions(digest: str) -> tuple[str, ...]:
    """The partitions of an assignment, as `round_robin` of the simulation writes them."""
    return tuple(f"t-{number}" for number in bytes.fromhex(digest).decode().split())


def _of(effect: object, trigger: Trigger) -> bool:
    return isinstance(effect, Transition) and effect.trigger is trigger


def _reason(effect: Transition, member: str, why_left: str) -> str:
    """The coordinator's words for a trigger."""
    return {
        Trigger.NEW_MEMBER: f"Adding new member {member} with group instance id null; client reason: not provided",
        Trigger.LEADER_REJOIN: f"Leader {member} re-joining group during Stable; client reason: not provided",
        Trigger.MEMBER_METADATA_CHANGED: f"Updating metadata for member {member} during Stable; client reason: not provided",
        Trigger.SESSION_EXPIRED: f"removing member {member} on heartbeat expiration",
        Trigger.LEAVE: f"Removing member {member} on LeaveGroup; client reason: {why_left}",
        Trigger.SYNC_EXPIRED: f"Removing {member} on pending sync request expiration",
        Trigger.STATIC_PROTOCOL_CHANGE: f"Group's selectedProtocol will change because of static member {member}",
        Trigger.STATIC_REPLACED_DURING_COMPLETING: f"Updating metadata for static member {member}",
        Trigger.ASSIGNMENT_APPEND_FAILED: f"Error when storing group assignment during SyncGroup (member: {member})",
    }[effect.trigger]
