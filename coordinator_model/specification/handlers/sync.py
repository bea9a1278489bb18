"""SyncGroup.

Kafka: `GroupMetadataManager.classicGroupSyncToClassicGroup` (4.x), `GroupCoordinator.doSyncGroup` (to 3.9).
"""

from __future__ import annotations

from coordinator_model.errors import Error
from coordinator_model.specification.group_state import GroupState
from coordinator_model.specification.handlers import rebalance, sessions
from coordinator_model.specification.refusals import RefusedRequestError
from coordinator_model.specification.requests import SyncGroup, Ticket
from coordinator_model.specification.transitions import Trigger
from coordinator_model.states import State


def sync_group(group: GroupState, request: SyncGroup, ticket: Ticket) -> None:
    """Park the request until the leader's assignment is known. If it is, reply at once."""
    _validate_sync_group(group, request)
    if group.state is State.STABLE:
        member = group.members[request.member_id]
        rebalance.remove_pending_sync_member(group, request.member_id)
        group.reply(ticket, rebalance.sync_answer(group, member, Error.NONE))
        if group.version.sync_in_stable_restarts_session:
            sessions.restart_session(group, member)
    else:
        _park(group, request, ticket)


def _validate_sync_group(group: GroupState, request: SyncGroup) -> None:
    """`validateSyncGroup`."""
    group.check_member(request.member_id, request.instance_id)
    if request.generation != group.generation:
        raise RefusedRequestError(Error.ILLEGAL_GENERATION)
    if group.version.protocol_type_on_the_wire and (
        request.protocol_type not in (None, group.protocol_type) or request.protocol not in (None, group.protocol)
    ):
        raise RefusedRequestError(Error.INCONSISTENT_GROUP_PROTOCOL)
    if group.state is State.PREPARING_REBALANCE:
        raise RefusedRequestError(Error.REBALANCE_IN_PROGRESS)


def _park(group: GroupState, request: SyncGroup, ticket: Ticket) -> None:
    """CompletingRebalance. If an earlier SyncGroup of the sender is still parked, it is never answered."""
    member_id = request.member_id
    group.awaiting_sync[member_id] = ticket
    if group.version.parked_sync_restarts_session:
        sessions.restart_session(group, group.members[member_id])
    rebalance.remove_pending_sync_member(group, member_id)
    if member_id != group.leader:
        return
    # A member that the leader left out gets an empty assignment. Ids of no member are ignored.
    assignments = dict(request.assignments)
    error = group.append(group.stored(assignments)._replace(state_since_ms=group.now_ms))
    if error is Error.NONE:
        set_and_propagate_assignment(group, assignments)
        group.transition_to(Trigger.ASSIGNMENT_STORED, member_id)
    else:
        rebalance.reset_and_propagate_assignment_error(group, error)
        rebalance.prepare_rebalance(group, Trigger.ASSIGNMENT_APPEND_FAILED, member_id)


def set_and_propagate_assignment(group: GroupState, assignments: dict[str, bytes]) -> None:
    """`setAndPropagateAssignment`."""
    for member_id, member in group.members.items():
        group.members[member_id] = member._replace(assignment=assignments.get(member_id, b""))
    rebalance.propagate_assignment(group, Error.NONE)
