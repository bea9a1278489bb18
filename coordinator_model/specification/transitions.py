"""The transition table: which cause moves a group from which state to which.

Every change of a group's state goes through `next_state`, which knows nothing but this table. Every state has a row. A cause
that is not in a state's row cannot happen there: it raises `IllegalTransitionError` and changes nothing.

There are two kinds of causes. Reasons to rebalance lead to PreparingRebalance; none is in the row of that state, because the
group is already rebalancing. The other causes end a join phase, a sync phase or a group. The handlers decide which cause occurs.

scripts/docs/pages.py makes docs/state-diagram.md of this table.

Releases before 0.10.1 have no Empty: a new group is Stable, and a group whose last member goes is Dead (`LAST_MEMBER_GONE`).
Nothing else in the table depends on the release.
"""

from __future__ import annotations

from enum import Enum
from typing import Final

from coordinator_model.states import State


class Trigger(str, Enum):
    """Why a group changes its state."""

    # Reasons to rebalance. The quotes are the reasons in the logs of Kafka 3.9 and 4.2.
    NEW_MEMBER = "new_member"
    """A member was added. "Adding new member ... with group instance id ..." """
    LEADER_REJOIN = "leader_rejoin"
    """The leader of a Stable group asked again, changed or not. "leader ... re-joining group during Stable" """
    MEMBER_METADATA_CHANGED = "member_metadata_changed"
    """A member asked again with other protocols. "Updating metadata for member ... during ..." """
    SESSION_EXPIRED = "session_expired"
    """No heartbeat for the session timeout. "removing member ... on heartbeat expiration" """
    LEAVE = "leave"
    """LeaveGroup. "explicit `LeaveGroup` request" """
    SYNC_EXPIRED = "sync_expired"
    """Members did not send SyncGroup in time. "Removing ... on pending sync request expiration" """
    STATIC_PROTOCOL_CHANGE = "static_protocol_change"
    """A restarted static member changed the vote. "Group's selectedProtocol will change because ..." """
    STATIC_REPLACED_DURING_COMPLETING = "static_replaced_during_completing"
    """A static member restarted before the group was Stable. "Updating metadata for static member ..." """
    OVER_CAPACITY_AFTER_LOAD = "over_capacity_after_load"
    """A loaded group is larger than group.max.size. "Freshly-loaded group ... is over capacity" """
    DOWNGRADED = "downgraded"
    """The last consumer left a group that members of both protocols shared. "Downgrade group ... from consumer to classic" """
    ASSIGNMENT_APPEND_FAILED = "assignment_append_failed"
    """The assignment could not be written. "Error ... when storing group assignment during SyncGroup" """

    # How a phase or a group ends.
    JOIN_PHASE_ENDED = "join_phase_ended"
    """All members rejoined, or the time to do so is over."""
    JOIN_PHASE_ENDED_EMPTY = "join_phase_ended_empty"
    """The same, and no member is left."""
    LAST_MEMBER_GONE = "last_member_gone"
    """The same before 0.10.1."""
    ASSIGNMENT_STORED = "assignment_stored"
    """The leader's assignment is in the log."""
    OFFSETS_EXPIRED = "offsets_expired"
    """An Empty group has no offsets left: clean-up removes it."""
    DELETED = "deleted"
    """DeleteGroups."""
    UNLOADED = "unloaded"
    """The partition of the group moved to another coordinator."""


TRANSITIONS: Final[dict[State, dict[Trigger, State]]] = {
    State.EMPTY: {
        Trigger.NEW_MEMBER: State.PREPARING_REBALANCE,
        Trigger.OFFSETS_EXPIRED: State.DEAD,
        Trigger.DELETED: State.DEAD,
        Trigger.UNLOADED: State.DEAD,
    },
    State.PREPARING_REBALANCE: {
        Trigger.JOIN_PHASE_ENDED: State.COMPLETING_REBALANCE,
        Trigger.JOIN_PHASE_ENDED_EMPTY: State.EMPTY,
        Trigger.LAST_MEMBER_GONE: State.DEAD,
        Trigger.UNLOADED: State.DEAD,
    },
    State.COMPLETING_REBALANCE: {
        Trigger.NEW_MEMBER: State.PREPARING_REBALANCE,
        Trigger.MEMBER_METADATA_CHANGED: State.PREPARING_REBALANCE,
        Trigger.SESSION_EXPIRED: State.PREPARING_REBALANCE,
        Trigger.LEAVE: State.PREPARING_REBALANCE,
        Trigger.SYNC_EXPIRED: State.PREPARING_REBALANCE,
        Trigger.STATIC_REPLACED_DURING_COMPLETING: State.PREPARING_REBALANCE,
        Trigger.ASSIGNMENT_APPEND_FAILED: State.PREPARING_REBALANCE,
        Trigger.ASSIGNMENT_STORED: State.STABLE,
        Trigger.UNLOADED: State.DEAD,
    },
    State.STABLE: {
        Trigger.NEW_MEMBER: State.PREPARING_REBALANCE,
        Trigger.LEADER_REJOIN: State.PREPARING_REBALANCE,
        Trigger.MEMBER_METADATA_CHANGED: State.PREPARING_REBALANCE,
        Trigger.SESSION_EXPIRED: State.PREPARING_REBALANCE,
        Trigger.LEAVE: State.PREPARING_REBALANCE,
        Trigger.SYNC_EXPIRED: State.PREPARING_REBALANCE,
        Trigger.STATIC_PROTOCOL_CHANGE: State.PREPARING_REBALANCE,
        Trigger.OVER_CAPACITY_AFTER_LOAD: State.PREPARING_REBALANCE,
        Trigger.DOWNGRADED: State.PREPARING_REBALANCE,
        Trigger.UNLOADED: State.DEAD,
    },
    State.DEAD: {},
}
"""The next state for each state and cause."""


class IllegalTransitionError(Exception):
    """A cause that cannot happen in the state of the group."""

    def __init__(self, state: State, trigger: Trigger) -> None:
        super().__init__(f"{trigger.value} cannot happen in {state.value}")
        self.state = state
        self.trigger = trigger


def next_state(state: State, trigger: Trigger) -> State:
    """The state that `trigger` leads to; IllegalTransitionError if it cannot happen in `state`."""
    try:
        return TRANSITIONS[state][trigger]
    except KeyError:
        raise IllegalTransitionError(state, trigger) from None


def can_rebalance(state: State) -> bool:
    """Whether a rebalance may start (`ClassicGroup.canRebalance`): not while one is prepared, not when Dead."""
    return Trigger.NEW_MEMBER in TRANSITIONS[state]
