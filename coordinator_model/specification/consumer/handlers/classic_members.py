"""Members of a consumer group that speak the classic protocol: JoinGroup, SyncGroup, Heartbeat and LeaveGroup in a consumer group.

For such a member the member epoch is the generation, nobody leads, and the coordinator assigns. Heartbeat and SyncGroup answer
REBALANCE_IN_PROGRESS when the member has to join again to take its next step. Kafka: `classicGroupJoinToConsumerGroup`,
`classicGroupSyncToConsumerGroup`, `classicGroupHeartbeatToConsumerGroup`, `classicGroupLeaveToConsumerGroup`.
"""

from __future__ import annotations

from typing import Final

from coordinator_model.errors import Error, ServerError
from coordinator_model.kafka_bytes import UnreadableError
from coordinator_model.specification.consumer.config import MigrationPolicy
from coordinator_model.specification.consumer.consumer_protocol import PROTOCOL_TYPE, EmbeddedSubscription, read_subscription
from coordinator_model.specification.consumer.core import ConsumerGroupCore, Operation
from coordinator_model.specification.consumer.effects import BumpCause
from coordinator_model.specification.consumer.group_state import FREE, ConsumerGroupState
from coordinator_model.specification.consumer.handlers.epochs import bump_cause, maybe_reconcile, target_for, update_epoch
from coordinator_model.specification.consumer.handlers.expressions import ExpressionChange, update_expression
from coordinator_model.specification.consumer.handlers.membership import (
    MemberChange,
    check_size,
    joining_static_member,
    known_static_member,
    static_owner,
    take_member,
)
from coordinator_model.specification.consumer.handlers.records_of import group_tombstones
from coordinator_model.specification.consumer.handlers.removal import fence_members
from coordinator_model.specification.consumer.member import ClassicMetadata, ConsumerGroupMember, MemberState
from coordinator_model.specification.consumer.migration import can_downgrade, classic_assignment, downgraded, partitions_by_id
from coordinator_model.specification.consumer.records import ClassicGroupWritten
from coordinator_model.specification.hash_maps import hash_set_of
from coordinator_model.specification.refusals import RefusedRequestError
from coordinator_model.specification.requests import (
    UNKNOWN_MEMBER_ID,
    Heartbeat,
    HeartbeatAnswer,
    JoinAnswer,
    JoinGroup,
    LeaveAnswer,
    LeaveGroup,
    LeavingMember,
    MemberResponse,
    SyncAnswer,
    SyncGroup,
)
from coordinator_model.specification.timers import JOIN, SYNC

ASKS_TWICE: Final = 4
"""From this version of JoinGroup on, a new dynamic member gets an id first and joins with it (KIP-394)."""


def join_consumer_group(group: ConsumerGroupCore, request: JoinGroup, operation: Operation) -> JoinAnswer:
    """A JoinGroup is a full heartbeat. What the member owns is in its subscription."""
    state = _state_of(group)
    member_id = request.member_id or request.fresh_member_id
    if state.members and group.config.migration_policy is MigrationPolicy.DISABLED and group.release.disabled_migration_refuses_classic:
        raise RefusedRequestError(Error.INCONSISTENT_GROUP_PROTOCOL)
    check_size(group, state, member_id, request.instance_id)
    if not _supports(state, request):
        raise RefusedRequestError(Error.INCONSISTENT_GROUP_PROTOCOL)
    if request.instance_id is None and request.member_id == UNKNOWN_MEMBER_ID and request.api_version >= ASKS_TWICE:
        return JoinAnswer(Error.MEMBER_ID_REQUIRED, member_id)
    if request.instance_id is None:
        member = state.members.get(member_id) or ConsumerGroupMember(member_id)
    elif request.member_id == UNKNOWN_MEMBER_ID:
        member = joining_static_member(group, state, member_id, request.instance_id, operation, classic=True)
    else:
        member = known_static_member(group, state, member_id, request.instance_id)
    subscription = _subscription(group, request)
    change = MemberChange(member, _joined(member, request, subscription))
    names_changed = take_member(change, operation)
    changed = names_changed or update_expression(group, state, change, operation) is not ExpressionChange.NONE
    now = update_epoch(group, state, change, bump_cause(state, change) if changed else None, operation)
    owned = partitions_by_id(subscription.owned, group.image)
    replaced = None if request.instance_id is None else static_owner(group, state, request.instance_id)
    if replaced is not None and replaced.classic is None and can_downgrade(state, [replaced], group.config, joining=1):
        stays = state.target_epoch == now.epoch if group.release.stale_target_downgrades_to_rebalance else not changed
        after = change.after
        if stays:
            target = state.target_epoch, state.target_of(member_id, request.instance_id)
            after = maybe_reconcile(group, state, after, target, owned, operation, subscription_changed=changed)
        _downgrade(group, state, replaced, after, operation, rebalances=not stays)
    else:
        target = target_for(group, state, change, now, operation)
        after = maybe_reconcile(group, state, change.after, target, owned, operation, subscription_changed=changed)
        operation.when_written.append(lambda: _expect_sync(group, after, request.rebalance_timeout_ms))
    return JoinAnswer(Error.NONE, member_id, after.epoch, protocol_type=PROTOCOL_TYPE, protocol=request.protocols[0][0])


