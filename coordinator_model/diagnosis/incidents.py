"""A broker in trouble: what it does to a group is one fact, not one for each member.

When a broker goes, the groups that it coordinated move, and every session starts again at the new coordinator. The groups of
the brokers that stay suffer too: their coordinator cannot write to __consumer_offsets until the lost replica is given up, heartbeats wait
behind commits, and sessions end although every client is well. Members that are lost so are told with the broker's
trouble. Which of the two came first in the log is a matter of chance, so a session timeout is held for HINDSIGHT_MS.
"""

from __future__ import annotations

from typing import Any, Final

from coordinator_model import events as kinds
from coordinator_model.diagnosis import findings
from coordinator_model.errors import Error
from coordinator_model.events import Event
from coordinator_model.view.clock import BrokerClock
from coordinator_model.view.emit import Emitter
from coordinator_model.view.rows import FINDINGS, Ref, ref, refs
from coordinator_model.view.view import Incident, PendingFinding

HINDSIGHT_MS: Final = 10_000
SPAN_MS: Final = 60_000
"""What a broker's trouble does to a group, it does within this time: a session, and the search for the new coordinator."""

SLOW_MS: Final = 2_000
"""A heartbeat that waits longer for its answer waits for the broker's log."""

_TROUBLE: Final = frozenset(
    {Error.REQUEST_TIMED_OUT, Error.COORDINATOR_NOT_AVAILABLE, Error.COORDINATOR_LOAD_IN_PROGRESS, Error.NOT_COORDINATOR}
)


def watch(g: Emitter, event: Event) -> None:
    """A request whose answer shows that the coordinator is in trouble."""
    if event.broker != g.view.broker or event.source == "coordinator":
        return
    slow = event.kind == kinds.HEARTBEAT and event.at_ms - event.received_ms >= SLOW_MS
    if slow or (event.error_code in _TROUBLE and event.kind != kinds.TXN_OFFSET_COMMIT):
        _sign(g, event.at_ms, ref(event))


def moved(g: Emitter, at_ms: int, from_broker: str, to_broker: str, sign: Ref) -> None:
    """Another broker coordinates the group now."""
    if g.view.consumer_protocol:
        return
    running = g.view.incident
    if running is not None and running.to_broker:
        close_due(g, at_ms, flush=True)
    incident = _sign(g, at_ms, sign)
    incident.moved_ms, incident.from_broker, incident.to_broker = at_ms, from_broker, to_broker


def hold(g: Emitter, at_ms: int, seen_ms: int, member_id: str, row: dict[str, Any]) -> None:
    """Keeps the finding of a session timeout until it is known whether a broker was the reason."""
    g.view.pending_findings.append(PendingFinding(at_ms, seen_ms, member_id, row))


def next_ms(g: Emitter) -> int | None:
    """When `close_due` has work next."""
    due = [held.at_ms + HINDSIGHT_MS + 1 for held in g.view.pending_findings[:1]]
    if g.view.incident is not None:
        due.append(g.view.incident.last_ms + SPAN_MS + 1)
    return min(due, default=None)


def close_due(g: Emitter, now_ms: int, clock: BrokerClock | None = None, *, flush: bool = False) -> None:
    """Tells what has waited long enough. `flush`: nothing more will come."""
    view = g.view
    while view.pending_findings and (flush or view.pending_findings[0].at_ms + HINDSIGHT_MS < now_ms):
        held = view.pending_findings.pop(0)
        incident = _cause_of(g, held, clock)
        if incident is None:
            g.emit(FINDINGS, **held.row)
        else:
            incident.lost.append(held.member_id)
            for sign in refs(held.row["evidence"])[:1]:
                _keep(incident, sign)
    running = view.incident
    if running is not None and (flush or running.last_ms + SPAN_MS < now_ms):
        view.incident = None
        if running.to_broker or running.lost:
            findings.coordinator_moved(g, running)


def _sign(g: Emitter, at_ms: int, sign: Ref | None) -> Incident:
    view = g.view
    running = view.incident
    if running is None or at_ms > running.last_ms + SPAN_MS:
        if running is not None:
            close_due(g, at_ms)
        running = view.incident = Incident(at_ms, at_ms)
    running.last_ms = max(running.last_ms, at_ms)
    if sign is not None:
        _keep(running, sign)
    return running


def _keep(incident: Incident, sign: Ref) -> None:
    if len(incident.signs) < findings.SIGNS_KEPT and sign not in incident.signs:
        incident.signs.append(sign)


def _cause_of(g: Emitter, held: PendingFinding, clock: BrokerClock | None) -> Incident | None:
    running = g.view.incident
    if running is not None and running.began_ms - HINDSIGHT_MS <= held.at_ms <= running.last_ms + SPAN_MS:
        # Who was heard after the trouble was over fell silent by itself.
        return running if held.seen_ms <= running.last_ms else None
    elected_ms = clock.took_over_between(held.at_ms - SPAN_MS, held.at_ms + HINDSIGHT_MS) if clock is not None else -1
    if clock is None or elected_ms < 0:
        return None
    line = clock.elections.get(elected_ms)
    return _sign(g, held.at_ms, Ref(*line) if line is not None else None)
