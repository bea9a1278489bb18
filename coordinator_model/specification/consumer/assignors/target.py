"""The target assignment: which partitions each member shall have. Kafka: `TargetAssignmentBuilder`, `updateTargetAssignment`."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Final, NamedTuple

from coordinator_model.specification.consumer.assignors.group_spec import GroupSpec, MemberSpec
from coordinator_model.specification.consumer.assignors.range_assignor import assign_ranges
from coordinator_model.specification.consumer.assignors.uniform_heterogeneous import assign_evenly
from coordinator_model.specification.consumer.assignors.uniform_homogeneous import assign_uniformly
from coordinator_model.specification.consumer.group_state import ConsumerGroupState
from coordinator_model.specification.consumer.member import ConsumerGroupMember, OrderedPartitions, as_sets, each_partition
from coordinator_model.specification.consumer.records import ConsumerGroupRecord, TargetAssignmentMember, TargetAssignmentMetadata
from coordinator_model.specification.consumer.subscriptions import SubscriptionType
from coordinator_model.specification.consumer.topics import TopicImage
from coordinator_model.specification.hash_maps import JavaHashMap

Assignor = Callable[[GroupSpec], dict[str, OrderedPartitions]]


class ComputedTarget(NamedTuple):
    """A new target, for the epoch of the group."""

    assignor: str
    records: list[ConsumerGroupRecord]
    share: OrderedPartitions
    """That of the member whose heartbeat computed it."""


def uniform(spec: GroupSpec) -> dict[str, OrderedPartitions]:
    """`UniformAssignor`: as evenly as possible, and as little moved as possible."""
    return assign_uniformly(spec) if spec.subscription is SubscriptionType.HOMOGENEOUS else assign_evenly(spec)


ASSIGNORS: Final[dict[str, Assignor]] = {"uniform": uniform, "range": assign_ranges}


def subscribed_names(state: ConsumerGroupState, member: ConsumerGroupMember) -> tuple[str, ...]:
    """The topics that a member subscribes to by name or by a resolved expression, in the order of `UnionSet`."""
    resolved = state.resolved.get(member.regex) if member.regex else None
    if resolved is None or not resolved.topics:
        return member.topics
    named, matched = member.topics, resolved.topics
    large, small = (named, matched) if len(named) > len(matched) else (matched, named)
    return (*large, *(name for name in small if name not in large))


def preferred_assignor(state: ConsumerGroupState, old: ConsumerGroupMember, new: ConsumerGroupMember, default: str) -> str:
    """`computePreferredServerAssignor`: the one that most members prefer; of equals, the first in the iteration order."""
    counts: JavaHashMap[str, int] = JavaHashMap.copy_of(state.assignors.items(), len(state.assignors))
    for name, change in ((old.assignor, -1), (new.assignor, 1)):
        if name is not None:
            counts.compute(name, lambda count, change=change: ((count or 0) + change) or None)  # type: ignore[misc]
    return _first_of_most(counts.items(), default)


def prefers_another_assignor(state: ConsumerGroupState, change: tuple[ConsumerGroupMember, ConsumerGroupMember], default: str) -> bool:
    """`hasPreferredServerAssignorChanged`: whether a member that changes moves the group to another assignor."""
    return preferred_assignor(state, *change, default) != _first_of_most(state.assignors.items(), default)


def _first_of_most(counts: Iterable[tuple[str, int]], default: str) -> str:
    most = max(counts, key=lambda entry: entry[1], default=None)
    return default if most is None else most[0]


def compute_target(
    state: ConsumerGroupState,
    image: TopicImage,
    metadata: TargetAssignmentMetadata,
    members: tuple[ConsumerGroupMember, ConsumerGroupMember],
    subscription: SubscriptionType,
    default_assignor: str,
) -> ComputedTarget:
    """`updateTargetAssignment`. `metadata`: the record of this target. `members`: that of the request, before and after its changes."""
    _, updated = members
    assignor = preferred_assignor(state, *members, default_assignor)
    share_of = _owner_of_share(state, updated)
    specs = _member_specs(state, updated, share_of)
    spec = GroupSpec(specs, subscription, set(each_partition(*state.target.values())), image)
    shares = ASSIGNORS[assignor](spec)
    records: list[ConsumerGroupRecord] = []
    for member_id in specs:
        share = shares.get(member_id, ())
        inherits = member_id == updated.member_id and state.release.replacement_keeps_share
        old = state.target.get(share_of if inherits else member_id)
        if old is None or as_sets(old) != as_sets(share):
            records.append(TargetAssignmentMember(member_id, share))
    records.append(metadata)
    return ComputedTarget(assignor, records, shares.get(updated.member_id, ()))


def _owner_of_share(state: ConsumerGroupState, updated: ConsumerGroupMember) -> str:
    """The member whose old share the member of the request has: its own, or that of the static member it replaces."""
    owner = None if updated.instance_id is None else state.static_members.get(updated.instance_id)
    return updated.member_id if owner is None else owner


def _member_specs(state: ConsumerGroupState, updated: ConsumerGroupMember, share_of: str) -> JavaHashMap[str, MemberSpec]:
    """All members with their old shares. A static member that returned takes the place and the share of the one before it."""
    specs: JavaHashMap[str, MemberSpec] = JavaHashMap()
    replaced = None if share_of == updated.member_id else share_of
    for member_id, member in state.members.items():
        if member_id != replaced or not state.release.replacement_keeps_share:
            specs.put(member_id, _member_spec(state, member, state.target.get(member_id, ())))
    changes: JavaHashMap[str, MemberSpec | None] = JavaHashMap()
    changes.put(updated.member_id, _member_spec(state, updated, state.target.get(share_of, ())))
    if replaced is not None:
        changes.put(replaced, None)
    for member_id, spec in changes.items():
        if spec is None:
            specs.remove(member_id)
        else:
            specs.put(member_id, spec)
    return specs


def _member_spec(state: ConsumerGroupState, member: ConsumerGroupMember, share: OrderedPartitions) -> MemberSpec:
    return MemberSpec(member.instance_id, subscribed_names(state, member), share)
