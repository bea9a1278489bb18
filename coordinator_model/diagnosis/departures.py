"""Members that left without giving a reason: closed by their application, or removed from it by a stalled poll loop.

A Java client gives its reason (KIP-800), librdkafka and older clients do not. Later lines decide: a client that closed never uses its
connection again; one whose poll loop stalled asks for a new member id on it as soon as it polls again. A client that committed just
before it left has closed, since a stalled one cannot commit. The client's own log, where it is read, says it outright.
"""

from __future__ import annotations

from typing import Final

from coordinator_model.diagnosis import removals, silences
from coordinator_model.events import COORDINATOR_SOURCE, Event
from coordinator_model.specification.timers import NEVER
from coordinator_model.view import reasons
from coordinator_model.view.emit import Emitter
from coordinator_model.view.members import EndedMembership
from coordinator_model.view.rows import MEMBER_SESSIONS, Ref, ref

DECIDED_MS: Final = 30_000
"""A client that has not come back by then counts as closed."""

CLOSING_COMMIT_MS: Final = 1_000


def departed(g: Emitter, one: EndedMembership, event: Event | None, reason: str) -> None:
    """Writes the row of an ended membership, unless only later lines can show how it ended: of its client, or the LeaveGroup request.

    `event`: the line that ended it. `reason`: the client's.
    """
    is_named = one.member_id in g.view.client_names.values()
    is_followed = bool(one.connection) or is_named
    unexplained = one.kind == reasons.LEFT and not reason and not one.instance_id
    may_have_stalled = unexplained and is_followed and one.commit_ms < one.at_ms - CLOSING_COMMIT_MS
    waits_for_request = event is not None and event.source == COORDINATOR_SOURCE and one.sessions_seen
    if (
        may_have_stalled
        or (one.kind == reasons.SESSION_TIMEOUT and bool(one.instance_id) and is_named)
        or (one.kind == reasons.LEFT and waits_for_request and reason not in reasons.CLIENT_LIBRARY_REASONS)
    ):
        g.view.undecided.append(one.changed(may_have_stalled=may_have_stalled))
    else:
        _write(g, one, one.kind)


def _write(g: Emitter, one: EndedMembership, kind: str) -> None:
    g.emit(MEMBER_SESSIONS, **one.session(one.at_ms, kind, one.signs, is_heard=one.sessions_seen, joined_ms=one.came_ms()))


def stall_of(one: EndedMembership) -> EndedMembership:
    """The facts about a poll loop that stalled: its member left then, or fell silent."""
    return one.changed(passed_ms=silences.limit_passed_ms(one, one.at_ms))


def hold_back_stall(g: Emitter, stalled: EndedMembership) -> None:
    """Keeps what is known of a stalled poll loop until the client polls again, which shows for how long it did not."""
    if stalled.connection and stalled.rebalance_timeout_ms >= 0:
        g.view.poll_stalls.append(stalled)
    else:
        removals.poll_timeout(g, stalled)


def polls_again(g: Emitter, connection: str, event: Event) -> None:
    """A line shows that the client of this connection, whose poll loop had stalled, polls again."""
    for stalled in [one for one in g.view.poll_stalls if one.connection == connection]:
        g.view.poll_stalls.remove(stalled)
        removals.poll_timeout(g, stalled, event)


def on_join_without_id(g: Emitter, event: Event) -> None:
    """A JoinGroup without a member id: on the connection of a member that departed, it shows a stalled poll loop."""
    view, connection = g.view, event.connection
    polls_again(g, connection, event)
    for departure in [one for one in view.undecided if one.may_have_stalled and one.connection == connection != ""]:
        _decide(g, departure, reasons.POLL_TIMEOUT, event)
    # A static member does not leave when it is not polled in time: its session ends (KIP-345). A frozen process would first be refused
    # under its old id, a restarted one has another connection.
    for ended in view.ended:
        if ended.kind != reasons.SESSION_TIMEOUT or ended.stalled or not ended.instance_id or ended.instance_id != event.instance_id:
            continue
        if ended.connection == connection and ended.back_ms < 0 and not silences.stopped_before_limit(ended):
            removals.poll_timeout(g, _stall_of_static(g, ended, ended.signs[:1]), event)


def on_late_commit(g: Emitter, event: Event) -> None:
    """A commit on the connection of a member that had departed: a client that closed would not use it again."""
    for departure in _of(g, event.member_id):
        on_its_connection = departure.may_have_stalled and departure.connection == event.connection != ""
        if on_its_connection and event.received_ms > departure.at_ms + CLOSING_COMMIT_MS:
            _decide(g, departure, reasons.POLL_TIMEOUT, event)


def on_logged_stall(g: Emitter, member_id: str, event: Event) -> None:
    """The client's log reports a stalled poll loop after the coordinator's log reported that the member departed."""
    for departure in [u for u in _of(g, member_id) if u.may_have_stalled]:
        _decide(g, departure, reasons.POLL_TIMEOUT)
    for ended in g.view.ended:
        if ended.member_id == member_id and ended.kind == reasons.SESSION_TIMEOUT and ended.instance_id and not ended.stalled:
            ended.says_it_stalled(event)
            removals.poll_timeout(g, _stall_of_static(g, ended, [ref(event)]))
            for departure in _of(g, member_id):
                _decide(g, departure, reasons.POLL_TIMEOUT)


def blocks(g: Emitter, member_ids: set[str]) -> bool:
    """Whether the end of one of these memberships is not decided yet."""
    return not undecided(g).isdisjoint(member_ids)


def undecided(g: Emitter) -> set[str]:
    """The members of which it is not decided yet how they departed."""
    return {departure.member_id for departure in g.view.undecided}


def _of(g: Emitter, member_id: str) -> list[EndedMembership]:
    return [departure for departure in g.view.undecided if departure.member_id == member_id]


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
        one = undecided.pop(0)
        _write(g, one, one.kind)
    while stalls and (flush or stalls[0].at_ms + DECIDED_MS < now_ms):
        removals.poll_timeout(g, stalls.pop(0))


def on_leave_request(g: Emitter, member_id: str, *, by_admin: bool) -> None:
    """The LeaveGroup of a departure that the coordinator's log reported first: the sender is the member itself, or another client."""
    for departure in _of(g, member_id):
        if by_admin:
            _decide(g, departure, reasons.ADMIN_REMOVED)
        elif not departure.may_have_stalled:
            _decide(g, departure, departure.kind)


def _decide(g: Emitter, departure: EndedMembership, kind: str, back: Event | None = None) -> None:
    """Writes how a membership ended. The cause of the rebalance that this began follows from it (causes.corrected)."""
    g.view.undecided.remove(departure)
    _write(g, departure, kind)
    for ended in g.view.ended:
        if ended.member_id == departure.member_id:
            ended.kind = kind
    if departure.may_have_stalled and kind == reasons.POLL_TIMEOUT:
        removals.poll_timeout(g, stall_of(departure), back)


def _stall_of_static(g: Emitter, ended: EndedMembership, signs: list[Ref]) -> EndedMembership:
    """A static member's session ended because of its poll loop: that is told in place of the session timeout."""
    ended.stalled = True
    g.view.silences = [silence for silence in g.view.silences if silence.member_id != ended.member_id]
    return stall_of(ended).changed(signs=signs)
