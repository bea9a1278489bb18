"""What a request and its answer show of a group: one handler for each API.

A line is written when the request is answered. The sender and its time are those of the request's arrival, the state of the group is
that of the answer.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from coordinator_model import events as kinds
from coordinator_model.diagnosis import consumer_findings, departures, margins, refusals, silences
from coordinator_model.errors import Error
from coordinator_model.events import Assignment, Event
from coordinator_model.states import State
from coordinator_model.tracker import endings, failed_writes, holes, membership, phases, rebalance_rows
from coordinator_model.tracker.consumer import following, migrations
from coordinator_model.tracker.lines.join_requests import join_group
from coordinator_model.view import reasons
from coordinator_model.view.emit import Emitter
from coordinator_model.view.outcomes import COMPLETED
from coordinator_model.view.rebalance import Rebalance, RebalanceTrigger
from coordinator_model.view.rows import ref
from coordinator_model.view.view import View


def heartbeat(g: Emitter, event: Event) -> None:
    """HEARTBEAT: answered NONE in Stable and CompletingRebalance, REBALANCE_IN_PROGRESS in PreparingRebalance; both renew the session."""
    view = g.view
    if event.error_code in (Error.NONE, Error.REBALANCE_IN_PROGRESS):
        if membership.has_left(view, event.member_id, event.received_ms):
            return
        _follow_generation(g, event)
        member = view.add(event.member_id, event.received_ms, came=False)
        membership.learn(member, event)
        margins.check_heartbeat(g, member, event)
        if view.open is not None:
            silences.note(member, event.received_ms)
        membership.renew(member, event)
        membership.note_answer(member, event)
        if event.received_ms > member.beat_ms:  # two in one millisecond are copies of one line
            member.take_beats(event.received_ms, event.received_ms, 1)
        if event.error_code == Error.REBALANCE_IN_PROGRESS:
            member.called_ms = max(member.called_ms, event.received_ms)
            _sign_of_rebalance(g, event, event.received_ms)
        elif phases.contradicted(g, event.generation, event.received_ms):
            phases.retract(g)
        elif view.open is None and event.generation == view.generation:
            view.last_ok_ms = max(view.last_ok_ms, event.received_ms)
    else:
        refusals.judge(g, event)


def offset_commit(g: Emitter, event: Event) -> None:
    """OFFSET_COMMIT, TXN_OFFSET_COMMIT: an accepted commit renews the member's session as a heartbeat does."""
    if event.member_id in g.view.members:
        membership.note_answer(g.view.members[event.member_id], event)
    if event.error_code != Error.NONE:
        failed_writes.take(g, event)
        departures.on_late_commit(g, event)
        refusals.judge(g, event)
    elif event.kind == kinds.OFFSET_COMMIT and event.generation >= 0 and event.member_id in g.view.members:
        member = g.view.members[event.member_id]
        membership.renew(member, event)
        member.commit_ms = max(member.commit_ms, event.received_ms)
        membership.learn(member, event)


def offset_fetch(g: Emitter, event: Event) -> None:
    """OFFSET_FETCH: a member asks for the offsets of its assignment, before it starts. Only the connection shows which member it is."""
    view = g.view
    member = next((m for m in view.members.values() if event.connection and event.connection in m.connections), None)
    if member is None or view.consumer_protocol or event.error_code != Error.NONE:
        return
    view.fetches = True
    for rebalance in view.closing:
        if rebalance.generation == view.generation and member.member_id in rebalance.synced:
            rebalance.fetched.setdefault(member.member_id, max(event.received_ms, rebalance.synced[member.member_id]))


def sync_group(g: Emitter, event: Event) -> None:
    """SYNC_GROUP: answered NONE once the group is Stable, REBALANCE_IN_PROGRESS when a new join phase came first."""
    view = g.view
    for rebalance in view.unfinished():
        if rebalance.generation == event.generation and rebalance.leader_id == event.member_id and rebalance.leader_ready_ms < 0:
            rebalance.leader_ready_ms = event.received_ms
    if failed_writes.not_stored(g, event):
        trigger = RebalanceTrigger(event.at_ms, reasons.ASSIGNMENT_NOT_STORED, sign=ref(event), error_code=event.error_code)
        phases.not_stored(g, trigger, event.generation)
        return
    if event.error_code == Error.REBALANCE_IN_PROGRESS:
        _sign_of_rebalance(g, event, event.at_ms)
        return
    if event.error_code != Error.NONE:
        refusals.judge(g, event)
        return
    _follow_generation(g, event)
    if event.generation != view.generation:
        return
    by_leader = len(event.assignments) > 1 or any(a.member_id != event.member_id for a in event.assignments)
    running = view.open
    if running is not None and running.joined_ms >= 0:
        phases.ended(g, event.received_ms if by_leader or event.member_id == view.leader_id else event.at_ms, signs=[ref(event)])
    if membership.has_left(view, event.member_id, event.received_ms):
        return
    member = view.add(event.member_id, event.received_ms, came=False)
    membership.learn(member, event)
    membership.note_gap(member, event.received_ms)
    member.renewed_ms = max(member.renewed_ms, event.at_ms)
    membership.hear(member, event, event.at_ms)
    _take_assignments(g, event, by_leader=by_leader)


