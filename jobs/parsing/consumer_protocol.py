"""Entries of rows about subscriptions and assignments, which JoinGroup and SyncGroup carry as bytes.

Those of the protocol types `consumer` and `connect` (connect_protocol.py) are read.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from typing import Any, Final, TypeVar

from coordinator_model.events import CONNECT
from coordinator_model.kafka_bytes import UnreadableError
from coordinator_model.specification.consumer.consumer_protocol import PROTOCOL_TYPE, TopicPartitions, read_assignment, read_subscription
from jobs.parsing import connect_protocol

_DIGEST_CHARACTERS: Final = 16
_Found = TypeVar("_Found")


def _digest(data: bytes) -> str:
    """A short name of the bytes: all that a coordinator compares."""
    return hashlib.sha256(data).hexdigest()[:_DIGEST_CHARACTERS]


def subscription(data: bytes | None, protocol_type: str | None) -> tuple[list[str] | None, list[str] | None]:
    """Topics and owned partitions; None where the bytes are not a consumer's, or unknown. Without a protocol type, the bytes decide."""
    found = _read(read_subscription, data, protocol_type, PROTOCOL_TYPE, None)
    return (None, None) if found is None else (list(found.topics), _named(found.owned))


def _read(read: Callable[[bytes], _Found], data: bytes | None, protocol_type: str | None, *types: str | None) -> _Found | None:
    try:
        return None if data is None or protocol_type not in types else read(data)
    except UnreadableError:
        return None


def _named(partitions: TopicPartitions) -> list[str]:
    return [f"{topic}-{number}" for topic, numbers in partitions for number in numbers]


def protocol_entry(name: str | None, data: bytes | None, protocol_type: str | None) -> dict[str, Any]:
    """An entry of the column `protocols`, without topics where the bytes are not a consumer's, or unknown."""
    topics, owned = subscription(data, protocol_type)
    owned = _read(connect_protocol.read_state, data, protocol_type, CONNECT) if owned is None else owned
    return {"name": name, "topics": topics, "owned": owned, "digest": None if data is None else _digest(data)}


def member_entry(member_id: str | None, instance_id: str | None, topics: list[str] | None = None) -> dict[str, Any]:
    """An entry of the column `members`."""
    return {"member_id": member_id, "instance_id": instance_id, "error_code": None, "reason": None, "topics": topics}


def assignment_entry(member_id: str | None, data: bytes | None, protocol_type: str | None) -> dict[str, Any]:
    """An entry of the column `assignments`, without partitions where the bytes are not a consumer's, or unknown."""
    entry: dict[str, Any] = {"member_id": member_id, "partitions": None, "digest": None if data is None else _digest(data)}
    if (found := _read(read_assignment, data, protocol_type, PROTOCOL_TYPE, None)) is not None:
        entry["partitions"] = _named(found.partitions)
    elif (work := _read(connect_protocol.read_assignment, data, protocol_type, CONNECT)) is not None:
        entry |= {"partitions": work.given, "revoked": work.revoked, "config_offset": work.config_offset, "delay_ms": work.delay_ms}
    return entry


def partitions_entry(member_id: str, partitions: Sequence[str]) -> dict[str, Any]:
    """The same where the partitions are told, not the bytes."""
    return {"member_id": member_id, "partitions": list(partitions), "digest": _digest("\n".join(partitions).encode())}
