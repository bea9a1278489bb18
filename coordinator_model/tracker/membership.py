"""Members as they join, give signs of life, and depart."""

from __future__ import annotations

from typing import Any, Final

from coordinator_model.diagnosis import departures, incidents, removals
from coordinator_model.events import Event
from coordinator_model.view import reasons
from coordinator_model.view.emit import Emitter
from coordinator_model.view.rows import MEMBER_SESSIONS, Ref, evidence_json, or_none, ref
from coordinator_model.view.view import EndedMembership, ObservedMember, RebalanceTrigger

CONNECTIONS_KEPT: Final = 4
STALLED_WITHIN_MS: Final = 60_000  # before its session ended, where the session timeout is not known
SLACK_MS: Final = 1_000
LONG_ANSWER_MS: Final = 500  # an answer that takes so long delays the heartbeats behind it
REMEMBERED: Final = 64  # memberships kept after their end; the oldest go first
REMEMBERED_MS: Final = 60_000
"""All are kept for so long, however many: a large group may end at once, and both logs report each of its members."""

END_KINDS: Final = {
    reasons.MEMBER_LEFT: reasons.LEFT,
    reasons.ADMIN_REMOVED: reasons.LEFT,
    reasons.POLL_TIMEOUT: reasons.POLL_TIMEOUT,
    reasons.SESSION_TIMEOUT: reasons.SESSION_TIMEOUT,
    reasons.SYNC_TIMEOUT: reasons.SYNC_TIMEOUT,
}
"""How a membership ends, by the cause of the removal."""


def add(g: Emitter, member_id: str, at_ms: int, event: Event | None = None) -> ObservedMember:
    """The member with this id, a new one if needed. `event`: the line that shows it."""
    view = g.view
    member = view.members.get(member_id)
    if member is None:
        member = view.members[member_id] = ObservedMember(member_id, joined_ms=at_ms)
        view.pending.pop(member_id, None)
        if view.open is not None and member_id not in view.open.added:
            view.open.added.append(member_id)
    if event is not None:
        learn(member, event)
    return member


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


def renew(member: ObservedMember, event: Event) -> None:
    """Takes an accepted heartbeat or commit: the session timer restarts (rescheduleClassicGroupMemberHeartbeat)."""
    if event.received_ms <= member.renewed_ms and member.sessions_seen:
        return
    if member.seen_ms >= 0:
        member.longest_gap_ms = max(member.longest_gap_ms, event.received_ms - max(member.seen_ms, member.busy_ms))
    member.seen_ms = member.renewed_ms = event.received_ms
    member.sessions_seen = True
    member.last_sign = ref(event)


def remove(
    g: Emitter, member_id: str, at_ms: int, kind: str, signs: list[Ref], event: Event | None = None, *, reason: str = ""
) -> EndedMembership | None:
    """Ends a membership: writes its row, and remembers it. None if it had ended before. `reason`: the client's."""
    view = g.view
    member = view.members.pop(member_id, None)
    if member is None:
        if view.ended_membership(member_id) is not None:
            return None
        member = ObservedMember(member_id)
    if event is not None:
        learn(member, event)
    if view.open is not None:
        if member_id in view.open.added:
            view.open.added.remove(member_id)
        else:
            view.open.departed.append(member_id)
        view.open.stopped.setdefault(member_id, member.seen_ms if kind == reasons.SESSION_TIMEOUT and member.seen_ms >= 0 else at_ms)
    led = view.leader_id == member_id
    if led:
        view.leader_id = ""
    if kind == reasons.SESSION_TIMEOUT and _stalled(member, at_ms):
        kind = reasons.POLL_TIMEOUT
    signs = [*signs, *(sign for sign in (member.last_sign, member.stalled_sign) if sign is not None)]
    session = _session(member, at_ms, kind, signs)
    if kind == reasons.LEFT and departures.may_have_stalled(g, member, at_ms, reason):
        departures.hold_back(g, at_ms, member, session, removals.poll_timeout(g, member, at_ms, signs))
    else:
        g.emit(MEMBER_SESSIONS, **session)
    ended = EndedMembership(
        member_id,
        member.instance_id,
        member.client_name(),
        member.client_host,
        member.connection,
        at_ms,
        kind,
        view.generation,
        rebalance_timeout_ms=member.rebalance_timeout_ms,
        lasted_ms=at_ms - member.joined_ms if member.joined_ms >= 0 else -1,
        partitions=member.partitions or (),
        sign=signs[0] if signs else None,
        seen_ms=member.seen_ms,
        session_timeout_ms=member.session_timeout_ms,
    )
    view.ended.append(ended)
    while len(view.ended) > REMEMBERED and view.ended[0].at_ms < at_ms - REMEMBERED_MS:
        del view.ended[0]
    _report(g, member, at_ms, kind, signs, led=led)
    return ended


def _report(g: Emitter, member: ObservedMember, at_ms: int, kind: str, signs: list[Ref], *, led: bool) -> None:
    """Hands over the findings about the end of a membership."""
    if kind == reasons.SESSION_TIMEOUT and not member.abandoned:
        incidents.hold_back(g, at_ms, member.seen_ms, member.member_id, removals.session_timeout(g, member, at_ms, signs))
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
        "joined_at": or_none(member.joined_ms),
        "ended_at": at_ms,
        "end_kind": kind,
        "session_timeout_ms": or_none(member.session_timeout_ms),
        "rebalance_timeout_ms": or_none(member.rebalance_timeout_ms),
        "heartbeats": member.heartbeats if member.sessions_seen else None,
        "longest_gap_ms": or_none(member.longest_gap_ms),
        "evidence": evidence_json(signs),
    }


def _stalled(member: ObservedMember, at_ms: int) -> bool:
    """Whether a static member fell silent because its application did not poll, by its client's log: it does not leave (KIP-345)."""
    limit = member.session_timeout_ms if member.session_timeout_ms >= 0 else STALLED_WITHIN_MS
    return bool(member.instance_id) and 0 <= at_ms - member.stalled_ms <= limit + SLACK_MS and member.stalled_ms >= 0


def trigger_of(ended: EndedMembership, cause: str, reason: str, at_ms: int) -> RebalanceTrigger:
    """The departure of a member as the trigger of a rebalance."""
    return RebalanceTrigger(at_ms, cause, ended.member_id, ended.instance_id, ended.client_id, ended.client_host, reason, ended.sign)
