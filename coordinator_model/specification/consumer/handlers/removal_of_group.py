"""The end of a group: DeleteGroups, and the regular clean-up. Kafka: `deleteGroups`, `cleanupGroupMetadata`."""

from __future__ import annotations

from collections.abc import Collection

from coordinator_model.errors import Error
from coordinator_model.specification.consumer.core import ConsumerGroupCore, Operation
from coordinator_model.specification.consumer.handlers.records_of import group_tombstones
from coordinator_model.specification.consumer.records import LogRecord, OffsetCommitted
from coordinator_model.specification.consumer.refusals import RefusedRequestError, no_consumer_group
from coordinator_model.specification.consumer.topics import Topic
from coordinator_model.specification.requests import DeleteAnswer, DeleteGroup


def delete_consumer_group(group: ConsumerGroupCore, request: DeleteGroup, operation: Operation) -> DeleteAnswer:  # noqa: ARG001 (as others)
    """DeleteGroups: the group and its offsets, unless it has members."""
    if group.state is None:
        raise no_consumer_group(group.group_id, exists=False)
    if group.state.members:
        raise RefusedRequestError(Error.NON_EMPTY_GROUP)
    operation.records += offset_tombstones(group)
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


def offset_tombstones(group: ConsumerGroupCore) -> list[LogRecord]:
    """`deleteAllOffsets`."""
    return [offset._replace(offset=None) for offset in _offsets(group)]


def forget_topics(group: ConsumerGroupCore, gone: Collection[Topic]) -> Operation:
    """`OffsetMetadataManager.onTopicsDeleted`: the offsets of these names that have their id, or none as those of commits by name."""
    ids = {topic.name: topic.topic_id for topic in gone}
    own = [offset for offset in _offsets(group) if offset.topic in ids and offset.topic_id in (None, ids[offset.topic])]
    return Operation([offset._replace(offset=None) for offset in own])


def _offsets(group: ConsumerGroupCore) -> list[OffsetCommitted]:
    return [offset for partitions in group.offsets.values() for offset in partitions.values()]
