"""Rebalance: how a join phase starts, is extended and ends, and how long members may take to send SyncGroup.

Kafka: `prepareRebalance`, `tryCompleteInitialRebalanceElseSchedule`, `maybeCompleteJoinPhase`,
`completeClassicGroupJoin`, `schedulePendingSync`, `expirePendingSync` (GroupMetadataManager, 4.x);
`prepareRebalance`, InitialDelayedJoin, `tryCompleteJoin`, `onCompleteJoin`, DelayedSync (GroupCoordinator, to 3.9).
"""

from __future__ import annotations

from coordinator_model.errors import Error, ServerError
from coordinator_model.specification.effects import RemovalCause
from coordinator_model.specification.group_state import GroupState
from coordinator_model.specification.handlers import sessions
from coordinator_model.specification.member import Member
from coordinator_model.specification.requests import JoinAnswer, SyncAnswer
from coordinator_model.specification.timers import INITIAL_DELAY_KEY, JOIN_KEY, SYNC_KEY
from coordinator_model.specification.transitions import Trigger, can_rebalance
from coordinator_model.states import State


def maybe_prepare_rebalance_or_complete_join(group: GroupState, trigger: Trigger, member_id: str) -> None:
    """`maybePrepareRebalanceOrCompleteJoin`."""
    if can_rebalance(group.state):
        prepare_rebalance(group, trigger, member_id)
    else:
        maybe_complete_join_phase(group)


def prepare_rebalance(group: GroupState, trigger: Trigger, member_id: str = "") -> None:
    """`prepareRebalance`: every member has to join again."""
    if group.state is State.COMPLETING_REBALANCE:
        # This generation will have no assignment: answer the members that wait for it.
        reset_and_propagate_assignment_error(group, Error.REBALANCE_IN_PROGRESS)
    remove_sync_expiration(group)
    initial = group.state is State.EMPTY and group.version.initial_rebalance_delay
    group.transition_to(trigger, member_id)
    if initial:
        delay = group.config.group_initial_rebalance_delay_ms
        _schedule_initial_delay(group, delay, max(group.rebalance_timeout_ms() - delay, 0))
    elif group.has_all_members_joined():
        complete_join_phase(group)
    else:
        _schedule_join(group)


def _schedule_join(group: GroupState) -> None:
    length = group.rebalance_timeout_ms()
    if length > 0:
        group.timers.set(JOIN_KEY, group.now_ms + length)
    else:  # there is nothing to wait for but pending ids
        complete_join_phase(group)


def _schedule_initial_delay(group: GroupState, delay_ms: int, remaining_ms: int) -> None:
    group.initial_delay_ms = delay_ms
    group.initial_remaining_ms = remaining_ms
    if delay_ms > 0:
        group.timers.set(INITIAL_DELAY_KEY, group.now_ms + delay_ms)
    else:
        try_complete_initial_rebalance_else_schedule(group)


def try_complete_initial_rebalance_else_schedule(group: GroupState) -> None:
    """The initial delay of KIP-134 ended: wait again if a member came during the delay.

    Members of one deployment start together. Each one that arrives during the delay extends it, up to the rebalance timeout of
    the first.
    """
    delay, remaining = group.initial_delay_ms, group.initial_remaining_ms
    if group.new_member_added and remaining != 0:
        group.new_member_added = False
        next_delay = min(group.config.group_initial_rebalance_delay_ms, remaining)
        _schedule_initial_delay(group, next_delay, max(remaining - delay, 0))
    else:
        complete_join_phase(group)


def is_initial_rebalance(group: GroupState) -> bool:
    """Whether the join phase waits for its initial delay, which a join or a leave cannot end.

    4.x checks whether the group was Empty before. That is the same: a member that came during the delay is parked until it ends,
    so the phase ends with the delay.
    """
    return INITIAL_DELAY_KEY in group.timers.deadlines


def maybe_complete_join_phase(group: GroupState) -> None:
    """`maybeCompleteJoinPhase`, `tryCompleteJoin`: end the join phase if all have joined."""
    if group.state is State.PREPARING_REBALANCE:
        check_orphans(group)
        if not is_initial_rebalance(group) and group.has_all_members_joined():
            complete_join_phase(group)


def check_orphans(group: GroupState) -> None:
    """0.10.0: fail if the join phase of an unloaded group with the same id is still waiting.

    Such an old join phase counts as complete when the sessions of all its members have ended. The next check of the join phase of
    that group id then completes the old one first. This fails, because a Dead group cannot become Dead, and the rest of the check
    is skipped. `group.orphans` holds, for each old join phase, when its last member's session ends and when the phase itself ends.
    """
    for orphan in group.orphans:
        without_members_ms, ends_ms = orphan
        if without_members_ms <= group.now_ms < ends_ms:
            group.orphans.remove(orphan)
            raise ServerError("IllegalStateException")


