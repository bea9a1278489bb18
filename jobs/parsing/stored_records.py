"""Records of `__consumer_offsets` as rows: committed offsets, classic groups, and groups of the consumer protocol (KIP-848).

A record without a value is a tombstone: what its key names is gone. Source: kafka
`group-coordinator/src/main/resources/common/message/*.json`, up to 4.4.

* Committed offsets, key types 0 (Kafka 0.8) and 1: a coordinator writes one for each partition of a commit. A commit of a transaction is
  written at once, and holds once the transaction is committed: the record does not tell which one that is. Brokers write v1 where a commit
  has its own time to expire; else v3 since 2.1 and v4, the flexible one with the topic's id, since 4.1.
* Classic groups, key type 2: a coordinator writes one when it stores the leader's assignment, when a group becomes empty and when a static
  member is replaced. Brokers choose the version by their protocol level: v3 since 2.3; v4 is the flexible one.
* Groups of the consumer protocol, key types 3 to 8 and 16: a coordinator writes some of them with each heartbeat or timer that changes a
  group, in one batch. Brokers of 3.7, which had the protocol for trial, wrote CurrentMemberAssignment otherwise: those are unreadable.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any, Final, NamedTuple

from coordinator_model import events as e
from coordinator_model.kafka_bytes import FieldReader, UnreadableError
from coordinator_model.specification.consumer.consumer_protocol import PROTOCOL_TYPE
from coordinator_model.states import State
from jobs.common.times import EPOCH, epoch_ms
from jobs.logs.record_judge import COMMIT_KEYS
from jobs.parsing.consumer_protocol import assignment_entry, member_entry, partitions_entry, subscription

Columns = dict[str, Any]
"""Columns of PARSED by name; the others are null."""

_SMALLEST_MEMBER: Final = 7  # bytes of a member of a classic group in the compact encoding if all its texts are empty
_TAG_OF_TOPIC_ID: Final = 0  # of TopicId in OffsetCommitValue (4.1)
_TAG_OF_CLASSIC: Final = 0  # of ClassicMemberMetadata in ConsumerGroupMemberMetadataValue
_TAG_OF_HASH: Final = 0  # of MetadataHash in ConsumerGroupMetadataValue (4.1)
_TAG_OF_TIME: Final = 0  # of AssignmentTimestamp in ConsumerGroupTargetAssignmentMetadataValue (4.3; KIP-1263)
_MEMBER_STATES: Final = {0: "STABLE", 1: "UNREVOKED_PARTITIONS", 2: "UNRELEASED_PARTITIONS"}
"""org.apache.kafka.coordinator.group.modern.MemberState."""


class UnsupportedVersionError(UnreadableError):
    """No Kafka up to 4.4 writes this version of the value."""


class _Record(NamedTuple):
    """What is known of a value before its fields: what the key names beside the group, its version, and when it was written."""

    subject: str
    version: int
    at: datetime


def record_rows(key: bytes, value: bytes | None, at: datetime) -> list[Columns]:
    """The rows of a record that was written at a time; none if it is about something else. UnreadableError: what is wrong with it."""
    reader = FieldReader(key)
    number = reader.int16()
    if number < 0:
        raise UnreadableError("a negative type of key")
    if number not in _RECORDS:
        return []
    kind = _RECORDS[number]
    columns: Columns = {"kind": kind.name, "group_id": reader.string()}
    subject = f"{reader.string()}-{reader.int32()}" if number in COMMIT_KEYS else reader.string() if kind.column else ""
    if kind.column:
        columns[kind.column] = subject or None
    if reader.left:
        raise UnreadableError("bytes are left over in the key")
    rows = [kind.gone(subject)] if value is None else _of_value(value, kind, subject, at)
    return [columns | row for row in rows]


def _of_value(data: bytes, kind: _Kind, subject: str, at: datetime) -> list[Columns]:
    reader = FieldReader(data)
    version = reader.int16()
    if not 0 <= version <= kind.newest:
        raise UnsupportedVersionError(str(version))
    reader.compact = version == kind.newest  # which is the flexible one of each
    found = kind.read(reader, _Record(subject, version, at))
    if reader.left:
        raise UnreadableError("bytes are left over in the value")
    return found if isinstance(found, list) else [found]


def _host(reader: FieldReader) -> str:
    """A client's address: java.net.InetAddress prints name/address."""
    return reader.string().rpartition("/")[2]


def _commit(reader: FieldReader, record: _Record) -> Columns:
    """OffsetCommit: the offset of one partition."""
    offset = reader.int64()
    if record.version >= 3:
        reader.int32()  # leader epoch
    reader.string()  # metadata of the client
    reader.int64()  # when it was committed
    if record.version == 1:
        reader.int64()  # when it expires
    topic_id = reader.tagged_fields().get(_TAG_OF_TOPIC_ID)
    return _offset(record.subject, offset, None if topic_id is None else FieldReader(topic_id).uuid())


def _offset(partition: str, offset: int = -1, topic_id: str | None = None) -> Columns:
    return {"offsets": [{"partition": partition, "offset": offset, "topic_id": topic_id or None}]}


