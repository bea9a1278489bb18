"""The incidents of a page by number, and which of them each group has to do with."""

from __future__ import annotations

from collections.abc import Sequence

from jobs.answers.attention import SEVERITIES, AttentionEntry
from jobs.answers.duckdb_views import Key

Numbered = tuple[int, AttentionEntry]
"""An entry of the report with its place in it, from 1."""


class Incidents:
    """The entries that a page shows."""

    def __init__(self, entries: Sequence[AttentionEntry]) -> None:
        self.numbered: list[Numbered] = list(enumerate(entries, 1))
        self._of: dict[Key, list[Numbered]] = {}
        for number, entry in self.numbered:
            for group in entry.groups:
                self._of.setdefault((entry.gravest["cluster"], group), []).append((number, entry))

    def about(self, key: Key) -> list[Numbered]:
        """Those that a group has to do with."""
        return self._of.get(key, [])

    def severity(self, key: Key) -> str:
        """The gravest of those; empty if there are none."""
        return min((entry.severity for _, entry in self.about(key)), key=SEVERITIES.index, default="")

    def place(self, key: Key) -> int:
        """Where a group stands among others: by its own gravest incident, then by a broker's outage, then those without any."""
        own = [number for number, entry in self.about(key) if entry.incident is None]
        after = len(self.numbered)
        return min(own or [after + number for number, _ in self.about(key)] or [2 * after + 1])
