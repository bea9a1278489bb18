"""What a request and its answer tell of a group: one handler per protocol API.

A line is written when the request is answered. Who asked, and when, is as of its arrival; what the group was, as of the
answer.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from coordinator_model import events as kinds
from coordinator_model.diagnosis import departures, findings, margins
from coordinator_model.errors import Error
from coordinator_model.events import Event, MemberEntry
from coordinator_model.states import State
from coordinator_model.tracker import expiry, membership, phases
from coordinator_model.view import reasons
from coordinator_model.view.emit import Emitter
from coordinator_model.view.rows import ref
from coordinator_model.view.view import Rebalance, RebalanceTrigger

NOT_IN_CHARGE: Final = frozenset(
    {
        Error.COORDINATOR_LOAD_IN_PROGRESS,
        Error.COORDINATOR_NOT_AVAILABLE,
        Error.NOT_COORDINATOR,
        Error.GROUP_AUTHORIZATION_FAILED,
    }
)
"""Answers that say nothing of the group: the broker is not, or not yet, its coordinator, or the client has no say."""

OWN_LEAVE_MS: Final = 10_000
"""A client's last heartbeats and commits can cross its own LeaveGroup: being unknown for so long after it is no fact."""


def heartbeat(g: Emitter, event: Event) -> None:
    """HEARTBEAT: NONE in Stable and CompletingRebalance, REBALANCE_IN_PROGRESS in PreparingRebalance; both renew the session."""
    view = g.view
    if event.error_code in (Error.NONE, Error.REBALANCE_IN_PROGRESS):
        _follow_generation(g, event)
        member = membership.add(g, event.member_id, event.received_ms, event)
        margins.heard(g, member, event)
        membership.alive(member, event)
        if event.received_ms > member.beat_ms:  # two in one millisecond are one, told twice
            member.heartbeats += 1
            member.beat_ms = event.received_ms
        if event.error_code == Error.REBALANCE_IN_PROGRESS:
            _sign_of_rebalance(g, event, event.received_ms)
        elif phases.contradicted(g, event.generation, event.received_ms):
            phases.retract(g)
        elif view.open is None and event.generation == view.generation:
            view.last_ok_ms = max(view.last_ok_ms, event.received_ms)
    else:
        _refused(g, event)


def offset_commit(g: Emitter, event: Event) -> None:
    """OFFSET_COMMIT, TXN_OFFSET_COMMIT: a member's accepted commit renews its session as a heartbeat does."""
    if event.error_code != Error.NONE:
        _refused(g, event)
    elif event.kind == kinds.OFFSET_COMMIT and event.generation >= 0 and event.member_id in g.view.members:
        member = g.view.members[event.member_id]
        membership.alive(member, event)
        member.commit_ms = max(member.commit_ms, event.received_ms)
        membership.learn(member, event)


def offset_fetch(g: Emitter, event: Event) -> None:
    """OFFSET_FETCH: a member asks where to begin, as it starts to work on what it was given. It names no member, its connection does."""
    view = g.view
    member = next((m for m in view.members.values() if event.connection and event.connection in m.connections), None)
    if member is None or view.consumer_protocol or event.error_code != Error.NONE:
        return
    view.fetches = True
    for rebalance in view.closing:
        if rebalance.generation == view.generation and member.member_id in rebalance.synced:
            rebalance.fetched.setdefault(member.member_id, max(event.received_ms, rebalance.synced[member.member_id]))


