"""What a page shows of the entries of a report: each as data with its words, the groups that it has to do with, and the time they span."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Any, Final

from coordinator_model.diagnosis.catalogue import COORDINATOR_MOVED
from jobs.answers.attention import SEVERITIES, AttentionEntry, as_row
from jobs.answers.attention_words import AttentionWords, clients_of, cost_of
from jobs.answers.duckdb_views import Key, Row, key_of
from jobs.answers.incidents.outages import HELD_UP, broker_name
from jobs.answers.report import Overview
from jobs.common.text import many, printable
from jobs.common.times import duration, epoch_ms

_MESSAGE: Final = 1_200
_ROOM: Final = 25  # at both ends of the time that is shown: a twenty-fifth of it
_LEAST_ROOM_MS: Final = 2_000
_WITHOUT_DEPARTURE: Final = (COORDINATOR_MOVED.code, HELD_UP)


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
        """The groups that they have to do with: by its own gravest incident, then by what a broker did to it."""
        return sorted(self._of, key=lambda key: (self._place(key), key))

    def about(self, key: Key) -> list[AttentionEntry]:
        """Those that a group has to do with."""
        return [entry for _, entry in self._of.get(key, [])]

    def severity(self, key: Key) -> str:
        """The gravest of those; empty if there are none."""
        return min((entry.severity for entry in self.about(key)), key=SEVERITIES.index, default="")

    def marked(self, key: Key) -> list[Row]:
        """The findings that the lane of a group shows. What a broker did is a band through all lanes."""
        own = [entry for entry in self.about(key) if entry.incident is None]
        return [row for entry in own for row in (*entry.findings, *entry.followed_by) if key_of(row) == key]

    def _place(self, key: Key) -> int:
        own = [number for number, entry in self._of[key] if entry.incident is None]
        return min(own or [self._count + number for number, _ in self._of[key]])


def told(entry: AttentionEntry, words: AttentionWords) -> dict[str, Any]:
    """An entry as data with its words. `id`: of the row whose lines prove it."""
    return as_row(entry) | {
        "id": (entry.incident or entry.gravest)["id"],
        "subject": words.subject(entry),
        "headline": headline(entry),
        "away": trouble(entry),
        "clients": clients_of(entry) if entry.incident is None or len(entry.groups) == 1 else "",
        "outcome": words.outcome(entry),
        "message": printable(entry.message, _MESSAGE),
        "advice": printable(" ".join(entry.advice), _MESSAGE),
        "cost": cost_of(entry),
    }


def trouble(entry: AttentionEntry) -> dict[str, Any] | None:
    """When a broker was away or held up, and what that is called: a band through all lanes. None: the entry is about no broker."""
    incident = entry.incident
    if incident is None:
        return None
    what = "away" if incident["groups_moved"] else "held up"
    name = broker_name(printable(incident["broker"], 30))
    return {"from": incident["began_at"], "to": incident["back_at"] or incident["last_at"], "text": f"{name} {what}"}


def period(overview: Overview, rebalances: Iterable[Row]) -> dict[str, int]:
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


def headline(entry: AttentionEntry) -> str:
    """What happened, in one sentence: who, and for a broker how long it was away and whom that hit."""
    incident = entry.incident
    if incident is None:
        return f"{printable(entry.gravest['group_id'], 60)}: {_first_sentence(printable(entry.message, 600))}"
    removed = len(incident["members_lost"])
    lost = f"{many(removed, 'member')} {'was' if removed == 1 else 'were'} removed" if removed else ""
    message = printable(incident["message"], 600)
    if incident["cause"] in _WITHOUT_DEPARTURE:
        return _first_sentence(message).removesuffix(".") + (f"; {lost}." if lost else ".")
    away = f", back after {duration(epoch_ms(incident['back_at']) - epoch_ms(entry.first_at))}" if incident["back_at"] else ""
    moved, held_up = incident["groups_moved"], incident["groups_held_up"]
    parts = [f"at least {many(moved, 'group')} moved" if moved else "", f"{many(held_up, 'group')} had to wait" if held_up else "", lost]
    return f"{re.split(r'[:;.] ', message, maxsplit=1)[0]}{away}: {', '.join(filter(None, parts))}."


def _first_sentence(text: str) -> str:
    """A text up to the end of its first sentence."""
    return re.split(r"(?<=\.) (?=[A-Z\d])", text, maxsplit=1)[0]
