"""What the coordinator's own log shows of a group: one handler for each kind of line. Its times are exact."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from coordinator_model import events as kinds
from coordinator_model.diagnosis import refusals, removals, troubles
from coordinator_model.events import Event, MemberEntry
from coordinator_model.states import State
from coordinator_model.tracker import endings, membership, phases, rebalance_rows
from coordinator_model.tracker.consumer import following, migrations
from coordinator_model.view import reasons
from coordinator_model.view.emit import Emitter
from coordinator_model.view.members import client_in
from coordinator_model.view.rebalance import Rebalance, RebalanceTrigger
from coordinator_model.view.rows import ref
from coordinator_model.view.view import View

_AT_REST: Final = frozenset({State.EMPTY.value, State.COMPLETING_REBALANCE.value, State.STABLE.value})
"""States in which a member that is added begins a rebalance (GroupMetadataManager.addMemberThenRebalanceOrCompleteJoin)."""
_TROUBLES: Final = frozenset({reasons.SESSION_TIMEOUT, reasons.POLL_TIMEOUT, reasons.SYNC_TIMEOUT})
"""Ends of memberships that are a trouble of the client: a finding tells each."""
SAME_STEP_MS: Final = 100
"""Between the line that a member failed and the line of the rebalance that this begins: one thread writes both."""


def preparing_rebalance(g: Emitter, event: Event) -> None:
    """Stable, CompletingRebalance or Empty → PreparingRebalance, with the coordinator's reason (Kafka 2.1+)."""
    view = g.view
    if view.named is not None:
        phases.found_in(g, *view.named)
    if not event.reason:
        _preparing_without_reason(g, event)
        return
    if named := reasons.state_in(event.reason):
        phases.found_in(g, event.at_ms, State(named))
    cause = reasons.of_coordinator(event.reason)
    view.find_generation(event.generation)
    _removed_by_reason(g, event, cause)
    view.begin_next(event.member_id, cause, event.at_ms)
    trigger = _named_by_reason(g, event, cause)
    if cause == reasons.GROUP_OVER_CAPACITY:
        troubles.over_capacity(g, event)
    elif event.reason == reasons.EXPIRY_THREAD and not trigger.member_id:
        troubles.session_timeout(g, event)
    running, done = view.open, _just_made(view, event, event.generation + 1)
    first = running if running is not None and running.joined_ms < 0 else done
    if first is not None and not first.exact:
        # Requests, or the line about its end, showed the rebalance first: the line confirms it and gives the exact time.
        running = first
        running.started_ms, running.exact, running.cause, running.named = event.at_ms, True, trigger.cause, trigger.member_id
        running.triggers.insert(0, trigger)
        running.note(ref(event))
        rebalance_rows.write_transitions(g, running)
        return
    if running is not None and trigger.cause == reasons.SYNC_TIMEOUT:
        running.waits = True
    if trigger.cause == reasons.ASSIGNMENT_NOT_STORED:
        phases.take_back(g, event.generation)
    signs, cause = [ref(event)], trigger.cause
    phases.open_rebalance(g, event.at_ms, exact=True, old_generation=event.generation, trigger=trigger, cause=cause, signs=signs)
    if cause == reasons.ASSIGNMENT_NOT_STORED:
        rebalance_rows.count_open(g)
    if cause == reasons.MEMBER_JOINED and event.member_id:
        member = view.add(event.member_id, event.at_ms)
        member.instance_id = event.instance_id or member.instance_id


def _removed_by_reason(g: Emitter, event: Event, cause: str) -> None:
    """Ends the memberships that the coordinator's reason says it ended. The line that says so too, if there is one, may be missing."""
    for entry in (event.members or (MemberEntry(event.member_id, event.instance_id, 0, "", None),)) if cause in _TROUBLES else ():
        if entry.member_id and membership.remove(g, entry.member_id, event.at_ms, cause, [ref(event)]) is None:
            ended = g.view.ended_membership(entry.member_id)
            if cause == reasons.SYNC_TIMEOUT and ended is not None and ended.kind == reasons.REPLACED:
                removals.sync_timeout_of_old_id(g, ended, event)


