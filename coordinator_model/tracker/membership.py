"""Members as they join, give signs of life, and depart."""

from __future__ import annotations

from typing import Any, Final

from coordinator_model.diagnosis import departures, incidents, removals, silences
from coordinator_model.events import Event
from coordinator_model.view import reasons
from coordinator_model.view.emit import Emitter
from coordinator_model.view.members import EndedMembership, LostMember, ObservedMember, client_in
from coordinator_model.view.rows import MEMBER_SESSIONS, Ref, evidence_json, or_none, ref
from coordinator_model.view.view import Rebalance, RebalanceTrigger, View

CONNECTIONS_KEPT: Final = 4
LONG_ANSWER_MS: Final = 500  # an answer that takes so long delays the heartbeats behind it
GONE_KEPT: Final = 4_096  # departures that no rebalance has followed: in a log without holes each begins one
LOGGED_AFTER_MS: Final = 100  # between the end of a join phase and the line about the departure that ended it
REMEMBERED: Final = 64  # memberships kept after their end; the oldest go first
REMEMBERED_MS: Final = 60_000
"""All are kept for so long, however many: a large group may end at once, and both logs report each of its members."""

_LEFT: Final = frozenset({reasons.LEFT, reasons.POLL_TIMEOUT, reasons.ADMIN_REMOVED})
END_KINDS: Final = {
    reasons.MEMBER_LEFT: reasons.LEFT,
    reasons.ADMIN_REMOVED: reasons.ADMIN_REMOVED,
    reasons.POLL_TIMEOUT: reasons.POLL_TIMEOUT,
    reasons.SESSION_TIMEOUT: reasons.SESSION_TIMEOUT,
    reasons.SYNC_TIMEOUT: reasons.SYNC_TIMEOUT,
}
"""How a membership ends, by the cause of the removal."""


def add(g: Emitter, member_id: str, at_ms: int, event: Event | None = None, *, came: bool = True, is_new: bool = False) -> ObservedMember:
    """The member with this id, a new one if needed. `event`: the line that shows it. `came`: it joined then; else it is not known when.

    `is_new`: the coordinator says that it added it, so it is no static member whose new id was not named yet.
    """
    view = g.view
    member = view.members.get(member_id)
    if member is None:
        replacement = None if is_new else _unnamed(view, member_id)
        member = view.members[member_id] = replacement or ObservedMember(member_id, joined_ms=at_ms, found=not came)
        view.pending.pop(member_id, None)
        running = view.open
        if replacement is None and (running is None or 0 <= running.joined_ms < at_ms):
            # Who joins after the join phase begins the next rebalance.
            note_arrival(view.arrived, view.gone, member_id, new=came and running is not None)
        elif replacement is None and running is not None:
            note_arrival(running.added, running.departed, member_id, new=came)
    member.vouched = member.vouched or came
    if event is not None:
        learn(member, event)
    return member


def note_arrival(joined: list[str], left: list[str], member_id: str, *, new: bool = True) -> None:
    """Notes that a member is there. One that had left within the same rebalance is back, and neither joined nor left. `new`: it joined."""
    if member_id in left:
        left.remove(member_id)
    elif new and member_id not in joined:
        joined.append(member_id)


def rename_stored(view: View, old_id: str, new_id: str) -> None:
    """A replacement in a Stable group is written: the group that is stored has the new id."""
    if view.stored is not None and view.open is None:
        view.stored = [new_id if member_id == old_id else member_id for member_id in view.stored]


def replace(g: Emitter, old_id: str, new_id: str, at_ms: int, signs: list[Ref], event: Event | None = None) -> ObservedMember:
    """A static member goes on under a new id (KIP-345, replaceStaticMember): nobody leaves, and nobody comes."""
    view = g.view
    old = view.members.get(old_id)
    known = new_id in view.members
    remove(g, old_id, at_ms, reasons.REPLACED, signs)
    new = add(g, new_id, at_ms, event)
    rename_stored(view, old_id, new_id)
    if old is not None:
        new.instance_id = new.instance_id or old.instance_id
        if new.partitions is None:
            new.partitions, new.topics, new.protocols = old.partitions, old.topics, old.protocols
    running = view.open
    for joined in _coming(view):
        if old_id in joined:
            joined.remove(old_id)
        elif new_id in joined and not known:
            joined.remove(new_id)
    if running is not None:
        running.owned_before.update({p: new_id for p, owner in running.owned_before.items() if owner == old_id})
        running.kept.pop(old_id, None)
    return new