def _take_assignments(g: Emitter, event: Event, *, by_leader: bool) -> None:
    """Takes the assignments from an accepted SyncGroup: all of them from the leader's request, its own from the answer to any member."""
    view = g.view
    completed = next((r for r in view.closing if r.generation == event.generation and r.outcome == COMPLETED), None)
    if completed is not None:
        phases.prove(view, completed)
        rebalance_rows.write_transitions(g, completed)
        again = event.member_id in completed.synced
        completed.synced.setdefault(event.member_id, event.at_ms)
        if by_leader and not completed.exact and not again:
            completed.ended_ms = max(event.received_ms, completed.joined_ms)
        if by_leader:
            completed.note(ref(event))
    held = {assigned.member_id: _held(view, completed, assigned) for assigned in event.assignments}
    for member_id, partitions in held.items():
        if (owner := view.members.get(member_id)) is not None:
            owner.partitions = partitions
    whole = by_leader or (completed is not None and event.member_id == completed.leader_id and len(view.members) == 1)
    if completed is not None and whole and None not in held.values():
        completed.assigned = {member_id: partitions or () for member_id, partitions in held.items()}
        completed.config_offset = max((a.config_offset for a in event.assignments), default=kinds.NO_CONFIG)
        completed.delay_ms = max((a.delay_ms for a in event.assignments), default=0)


def _held(view: View, completed: Rebalance | None, assigned: Assignment) -> tuple[str, ...] | None:
    """What a member has with an assignment; None: not known. A worker of Connect is told of changes alone, to what its JoinGroup named."""
    if assigned.revoked is None or assigned.partitions is None:
        return assigned.partitions
    member_id = assigned.member_id
    if completed is not None and member_id in completed.joins:
        kept = completed.kept.get(member_id, ())
    elif (owner := view.members.get(member_id)) is None or owner.partitions is None:
        return None
    else:
        kept = owner.partitions
    return tuple(sorted({*kept, *assigned.partitions}.difference(assigned.revoked)))


def delete_groups(g: Emitter, event: Event) -> None:
    """DELETE_GROUPS: an Empty group becomes Dead."""
    if event.error_code == Error.NONE:
        endings.group_removed(g, event)


def consumer_group_heartbeat(g: Emitter, event: Event) -> None:
    """CONSUMER_GROUP_HEARTBEAT: an accepted one proves a KIP-848 group, unless it came before the group became classic."""
    if event.error_code == Error.UNSUPPORTED_VERSION:
        consumer_findings.protocol_refused(g, event)
    if event.error_code == Error.NONE and event.received_ms > g.view.converted_ms:
        migrations.become_consumer_group(g, event)
        following.observe(g, event)


def heartbeat_of_others(g: Emitter, event: Event) -> None:
    """SHARE_GROUP_HEARTBEAT, STREAMS_GROUP_HEARTBEAT: the coordinator's log tells of the group; before its first line nothing follows."""


HANDLERS: Final[dict[str, Callable[[Emitter, Event], None]]] = {
    kinds.HEARTBEAT: heartbeat,
    kinds.OFFSET_COMMIT: offset_commit,
    kinds.TXN_OFFSET_COMMIT: offset_commit,
    kinds.JOIN_GROUP: join_group,
    kinds.SYNC_GROUP: sync_group,
    kinds.LEAVE_GROUP: endings.leave_group,
    kinds.DELETE_GROUPS: delete_groups,
    kinds.CONSUMER_GROUP_HEARTBEAT: consumer_group_heartbeat,
    **dict.fromkeys(kinds.HEARTBEATS_OF_OTHERS, heartbeat_of_others),
}


def authoritative(event: Event) -> bool:
    """Whether the answer comes from the group's coordinator."""
    if event.kind in (kinds.OFFSET_COMMIT, kinds.TXN_OFFSET_COMMIT) and event.generation < 0:
        return False  # offsets of a simple consumer, which has no group
    return event.error_code not in failed_writes.NOT_IN_CHARGE and event.kind != kinds.CONSUMER_GROUP_HEARTBEAT


def _follow_generation(g: Emitter, event: Event) -> None:
    """Follows an accepted generation whose start the log does not show: the log began late, or has a hole.

    A request that had arrived before the group was unloaded may be answered after that. It says nothing of the group since then.
    """
    view = g.view
    if event.received_ms <= view.unloaded_ms:
        return
    if event.generation > view.generation or view.state in (None, State.EMPTY, State.DEAD):
        holes.note(g, event)
        running = view.open
        if running is not None:
            phases.abandon(g, event.received_ms, [ref(event)])
            phases.end_unseen(g, running, State.STABLE)
        view.doubt()
        view.make_generation(event.received_ms, event.generation)
        view.state = State.STABLE


def _sign_of_rebalance(g: Emitter, event: Event, at_ms: int) -> None:
    """Takes an answer REBALANCE_IN_PROGRESS: the group was in its join phase at that time."""
    view = g.view
    running = view.open
    if running is not None and running.joined_ms >= 0:
        if event.generation != running.generation or running.exact:
            return  # the answer to a member of the generation before
        running = None
    if running is None:
        if (view.state is not State.STABLE and view.open is None) or event.generation != view.generation:
            return
        running = phases.open_rebalance(g, at_ms, exact=False, signs=[ref(event)])
    if running.first_sign_ms < 0 or at_ms < running.first_sign_ms:
        running.first_sign_ms = at_ms
    running.called[event.member_id] = min(running.called.get(event.member_id, event.at_ms), event.at_ms)
