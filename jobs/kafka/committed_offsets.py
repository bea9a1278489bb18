"""Records of `__consumer_offsets` that hold a committed offset: key types 0 and 1, OffsetCommitValue v0 to v4.

A coordinator writes one for each partition of a commit. When an offset is deleted or has expired, it writes one without a value. A commit
of a transaction is written at once, and holds once the transaction is committed: the record does not tell which one that is. Source: kafka
`group-coordinator/src/main/resources/common/message/*OffsetCommit*.json`. Brokers write v1 where a commit has its own time to expire; else
v3 since 2.1 and v4, the flexible one with the topic's id, since 4.1.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from coordinator_model.kafka_bytes import FieldReader, UnreadableError
from jobs.kafka.group_metadata import UnsupportedVersionError

COMMIT_KEYS: Final = frozenset({0, 1})
"""The key types of these records. Type 0 is that of Kafka 0.8."""

_NEWEST: Final = 4
_FLEXIBLE: Final = 4
_TAG_OF_TOPIC_ID: Final = 0


class CommittedOffset(NamedTuple):
    """The offset of one partition. `offset`: -1 if the record has no value. `topic_id`: "" if it does not tell it."""

    group_id: str
    topic: str
    partition: int
    offset: int = -1
    topic_id: str = ""


def decode_committed_offset(key: bytes, value: bytes | None) -> CommittedOffset | None:
    """What a record says; None if it is about something else. UnreadableError: what is wrong with it."""
    reader = FieldReader(key)
    if reader.int16() not in COMMIT_KEYS:
        return None
    commit = CommittedOffset(reader.string(), reader.string(), reader.int32())
    if reader.left:
        raise UnreadableError("bytes are left over in the key")
    return commit if value is None else _with_value(commit, FieldReader(value))


def _with_value(commit: CommittedOffset, reader: FieldReader) -> CommittedOffset:
    version = reader.int16()
    if not 0 <= version <= _NEWEST:
        raise UnsupportedVersionError(str(version))
    reader.compact = version >= _FLEXIBLE
    offset = reader.int64()
    if version >= 3:
        reader.int32()  # leader epoch
    reader.string()  # metadata of the client
    reader.int64()  # when it was committed
    if version == 1:
        reader.int64()  # when it expires
    topic_id = reader.tagged_fields().get(_TAG_OF_TOPIC_ID)
    if reader.left:
        raise UnreadableError("bytes are left over in the value")
    return commit._replace(offset=offset, topic_id="" if topic_id is None else FieldReader(topic_id).uuid())
