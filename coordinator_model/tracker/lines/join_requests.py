"""JOIN_GROUP: answered at once, or parked until the join phase ends."""

from __future__ import annotations

from coordinator_model.diagnosis import departures, refusals, silences
from coordinator_model.errors import Error
from coordinator_model.events import PROMPT_MS, Event
from coordinator_model.states import State
from coordinator_model.tracker import expiry, holes, membership, phases, rebalance_rows
from coordinator_model.view import reasons
from coordinator_model.view.emit import Emitter
from coordinator_model.view.members import ObservedMember
from coordinator_model.view.outcomes import SUPERSEDED
from coordinator_model.view.rebalance import Rebalance, RebalanceTrigger
from coordinator_model.view.rows import ref


def join_group(g: Emitter, event: Event) -> None:
    """A JoinGroup and its answer."""
    if not event.member_id:
        departures.on_join_without_id(g, event)
        for member in g.view.members.values():
            if event.connection in member.connections and member.instance_id == event.instance_id:
                member.abandoned = True  # the client gave this id up: the end of that session is no failure
    if event.error_code != Error.NONE:
        _refused_join(g, event)
        return
    view = g.view
    holes.note(g, event)
    if event.answer_generation == view.generation + 2:
        expiry.claim_all(g, event.received_ms)
    running = view.open
    generation = event.answer_generation
    overtaken = running is not None and running.joined_ms < 0 and generation == running.old_generation
    at_once = running is None and (
        (generation == view.generation and view.state is State.STABLE) or (view.state is None and _may_have_been_replaced(event))
    )
    if generation < view.generation and not (running is not None and running.joined_ms < 0):
        return  # an answer of a generation that is over
    if at_once or overtaken:
        # The coordinator logs what follows before the answers that the phase gave are written.
        running = next((r for r in view.closing if r.generation == generation and event.received_ms <= r.joined_ms), None)
    else:
        running = phases.joined(g, event.at_ms, generation, exact=False, signs=[])
    if event.answer_member_id not in view.members and view.ended_membership(event.answer_member_id) is not None:
        if running is not None:  # it has left since
            running.joins[event.answer_member_id] = event.received_ms
            running.note(ref(event))
        return
    leader_id = _replace_static(g, event)
    known = view.members.get(event.answer_member_id)
    former = known is not None and not (known.found and known.alive_ms < 0)  # else only the list of all members has shown it
    came = former or _came(g, running, event, is_listed=known is not None)
    member = view.add(event.answer_member_id, event.received_ms, came=came, of=running)
    membership.note_gap(member, event.received_ms, joins=True)
    membership.learn(member, event)
    member.vouched = True
    silences.note(member, event.received_ms)
    membership.hear(member, event, event.at_ms)
    view.protocol, view.leader_id = event.protocol or view.protocol, leader_id or view.leader_id
    view.protocol_type = event.protocol_type or view.protocol_type
    topics = next((p.topics for p in event.protocols if p.topics is not None), None)
    resubscribed = former and topics is not None and bool(member.topics) and topics != member.topics
    if running is not None:
        cause = _cause(running, event, former=former, resubscribed=resubscribed) if came else reasons.UNKNOWN
        _add_join(g, running, event, member, cause)
        if resubscribed:
            running.resubscribed.append(member.member_id)
    member.protocols, member.topics = tuple((p.name, p.digest) for p in event.protocols), member.topics if topics is None else topics


def _refused_join(g: Emitter, event: Event) -> None:
    if event.error_code in refusals.REFUSED_JOINS:
        refusals.refused_join(g, event)
    if event.error_code == Error.MEMBER_ID_REQUIRED:
        g.view.issue(event.answer_member_id, event.at_ms)
    elif event.error_code == Error.GROUP_MAX_SIZE_REACHED and event.member_id in g.view.members:
        # A member that rejoins after others took the last seats is refused and removed (acceptJoiningMember).
        membership.remove(g, event.member_id, event.received_ms, reasons.GROUP_OVER_CAPACITY, [ref(event)])
    else:
        refusals.judge(g, event)


