"""Who sends a heartbeat: a member, a newcomer, or a static member that returns. Kafka: `getOrMaybeSubscribe...ConsumerGroupMember`."""

from __future__ import annotations

from typing import NamedTuple

from coordinator_model.errors import Error
from coordinator_model.specification.consumer.core import ConsumerGroupCore, Operation
from coordinator_model.specification.consumer.group_state import ConsumerGroupState
from coordinator_model.specification.consumer.handlers.records_of import assignment_record, removal_records, subscription_record
from coordinator_model.specification.consumer.member import STATIC_LEAVE_EPOCH, ConsumerGroupMember, Partitions
from coordinator_model.specification.consumer.records import TargetAssignmentMember
from coordinator_model.specification.refusals import RefusedRequestError


class MemberChange(NamedTuple):
    """The member of a request, before it and with what the request says."""

    before: ConsumerGroupMember
    after: ConsumerGroupMember


def check_size(group: ConsumerGroupCore, state: ConsumerGroupState, member_id: str, instance_id: str | None) -> None:
    """`throwIfConsumerGroupIsFull`: before anything is known of the member."""
    returns = group.release.known_instance_fits_full_group and instance_id in state.static_members
    if len(state.members) >= group.config.max_size and member_id not in state.members and not returns:
        raise RefusedRequestError(
            Error.GROUP_MAX_SIZE_REACHED, f"The consumer group has reached its maximum capacity of {group.config.max_size} members."
        )


def check_epoch(member: ConsumerGroupMember, epoch: int, owned: Partitions | None) -> None:
    """`throwIfConsumerGroupMemberEpochIsInvalid`.

    The previous epoch passes if the member reports partitions that it was assigned: the answer with the new epoch got lost.
    """
    if epoch in (0, member.epoch):
        return
    ahead = epoch > member.epoch
    if not ahead and epoch == member.previous_epoch and _within(owned, member.assigned):
        return
    relation = "greater" if ahead else "smaller"
    raise RefusedRequestError(
        Error.FENCED_MEMBER_EPOCH,
        f"The consumer group member has a {relation} member epoch ({epoch}) than the one known by the group coordinator "
        f"({member.epoch}). The member must abandon all its partitions and rejoin.",
    )


def _within(owned: Partitions | None, assigned: Partitions) -> bool:
    """`isSubset`."""
    return owned is not None and all(topic_id in assigned and partitions <= assigned[topic_id] for topic_id, partitions in owned.items())


def dynamic_member(
    group: ConsumerGroupCore, state: ConsumerGroupState, member_id: str, epoch: int, owned: Partitions | None
) -> ConsumerGroupMember:
    """`getOrMaybeSubscribeDynamicConsumerGroupMember`: epoch 0 joins, or joins again with all that the member had."""
    member = group.member(state, member_id) if epoch or member_id in state.members else ConsumerGroupMember(member_id)
    check_epoch(member, epoch, owned)
    return member


def static_owner(group: ConsumerGroupCore, state: ConsumerGroupState, instance_id: str) -> ConsumerGroupMember | None:
    """`ConsumerGroup.staticMember`. An instance id that points to a removed member is refused, even to join."""
    member_id = state.static_members.get(instance_id)
    return None if member_id is None else group.member(state, member_id)


def known_static_member(group: ConsumerGroupCore, state: ConsumerGroupState, member_id: str, instance_id: str) -> ConsumerGroupMember:
    """The member that has the instance id, which has to be the sender (`throwIfStaticMemberIsUnknown`, `throwIfInstanceIdIsFenced`)."""
    owner = static_owner(group, state, instance_id)
    if owner is None:
        raise RefusedRequestError(Error.UNKNOWN_MEMBER_ID, f"Instance id {instance_id} is unknown.")
    if owner.member_id != member_id:
        message = f"Static member {member_id} with instance id {instance_id} was fenced by member {owner.member_id}."
        raise RefusedRequestError(Error.FENCED_INSTANCE_ID, message)
    return owner


def joining_static_member(
    group: ConsumerGroupCore, state: ConsumerGroupState, member_id: str, instance_id: str, operation: Operation, *, classic: bool
) -> ConsumerGroupMember:
    """`getOrMaybeSubscribeStaticConsumerGroupMember` for a member that joins.

    The instance id has to be free, or its member away (epoch -2): then the newcomer takes its place. Where one of both speaks the
    classic protocol, it takes it in any case.
    """
    owner = static_owner(group, state, instance_id)
    if owner is None:
        return state.members.get(member_id) or ConsumerGroupMember(member_id)
    if not classic and owner.classic is None and owner.epoch != STATIC_LEAVE_EPOCH:
        raise RefusedRequestError(
            Error.UNRELEASED_INSTANCE_ID,
            f"Static member {member_id} with instance id {instance_id} cannot join the group because the instance id is owned by "
            f"{owner.member_id} member.",
        )
    member = owner._replace(member_id=member_id, epoch=0, previous_epoch=0)
    operation.records += removal_records(owner.member_id)
    operation.records.append(subscription_record(member))
    operation.records.append(TargetAssignmentMember(member_id, state.target.get(owner.member_id, ())))
    operation.records.append(assignment_record(member, group.release))
    return member


def take_member(change: MemberChange, operation: Operation) -> bool:
    """`hasMemberSubscriptionChanged`: write the member if it differs, and say whether it names other topics."""
    if change.after.is_same(change.before):
        return False
    operation.records.append(subscription_record(change.after))
    return frozenset(change.after.topics) != frozenset(change.before.topics)