def _coming(view: View) -> list[list[str]]:
    """The lists of members that joined and count for a rebalance that has not ended."""
    return [view.arrived, *([view.open.added] if view.open is not None else [])]


def has_left(view: View, member_id: str, at_ms: int) -> bool:
    """Whether the member departed at that time or later: a request that it sent before may be logged after its departure."""
    ended = view.ended_membership(member_id) if member_id not in view.members else None
    return ended is not None and ended.at_ms >= at_ms


def learn(member: ObservedMember, event: Event) -> None:
    """Takes the member's identity and timeouts from an event."""
    member.instance_id = event.instance_id or member.instance_id
    member.client_id = event.client_id or member.client_id
    member.client_host = event.client_host or member.client_host
    member.software = event.software or member.software
    if event.connection:
        member.connection = event.connection
        if event.connection not in member.connections:
            member.connections = [*member.connections, event.connection][-CONNECTIONS_KEPT:]
    if event.session_timeout_ms >= 0:
        member.session_timeout_ms = event.session_timeout_ms
    if event.rebalance_timeout_ms >= 0:
        member.rebalance_timeout_ms = event.rebalance_timeout_ms


def note_answer(member: ObservedMember, event: Event) -> None:
    """Takes the answer to any request: while one is handled, later ones wait unread (SocketServer mutes the channel)."""
    if event.at_ms - event.received_ms >= LONG_ANSWER_MS:
        member.busy_ms = max(member.busy_ms, event.at_ms)


def note_alive(member: ObservedMember, at_ms: int) -> None:
    """Takes the arrival of an accepted request of any kind."""
    member.alive_ms, member.overdue_ms = max(member.alive_ms, at_ms), -1


def renew(member: ObservedMember, event: Event) -> None:
    """Takes an accepted heartbeat or commit: the session timer restarts (rescheduleClassicGroupMemberHeartbeat)."""
    if event.received_ms <= member.renewed_ms and member.sessions_seen:
        return
    if member.seen_ms >= 0:
        member.longest_gap_ms = max(member.longest_gap_ms, event.received_ms - max(member.seen_ms, member.busy_ms))
    member.seen_ms = member.renewed_ms = event.received_ms
    note_alive(member, event.received_ms)
    member.sessions_seen = True
    member.last_sign = ref(event)


def remove(
    g: Emitter, member_id: str, at_ms: int, kind: str, signs: list[Ref], event: Event | None = None, *, reason: str = ""
) -> EndedMembership | None:
    """Ends a membership: writes its row, and remembers it. None if it had ended before. `reason`: the client's."""
    view = g.view
    lost = next((one for one in view.lost if one.member.member_id == member_id), None)
    if lost is not None:
        view.lost.remove(lost)
        member, at_ms = lost.member, min(at_ms, lost.at_ms)
    elif member_id in view.members:
        member = view.members.pop(member_id)
    elif view.ended_membership(member_id) is not None:
        return None
    else:
        replacement = _unnamed(view, member_id)
        view.untold -= replacement is None and view.untold > 0
        member = replacement or ObservedMember(member_id)
    if event is not None:
        learn(member, event)
    led = view.leader_id == member_id or (kind == reasons.SYNC_TIMEOUT and any(one.leader_id == member_id for one in view.closing))
    if view.leader_id == member_id:
        view.leader_id = ""
    if kind == reasons.SESSION_TIMEOUT and silences.stalled_static(member, at_ms):
        kind = reasons.POLL_TIMEOUT
    signs = [*signs, *(sign for sign in (member.last_sign, member.stalled_sign) if sign is not None)]
    ended = _ended(view, member, at_ms, kind, signs)
    view.ended.append(ended)
    while len(view.ended) > REMEMBERED and view.ended[0].at_ms < at_ms - REMEMBERED_MS:
        del view.ended[0]
    if lost is None:
        _note_departure(view, ended)
        at_ms = ended.at_ms
    if member.ghost:
        return ended
    session = _session(member, at_ms, kind, signs)
    if not departures.hold_back(g, at_ms, member, session, signs, event, reason):
        g.emit(MEMBER_SESSIONS, **session)
    _report(g, member, at_ms, kind, signs, led=led)
    return ended