def _replace_static(g: Emitter, event: Event) -> str:
    """Lets a static member that rejoins under a new id take its old place (KIP-345, replaceStaticMember). Returns the leader's id."""
    if not event.instance_id or event.member_id:
        return event.leader_id
    old_id = g.view.member_of_instance(event.instance_id)
    if not old_id or old_id == event.answer_member_id:
        return event.leader_id
    old = g.view.members[old_id]
    deadline_ms = old.expiry_ms()
    if not g.view.logged and 0 <= deadline_ms < event.received_ms:
        membership.remove(g, old_id, deadline_ms, reasons.SESSION_TIMEOUT, [ref(event)])  # before it came back
        return event.leader_id
    new = membership.replace(g, old_id, event.answer_member_id, event.received_ms, [ref(event)])
    new.renewed_ms = event.received_ms
    if event.leader_id != old_id:
        return event.leader_id
    return event.answer_member_id  # an older client is given its old id as the leader's, so that it does not compute an assignment


def _may_have_been_replaced(event: Event) -> bool:
    """Whether a JoinGroup may have been answered outside a rebalance, as that of a static member that comes back (replaceStaticMember)."""
    return bool(event.instance_id) and not event.member_id and event.at_ms - event.received_ms <= PROMPT_MS


def _came(g: Emitter, running: Rebalance | None, event: Event, *, is_listed: bool) -> bool:
    """Whether a member that is seen for the first time has just come. If no line issued its id, it may have been there all the time.

    `is_listed`: the answer to the leader, which lists all, was logged before.
    """
    issued = not event.member_id or event.answer_member_id in g.view.pending
    if running is None or not is_listed:
        return issued or (not is_listed and (g.view.complete or (running is not None and running.old_generation == 0)))
    if issued:
        running.moves.note(event.answer_member_id, came=True)
    return running.moves.has_joined(event.answer_member_id)


def _add_join(g: Emitter, running: Rebalance, event: Event, member: ObservedMember, cause: str) -> None:
    """Adds a JoinGroup to the rebalance that answered it. `cause`: why it would have begun the rebalance."""
    view, member_id = g.view, member.member_id
    running.note(ref(event))
    running.joins[member_id] = event.received_ms
    if running.moves.has_joined(member_id):  # the answer to the leader, which lists all, may be logged first
        member.joined_ms, member.found = min(member.joined_ms, event.received_ms), False
    running.protocol, running.leader_id = view.protocol, view.leader_id
    if member_id == running.leader_id:
        running.leader_answered_ms = event.at_ms
    owned = {partition for protocol in event.protocols for partition in protocol.owned}
    if owned:
        running.kept[member_id] = tuple(sorted(owned))
    if not (running.exact and running.cause):
        # A parked JoinGroup may be what started the phase: the earliest trigger counts as the one that did.
        who = (member_id, event.instance_id, event.client_id, event.client_host, event.reason)
        who = who if cause != reasons.UNKNOWN else ("", "", "", "", "")
        running.triggers.append(RebalanceTrigger(event.received_ms, cause, *who, ref(event)))
        running.triggers.sort(key=lambda t: (t.at_ms, t.cause, t.member_id))
        del running.triggers[phases.TRIGGERS_KEPT :]
    member.renewed_ms = max(member.renewed_ms, running.joined_ms)  # every session restarts as the phase ends
    if event.members:
        _list_members(g, running, event)


def _cause(running: Rebalance, event: Event, *, former: bool, resubscribed: bool) -> str:
    if not former or running.moves.has_joined(event.answer_member_id):
        return reasons.MEMBER_JOINED
    if resubscribed and not reasons.says_why(event.reason):
        return reasons.SUBSCRIPTION_CHANGED
    return reasons.of_rejoin(event.reason, is_leader=event.answer_member_id == event.leader_id)


