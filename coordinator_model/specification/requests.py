"""Requests to a group and its answers, with those fields of Kafka's protocol that make a difference.

Texts that may be absent on the wire are None. Subscriptions and assignments are opaque bytes: a coordinator compares and
forwards them, but never reads them. A `Ticket` identifies the request that a later reply belongs to, as the connection and the
correlation id do in Kafka.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, NamedTuple

from coordinator_model.errors import Error

Ticket = int | str
Protocols = tuple[tuple[str, bytes], ...]

UNKNOWN_MEMBER_ID: Final = ""
"""The member id in the first JoinGroup of a client (`JoinGroupRequest.UNKNOWN_MEMBER_ID`)."""
UNKNOWN_GENERATION: Final = -1


class JoinGroup(NamedTuple):
    """JoinGroup. `fresh_member_id` is the id that the coordinator gives to a new member; Kafka takes a random one."""

    member_id: str
    session_timeout_ms: int
    rebalance_timeout_ms: int
    protocol_type: str
    protocols: Protocols
    instance_id: str | None = None
    api_version: int = 9
    client_id: str = ""
    client_host: str = ""
    fresh_member_id: str = ""


class SyncGroup(NamedTuple):
    """SyncGroup. Only the leader sends assignments, as (member id, assignment)."""

    member_id: str
    generation: int
    assignments: tuple[tuple[str, bytes], ...] = ()
    instance_id: str | None = None
    protocol_type: str | None = None
    protocol: str | None = None


class Heartbeat(NamedTuple):
    """Heartbeat."""

    member_id: str
    generation: int
    instance_id: str | None = None


class LeavingMember(NamedTuple):
    """One entry of a LeaveGroup."""

    member_id: str
    instance_id: str | None = None


class LeaveGroup(NamedTuple):
    """LeaveGroup. Before version 3 it names exactly one member."""

    members: tuple[LeavingMember, ...]


class OffsetCommit(NamedTuple):
    """OffsetCommit, without the offsets. A consumer that assigns its own partitions sends generation -1 and member id ""."""

    member_id: str
    generation: int
    instance_id: str | None = None
    api_version: int = 8


class DeleteGroup(NamedTuple):
    """DeleteGroups, for one group."""


Request = JoinGroup | SyncGroup | Heartbeat | LeaveGroup | OffsetCommit | DeleteGroup


class JoinedMember(NamedTuple):
    """A member in the answer to the leader's JoinGroup, with its metadata for the chosen protocol."""

    member_id: str
    instance_id: str | None
    metadata: bytes


class JoinAnswer(NamedTuple):
    """Answer to JoinGroup."""

    error: Error
    member_id: str
    generation: int = UNKNOWN_GENERATION
    leader: str = UNKNOWN_MEMBER_ID
    protocol_type: str | None = None
    protocol: str | None = None
    skip_assignment: bool = False
    members: tuple[JoinedMember, ...] = ()


class SyncAnswer(NamedTuple):
    """Answer to SyncGroup."""

    error: Error
    protocol_type: str | None = None
    protocol: str | None = None
    assignment: bytes = b""


class HeartbeatAnswer(NamedTuple):
    """Answer to Heartbeat."""

    error: Error


class MemberResponse(NamedTuple):
    """Answer to one entry of a LeaveGroup."""

    member_id: str
    instance_id: str | None
    error: Error


class LeaveAnswer(NamedTuple):
    """Answer to LeaveGroup: the request as a whole, then each entry."""

    error: Error
    members: tuple[MemberResponse, ...] = ()


class CommitAnswer(NamedTuple):
    """Answer to OffsetCommit."""

    error: Error


class DeleteAnswer(NamedTuple):
    """Answer to DeleteGroups, for one group."""

    error: Error


Answer = JoinAnswer | SyncAnswer | HeartbeatAnswer | LeaveAnswer | CommitAnswer | DeleteAnswer


class Reply(NamedTuple):
    """An answer, and the ticket of the request that it belongs to."""

    ticket: Ticket
    at_ms: int
    answer: Answer


def error_answer(request: Request, error: Error) -> Answer:
    """An answer that consists of `error` alone (`AbstractRequest.getErrorResponse`)."""
    if isinstance(request, JoinGroup):
        return JoinAnswer(error, UNKNOWN_MEMBER_ID)
    if isinstance(request, LeaveGroup):
        return LeaveAnswer(error)
    return _SIMPLE_ANSWERS[type(request)](error)


_SIMPLE_ANSWERS: Final[dict[type, Callable[[Error], Answer]]] = {
    SyncGroup: SyncAnswer,
    Heartbeat: HeartbeatAnswer,
    OffsetCommit: CommitAnswer,
    DeleteGroup: DeleteAnswer,
}
