"""JoinGroup.

Kafka: `GroupMetadataManager.classicGroupJoinToClassicGroup` and what it calls (4.x);
`GroupCoordinator.handleJoinGroup`, `doNewMemberJoinGroup`, `doCurrentMemberJoinGroup` (to 3.9). The coordinator creates the
group.
"""

from __future__ import annotations

from coordinator_model.errors import Error, ServerError
from coordinator_model.specification.effects import RemovalCause, StaticMemberReplaced
from coordinator_model.specification.group_state import GroupState
from coordinator_model.specification.handlers import rebalance, sessions
from coordinator_model.specification.member import Member
from coordinator_model.specification.requests import UNKNOWN_MEMBER_ID, JoinAnswer, JoinGroup, SyncAnswer, Ticket
from coordinator_model.specification.transitions import Trigger
from coordinator_model.states import State


def join_group(group: GroupState, request: JoinGroup, ticket: Ticket) -> None:
    """`classicGroupJoinToClassicGroup`: add the sender, let it rejoin, or refuse it."""
    version = group.version
    if version.size_limit and not accept_joining_member(group, request.member_id):
        group.remove(request.member_id, RemovalCause.GROUP_MAX_SIZE)
        sessions.close_session(group, request.member_id)
        group.reply(ticket, group.join_error(Error.GROUP_MAX_SIZE_REACHED, UNKNOWN_MEMBER_ID))
        accepted = False
    else:
        error = _refuse(group, request)
        accepted = error is Error.NONE
        if not accepted:
            group.reply(ticket, group.join_error(error, request.member_id))
        elif request.member_id == UNKNOWN_MEMBER_ID:
            _join_new_member(group, request, ticket)
        elif request.member_id in group.pending_members:
            _join_pending_member(group, request, ticket)
        else:
            _join_existing_member(group, request, ticket)
    if accepted or version.refused_join_evaluates_join_phase:
        rebalance.maybe_complete_join_phase(group)


def accept_joining_member(group: GroupState, member_id: str) -> bool:
    """`acceptJoiningMember` (KIP-389): whether the group has room. Pending ids take none."""
    max_size = group.config.group_max_size
    if group.state is State.EMPTY or group.state is State.DEAD:
        return True
    if not group.version.size_limit_counts_rejoined:
        # 2.2 to 2.5: only a member without an id needs room. A group that is too large refuses the members that rejoin first.
        if member_id == UNKNOWN_MEMBER_ID:
            return len(group.members) < max_size
        return len(group.members) <= max_size or member_id not in group.members or member_id in group.awaiting_join
    if group.state is State.PREPARING_REBALANCE:
        # Members that have rejoined stay. The others race for the room that is left, so a group that shrinks refuses the
        # slowest.
        return member_id in group.awaiting_join or len(group.awaiting_join) < max_size
    return member_id in group.members or len(group.members) < max_size


def _refuse(group: GroupState, request: JoinGroup) -> Error:
    """The checks before anything else: the protocols first, then the member id."""
    if group.state is State.DEAD:
        return group.dead_error
    if not group.supports_protocols(request.protocol_type, request.protocols):
        return Error.INCONSISTENT_GROUP_PROTOCOL
    if request.member_id == UNKNOWN_MEMBER_ID or request.member_id in group.pending_members:
        return Error.NONE
    return group.validate_member(request.member_id, request.instance_id)


def _join_new_member(group: GroupState, request: JoinGroup, ticket: Ticket) -> None:
    """`classicGroupJoinNewMember`: a member without an id."""
    member_id = request.fresh_member_id
    if request.instance_id is not None and group.version.static_members:
        old_member_id = group.static_members.get(request.instance_id)
        if old_member_id is None:
            add_member_and_rebalance(group, request, member_id, ticket)
        else:
            _replace_static_member(group, request, group.members[old_member_id], ticket)
    elif group.version.member_id_required and request.api_version >= 4:
        # KIP-394: a member is added only when its client has shown that it received the id. Otherwise a client that times out
        # and retries would leave a member without a client.
        group.pending_members[member_id] = None
        sessions.start_session(group, member_id, request.session_timeout_ms)
        group.reply(ticket, group.join_error(Error.MEMBER_ID_REQUIRED, member_id))
    else:
        add_member_and_rebalance(group, request, member_id, ticket)


