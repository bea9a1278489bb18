"""What the coordinator's own log tells of a group: one handler per kind of line. Its times are exact."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from coordinator_model import events as kinds
from coordinator_model.diagnosis import refusals
from coordinator_model.events import Event, MemberEntry
from coordinator_model.states import State
from coordinator_model.tracker import endings, membership, phases, rebalance_rows
from coordinator_model.view import reasons
from coordinator_model.view.emit import Emitter
from coordinator_model.view.rows import ref
from coordinator_model.view.view import RebalanceTrigger, client_in


def preparing_rebalance(g: Emitter, event: Event) -> None:
    """Stable, CompletingRebalance or Empty → PreparingRebalance, with the coordinator's reason."""
    view = g.view
    cause = reasons.of_coordinator(event.reason)
    trigger = _named_by_reason(g, event, cause)
    running = view.open
    if running is not None and running.joined_ms < 0 and not running.exact:
        # Requests showed it first: the line confirms it and gives the exact time.
        running.started_ms, running.exact, running.cause, running.named = event.at_ms, True, trigger.cause, trigger.member_id
        running.triggers.insert(0, trigger)
        running.evidence.append(ref(event))
        return
    view.generation = max(view.generation, event.generation)
    if trigger.cause == reasons.SYNC_TIMEOUT:
        for entry in event.members or (MemberEntry(event.member_id, "", 0, "", None),):
            if entry.member_id in view.members:  # no line of its own says that it went
                membership.remove(g, entry.member_id, event.at_ms, reasons.SYNC_TIMEOUT, [ref(event)])
    phases.open_rebalance(
        g,
        event.at_ms,
        exact=True,
        old_generation=event.generation,
        trigger=trigger,
        cause=trigger.cause,
        signs=[ref(event)],
    )
    if trigger.cause == reasons.MEMBER_JOINED and event.member_id:
        member = membership.add(g, event.member_id, event.at_ms)
        member.instance_id = event.instance_id or member.instance_id


def stabilized(g: Emitter, event: Event) -> None:
    """PreparingRebalance → CompletingRebalance: the join phase ended with `member_count` members."""
    view = g.view
    running = view.open
    was_exact = running is not None and running.exact and running.joined_ms < 0
    running = phases.joined(g, event.at_ms, event.generation, exact=was_exact, signs=[ref(event)])
    running.joined_ms = event.at_ms
    view.member_count = running.count_after = event.member_count
    for member_id, at_ms in list(view.pending.items()):
        # Scala brokers do not log at INFO that a pending id joined: ids not used by now stay out if the count says so.
        if len(view.members) < event.member_count:
            membership.add(g, member_id, at_ms)
    view.complete = len(view.members) == event.member_count
    if 0 <= event.member_count < len(view.members):  # Kafka 1.0 to 2.7 does not give the count
        view.members = {m: v for m, v in view.members.items() if v.sessions_seen}
    rebalance_rows.write_transitions(g, running)


def assignment_received(g: Emitter, event: Event) -> None:
    """CompletingRebalance → Stable."""
    view = g.view
    running = view.open
    if running is None or running.joined_ms < 0 or running.generation != event.generation:
        running = phases.joined(g, event.at_ms, event.generation, exact=False, signs=[])
    running.leader_id = view.leader_id = event.leader_id or running.leader_id
    if event.member_count >= 0:
        view.member_count = event.member_count
    phases.ended(g, event.at_ms, signs=[ref(event)])


def group_empty(g: Emitter, event: Event) -> None:
    """PreparingRebalance → Empty."""
    phases.emptied(g, event.at_ms, event.generation, signs=[ref(event)])


def member_failed(g: Emitter, event: Event) -> None:
    """The session of a member ran out (onExpireHeartbeat)."""
    _removed(g, event, event.member_id, reasons.SESSION_TIMEOUT)


