"""Members that left without giving a reason: closed by their application, or removed from it by a stalled poll loop.

A Java client gives its reason (KIP-800), librdkafka and older clients do not. Later lines decide: a client that closed never uses its
connection again; one whose poll loop stalled asks for a new member id on it as soon as it polls again. A client that committed just
before it left has closed, since a stalled one cannot commit. The client's own log, where it is read, says it outright.
"""

from __future__ import annotations

from typing import Any, Final

from coordinator_model.diagnosis import removals, silences
from coordinator_model.events import Event
from coordinator_model.specification.timers import NEVER
from coordinator_model.view import reasons
from coordinator_model.view.emit import Emitter
from coordinator_model.view.rows import FINDINGS, MEMBER_SESSIONS, Ref, ref
from coordinator_model.view.view import EndedMembership, ObservedMember, PollStall, UndecidedDeparture

DECIDED_MS: Final = 30_000
"""A client that has not come back by then counts as closed."""

CLOSING_COMMIT_MS: Final = 1_000


def may_have_stalled(g: Emitter, member: ObservedMember, at_ms: int, reason: str) -> bool:
    """Whether only later lines can show why the member left."""
    if reason or member.instance_id:
        return False
    if not (member.sessions_seen and member.connection) and member.member_id not in g.view.client_names.values():
        return False
    return member.commit_ms < at_ms - CLOSING_COMMIT_MS


def hold_back(g: Emitter, at_ms: int, member: ObservedMember, session: dict[str, Any], finding: dict[str, Any]) -> None:
    """Keeps the row of an ended membership until it is decided how it ended."""
    passed_ms = silences.limit_passed_ms(silences.quiet(member), at_ms)
    g.view.undecided.append(UndecidedDeparture(at_ms, member.member_id, member.connection, passed_ms, session, finding))


def hold_back_stall(g: Emitter, at_ms: int, member: ObservedMember, finding: dict[str, Any]) -> None:
    """Keeps the finding of a stalled poll loop until the client polls again, which shows for how long it did not."""
    if member.connection and member.rebalance_timeout_ms >= 0:
        passed_ms = silences.limit_passed_ms(silences.quiet(member), at_ms)
        g.view.poll_stalls.append(PollStall(at_ms, member.connection, passed_ms, member.rebalance_timeout_ms, finding))
    else:
        g.emit(FINDINGS, **finding)


def on_join_without_id(g: Emitter, event: Event) -> None:
    """A JoinGroup without a member id: on the connection of a member that departed, it shows a stalled poll loop."""
    view, connection = g.view, event.connection
    for stall in [s for s in view.poll_stalls if s.connection == connection]:
        view.poll_stalls.remove(stall)
        _emit_with_gap(g, stall.finding, stall.limit_ms, stall.passed_ms, event)
    for departure in [u for u in view.undecided if u.connection == connection != ""]:
        _decide_stalled(g, departure)
        _emit_with_gap(g, departure.finding, departure.session["rebalance_timeout_ms"], departure.passed_ms, event)
    # A static member does not leave when it is not polled in time: its session ends (KIP-345). A frozen process would first be refused
    # under its old id, a restarted one has another connection.
    for ended in view.ended:
        if ended.kind != reasons.SESSION_TIMEOUT or not ended.instance_id or ended.instance_id != event.instance_id:
            continue
        if ended.connection == connection and ended.back_ms < 0 and not silences.stopped_before_limit(ended.quiet):
            finding = _stall_of_static(g, ended, [ended.sign] if ended.sign else [])
            _emit_with_gap(g, finding, ended.rebalance_timeout_ms, silences.limit_passed_ms(ended.quiet, -1), event)


def on_logged_stall(g: Emitter, member_id: str, signs: list[Ref]) -> None:
    """The client's log reports a stalled poll loop after the coordinator's log reported that the member departed."""
    for departure in [u for u in g.view.undecided if u.member_id == member_id]:
        _decide_stalled(g, departure)
        g.emit(FINDINGS, **departure.finding)
    for ended in g.view.ended:
        if ended.member_id == member_id and ended.kind == reasons.SESSION_TIMEOUT and ended.instance_id:
            g.emit(FINDINGS, **_stall_of_static(g, ended, signs))


def blocks(g: Emitter, member_ids: set[str]) -> bool:
    """Whether the end of one of these memberships is not decided yet."""
    return any(departure.member_id in member_ids for departure in g.view.undecided)


def next_ms(g: Emitter) -> int:
    """When `close_due` has work next; NEVER if it has none."""
    undecided, stalls = g.view.undecided, g.view.poll_stalls
    if not undecided and not stalls:
        return NEVER
    return min(waiting[0].at_ms for waiting in (undecided, stalls) if waiting) + DECIDED_MS + 1


def close_due(g: Emitter, now_ms: int, *, flush: bool = False) -> None:
    """Writes the rows of clients that did not come back: they had closed. `flush`: nothing more will come."""
    undecided, stalls = g.view.undecided, g.view.poll_stalls
    while undecided and (flush or undecided[0].at_ms + DECIDED_MS < now_ms):
        g.emit(MEMBER_SESSIONS, **undecided.pop(0).session)
    while stalls and (flush or stalls[0].at_ms + DECIDED_MS < now_ms):
        g.emit(FINDINGS, **stalls.pop(0).finding)


def _decide_stalled(g: Emitter, departure: UndecidedDeparture) -> None:
    view, member_id = g.view, departure.member_id
    view.undecided.remove(departure)
    g.emit(MEMBER_SESSIONS, **{**departure.session, "end_kind": reasons.POLL_TIMEOUT})
    for rebalance in view.unfinished():
        if rebalance.cause == reasons.MEMBER_LEFT and rebalance.named == member_id:
            rebalance.cause = reasons.POLL_TIMEOUT
    for triggers in (view.unclaimed, *(rebalance.triggers for rebalance in view.unfinished())):
        for trigger in triggers:
            if trigger.member_id == member_id and trigger.cause == reasons.MEMBER_LEFT:
                trigger.cause = reasons.POLL_TIMEOUT
    for ended in view.ended:
        if ended.member_id == member_id:
            ended.kind = reasons.POLL_TIMEOUT


def _stall_of_static(g: Emitter, ended: EndedMembership, signs: list[Ref]) -> dict[str, Any]:
    """The finding that a static member's session ended because of its poll loop, in place of the session timeout's."""
    ended.kind = reasons.POLL_TIMEOUT
    g.view.pending_findings = [pending for pending in g.view.pending_findings if pending.member_id != ended.member_id]
    member = ObservedMember(ended.member_id, ended.instance_id, ended.client_id, ended.client_host)
    member.rebalance_timeout_ms = ended.rebalance_timeout_ms
    return removals.poll_timeout(g, member, ended.at_ms, signs, ended.generation)


def _emit_with_gap(g: Emitter, finding: dict[str, Any], limit_ms: int | None, passed_ms: int, event: Event) -> None:
    """Writes a POLL_TIMEOUT of a client that polls again: it did not poll for its limit, and since that had passed."""
    if limit_ms is not None and limit_ms >= 0 and 0 <= passed_ms < event.received_ms:
        finding = removals.with_poll_gap(finding, limit_ms, limit_ms + event.received_ms - passed_ms, ref(event))
    g.emit(FINDINGS, **finding)