def _preparing_without_reason(g: Emitter, event: Event) -> None:
    """The same up to Kafka 2.0. The line before it may show the cause (a session that expired, since 0.11), or a request afterwards."""
    view = g.view
    running = view.open
    before = view.unclaimed[-1] if view.unclaimed else None
    trigger = before if before is not None and 0 <= event.at_ms - before.at_ms <= SAME_STEP_MS else None
    if running is not None and running.joined_ms < 0 and not running.exact:
        running.started_ms, running.exact = event.at_ms, True
        running.note(ref(event))
        return
    view.find_generation(event.generation)
    cause = trigger.cause if trigger is not None else ""
    phases.open_rebalance(g, event.at_ms, exact=True, old_generation=event.generation, trigger=trigger, cause=cause, signs=[ref(event)])


def _just_made(view: View, event: Event, generation: int) -> Rebalance | None:
    """The rebalance that made this generation a moment before an earlier line of it: the clock stepped back between the two lines."""
    last = next(reversed(view.unfinished()), None)
    if last is None or last.generation != generation or event.at_ms > max(last.joined_ms, last.ended_ms) + SAME_STEP_MS:
        return None
    return last


def stabilized(g: Emitter, event: Event) -> None:
    """PreparingRebalance → CompletingRebalance: the join phase ended with `member_count` members."""
    view = g.view
    done = _just_made(view, event, event.generation)
    if done is not None and done.ended_ms >= 0:
        done.note(ref(event))
        return
    running = view.open
    was_exact = running is not None and running.exact and running.joined_ms < 0
    running = phases.joined(g, event.at_ms, event.generation, exact=was_exact, signs=[ref(event)])
    running.joined_ms = event.at_ms
    view.count(running, event.member_count)
    rebalance_rows.write_transitions(g, running)


def assignment_received(g: Emitter, event: Event) -> None:
    """CompletingRebalance → Stable."""
    view = g.view
    running = view.open
    if running is not None and running.joined_ms < 0 and running.old_generation == event.generation:
        running.note(ref(event))  # it has begun a moment before: the clock stepped back
        return
    if running is None or running.joined_ms < 0 or running.generation != event.generation:
        running = phases.joined(g, event.at_ms, event.generation, exact=False, signs=[])
    running.leader_id = view.leader_id = event.leader_id or running.leader_id
    if running.count_after < 0 <= event.member_count:
        view.count(running, event.member_count)
    phases.ended(g, event.at_ms, signs=[ref(event)])


def group_empty(g: Emitter, event: Event) -> None:
    """PreparingRebalance → Empty."""
    phases.emptied(g, event.at_ms, event.generation, signs=[ref(event)])


def member_left(g: Emitter, event: Event) -> None:
    """A member left by LeaveGroup; the line carries the client's reason (KIP-800)."""
    endings.leave(g, event, event.member_id, event.reason, by_admin=False)


def members_removed(g: Emitter, event: Event) -> None:
    """The coordinator removed members that did not heartbeat, send JoinGroup or (Kafka 2.8+) send SyncGroup in time."""
    cause = _REMOVALS[event.kind]
    for member_id in [entry.member_id for entry in event.members] if event.kind != kinds.MEMBER_FAILED else [event.member_id]:
        ended = membership.remove(g, member_id, event.at_ms, cause, [ref(event)])
        if ended is not None and cause != reasons.JOIN_TIMEOUT:  # such a removal ends a join phase
            phases.add_trigger(g, membership.trigger_of(ended, cause, "", event.at_ms))


def leader_not_rejoined(g: Emitter, event: Event) -> None:
    """The leader is static, did not join again before the rebalance timeout, and keeps its place (maybeElectNewJoinedLeader)."""
    running = g.view.open
    if running is None or running.joined_ms >= 0:
        running = phases.open_rebalance(g, event.at_ms, exact=False, signs=[])
        running.unannounced = True
    running.absent = [event.member_id]
    running.note(ref(event))


def member_id_issued(g: Emitter, event: Event) -> None:
    """MEMBER_ID_REQUIRED: an id was issued; it is no member yet (KIP-394)."""
    _note_state(g, event)
    g.view.issue(event.member_id, event.at_ms)


def member_added(g: Emitter, event: Event) -> None:
    """A member joined; the group rebalances if it does not already."""
    view = g.view
    _note_state(g, event)
    member = view.add(event.member_id, event.at_ms, is_new=True)
    membership.learn(member, event)
    rests = view.open is None or view.open.joined_ms >= 0
    if rests and event.state in _AT_REST:
        client = member.instance_id, member.client_name(), member.client_host
        phases.add_trigger(g, RebalanceTrigger(event.at_ms, reasons.MEMBER_JOINED, event.member_id, *client, sign=ref(event)))


