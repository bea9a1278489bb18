"""What the members of a group subscribe to, counted.

Kafka: `SubscriptionCount`, `ConsumerGroup.subscriptionType`, `ModernGroup.computeMetadataHash`.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, MutableMapping
from enum import Enum
from typing import NamedTuple

from coordinator_model.specification.consumer.records import MetadataHash
from coordinator_model.specification.consumer.topics import TopicImage


class SubscriptionType(str, Enum):
    """Whether all members subscribe to the same topics. Values are Kafka's names."""

    HOMOGENEOUS = "Homogeneous"
    HETEROGENEOUS = "Heterogeneous"


class SubscriptionCount(NamedTuple):
    """How many members name a topic, and how many resolved expressions contain it."""

    by_name: int = 0
    by_regex: int = 0


def count_name(counts: MutableMapping[str, SubscriptionCount], topic: str, change: int) -> None:
    """`incNameCount`, `decNameCount`: a member names the topic, or no longer does."""
    count = counts.get(topic, SubscriptionCount())
    _put(counts, topic, count._replace(by_name=count.by_name + change))


def count_regex(counts: MutableMapping[str, SubscriptionCount], topic: str, change: int) -> None:
    """`incRegexCount`, `decRegexCount`: an expression contains the topic, or no longer does."""
    count = counts.get(topic, SubscriptionCount())
    _put(counts, topic, count._replace(by_regex=count.by_regex + change))


def _put(counts: MutableMapping[str, SubscriptionCount], topic: str, count: SubscriptionCount) -> None:
    if count == SubscriptionCount():
        counts.pop(topic, None)
    else:
        counts[topic] = count


def subscription_type(regexes: Collection[int], names: Mapping[str, SubscriptionCount], members: int) -> SubscriptionType:
    """`ConsumerGroup.subscriptionType`. `regexes` are the numbers of members of each expression.

    Homogeneous: all members name the same topics and nobody uses an expression, or all use one expression and nobody names topics.
    """
    if not regexes:
        same = all(count.by_name == members for count in names.values())
    else:
        same = next(iter(regexes)) == members and all(count == SubscriptionCount(0, 1) for count in names.values())
    return SubscriptionType.HOMOGENEOUS if same else SubscriptionType.HETEROGENEOUS


def metadata_hash(names: Iterable[str], image: TopicImage) -> MetadataHash:
    """`ModernGroup.computeMetadataHash`: differs wherever Kafka's does. Racks are not modelled."""
    topics = [topic for name in sorted(names) if (topic := image.named(name)) is not None]
    return tuple((topic.name, *topic.topic_id, topic.partitions) for topic in topics)