def _expect_sync(group: ConsumerGroupCore, member: ConsumerGroupMember, timeout_ms: int) -> None:
    group.timers.cancel((JOIN, member.member_id, 0))
    group.restart_session(member.member_id, member.classic)
    group.timers.set((SYNC, member.member_id, 0), group.now_ms + timeout_ms)


def _downgrade(
    group: ConsumerGroupCore,
    state: ConsumerGroupState,
    replaced: ConsumerGroupMember,
    joined: ConsumerGroupMember,
    operation: Operation,
    *,
    rebalances: bool,
) -> None:
    """`convertToClassicGroup`: a classic static member has taken the place of the last one of the consumer protocol."""
    successor = downgraded(group, state, [replaced], joined)
    members = [joined.member_id if member_id == replaced.member_id else member_id for member_id in state.members]
    operation.records += [*group_tombstones(members, state), ClassicGroupWritten(successor.stored())]
    operation.when_written.append(lambda: group.give_up_to(successor, rebalances=rebalances))


def _state_of(group: ConsumerGroupCore) -> ConsumerGroupState:
    if group.state is None:
        raise RefusedRequestError(Error.UNKNOWN_MEMBER_ID)
    return group.state


def _supports(state: ConsumerGroupState, request: JoinGroup) -> bool:
    """`supportsClassicProtocols`: of the consumer type, and with a protocol that all classic members support."""
    supported = any(state.classic_protocols.get(name, 0) == state.classic_members for name, _ in request.protocols)
    return request.protocol_type == PROTOCOL_TYPE and supported


def _subscription(group: ConsumerGroupCore, request: JoinGroup) -> EmbeddedSubscription:
    """`deserializeSubscription`."""
    try:
        return read_subscription(request.protocols[0][1])
    except UnreadableError:
        if group.release.malformed_subscription_is_inconsistent:
            raise RefusedRequestError(Error.INCONSISTENT_GROUP_PROTOCOL) from None
        raise ServerError("IllegalStateException") from None


def _joined(member: ConsumerGroupMember, request: JoinGroup, subscription: EmbeddedSubscription) -> ConsumerGroupMember:
    """The member with what it says now. Classic members have no regular expressions."""
    return member._replace(
        instance_id=member.instance_id if request.instance_id is None else request.instance_id,
        rack_id=member.rack_id if subscription.rack_id is None else subscription.rack_id,
        rebalance_timeout_ms=request.rebalance_timeout_ms,
        topics=tuple(hash_set_of(subscription.topics)),
        regex="",
        client_id=request.client_id,
        client_host=request.client_host,
        classic=ClassicMetadata(request.session_timeout_ms, request.protocols),
    )


