"""Translates an observed ConsumerGroupHeartbeat for the specification, and compares the broker's answer with the specification's."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Iterable
from typing import Final

from coordinator_model.errors import Error
from coordinator_model.events import Event
from coordinator_model.specification.consumer.group import ConsumerGroupAnswer
from coordinator_model.specification.consumer.member import JOIN_EPOCH, LEAVE_EPOCH, STATIC_LEAVE_EPOCH, Partitions
from coordinator_model.specification.consumer.requests import ConsumerGroupHeartbeat, ConsumerGroupHeartbeatAnswer
from coordinator_model.specification.consumer.topics import TopicId

_TOPIC_AUTHORIZATION_FAILED: Final = 29
NOT_OF_THE_GROUP: Final = frozenset(
    {
        Error.INVALID_REQUEST,
        Error.INVALID_GROUP_ID,
        Error.UNSUPPORTED_ASSIGNOR,
        Error.UNSUPPORTED_VERSION,
        Error.GROUP_AUTHORIZATION_FAILED,
        _TOPIC_AUTHORIZATION_FAILED,
    }
)
"""Refusals by the request itself, the broker's settings or its access lists."""

_ID_BYTES: Final = 16
_HALF: Final = 8


def topic_id(text: str) -> TopicId | None:
    """The topic id that a log prints in base64 (`Uuid.toString`); None if it is none."""
    try:
        data = base64.urlsafe_b64decode(f"{text}==")
    except (binascii.Error, ValueError):
        return None
    if len(data) != _ID_BYTES:
        return None
    return TopicId(int.from_bytes(data[:_HALF], "big", signed=True), int.from_bytes(data[_HALF:], "big", signed=True))


def partitions_of(texts: Iterable[str]) -> dict[TopicId, frozenset[int]] | None:
    """Partitions, each as topic id and number, by topic id; None if a text is none."""
    found: dict[TopicId, set[int]] = {}
    for text in texts:
        name, _, number = text.rpartition("-")
        own = topic_id(name)
        if own is None or not number.isdecimal():
            return None
        found.setdefault(own, set()).add(int(number))
    return {own: frozenset(numbers) for own, numbers in found.items()}


def assigned_by(event: Event) -> tuple[str, ...] | None:
    """The partitions in the answer, as topic id and number; None if there is no assignment, or it is not known."""
    return next((assigned.partitions for assigned in event.assignments), None)


def request_of(event: Event, *, timeout_ms: int | None = None) -> ConsumerGroupHeartbeat:
    """The observed request in the terms of the specification. `timeout_ms` takes the place of a rebalance timeout that was sent."""
    topics = next((protocol.topics for protocol in event.protocols), None)
    return ConsumerGroupHeartbeat(
        event.member_id,
        event.generation,
        event.instance_id or None,
        rebalance_timeout_ms=timeout_ms if timeout_ms is not None and event.rebalance_timeout_ms >= 0 else event.rebalance_timeout_ms,
        topics=topics,
        regex=event.subscribed_regex,
        assignor=event.protocol or None,
        owned=None if event.owned is None else partitions_of(event.owned),
        api_version=event.api_version,
        fresh_member_id=event.answer_member_id,
    )


def asks_for_more(event: Event) -> bool:
    """Whether a request says more than that its member is alive."""
    changes = event.protocols or event.protocol or event.rebalance_timeout_ms >= 0
    return bool(event.generation <= 0 or changes or event.subscribed_regex is not None or event.owned is not None)


def agrees(event: Event, answer: ConsumerGroupAnswer) -> bool:
    """Whether the broker gave the specification's answer, as far as the log shows."""
    if not isinstance(answer, ConsumerGroupHeartbeatAnswer) or event.error_code != answer.error:
        return False
    if answer.error is not Error.NONE:
        return True  # nothing else is in it
    if event.answer_generation != answer.epoch or event.answer_member_id not in ("", answer.member_id):
        return False
    return _is_interval_right(event) and _same_assignment(event, answer.assignment)


def is_epoch_too_low(event: Event, answer: ConsumerGroupAnswer) -> bool:
    """Whether an answer that accepts has neither the epoch of the request nor that of the group: what no request shows only raises it."""
    if event.error_code != Error.NONE or answer.error is not Error.NONE or not isinstance(answer, ConsumerGroupHeartbeatAnswer):
        return False
    return event.generation != event.answer_generation < answer.epoch


def is_right_in_no_state(event: Event, answer: ConsumerGroupAnswer) -> bool:
    """Whether no change of topics, and no member that was removed unseen, makes the broker's answer right.

    They make a member unknown, but do not move its own epoch.
    """
    if event.error_code == Error.FENCED_MEMBER_EPOCH or answer.error is Error.FENCED_MEMBER_EPOCH:
        return event.error_code != answer.error
    if event.error_code != Error.NONE or answer.error is not Error.NONE or not isinstance(answer, ConsumerGroupHeartbeatAnswer):
        return False
    if not _is_interval_right(event) and agrees(event._replace(heartbeat_interval_ms=-1), answer):
        return True
    request = request_of(event)
    complete = request.rebalance_timeout_ms != -1 and request.owned is not None and (request.topics, request.regex) != (None, None)
    same = (event.answer_generation, event.answer_member_id or answer.member_id) == (answer.epoch, answer.member_id)
    return same and not event.assignments and (complete or event.generation == JOIN_EPOCH)


def _is_interval_right(event: Event) -> bool:
    """A member that leaves is told 0 and any other is not. How long the interval is, is a setting, which may change at any time."""
    leaves = event.generation in (LEAVE_EPOCH, STATIC_LEAVE_EPOCH)
    return event.heartbeat_interval_ms < 0 or leaves == (event.heartbeat_interval_ms == 0)


def _same_assignment(event: Event, predicted: Partitions | None) -> bool:
    if not event.assignments or predicted is None:
        return not event.assignments and predicted is None
    observed = assigned_by(event)
    return observed is None or partitions_of(observed) == {own: numbers for own, numbers in predicted.items() if numbers}
