"""What happens inside a group while it handles a request or lets time pass, in the order in which it happens.

Replies are what clients see. Effects are the rest: transitions and their causes, members that came or went and why, and
writes to the log. Together, the effects are the timeline of a group.
"""

from __future__ import annotations

from enum import Enum
from typing import NamedTuple

from coordinator_model.specification.member import StoredGroup
from coordinator_model.specification.requests import Reply
from coordinator_model.specification.transitions import Trigger
from coordinator_model.states import State


class RemovalCause(str, Enum):
    """Why a member is no longer in its group."""

    LEAVE = "leave"
    SESSION_EXPIRED = "session_expired"
    JOIN_EXPIRED = "join_expired"
    """It did not rejoin before the end of the join phase."""
    SYNC_EXPIRED = "sync_expired"
    """It did not send SyncGroup before the end of the sync phase."""
    GROUP_MAX_SIZE = "group_max_size"


class Transition(NamedTuple):
    """The group changed its state. `generation` is the one at that moment; `member_id` is the member that caused it, if one did."""

    at_ms: int
    from_state: State
    to_state: State
    generation: int
    trigger: Trigger
    member_id: str


class MemberAdded(NamedTuple):
    """A new member."""

    at_ms: int
    member_id: str
    instance_id: str | None


class MemberRemoved(NamedTuple):
    """A member, or an id that was handed out and never used (`pending`), is gone."""

    at_ms: int
    member_id: str
    pending: bool
    cause: RemovalCause


class LeaderChanged(NamedTuple):
    """Another member leads the group; None: no member is left."""

    at_ms: int
    old_leader: str
    leader: str | None


class StaticMemberReplaced(NamedTuple):
    """A static member restarted: its instance id has a new member id."""

    at_ms: int
    instance_id: str
    old_member_id: str
    member_id: str


class GroupWritten(NamedTuple):
    """The group was written to the log; None: a tombstone."""

    at_ms: int
    stored: StoredGroup | None


class ExceptionThrown(NamedTuple):
    """Kafka's own code throws here. A request is answered UNKNOWN_SERVER_ERROR; an exception of a timer is lost."""

    at_ms: int
    exception: str


Effect = Transition | MemberAdded | MemberRemoved | LeaderChanged | StaticMemberReplaced | GroupWritten | ExceptionThrown


class Outcome(NamedTuple):
    """The result of a call: the replies that are due now, and what happened inside the group."""

    replies: list[Reply]
    effects: list[Effect]