def _join_pending_member(group: GroupState, request: JoinGroup, ticket: Ticket) -> None:
    """`classicGroupJoinPendingMember`: the id that MEMBER_ID_REQUIRED handed out is used."""
    if request.instance_id is not None:
        raise ServerError("IllegalStateException")  # static members never get a pending id
    add_member_and_rebalance(group, request, request.member_id, ticket)


def _join_existing_member(group: GroupState, request: JoinGroup, ticket: Ticket) -> None:
    """`classicGroupJoinExistingMember`: whether a rejoin starts a rebalance, by state."""
    member = group.members[request.member_id]
    changed = member.protocols != request.protocols
    if group.state is State.PREPARING_REBALANCE:
        _update_member_and_rebalance(group, request, member, Trigger.MEMBER_METADATA_CHANGED, ticket)
    elif group.state is State.STABLE and group.leader == member.member_id:
        # The leader wants a new assignment, for example because the topics have changed.
        _update_member_and_rebalance(group, request, member, Trigger.LEADER_REJOIN, ticket)
    elif changed:
        _update_member_and_rebalance(group, request, member, Trigger.MEMBER_METADATA_CHANGED, ticket)
    else:
        # The answer to its last JoinGroup was lost, or the rejoin is needless.
        group.reply(ticket, rebalance.joined_answer(group, member.member_id))


def add_member_and_rebalance(group: GroupState, request: JoinGroup, member_id: str, ticket: Ticket) -> None:
    """`addMemberThenRebalanceOrCompleteJoin`."""
    version = group.version
    if group.state is State.PREPARING_REBALANCE and (
        group.generation == 0 if version.extension_needs_generation_zero else group.previous_state is State.EMPTY
    ):
        group.new_member_added = True
    if not group.members:
        group.protocol_type = request.protocol_type
    session_timeout_ms, rebalance_timeout_ms = _timeouts(group, request)
    member = Member(
        member_id,
        request.instance_id if version.static_members else None,
        request.client_id,
        request.client_host,
        session_timeout_ms,
        rebalance_timeout_ms,
        request.protocols,
        is_new=True,
    )
    group.add(member, ticket)
    if version.new_member_timeout:
        # Its session starts with its first generation. Until then its JoinGroup may be parked for longer than a session. This
        # timer removes the member if its client went away meanwhile.
        sessions.start_session(group, member_id, group.config.new_member_join_timeout_ms)
    rebalance.maybe_prepare_rebalance_or_complete_join(group, Trigger.NEW_MEMBER, member_id)


def _timeouts(group: GroupState, request: JoinGroup) -> tuple[int, int]:
    """Session and rebalance timeout. JoinGroup v0 has only a session timeout, which is used for both."""
    if request.api_version >= 1 and group.version.own_rebalance_timeout:
        return request.session_timeout_ms, request.rebalance_timeout_ms
    return request.session_timeout_ms, request.session_timeout_ms


def _update_member_and_rebalance(group: GroupState, request: JoinGroup, member: Member, trigger: Trigger, ticket: Ticket) -> None:
    """`updateMemberThenRebalanceOrCompleteJoin`. If an earlier JoinGroup is still parked, it is never answered."""
    timeouts = (member.session_timeout_ms, member.rebalance_timeout_ms)
    if group.version.rejoin_stores_timeouts:
        timeouts = _timeouts(group, request)
    group.update_member(member, request.protocols, timeouts, ticket)
    rebalance.maybe_prepare_rebalance_or_complete_join(group, trigger, member.member_id)


