"""What an assignor sees, and what it gives back. Kafka: `GroupSpecImpl`, `MemberSubscription`, `SubscribedTopicDescriber`."""

from __future__ import annotations

from collections.abc import Set as AbstractSet
from typing import NamedTuple

from coordinator_model.specification.consumer.member import OrderedPartitions
from coordinator_model.specification.consumer.subscriptions import SubscriptionType
from coordinator_model.specification.consumer.topics import TopicId, TopicImage
from coordinator_model.specification.hash_maps import JavaHashMap, hash_set_of

WorkingShare = JavaHashMap[TopicId, JavaHashMap[int, bool]]
"""A share that an assignor changes."""


class MemberSpec(NamedTuple):
    """A member, as an assignor sees it."""

    instance_id: str | None
    names: tuple[str, ...]
    """The topics it subscribes to, in the order of their set. They need not exist."""
    share: OrderedPartitions
    """Its share in the target so far."""

    def topic_ids(self, image: TopicImage) -> list[TopicId]:
        """The topics that exist, in the same order (`TopicIds`)."""
        return [topic.topic_id for name in self.names if (topic := image.named(name)) is not None]

    def subscribes_to(self, topic_id: TopicId, image: TopicImage) -> bool:
        """`TopicIds.contains`."""
        topic = image.with_id(topic_id)
        return topic is not None and topic.name in self.names


class GroupSpec(NamedTuple):
    """A group, as an assignor sees it."""

    members: JavaHashMap[str, MemberSpec]
    subscription: SubscriptionType
    assigned: AbstractSet[tuple[TopicId, int]]
    """The partitions that some member has in the target so far (`invertedTargetAssignment`)."""
    image: TopicImage

    def partitions_of(self, topic_id: TopicId) -> int:
        """`numPartitions`, of a topic that exists."""
        topic = self.image.with_id(topic_id)
        return 0 if topic is None else topic.partitions


def working_copy(share: OrderedPartitions) -> WorkingShare:
    """`AssignorHelpers.deepCopyAssignment`."""
    made: WorkingShare = JavaHashMap(len(share))
    for topic_id, partitions in share:
        made.put(topic_id, hash_set_of(partitions))
    return made


def take_partition(share: WorkingShare, topic_id: TopicId, partition: int) -> None:
    """Remove a partition, and with the last one its topic."""
    share[topic_id].remove(partition)
    if not len(share[topic_id]):
        share.remove(topic_id)


def share_in_order(share: WorkingShare) -> OrderedPartitions:
    """The share in the order of its hash maps."""
    return tuple((topic_id, tuple(partitions)) for topic_id, partitions in share.items())
