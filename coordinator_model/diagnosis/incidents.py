"""A broker in trouble: what it does to a group is one finding, not one for each member.

When a broker is lost, the groups that it coordinated move, and every session starts again at the new coordinator. The groups of
the remaining brokers suffer too: their coordinator cannot write to __consumer_offsets until the lost replica leaves the ISR, heartbeats
wait behind commits, and sessions end although every client is well. The finding about the broker names the members that are lost in
this way. Either line may come first in the log, so the finding of a session timeout is held back for HINDSIGHT_MS.
"""

from __future__ import annotations

from typing import Any, Final

from coordinator_model import events as kinds
from coordinator_model.diagnosis import catalogue, removals
from coordinator_model.diagnosis.findings import NOBODY, emit
from coordinator_model.errors import Error
from coordinator_model.events import Event
from coordinator_model.specification.timers import NEVER
from coordinator_model.view import reasons
from coordinator_model.view.clock import BrokerClock
from coordinator_model.view.emit import Emitter
from coordinator_model.view.rows import FINDINGS, Ref, ref, refs
from coordinator_model.view.view import EndedMembership, Incident, ObservedMember, PendingFinding, client_in

HINDSIGHT_MS: Final = 10_000
SPAN_MS: Final = 60_000
"""How long a broker's trouble can affect a group: a session, and the search for the new coordinator."""
OVER_MS: Final = SPAN_MS + HINDSIGHT_MS
"""When trouble is over: the last session that it may have ended has been decided, however late anybody looks."""

GIVEN_UP_MS: Final = 20_000
"""How long after an election clients may give up the ids that they had: librdkafka waits for an answer for some seconds."""

SIGNS_KEPT: Final = 8

SLOW_MS: Final = 2_000
"""A heartbeat whose answer takes longer waits for the broker's log."""

_TROUBLE: Final = frozenset(
    {Error.REQUEST_TIMED_OUT, Error.COORDINATOR_NOT_AVAILABLE, Error.COORDINATOR_LOAD_IN_PROGRESS, Error.NOT_COORDINATOR}
)


def watch(g: Emitter, event: Event) -> None:
    """Takes a request; its answer may show that the coordinator is in trouble."""
    if event.broker != g.view.broker or event.source == "coordinator":
        return
    slow = event.kind == kinds.HEARTBEAT and event.at_ms - event.received_ms >= SLOW_MS
    if slow or (event.error_code in _TROUBLE and event.kind != kinds.TXN_OFFSET_COMMIT):
        _sign(g, event.at_ms, ref(event))


def coordinator_moved(g: Emitter, at_ms: int, from_broker: str, to_broker: str, sign: Ref) -> None:
    """Notes that another broker coordinates the group."""
    if g.view.consumer_protocol:
        return
    running = g.view.incident
    if running is not None and running.to_broker:
        close_due(g, at_ms, flush=True)
    incident = _sign(g, at_ms, sign)
    incident.moved_ms, incident.from_broker, incident.to_broker = at_ms, from_broker, to_broker


def hold_back(g: Emitter, at_ms: int, member: ObservedMember, row: dict[str, Any]) -> None:
    """Keeps the finding of a session timeout until it is known whether a broker was the reason."""
    g.view.pending_findings.append(PendingFinding(at_ms, member.seen_ms, member.member_id, row, member.abandoned))


def lost_in_a_move(g: Emitter, ended: EndedMembership) -> bool:
    """Whether the new coordinator of a group that moved did not hear the member in time."""
    moved_ms = g.view.moved_ms
    return ended.kind == reasons.SESSION_TIMEOUT and 0 <= moved_ms <= ended.at_ms <= moved_ms + SPAN_MS and ended.seen_ms <= moved_ms


def next_ms(g: Emitter) -> int:
    """When `close_due` has work next; NEVER if it has none."""
    view = g.view
    finding_ms = view.pending_findings[0].at_ms + HINDSIGHT_MS + 1 if view.pending_findings else NEVER
    return finding_ms if view.incident is None else min(finding_ms, view.incident.last_ms + OVER_MS + 1)


def close_due(g: Emitter, now_ms: int, clock: BrokerClock | None = None, *, flush: bool = False) -> None:
    """Writes what has waited long enough. `flush`: nothing more will come."""
    view = g.view
    while view.pending_findings and (flush or view.pending_findings[0].at_ms + HINDSIGHT_MS < now_ms):
        pending = view.pending_findings.pop(0)
        incident = _cause_of(g, pending, clock)
        if incident is None:
            if not pending.given_up:
                g.emit(FINDINGS, **_with_election(pending, clock))
        else:
            incident.lost.append(pending.member_id)
            for sign in refs(pending.row["evidence"])[:1]:
                _keep(incident, sign)
    running = view.incident
    if running is not None and (flush or running.last_ms + OVER_MS < now_ms):
        view.incident = None
        if running.to_broker or running.lost:
            _report(g, running)