def sync_consumer_group(group: ConsumerGroupCore, request: SyncGroup, operation: Operation) -> SyncAnswer:
    """A SyncGroup tells what is assigned to the member now."""
    state = _state_of(group)
    member, classic = _classic_member(group, state, request.member_id, request.instance_id, request.generation)
    other_type = request.protocol_type not in (None, PROTOCOL_TYPE)
    if other_type or request.protocol not in (None, classic.protocols[0][0]):
        raise RefusedRequestError(Error.INCONSISTENT_GROUP_PROTOCOL)
    if _moves_on(group, state, member) and member.state is not MemberState.UNREVOKED_PARTITIONS:
        group.start_join_timer(member)
        raise RefusedRequestError(Error.REBALANCE_IN_PROGRESS)

    def when_written() -> None:
        group.timers.cancel((SYNC, member.member_id, 0))
        group.restart_session(member.member_id, classic)

    operation.when_written.append(when_written)
    assignment = classic_assignment(classic, member.assigned, group.image)
    return SyncAnswer(Error.NONE, request.protocol_type, request.protocol, assignment)


def heartbeat_in_consumer_group(group: ConsumerGroupCore, request: Heartbeat, operation: Operation) -> HeartbeatAnswer:  # noqa: ARG001 (as others)
    """A Heartbeat keeps the session, and says whether the member has to join again."""
    state = _state_of(group)
    member, classic = _classic_member(group, state, request.member_id, request.instance_id, request.generation)
    group.restart_session(member.member_id, classic)
    behind = _moves_on(group, state, member) or member.state is MemberState.UNREVOKED_PARTITIONS
    if behind or (member.state is MemberState.UNRELEASED_PARTITIONS and not _waits_for_others(state, member)):
        group.start_join_timer(member)
        return HeartbeatAnswer(Error.REBALANCE_IN_PROGRESS)
    return HeartbeatAnswer(Error.NONE)


def _moves_on(group: ConsumerGroupCore, state: ConsumerGroupState, member: ConsumerGroupMember) -> bool:
    """Whether there is an epoch for which the member has to join again (`throwIfRebalanceInProgress`)."""
    return member.epoch < (state.target_epoch if group.release.classic_members_follow_target else state.group_epoch)


def _waits_for_others(state: ConsumerGroupState, member: ConsumerGroupMember) -> bool:
    """`waitingOnUnreleasedPartition`: somebody still has a partition of its target."""
    return any(
        partition not in member.assigned.get(topic_id, frozenset()) and state.owner_epoch(topic_id, partition) != FREE
        for topic_id, partitions in state.target[member.member_id]
        for partition in partitions
    )


def _classic_member(
    group: ConsumerGroupCore, state: ConsumerGroupState, member_id: str, instance_id: str | None, generation: int
) -> tuple[ConsumerGroupMember, ClassicMetadata]:
    """`validateConsumerGroupMember`, `throwIfMemberDoesNotUseClassicProtocol`, `throwIfGenerationIdUnmatched`."""
    member = _identified(group, state, LeavingMember(member_id, instance_id))
    if member.classic is None:
        raise RefusedRequestError(Error.UNKNOWN_MEMBER_ID)
    if generation != member.epoch:
        raise RefusedRequestError(Error.ILLEGAL_GENERATION)
    return member, member.classic


def _identified(group: ConsumerGroupCore, state: ConsumerGroupState, who: LeavingMember) -> ConsumerGroupMember:
    if who.instance_id is not None:
        member_id = who.member_id
        if member_id == UNKNOWN_MEMBER_ID:  # an administrator removes a static member by its instance id alone
            member_id = state.static_members.get(who.instance_id, "")
        return known_static_member(group, state, member_id, who.instance_id)
    return group.member(state, who.member_id)


def leave_as_classic_member(group: ConsumerGroupCore, request: LeaveGroup, operation: Operation) -> LeaveAnswer:
    """A LeaveGroup removes the members that it names, whichever protocol they speak."""
    state = _state_of(group)
    answers: list[MemberResponse] = []
    leaving: list[ConsumerGroupMember] = []
    for entry in request.members:
        error = Error.NONE
        try:
            member = _identified(group, state, entry)
            leaving += [member] if member not in leaving else []
        except RefusedRequestError as refusal:
            error = refusal.error
        answers.append(MemberResponse(entry.member_id, entry.instance_id, error))
    if leaving:
        fence_members(group, state, leaving, BumpCause.LEAVE, operation)
    return LeaveAnswer(Error.NONE, tuple(answers))
