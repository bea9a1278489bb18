"""Where a group lives: what FIND_COORDINATOR answers against who speaks for the group.

Any broker answers FIND_COORDINATOR, from a copy of the metadata that may be ahead of the coordinator's own log or behind
it. So a broker is accused only between two answers that name the same other node, the second one GUARD_MS later, with none
between them that names its own. Which node a log belongs to is known from the coordinator lines in it, or from the address
at which its broker was asked.
"""

from __future__ import annotations

from typing import Final

from coordinator_model.diagnosis import divergences
from coordinator_model.errors import Error
from coordinator_model.events import Event
from coordinator_model.view.emit import Emitter
from coordinator_model.view.rows import ref
from coordinator_model.view.view import FoundCoordinator, Suspect

GUARD_MS: Final = 5_000
AMBIGUOUS: Final = -1


def found(g: Emitter, event: Event) -> None:
    """FIND_COORDINATOR was answered."""
    view = g.view
    if event.error_code != Error.NONE or event.coordinator_id < 0:
        return
    suspect = view.suspect
    if suspect is not None:
        if view.found_coordinator is None or event.coordinator_id != view.found_coordinator.node:
            view.suspect = None
        elif event.received_ms > suspect.at_ms + GUARD_MS:
            divergences.not_the_coordinator(g, suspect, view.found_coordinator, ref(event))
            view.suspect = None
    view.found_coordinator = FoundCoordinator(event.coordinator_id, event.coordinator_address, event.at_ms, ref(event))


def spoke(g: Emitter, event: Event) -> None:
    """A broker answered for the group, as its coordinator does."""
    view = g.view
    if event.coordinator_id >= 0:
        _learn(g, event.broker, event.coordinator_id)
    if view.found_coordinator is None:
        return
    if view.found_coordinator.address and event.connection.startswith(view.found_coordinator.address + "-"):
        _learn(g, event.broker, view.found_coordinator.node)
    node = view.nodes.get(event.broker, AMBIGUOUS)
    if (
        node in (AMBIGUOUS, view.found_coordinator.node)
        or event.received_ms <= view.found_coordinator.at_ms
        or event.source == "coordinator"
    ):
        return
    if view.suspect is None:
        view.suspect = Suspect(
            event.at_ms, node, event.broker, event.kind, event.member_id, event.client_id, event.client_host, event.error_code, ref(event)
        )


def moved(g: Emitter) -> None:
    """The coordinator loaded the group: what was found before is out of date."""
    g.view.found_coordinator = g.view.suspect = None


def _learn(g: Emitter, broker: str, node: int) -> None:
    nodes = g.view.nodes
    if nodes.setdefault(broker, node) != node or any(n == node for b, n in nodes.items() if b != broker):
        nodes[broker] = AMBIGUOUS
