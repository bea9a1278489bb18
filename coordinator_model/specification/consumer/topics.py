"""The topics of the cluster, as a coordinator sees them. Kafka: `CoordinatorMetadataImage`, `Uuid`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple


class TopicId(NamedTuple):
    """A topic id as two signed 64 bit numbers. Ids are ordered as `Uuid.compareTo` orders them."""

    most_significant: int
    least_significant: int


class Topic(NamedTuple):
    """A topic that exists."""

    name: str
    topic_id: TopicId
    partitions: int


class TopicImage:
    """The topics at one moment. An image never changes: a change of a topic makes the next one."""

    __slots__ = ("_by_id", "_by_name", "version", "version_with_new_topics")

    def __init__(self, topics: Iterable[Topic] = (), version: int = 0, version_with_new_topics: int = 0) -> None:
        self._by_name = {topic.name: topic for topic in topics}
        self._by_id = {topic.topic_id: topic for topic in self._by_name.values()}
        self.version = version
        self.version_with_new_topics = version_with_new_topics
        """The version of the newest image that has a topic which the one before had not."""

    def named(self, name: str) -> Topic | None:
        """The topic of that name, if there is one."""
        return self._by_name.get(name)

    def with_id(self, topic_id: TopicId) -> Topic | None:
        """The topic of that id, if it exists still."""
        return self._by_id.get(topic_id)

    def names(self) -> list[str]:
        """The names of all topics."""
        return list(self._by_name)

    def changed(self, changes: Mapping[str, Topic | None]) -> TopicImage:
        """The next image, with the topics in `changes` in the place of those of the same names; None: deleted."""
        topics = {**self._by_name, **changes}
        new = any(topic is not None and topic.topic_id not in self._by_id for topic in changes.values())
        version = self.version + 1
        left = [topic for topic in topics.values() if topic is not None]
        return TopicImage(left, version, version if new else self.version_with_new_topics)

    def new_up_to(self, version: int) -> TopicImage:
        """The same topics for a coordinator to which all of `version` and before are new, because it loaded then."""
        return self if version <= self.version_with_new_topics else TopicImage(self._by_name.values(), self.version, version)
