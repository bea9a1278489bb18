"""ConsumerGroupHeartbeat (KIP-848): the one request of the consumer protocol. It joins, keeps alive, reconciles and leaves.

Kafka: `GroupMetadataManager.consumerGroupHeartbeat`.
"""

from __future__ import annotations

from coordinator_model.errors import Error
from coordinator_model.specification.consumer.assignors.target import prefers_another_assignor
from coordinator_model.specification.consumer.core import ConsumerGroupCore, Operation
from coordinator_model.specification.consumer.effects import BumpCause
from coordinator_model.specification.consumer.group_state import ConsumerGroupState
from coordinator_model.specification.consumer.handlers.epochs import bump_cause, maybe_reconcile, target_for, update_epoch
from coordinator_model.specification.consumer.handlers.expressions import ExpressionChange, update_expression
from coordinator_model.specification.consumer.handlers.membership import (
    MemberChange,
    check_epoch,
    check_size,
    dynamic_member,
    joining_static_member,
    known_static_member,
    take_member,
)
from coordinator_model.specification.consumer.handlers.removal import leave_consumer_group
from coordinator_model.specification.consumer.member import JOIN_EPOCH, ConsumerGroupMember
from coordinator_model.specification.consumer.requests import ConsumerGroupHeartbeat, ConsumerGroupHeartbeatAnswer
from coordinator_model.specification.hash_maps import hash_set_of
from coordinator_model.specification.refusals import RefusedRequestError


def handle_consumer_heartbeat(
    group: ConsumerGroupCore, request: ConsumerGroupHeartbeat, operation: Operation, converted: ConsumerGroupState | None = None
) -> ConsumerGroupHeartbeatAnswer:
    """Handle a heartbeat. `converted` is the state that was made of a classic group, if there was one."""
    if request.epoch < JOIN_EPOCH:
        return leave_consumer_group(group, request, operation)
    state = converted or group.state
    if state is None:
        if request.epoch != JOIN_EPOCH:
            raise RefusedRequestError(Error.GROUP_ID_NOT_FOUND, f"Consumer group {group.group_id} not found.")
        state = ConsumerGroupState.new(group.release)
    check_size(group, state, request.member_id, request.instance_id)
    member_id = request.member_id or request.fresh_member_id
    member = _sender(group, state, member_id, request, operation)
    change = MemberChange(member, _updated(member, request))

    names_changed = take_member(change, operation)
    expression = update_expression(group, state, change, operation)
    now = update_epoch(group, state, change, _cause(group, state, change, expression, names_changed=names_changed), operation)
    target = target_for(group, state, change, now, operation)
    changed = names_changed or expression is not ExpressionChange.NONE
    after = maybe_reconcile(group, state, change.after, target, request.owned, operation, subscription_changed=changed)
    group.restart_session(member_id)

    complete = request.rebalance_timeout_ms != -1 and request.owned is not None and (request.topics, request.regex) != (None, None)
    tells = request.epoch == JOIN_EPOCH or complete or after.assigned_epochs() != member.assigned_epochs()
    return ConsumerGroupHeartbeatAnswer(
        Error.NONE, after.member_id, after.epoch, group.heartbeat_interval_ms, after.assigned if tells else None
    )


def _sender(
    group: ConsumerGroupCore, state: ConsumerGroupState, member_id: str, request: ConsumerGroupHeartbeat, operation: Operation
) -> ConsumerGroupMember:
    if request.instance_id is None:
        return dynamic_member(group, state, member_id, request.epoch, request.owned)
    if request.epoch == JOIN_EPOCH:
        return joining_static_member(group, state, member_id, request.instance_id, operation, classic=False)
    member = known_static_member(group, state, member_id, request.instance_id)
    check_epoch(member, request.epoch, request.owned)
    return member


def _updated(member: ConsumerGroupMember, request: ConsumerGroupHeartbeat) -> ConsumerGroupMember:
    """The member with the fields that were sent. It speaks the consumer protocol from now on."""
    return member._replace(
        instance_id=member.instance_id if request.instance_id is None else request.instance_id,
        rack_id=member.rack_id if request.rack_id is None else request.rack_id,
        rebalance_timeout_ms=member.rebalance_timeout_ms if request.rebalance_timeout_ms == -1 else request.rebalance_timeout_ms,
        assignor=member.assignor if request.assignor is None else request.assignor,
        topics=member.topics if request.topics is None else tuple(hash_set_of(request.topics)),
        regex=member.regex if request.regex is None else request.regex,
        client_id=request.client_id,
        client_host=request.client_host,
        classic=None,
    )


def _cause(
    group: ConsumerGroupCore, state: ConsumerGroupState, change: MemberChange, expression: ExpressionChange, *, names_changed: bool
) -> BumpCause | None:
    """Why the group epoch has to move, as far as the request is the cause."""
    never_moved = state.group_epoch == 0 and group.release.first_group_epoch == 0
    moves = names_changed or never_moved or expression is ExpressionChange.RESOLVED
    if not moves and group.release.preferred_assignor_bumps:
        moves = prefers_another_assignor(state, change, group.config.assignors[0])
    return bump_cause(state, change) if moves else None