def pending_member_gone(g: Emitter, event: Event) -> None:
    """An issued id was never used."""
    g.view.drop_id(event.member_id)


def static_member_replaced(g: Emitter, event: Event) -> None:
    """A static member rejoined under a new id. Where a request log shows its JoinGroup, that has both ids."""
    old = g.view.members.get(event.member_id)
    if old is not None and old.sessions_seen:
        return
    if event.answer_member_id:
        member = membership.replace(g, event.member_id, event.answer_member_id, event.at_ms, [ref(event)])
        member.instance_id = event.instance_id
    else:
        membership.remove(g, event.member_id, event.at_ms, reasons.REPLACED, [ref(event)])
        g.view.replace_unnamed(event.member_id, event.instance_id, event.at_ms)


def instance_fenced(g: Emitter, event: Event) -> None:
    """Two clients use one group.instance.id. The line names the member that has it now."""
    if event.member_id in g.view.members and event.answer_member_id:  # the line that this one came is missing
        static_member_replaced(g, event)
    refusals.fenced_instance(g, event)


def member_loaded(g: Emitter, event: Event) -> None:
    """A member was read back from __consumer_offsets. The coordinator logs every stored generation: the newest counts."""
    view = g.view
    member = view.members.get(event.member_id)
    if member is not None:
        membership.learn(member, event)
    elif view.state is None and event.generation >= view.generation:
        if event.generation > view.generation:
            view.forget()
            view.generation = event.generation
        membership.learn(view.add(event.member_id, -1), event)


def group_loaded(g: Emitter, event: Event) -> None:
    """A coordinator loaded the group from the log of its partition: Stable if it has members, else Empty."""
    view = g.view
    if view.open is not None and view.open.generation == event.generation >= 0:
        phases.found_in(g, event.at_ms, State.STABLE)  # it was stored
    phases.abandon(g, event.at_ms, [ref(event)])  # the broker restarted amid a rebalance
    phases.read_back(g, event.at_ms, [ref(event)])
    view.loaded_ms = event.at_ms
    # Kafka 0.9 to 2.7 does not give the count; a log that begins late does not name the members.
    unnamed = view.member_count < 0 or not view.complete
    uncounted = view.state not in (None, State.EMPTY, State.DEAD) and view.generation == event.generation > 0 and unnamed
    if event.generation >= 0:
        view.generation = event.generation
    view.load(event.member_count)
    populated = view.member_count > 0 if event.member_count >= 0 else bool(view.members) or uncounted
    phases.loaded(g, event.at_ms, [ref(event)], populated=populated)
    for member in view.members.values():
        member.renewed_ms = event.at_ms


def group_unloaded(g: Emitter, event: Event) -> None:
    """The coordinator gave the group up."""
    phases.abandon(g, event.at_ms, [ref(event)])
    phases.change_state(g, event.at_ms, State.DEAD, reasons.COORDINATOR_MOVED, [ref(event)])
    g.view.unloaded_ms = event.at_ms
    g.view.since_ms = -1  # whoever speaks next is the coordinator


def groups_cleaned(g: Emitter, event: Event) -> None:
    """Expired offsets were removed in the partition of this group alone: an Empty group is removed with its last offset (KIP-211)."""
    if g.view.state is State.EMPTY and event.member_count > 0:
        endings.group_removed(g, event, phases.OFFSETS_EXPIRED)


def group_converted(g: Emitter, event: Event) -> None:
    """Online migration between the classic and the consumer protocol (KIP-848)."""
    if event.state == "classic":
        migrations.become_classic_group(g, event)
    else:
        migrations.become_consumer_group(g, event)


def consumer_group_line(g: Emitter, event: Event) -> None:
    """The first line about a group that shows that it follows the consumer protocol (KIP-848)."""
    migrations.become_consumer_group(g, event)
    following.observe(g, event)


