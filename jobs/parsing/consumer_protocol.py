"""Entries of rows about subscriptions and assignments of the `consumer` protocol type, which JoinGroup and SyncGroup carry as bytes."""

from __future__ import annotations

import base64
import binascii
import hashlib
from collections.abc import Callable, Sequence
from typing import Any, Final, TypeVar

import pyarrow as pa
from pyspark.sql.pandas.types import to_arrow_type

from coordinator_model.kafka_bytes import UnreadableError
from coordinator_model.specification.consumer.consumer_protocol import (
    PROTOCOL_TYPE,
    TopicPartitions,
    read_assignment,
    read_subscription,
)
from jobs.parsing.rows import PARSED

_DIGEST_CHARACTERS: Final = 16
_Found = TypeVar("_Found")


def _digest(data: bytes) -> str:
    """A short name of the bytes: all that a coordinator compares."""
    return hashlib.sha256(data).hexdigest()[:_DIGEST_CHARACTERS]


def subscription(data: bytes | None, protocol_type: str | None) -> tuple[list[str] | None, list[str] | None]:
    """Topics and owned partitions; None where the bytes are not a consumer's, or unknown. Without a protocol type, the bytes decide."""
    found = _read(read_subscription, data, protocol_type)
    return (None, None) if found is None else (list(found.topics), _named(found.owned))


def _read(read: Callable[[bytes], _Found], data: bytes | None, protocol_type: str | None) -> _Found | None:
    try:
        return None if data is None or protocol_type not in (PROTOCOL_TYPE, None) else read(data)
    except UnreadableError:
        return None


def _named(partitions: TopicPartitions) -> list[str]:
    return [f"{topic}-{number}" for topic, numbers in partitions for number in numbers]


def member_entry(member_id: str, instance_id: str | None, topics: list[str] | None = None) -> dict[str, Any]:
    """An entry of the column `members`."""
    return {"member_id": member_id, "instance_id": instance_id, "error_code": None, "reason": None, "topics": topics}


def assignment_entry(member_id: str, data: bytes | None, protocol_type: str | None) -> dict[str, Any]:
    """An entry of the column `assignments`, without partitions where the bytes are not a consumer's, or unknown."""
    found = _read(read_assignment, data, protocol_type)
    partitions = None if found is None else _named(found.partitions)
    return {"member_id": member_id, "partitions": partitions, "digest": None if data is None else _digest(data)}


def partitions_entry(member_id: str, partitions: Sequence[str]) -> dict[str, Any]:
    """The same where the partitions are told, not the bytes."""
    return {"member_id": member_id, "partitions": list(partitions), "digest": _digest("\n".join(partitions).encode())}


def decoded(rows: pa.Table) -> pa.Table:
    """JoinGroup and SyncGroup rows of PARSED with `protocols`, `members` and `assignments` read from `blobs`.

    A SyncGroup before v5 does not name its protocol type. Of bytes that are not in the line, as in the text of Kafka 1.0 to 2.7, nothing is
    known: no topics, no partitions, no digest.
    """
    blobs, types = rows["blobs"].to_pylist(), rows["protocol_type"].to_pylist()
    for name, entry_of in _ENTRIES.items():
        values = [
            None if row is None or row[name] is None else [entry_of(entry, protocol_type) for entry in row[name]]
            for row, protocol_type in zip(blobs, types, strict=True)
        ]
        rows = rows.set_column(rows.schema.get_field_index(name), name, pa.array(values, to_arrow_type(PARSED[name].dataType)))
    return rows


def _protocol(entry: dict[str, Any], protocol_type: str | None) -> dict[str, Any]:
    data = _bytes(entry["metadata"])
    topics, owned = subscription(data, protocol_type)
    return {"name": entry["name"], "topics": topics, "owned": owned, "digest": None if data is None else _digest(data)}


def _member(entry: dict[str, Any], protocol_type: str | None) -> dict[str, Any]:
    return member_entry(entry["memberId"], entry["groupInstanceId"], subscription(_bytes(entry["metadata"]), protocol_type)[0])


def _assignment(entry: dict[str, Any], protocol_type: str | None) -> dict[str, Any]:
    return assignment_entry(entry["memberId"], _bytes(entry["assignment"]), protocol_type)


_ENTRIES: Final = {"protocols": _protocol, "members": _member, "assignments": _assignment}


def _bytes(text: str | None) -> bytes | None:
    try:
        return None if text is None else base64.b64decode(text, validate=True)
    except binascii.Error:
        return b""
