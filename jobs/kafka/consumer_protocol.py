"""Subscriptions and assignments of the `consumer` protocol type: what JoinGroup and SyncGroup carry as bytes.

A blob is a 2-byte version and then a `ConsumerProtocolSubscription` or `ConsumerProtocolAssignment` (kafka
`clients/src/main/resources/common/message/`), v0 to v3, big-endian, classic (not compact) encoding. As Kafka's own
`ConsumerProtocol`, this reads a newer version as the newest known one and ignores what follows.
"""

from __future__ import annotations

from jobs.kafka.bytes import FieldReader, UnreadableError


def decode_subscription(data: bytes) -> tuple[list[str], list[str]]:
    """Topics and owned partitions of a subscription."""
    reader = FieldReader(data)
    version = reader.int16()
    if version < 0:
        raise UnreadableError("a negative version")
    topics = reader.array(reader.string, 2)
    reader.nullable_bytes()  # user data
    owned = _partitions(reader) if version >= 1 else []
    if version >= 2:
        reader.int32()  # generation
    if version >= 3:
        reader.nullable_string()  # rack
    _nothing_left(reader, version)
    return topics, owned


def decode_assignment(data: bytes) -> list[str]:
    """Partitions of an assignment. A coordinator sends no bytes to a member that the leader forgot: it has none."""
    if not data:
        return []
    reader = FieldReader(data)
    version = reader.int16()
    if version < 0:
        raise UnreadableError("a negative version")
    partitions = _partitions(reader)
    reader.nullable_bytes()  # user data
    _nothing_left(reader, version)
    return partitions


def _partitions(reader: FieldReader) -> list[str]:
    """Topics with partition numbers, as topic-partition."""

    def of_topic() -> list[str]:
        topic = reader.string()
        return [f"{topic}-{number}" for number in reader.array(reader.int32, 4)]

    return [partition for partitions in reader.array(of_topic, 6) for partition in partitions]


def _nothing_left(reader: FieldReader, version: int) -> None:
    if version <= 3 and reader.left:
        raise UnreadableError("bytes are left over")