def join_group(g: Emitter, event: Event) -> None:
    """JOIN_GROUP: answered at once, or parked until the join phase ends."""
    if not event.member_id:
        departures.came_back(g, event)
        departures.was_stalled(g, event)
        _abandon_ids(g, event)
    if event.error_code != Error.NONE:
        _refused_join(g, event)
        return
    view = g.view
    running = view.open
    generation = event.answer_generation
    at_once = running is None and generation == view.generation and view.state is State.STABLE
    if generation < view.generation and not (running is not None and running.joined_ms < 0):
        return  # an answer of a generation that is over
    if at_once:
        # The coordinator logs the assignment with the end of the phase, or before the answers that the phase gave are written.
        running = next((r for r in view.closing if r.generation == generation and event.received_ms <= r.joined_ms), None)
    else:
        running = phases.joined(g, event.at_ms, generation, exact=False, signs=[])
    leader_id = _replace_static(g, event)
    known = event.answer_member_id in view.members
    member = membership.add(g, event.answer_member_id, event.received_ms, event)
    member.sessions_seen = True
    member.last_sign = ref(event)
    view.protocol, view.leader_id = event.protocol or view.protocol, leader_id or view.leader_id
    view.protocol_type = event.protocol_type or view.protocol_type
    offered = tuple((p.name, p.digest) for p in event.protocols)
    topics = next((p.topics for p in event.protocols if p.topics is not None), None) or ()
    if running is not None:
        running.evidence.append(ref(event))
        running.joins[member.member_id] = event.received_ms
        running.protocol, running.leader_id = view.protocol, view.leader_id
        if member.member_id == running.leader_id:
            running.leader_answered_ms = event.at_ms
        owned = {p for protocol in event.protocols for p in protocol.owned}
        if owned:
            running.kept[member.member_id] = tuple(sorted(owned))
        cause = reasons.MEMBER_JOINED
        if known and member.member_id not in running.added:
            cause = reasons.of_rejoin(event.reason, is_leader=member.member_id == event.leader_id)
            if member.topics and topics != member.topics and not reasons.says_why(event.reason):
                cause = reasons.SUBSCRIPTION_CHANGED
        _joined_as_trigger(running, event, cause)
        member.renewed_ms = max(member.renewed_ms, running.joined_ms)  # every session restarts as the phase ends
        if event.members:
            _list_members(g, running, event)
    if known and running is not None and member.topics and topics != member.topics:
        running.resubscribed.append(member.member_id)
    member.protocols, member.topics = offered, topics


def _refused_join(g: Emitter, event: Event) -> None:
    if event.error_code in findings.REFUSALS:
        findings.refused_join(g, event)
    if event.error_code == Error.MEMBER_ID_REQUIRED:
        if event.answer_member_id not in g.view.members:
            g.view.pending[event.answer_member_id] = event.at_ms
    elif event.error_code == Error.GROUP_MAX_SIZE_REACHED and event.member_id in g.view.members:
        # A member that rejoins after others took the last seats is refused and removed (acceptJoiningMember).
        membership.remove(g, event.member_id, event.received_ms, reasons.JOIN_TIMEOUT, [ref(event)])
    else:
        _refused(g, event)


def sync_group(g: Emitter, event: Event) -> None:
    """SYNC_GROUP: NONE once the group is Stable; REBALANCE_IN_PROGRESS when a new join phase overtook it."""
    view = g.view
    for led in (*view.closing, *([view.open] if view.open is not None else ())):
        if led.generation == event.generation and led.leader_id == event.member_id and led.leader_ready_ms < 0:
            led.leader_ready_ms = event.received_ms
    if event.error_code == Error.REBALANCE_IN_PROGRESS:
        _sign_of_rebalance(g, event, event.at_ms)
        return
    if event.error_code != Error.NONE:
        _refused(g, event)
        return
    _follow_generation(g, event)
    if event.generation != view.generation:
        return
    by_leader = len(event.assignments) > 1 or any(a.member_id != event.member_id for a in event.assignments)
    running = view.open
    if running is not None and running.joined_ms >= 0:
        phases.ended(g, event.received_ms if by_leader or event.member_id == view.leader_id else event.at_ms, signs=[ref(event)])
    member = membership.add(g, event.member_id, event.received_ms, event)
    member.renewed_ms = max(member.renewed_ms, event.at_ms)
    member.sessions_seen = True
    member.last_sign = ref(event)
    rebalance = next((r for r in view.closing if r.generation == event.generation and r.outcome == phases.COMPLETED), None)
    if rebalance is not None:
        again = event.member_id in rebalance.synced
        rebalance.synced.setdefault(event.member_id, event.at_ms)
        if by_leader and not rebalance.exact and not again:
            rebalance.ended_ms = max(event.received_ms, rebalance.joined_ms)
        if by_leader:
            rebalance.evidence.append(ref(event))
    for assigned in event.assignments:
        owner = view.members.get(assigned.member_id)
        if owner is not None:
            owner.partitions = assigned.partitions
    whole = by_leader or (rebalance is not None and event.member_id == rebalance.leader_id and len(view.members) == 1)
    if rebalance is not None and whole and all(a.partitions is not None for a in event.assignments):
        rebalance.assigned = {a.member_id: a.partitions or () for a in event.assignments}


