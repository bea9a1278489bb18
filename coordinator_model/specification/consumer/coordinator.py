"""A coordinator for groups of both protocols: it leads partitions, keeps their log, and knows the topics of the cluster.

It answers the requests that need no group (invalid, wrong coordinator, still loading), finds the group of a request, and runs the
clean-up. Classic groups belong to a `Coordinator` of their own inside. Kafka: `GroupCoordinatorService`, `GroupCoordinatorShard`,
`CoordinatorRuntime`.

Not modelled: authorization, transactions, share and streams groups. The log is never compacted. Writes to it take no time.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import partial
from typing import NamedTuple, TypeGuard

from coordinator_model.errors import Error
from coordinator_model.specification.consumer.config import ConsumerGroupConfig, GroupOverrides
from coordinator_model.specification.consumer.effects import ConsumerGroupEffect, RecordsWritten
from coordinator_model.specification.consumer.group import (
    ClassicMemberRequest,
    ClassicPredecessor,
    ConsumerGroup,
    ConsumerGroupAnswer,
    ConsumerGroupRequest,
    refused_answer,
)
from coordinator_model.specification.consumer.group_state import ConsumerGroupState
from coordinator_model.specification.consumer.handlers.offsets import committed_offset
from coordinator_model.specification.consumer.handlers.removal import clean_up, end_empty_group, forget_topics, keep_offsets_of_classic
from coordinator_model.specification.consumer.member import JOIN_EPOCH, LEAVE_EPOCH, STATIC_LEAVE_EPOCH
from coordinator_model.specification.consumer.migration import check_upgrade, upgraded
from coordinator_model.specification.consumer.records import ClassicGroupWritten, LogRecord
from coordinator_model.specification.consumer.requests import (
    MEMBER_MAKES_ITS_ID,
    ConsumerGroupHeartbeat,
    ConsumerOffsetCommit,
    OffsetFetch,
    OffsetFetchAnswer,
)
from coordinator_model.specification.consumer.topics import Topic, TopicImage
from coordinator_model.specification.coordinator import Coordinator, CoordinatorOutcome
from coordinator_model.specification.effects import GroupWritten
from coordinator_model.specification.group import ClassicGroup
from coordinator_model.specification.hash_maps import hash_set
from coordinator_model.specification.member import StoredGroup
from coordinator_model.specification.partition import coordinator_partition
from coordinator_model.specification.refusals import RefusedRequestError, no_consumer_group
from coordinator_model.specification.requests import DeleteGroup, Heartbeat, JoinGroup, LeaveGroup, OffsetCommit, Request, SyncGroup, Ticket
from coordinator_model.specification.timers import NEVER
from coordinator_model.states import State


class GroupReply(NamedTuple):
    """An answer, and the ticket of the request that it belongs to."""

    ticket: Ticket
    at_ms: int
    answer: ConsumerGroupAnswer


class ConsumerCoordinatorOutcome(NamedTuple):
    """The result of a call: the answers that are due now, and what happened inside consumer groups, by group id."""

    replies: list[GroupReply]
    effects: list[tuple[str, ConsumerGroupEffect]]


# What a classic group of the name may have to handle.
_ToClassicGroup = ClassicMemberRequest | DeleteGroup | ConsumerOffsetCommit | OffsetFetch


class ConsumerCoordinator:
    """The group coordinator of one broker."""

    def __init__(self, config: ConsumerGroupConfig, now_ms: int, partitions: Iterable[int], image: TopicImage | None = None) -> None:
        self.config = config
        self.image = image or TopicImage()
        self.classic = Coordinator(config.classic, now_ms, ())
        self.groups: dict[str, ConsumerGroup] = {}
        """Groups of the consumer protocol, and places that have only offsets or timers."""
        self.overrides: dict[str, GroupOverrides] = {}
        self.logs: dict[str, list[LogRecord]] = {}
        """All records of each group, oldest first."""
        self._cleanup_due: dict[int, int] = {}
        self._append_error = Error.NONE
        for partition in partitions:
            self.load(partition, now_ms)

    # Requests and time.

    def handle(
        self, group_id: str, request: ConsumerGroupRequest, now_ms: int, ticket: Ticket = 0, *, append_error: Error = Error.NONE
    ) -> ConsumerCoordinatorOutcome:
        """Handle a request to `group_id` that arrives at `now_ms`. `append_error` is the error of every write that it attempts."""
        self._begin(now_ms)
        try:
            answer = self._without_group(group_id, request) or self._with_group(group_id, request, now_ms, ticket, append_error)
        except RefusedRequestError as refusal:
            answer = refused_answer(request, refusal.error, refusal.message)
        if answer is not None:
            self._replies.append(GroupReply(ticket, now_ms, answer))
        return self._outcome()

    def advance(self, now_ms: int, *, append_error: Error = Error.NONE) -> ConsumerCoordinatorOutcome:
        """Let time pass in all groups. `append_error` is the error of every write that a timer of a consumer group attempts."""
        self._append_error = append_error
        self._begin(now_ms)
        self._append_error = Error.NONE
        return self._outcome()

    def _begin(self, now_ms: int) -> None:
        """Start a call, with all that is due before it. In one millisecond, the clean-up comes before the timers of members."""
        self._replies: list[GroupReply] = []
        self._effects: list[tuple[str, ConsumerGroupEffect]] = []
        while (due := min(self._cleanup_due.values(), default=NEVER)) <= now_ms:
            for partition, at_ms in self._cleanup_due.items():
                if at_ms == due:
                    self._clean_up(partition, due)
                    self._cleanup_due[partition] = due + self.config.classic.offsets_retention_check_interval_ms
        for group_id, group in list(self.groups.items()):
            self._note(group_id, group.advance(now_ms, append_error=self._append_error).effects)
        self._note_classic(self.classic.advance(now_ms))

    def _clean_up(self, partition: int, now_ms: int) -> None:
        for group_id, group in list(self.groups.items()):
            if self.partition(group_id) == partition:
                self._note(group_id, group.decide(clean_up, now_ms, self._append_error).effects)

    def _note(self, group_id: str, effects: Iterable[ConsumerGroupEffect]) -> None:
        """Take over what happened in a group, and the group itself if it has become a classic one."""
        for effect in effects:
            self._effects.append((group_id, effect))
            if isinstance(effect, RecordsWritten):
                self.logs.setdefault(group_id, []).extend(effect.records)
        group = self.groups[group_id]
        if group.successor is not None:
            successor, group.successor = group.successor, None
            self._note_classic(self.classic.take_over(successor.group, group.now_ms, rebalances=successor.rebalances))

    def _note_classic(self, outcome: CoordinatorOutcome) -> None:
        """Take over the answers of classic groups, and what they wrote."""
        self._replies.extend(GroupReply(*reply) for reply in outcome.replies)
        for written_by, effect in outcome.effects:
            if isinstance(effect, GroupWritten):
                self._write_classic(written_by, effect.at_ms, effect.stored)

    def _write_classic(self, group_id: str, at_ms: int, stored: StoredGroup | None) -> None:
        record = ClassicGroupWritten(stored)
        self.logs.setdefault(group_id, []).append(record)
        self._effects.append((group_id, RecordsWritten(at_ms, (record,))))

    def _outcome(self) -> ConsumerCoordinatorOutcome:
        return ConsumerCoordinatorOutcome(self._replies, self._effects)

    # Groups.

    def partition(self, group_id: str) -> int:
        """The partition of the group."""
        return coordinator_partition(group_id, self.config.classic.offsets_topic_num_partitions)

    def _without_group(self, group_id: str, request: ConsumerGroupRequest) -> ConsumerGroupAnswer | None:
        """The answer of a request for which the group makes no difference."""
        if not isinstance(request, (ConsumerGroupHeartbeat, ConsumerOffsetCommit, OffsetFetch)):
            return self.classic.refusal(group_id, request)
        if isinstance(request, ConsumerGroupHeartbeat):
            _check_heartbeat(group_id, request, self.config)
        partition = self.partition(group_id)
        if partition in self.classic.loading:
            raise RefusedRequestError(Error.COORDINATOR_LOAD_IN_PROGRESS)
        if partition not in self.classic.owned:
            raise RefusedRequestError(Error.NOT_COORDINATOR)
        return None

    def _with_group(
        self, group_id: str, request: ConsumerGroupRequest, now_ms: int, ticket: Ticket, append_error: Error
    ) -> ConsumerGroupAnswer | None:
        """The answer of the group; None if it comes later."""
        group = self._group(group_id, now_ms)
        if isinstance(request, JoinGroup) and group.state is not None and not group.state.members:
            self._note(group_id, group.decide(end_empty_group, now_ms, append_error).effects)
        if group.state is None and self._belongs_to_classic(request, group_id):
            return self._to_classic_group(group, request, now_ms, ticket, append_error)
        classic = self.classic.groups.get(group_id)
        if classic is None:
            outcome = group.handle(request, now_ms, append_error=append_error)
        else:
            outcome = group.handle(request, now_ms, append_error=append_error, predecessor=self._predecessor(classic, request))
            if group.state is not None:
                self._note_classic(self.classic.give_up(group_id, now_ms))
        self._note(group_id, outcome.effects)
        return outcome.answer

    def _belongs_to_classic(self, request: ConsumerGroupRequest, group_id: str) -> TypeGuard[_ToClassicGroup]:
        """Whether a request to a group that is not of the consumer protocol is one for classic groups, which may create the group."""
        if isinstance(request, ConsumerOffsetCommit) and request.epoch < 0:
            return True
        if isinstance(request, (JoinGroup, SyncGroup, Heartbeat, LeaveGroup)):
            return True
        return group_id in self.classic.groups and not isinstance(request, ConsumerGroupHeartbeat)

    def _to_classic_group(
        self, group: ConsumerGroup, request: _ToClassicGroup, now_ms: int, ticket: Ticket, append_error: Error
    ) -> ConsumerGroupAnswer | None:
        group_id = group.group_id
        if isinstance(request, OffsetFetch):
            return OffsetFetchAnswer(Error.NONE, committed_offset(group, request))
        before = self.classic.log.get(group_id)
        asked: Request = request if not isinstance(request, ConsumerOffsetCommit) else _without_offset(request)
        outcome = self.classic.handle(group_id, asked, now_ms, ticket, append_error=append_error)
        self._note_classic(outcome)
        written = self.classic.log.get(group_id)
        if written is not None and written is not before and not any(isinstance(effect, GroupWritten) for _, effect in outcome.effects):
            self._write_classic(group_id, now_ms, written)  # the group was created
        accepted = any(reply.ticket == ticket and reply.answer.error is Error.NONE for reply in outcome.replies)
        if accepted and isinstance(request, (ConsumerOffsetCommit, DeleteGroup)):
            self._note(group_id, group.decide(partial(keep_offsets_of_classic, request=request), now_ms, Error.NONE).effects)
        return None

    def _predecessor(self, classic: ClassicGroup, request: ConsumerGroupRequest) -> ClassicPredecessor:
        """What a heartbeat that joins makes of a classic group. One that does not join is refused."""
        if not isinstance(request, ConsumerGroupHeartbeat) or request.epoch != JOIN_EPOCH:
            raise no_consumer_group(classic.group_id, exists=True)
        if classic.state is State.EMPTY:
            return ClassicPredecessor(ConsumerGroupState.new(self.config.version), [ClassicGroupWritten(None)])
        check_upgrade(classic, self.config)
        return ClassicPredecessor(*upgraded(classic, self.image, self.config.version))

    def _group(self, group_id: str, now_ms: int) -> ConsumerGroup:
        group = self.groups.get(group_id)
        if group is None:
            overrides = self.overrides.get(group_id, GroupOverrides())
            group = self.groups[group_id] = ConsumerGroup(group_id, self.config, now_ms, overrides, self.image)
        return group

    def configure(self, group_id: str, overrides: GroupOverrides, now_ms: int) -> ConsumerCoordinatorOutcome:
        """Settings of one group (`kafka-configs.sh --entity-type groups`). The next heartbeat of a member uses them."""
        self._begin(now_ms)
        self.overrides[group_id] = overrides
        if group_id in self.groups:
            self.groups[group_id].overrides = overrides
        return self._outcome()

    def change_topics(self, changes: Mapping[str, Topic | None], now_ms: int) -> ConsumerCoordinatorOutcome:
        """Topics were created, changed or deleted (None), all at once."""
        self._begin(now_ms)
        before, self.image = self.image, self.image.changed(changes)
        gone = [topic for name in before.names() if (topic := before.named(name)) and self.image.with_id(topic.topic_id) is None]
        for group_id, group in self.groups.items():
            group.take_topics(self.image)
            if gone and self.config.version.deleted_topics_lose_offsets:
                self._note(group_id, group.decide(partial(forget_topics, gone=gone), now_ms, Error.NONE).effects)
        return self._outcome()

    # Partitions come and go.

    def unload(self, partition: int, now_ms: int) -> ConsumerCoordinatorOutcome:
        """Another broker leads `partition` now."""
        self._begin(now_ms)
        self._note_classic(self.classic.unload(partition, now_ms))
        self._cleanup_due.pop(partition, None)
        for group_id in [group_id for group_id in self.groups if self.partition(group_id) == partition]:
            del self.groups[group_id]
        return self._outcome()

    def load_begin(self, partition: int, now_ms: int) -> ConsumerCoordinatorOutcome:
        """This broker leads `partition` now and has begun to read it."""
        self._begin(now_ms)
        self._note_classic(self.classic.load_begin(partition, now_ms))
        return self._outcome()

    def load(self, partition: int, now_ms: int) -> ConsumerCoordinatorOutcome:
        """This broker leads `partition` and has read it."""
        self._begin(now_ms)
        self._note_classic(self.classic.load(partition, now_ms))
        self._cleanup_due.setdefault(partition, now_ms + self.config.classic.offsets_retention_check_interval_ms)
        for group_id, log in self.logs.items():
            if self.partition(group_id) == partition and group_id not in self.groups:
                group = self._group(group_id, now_ms)
                group.image = self.image.new_up_to(self.image.version)
                group.load(log)
        return self._outcome()


def _check_heartbeat(group_id: str, request: ConsumerGroupHeartbeat, config: ConsumerGroupConfig) -> None:
    """`throwIfConsumerGroupHeartbeatRequestIsInvalid`: refuse a request that makes no sense, whatever the group is."""
    problem = _problem(group_id, request)
    if problem is not None:
        raise RefusedRequestError(Error.INVALID_REQUEST, problem)
    if request.assignor is not None and request.assignor not in config.assignors:
        supported = ", ".join(hash_set(config.assignors))  # Kafka names them in the order of a HashSet
        message = f"ServerAssignor {request.assignor} is not supported. Supported assignors: {supported}."
        raise RefusedRequestError(Error.UNSUPPORTED_ASSIGNOR, message)


def _problem(group_id: str, request: ConsumerGroupHeartbeat) -> str | None:
    epoch = request.epoch
    needs_id = request.api_version >= MEMBER_MAKES_ITS_ID or epoch > JOIN_EPOCH or epoch == LEAVE_EPOCH
    texts = (
        ("MemberId", request.member_id if needs_id else None),
        ("GroupId", group_id),
        ("InstanceId", request.instance_id),
        ("RackId", request.rack_id),
    )
    for name, text in texts:
        if text is not None and not text.strip():
            return f"{name} can't be empty."
    if epoch == JOIN_EPOCH:
        return _problem_of_newcomer(request)
    if epoch == STATIC_LEAVE_EPOCH and request.instance_id is None:
        return "InstanceId can't be null."
    return "MemberEpoch is invalid." if epoch < STATIC_LEAVE_EPOCH else None


def _problem_of_newcomer(request: ConsumerGroupHeartbeat) -> str | None:
    if request.rebalance_timeout_ms == -1:
        return "RebalanceTimeoutMs must be provided in first request."
    if request.owned is None or request.owned:
        return "TopicPartitions must be empty when (re-)joining."
    if request.topics is None and request.regex is None:
        return "Either SubscribedTopicNames or SubscribedTopicRegex must be non-null when (re-)joining."
    return None


def _without_offset(request: ConsumerOffsetCommit) -> OffsetCommit:
    """The commit as classic groups know it."""
    return OffsetCommit(request.member_id, request.epoch, request.instance_id, request.api_version)