HANDLERS: Final[dict[str, Callable[[Emitter, Event], None]]] = {
    kinds.PREPARING_REBALANCE: preparing_rebalance,
    kinds.STABILIZED: stabilized,
    kinds.ASSIGNMENT_RECEIVED: assignment_received,
    kinds.GROUP_EMPTY: group_empty,
    kinds.MEMBER_FAILED: members_removed,
    kinds.MEMBER_LEFT: member_left,
    kinds.PENDING_MEMBER_LEFT: pending_member_gone,
    kinds.PENDING_MEMBER_EXPIRED: pending_member_gone,
    kinds.MEMBER_ID_ISSUED: member_id_issued,
    kinds.MEMBER_ADDED: member_added,
    kinds.STATIC_MEMBER_REPLACED: static_member_replaced,
    kinds.INSTANCE_FENCED: instance_fenced,
    kinds.MEMBERS_NOT_REJOINED: members_removed,
    kinds.MEMBERS_NOT_SYNCED: members_removed,
    kinds.LEADER_NOT_REJOINED: leader_not_rejoined,
    kinds.MEMBER_LOADED: member_loaded,
    kinds.GROUP_LOADED: group_loaded,
    kinds.GROUP_UNLOADED: group_unloaded,
    kinds.GROUPS_CLEANED: groups_cleaned,
    kinds.GROUP_DEAD: endings.group_removed,
    kinds.GROUPS_DELETED: endings.group_removed,
    kinds.GROUP_CONVERTED: group_converted,
    kinds.CONSUMER_GROUP_LOG: consumer_group_line,
}
"""Other kinds of lines change nothing."""

_REMOVALS: Final = {
    kinds.MEMBER_FAILED: reasons.SESSION_TIMEOUT,
    kinds.MEMBERS_NOT_REJOINED: reasons.JOIN_TIMEOUT,
    kinds.MEMBERS_NOT_SYNCED: reasons.SYNC_TIMEOUT,
}


def _note_state(g: Emitter, event: Event) -> None:
    """Takes the group's state from a line that names it: where no other line showed it, or showed another one."""
    view = g.view
    if event.state not in _AT_REST:
        return
    if view.open is not None and view.open.joined_ms < 0 and event.at_ms <= view.open.started_ms + SAME_STEP_MS:
        return  # that before the rebalance: the clock stepped back
    if view.open is not None:
        view.named = (event.at_ms, State(event.state))
    elif view.state is None and event.state != State.COMPLETING_REBALANCE.value:
        view.state = State(event.state)
        if view.state is State.EMPTY:
            view.members_are_known()


def _named_by_reason(g: Emitter, event: Event, cause: str) -> RebalanceTrigger:
    """The trigger that the coordinator's reason names, with what is known of its member."""
    view, member_id = g.view, event.member_id
    trigger = next((t for t in reversed(view.unclaimed) if t.member_id == member_id and t.member_id), None)
    if trigger is None and not member_id and cause == reasons.MEMBER_LEFT:  # 4.x names no member that was removed by instance id
        converted = reasons.is_conversion(event.reason)  # the departure of the last member of the consumer protocol, also by its silence
        trigger = next((t for t in reversed(view.unclaimed) if converted or t.cause in (reasons.MEMBER_LEFT, reasons.ADMIN_REMOVED)), None)
    if trigger is None and event.reason == reasons.EXPIRY_THREAD:  # the line before it names the member, since 0.11
        before = view.unclaimed[-1:]
        trigger = next((t for t in before if t.cause == cause and event.at_ms - t.at_ms <= SAME_STEP_MS), None)
    if trigger is not None:
        if cause != reasons.MEMBER_LEFT:  # Java writes the client's reason for leaving only on the member's own line
            trigger.cause = cause
        trigger.reason = event.reason
        return trigger
    if member_id in view.members and cause == reasons.MEMBER_REJOINED and member_id == view.leader_id:
        cause = reasons.of_rejoin(reasons.client_reason(event.reason), is_leader=True)
    if cause == reasons.ASSIGNMENT_NOT_STORED:  # the reason names the leader, which did nothing wrong
        return RebalanceTrigger(event.at_ms, cause, reason=event.reason, sign=ref(event))
    instance_id, client_id, client_host = view.identity(member_id)
    if member_id not in view.members and view.ended_membership(member_id) is None:
        client_id = client_in(member_id, event.instance_id)
    return RebalanceTrigger(
        event.at_ms, cause, member_id, event.instance_id or instance_id, client_id, client_host, event.reason, ref(event)
    )
