"""The group epoch: what moves it, and the target that is computed for it. Kafka: `updateSubscriptionMetadata`, `maybeReconcile`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from coordinator_model.specification.consumer.assignors.target import compute_target, subscribed_names
from coordinator_model.specification.consumer.core import REFRESH_NEVER_MS, ConsumerGroupCore, Operation
from coordinator_model.specification.consumer.effects import BumpCause, GroupEpochBumped, TargetComputed
from coordinator_model.specification.consumer.group_state import ConsumerGroupState
from coordinator_model.specification.consumer.handlers.membership import MemberChange
from coordinator_model.specification.consumer.handlers.records_of import assignment_record, target_record
from coordinator_model.specification.consumer.member import ConsumerGroupMember, MemberState, OrderedPartitions, Partitions, as_sets
from coordinator_model.specification.consumer.reconciliation import ReconciliationInput, reconcile
from coordinator_model.specification.consumer.records import ConsumerGroupMetadata, MetadataHash
from coordinator_model.specification.consumer.subscriptions import (
    SubscriptionCount,
    SubscriptionType,
    count_name,
    count_regex,
    metadata_hash,
    subscription_type,
)


class GroupEpoch(NamedTuple):
    """The group epoch and the subscription type that a request goes on with."""

    epoch: int
    subscription: SubscriptionType


def bump(group: ConsumerGroupCore, operation: Operation, epoch: int, topics: MetadataHash, cause: BumpCause, member_id: str | None) -> None:
    """Move the group epoch to `epoch`."""
    operation.records.append(ConsumerGroupMetadata(epoch, topics))
    operation.effects.append(GroupEpochBumped(group.now_ms, epoch, cause, member_id))


def update_epoch(
    group: ConsumerGroupCore, state: ConsumerGroupState, change: MemberChange, cause: BumpCause | None, operation: Operation
) -> GroupEpoch:
    """`updateSubscriptionMetadata`, if it is time for it: move the epoch because of `cause`, or because topics differ."""
    due = group.now_ms >= state.refresh_at_ms or state.group_epoch < state.refresh_epoch
    if cause is None and not due:
        return GroupEpoch(state.group_epoch, state.subscription)
    names = names_after(state, change)
    topics = metadata_hash(names, group.image)
    member = change.after
    static = member.instance_id is not None and member.instance_id in state.static_members
    size = len(state.members) + (member.member_id not in state.members and not static)
    subscription = subscription_type(_regexes_after(state, change), names, size)
    epoch = state.group_epoch
    if cause is not None or topics != state.metadata_hash:
        epoch += 1
        bump(group, operation, epoch, topics, cause or BumpCause.METADATA, None if cause is None else member.member_id)
    refresh_topics(group, state, epoch)
    return GroupEpoch(epoch, subscription)


def bump_cause(state: ConsumerGroupState, change: MemberChange) -> BumpCause:
    """Why a request moves the epoch: a new member, or one that changed its subscription, be it in the place of another."""
    instance_id = change.after.instance_id
    known = change.after.member_id in state.members or (instance_id is not None and instance_id in state.static_members)
    return BumpCause.SUBSCRIPTION if known else BumpCause.JOIN


def refresh_topics(group: ConsumerGroupCore, state: ConsumerGroupState, epoch: int) -> None:
    """`setMetadataRefreshDeadline`: the topics were looked at for this epoch."""
    state.refresh_at_ms = group.now_ms + REFRESH_NEVER_MS
    state.refresh_epoch = epoch


def names_after(state: ConsumerGroupState, change: MemberChange) -> Mapping[str, SubscriptionCount]:
    """`computeSubscribedTopicNames`."""
    names = dict(state.names)
    for topic in change.before.topics:
        count_name(names, topic, -1)
    for topic in change.after.topics:
        count_name(names, topic, 1)
    old = change.before.regex
    resolved = state.resolved.get(old)
    if old and old != change.after.regex and state.regexes.get(old) == 1 and resolved is not None:
        for topic in resolved.topics:
            count_regex(names, topic, -1)
    return names


def _regexes_after(state: ConsumerGroupState, change: MemberChange) -> list[int]:
    """`computeSubscribedRegularExpressions`: the numbers of members. More than one number means different subscriptions."""
    counts = dict(state.regexes.items())
    for regex, by in ((change.before.regex, -1), (change.after.regex, 1)):
        if regex:
            counts[regex] = counts.get(regex, 0) + by
    return [count for count in counts.values() if count]


def names_without(state: ConsumerGroupState, members: Iterable[ConsumerGroupMember], regexes: Iterable[str]) -> Iterable[str]:
    """`computeSubscribedTopicNamesWithoutDeletedMembers`."""
    names = dict(state.names)
    for member in members:
        for topic in member.topics:
            count_name(names, topic, -1)
    for regex in regexes:
        resolved = state.resolved.get(regex)
        for topic in resolved.topics if resolved is not None else ():
            count_regex(names, topic, -1)
    return names


def target_for(
    group: ConsumerGroupCore, state: ConsumerGroupState, change: MemberChange, now: GroupEpoch, operation: Operation
) -> tuple[int, OrderedPartitions]:
    """`maybeUpdateTargetAssignment`: the target epoch and the share of the member, stored or computed.

    They are computed if the group epoch is ahead of them and the assignment interval is over (KIP-1263).
    """
    if now.epoch <= state.target_epoch or not _may_compute(group, state):
        return state.target_epoch, state.target_of(change.after.member_id, change.after.instance_id)
    metadata = target_record(now.epoch, group.now_ms, group.release)
    target = compute_target(state, group.image, metadata, change, now.subscription, group.config.assignors[0])
    operation.records += target.records
    operation.effects.append(TargetComputed(group.now_ms, now.epoch, target.assignor))
    return now.epoch, target.share


def _may_compute(group: ConsumerGroupCore, state: ConsumerGroupState) -> bool:
    """`canComputeNextTargetAssignment`: no timer ends the interval; the first heartbeat after it computes."""
    waits = group.release.assignment_interval and state.target_at_ms is not None
    return not waits or group.now_ms >= (state.target_at_ms or 0) + group.assignment_interval_ms


def maybe_reconcile(
    group: ConsumerGroupCore,
    state: ConsumerGroupState,
    member: ConsumerGroupMember,
    target: tuple[int, OrderedPartitions],
    owned: Partitions | None,
    operation: Operation,
    *,
    subscription_changed: bool,
) -> ConsumerGroupMember:
    """`maybeReconcile`: the next step of the member towards its target, and its rebalance timer."""
    epoch, share = target
    if not subscription_changed and member.is_reconciled_to(epoch):
        return member
    names = subscribed_names(state, member)
    shrink = group.release.shrink_moves_previous_epoch
    given = ReconciliationInput(epoch, as_sets(share), names, group.image, state.owner_epoch, owned, subscription_changed, shrink)
    after = reconcile(member, given)
    if not after.is_same(member):
        operation.records.append(assignment_record(after, group.release))
        if after.classic is None:
            if after.state is MemberState.UNREVOKED_PARTITIONS:
                group.start_rebalance_timer(after)
            else:
                group.cancel_rebalance_timer(after.member_id)
    return after
