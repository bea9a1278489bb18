"""Members that left without a word: closed by their application, or given up by a stalled poll loop.

A Java client names its reason (KIP-800), librdkafka and older clients do not. What tells them apart comes later: a client that
closed never uses that connection again, one whose poll loop stalled asks for a new member id on it as soon as it polls again.
One that committed just before it left has closed: a stalled one cannot commit. Where the client's own log is read, it says so itself.
"""

from __future__ import annotations

from typing import Any, Final

from coordinator_model.diagnosis import findings
from coordinator_model.events import Event
from coordinator_model.view import reasons
from coordinator_model.view.emit import Emitter
from coordinator_model.view.rows import FINDINGS, MEMBER_SESSIONS, Ref, ref
from coordinator_model.view.view import EndedMembership, ObservedMember, PollStall, UndecidedDeparture

DECIDED_MS: Final = 30_000
"""Who has not come back by then has closed, as far as anybody can say."""

CLOSING_COMMIT_MS: Final = 1_000


def may_have_stalled(g: Emitter, member: ObservedMember, at_ms: int, words: str) -> bool:
    """Whether only hindsight can tell why the member left."""
    if words or member.instance_id:
        return False
    if not (member.sessions_seen and member.connection) and member.member_id not in g.view.client_names.values():
        return False
    return member.commit_ms < at_ms - CLOSING_COMMIT_MS


def hold(g: Emitter, at_ms: int, member: ObservedMember, session: dict[str, Any], finding: dict[str, Any]) -> None:
    """Keeps the row of an ended membership until it is decided how it ended."""
    g.view.undecided.append(UndecidedDeparture(at_ms, member.member_id, member.connection, session, finding))


def hold_stalled(g: Emitter, at_ms: int, member: ObservedMember, finding: dict[str, Any]) -> None:
    """Keeps what is told of a stalled poll loop until the client polls again, and so shows for how long it did not."""
    if member.connection and member.rebalance_timeout_ms >= 0:
        since_ms = member.stalled_ms if member.stalled_ms >= 0 else at_ms
        g.view.poll_stalls.append(PollStall(since_ms, member.connection, member.rebalance_timeout_ms, finding))
    else:
        g.emit(FINDINGS, **finding)


def came_back(g: Emitter, event: Event) -> None:
    """A JoinGroup without a member id: on the connection of a member that left, it shows a stalled poll loop."""
    for told in [s for s in g.view.poll_stalls if s.connection == event.connection]:
        g.view.poll_stalls.remove(told)
        _tell_gap(g, told.finding, told.limit_ms, told.at_ms, event)
    for leaving in [u for u in g.view.undecided if u.connection == event.connection != ""]:
        _decide_stalled(g, leaving)
        _tell_gap(g, leaving.finding, leaving.session["rebalance_timeout_ms"], leaving.at_ms, event)


def stalled(g: Emitter, member_id: str, signs: list[Ref]) -> None:
    """The log of a client says that its poll loop stalled, after the coordinator said that the member went."""
    for leaving in [u for u in g.view.undecided if u.member_id == member_id]:
        _decide_stalled(g, leaving)
        g.emit(FINDINGS, **leaving.finding)
    for gone in g.view.ended:
        if gone.member_id == member_id and gone.kind == reasons.SESSION_TIMEOUT and gone.instance_id:
            g.emit(FINDINGS, **_silent_while_stalled(g, gone, signs))


def _decide_stalled(g: Emitter, leaving: UndecidedDeparture) -> None:
    view = g.view
    view.undecided.remove(leaving)
    g.emit(MEMBER_SESSIONS, **{**leaving.session, "end_kind": reasons.POLL_TIMEOUT})
    for rebalance in (*view.closing, *([view.open] if view.open is not None else ())):
        if rebalance.cause == reasons.MEMBER_LEFT and rebalance.named == leaving.member_id:
            rebalance.cause = reasons.POLL_TIMEOUT
        _correct(rebalance.triggers, leaving.member_id)
    _correct(view.unclaimed, leaving.member_id)
    for gone in view.ended:
        if gone.member_id == leaving.member_id:
            gone.kind = reasons.POLL_TIMEOUT


def was_stalled(g: Emitter, event: Event) -> None:
    """A static member that fell silent, and comes back on the connection that it had: its poll loop stalled.

    A static member does not leave when it is not polled in time, its session ends (KIP-345). A process that was frozen would first
    be refused under its old id; one that was restarted has another connection.
    """
    for gone in g.view.ended:
        if gone.kind != reasons.SESSION_TIMEOUT or not gone.instance_id or gone.instance_id != event.instance_id:
            continue
        if gone.connection == event.connection and not findings.was_refused(g, gone.member_id):
            row = _silent_while_stalled(g, gone, [gone.sign] if gone.sign else [])
            _tell_gap(g, row, gone.rebalance_timeout_ms, gone.seen_ms, event)  # it falls silent when the limit has passed


def _silent_while_stalled(g: Emitter, gone: EndedMembership, signs: list[Ref]) -> dict[str, Any]:
    """A static member's session ended, and it was its poll loop: what is to be told of that."""
    gone.kind = reasons.POLL_TIMEOUT
    g.view.pending_findings = [held for held in g.view.pending_findings if held.member_id != gone.member_id]
    member = ObservedMember(gone.member_id, gone.instance_id, gone.client_id, gone.client_host)
    member.rebalance_timeout_ms = gone.rebalance_timeout_ms
    return findings.poll_timeout(g, member, gone.at_ms, signs)


def blocks(g: Emitter, member_ids: set[str]) -> bool:
    """Whether the end of one of these memberships is not decided yet."""
    return any(leaving.member_id in member_ids for leaving in g.view.undecided)


def next_ms(g: Emitter) -> int | None:
    """When `close_due` has work next."""
    since = [waiting[0].at_ms for waiting in (g.view.undecided, g.view.poll_stalls) if waiting]
    return min(since) + DECIDED_MS + 1 if since else None


def close_due(g: Emitter, now_ms: int, *, flush: bool = False) -> None:
    """Nobody came back: they had closed. `flush`: nothing more will come."""
    undecided = g.view.undecided
    while undecided and (flush or undecided[0].at_ms + DECIDED_MS < now_ms):
        g.emit(MEMBER_SESSIONS, **undecided.pop(0).session)
    stalled = g.view.poll_stalls
    while stalled and (flush or stalled[0].at_ms + DECIDED_MS < now_ms):
        g.emit(FINDINGS, **stalled.pop(0).finding)


def _tell_gap(g: Emitter, finding: dict[str, Any], limit_ms: int | None, since_ms: int, event: Event) -> None:
    """The client polls again: it had not done so for its limit, and since it was given up."""
    if limit_ms is None or limit_ms < 0 or not 0 <= since_ms < event.received_ms:
        g.emit(FINDINGS, **finding)
    else:
        g.emit(FINDINGS, **findings.with_poll_gap(finding, limit_ms, limit_ms + event.received_ms - since_ms, ref(event)))


def _correct(triggers: list[Any], member_id: str) -> None:
    for trigger in triggers:
        if trigger.member_id == member_id and trigger.cause == reasons.MEMBER_LEFT:
            trigger.cause = reasons.POLL_TIMEOUT
