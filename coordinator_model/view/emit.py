"""The object that all handlers of one group share."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Protocol

from coordinator_model.view.clock import BrokerClock
from coordinator_model.view.rows import GROUP_TRANSITIONS, Ref, evidence_json, or_none
from coordinator_model.view.settings import TrackerSettings
from coordinator_model.view.view import View


class Emitter(Protocol):
    """One group under observation: its view, the settings, the clock of its coordinator, and a place for finished rows."""

    view: View
    settings: TrackerSettings

    @property
    def clock(self) -> BrokerClock:
        """How far the log of the group's coordinator was read, and in which seconds it wrote lines."""

    def emit(self, table: str, stopped: Mapping[str, int] | None = None, **values: Any) -> None:
        """Adds a finished row."""


def write_transition(
    g: Emitter,
    at_ms: int,
    states: tuple[str, str],
    generation: int,
    trigger: str,
    signs: Iterable[Ref],
    client: Mapping[str, Any] | None = None,
) -> None:
    """Writes one change of state, from one to another. `client`: the columns of the client that caused it, if one did."""
    g.emit(
        GROUP_TRANSITIONS,
        occurred_at=at_ms,
        from_state=states[0],
        to_state=states[1],
        generation=or_none(generation),
        trigger=trigger,
        **{name: (client or {}).get(name) for name in ("member_id", "client_id", "client_host", "reason")},
        evidence=evidence_json(signs),
    )
