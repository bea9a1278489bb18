"""A heartbeat that leaves: for good (epoch -1), or a static member for a while (-2). Kafka: `consumerGroupLeave`."""

from __future__ import annotations

from coordinator_model.errors import Error
from coordinator_model.specification.consumer.core import ConsumerGroupCore, Operation
from coordinator_model.specification.consumer.effects import BumpCause
from coordinator_model.specification.consumer.handlers.membership import known_static_member
from coordinator_model.specification.consumer.handlers.records_of import assignment_record
from coordinator_model.specification.consumer.handlers.removal import fence_members
from coordinator_model.specification.consumer.member import NO_PARTITIONS, STATIC_LEAVE_EPOCH, all_in_epoch
from coordinator_model.specification.consumer.refusals import no_consumer_group, unknown_member
from coordinator_model.specification.consumer.requests import ConsumerGroupHeartbeat, ConsumerGroupHeartbeatAnswer


def leave_consumer_group(group: ConsumerGroupCore, request: ConsumerGroupHeartbeat, operation: Operation) -> ConsumerGroupHeartbeatAnswer:
    """The epoch that the member had is not checked. A static member that is away keeps its partitions and its session."""
    state = group.state
    if state is None:
        raise no_consumer_group(group.group_id, exists=False)
    if request.instance_id is None:
        member = state.members.get(request.member_id)
        if member is None:
            raise unknown_member(request.member_id, group.group_id)
    else:
        member = known_static_member(group, state, request.member_id, request.instance_id)
    if request.instance_id is not None and request.epoch == STATIC_LEAVE_EPOCH:
        away = member._replace(epoch=STATIC_LEAVE_EPOCH, pending=NO_PARTITIONS, assignment_epochs=all_in_epoch(0, member.assigned))
        operation.records.append(assignment_record(away, group.release))
    else:
        fence_members(group, state, [member], BumpCause.LEAVE, operation)
    return ConsumerGroupHeartbeatAnswer(Error.NONE, request.member_id, request.epoch)