def member_left(g: Emitter, event: Event) -> None:
    """A member left by LeaveGroup; the line carries the client's reason (KIP-800)."""
    endings.member_left(g, event, event.member_id, event.reason, by_admin=False)


def members_not_rejoined(g: Emitter, event: Event) -> None:
    """Dynamic members that did not send JoinGroup before the join timer ran out."""
    for entry in event.members:
        _removed(g, event, entry.member_id, reasons.JOIN_TIMEOUT)


def members_not_synced(g: Emitter, event: Event) -> None:
    """Members that did not send SyncGroup in time (Kafka 2.8+)."""
    for entry in event.members:
        _removed(g, event, entry.member_id, reasons.SYNC_TIMEOUT)


def member_id_issued(g: Emitter, event: Event) -> None:
    """MEMBER_ID_REQUIRED: an id handed out, not a member yet (KIP-394)."""
    _note_state(g, event)
    if event.member_id not in g.view.members:
        g.view.pending[event.member_id] = event.at_ms


def member_added(g: Emitter, event: Event) -> None:
    """A member joined; the group rebalances if it does not already."""
    view = g.view
    _note_state(g, event)
    if view.open is None and event.member_id not in view.members:
        view.arrived.append(event.member_id)
    membership.add(g, event.member_id, event.at_ms, event)


def pending_member_gone(g: Emitter, event: Event) -> None:
    """An id that was handed out and never used."""
    g.view.pending.pop(event.member_id, None)


def static_member_replaced(g: Emitter, event: Event) -> None:
    """A static member came back under a new id. Where a request log shows its JoinGroup, that tells both ids."""
    old = g.view.members.get(event.member_id)
    if old is not None and not old.sessions_seen:
        membership.remove(g, event.member_id, event.at_ms, reasons.REPLACED, [ref(event)])
        if event.answer_member_id:
            membership.add(g, event.answer_member_id, event.at_ms).instance_id = event.instance_id
    elif old is None:
        membership.remove(g, event.member_id, event.at_ms, reasons.REPLACED, [ref(event)])


def instance_fenced(g: Emitter, event: Event) -> None:
    """A request with the instance id of another member."""
    refusals.fenced_instance(g, event)


def member_loaded(g: Emitter, event: Event) -> None:
    """A member read back from __consumer_offsets. Every stored generation is logged: the newest counts."""
    view = g.view
    member = view.members.get(event.member_id)
    if member is not None:
        membership.learn(member, event)
    elif view.state is None and event.generation >= view.generation:
        if event.generation > view.generation:
            view.members.clear()
            view.generation = event.generation
        membership.learn(membership.add(g, event.member_id, -1), event)


def group_loaded(g: Emitter, event: Event) -> None:
    """A coordinator took the group over from the log of its partition: Stable if it has members, else Empty."""
    view = g.view
    if event.generation >= 0:
        view.generation = event.generation
    if event.member_count >= 0:
        view.member_count = event.member_count
        if event.member_count == 0:
            view.members.clear()
    populated = view.member_count > 0 if event.member_count >= 0 else bool(view.members)
    phases.change_state(g, event.at_ms, State.STABLE if populated else State.EMPTY, phases.GROUP_LOADED, [ref(event)])
    for member in view.members.values():
        member.renewed_ms = event.at_ms


def group_unloaded(g: Emitter, event: Event) -> None:
    """The coordinator gave the group up."""
    phases.abandon(g, event.at_ms, [ref(event)])
    phases.change_state(g, event.at_ms, State.DEAD, reasons.COORDINATOR_MOVED, [ref(event)])


def groups_cleaned(g: Emitter, event: Event) -> None:
    """Expired offsets were removed in the partition of this group alone: an Empty one goes with the last of them (KIP-211)."""
    if g.view.state is State.EMPTY and event.member_count > 0:
        endings.group_removed(g, event, phases.OFFSETS_EXPIRED)


