"""What consumers of the classic protocol send in JoinGroup and get from SyncGroup: the bytes of the embedded consumer protocol.

Kafka: `ConsumerProtocolSubscription`, `ConsumerProtocolAssignment`. A coordinator of classic groups only forwards these bytes; a consumer
group has to read and write them.
"""

from __future__ import annotations

import struct
from typing import Final, NamedTuple

PROTOCOL_TYPE: Final = "consumer"
"""`ConsumerProtocol.PROTOCOL_TYPE`."""
NEWEST_VERSION: Final = 3

TopicPartitions = tuple[tuple[str, tuple[int, ...]], ...]
"""Partitions by the name of their topic."""


class MalformedProtocolError(ValueError):
    """The bytes are not of the consumer protocol (`SchemaException`)."""


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
    """The subscription of which these are the bytes. Fields of versions to come are passed over."""
    reader = _BytesReader(data)
    version = reader.number(">h")
    topics = tuple(reader.text() or "" for _ in range(reader.number(">i")))
    reader.blob()
    return EmbeddedSubscription(
        topics,
        reader.topic_partitions() if version >= 1 else (),
        reader.number(">i") if version >= 2 else -1,
        reader.text() if version >= 3 else None,
        version,
    )


def write_assignment(partitions: TopicPartitions, version: int) -> bytes:
    """The bytes of an assignment for a member that speaks `version`."""
    return struct.pack(">h", version) + _topic_partitions(partitions) + struct.pack(">i", -1)


def read_assignment(data: bytes) -> EmbeddedAssignment:
    """The assignment of which these are the bytes. No bytes: nothing is assigned."""
    if not data:
        return EmbeddedAssignment(())
    reader = _BytesReader(data)
    reader.number(">h")
    return EmbeddedAssignment(reader.topic_partitions(), reader.blob())


def version_of(data: bytes) -> int:
    """The version in the first bytes (`ConsumerProtocol.deserializeVersion`)."""
    return _BytesReader(data).number(">h")


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


class _BytesReader:
    def __init__(self, data: bytes) -> None:
        self.data = data
        self.at = 0

    def number(self, kind: str) -> int:
        """A number of 16 or 32 bits."""
        try:
            (value,) = struct.unpack_from(kind, self.data, self.at)
        except struct.error as error:
            raise MalformedProtocolError(str(error)) from None
        self.at += struct.calcsize(kind)
        return int(value)

    def take(self, length: int) -> bytes:
        """Some bytes; none for a length below 0."""
        end = self.at + max(length, 0)
        if end > len(self.data):
            raise MalformedProtocolError(f"{length} bytes are not there")
        self.at, start = end, self.at
        return self.data[start:end]

    def text(self) -> str | None:
        """A text, which may be absent."""
        length = self.number(">h")
        return None if length < 0 else self.take(length).decode("utf-8", errors="replace")

    def blob(self) -> bytes:
        """Bytes, which may be absent."""
        return self.take(self.number(">i"))

    def topic_partitions(self) -> TopicPartitions:
        """Partitions by topic."""
        found = []
        for _ in range(self.number(">i")):
            topic = self.text() or ""
            found.append((topic, tuple(self.number(">i") for _ in range(self.number(">i")))))
        return tuple(found)