def _unnamed(view: View, member_id: str) -> ObservedMember | None:
    """The static member whose new id this is, if the line that reported its return did not name it (Kafka 3.0 and later)."""
    instance_id = client_in(member_id, "")
    since_ms = view.unnamed.pop(instance_id, None)
    if since_ms is None:
        return None
    view.stored = [member_id if m == instance_id else m for m in view.stored] if view.stored is not None else None
    came_in = [r.added for r in view.unfinished() if r.joined_ms < 0 or since_ms <= r.joined_ms]
    for joined in [view.arrived, *came_in]:  # it may have come since, under the id that was replaced
        joined[:] = [member_id if client_in(m, "") == instance_id and m not in view.members else m for m in joined]
    return ObservedMember(member_id, instance_id, joined_ms=since_ms)


def read_back(g: Emitter, at_ms: int, signs: list[Ref]) -> None:
    """A coordinator read the group from the log: it has the members of the last generation that was written (onLoadGroup).

    It does not know who joined since, and still has those who departed since, until their sessions run out with it.
    """
    view = g.view
    stored = view.stored
    if stored is None:
        return
    for member_id in sorted(view.members.keys() - set(stored)):
        if view.members[member_id].vouched:
            remove(g, member_id, at_ms, reasons.GROUP_GONE, signs)
        else:
            del view.members[member_id]
    for member_id in sorted(set(stored) - view.members.keys()):
        old = view.ended_membership(member_id)
        if old is None:  # a static member that no line has named
            continue
        view.lost = [lost for lost in view.lost if lost.member.member_id != member_id]
        ghost = view.members[member_id] = ObservedMember(member_id, old.instance_id, old.client_id, old.client_host, ghost=True)
        ghost.session_timeout_ms, ghost.rebalance_timeout_ms = old.session_timeout_ms, old.rebalance_timeout_ms
        ghost.partitions, ghost.renewed_ms, ghost.sessions_seen = old.partitions, at_ms, old.seen_ms >= 0
        view.ended.remove(old)
    view.unnamed = {instance_id: since_ms for instance_id, since_ms in view.unnamed.items() if instance_id in stored}
    view.arrived, view.gone, view.untold = [], [], 0
    view.make_generation(at_ms, view.stored_generation)  # the number of one that was not written is used again


def lose(g: Emitter, member_id: str, at_ms: int, kind: str, signs: list[Ref]) -> None:
    """Takes a member out of the group. Later lines may show how it went; `kind` is how its membership ends if none does."""
    member = g.view.members.pop(member_id)
    _note_departure(g.view, _ended(g.view, member, at_ms, kind, signs))
    g.view.lost.append(LostMember(member, at_ms, kind, signs))


def begins_the_next(g: Emitter, member_id: str, cause: str, at_ms: int) -> None:
    """Takes members that joined or left out of the join phase that has just ended: they did so after its end.

    Lines of one millisecond have no order. The reason of the next rebalance names who began it, and the coordinator's count at the end of
    the phase shows how many others came or went after it.
    """
    view = g.view
    running = next(reversed(view.unfinished()), None)
    if running is None or running.joined_ms != at_ms or running.count_after < 0:
        return
    if cause == reasons.MEMBER_JOINED and member_id in running.added:
        _came_after(view, running, member_id)
    left = [old.member_id for old in view.ended if old.at_ms == at_ms and old.kind in _LEFT and old.member_id not in view.gone]
    left.sort(key=lambda departed: departed == member_id)  # the reason names one of them
    began = cause in (reasons.MEMBER_LEFT, reasons.POLL_TIMEOUT) and (not member_id or member_id in left)  # Scala may log it later
    after = max(running.unnamed, began)
    for departed in left[-after:] if after else ():
        _left_after(view, running, departed)
    came = [added for added in running.added if added in view.members and view.members[added].joined_ms == at_ms]
    for added in came[-running.missing :] if running.missing else ():
        _came_after(view, running, added)
    view.complete = view.untold == running.missing == 0


def _came_after(view: View, running: Rebalance, member_id: str) -> None:
    """Moves a member that joined in the millisecond in which the join phase ended to the next rebalance."""
    running.added.remove(member_id)
    note_arrival(view.arrived, view.gone, member_id)
    if running.missing:
        running.missing -= 1
    else:
        running.unnamed += running.count_before >= 0
        view.untold += 1


def _left_after(view: View, running: Rebalance, member_id: str) -> None:
    """Moves a member that left in the millisecond in which the join phase ended to the next rebalance."""
    if member_id in running.departed:
        running.departed.remove(member_id)
    else:
        running.added.append(member_id)
    view.gone.append(member_id)
    if running.unnamed:
        running.unnamed -= 1
        view.untold -= 1
    else:
        running.missing += 1
    view.unclaimed += [t for t in running.triggers if t.member_id == member_id]
    running.triggers = [t for t in running.triggers if t.member_id != member_id]


