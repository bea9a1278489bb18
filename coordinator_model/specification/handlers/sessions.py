"""Sessions: how long a member may be silent. expiry.py has what happens when a session ends.

Since 2.1.1 a member has one session timer, and so has a pending member id. A heartbeat sets the timer again. If the timer ends
while a request of the member is parked, nothing happens, and no new timer starts. The reply to that request starts one.

Before 2.1.1 every heartbeat made its own timer object (`DelayedHeartbeat`), and closed the older ones with an earlier deadline.
A member counted as alive at a deadline if a request was parked, or if its last heartbeat plus the session timeout was later than
the deadline. This had two consequences that later releases do not have (DelayedOperationPurgatory):

* The timers of a member are closed only when it leaves, and since 1.0 when it is dropped at the end of a join phase. A timer that
  outlives its member starts a rebalance although no member is missing.
* Of two heartbeats in one millisecond, the second does not close the timer of the first, because both have the same deadline.
  Both timers end together, and when the second ends its member is gone.

Kafka: `rescheduleClassicGroupMemberHeartbeat` (4.x); `completeAndScheduleNextHeartbeatExpiration`, `tryCompleteHeartbeat`
(to 3.9).
"""

from __future__ import annotations

from coordinator_model.specification.group_state import GroupState
from coordinator_model.specification.member import Member
from coordinator_model.specification.timers import SESSION


def restart_session(group: GroupState, member: Member) -> None:
    """The member has shown that it is alive: start its session again."""
    deadline = group.now_ms + member.session_timeout_ms
    if group.version.one_session_timer_per_member:
        group.timers.set((SESSION, member.member_id, 0), deadline)
    else:
        _restart_among_several(group, member.member_id, deadline)


def start_session(group: GroupState, member_id: str, length_ms: int) -> None:
    """Start a session of another length, for a pending id or a new member."""
    group.timers.set((SESSION, member_id, 0), group.now_ms + length_ms)


def close_session(group: GroupState, member_id: str) -> None:
    """`removeHeartbeatForLeavingMember`, `timer.cancel(classicGroupHeartbeatKey)`."""
    group.timers.cancel((SESSION, member_id, 0))
    for number in group.open_sessions.pop(member_id, ()):
        group.timers.cancel((SESSION, member_id, number))


def _restart_among_several(group: GroupState, member_id: str, deadline_ms: int) -> None:
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