def leave_group(g: Emitter, event: Event) -> None:
    """LEAVE_GROUP: each entry that is accepted ends a membership (v3+ names several, by instance id too: KIP-345)."""
    entries = event.members or (MemberEntry(event.member_id, event.instance_id, event.error_code, event.reason, None),)
    for entry in entries:
        if event.error_code or entry.error_code:
            if entry.error_code == Error.UNKNOWN_MEMBER_ID and entry.member_id:
                _refused(g, event._replace(member_id=entry.member_id, error_code=entry.error_code))
            continue
        member_id = entry.member_id or _member_of_instance(g, entry.instance_id)
        if not member_id:
            continue
        if member_id in g.view.pending:
            del g.view.pending[member_id]
            continue
        left(g, event, member_id, entry.reason or event.reason, by_admin=not entry.member_id)


def left(g: Emitter, event: Event, member_id: str, words: str, *, by_admin: bool) -> None:
    """A member left, as its request or the coordinator's line tells; the second of the two adds nothing."""
    view = g.view
    known = view.members.get(member_id)
    words = (known.leaves_because if known is not None else "") if words in reasons.NO_WORDS else words
    cause = reasons.of_leave(words, by_admin=by_admin)
    if known is not None and known.stalled_ms >= 0 and not words and not by_admin:
        cause = reasons.POLL_TIMEOUT
    who = event if event.member_id == member_id else None
    if known is not None and known.instance_id and words not in reasons.OWN_WORDS and cause == reasons.MEMBER_LEFT:
        cause = reasons.ADMIN_REMOVED  # a static member does not leave by itself (KIP-345)
    gone = membership.remove(g, member_id, event.received_ms, membership.END_KINDS[cause], [ref(event)], who, words=words)
    if gone is None:
        return
    phases.add_trigger(g, membership.trigger_of(gone, cause, words, event.received_ms))
    if event.source != "request":
        return
    if view.open is None and view.state in (State.STABLE, State.COMPLETING_REBALANCE):
        phases.open_rebalance(g, event.received_ms, exact=False, signs=[ref(event)])
    elif view.open is not None and view.open.joined_ms >= 0:
        trigger = view.open.triggers.pop()
        phases.open_rebalance(g, event.received_ms, exact=False, trigger=trigger, signs=[ref(event)])
    if not view.logged:
        expiry.note_vacant(g, event.received_ms)


def delete_groups(g: Emitter, event: Event) -> None:
    """DELETE_GROUPS: an Empty group becomes Dead."""
    if event.error_code == Error.NONE:
        group_removed(g, event)


def group_removed(g: Emitter, event: Event, trigger: str = phases.GROUP_REMOVED) -> None:
    """The group is gone; one of the same name starts again at generation 1."""
    view = g.view
    if view.open is not None and view.open.vacant_ms >= 0:  # only an empty group can be removed
        phases.emptied(g, view.open.vacant_ms, max(view.generation, 0) + 1, signs=[])
    phases.abandon(g, event.at_ms, [ref(event)])
    phases.change_state(g, event.at_ms, State.DEAD, trigger, [ref(event)])
    for member_id in list(view.members):
        membership.remove(g, member_id, event.at_ms, membership.GROUP_GONE, [ref(event)])
    view.generation, view.member_count, view.complete = 0, 0, True
    view.pending.clear()


def consumer_group_heartbeat(g: Emitter, event: Event) -> None:
    """CONSUMER_GROUP_HEARTBEAT: an accepted one proves a KIP-848 group, where the classic phases do not exist."""
    if event.error_code == Error.NONE:
        became_consumer_group(g, event)


