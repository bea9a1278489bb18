"""OffsetCommit: which members may commit. The coordinator keeps the offsets themselves.

Kafka: `ClassicGroup.validateOffsetCommit`, `OffsetMetadataManager.validateOffsetCommit` (4.x),
`GroupCoordinator.doCommitOffsets`, `validateOffsetCommit` (to 3.9).
"""

from __future__ import annotations

from coordinator_model.errors import Error
from coordinator_model.specification.group_state import GroupState
from coordinator_model.specification.handlers import sessions
from coordinator_model.specification.refusals import RefusedRequestError
from coordinator_model.specification.requests import CommitAnswer, OffsetCommit, Ticket
from coordinator_model.states import State


def offset_commit(group: GroupState, request: OffsetCommit, ticket: Ticket) -> None:
    """Accept the commit of a member of this generation, or any commit while the group has no members."""
    version = group.version
    completing = group.state is State.COMPLETING_REBALANCE
    if completing and version.commit_while_completing_refused_first:
        raise RefusedRequestError(Error.REBALANCE_IN_PROGRESS)
    if request.generation >= 0 or group.state is not State.EMPTY:  # else the group only stores offsets
        # A consumer that assigns its own partitions sends no member id. It is refused here, because the group has members.
        group.check_member(request.member_id, request.instance_id)
        if request.generation != group.generation:
            raise RefusedRequestError(Error.ILLEGAL_GENERATION)
        if completing:
            # Member and generation are valid, but the member may lose the partitions that it commits.
            raise RefusedRequestError(Error.REBALANCE_IN_PROGRESS)
        if version.commit_restarts_session:
            sessions.restart_session(group, group.members[request.member_id])
    group.reply(ticket, CommitAnswer(group.append_error_as_answered()))