def _report(g: Emitter, incident: Incident) -> None:
    """Another broker took the group over, or its coordinator could not hear the members for a while."""
    view = g.view
    lost = sorted(set(incident.lost))
    limits = sorted({old.session_timeout_ms for old in view.ended if old.member_id in lost and old.session_timeout_ms >= 0})
    words = {
        "what": f"The group moved from broker {incident.from_broker} to broker {incident.to_broker}."
        if incident.to_broker
        else catalogue.HELD_UP.format(broker=view.broker),
        "cost": f" {len(lost)} of its members were not heard in time and lost their place." if lost else "",
        "timeouts": f": {' and '.join(map(str, limits))} {'was' if len(limits) == 1 else 'were'} not enough" if lost and limits else "",
    }
    details = {
        "from_broker": incident.from_broker or view.broker,
        "to_broker": incident.to_broker or view.broker,
        "members_lost": lost,
        "session_timeouts_ms": limits,
    }
    at_ms = incident.moved_ms if incident.moved_ms >= 0 else incident.began_ms
    emit(g, catalogue.COORDINATOR_MOVED, at_ms, NOBODY, incident.signs, words, generation=incident.generation, **details)


def _sign(g: Emitter, at_ms: int, sign: Ref | None, generation: int | None = None) -> Incident:
    view = g.view
    running = view.incident
    if running is None or at_ms > running.last_ms + OVER_MS:
        if running is not None:
            close_due(g, at_ms)
        running = view.incident = Incident(at_ms, at_ms, generation=view.generation_at(at_ms) if generation is None else generation)
    running.last_ms = max(running.last_ms, at_ms)
    if sign is not None:
        _keep(running, sign)
    return running


def _keep(incident: Incident, sign: Ref) -> None:
    if len(incident.signs) < SIGNS_KEPT and sign not in incident.signs:
        incident.signs.append(sign)


def _cause_of(g: Emitter, pending: PendingFinding, clock: BrokerClock | None) -> Incident | None:
    """The incident that the session timeout belongs to, if any."""
    running = g.view.incident
    if running is not None and running.began_ms - HINDSIGHT_MS <= pending.at_ms <= running.last_ms + SPAN_MS:
        # A member that was heard after the trouble was over fell silent by itself. Where the group stays at its broker, one that is never
        # heard again may as well have died.
        silent_since_then = pending.seen_ms <= running.last_ms and (running.to_broker or _lived_on(g, pending, running.began_ms))
        return running if pending.given_up or silent_since_then else None
    elected_ms = clock.took_over_between(pending.at_ms - SPAN_MS, pending.at_ms + HINDSIGHT_MS) if clock is not None else -1
    if clock is None or elected_ms < 0 or not _lived_on(g, pending, elected_ms):
        return None
    if pending.seen_ms > elected_ms and not pending.given_up:
        return None
    generation = pending.row["generation"]  # its rebalance may be written, and forgotten, by now
    return _sign(g, pending.at_ms, clock.elections.get(elected_ms), -1 if generation is None else generation)


def _lived_on(g: Emitter, pending: PendingFinding, elected_ms: int) -> bool:
    """Whether the client joined under another id, as a live one does and a dead one does not. `elected_ms`: when the trouble began.

    librdkafka does so soon after its coordinator stops to answer, Java as soon as it is told that its session has ended.
    """
    asked = [(client_in(member_id, ""), issued_ms) for member_id, issued_ms in g.view.pending.items()]
    joined = [(member.client_name(), member.joined_ms) for member in g.view.members.values()]
    given_up = range(elected_ms - HINDSIGHT_MS, elected_ms + GIVEN_UP_MS)
    return any(
        client_id == pending.row["client_id"] and (since_ms >= pending.at_ms or since_ms in given_up)
        for client_id, since_ms in (*asked, *joined)
    )


def _with_election(pending: PendingFinding, clock: BrokerClock | None) -> dict[str, Any]:
    """The finding of a session timeout, with the time since the coordinator was elected where that may matter."""
    elected_ms = clock.took_over_between(pending.at_ms - SPAN_MS, pending.at_ms) if clock is not None else -1
    return removals.with_election(pending.row, pending.at_ms - elected_ms) if elected_ms >= 0 else pending.row
