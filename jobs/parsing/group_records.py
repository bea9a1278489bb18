"""Records of `__consumer_offsets` and answers of Admin as rows. Of a group there is one for the group, then one for each member.

The row of the group has its generation, leader, protocol, state, members and assignments. A member has a row (GROUP_MEMBER) at the
same position with its client.id, host and timeouts. A committed offset is a row, and so is a line of a poll with the offsets of a group.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Mapping
from datetime import datetime, timedelta
from typing import Any, Final

from coordinator_model import events as e
from coordinator_model.kafka_bytes import UnreadableError
from coordinator_model.states import State
from jobs.common.times import EPOCH, epoch_ms
from jobs.parsing.consumer_protocol import member_entry, partitions_entry
from jobs.parsing.rows import EVENT, Refusal, refused, skipped
from jobs.parsing.stored_records import UnsupportedVersionError, record_rows

CLASSIC_STATES: Final = frozenset(state.value for state in State)
CONSUMER_STATES: Final = frozenset({"Empty", "Assigning", "Reconciling", "Stable", "Dead"})

_Rows = list[dict[str, Any]]


class RefusedError(ValueError):
    """The line cannot be read. The message is a code of Refusal, and the detail after a colon."""


def rows(source: str, text: str, at: datetime) -> _Rows:
    """The columns of PARSED of each row that the text and the time of a line make. The first row accounts for the line."""
    read: Callable[[Mapping[str, Any], datetime], _Rows] = _stored if source == e.OFFSETS_SOURCE else _polled
    try:
        found = read(_object(text), at)
    except RefusedError as refusal:
        return [refused(source, str(refusal), text)]
    return [{"source": source, "verdict": EVENT, "received_at": at, **row} for row in found] or [skipped(source)]


def _object(text: str) -> Mapping[str, Any]:
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        raise RefusedError(Refusal.INVALID_JSON) from None
    if not isinstance(value, dict):
        raise RefusedError(Refusal.INVALID_JSON)
    return value


# Records of __consumer_offsets.


def _stored(record: Mapping[str, Any], at: datetime) -> _Rows:
    key, value = _decoded(record, "key"), _decoded(record, "value")
    if key is None:
        raise RefusedError(f"{Refusal.MISSING_FIELD}: key")
    return stored_rows(key, value, _number(record, "partition"), at)


def stored_rows(key: bytes, value: bytes | None, partition: int | None, at: datetime) -> _Rows:
    """The rows of one record; none if it is not about a consumer group. RefusedError: it cannot be read."""
    try:
        rows = record_rows(key, value, at)
    except UnsupportedVersionError as error:
        raise RefusedError(f"{Refusal.UNSUPPORTED_VERSION}: {error}") from None
    except UnreadableError as error:
        raise RefusedError(f"{Refusal.UNREADABLE_RECORD}: {error}") from None
    return [{"coordinator_partition": partition, "received_at": at, **row} for row in rows]


# Answers of Admin.


def _polled(answer: Mapping[str, Any], at: datetime) -> _Rows:
    if "error" in answer or "offsets" not in answer:
        return _described(answer)
    since = answer.get("since")
    before = EPOCH + timedelta(milliseconds=since) if type(since) is int and 0 <= since <= epoch_ms(at) else at
    return [{"kind": e.OFFSETS_POLLED, "group_id": _text(answer, "group"), "offsets": _offsets(answer), "received_at": before}]


def _offsets(answer: Mapping[str, Any]) -> _Rows:
    """Each partition with its committed offset and its end."""
    offsets, ids = answer["offsets"], answer.get("ids", {})
    if not isinstance(offsets, dict) or not all(isinstance(pair, list) and len(pair) == 2 for pair in offsets.values()):
        raise RefusedError(f"{Refusal.MISSING_FIELD}: offsets")
    if not isinstance(ids, dict):
        raise RefusedError(f"{Refusal.MISSING_FIELD}: ids")
    return [
        {
            "partition": _checked(name),
            "offset": _offset(committed),
            "end": None if end is None else _offset(end),
            "topic_id": _optional(ids, name.rpartition("-")[0]) or None,
        }
        for name, (committed, end) in offsets.items()
    ]


def _offset(value: Any) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or not -1 <= value < 1 << 63:
        raise RefusedError(f"{Refusal.MISSING_FIELD}: offsets")
    return value


def _described(answer: Mapping[str, Any]) -> _Rows:
    if "error" in answer or answer.get("state") == "Unknown":
        return []  # says nothing about the group
    group_id, state, consumer = _text(answer, "group"), _text(answer, "state"), answer.get("type") == "consumer"
    if state not in (CONSUMER_STATES if consumer else CLASSIC_STATES):
        raise RefusedError(f"{Refusal.UNKNOWN_STATE}: {state[:40]}")
    listed = answer.get("members", [])
    if not isinstance(listed, list) or not all(isinstance(member, dict) for member in listed):
        raise RefusedError(f"{Refusal.MISSING_FIELD}: members")
    ids = [_text(member, "member_id") for member in listed]
    instances = [_optional(member, "instance_id") for member in listed]
    assigned = [_partitions(member) for member in listed]
    node = answer.get("coordinator")
    node = node if isinstance(node, dict) else {}
    whole: dict[str, Any] = {
        "kind": e.CONSUMER_GROUP_DESCRIBED if consumer else e.GROUP_DESCRIBED,
        "state": state,
        "protocol": _optional(answer, "assignor") or None,
        "coordinator_id": _number(node, "id"),
        "coordinator_address": _optional(node, "address") or None,
        "member_count": len(listed),
        "members": [member_entry(member_id, instance_id or None) for member_id, instance_id in zip(ids, instances, strict=True)],
        "assignments": list(map(partitions_entry, ids, assigned)),
    }
    members: _Rows = [
        {
            "kind": e.GROUP_MEMBER,
            "member_id": member_id,
            "instance_id": instance_id or None,
            "client_id": _optional(member, "client_id"),
            "client_host": _optional(member, "host").rpartition("/")[2],
        }
        for member, member_id, instance_id in zip(listed, ids, instances, strict=True)
    ]
    return [{"group_id": group_id} | row for row in (whole, *members)]


def _partitions(member: Mapping[str, Any]) -> list[str]:
    value = member.get("partitions", [])
    if not isinstance(value, list) or not all(isinstance(name, str) for name in value):
        raise RefusedError(f"{Refusal.MISSING_FIELD}: partitions")
    return sorted(map(_checked, value))


# Fields.


def _decoded(record: Mapping[str, Any], name: str) -> bytes | None:
    text = record.get(name)
    try:
        return None if text is None else base64.b64decode(text, validate=True)
    except (TypeError, ValueError):
        raise RefusedError(f"{Refusal.INVALID_BASE64}: {name}") from None


def _text(record: Mapping[str, Any], name: str) -> str:
    value = record.get(name)
    if not isinstance(value, str):
        raise RefusedError(f"{Refusal.MISSING_FIELD}: {name}")
    return _checked(value)


def _optional(record: Mapping[str, Any], name: str) -> str:
    return "" if record.get(name) is None else _text(record, name)


def _number(record: Mapping[str, Any], name: str) -> int | None:
    value = record.get(name)
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 1 << 31 else None


def _checked(text: str) -> str:
    """The text, if a table can hold it. It cannot hold lone surrogates, which JSON can write."""
    try:
        text.encode()
    except UnicodeEncodeError:
        raise RefusedError(Refusal.CONTROL_CHARACTERS) from None
    return text