def _list_members(g: Emitter, running: Rebalance, event: Event) -> None:
    """Takes the list of all members from the leader's answer: members that are not in it were removed before."""
    view = g.view
    listed = {m.member_id for m in event.members}
    instances = {m.instance_id: m.member_id for m in event.members if m.instance_id}
    unsynced_ms = _sync_expired_ms(g, running)
    new = running.moves.joined() or listed - view.members.keys()
    later = {*view.moves.joined(), *(view.open.moves.joined() if view.open is not None and view.open is not running else ())}
    signs = [ref(event)]
    for member in sorted(view.members.values(), key=lambda m: m.member_id):
        if member.member_id in listed or member.member_id in later:
            continue
        expired_ms = member.expiry_ms()
        if member.instance_id in instances and not 0 <= expired_ms <= rebalance_rows.started_ms(running):
            membership.replace(g, member.member_id, instances[member.instance_id], running.joined_ms, signs)
            continue
        at_ms, cause = running.joined_ms, reasons.JOIN_TIMEOUT
        if 0 <= member.deadline_ms() <= running.joined_ms + expiry.TIMER_SLACK_MS:
            at_ms, cause = min(member.deadline_ms(), running.joined_ms), reasons.SESSION_TIMEOUT
            if not new and member.seen_ms <= view.moved_ms == member.renewed_ms:
                # Its session began when the coordinator moved, which was a little before the first line that shows it.
                at_ms = min(at_ms, rebalance_rows.started_ms(running))
        elif unsynced_ms >= 0:
            at_ms, cause = unsynced_ms, reasons.SYNC_TIMEOUT
        elif 0 <= member.overdue_ms <= running.joined_ms:
            at_ms, cause = member.overdue_ms, reasons.SESSION_TIMEOUT  # it was not parked
        elif not _waited_for(g, running, member):
            membership.lose(g, member.member_id, at_ms, reasons.UNKNOWN, signs)
            continue
        ended = membership.remove(g, member.member_id, at_ms, cause, signs)
        if ended is not None and cause == reasons.SESSION_TIMEOUT and not running.exact and not member.abandoned:
            running.triggers.append(membership.trigger_of(ended, cause, "", at_ms))
    known = view.complete or running.old_generation == 0
    for entry in event.members:
        if entry.member_id not in view.members and view.ended_membership(entry.member_id) is not None:
            continue  # it has left since
        came = known or entry.member_id in view.pending
        listed_first = entry.member_id not in view.members
        member = view.add(entry.member_id, running.joined_ms, came=came, of=running)
        member.found = member.found or listed_first  # its own JoinGroup shows when it came
        member.vouched = True
        member.instance_id = entry.instance_id or member.instance_id
        member.renewed_ms = max(member.renewed_ms, running.joined_ms)
    view.list_members(running, len(listed))


def _waited_for(g: Emitter, running: Rebalance, member: ObservedMember) -> bool:
    """Whether the phase lasted until it gave up waiting for the member. Else it left, or a new coordinator did not know it.

    It lasts as long as the longest timeout of all members (ClassicGroup.rebalanceTimeoutMs). If that of the member is not known, it is told
    by a phase that lasted just so long.
    """
    waited_ms = running.joined_ms - rebalance_rows.started_ms(running)
    if member.rebalance_timeout_ms >= 0:
        return member.rebalance_timeout_ms <= waited_ms + expiry.TIMER_SLACK_MS
    limit_ms = max((m.rebalance_timeout_ms for m in g.view.members.values()), default=-1)
    return limit_ms >= 0 and abs(waited_ms - limit_ms) <= expiry.TIMER_SLACK_MS


def _sync_expired_ms(g: Emitter, running: Rebalance) -> int:
    """When the coordinator removed members that had joined the generation before and did not sync; -1 if it did not.

    The sign: one rebalance timeout after the end of that generation's join phase, the coordinator began another one (expirePendingSync)
    and ended it at once.
    """
    view = g.view
    overtaken = [r for r in view.closing if r.outcome == SUPERSEDED and r.generation == running.old_generation]
    before = overtaken[-1] if overtaken else None
    limit = max((m.rebalance_timeout_ms for m in view.members.values()), default=-1)
    if before is None or before.joined_ms < 0 or limit < 0:
        return -1
    started_ms = running.first_sign_ms if running.first_sign_ms >= 0 else running.started_ms
    due_ms = before.joined_ms + limit
    expired = due_ms <= started_ms <= due_ms + expiry.TIMER_SLACK_MS and running.joined_ms - started_ms < limit
    return due_ms if expired else -1
