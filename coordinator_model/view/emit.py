"""The object that all handlers of one group share."""

from __future__ import annotations

from typing import Any, Protocol

from coordinator_model.view.settings import TrackerSettings
from coordinator_model.view.view import View


class Emitter(Protocol):
    """One group under observation: its view, the settings, and a place for finished rows."""

    view: View
    settings: TrackerSettings

    def emit(self, table: str, **values: Any) -> None:
        """Adds a finished row."""