def became_consumer_group(g: Emitter, event: Event) -> None:
    """From here the group follows the consumer protocol; what the classic one had begun ends without a result."""
    view = g.view
    if view.consumer_protocol:
        return
    view.consumer_protocol = True
    phases.abandon(g, event.received_ms, [ref(event)])
    view.members.clear()
    view.state = None
    view.complete = False


HANDLERS: Final[dict[str, Callable[[Emitter, Event], None]]] = {
    kinds.HEARTBEAT: heartbeat,
    kinds.OFFSET_COMMIT: offset_commit,
    kinds.TXN_OFFSET_COMMIT: offset_commit,
    kinds.JOIN_GROUP: join_group,
    kinds.SYNC_GROUP: sync_group,
    kinds.LEAVE_GROUP: leave_group,
    kinds.DELETE_GROUPS: delete_groups,
    kinds.CONSUMER_GROUP_HEARTBEAT: consumer_group_heartbeat,
}


def authoritative(event: Event) -> bool:
    """Whether the answer comes from the group's coordinator."""
    if event.kind in (kinds.OFFSET_COMMIT, kinds.TXN_OFFSET_COMMIT) and event.generation < 0:
        return False  # offsets of a simple consumer: no group behind them
    return event.error_code not in NOT_IN_CHARGE and event.kind != kinds.CONSUMER_GROUP_HEARTBEAT


def _follow_generation(g: Emitter, event: Event) -> None:
    """An accepted generation that we have not seen made: the log began late, or has a hole."""
    view = g.view
    if event.generation > view.generation or view.state in (None, State.EMPTY, State.DEAD):
        if view.open is not None:
            phases.abandon(g, event.received_ms, [ref(event)])
        view.complete = False
        view.generation = event.generation
        view.state = State.STABLE


def _sign_of_rebalance(g: Emitter, event: Event, at_ms: int) -> None:
    """An answer REBALANCE_IN_PROGRESS: the group was in its join phase then."""
    view = g.view
    running = view.open
    if running is not None and running.joined_ms >= 0:
        if event.generation != running.generation or running.exact:
            return  # told to a member of the generation before
        running = None
    if running is None:
        if (view.state is not State.STABLE and view.open is None) or event.generation != view.generation:
            return
        running = phases.open_rebalance(g, at_ms, exact=False, signs=[ref(event)])
    if running.first_sign_ms < 0 or at_ms < running.first_sign_ms:
        running.first_sign_ms = at_ms


def _joined_as_trigger(running: Rebalance, event: Event, cause: str) -> None:
    """A parked JoinGroup may be what started the phase: the earliest of all triggers is taken to be."""
    if running.exact:
        return
    trigger = RebalanceTrigger(
        event.received_ms,
        cause,
        event.answer_member_id,
        event.instance_id,
        event.client_id,
        event.client_host,
        event.reason,
        ref(event),
    )
    running.triggers.append(trigger)
    running.triggers.sort(key=lambda t: (t.at_ms, t.cause, t.member_id))
    del running.triggers[phases.TRIGGERS_KEPT :]


def _replace_static(g: Emitter, event: Event) -> str:
    """A static member came back under a new id and takes the old one's place (KIP-345, replaceStaticMember). Returns who leads."""
    if not event.instance_id or event.member_id:
        return event.leader_id
    old_id = _member_of_instance(g, event.instance_id)
    if not old_id or old_id == event.answer_member_id:
        return event.leader_id
    old = g.view.members[old_id]
    membership.remove(g, old_id, event.received_ms, membership.REPLACED, [ref(event)])
    new = membership.add(g, event.answer_member_id, event.received_ms, event)
    new.partitions, new.topics, new.protocols = old.partitions, old.topics, old.protocols
    new.renewed_ms = event.received_ms
    if event.leader_id != old_id:
        return event.leader_id
    return event.answer_member_id  # to an older client its old id is named, so that it does not compute an assignment


def _abandon_ids(g: Emitter, event: Event) -> None:
    """A client that asks for a new id has given up the one that it had: when that session ends, nobody has fallen silent."""
    for member in g.view.members.values():
        if event.connection in member.connections and member.instance_id == event.instance_id:
            member.abandoned = True


