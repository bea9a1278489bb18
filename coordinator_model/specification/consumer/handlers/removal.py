"""Members that go, by leaving or by a timer, and the end of a group.

Kafka: `consumerGroupLeave`, `consumerGroupFenceMembers`; `deleteGroups`, `cleanupGroupMetadata`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence
from typing import Final

from coordinator_model.errors import Error
from coordinator_model.specification.consumer.core import REBALANCE, ConsumerGroupCore, Operation
from coordinator_model.specification.consumer.effects import BumpCause
from coordinator_model.specification.consumer.group_state import ConsumerGroupState
from coordinator_model.specification.consumer.handlers.epochs import bump, names_without
from coordinator_model.specification.consumer.handlers.membership import known_static_member
from coordinator_model.specification.consumer.handlers.offsets import offset_record
from coordinator_model.specification.consumer.handlers.records_of import assignment_record, group_tombstones, removal_records, target_record
from coordinator_model.specification.consumer.member import NO_PARTITIONS, STATIC_LEAVE_EPOCH, ConsumerGroupMember, all_in_epoch
from coordinator_model.specification.consumer.migration import can_downgrade, downgraded
from coordinator_model.specification.consumer.records import (
    TIME_UNKNOWN,
    ClassicGroupWritten,
    LogRecord,
    OffsetCommitted,
    RegularExpression,
    Tombstone,
)
from coordinator_model.specification.consumer.requests import ConsumerGroupHeartbeat, ConsumerGroupHeartbeatAnswer, ConsumerOffsetCommit
from coordinator_model.specification.consumer.subscriptions import metadata_hash
from coordinator_model.specification.consumer.topics import Topic
from coordinator_model.specification.refusals import RefusedRequestError, no_consumer_group
from coordinator_model.specification.requests import DeleteAnswer, DeleteGroup
from coordinator_model.specification.timers import SESSION

RETRY_MS: Final = 500
"""A removal that could not be written is tried again after this time (`EventBasedCoordinatorTimer`)."""


def leave_consumer_group(group: ConsumerGroupCore, request: ConsumerGroupHeartbeat, operation: Operation) -> ConsumerGroupHeartbeatAnswer:
    """A heartbeat that leaves: for good (epoch -1), or a static member for a while (-2), which keeps its partitions and its session.

    The epoch that the member had is not checked.
    """
    state = group.state
    if state is None:
        raise no_consumer_group(group.group_id, exists=False)
    if request.instance_id is None:
        member = group.member(state, request.member_id)
    else:
        member = known_static_member(group, state, request.member_id, request.instance_id)
    if request.instance_id is not None and request.epoch == STATIC_LEAVE_EPOCH:
        away = member._replace(epoch=STATIC_LEAVE_EPOCH, pending=NO_PARTITIONS, assignment_epochs=all_in_epoch(0, member.assigned))
        operation.records.append(assignment_record(away, group.release))
    else:
        fence_members(group, state, [member], BumpCause.LEAVE, operation)
    return ConsumerGroupHeartbeatAnswer(Error.NONE, request.member_id, request.epoch)


def end_of_timer(group: ConsumerGroupCore, kind: str, member_id: str) -> Operation:
    """Remove the member, if there still is one. The rebalance timer spares one that has left the epoch in which it was set."""
    operation = Operation()
    state = group.state
    member = None if state is None else state.members.get(member_id)
    if state is None or member is None:
        return operation
    if kind == REBALANCE and member.epoch != group.revoking_epochs.get(member_id):
        return operation
    cause = BumpCause.SESSION_EXPIRED if kind == SESSION else BumpCause.REBALANCE_TIMEOUT
    fence_members(group, state, [member], cause, operation)
    return operation


def fence_members(
    group: ConsumerGroupCore, state: ConsumerGroupState, members: Sequence[ConsumerGroupMember], cause: BumpCause, operation: Operation
) -> None:
    """Remove members. That moves the group epoch once, also with the last one.

    The target is computed by the next heartbeat of anyone; since 4.4, that of a group without members needs no computation. If only
    members of the classic protocol stay, the group becomes a classic group instead.
    """
    if can_downgrade(state, members, group.config):
        successor = downgraded(group, state, members)
        operation.records += [*group_tombstones(list(state.members), state), ClassicGroupWritten(successor.stored())]
        operation.when_written.append(lambda: group.give_up_to(successor, rebalances=True))
        return
    for member in members:
        operation.records += removal_records(member.member_id)
    users = Counter(member.regex for member in members if member.regex)
    unused = [regex for regex, count in users.items() if state.regexes.get(regex) == count]
    operation.records += [Tombstone(RegularExpression, regex) for regex in unused]
    topics = metadata_hash(names_without(state, members, unused), group.image)
    bump(group, operation, state.group_epoch + 1, topics, cause, members[0].member_id)
    if len(members) == len(state.members) and group.release.last_removal_moves_target:
        operation.records.append(target_record(state.group_epoch + 1, TIME_UNKNOWN, group.release))
    for member in members:
        group.cancel_timers(member.member_id)


def delete_consumer_group(group: ConsumerGroupCore, request: DeleteGroup, operation: Operation) -> DeleteAnswer:  # noqa: ARG001 (as others)
    """DeleteGroups: the group and its offsets, unless it has members."""
    if group.state is None:
        raise no_consumer_group(group.group_id, exists=False)
    if group.state.members:
        raise RefusedRequestError(Error.NON_EMPTY_GROUP)
    operation.records += _offset_tombstones(group)
    operation.records += group_tombstones([], group.state)
    return DeleteAnswer(Error.NONE)


def clean_up(group: ConsumerGroupCore) -> Operation:
    """`cleanupExpiredOffsets`, `maybeDeleteGroup`: offsets that are too old, then the group if nothing is left of it."""
    operation = Operation()
    if group.state is None:
        return operation
    retention_ms = group.config.classic.offsets_retention_minutes * 60_000
    offsets = _offsets(group)
    expired = [one for one in offsets if one.topic not in group.state.names and group.now_ms - one.committed_ms >= retention_ms]
    operation.records += [offset._replace(offset=None) for offset in expired]
    if expired == offsets and not group.state.members:
        operation.records += group_tombstones([], group.state)
    return operation


def _offset_tombstones(group: ConsumerGroupCore) -> list[LogRecord]:
    """`deleteAllOffsets`."""
    return [offset._replace(offset=None) for offset in _offsets(group)]


def end_empty_group(group: ConsumerGroupCore) -> Operation:
    """`maybeDeleteEmptyConsumerGroup`: give the name of an empty group to a classic one. Offsets stay."""
    return Operation([] if group.state is None else group_tombstones([], group.state))


def keep_offsets_of_classic(group: ConsumerGroupCore, request: ConsumerOffsetCommit | DeleteGroup) -> Operation:
    """A classic group of this name has accepted a commit, or was deleted: keep the offset, or drop all."""
    return Operation(_offset_tombstones(group) if isinstance(request, DeleteGroup) else [offset_record(group, request)])


def forget_topics(group: ConsumerGroupCore, gone: Collection[Topic]) -> Operation:
    """`OffsetMetadataManager.onTopicsDeleted`: the offsets of these names that have their id, or none as those of commits by name."""
    ids = {topic.name: topic.topic_id for topic in gone}
    own = [offset for offset in _offsets(group) if offset.topic in ids and offset.topic_id in (None, ids[offset.topic])]
    return Operation([offset._replace(offset=None) for offset in own])


def _offsets(group: ConsumerGroupCore) -> list[OffsetCommitted]:
    return [offset for partitions in group.offsets.values() for offset in partitions.values()]
