"""The reconciliation of one member with its target: what it keeps, gives up and gets (KIP-848, "Group State - Assignment").

A member gives up before it gets: it reaches the target epoch once it has acknowledged what it had to revoke. What others still have, it
gets with a later heartbeat. Kafka: `CurrentAssignmentBuilder`.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import NamedTuple

from coordinator_model.errors import Error
from coordinator_model.specification.consumer.group_state import FREE
from coordinator_model.specification.consumer.member import (
    NO_PARTITIONS,
    ConsumerGroupMember,
    MemberState,
    Partitions,
    all_in_epoch,
    each_partition,
)
from coordinator_model.specification.consumer.topics import TopicId, TopicImage
from coordinator_model.specification.refusals import RefusedRequestError

_UNKNOWN_STATE = "The consumer group member is in a unknown state. The member must abandon all its partitions and rejoin."


class ReconciliationInput(NamedTuple):
    """What the reconciliation of a member looks at, besides the member."""

    target_epoch: int
    target: Partitions
    names: Collection[str]
    """The topics that the member subscribes to, by name or by expression; they need not exist."""
    image: TopicImage
    owner_epoch: Callable[[TopicId, int], int]
    owned: Partitions | None
    """What the member says that it owns; None: it did not say."""
    subscription_changed: bool
    shrink_moves_previous_epoch: bool
    """`KafkaVersion.shrink_moves_previous_epoch`."""

    def subscribes_to(self, topic_id: TopicId) -> bool:
        """`TopicIds.contains`."""
        topic = self.image.with_id(topic_id)
        return topic is not None and topic.name in self.names

    def still_owns(self, partitions: Partitions) -> bool:
        """`ownsRevokedPartitions`: whether the member may still have some of them."""
        if self.owned is None:
            return True
        return any(owned & partitions.get(topic_id, frozenset()) for topic_id, owned in self.owned.items())


def reconcile(member: ConsumerGroupMember, given: ReconciliationInput) -> ConsumerGroupMember:
    """`CurrentAssignmentBuilder.build`: the member after its next step."""
    if member.state is MemberState.STABLE and member.epoch == given.target_epoch:
        return _drop_unsubscribed(member, given) if given.subscription_changed else member
    if member.state is MemberState.UNREVOKED_PARTITIONS and given.still_owns(member.pending):
        return _drop_unsubscribed(member, given) if given.subscription_changed else member
    if member.state is MemberState.UNKNOWN:
        if given.owned is None or given.owned:
            raise RefusedRequestError(Error.FENCED_MEMBER_EPOCH, _UNKNOWN_STATE)
        return _next_step(member, given, given.target_epoch)
    return _next_step(member, given, member.epoch)


def _next_step(member: ConsumerGroupMember, given: ReconciliationInput, epoch: int) -> ConsumerGroupMember:
    """`computeNextAssignment`: towards the target."""
    kept: dict[TopicId, frozenset[int]] = {}
    revoked: dict[TopicId, frozenset[int]] = {}
    after: dict[TopicId, frozenset[int]] = {}
    held_by_others = False
    for topic_id in {**given.target, **member.assigned}:
        assigned = member.assigned.get(topic_id, frozenset())
        target = given.target.get(topic_id, frozenset()) if given.subscribes_to(topic_id) else frozenset()
        own_pending = member.pending.get(topic_id, frozenset())
        missing = target - assigned
        free = frozenset(p for p in missing if given.owner_epoch(topic_id, p) == FREE or p in own_pending)
        held_by_others = held_by_others or free != missing
        for part, into in ((assigned & target, kept), (assigned - target, revoked), (assigned & target | free, after)):
            if part:
                into[topic_id] = part
    if revoked and given.still_owns(revoked):
        return _owning(member.with_epoch(epoch)._replace(state=MemberState.UNREVOKED_PARTITIONS), kept, revoked, kept)
    state = MemberState.UNRELEASED_PARTITIONS if held_by_others else MemberState.STABLE
    return _owning(member.with_epoch(given.target_epoch)._replace(state=state), after, NO_PARTITIONS, kept)


def _drop_unsubscribed(member: ConsumerGroupMember, given: ReconciliationInput) -> ConsumerGroupMember:
    """`updateCurrentAssignment`: the member gives up the topics that it no longer subscribes to, in the same epoch."""
    kept = {topic_id: partitions for topic_id, partitions in member.assigned.items() if given.subscribes_to(topic_id)}
    if len(kept) == len(member.assigned) and (given.names or member.pending):  # without a subscription, Kafka does not ask what was dropped
        return member
    pending = dict(member.pending)
    for topic_id, partitions in member.assigned.items():
        if topic_id not in kept:
            pending[topic_id] = pending.get(topic_id, frozenset()) | partitions
    if given.shrink_moves_previous_epoch:
        member = member.with_epoch(member.epoch)
    if pending and given.still_owns(pending):
        return _owning(member._replace(state=MemberState.UNREVOKED_PARTITIONS), kept, pending, kept)
    return _owning(member, kept, member.pending, kept)


def _owning(member: ConsumerGroupMember, assigned: Partitions, pending: Partitions, kept: Partitions) -> ConsumerGroupMember:
    """The member with these partitions. What is assigned and not in `kept` is assigned in the member's epoch; the rest was before."""
    before = {partition: member.assignment_epochs[partition] for partition in each_partition(kept.items(), pending.items())}
    return member._replace(assigned=assigned, pending=pending, assignment_epochs={**all_in_epoch(member.epoch, assigned), **before})
