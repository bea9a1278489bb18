"""The `range` assignor: of each topic, the members get consecutive partitions. Kafka: `RangeAssignor`."""

from __future__ import annotations

from collections import Counter

from coordinator_model.specification.consumer.assignors.group_spec import GroupSpec
from coordinator_model.specification.consumer.member import OrderedPartitions
from coordinator_model.specification.consumer.subscriptions import SubscriptionType
from coordinator_model.specification.consumer.topics import TopicId
from coordinator_model.specification.hash_maps import JavaHashMap, capacity_of_copy


def assign_ranges(spec: GroupSpec) -> dict[str, OrderedPartitions]:
    """The share of each member. What members had before makes no difference."""
    ordered = sorted(spec.members, key=lambda member_id: _rank(member_id, spec.members[member_id].instance_id))
    same = spec.members[ordered[0]] if spec.subscription is SubscriptionType.HOMOGENEOUS else None
    """The member whose subscription stands for those of all."""
    topics = {member_id: (same or spec.members[member_id]).topic_ids(spec.image) for member_id in ordered}
    subscribers = Counter(topic_id for topic_ids in topics.values() for topic_id in topic_ids)
    seen: Counter[TopicId] = Counter()
    shares: dict[str, OrderedPartitions] = {}
    for member_id in ordered:
        size = len(topics[member_id] if same else spec.members[member_id].names)
        share: JavaHashMap[TopicId, tuple[int, ...]] = JavaHashMap(capacity_of_copy(size))
        for topic_id in topics[member_id]:
            partitions = _range(spec.partitions_of(topic_id), subscribers[topic_id], seen[topic_id])
            seen[topic_id] += 1
            if partitions:
                share.put(topic_id, tuple(partitions))
        shares[member_id] = tuple(share.items())
    return shares


def _rank(member_id: str, instance_id: str | None) -> tuple[bool, bytes]:
    """Static members by instance id, then dynamic ones by member id, compared as Java compares texts."""
    return instance_id is None, (member_id if instance_id is None else instance_id).encode("utf-16-be", "surrogatepass")


def _range(partitions: int, subscribers: int, position: int) -> range:
    """The partitions of the subscriber at `position`: the first ones get one more, until nothing is left over."""
    least, extra = divmod(partitions, subscribers)
    start = position * least + min(position, extra)
    return range(start, start + least + (position < extra))