def complete_join_phase(group: GroupState) -> None:
    """`completeClassicGroupJoin`, `onCompleteJoin`: remove the members that have not rejoined; the others are a new generation."""
    group.timers.cancel(JOIN_KEY)
    group.timers.cancel(INITIAL_DELAY_KEY)
    _remove_members_not_rejoined(group)
    if not group.members and not group.version.empty_state:
        group.transition_to(Trigger.LAST_MEMBER_GONE)
        group.append(None)
    elif not maybe_elect_new_joined_leader(group) and group.members:
        # Only static members are left, and none has rejoined. Without a leader there is no generation.
        _schedule_join(group)
    else:
        _init_next_generation(group)
        if group.state is State.EMPTY:
            group.append(group.stored())
        else:
            _answer_joined_members(group)


def _remove_members_not_rejoined(group: GroupState) -> None:
    """Remove the dynamic members. Static ones stay, because their instances should return within their session."""
    for member in group.members_in_map_order():
        if member.instance_id is None and member.member_id not in group.awaiting_join:
            group.remove(member.member_id, RemovalCause.JOIN_EXPIRED)
            if group.version.dropped_member_session_closed:
                sessions.close_session(group, member.member_id)


def maybe_elect_new_joined_leader(group: GroupState) -> bool:
    """`maybeElectNewJoinedLeader`: whether the group has a leader that has rejoined."""
    if group.leader in group.awaiting_join:
        return True
    joined = [member.member_id for member in group.members_in_map_order() if member.member_id in group.awaiting_join]
    if joined:
        group.change_leader(joined[0])
    return bool(joined)


def _init_next_generation(group: GroupState) -> None:
    """`initNextGeneration`."""
    group.generation += 1
    if group.members:
        group.protocol = group.select_protocol()
        group.transition_to(Trigger.JOIN_PHASE_ENDED)
    else:
        group.protocol = None
        group.transition_to(Trigger.JOIN_PHASE_ENDED_EMPTY)
    group.pending_sync_members.clear()


def _answer_joined_members(group: GroupState) -> None:
    """Answer every parked JoinGroup. All sessions start again, also those of members that have no parked request."""
    for member in group.members_in_map_order():
        member_id = member.member_id
        parked_join = group.awaiting_join.pop(member_id, None)
        if parked_join is not None:
            group.reply(parked_join, joined_answer(group, member_id))
        if member.is_new:
            group.members[member_id] = member._replace(is_new=False)
        sessions.restart_session(group, member)
        group.pending_sync_members[member_id] = None
    if group.version.pending_sync_timer:
        group.timers.set(SYNC_KEY, group.now_ms + group.rebalance_timeout_ms())
    else:
        group.pending_sync_members.clear()


def joined_answer(group: GroupState, member_id: str) -> JoinAnswer:
    """The answer to a member of the new generation. Only the leader's answer lists the members."""
    return JoinAnswer(
        Error.NONE,
        member_id,
        group.generation,
        group.leader or "",
        group.protocol_type if group.version.protocol_type_on_the_wire else None,
        group.protocol,
        False,
        group.joined_members() if member_id == group.leader else (),
    )


def expire_pending_sync(group: GroupState) -> None:
    """`expirePendingSync`: remove the members that did not send SyncGroup within a rebalance timeout, static ones too."""
    for member_id in list(group.pending_sync_members):
        group.remove(member_id, RemovalCause.SYNC_EXPIRED)
        sessions.close_session(group, member_id)
    prepare_rebalance(group, Trigger.SYNC_EXPIRED)


def remove_sync_expiration(group: GroupState) -> None:
    """`removeSyncExpiration`: no member has to send SyncGroup any more."""
    group.pending_sync_members.clear()
    group.timers.cancel(SYNC_KEY)


def remove_pending_sync_member(group: GroupState, member_id: str) -> None:
    """`removePendingSyncMember`: the member has sent SyncGroup; if it was the last one, the timer stops."""
    group.pending_sync_members.pop(member_id, None)
    if not group.pending_sync_members:
        group.timers.cancel(SYNC_KEY)


def reset_and_propagate_assignment_error(group: GroupState, error: Error) -> None:
    """`resetAndPropagateAssignmentWithError`: drop all assignments."""
    for member_id, member in group.members.items():
        if member.assignment:
            group.members[member_id] = member._replace(assignment=b"")
    propagate_assignment(group, error)


def propagate_assignment(group: GroupState, error: Error) -> None:
    """`propagateAssignment`: answer every parked SyncGroup. The answer starts the member's session again."""
    if not group.awaiting_sync:
        return
    for member in group.members_in_map_order():
        parked_sync = group.awaiting_sync.pop(member.member_id, None)
        if parked_sync is not None:
            group.reply(parked_sync, sync_answer(group, member, error))
            sessions.restart_session(group, member)


def sync_answer(group: GroupState, member: Member, error: Error) -> SyncAnswer:
    """The answer to a SyncGroup."""
    if error is not Error.NONE:
        return SyncAnswer(error)
    if not group.version.protocol_type_on_the_wire:
        return SyncAnswer(error, assignment=member.assignment)
    return SyncAnswer(error, group.protocol_type, group.protocol, member.assignment)
