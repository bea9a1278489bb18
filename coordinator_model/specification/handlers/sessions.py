"""Sessions: how long a member may be silent.

From 2.1.1 on a member has one session timer, and so has an id that was handed out and not used yet. A heartbeat sets it
again. When it ends and the member has a parked request, nothing happens and no new timer starts: whoever answers that
request starts the session again.

Before, every heartbeat made a timer object (`DelayedHeartbeat`) of its own and closed those that it had outlived.
`alive at a deadline` means: a request is parked, or the last heartbeat plus the session timeout is later than the
deadline. Two things follow that later releases do not have (DelayedOperationPurgatory):

* Removing a member closes its timers only when it leaves, and from 1.0 on when it is dropped at the end of a join
  phase. A timer that outlives its member starts a rebalance although nobody is missing.
* Of two heartbeats in one millisecond the second does not close the timer of the first, whose deadline is the same.
  Both end together; the second finds its member gone.

Kafka: `rescheduleClassicGroupMemberHeartbeat`, `expireClassicGroupMemberHeartbeat` (4.x);
`completeAndScheduleNextHeartbeatExpiration`, `tryCompleteHeartbeat`, `onExpireHeartbeat` (to 3.9).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from coordinator_model.errors import Error
from coordinator_model.specification.effects import RemovalCause
from coordinator_model.specification.handlers import rebalance
from coordinator_model.specification.member import Member
from coordinator_model.specification.timers import SESSION
from coordinator_model.specification.transitions import Trigger
from coordinator_model.states import State

if TYPE_CHECKING:
    from coordinator_model.specification.group import ClassicGroup


def restart_session(group: ClassicGroup, member: Member) -> None:
    """The member was heard of: its session starts again."""
    deadline = group.now_ms + member.session_timeout_ms
    if group.version.one_session_timer_per_member:
        group.timers.set((SESSION, member.member_id, 0), deadline)
    else:
        _restart_among_several(group, member.member_id, deadline)


def start_session(group: ClassicGroup, member_id: str, length_ms: int) -> None:
    """A timer of another length: of a pending id, or of a new member."""
    group.timers.set((SESSION, member_id, 0), group.now_ms + length_ms)


def close_session(group: ClassicGroup, member_id: str) -> None:
    """`removeHeartbeatForLeavingMember`, `timer.cancel(classicGroupHeartbeatKey)`."""
    group.timers.cancel((SESSION, member_id, 0))
    for number in group.open_sessions.pop(member_id, ()):
        group.timers.cancel((SESSION, member_id, number))


def expire_session(group: ClassicGroup, member_id: str, number: int, deadline_ms: int) -> None:
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


def _remove_expired(group: ClassicGroup, member_id: str) -> None:
    """`removeMemberAndUpdateGroup` on heartbeat expiration."""
    parked_join = group.awaiting_join.get(member_id)
    if parked_join is not None:
        group.reply(parked_join, group.join_error(Error.UNKNOWN_MEMBER_ID, ""))
    group.remove(member_id, RemovalCause.SESSION_EXPIRED)
    _update_group(group, member_id)


def _update_group(group: ClassicGroup, member_id: str) -> None:
    if group.state is State.STABLE or group.state is State.COMPLETING_REBALANCE:
        rebalance.prepare_rebalance(group, Trigger.SESSION_EXPIRED, member_id)
    else:
        _join_phase_may_end(group)


def _join_phase_may_end(group: ClassicGroup) -> None:
    """4.0 looks at the join phase even during an initial delay, so that an expiry can end the delay."""
    if group.version.expiry_ends_initial_delay:
        if group.state is State.PREPARING_REBALANCE and group.has_all_members_joined():
            rebalance.complete_join_phase(group)
    else:
        rebalance.maybe_complete_join_phase(group)


def _restart_among_several(group: ClassicGroup, member_id: str, deadline_ms: int) -> None:
    group.session_ends[member_id] = deadline_ms
    parked = group.is_parked(member_id)
    still_open = []
    for number in group.open_sessions.pop(member_id, ()):
        key = (SESSION, member_id, number)
        if parked or deadline_ms > group.timers.deadlines[key]:
            group.timers.cancel(key)
        else:
            still_open.append(number)
    if not parked:
        number = still_open[-1] + 1 if still_open else 0
        still_open.append(number)
        group.timers.set((SESSION, member_id, number), deadline_ms)
    if still_open:
        group.open_sessions[member_id] = still_open


def _expire_one_of_several(group: ClassicGroup, member_id: str, number: int, deadline_ms: int) -> None:
    numbers = group.open_sessions[member_id]
    numbers.remove(number)
    if not numbers:
        del group.open_sessions[member_id]
    if member_id in group.members:
        if group.is_parked(member_id) or group.session_ends[member_id] > deadline_ms:
            return
        group.remove(member_id, RemovalCause.SESSION_EXPIRED)
    _update_group(group, member_id)