def _replace_static_member(group: GroupState, request: JoinGroup, old: Member, ticket: Ticket) -> None:
    """`updateStaticMemberThenRebalanceOrCompleteJoin` (KIP-345): an instance came back without its member id."""
    old_leader = group.leader or ""
    new = replace_static_member(group, old, request.fresh_member_id)
    sessions.restart_session(group, new)  # with the session timeout that the instance had so far
    group.update_member(new, request.protocols, _timeouts(group, request), ticket)
    if not group.version.static_restart_is_stored and group.state is not State.PREPARING_REBALANCE:
        # 2.3 and 2.4: nothing is written and no rebalance starts, even if the protocols changed.
        ticket = group.awaiting_join.pop(new.member_id)
        group.reply(ticket, _answer_now(group, Error.NONE, new.member_id, old_leader))
    elif group.state is State.STABLE:
        if group.select_protocol() == group.protocol:
            _store_replacement(group, request, old, new, old_leader)
        else:
            # The group's protocol no longer has the most votes: choose again.
            rebalance.prepare_rebalance(group, Trigger.STATIC_PROTOCOL_CHANGE, new.member_id)
    elif group.state is State.COMPLETING_REBALANCE:
        # The leader may be computing an assignment for the old member id.
        rebalance.prepare_rebalance(group, Trigger.STATIC_REPLACED_DURING_COMPLETING, new.member_id)


def replace_static_member(group: GroupState, old: Member, member_id: str) -> Member:
    """`replaceStaticMember`: parked requests of the old id are answered FENCED_INSTANCE_ID."""
    old_id = old.member_id
    parked_join = group.awaiting_join.pop(old_id, None)
    if parked_join is not None:
        group.reply(parked_join, group.join_error(Error.FENCED_INSTANCE_ID, old_id))
    parked_sync = group.awaiting_sync.pop(old_id, None)
    if parked_sync is not None:
        group.reply(parked_sync, SyncAnswer(Error.FENCED_INSTANCE_ID))
    # pending_sync_members keeps the old id, as in Kafka. It is never cleared, so the sync timer fires.
    is_new = old.is_new and group.version.replaced_member_stays_new
    new = old._replace(member_id=member_id, is_new=is_new)
    group.replace_static_member(old, new)
    group.effects.append(StaticMemberReplaced(group.now_ms, old.instance_id or "", old_id, member_id))
    sessions.close_session(group, old_id)
    return new


def _store_replacement(group: GroupState, request: JoinGroup, old: Member, new: Member, old_leader: str) -> None:
    """A restart that changes nothing for the others: write the new member id to the log, without a rebalance."""
    error = group.append(group.stored())
    ticket = group.awaiting_join.pop(new.member_id)
    if error is not Error.NONE:
        group.reply(ticket, _answer_now(group, error, "", old_leader))
        _restore_replaced_member(group, old, new)
    elif request.api_version >= 9 and group.version.leader_restart_skips_assignment:
        # KIP-814: the leader gets the members, but does not assign again.
        is_leader = group.leader == new.member_id
        answer = _answer_now(group, error, new.member_id, group.leader or "")
        members = group.joined_members() if is_leader else ()
        group.reply(ticket, answer._replace(skip_assignment=is_leader, members=members))
    else:
        # An older client would compute an assignment if the answer made it the leader. The old id as the leader prevents this.
        group.reply(ticket, _answer_now(group, error, new.member_id, old_leader))


def _answer_now(group: GroupState, error: Error, member_id: str, leader: str) -> JoinAnswer:
    protocol_type = group.protocol_type if group.version.protocol_type_on_the_wire else None
    return JoinAnswer(error, member_id, group.generation, leader, protocol_type, group.protocol)


def _restore_replaced_member(group: GroupState, old: Member, new: Member) -> None:
    """The new id could not be written to the log: the old one is a member again."""
    current = group.members[new.member_id]
    protocols = current.protocols if group.version.failed_replacement_keeps_protocols else old.protocols
    group.update_member(current, protocols, (old.session_timeout_ms, old.rebalance_timeout_ms), None)
    restored = replace_static_member(group, group.members[new.member_id], old.member_id)
    sessions.restart_session(group, restored)
