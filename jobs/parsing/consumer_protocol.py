"""Subscriptions and assignments of the `consumer` protocol type: what JoinGroup and SyncGroup carry as bytes.

A blob is a 2-byte version and then a `ConsumerProtocolSubscription` or `ConsumerProtocolAssignment` (kafka
`clients/src/main/resources/common/message/`), v0 to v3, big-endian, classic (not compact) encoding. As Kafka's own
`ConsumerProtocol`, a version newer than those known is read as the newest known one; what follows it is its additions.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
from typing import Any, Final

import pyarrow as pa
from pyspark.sql.pandas.types import to_arrow_type

from jobs.kafka.bytes import FieldReader, UnreadableError
from jobs.parsing.rows import PARSED

CONSUMER: Final = "consumer"
_DIGEST_CHARACTERS: Final = 16


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
    """Partitions of an assignment. No bytes at all, which a coordinator sends to a member that the leader forgot, are none."""
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


def digest(data: bytes) -> str:
    """A short name of the bytes. A coordinator compares nothing else of them."""
    return hashlib.sha256(data).hexdigest()[:_DIGEST_CHARACTERS]


def decoded(rows: pa.Table) -> pa.Table:
    """JoinGroup and SyncGroup rows of PARSED with `protocols`, `members` and `assignments` read from `blobs`."""
    read = [_decode(*row) for row in zip(rows["protocol_type"].to_pylist(), rows["blobs"].to_pylist(), strict=True)]
    for name in ("protocols", "members", "assignments"):
        values = pa.array([row[name] for row in read], to_arrow_type(PARSED[name].dataType))
        rows = rows.set_column(rows.schema.get_field_index(name), name, values)
    return rows


def _decode(protocol_type: str | None, blobs: dict[str, Any] | None) -> dict[str, list[dict[str, Any]] | None]:
    """Nested columns of one row. A SyncGroup before v5 does not tell its protocol type: then the bytes decide."""
    blobs = blobs or {}
    readable = protocol_type in (CONSUMER, None)
    protocols, members, assignments = blobs.get("protocols"), blobs.get("members"), blobs.get("assignments")
    return {
        "protocols": None if protocols is None else [_protocol(entry, readable=readable) for entry in protocols],
        "members": None if members is None else [_member(entry, readable=readable) for entry in members],
        "assignments": None if assignments is None else [_assigned(entry, readable=readable) for entry in assignments],
    }


def _protocol(entry: dict[str, Any], *, readable: bool) -> dict[str, Any]:
    data = _bytes(entry["metadata"])
    topics, owned = _subscription(data, readable=readable)
    return {"name": entry["name"], "topics": topics, "owned": owned, "digest": digest(data)}


def _member(entry: dict[str, Any], *, readable: bool) -> dict[str, Any]:
    topics, _ = _subscription(_bytes(entry["metadata"]), readable=readable)
    return {
        "member_id": entry["memberId"],
        "instance_id": entry["groupInstanceId"],
        "error_code": None,
        "reason": None,
        "topics": topics,
    }


def _assigned(entry: dict[str, Any], *, readable: bool) -> dict[str, Any]:
    data = _bytes(entry["assignment"])
    try:
        partitions = decode_assignment(data) if readable else None
    except UnreadableError:
        partitions = None
    return {"member_id": entry["memberId"], "partitions": partitions, "digest": digest(data)}


def _subscription(data: bytes, *, readable: bool) -> tuple[list[str] | None, list[str] | None]:
    try:
        return decode_subscription(data) if readable else (None, None)
    except UnreadableError:
        return None, None


def _bytes(text: str | None) -> bytes:
    try:
        return base64.b64decode(text or "", validate=True)
    except binascii.Error:
        return b""
