"""Records that say what a member is, and those that end it or its group. Kafka: `GroupCoordinatorRecordHelpers`."""

from __future__ import annotations

from collections.abc import Sequence

from coordinator_model.specification.config import KafkaVersion
from coordinator_model.specification.consumer.group_state import ConsumerGroupState
from coordinator_model.specification.consumer.member import ConsumerGroupMember
from coordinator_model.specification.consumer.records import (
    ConsumerGroupMemberMetadata,
    ConsumerGroupMetadata,
    CurrentMemberAssignment,
    LogRecord,
    PartitionMetadata,
    RegularExpression,
    TargetAssignmentMember,
    TargetAssignmentMetadata,
    Tombstone,
)


def subscription_record(member: ConsumerGroupMember) -> ConsumerGroupMemberMetadata:
    """`newConsumerGroupMemberSubscriptionRecord`."""
    said = {name: getattr(member, name) for name in ConsumerGroupMemberMetadata._fields}
    return ConsumerGroupMemberMetadata(**said | {"topics": tuple(sorted(member.topics))})


def assignment_record(member: ConsumerGroupMember, release: KafkaVersion) -> CurrentMemberAssignment:
    """`newConsumerGroupCurrentAssignmentRecord`."""
    epochs = member.assignment_epochs if release.assignment_epochs else None
    return CurrentMemberAssignment(
        member.member_id, member.epoch, member.previous_epoch, member.state, member.assigned, member.pending, epochs
    )


def target_record(epoch: int, computed_ms: int, release: KafkaVersion) -> TargetAssignmentMetadata:
    """`newConsumerGroupTargetAssignmentMetadataRecord`. `computed_ms`: when, or TIME_UNKNOWN."""
    return TargetAssignmentMetadata(epoch, computed_ms if release.assignment_interval else None)


def removal_records(member_id: str) -> list[LogRecord]:
    """`GroupMetadataManager.removeMember`: first what it owns, then its target, then the member."""
    return [Tombstone(kind, member_id) for kind in (CurrentMemberAssignment, TargetAssignmentMember, ConsumerGroupMemberMetadata)]


def group_tombstones(members: Sequence[str], state: ConsumerGroupState) -> list[LogRecord]:
    """`ConsumerGroup.createGroupTombstoneRecords`: the end of a group and of its members, which need not be in `state` yet."""
    keys = (
        *((CurrentMemberAssignment, member_id) for member_id in members),
        *((TargetAssignmentMember, member_id) for member_id in members),
        (TargetAssignmentMetadata, ""),
        *((ConsumerGroupMemberMetadata, member_id) for member_id in members),
        *((RegularExpression, regex) for regex in state.resolved),
        (PartitionMetadata, ""),
        (ConsumerGroupMetadata, ""),
    )
    return [Tombstone(kind, key) for kind, key in keys]
