"""What a page shows of the entries of a report: the groups that they have to do with, and the time they span."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from jobs.answers.attention import SEVERITIES, AttentionEntry
from jobs.answers.attention_words import trouble
from jobs.answers.duckdb_views import Key, Row, key_of
from jobs.answers.report import Report
from jobs.common.times import epoch_ms

_ROOM: Final = 25  # at both ends of the time that is shown: a twenty-fifth of it
_LEAST_ROOM_MS: Final = 2_000


class Incidents:
    """The entries of a report by group."""

    def __init__(self, entries: Sequence[AttentionEntry]) -> None:
        self._count = len(entries)
        self._of: dict[Key, list[tuple[int, AttentionEntry]]] = {}
        for number, entry in enumerate(entries, 1):
            for group in entry.groups:
                self._of.setdefault((entry.gravest["cluster"], group), []).append((number, entry))

    @property
    def groups(self) -> list[Key]:
        """The groups that they have to do with: those of the first entry, then by its own gravest incident, then by what a broker did."""
        return sorted(self._of, key=lambda key: (self._of[key][0][0] != 1, self._place(key), key))

    def about(self, key: Key) -> list[AttentionEntry]:
        """Those that a group has to do with."""
        return [entry for _, entry in self._of.get(key, [])]

    def severity(self, key: Key) -> str:
        """The gravest of its own; empty if there are none. What a broker did stands in the lane of the broker."""
        return min((entry.severity for entry in self.about(key) if entry.incident is None), key=SEVERITIES.index, default="")

    def marked(self, key: Key) -> list[Row]:
        """The findings that the lane of a group shows, as grave as their entries. What a broker did is a band."""
        own = [entry for entry in self.about(key) if entry.incident is None]
        found = [(entry, row) for entry in own for row in (*entry.findings, *entry.followed_by) if key_of(row) == key]
        return [row | {"severity": entry.severity} for entry, row in found]

    def _place(self, key: Key) -> int:
        own = [number for number, entry in self._of[key] if entry.incident is None]
        return min(own or [self._count + number for number, _ in self._of[key]])


def period(overview: Report, rebalances: Iterable[Row]) -> dict[str, int]:
    """The time in which something happened, epoch ms, within that of the data and of the report: what needs attention, and rebalances.

    Start-ups count if there is nothing else.
    """
    first_at = max(filter(None, (min(row["first_at"] for row in overview.clusters), overview.since)))
    last_at = min(filter(None, (max(row["last_at"] for row in overview.clusters), overview.until)))
    first_ms, last_ms = epoch_ms(first_at), max(epoch_ms(last_at), epoch_ms(first_at) + 1_000)
    rows = list(rebalances)
    times = [row[name] for row in rows if not row["startup"] for name in ("started_at", "ended_at")]
    for entry in overview.attention:
        times += [entry.first_at, *(row["occurred_at"] for row in (*entry.findings, *entry.followed_by))]
        times += [band["to"]] if (band := trouble(entry)) else []
    spans = [epoch_ms(at) for at in times or [row[name] for row in rows for name in ("started_at", "ended_at")]]
    if not spans:
        return {"from": first_ms, "to": last_ms}
    room = max((max(spans) - min(spans)) // _ROOM, _LEAST_ROOM_MS)
    begin = max(min(spans) - room, first_ms)
    return {"from": begin, "to": max(min(max(spans) + room, last_ms), begin + 1_000)}
