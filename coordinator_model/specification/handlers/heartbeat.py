"""Heartbeat.

Kafka: `GroupMetadataManager.classicGroupHeartbeatToClassicGroup` (4.x), `GroupCoordinator.handleHeartbeat` (to 3.9).
"""

from __future__ import annotations

from coordinator_model.errors import Error
from coordinator_model.specification.group_state import GroupState
from coordinator_model.specification.handlers import sessions
from coordinator_model.specification.refusals import RefusedRequestError
from coordinator_model.specification.requests import Heartbeat, HeartbeatAnswer, Ticket
from coordinator_model.states import State


def heartbeat(group: GroupState, request: Heartbeat, ticket: Ticket) -> None:
    """Reply whether the sender is still a member, and whether it has to rejoin."""
    version = group.version
    if version.heartbeat_needs_stable and group.state not in (State.STABLE, State.DEAD):
        raise RefusedRequestError(Error.REBALANCE_IN_PROGRESS)
    group.check_member(request.member_id, request.instance_id)
    if group.state is State.COMPLETING_REBALANCE and not version.heartbeat_while_completing_is_ok:
        raise RefusedRequestError(Error.REBALANCE_IN_PROGRESS)
    if request.generation != group.generation:
        raise RefusedRequestError(Error.ILLEGAL_GENERATION)
    sessions.restart_session(group, group.members[request.member_id])
    # Not a failure: the answer tells a live member to rejoin.
    preparing = group.state is State.PREPARING_REBALANCE
    group.reply(ticket, HeartbeatAnswer(Error.REBALANCE_IN_PROGRESS if preparing else Error.NONE))
