"""The end of a session: a member or a pending id was silent for too long.

Kafka: `expireClassicGroupMemberHeartbeat` (4.x), `onExpireHeartbeat` (to 3.9). sessions.py says when a session ends.
"""

from __future__ import annotations

from coordinator_model.errors import Error
from coordinator_model.specification.effects import RemovalCause
from coordinator_model.specification.group_state import GroupState
from coordinator_model.specification.handlers import rebalance
from coordinator_model.specification.transitions import Trigger
from coordinator_model.states import State


def expire_session(group: GroupState, member_id: str, number: int, deadline_ms: int) -> None:
    """A session timer ended."""
    if not group.version.one_session_timer_per_member:
        _expire_one_of_several(group, member_id, number, deadline_ms)
    elif member_id in group.pending_members:
        group.remove(member_id, RemovalCause.SESSION_EXPIRED)
        _join_phase_may_end(group)
    else:
        member = group.members[member_id]
        if member.is_new or not group.is_parked(member_id):
            _remove_expired(group, member_id)


def _remove_expired(group: GroupState, member_id: str) -> None:
    """`removeMemberAndUpdateGroup` on heartbeat expiration."""
    parked_join = group.awaiting_join.get(member_id)
    if parked_join is not None:
        group.reply(parked_join, group.join_error(Error.UNKNOWN_MEMBER_ID, ""))
    group.remove(member_id, RemovalCause.SESSION_EXPIRED)
    _update_group(group, member_id)


def _update_group(group: GroupState, member_id: str) -> None:
    if group.state is State.STABLE or group.state is State.COMPLETING_REBALANCE:
        rebalance.prepare_rebalance(group, Trigger.SESSION_EXPIRED, member_id)
    else:
        _join_phase_may_end(group)


def _join_phase_may_end(group: GroupState) -> None:
    """4.0 checks the join phase even during an initial delay, so an expiry can end the delay."""
    if group.version.expiry_ends_initial_delay:
        if group.state is State.PREPARING_REBALANCE and group.has_all_members_joined():
            rebalance.complete_join_phase(group)
    else:
        rebalance.maybe_complete_join_phase(group)


def _expire_one_of_several(group: GroupState, member_id: str, number: int, deadline_ms: int) -> None:
    numbers = group.open_sessions[member_id]
    numbers.remove(number)
    if not numbers:
        del group.open_sessions[member_id]
    if member_id in group.members:
        if group.is_parked(member_id) or group.session_ends[member_id] > deadline_ms:
            return
        group.remove(member_id, RemovalCause.SESSION_EXPIRED)
    _update_group(group, member_id)