def _group(reader: FieldReader, record: _Record) -> list[Columns]:
    """GroupMetadata: a generation of a classic group, and each of its members."""
    protocol_type, generation = reader.string(), reader.int32()
    protocol, leader_id = reader.nullable_string(), reader.nullable_string()
    # When the group entered its state, which is CompletingRebalance while an assignment is being stored.
    since_ms = reader.int64() if record.version >= 2 else -1
    entries: list[Columns] = []
    assignments: list[Columns] = []

    def member() -> Columns:
        member_id = reader.string()
        instance_id = (reader.nullable_string() if record.version >= 3 else None) or None
        client_id, client_host = reader.string(), _host(reader)
        rebalance_timeout_ms = reader.int32() if record.version >= 1 else -1
        session_timeout_ms = reader.int32()
        entries.append(member_entry(member_id, instance_id, subscription(reader.bytes_(), protocol_type)[0]))
        assignments.append(assignment_entry(member_id, reader.bytes_(), protocol_type))
        reader.tagged_fields()
        return {
            "kind": e.GROUP_MEMBER,
            "generation": generation,
            "member_id": member_id,
            "instance_id": instance_id,
            "client_id": client_id,
            "client_host": client_host,
            "session_timeout_ms": session_timeout_ms,
            "rebalance_timeout_ms": rebalance_timeout_ms if rebalance_timeout_ms >= 0 else None,
        }

    members = reader.array(member, _SMALLEST_MEMBER)
    reader.tagged_fields()
    whole: Columns = {
        "state": (State.STABLE if members else State.EMPTY).value,
        "generation": generation,
        "leader_id": leader_id or None,
        "protocol_type": protocol_type or None,
        "protocol": protocol or None,
        "member_count": len(members),
        "members": entries,
        "assignments": assignments,
    }
    since = EPOCH + timedelta(milliseconds=since_ms) if 0 <= since_ms <= epoch_ms(record.at) else record.at
    return [{**row, "received_at": since} for row in (whole, *members)]


def _epoch(reader: FieldReader, _: _Record) -> Columns:
    """ConsumerGroupMetadata: the epoch of the group. Since Kafka 4.1 with a hash of the subscribed topics and their partitions."""
    epoch, metadata_hash = reader.int32(), reader.tagged_fields().get(_TAG_OF_HASH)
    reason = None if metadata_hash is None else f"with metadata hash {int.from_bytes(metadata_hash, 'big', signed=True)}"
    return {"generation": epoch, "reason": reason}


def _topics(reader: FieldReader, _: _Record) -> Columns:
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


def _member(reader: FieldReader, _: _Record) -> Columns:
    """ConsumerGroupMemberMetadata: what a member says of itself."""
    instance_id = reader.nullable_string()
    reader.nullable_string()  # rack
    client_id, client_host = reader.string(), _host(reader)
    topics = sorted(reader.array(reader.string, 1))
    regex, rebalance_timeout_ms, assignor = reader.nullable_string(), reader.int32(), reader.nullable_string()
    classic = reader.tagged_fields().get(_TAG_OF_CLASSIC)
    session_timeout_ms = -1 if classic is None else _session_timeout(FieldReader(classic, compact=True))
    return {
        "instance_id": instance_id or None,
        "client_id": client_id,
        "client_host": client_host,
        "session_timeout_ms": session_timeout_ms if session_timeout_ms >= 0 else None,
        "rebalance_timeout_ms": rebalance_timeout_ms if rebalance_timeout_ms >= 0 else None,
        "subscribed_regex": regex or "",
        "protocols": [{"name": assignor or PROTOCOL_TYPE, "topics": topics, "owned": None, "digest": None}],
    }


def _session_timeout(reader: FieldReader) -> int:
    """That of ClassicMemberMetadata, whose protocols are passed over; a byte before it says whether it is there."""
    return reader.int32() if reader.unsigned_varint() else -1


def _target(reader: FieldReader, _: _Record) -> Columns:
    """ConsumerGroupTargetAssignmentMetadata: the epoch for which the target assignment was computed, since Kafka 4.3 with the time."""
    return {"generation": reader.int32(), "state": e.TIMED if _TAG_OF_TIME in reader.tagged_fields() else None}


def _share(reader: FieldReader, record: _Record) -> Columns:
    """ConsumerGroupTargetAssignmentMember: what a member is to have."""
    partitions = _partitions(reader)
    reader.tagged_fields()
    return {"assignments": [partitions_entry(record.subject, partitions)]}


def _assignment(reader: FieldReader, record: _Record) -> Columns:
    """ConsumerGroupCurrentMemberAssignment: what a member has, and what it has to give up."""
    epoch, previous, state = reader.int32(), reader.int32(), reader.int8()
    assigned, pending = _partitions(reader), _partitions(reader)
    reader.tagged_fields()
    return {
        "generation": previous,
        "answer_generation": epoch,
        "state": _MEMBER_STATES.get(state, "UNKNOWN"),
        "assignments": [partitions_entry(record.subject, assigned), partitions_entry(record.subject, pending)],
    }


def _expression(reader: FieldReader, _: _Record) -> Columns:
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


class _Kind(NamedTuple):
    """A kind of record: that of its row, what reads the value, and the column of what the key names beside the group.

    `newest`: version of the value; all versions before it are in the classic encoding. `gone`: what a tombstone of a subject says.
    """

    name: str
    read: Callable[[FieldReader, _Record], Columns | list[Columns]]
    column: str = ""
    newest: int = 0
    gone: Callable[[str], Columns] = lambda _: {"state": e.REMOVED}


_RECORDS: Final = {
    **dict.fromkeys(COMMIT_KEYS, _Kind(e.OFFSETS_STORED, _commit, newest=4, gone=_offset)),
    2: _Kind(e.GROUP_STORED, _group, newest=4, gone=lambda _: {"state": State.DEAD.value}),
    3: _Kind(e.EPOCH_STORED, _epoch),
    4: _Kind(e.TOPICS_STORED, _topics),
    5: _Kind(e.MEMBER_STORED, _member, "member_id"),
    6: _Kind(e.TARGET_STORED, _target),
    7: _Kind(e.TARGET_MEMBER_STORED, _share, "member_id"),
    8: _Kind(e.CURRENT_STORED, _assignment, "member_id"),
    16: _Kind(e.EXPRESSION_STORED, _expression, "reason"),
}
"""By key type."""
