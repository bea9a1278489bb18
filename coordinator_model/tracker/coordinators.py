"""Compares the coordinator that FIND_COORDINATOR names with the broker that answers for the group.

Any broker answers FIND_COORDINATOR, from a copy of the metadata that may be ahead of the coordinator's own log or behind it. So a
broker is reported only between two answers that name the same other node, the second one GUARD_MS later, and without an answer in
between that names the broker's own node. All three stand in one log: before and after mean nothing by the clocks of two brokers, and a
folder may hold the logs of several. The coordinator lines of a log show its node, as does the address of the connection.
"""

from __future__ import annotations

from typing import Final

from coordinator_model.diagnosis import divergences
from coordinator_model.errors import Error
from coordinator_model.events import COORDINATOR_SOURCE, Event
from coordinator_model.view.emit import Emitter

GUARD_MS: Final = 5_000
AMBIGUOUS: Final = -1


def on_find_coordinator(g: Emitter, event: Event) -> None:
    """Takes an answer to FIND_COORDINATOR."""
    view = g.view
    if event.error_code != Error.NONE or event.coordinator_id < 0:
        return
    suspect = view.suspect
    if suspect is not None:
        if view.found_coordinator is None or event.coordinator_id != view.found_coordinator.coordinator_id:
            view.suspect = None
        elif event.origin == suspect.origin and event.received_ms > suspect.at_ms + GUARD_MS:
            divergences.not_the_coordinator(g, suspect, view.found_coordinator, event)
            view.suspect = None
    view.found_coordinator = event


def on_answer(g: Emitter, event: Event) -> None:
    """Takes an answer for the group, as its coordinator gives it."""
    view, found = g.view, g.view.found_coordinator
    if event.coordinator_id >= 0:
        _learn(g, event.broker, event.coordinator_id)
    if found is None:
        return
    if found.coordinator_address and event.connection.startswith(found.coordinator_address + "-"):
        _learn(g, event.broker, found.coordinator_id)
    node = view.nodes.get(event.broker, AMBIGUOUS)
    if node in (AMBIGUOUS, found.coordinator_id) or event.source == COORDINATOR_SOURCE:
        return
    if view.suspect is None and event.origin == found.origin and event.received_ms > found.at_ms:
        view.suspect = event._replace(coordinator_id=node)


def forget(g: Emitter) -> None:
    """Drops the answers so far: a broker loaded the group, so they are out of date."""
    g.view.found_coordinator = g.view.suspect = None


def _learn(g: Emitter, broker: str, node: int) -> None:
    nodes = g.view.nodes
    if nodes.setdefault(broker, node) != node or any(n == node for b, n in nodes.items() if b != broker):
        nodes[broker] = AMBIGUOUS
