"""ConsumerGroup: an executable specification of one group of the consumer protocol (KIP-848), of Kafka 4.2 and later.

`handle` takes a request and the time, `advance` only the time. Both first fire the timers that are due, each at its own time, and say
what happened inside. Every request is answered at once. For any sequence of requests and times, a group gives the answers of Kafka's
coordinator, and writes its records in the same order.

group_state.py holds what a group keeps in the log, core.py its timers and writes. handlers/ holds the decisions: heartbeat,
offsets, removal of members and of the group, and what they share (membership, epochs, expressions). reconciliation.py and target.py
with assignors/ compute who gets which partitions. Names are Kafka's: `GroupMetadataManager`, `ConsumerGroup`, `CurrentAssignmentBuilder`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import fields
from typing import Any, Final, NamedTuple

from coordinator_model.errors import Error, ServerError
from coordinator_model.specification.consumer.core import REBALANCE, ConsumerGroupCore, Operation
from coordinator_model.specification.consumer.effects import ConsumerGroupEffect
from coordinator_model.specification.consumer.group_state import ConsumerGroupState
from coordinator_model.specification.consumer.handlers.classic_members import (
    heartbeat_in_consumer_group,
    join_consumer_group,
    leave_as_classic_member,
    sync_consumer_group,
)
from coordinator_model.specification.consumer.handlers.expressions import resolve_expressions
from coordinator_model.specification.consumer.handlers.heartbeat import handle_consumer_heartbeat
from coordinator_model.specification.consumer.handlers.offsets import commit_offset, fetch_offset
from coordinator_model.specification.consumer.handlers.removal import RETRY_MS, delete_consumer_group, end_of_timer
from coordinator_model.specification.consumer.member import MemberState
from coordinator_model.specification.consumer.records import LogRecord
from coordinator_model.specification.consumer.requests import (
    ConsumerGroupHeartbeat,
    ConsumerGroupHeartbeatAnswer,
    ConsumerOffsetCommit,
    OffsetFetch,
    OffsetFetchAnswer,
)
from coordinator_model.specification.hash_maps import TimelineHashMap
from coordinator_model.specification.refusals import RefusedRequestError
from coordinator_model.specification.requests import (
    Answer,
    CommitAnswer,
    DeleteGroup,
    Heartbeat,
    JoinGroup,
    LeaveGroup,
    SyncGroup,
    error_answer,
)
from coordinator_model.specification.timers import Timers

ClassicMemberRequest = JoinGroup | SyncGroup | Heartbeat | LeaveGroup
"""What a member of the classic protocol sends to a consumer group."""
ConsumerGroupRequest = ConsumerGroupHeartbeat | ConsumerOffsetCommit | OffsetFetch | DeleteGroup | ClassicMemberRequest
ConsumerGroupAnswer = ConsumerGroupHeartbeatAnswer | OffsetFetchAnswer | Answer


class ConsumerGroupOutcome(NamedTuple):
    """The result of a call: the answer, if there was a request, and what happened inside the group."""

    answer: ConsumerGroupAnswer | None
    effects: list[ConsumerGroupEffect]


class ClassicPredecessor(NamedTuple):
    """A classic group that a heartbeat turns into a consumer group: the state that follows, and the records that say so."""

    state: ConsumerGroupState
    records: list[LogRecord]


class ConsumerGroup(ConsumerGroupCore):
    """One group. Public attributes are its state; change them only through the methods."""

    __slots__ = ()

    def handle(
        self, request: ConsumerGroupRequest, now_ms: int, *, append_error: Error = Error.NONE, predecessor: ClassicPredecessor | None = None
    ) -> ConsumerGroupOutcome:
        """Handle a request that arrives at `now_ms`. `append_error` is the error of every write to the log that it attempts."""
        self._begin(now_ms)
        self.append_error = append_error
        operation = Operation()
        converted = None
        if predecessor is not None:
            converted = predecessor.state
            operation.records += predecessor.records
            for member in converted.members.values():
                self.restart_session(member.member_id, member.classic)
        try:
            if isinstance(request, ConsumerGroupHeartbeat):
                answer: ConsumerGroupAnswer = handle_consumer_heartbeat(self, request, operation, converted)
            else:
                answer = _HANDLERS[type(request)](self, request, operation)
            error = self.write(operation)
            if error is not Error.NONE:
                answer = refused_answer(request, error)
        except RefusedRequestError as refusal:
            answer = refused_answer(request, refusal.error, refusal.message)
        except ServerError:
            answer = refused_answer(request, Error.UNKNOWN_SERVER_ERROR)
        if self.wanted_expressions:
            self.write(resolve_expressions(self))
        return self._outcome(answer)

    def advance(self, now_ms: int, *, append_error: Error = Error.NONE) -> ConsumerGroupOutcome:
        """Let time pass: fire every timer that is due at or before `now_ms`, each at its own time."""
        self.append_error = append_error
        self._begin(now_ms)
        return self._outcome()

    def load(self, log: Iterable[LogRecord]) -> None:
        """Fill a new group from its log (`onLoaded`). Members start with a full session, and with all the time to give up partitions."""
        self.take_records(log)
        for member_id, member in [] if self.state is None else self.state.members.items():
            self.restart_session(member_id)
            if member.state is MemberState.UNREVOKED_PARTITIONS:
                self.start_rebalance_timer(member)

    def decide(self, decision: Callable[[ConsumerGroupCore], Operation], now_ms: int, append_error: Error) -> ConsumerGroupOutcome:
        """Write what the coordinator decides for the group without a request, before the timers that are due in this millisecond."""
        self.advance(now_ms - 1, append_error=append_error)
        self.append_error = append_error
        self.now_ms = max(self.now_ms, now_ms)
        self.write(decision(self))
        return self._outcome()

    def _outcome(self, answer: ConsumerGroupAnswer | None = None) -> ConsumerGroupOutcome:
        """The end of a call. Timers that the next call fires are written again."""
        self.append_error = Error.NONE
        return ConsumerGroupOutcome(answer, self.effects)

    def _begin(self, now_ms: int) -> None:
        self.effects = []
        while (due := self.timers.pop_due(now_ms)) is not None:
            (kind, member_id, number), deadline = due
            self.now_ms = max(self.now_ms, deadline)
            epoch = self.revoking_epochs.get(member_id)
            if self.write(end_of_timer(self, kind, member_id)) is not Error.NONE:
                self.timers.set((kind, member_id, number), self.now_ms + RETRY_MS)
                if kind == REBALANCE and epoch is not None:
                    self.revoking_epochs[member_id] = epoch
            elif kind == REBALANCE:
                self.revoking_epochs.pop(member_id, None)
        self.now_ms = max(self.now_ms, now_ms)  # a clock that steps back stands still

    def copy(self) -> ConsumerGroup:
        """An independent group in the same state."""
        other = ConsumerGroup.__new__(ConsumerGroup)
        for field in fields(ConsumerGroupCore):
            value = getattr(self, field.name)
            setattr(other, field.name, value.copy() if isinstance(value, _COPIED) else value)
        other.offsets = TimelineHashMap.restored(self.offsets.capacity(), [(topic, kept.copy()) for topic, kept in self.offsets.stored()])
        return other


_COPIED: Final = (dict, list, ConsumerGroupState, Timers)

_HANDLERS: Final[dict[type, Callable[[ConsumerGroupCore, Any, Operation], ConsumerGroupAnswer]]] = {
    ConsumerOffsetCommit: commit_offset,
    OffsetFetch: fetch_offset,
    DeleteGroup: delete_consumer_group,
    JoinGroup: join_consumer_group,
    SyncGroup: sync_consumer_group,
    Heartbeat: heartbeat_in_consumer_group,
    LeaveGroup: leave_as_classic_member,
}


def refused_answer(request: ConsumerGroupRequest, error: Error, message: str | None = None) -> ConsumerGroupAnswer:
    """An answer that consists of an error, and of a message where the answer has a place for it."""
    if isinstance(request, ConsumerGroupHeartbeat):
        return ConsumerGroupHeartbeatAnswer(error, message=message)
    if isinstance(request, OffsetFetch):
        return OffsetFetchAnswer(error)
    return CommitAnswer(error) if isinstance(request, ConsumerOffsetCommit) else error_answer(request, error)
