"""Builds the specification's group from what the members of a consumer group were told."""

from __future__ import annotations

from coordinator_model.errors import ServerError
from coordinator_model.specification.consumer.config import ConsumerGroupConfig
from coordinator_model.specification.consumer.core import REFRESH_NEVER_MS
from coordinator_model.specification.consumer.group import ConsumerGroup
from coordinator_model.specification.consumer.member import NO_PARTITIONS, MemberState, in_order
from coordinator_model.specification.consumer.records import (
    ConsumerGroupMemberMetadata,
    ConsumerGroupMetadata,
    CurrentMemberAssignment,
    LogRecord,
    TargetAssignmentMember,
    TargetAssignmentMetadata,
)
from coordinator_model.specification.consumer.subscriptions import metadata_hash
from coordinator_model.specification.consumer.topics import TopicImage
from coordinator_model.tracker.consumer.comparison import partitions_of
from coordinator_model.view.consumer_view import ConsumerView


def rebuilt(group_id: str, view: ConsumerView, image: TopicImage, config: ConsumerGroupConfig) -> ConsumerGroup | None:
    """A group whose members are all reconciled. What their epochs were before is not known.

    None: two members have the same partition, since the line in which one of them gave it up is missing.
    """
    at_ms = max((member.heard_ms for member in view.members.values()), default=0)
    group = ConsumerGroup(group_id, config, at_ms, image=image)
    names = {name for member in view.members.values() for name in member.topics or ()}
    records: list[LogRecord] = [ConsumerGroupMetadata(view.epoch, metadata_hash(names, image))]
    for member in view.members.values():
        assigned = partitions_of(member.partitions or ()) or NO_PARTITIONS
        records += [
            ConsumerGroupMemberMetadata(
                member.member_id,
                member.instance_id or None,
                None,
                "",
                "",
                tuple(sorted(member.topics or ())),
                "",
                member.rebalance_timeout_ms,
                None,
                None,
            ),
            TargetAssignmentMember(member.member_id, in_order(assigned)),
            CurrentMemberAssignment(member.member_id, view.epoch, view.epoch - 1, MemberState.STABLE, assigned, NO_PARTITIONS),
        ]
    try:
        group.load([*records, TargetAssignmentMetadata(view.epoch, at_ms)])
    except ServerError:
        return None
    assert group.state is not None
    group.state.refresh_at_ms, group.state.refresh_epoch = at_ms + REFRESH_NEVER_MS, view.epoch
    return group
