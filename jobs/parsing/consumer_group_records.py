"""Records of `__consumer_offsets` that describe a group of the consumer protocol (KIP-848): key types 3 to 8 and 16, values v0.

A coordinator writes some of them with each heartbeat or timer that changes a group, in one batch. A record without a value is a tombstone:
what its key names is gone. Source: kafka `group-coordinator/src/main/resources/common/message/ConsumerGroup*.json`, 3.8 to 4.4. Brokers of
3.7, which had the protocol for trial, wrote CurrentMemberAssignment otherwise: those are unreadable.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from coordinator_model import events as e
from coordinator_model.kafka_bytes import FieldReader, UnreadableError
from coordinator_model.specification.consumer.consumer_protocol import PROTOCOL_TYPE
from jobs.kafka.group_metadata import UnsupportedVersionError
from jobs.parsing.consumer_protocol import partitions_entry

Columns = dict[str, Any]
"""Columns of PARSED by name; the others are null."""

_TAG_OF_CLASSIC: Final = 0  # of ClassicMemberMetadata in ConsumerGroupMemberMetadataValue
_TAG_OF_HASH: Final = 0  # of MetadataHash in ConsumerGroupMetadataValue (4.1)
_TAG_OF_TIME: Final = 0  # of AssignmentTimestamp in ConsumerGroupTargetAssignmentMetadataValue (4.3; KIP-1263)
_MEMBER_STATES: Final = {0: "STABLE", 1: "UNREVOKED_PARTITIONS", 2: "UNRELEASED_PARTITIONS"}
"""org.apache.kafka.coordinator.group.modern.MemberState."""


def record_columns(key: bytes, value: bytes | None) -> Columns | None:
    """The row of a record; None if it is about something else. UnreadableError: what is wrong with it."""
    reader = FieldReader(key)
    number = reader.int16()
    if number not in _RECORDS:
        return None
    kind, read, subject_column = _RECORDS[number]
    columns: Columns = {"kind": kind, "group_id": reader.string()}
    subject = reader.string() if subject_column else ""
    if subject_column:
        columns[subject_column] = subject or None
    if reader.left:
        raise UnreadableError("bytes are left over in the key")
    return columns | ({"state": e.REMOVED} if value is None else _of_value(value, read, subject))


def _of_value(data: bytes, read: Callable[[FieldReader, str], Columns], subject: str) -> Columns:
    reader = FieldReader(data)
    version = reader.int16()
    if version != 0:
        raise UnsupportedVersionError(str(version))
    reader.compact = True
    columns = read(reader, subject)
    if reader.left:
        raise UnreadableError("bytes are left over in the value")
    return columns


def _epoch(reader: FieldReader, _: str) -> Columns:
    """ConsumerGroupMetadata: the epoch of the group. Since Kafka 4.1 with a hash of the subscribed topics and their partitions."""
    epoch, metadata_hash = reader.int32(), reader.tagged_fields().get(_TAG_OF_HASH)
    reason = None if metadata_hash is None else f"with metadata hash {int.from_bytes(metadata_hash, 'big', signed=True)}"
    return {"generation": epoch, "reason": reason}


def _topics(reader: FieldReader, _: str) -> Columns:
    """ConsumerGroupPartitionMetadata: the subscribed topics. Only brokers before 4.1 write values."""

    def partition() -> None:
        reader.int32()
        reader.array(reader.string, 1)  # racks
        reader.tagged_fields()

    def topic() -> None:
        reader.uuid()
        reader.string()
        reader.int32()  # number of partitions
        reader.array(partition, 6)
        reader.tagged_fields()

    topics = reader.array(topic, 23)
    reader.tagged_fields()
    return {"member_count": len(topics)}


def _member(reader: FieldReader, _: str) -> Columns:
    """ConsumerGroupMemberMetadata: what a member says of itself."""
    instance_id = reader.nullable_string()
    reader.nullable_string()  # rack
    client_id, client_host = reader.string(), reader.string()
    topics = sorted(reader.array(reader.string, 1))
    regex, rebalance_timeout_ms, assignor = reader.nullable_string(), reader.int32(), reader.nullable_string()
    classic = reader.tagged_fields().get(_TAG_OF_CLASSIC)
    session_timeout_ms = -1 if classic is None else _session_timeout(FieldReader(classic, compact=True))
    return {
        "instance_id": instance_id or None,
        "client_id": client_id,
        "client_host": client_host.rpartition("/")[2],  # java.net.InetAddress prints name/address
        "session_timeout_ms": session_timeout_ms if session_timeout_ms >= 0 else None,
        "rebalance_timeout_ms": rebalance_timeout_ms if rebalance_timeout_ms >= 0 else None,
        "subscribed_regex": regex or "",
        "protocols": [{"name": assignor or PROTOCOL_TYPE, "topics": topics, "owned": None, "digest": None}],
    }


def _session_timeout(reader: FieldReader) -> int:
    """That of ClassicMemberMetadata, whose protocols are passed over; a byte before it says whether it is there."""
    return reader.int32() if reader.unsigned_varint() else -1


def _target(reader: FieldReader, _: str) -> Columns:
    """ConsumerGroupTargetAssignmentMetadata: the epoch for which the target assignment was computed, since Kafka 4.3 with the time."""
    return {"generation": reader.int32(), "state": e.TIMED if _TAG_OF_TIME in reader.tagged_fields() else None}


def _share(reader: FieldReader, member_id: str) -> Columns:
    """ConsumerGroupTargetAssignmentMember: what a member is to have."""
    partitions = _partitions(reader)
    reader.tagged_fields()
    return {"assignments": [partitions_entry(member_id, partitions)]}


def _assignment(reader: FieldReader, member_id: str) -> Columns:
    """ConsumerGroupCurrentMemberAssignment: what a member has, and what it has to give up."""
    epoch, previous, state = reader.int32(), reader.int32(), reader.int8()
    assigned, pending = _partitions(reader), _partitions(reader)
    reader.tagged_fields()
    return {
        "generation": previous,
        "answer_generation": epoch,
        "state": _MEMBER_STATES.get(state, "UNKNOWN"),
        "assignments": [partitions_entry(member_id, assigned), partitions_entry(member_id, pending)],
    }


def _expression(reader: FieldReader, _: str) -> Columns:
    """ConsumerGroupRegularExpression: the topics that an expression matches."""
    topics = reader.array(reader.string, 1)
    reader.int64()  # version of the metadata
    reader.int64()  # when it was resolved
    reader.tagged_fields()
    return {"member_count": len(topics)}


def _partitions(reader: FieldReader) -> list[str]:
    """Partitions as topic id and number, as requests have them."""

    def of_topic() -> list[str]:
        topic = reader.uuid()
        numbers = reader.array(reader.int32, 4)
        reader.tagged_fields()
        return [f"{topic}-{number}" for number in sorted(numbers)]

    return [partition for partitions in sorted(reader.array(of_topic, 18)) for partition in partitions]


_RECORDS: Final[dict[int, tuple[str, Callable[[FieldReader, str], Columns], str]]] = {
    3: (e.EPOCH_STORED, _epoch, ""),
    4: (e.TOPICS_STORED, _topics, ""),
    5: (e.MEMBER_STORED, _member, "member_id"),
    6: (e.TARGET_STORED, _target, ""),
    7: (e.TARGET_MEMBER_STORED, _share, "member_id"),
    8: (e.CURRENT_STORED, _assignment, "member_id"),
    16: (e.EXPRESSION_STORED, _expression, "reason"),
}
"""By key type: the kind of the row, what reads the value, and the column of what the key names beside the group."""
