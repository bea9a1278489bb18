"""What consumers of the classic protocol send in JoinGroup and get from SyncGroup: the bytes of the embedded consumer protocol.

Kafka: `ConsumerProtocolSubscription`, `ConsumerProtocolAssignment`, versions 0 to 3. A newer version is read as version 3, and what follows
is passed over. A coordinator of classic groups only forwards these bytes; a consumer group has to read and write them.
"""

from __future__ import annotations

import struct
from typing import Final, NamedTuple

from coordinator_model.kafka_bytes import FieldReader, UnreadableError

PROTOCOL_TYPE: Final = "consumer"
"""`ConsumerProtocol.PROTOCOL_TYPE`."""
NEWEST_VERSION: Final = 3

TopicPartitions = tuple[tuple[str, tuple[int, ...]], ...]
"""Partitions by the name of their topic."""


class EmbeddedSubscription(NamedTuple):
    """The metadata of a protocol in JoinGroup."""

    topics: tuple[str, ...]
    owned: TopicPartitions = ()
    generation: int = -1
    rack_id: str | None = None
    version: int = NEWEST_VERSION


class EmbeddedAssignment(NamedTuple):
    """The assignment of a member. An assignor's `user_data` would be lost in a consumer group."""

    partitions: TopicPartitions
    user_data: bytes = b""


def write_subscription(subscription: EmbeddedSubscription) -> bytes:
    """The bytes of a subscription, in its version."""
    version = subscription.version
    out = struct.pack(">h", version) + _texts(subscription.topics) + struct.pack(">i", -1)
    out += _topic_partitions(subscription.owned) if version >= 1 else b""
    out += struct.pack(">i", subscription.generation) if version >= 2 else b""
    return out + (_text(subscription.rack_id) if version >= 3 else b"")


def read_subscription(data: bytes) -> EmbeddedSubscription:
    """The subscription of which these are the bytes. UnreadableError: they are of none."""
    reader = FieldReader(data)
    version = _version(reader)
    topics = tuple(reader.array(reader.string, 2))
    reader.nullable_bytes()  # of the assignor
    return EmbeddedSubscription(
        topics,
        _read_partitions(reader) if version >= 1 else (),
        reader.int32() if version >= 2 else -1,
        reader.nullable_string() if version >= 3 else None,
        version,
    )


def write_assignment(partitions: TopicPartitions, version: int) -> bytes:
    """The bytes of an assignment for a member that speaks `version`."""
    return struct.pack(">h", version) + _topic_partitions(partitions) + struct.pack(">i", -1)


def read_assignment(data: bytes) -> EmbeddedAssignment:
    """The assignment of which these are the bytes. UnreadableError: they are of none.

    No bytes: nothing is assigned. A coordinator sends them to a member that the leader forgot.
    """
    if not data:
        return EmbeddedAssignment(())
    reader = FieldReader(data)
    _version(reader)
    return EmbeddedAssignment(_read_partitions(reader), reader.nullable_bytes() or b"")


def version_of(data: bytes) -> int:
    """The version in the first bytes (`ConsumerProtocol.deserializeVersion`)."""
    return FieldReader(data).int16()


def _version(reader: FieldReader) -> int:
    version = reader.int16()
    if version < 0:
        raise UnreadableError("a negative version")
    return version


def _read_partitions(reader: FieldReader) -> TopicPartitions:
    def of_topic() -> tuple[str, tuple[int, ...]]:
        return reader.string(), tuple(reader.array(reader.int32, 4))

    return tuple(reader.array(of_topic, 6))


def _text(text: str | None) -> bytes:
    if text is None:
        return struct.pack(">h", -1)
    encoded = text.encode()
    return struct.pack(">h", len(encoded)) + encoded


def _texts(texts: tuple[str, ...]) -> bytes:
    return struct.pack(">i", len(texts)) + b"".join(map(_text, texts))


def _topic_partitions(partitions: TopicPartitions) -> bytes:
    out = struct.pack(">i", len(partitions))
    for topic, numbers in partitions:
        out += _text(topic) + struct.pack(f">i{len(numbers)}i", len(numbers), *numbers)
    return out
