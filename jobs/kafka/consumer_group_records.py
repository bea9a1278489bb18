"""Records of `__consumer_offsets` that describe a group of the consumer protocol (KIP-848): key types 3 to 8 and 16, values v0.

A coordinator writes some of them with each heartbeat or timer that changes a group, in one batch. A record without a value is a tombstone:
what its key names is gone. Source: kafka `group-coordinator/src/main/resources/common/message/ConsumerGroup*.json`, 3.8 to 4.4. Brokers of
3.7, which had the protocol for trial, wrote CurrentMemberAssignment otherwise: those are unreadable.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, NamedTuple

from coordinator_model.kafka_bytes import FieldReader, UnreadableError
from jobs.kafka.group_metadata import UnsupportedVersionError

EPOCH_KEY: Final = 3
TOPICS_KEY: Final = 4
MEMBER_KEY: Final = 5
TARGET_KEY: Final = 6
SHARE_KEY: Final = 7
ASSIGNMENT_KEY: Final = 8
EXPRESSION_KEY: Final = 16

_TAG_OF_CLASSIC: Final = 0  # of ClassicMemberMetadata in ConsumerGroupMemberMetadataValue
_TAG_OF_HASH: Final = 0  # of MetadataHash in ConsumerGroupMetadataValue (4.1)
_TAG_OF_TIME: Final = 0  # of AssignmentTimestamp in ConsumerGroupTargetAssignmentMetadataValue (4.3; KIP-1263)


class StoredEpoch(NamedTuple):
    """ConsumerGroupMetadata: the epoch of the group."""

    epoch: int
    metadata_hash: int | None  # of the subscribed topics and their partitions; None: not written, as before Kafka 4.1


class StoredTopics(NamedTuple):
    """ConsumerGroupPartitionMetadata: the subscribed topics, in order. Only brokers before 4.1 write values."""

    topics: tuple[str, ...]


class StoredMember(NamedTuple):
    """ConsumerGroupMemberMetadata: what a member says of itself. What it does not say is ""."""

    instance_id: str
    client_id: str
    client_host: str
    topics: tuple[str, ...]
    regex: str
    rebalance_timeout_ms: int
    assignor: str
    session_timeout_ms: int  # of a member that speaks the classic protocol; else -1


class StoredTarget(NamedTuple):
    """ConsumerGroupTargetAssignmentMetadata: the epoch for which the target assignment was computed."""

    epoch: int
    timed: bool  # it says when, as since Kafka 4.3


class StoredShare(NamedTuple):
    """ConsumerGroupTargetAssignmentMember: what a member is to have."""

    partitions: tuple[str, ...]


class StoredAssignment(NamedTuple):
    """ConsumerGroupCurrentMemberAssignment: what a member has, and what it has to give up."""

    epoch: int
    previous_epoch: int
    state: str
    assigned: tuple[str, ...]
    pending: tuple[str, ...]


class StoredExpression(NamedTuple):
    """ConsumerGroupRegularExpression: the topics that an expression matches."""

    topics: tuple[str, ...]


StoredValue = StoredEpoch | StoredTopics | StoredMember | StoredTarget | StoredShare | StoredAssignment | StoredExpression


class ConsumerGroupRecord(NamedTuple):
    """One record. `subject`: the member id, or the regular expression, where the key has one. `value`: None for a tombstone."""

    key: int
    group_id: str
    subject: str
    value: StoredValue | None


def decode_consumer_group_record(key: bytes, value: bytes | None) -> ConsumerGroupRecord | None:
    """What a record says; None if it is about something else. UnreadableError: what is wrong with it."""
    reader = FieldReader(key)
    kind = reader.int16()
    if kind not in _VALUES:
        return None
    group_id = reader.string()
    subject = reader.string() if kind in _WITH_SUBJECT else ""
    if reader.left:
        raise UnreadableError("bytes are left over in the key")
    return ConsumerGroupRecord(kind, group_id, subject, None if value is None else _value(kind, value))


def _value(kind: int, data: bytes) -> StoredValue:
    reader = FieldReader(data)
    version = reader.int16()
    if version != 0:
        raise UnsupportedVersionError(str(version))
    reader.compact = True
    value = _VALUES[kind](reader)
    if kind not in _READS_ITS_TAGS:
        reader.tagged_fields()
    if reader.left:
        raise UnreadableError("bytes are left over in the value")
    return value


def _metadata_hash(field: bytes | None) -> int | None:
    return None if field is None else int.from_bytes(field, "big", signed=True)


def _topics(reader: FieldReader) -> StoredTopics:
    def partition() -> None:
        reader.int32()
        reader.array(reader.string, 1)  # racks
        reader.tagged_fields()

    def topic() -> str:
        reader.uuid()
        name = reader.string()
        reader.int32()  # number of partitions
        reader.array(partition, 6)
        reader.tagged_fields()
        return name

    return StoredTopics(tuple(sorted(reader.array(topic, 23))))


def _member(reader: FieldReader) -> StoredMember:
    instance_id = reader.nullable_string()
    reader.nullable_string()  # rack
    client_id, client_host = reader.string(), reader.string()
    topics = tuple(sorted(reader.array(reader.string, 1)))
    regex, rebalance_timeout_ms, assignor = reader.nullable_string(), reader.int32(), reader.nullable_string()
    classic = reader.tagged_fields().get(_TAG_OF_CLASSIC)
    return StoredMember(
        instance_id or "",
        client_id,
        client_host.rpartition("/")[2],  # java.net.InetAddress prints name/address
        topics,
        regex or "",
        rebalance_timeout_ms,
        assignor or "",
        -1 if classic is None else _session_timeout(FieldReader(classic, compact=True)),
    )


def _session_timeout(reader: FieldReader) -> int:
    """That of ClassicMemberMetadata, whose protocols are passed over; a byte before it says whether it is there."""
    return reader.int32() if reader.unsigned_varint() else -1


def _partitions(reader: FieldReader) -> tuple[str, ...]:
    """Partitions as topic id and number, as requests have them."""

    def of_topic() -> list[str]:
        topic = reader.uuid()
        numbers = reader.array(reader.int32, 4)
        reader.tagged_fields()
        return [f"{topic}-{number}" for number in sorted(numbers)]

    return tuple(partition for partitions in sorted(reader.array(of_topic, 18)) for partition in partitions)


def _assignment(reader: FieldReader) -> StoredAssignment:
    epoch, previous, state = reader.int32(), reader.int32(), reader.int8()
    return StoredAssignment(epoch, previous, _STATES.get(state, "UNKNOWN"), _partitions(reader), _partitions(reader))


def _expression(reader: FieldReader) -> StoredExpression:
    topics = tuple(sorted(reader.array(reader.string, 1)))
    reader.int64()  # version of the metadata
    reader.int64()  # when it was resolved
    return StoredExpression(topics)


_VALUES: Final[dict[int, Callable[[FieldReader], StoredValue]]] = {
    EPOCH_KEY: lambda reader: StoredEpoch(reader.int32(), _metadata_hash(reader.tagged_fields().get(_TAG_OF_HASH))),
    TOPICS_KEY: _topics,
    MEMBER_KEY: _member,
    TARGET_KEY: lambda reader: StoredTarget(reader.int32(), _TAG_OF_TIME in reader.tagged_fields()),
    SHARE_KEY: lambda reader: StoredShare(_partitions(reader)),
    ASSIGNMENT_KEY: _assignment,
    EXPRESSION_KEY: _expression,
}
_READS_ITS_TAGS: Final = frozenset({EPOCH_KEY, MEMBER_KEY, TARGET_KEY})
_WITH_SUBJECT: Final = frozenset({MEMBER_KEY, SHARE_KEY, ASSIGNMENT_KEY, EXPRESSION_KEY})
_STATES: Final = {0: "STABLE", 1: "UNREVOKED_PARTITIONS", 2: "UNRELEASED_PARTITIONS"}
"""org.apache.kafka.coordinator.group.modern.MemberState."""

CONSUMER_GROUP_KEYS: Final = frozenset(_VALUES)
"""The key types of these records."""
