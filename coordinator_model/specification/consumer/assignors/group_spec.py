"""What an assignor sees, and what it gives back. Kafka: `GroupSpecImpl`, `MemberSubscription`, `SubscribedTopicDescriber`."""

from __future__ import annotations

from collections.abc import Set as AbstractSet
from typing import NamedTuple

from coordinator_model.specification.consumer.member import OrderedPartitions
from coordinator_model.specification.consumer.subscriptions import SubscriptionType
from coordinator_model.specification.consumer.topics import TopicId, TopicImage
from coordinator_model.specification.hash_maps import INITIAL_CAPACITY, JavaHashMap, hash_set_of


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


class Share:
    """A member's share, which an assignor may change. It keeps its order until then."""

    def __init__(self, old: OrderedPartitions) -> None:
        self.old = old
        self._working: JavaHashMap[TopicId, JavaHashMap[int, bool]] | None = None

    def working(self) -> JavaHashMap[TopicId, JavaHashMap[int, bool]]:
        """The copy that changes (`AssignorHelpers.deepCopyAssignment`)."""
        if self._working is None:
            self._working = JavaHashMap(len(self.old))
            for topic_id, partitions in self.old:
                self._working.put(topic_id, hash_set_of(partitions))
        return self._working

    def give(self, topic_id: TopicId, partition: int, capacity: int = INITIAL_CAPACITY) -> None:
        """Add a partition. `capacity`: that of the set for the first one of a topic."""
        self.working().compute(topic_id, lambda partitions: JavaHashMap(capacity) if partitions is None else partitions)
        self.working()[topic_id].put(partition, True)

    def take(self, topic_id: TopicId, partition: int) -> None:
        """Remove a partition, and with the last one its topic."""
        self.working()[topic_id].remove(partition)
        if not len(self.working()[topic_id]):
            self.working().remove(topic_id)

    def in_order(self) -> OrderedPartitions:
        """The share, in the order of its hash maps if it was changed."""
        return self.old if self._working is None else tuple((topic_id, tuple(partitions)) for topic_id, partitions in self._working.items())