def give_up_lost(g: Emitter, until_ms: int) -> None:
    """Ends the memberships of members that were lost by then: no line has shown how they went."""
    for lost in [one for one in g.view.lost if one.at_ms <= until_ms]:
        remove(g, lost.member.member_id, lost.at_ms, lost.kind, lost.signs)


def _note_departure(view: View, ended: EndedMembership) -> None:
    """Adds a departure to the rebalance that it belongs to.

    Who departs after the join phase begins the next rebalance. But a coordinator may log a departure just after the end of the phase
    that it ended: then the count of members, which it logs with the end, is lower than that of the members known.
    """
    running, member_id = view.open, ended.member_id
    if ended.kind == reasons.REPLACED:
        return
    ended_by_it = next((r for r in view.unfinished() if r.missing and 0 <= ended.at_ms <= r.joined_ms + LOGGED_AFTER_MS), None)
    if ended_by_it is not None:
        running = ended_by_it
        running.missing -= 1
        ended.at_ms = min(ended.at_ms, running.joined_ms)
        view.complete = running.missing == view.untold == 0
    elif running is not None and 0 <= running.joined_ms <= ended.at_ms and (ended.at_ms > running.joined_ms or running.count_after >= 0):
        running = None
    if running is None:
        if member_id in view.arrived:
            view.arrived.remove(member_id)
        elif member_id not in view.gone:
            view.gone.append(member_id)
            del view.gone[:-GONE_KEPT]
    elif member_id in running.added:
        running.added.remove(member_id)
    elif member_id not in running.departed:
        running.departed.append(member_id)
        running.stopped[member_id] = ended.stopped_ms()


def _ended(view: View, member: ObservedMember, at_ms: int, kind: str, signs: list[Ref]) -> EndedMembership:
    """What is kept of a membership after its end."""
    return EndedMembership(
        member.member_id,
        member.instance_id,
        member.client_name(),
        member.client_host,
        member.connection,
        at_ms,
        kind,
        view.generation_at(at_ms),
        rebalance_timeout_ms=member.rebalance_timeout_ms,
        lasted_ms=at_ms - member.joined_ms if member.joined_ms >= 0 and not member.found else -1,
        partitions=member.partitions,
        sign=signs[0] if signs else None,
        seen_ms=member.seen_ms,
        session_timeout_ms=member.session_timeout_ms,
        alive_ms=member.alive_ms,
        quiet=silences.quiet(member),
    )


def _report(g: Emitter, member: ObservedMember, at_ms: int, kind: str, signs: list[Ref], *, led: bool) -> None:
    """Hands over the findings about the end of a membership."""
    if kind == reasons.SESSION_TIMEOUT:
        finding = removals.session_timeout(g, member, at_ms, signs)
        incidents.hold_back(g, member.seen_ms, finding, given_up=member.abandoned, held_ms=member.held_ms)
    elif kind == reasons.POLL_TIMEOUT:
        departures.hold_back_stall(g, at_ms, member, removals.poll_timeout(g, member, at_ms, signs))
    elif kind == reasons.SYNC_TIMEOUT:
        removals.sync_timeout(g, member, at_ms, signs, led=led)


def _session(member: ObservedMember, at_ms: int, kind: str, signs: list[Ref]) -> dict[str, Any]:
    """The row of `member_sessions`."""
    return {
        "member_id": member.member_id,
        "instance_id": member.instance_id or None,
        "client_id": member.client_name() or None,
        "client_host": member.client_host or None,
        "software": member.software or None,
        "joined_at": or_none(member.joined_ms) if not member.found else None,
        "ended_at": at_ms,
        "end_kind": kind,
        "session_timeout_ms": or_none(member.session_timeout_ms),
        "rebalance_timeout_ms": or_none(member.rebalance_timeout_ms),
        "heartbeats": member.heartbeats if member.sessions_seen else None,
        "longest_gap_ms": or_none(member.longest_gap_ms),
        "evidence": evidence_json(signs),
    }


def trigger_of(ended: EndedMembership, cause: str, reason: str, at_ms: int) -> RebalanceTrigger:
    """The departure of a member as the trigger of a rebalance."""
    return RebalanceTrigger(at_ms, cause, ended.member_id, ended.instance_id, ended.client_id, ended.client_host, reason, ended.sign)
