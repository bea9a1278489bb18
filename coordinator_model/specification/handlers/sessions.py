"""Sessions: how long a member may be silent. expiry.py says what happens when one ends.

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

Kafka: `rescheduleClassicGroupMemberHeartbeat` (4.x); `completeAndScheduleNextHeartbeatExpiration`, `tryCompleteHeartbeat`
(to 3.9).
"""

from __future__ import annotations

from coordinator_model.specification.group_state import GroupState
from coordinator_model.specification.member import Member
from coordinator_model.specification.timers import SESSION


def restart_session(group: GroupState, member: Member) -> None:
    """The member was heard of: its session starts again."""
    deadline = group.now_ms + member.session_timeout_ms
    if group.version.one_session_timer_per_member:
        group.timers.set((SESSION, member.member_id, 0), deadline)
    else:
        _restart_among_several(group, member.member_id, deadline)


def start_session(group: GroupState, member_id: str, length_ms: int) -> None:
    """A timer of another length: of a pending id, or of a new member."""
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
