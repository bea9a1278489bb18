"""OffsetCommit and OffsetFetch: who may, by member id and epoch. Kafka: `ConsumerGroup.validateOffsetCommit`, `validateOffsetFetch`.

Neither counts as a heartbeat. The instance id is not looked at.
"""

from __future__ import annotations

from coordinator_model.errors import Error
from coordinator_model.specification.consumer.core import ConsumerGroupCore, Operation
from coordinator_model.specification.consumer.member import ConsumerGroupMember
from coordinator_model.specification.consumer.records import OffsetCommitted
from coordinator_model.specification.consumer.requests import KNOWS_EPOCHS, ConsumerOffsetCommit, OffsetFetch, OffsetFetchAnswer
from coordinator_model.specification.refusals import RefusedRequestError
from coordinator_model.specification.requests import CommitAnswer


def commit_offset(group: ConsumerGroupCore, request: ConsumerOffsetCommit, operation: Operation) -> CommitAnswer:
    """Keep an offset."""
    _check_commit(group, request)
    operation.records.append(offset_record(group, request))
    return CommitAnswer(Error.NONE)


def offset_record(group: ConsumerGroupCore, request: ConsumerOffsetCommit) -> OffsetCommitted:
    """The record of a commit."""
    topic = group.image.named(request.topic)
    return OffsetCommitted(request.topic, request.partition, request.offset, group.now_ms, None if topic is None else topic.topic_id)


def _check_commit(group: ConsumerGroupCore, request: ConsumerOffsetCommit) -> None:
    state = group.state
    if state is None:
        raise RefusedRequestError(Error.GROUP_ID_NOT_FOUND if request.api_version >= KNOWS_EPOCHS else Error.ILLEGAL_GENERATION)
    if request.epoch < 0 and not state.members:
        return
    member = group.member(state, request.member_id)
    if member.classic is None and request.api_version < KNOWS_EPOCHS:
        raise RefusedRequestError(Error.UNSUPPORTED_VERSION)
    if not (group.release.assignment_epochs and _assigned_since(group, member, request)):
        _check_epoch(member, request.epoch)


def _assigned_since(group: ConsumerGroupCore, member: ConsumerGroupMember, request: ConsumerOffsetCommit) -> bool:
    """`createAssignmentEpochValidator`: whether the member has had the partition since that epoch or before (KIP-1251)."""
    topic = group.image.named(request.topic)
    since = None if topic is None else member.assignment_epochs.get((topic.topic_id, request.partition))
    return since is not None and since <= request.epoch <= member.epoch


def _check_epoch(member: ConsumerGroupMember, epoch: int) -> None:
    """`validateMemberEpoch`: it has to be the present one."""
    if epoch != member.epoch:
        raise RefusedRequestError(Error.STALE_MEMBER_EPOCH if member.classic is None else Error.ILLEGAL_GENERATION)


def fetch_offset(group: ConsumerGroupCore, request: OffsetFetch, operation: Operation) -> OffsetFetchAnswer:  # noqa: ARG001 (as others)
    """Tell an offset."""
    state = group.state
    if state is not None and (request.member_id is not None or request.epoch >= 0):
        if request.member_id is None:
            raise RefusedRequestError(Error.UNKNOWN_SERVER_ERROR)  # Kafka throws: a map has no member null
        _check_epoch(group.member(state, request.member_id), request.epoch)
    return OffsetFetchAnswer(Error.NONE, committed_offset(group, request))


def committed_offset(group: ConsumerGroupCore, request: OffsetFetch) -> int:
    """The committed offset, or -1."""
    partitions = group.offsets.get(request.topic)
    record = None if partitions is None else partitions.get(request.partition)
    return -1 if record is None or record.offset is None else record.offset
