"""Translates an observed request for the specification, and compares the broker's answer with the specification's.

Subscriptions and assignments are compared by their digests: a coordinator compares and forwards those bytes, and never
reads them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from coordinator_model import events as kinds
from coordinator_model.errors import Error
from coordinator_model.events import Event
from coordinator_model.specification.requests import (
    Answer,
    CommitAnswer,
    DeleteGroup,
    Heartbeat,
    JoinAnswer,
    JoinGroup,
    LeaveAnswer,
    LeaveGroup,
    LeavingMember,
    OffsetCommit,
    Request,
    SyncAnswer,
    SyncGroup,
)

_TOPIC_AUTHORIZATION_FAILED: Final = 29
_REFUSED_BEFORE_THE_GROUP: Final = frozenset(
    {Error.INVALID_SESSION_TIMEOUT, Error.INVALID_GROUP_ID, Error.UNKNOWN_TOPIC_OR_PARTITION, _TOPIC_AUTHORIZATION_FAILED}
)
"""Refusals by the broker's settings or its access lists, which do not depend on the group."""

_COMMIT_ANSWERS: Final = frozenset(
    {
        Error.NONE,
        Error.ILLEGAL_GENERATION,
        Error.UNKNOWN_MEMBER_ID,
        Error.REBALANCE_IN_PROGRESS,
        Error.FENCED_INSTANCE_ID,
        Error.GROUP_ID_NOT_FOUND,
    }
)
"""A group's answers to a commit. Any other error comes from writing the log, after the group accepted the commit."""


def concerns_group(event: Event) -> bool:
    """Whether the group itself answered, so that the specification can answer too. TXN_OFFSET_COMMIT follows other rules (KIP-447)."""
    return event.kind in _REQUESTS and event.error_code not in _REFUSED_BEFORE_THE_GROUP


def is_whole(event: Event) -> bool:
    """Whether the log shows all that the coordinator compares: Kafka 1.0 to 2.7 does not log the bytes of subscriptions."""
    return all(protocol.digest for protocol in event.protocols)


def request_of(event: Event) -> Request:
    """The observed request in the terms of the specification."""
    return _REQUESTS[event.kind](event)


def agrees(event: Event, answer: Answer) -> bool:
    """Whether the broker gave the specification's answer, as far as the log shows."""
    if isinstance(answer, JoinAnswer):
        return _join_agrees(event, answer)
    if isinstance(answer, LeaveAnswer):
        observed = [entry.error_code for entry in event.members] or [event.error_code]
        predicted = [entry.error for entry in answer.members] or [answer.error]
        return event.error_code == answer.error and observed == predicted
    if isinstance(answer, CommitAnswer) and event.error_code not in _COMMIT_ANSWERS:
        return answer.error is Error.NONE
    if event.error_code != answer.error:
        return False
    if isinstance(answer, SyncAnswer) and answer.error is Error.NONE:
        own = [a.digest for a in event.assignments if a.member_id == event.member_id]
        by_leader = len(event.assignments) != 1  # what stands there then are the assignments that the leader sent
        return by_leader or not own or not own[0] or answer.assignment.decode() in (own[0], "")
    return True


def _join_agrees(event: Event, answer: JoinAnswer) -> bool:
    if event.error_code != answer.error:
        return False
    if answer.error is not Error.NONE:
        return True  # the id in a refusal is the sender's, or one that the coordinator made up
    observed = (event.answer_member_id, event.answer_generation, event.leader_id, event.skip_assignment)
    if observed != (answer.member_id, answer.generation, answer.leader, answer.skip_assignment):
        return False
    if event.protocol and event.protocol != answer.protocol:
        return False
    return {m.member_id for m in event.members} == {m.member_id for m in answer.members}


def _join(event: Event) -> JoinGroup:
    return JoinGroup(
        event.member_id,
        event.session_timeout_ms,
        event.rebalance_timeout_ms if event.rebalance_timeout_ms >= 0 else event.session_timeout_ms,
        event.protocol_type,
        tuple((p.name, p.digest.encode()) for p in event.protocols),
        event.instance_id or None,
        event.api_version,
        event.client_id,
        event.client_host,
        event.answer_member_id or f"{event.connection} {event.correlation_id}",  # a refused member got no id
    )


def _sync(event: Event) -> SyncGroup:
    return SyncGroup(
        event.member_id,
        event.generation,
        tuple((a.member_id, a.digest.encode()) for a in event.assignments),
        event.instance_id or None,
        event.protocol_type or None,
        event.protocol or None,
    )


def _leave(event: Event) -> LeaveGroup:
    entries = tuple(LeavingMember(m.member_id, m.instance_id or None) for m in event.members)
    return LeaveGroup(entries or (LeavingMember(event.member_id, event.instance_id or None),))


_REQUESTS: Final[dict[str, Callable[[Event], Request]]] = {
    kinds.JOIN_GROUP: _join,
    kinds.SYNC_GROUP: _sync,
    kinds.HEARTBEAT: lambda event: Heartbeat(event.member_id, event.generation, event.instance_id or None),
    kinds.LEAVE_GROUP: _leave,
    kinds.OFFSET_COMMIT: lambda event: OffsetCommit(event.member_id, event.generation, event.instance_id or None, event.api_version),
    kinds.DELETE_GROUPS: lambda _: DeleteGroup(),
}
