"""Heartbeat.

Kafka: `GroupMetadataManager.classicGroupHeartbeatToClassicGroup` (4.x), `GroupCoordinator.handleHeartbeat` (to 3.9).
"""

from __future__ import annotations

from coordinator_model.errors import Error
from coordinator_model.specification.group_state import GroupState
from coordinator_model.specification.handlers import sessions
from coordinator_model.specification.requests import Heartbeat, HeartbeatAnswer, Ticket
from coordinator_model.states import State


def heartbeat(group: GroupState, request: Heartbeat, ticket: Ticket) -> None:
    """Reply whether the sender is still a member, and whether it has to rejoin."""
    group.reply(ticket, HeartbeatAnswer(_heartbeat(group, request)))


def _heartbeat(group: GroupState, request: Heartbeat) -> Error:  # noqa: PLR0911  the checks in Kafka's order
    version = group.version
    if group.state is State.DEAD:
        return group.dead_error
    if version.heartbeat_needs_stable and group.state is not State.STABLE:
        return Error.REBALANCE_IN_PROGRESS
    error = group.validate_member(request.member_id, request.instance_id)
    if error is not Error.NONE:
        return error
    if group.state is State.COMPLETING_REBALANCE and not version.heartbeat_while_completing_is_ok:
        return Error.REBALANCE_IN_PROGRESS
    if request.generation != group.generation:
        return Error.ILLEGAL_GENERATION
    sessions.restart_session(group, group.members[request.member_id])
    if group.state is State.PREPARING_REBALANCE:
        # Not a failure: the answer tells a live member to rejoin.
        return Error.REBALANCE_IN_PROGRESS
    return Error.NONE
