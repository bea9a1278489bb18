"""LeaveGroup.

Kafka: `GroupMetadataManager.classicGroupLeaveToClassicGroup` (4.x), `GroupCoordinator.handleLeaveGroup` (to 3.9).
"""

from __future__ import annotations

from coordinator_model.errors import Error
from coordinator_model.specification.effects import RemovalCause
from coordinator_model.specification.group_state import GroupState
from coordinator_model.specification.handlers import rebalance, sessions
from coordinator_model.specification.requests import UNKNOWN_MEMBER_ID, LeaveAnswer, LeaveGroup, LeavingMember, MemberResponse, Ticket
from coordinator_model.specification.transitions import Trigger
from coordinator_model.states import State


def leave_group(group: GroupState, request: LeaveGroup, ticket: Ticket) -> None:
    """Remove the named members. Each has its own error in the answer (KIP-345)."""
    if group.state is State.DEAD:
        group.reply(ticket, leave_error(request, group.dead_error, shared=not group.version.batched_leave))
        return
    version = group.version
    left = []
    gone = ""
    for entry in request.members:
        error, member_id, was_pending = _leave(group, entry)
        left.append(MemberResponse(entry.member_id, entry.instance_id, error))
        if error is not Error.NONE:
            continue
        if not version.leave_entry_by_entry:
            gone = member_id
        elif was_pending:
            rebalance.maybe_complete_join_phase(group)
        else:
            _update_group(group, member_id)
    if gone:
        # 4.0 acts once for the whole batch, even if only a pending id has left.
        _update_group(group, gone)
    top_level = Error.NONE if version.batched_leave else left[0].error
    group.reply(ticket, LeaveAnswer(top_level, tuple(left)))


def absent_group_answer(request: LeaveGroup, *, batched: bool) -> LeaveAnswer:
    """The answer of a group that does not exist. Since 2.4 only the members have an error, not the request."""
    answer = leave_error(request, Error.UNKNOWN_MEMBER_ID, shared=True)
    return answer._replace(error=Error.NONE) if batched else answer


def leave_error(request: LeaveGroup, error: Error, *, shared: bool) -> LeaveAnswer:
    """The answer to a refused LeaveGroup. Before 2.4 (`shared`) its one member has the same error."""
    entries = request.members if shared else ()
    return LeaveAnswer(error, tuple(MemberResponse(entry.member_id, entry.instance_id, error) for entry in entries))


def _leave(group: GroupState, entry: LeavingMember) -> tuple[Error, str, bool]:
    """`validateLeaveGroup` for one entry: the error, the member id that left, and whether it was only pending."""
    member_id = entry.member_id
    if member_id == UNKNOWN_MEMBER_ID:
        # An administrator's tool removes a static member by its instance id alone.
        current = group.static_members.get(entry.instance_id or "")
        if entry.instance_id is None or current is None:
            return Error.UNKNOWN_MEMBER_ID, "", False
        member_id = current
    elif member_id in group.pending_members:
        sessions.close_session(group, member_id)
        group.remove(member_id, RemovalCause.LEAVE)
        return Error.NONE, member_id, True
    else:
        error = group.validate_member(member_id, entry.instance_id)
        if error is not Error.NONE:
            return error, "", False
    _remove_leaving_member(group, member_id)
    return Error.NONE, member_id, False


def _remove_leaving_member(group: GroupState, member_id: str) -> None:
    """Remove a member. Its parked JoinGroup is answered, its parked SyncGroup is not."""
    sessions.close_session(group, member_id)
    parked_join = group.awaiting_join.get(member_id)
    if parked_join is not None and group.version.leave_answers_parked_join:
        group.reply(parked_join, group.join_error(Error.UNKNOWN_MEMBER_ID, UNKNOWN_MEMBER_ID))
    group.remove(member_id, RemovalCause.LEAVE)


def _update_group(group: GroupState, member_id: str) -> None:
    if group.state is State.STABLE or group.state is State.COMPLETING_REBALANCE:
        rebalance.prepare_rebalance(group, Trigger.LEAVE, member_id)
    else:
        rebalance.maybe_complete_join_phase(group)
