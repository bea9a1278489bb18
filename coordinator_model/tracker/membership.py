"""Members as they join, give signs of life, and depart."""

from __future__ import annotations

from typing import Final

from coordinator_model.diagnosis import departures, incidents, removals, silences
from coordinator_model.events import Event
from coordinator_model.view import reasons
from coordinator_model.view.emit import Emitter
from coordinator_model.view.members import EndedMembership, ObservedMember
from coordinator_model.view.rebalance import RebalanceTrigger
from coordinator_model.view.rows import Ref, ref
from coordinator_model.view.view import View

CONNECTIONS_KEPT: Final = 4
LONG_ANSWER_MS: Final = 500  # an answer that takes so long delays the heartbeats behind it


def replace(g: Emitter, old_id: str, new_id: str, at_ms: int, signs: list[Ref]) -> ObservedMember:
    """A static member goes on under a new id (KIP-345, replaceStaticMember): nobody leaves, and nobody comes."""
    view = g.view
    old, is_known = view.members.get(old_id), new_id in view.members
    remove(g, old_id, at_ms, reasons.REPLACED, signs)
    new = view.add(new_id, at_ms)
    view.replace(old_id, new_id, is_known=is_known)
    if old is not None:
        new.instance_id = new.instance_id or old.instance_id
        if new.partitions is None:
            new.partitions, new.topics, new.protocols = old.partitions, old.topics, old.protocols
    if view.open is not None:
        view.open.owned_before.update({p: new_id for p, owner in view.open.owned_before.items() if owner == old_id})
        view.open.kept.pop(old_id, None)
    return new


def has_left(view: View, member_id: str, at_ms: int) -> bool:
    """Whether the member departed at that time or later: a request that it sent before may be logged after its departure."""
    ended = view.ended_membership(member_id) if member_id not in view.members else None
    return ended is not None and ended.at_ms >= at_ms


def learn(member: ObservedMember, event: Event) -> None:
    """Takes the member's identity and timeouts from an event."""
    member.learn(event)
    if event.connection and event.connection not in member.connections:
        member.connections = [*member.connections, event.connection][-CONNECTIONS_KEPT:]


def note_answer(member: ObservedMember, event: Event) -> None:
    """Takes the answer to any request: while one is handled, later ones wait unread (SocketServer mutes the channel)."""
    if event.at_ms - event.received_ms >= LONG_ANSWER_MS:
        member.busy_ms = max(member.busy_ms, event.at_ms)


def note_alive(member: ObservedMember, at_ms: int) -> None:
    """Takes the arrival of an accepted request of any kind."""
    member.alive_ms, member.overdue_ms = max(member.alive_ms, at_ms), -1


def note_gap(member: ObservedMember, at_ms: int, *, joins: bool = False) -> None:
    """Takes the arrival of an accepted request, until which the session lived since it had restarted for the last time.

    `joins`: the phase that this JoinGroup waited for may have restarted it again, so that only the request before tells since when.
    """
    gap_ms = at_ms - (member.alive_ms if joins and member.renewed_ms > at_ms else member.renewed_ms)
    if member.sessions_seen and gap_ms < at_ms and (gap_ms < member.session_timeout_ms or member.session_timeout_ms < 0):
        member.longest_gap_ms = max(member.longest_gap_ms, gap_ms)


def hear(member: ObservedMember, event: Event, until_ms: int) -> None:
    """Takes an accepted request: the member is silent from then on. A JoinGroup or SyncGroup is answered then: no session runs before."""
    member.seen_ms = max(member.seen_ms, until_ms)
    note_alive(member, event.received_ms)
    member.sessions_seen = True
    member.last_sign = ref(event)


def renew(member: ObservedMember, event: Event) -> None:
    """Takes an accepted heartbeat or commit: the session timer restarts (rescheduleClassicGroupMemberHeartbeat)."""
    if event.received_ms > member.renewed_ms or not member.sessions_seen:
        note_gap(member, event.received_ms)
        hear(member, event, event.received_ms)
        member.renewed_ms = event.received_ms


def remove(
    g: Emitter, member_id: str, at_ms: int, kind: str, signs: list[Ref], event: Event | None = None, *, reason: str = ""
) -> EndedMembership | None:
    """Ends a membership: writes its row, and remembers it. None if it had ended before. `reason`: the client's."""
    view = g.view
    member = view.take_out(member_id)
    if member is None:
        return None
    was_lost = isinstance(member, EndedMembership)
    at_ms = min(at_ms, member.at_ms) if isinstance(member, EndedMembership) else at_ms
    if event is not None:
        learn(member, event)
    led = view.leader_id == member_id or (kind == reasons.SYNC_TIMEOUT and any(one.leader_id == member_id for one in view.closing))
    if view.leader_id == member_id:
        view.leader_id = ""
    if kind == reasons.SESSION_TIMEOUT and silences.stalled_static(member, at_ms):
        kind = reasons.POLL_TIMEOUT
    signs = [*signs, *(sign for sign in (member.last_sign, member.stalled_sign) if sign is not None)]
    ended = _ended(view, member, at_ms, kind, signs)
    view.end(ended, was_lost=was_lost)
    if not member.ghost:
        departures.departed(g, ended, event, reason)
        _report(g, ended, led=led)
    return ended


def read_back(g: Emitter, at_ms: int, signs: list[Ref]) -> None:
    """A coordinator read the group from the log: it has the members of the last generation that was written (onLoadGroup)."""
    view, stored = g.view, g.view.stored
    if stored is None:
        return
    for member_id in sorted(view.members.keys() - set(stored)):
        if view.members[member_id].vouched:
            remove(g, member_id, at_ms, reasons.GROUP_GONE, signs)
    view.read_back(at_ms, stored)


def lose(g: Emitter, member_id: str, at_ms: int, kind: str, signs: list[Ref]) -> None:
    """Takes a member out of the group. Later lines may show how it went; `kind` is how its membership ends if none does."""
    g.view.lose(_ended(g.view, g.view.members[member_id], at_ms, kind, signs))


def _ended(view: View, member: ObservedMember, at_ms: int, kind: str, signs: list[Ref]) -> EndedMembership:
    """What is kept of a membership after its end."""
    running = view.open
    assigning = running is not None and running.joined_ms >= 0 and running.leader_id == member.member_id
    generation = view.generation_at(at_ms)
    return EndedMembership.of(member, at_ms=at_ms, kind=kind, generation=generation, signs=signs, assigning=assigning)


def _report(g: Emitter, ended: EndedMembership, *, led: bool) -> None:
    """Hands over the findings about the end of a membership."""
    if ended.kind == reasons.SESSION_TIMEOUT:
        incidents.hold_back(g, removals.silence_of(g, ended), ended.held_ms)
    elif ended.kind == reasons.POLL_TIMEOUT:
        departures.hold_back_stall(g, departures.stall_of(ended))
    elif ended.kind == reasons.SYNC_TIMEOUT:
        removals.sync_timeout(g, ended, led=led)


def trigger_of(ended: EndedMembership, cause: str, reason: str, at_ms: int) -> RebalanceTrigger:
    """The departure of a member as the trigger of a rebalance."""
    return RebalanceTrigger(at_ms, cause, ended.member_id, ended.instance_id, ended.client_id, ended.client_host, reason, ended.sign)