def _member_of_instance(g: Emitter, instance_id: str) -> str:
    return next((m.member_id for m in g.view.members.values() if instance_id and m.instance_id == instance_id), "")


def _list_members(g: Emitter, running: Rebalance, event: Event) -> None:
    """The leader's answer names every member of the new generation: who is not in it was removed before."""
    view = g.view
    listed = {m.member_id: m for m in event.members}
    instances = {m.instance_id for m in event.members if m.instance_id}
    unsynced_ms = _sync_expired_ms(g, running)
    for member in sorted(view.members.values(), key=lambda m: m.member_id):
        if member.member_id in listed:
            continue
        deadline = member.deadline_ms()
        signs = [ref(event)]
        if member.instance_id in instances:
            membership.remove(g, member.member_id, running.joined_ms, membership.REPLACED, signs)
            continue
        at_ms, cause = running.joined_ms, reasons.JOIN_TIMEOUT
        if 0 <= deadline <= running.joined_ms + expiry.TIMER_SLACK_MS:
            at_ms, cause = min(deadline, running.joined_ms), reasons.SESSION_TIMEOUT
        elif unsynced_ms >= 0:
            at_ms, cause = unsynced_ms, reasons.SYNC_TIMEOUT
        abandoned = member.abandoned
        gone = membership.remove(g, member.member_id, at_ms, cause, signs)
        if gone is not None and cause == reasons.SESSION_TIMEOUT and not running.exact and not abandoned:
            running.triggers.append(membership.trigger_of(gone, cause, "", at_ms))
    for entry in event.members:
        member = membership.add(g, entry.member_id, running.joined_ms)
        member.instance_id = entry.instance_id or member.instance_id
        member.renewed_ms = max(member.renewed_ms, running.joined_ms)
    running.listed = True
    running.count_after = view.member_count = len(listed)
    view.complete = True


def _sync_expired_ms(g: Emitter, running: Rebalance) -> int:
    """When the coordinator removed the members that had joined the generation before and did not sync; -1 if it did not.

    The rebalance timeout after that generation's join phase everybody was sent back into another one (expirePendingSync),
    which did not last: nobody was waited for.
    """
    view = g.view
    before = next((r for r in reversed(view.closing) if r.outcome == phases.SUPERSEDED and r.generation == running.old_generation), None)
    limit = max((m.rebalance_timeout_ms for m in view.members.values()), default=-1)
    if before is None or before.joined_ms < 0 or limit < 0:
        return -1
    started_ms = running.first_sign_ms if running.first_sign_ms >= 0 else running.started_ms
    due_ms = before.joined_ms + limit
    expired = due_ms <= started_ms <= due_ms + expiry.TIMER_SLACK_MS and running.joined_ms - started_ms < limit
    return due_ms if expired else -1


def _refused(g: Emitter, event: Event) -> None:
    """An error answer: a fact about the sender.

    A commit that is answered REBALANCE_IN_PROGRESS is none: the member has joined, and not got its assignment yet.
    """
    gone = membership.recall(g, event.member_id) if event.member_id else membership.recall_connection(g, event.connection)
    if gone is not None and not event.member_id and event.kind == kinds.HEARTBEAT:
        event = event._replace(member_id=gone.member_id)
    removed = gone.kind if gone is not None else ""
    if event.error_code == Error.FENCED_INSTANCE_ID:
        findings.fenced_instance(g, event)
    elif event.error_code == Error.ILLEGAL_GENERATION:
        if event.kind in (kinds.OFFSET_COMMIT, kinds.TXN_OFFSET_COMMIT) and event.member_id:
            findings.zombie_commit(g, event, gone)
        else:
            findings.illegal_generation(g, event)
    elif event.error_code == Error.UNKNOWN_MEMBER_ID and (event.member_id or gone is not None):
        if removed == membership.LEFT and gone is not None and event.received_ms - gone.at_ms < OWN_LEAVE_MS:
            return
        if event.kind in (kinds.OFFSET_COMMIT, kinds.TXN_OFFSET_COMMIT):
            findings.zombie_commit(g, event, gone)
        else:
            findings.unknown_member(g, event, gone)