def group_converted(g: Emitter, event: Event) -> None:
    """Online migration between the classic and the consumer protocol (KIP-848)."""
    if event.state == "classic":
        g.view.consumer_protocol = False
    else:
        endings.became_consumer_group(g, event)


def consumer_group_log(g: Emitter, event: Event) -> None:
    """A line of a KIP-848 group."""
    endings.became_consumer_group(g, event)


HANDLERS: Final[dict[str, Callable[[Emitter, Event], None]]] = {
    kinds.PREPARING_REBALANCE: preparing_rebalance,
    kinds.STABILIZED: stabilized,
    kinds.ASSIGNMENT_RECEIVED: assignment_received,
    kinds.GROUP_EMPTY: group_empty,
    kinds.MEMBER_FAILED: member_failed,
    kinds.MEMBER_LEFT: member_left,
    kinds.PENDING_MEMBER_LEFT: pending_member_gone,
    kinds.PENDING_MEMBER_EXPIRED: pending_member_gone,
    kinds.MEMBER_ID_ISSUED: member_id_issued,
    kinds.MEMBER_ADDED: member_added,
    kinds.STATIC_MEMBER_REPLACED: static_member_replaced,
    kinds.INSTANCE_FENCED: instance_fenced,
    kinds.MEMBERS_NOT_REJOINED: members_not_rejoined,
    kinds.MEMBERS_NOT_SYNCED: members_not_synced,
    kinds.MEMBER_LOADED: member_loaded,
    kinds.GROUP_LOADED: group_loaded,
    kinds.GROUP_UNLOADED: group_unloaded,
    kinds.GROUPS_CLEANED: groups_cleaned,
    kinds.GROUP_DEAD: endings.group_removed,
    kinds.GROUPS_DELETED: endings.group_removed,
    kinds.GROUP_CONVERTED: group_converted,
    kinds.CONSUMER_GROUP_LOG: consumer_group_log,
}
"""Lines without a handler change nothing."""


def _note_state(g: Emitter, event: Event) -> None:
    """The line names the state of the group: proof where nothing else told it."""
    view = g.view
    if view.state is None and event.state in (State.EMPTY.value, State.STABLE.value):
        view.state = State(event.state)
        view.complete = view.state is State.EMPTY


def _removed(g: Emitter, event: Event, member_id: str, cause: str) -> None:
    gone = membership.remove(g, member_id, event.at_ms, cause, [ref(event)])
    if gone is not None:
        phases.add_trigger(g, membership.trigger_of(gone, cause, "", event.at_ms))


def _named_by_reason(g: Emitter, event: Event, cause: str) -> RebalanceTrigger:
    """The trigger that the reason text names, with what is known of its member."""
    view = g.view
    known = next((t for t in reversed(view.unclaimed) if t.member_id == event.member_id and t.member_id), None)
    if known is None and not event.member_id and cause == reasons.MEMBER_LEFT:  # 4.x names nobody who was removed by instance id
        known = next((t for t in reversed(view.unclaimed) if t.cause in (reasons.MEMBER_LEFT, reasons.ADMIN_REMOVED)), None)
    words = reasons.client_reason(event.reason)
    if known is not None:
        # Java writes the client's reason for leaving on the member's own line only.
        if cause == reasons.MEMBER_LEFT:
            cause = known.cause
        known.cause = cause
        known.reason = event.reason
        return known
    member = view.members.get(event.member_id)
    gone = view.ended_membership(event.member_id)
    if member is not None and cause == reasons.MEMBER_REJOINED and event.member_id == view.leader_id:
        cause = reasons.of_rejoin(words, is_leader=True)
    who = member or gone
    return RebalanceTrigger(
        event.at_ms,
        cause,
        event.member_id,
        event.instance_id or (who.instance_id if who else ""),
        member.client_name() if member else gone.client_id if gone else client_in(event.member_id, event.instance_id),
        who.client_host if who else "",
        event.reason,
        ref(event),
    )
