"""The incidents of a page by number, which of them each group has to do with, and the sentence that a page begins with."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Final, NamedTuple

from coordinator_model.diagnosis.catalogue import COORDINATOR_MOVED
from jobs.answers.attention import SEVERITIES, AttentionEntry
from jobs.answers.duckdb_views import Key, Row, key_of
from jobs.answers.incidents.outages import HELD_UP, broker_name
from jobs.answers.report import Overview
from jobs.common.text import many, printable
from jobs.common.times import duration, epoch_ms
from jobs.report_page.axis import Axis, covering

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

    def marked(self, key: Key) -> list[tuple[int, Row]]:
        """The findings that a lane of a group shows, each with its incident. What a broker did is a band through all lanes."""
        about = [(number, entry) for number, entry in self.about(key) if entry.incident is None]
        return [(number, row) for number, entry in about for row in (*entry.findings, *entry.followed_by) if key_of(row) == key]


class Trouble(NamedTuple):
    """When a broker was away or held up, and what that is called."""

    began_at: datetime
    ended_at: datetime
    text: str


_ROOM: Final = 25  # at both ends of the axis: a twenty-fifth of it
_WITHOUT_DEPARTURE: Final = (COORDINATOR_MOVED.code, HELD_UP)


def trouble(entry: AttentionEntry) -> Trouble | None:
    """What a band through all lanes shows. None: the entry is about no broker."""
    incident = entry.incident
    if incident is None:
        return None
    what = "away" if incident["groups_moved"] else "held up"
    ended_at = incident["back_at"] or incident["last_at"]
    return Trouble(incident["began_at"], ended_at, f"{broker_name(printable(incident['broker'], 30))} {what}")


def axis_of(overview: Overview, entries: Iterable[AttentionEntry], rebalances: Iterable[Row], cluster: str | None = None) -> Axis:
    """The time in which something happened, within that of the data and of the report: what needs attention, and rebalances.

    Start-ups count if there is nothing else. `cluster`: only what is of it.
    """
    spans = [(row["first_at"], row["last_at"]) for row in overview.clusters if cluster in (None, row["cluster"])]
    first_at = max(filter(None, (min(first for first, _ in spans), overview.since)))
    last_at = min(filter(None, (max(last for _, last in spans), overview.until)))
    whole = Axis(epoch_ms(first_at), max(epoch_ms(last_at), epoch_ms(first_at) + 1_000))
    rows = [row for row in rebalances if cluster in (None, row["cluster"])]
    times = [row[name] for row in rows if not row["startup"] for name in ("started_at", "ended_at")]
    for entry in (one for one in entries if cluster in (None, one.gravest["cluster"])):
        times += [entry.first_at, *(row["occurred_at"] for row in (*entry.findings, *entry.followed_by))]
        times += [band.ended_at] if (band := trouble(entry)) else []
    times = times or [row[name] for row in rows for name in ("started_at", "ended_at")]
    return covering(epoch_ms(min(times)), epoch_ms(max(times)), whole, room=_ROOM) if times else whole


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
    parts = [f"{many(moved, 'group')} moved" if moved else "", f"{many(held_up, 'group')} had to wait" if held_up else "", lost]
    return f"{re.split(r'[:;.] ', message, maxsplit=1)[0]}{away}: {', '.join(filter(None, parts))}."


def _first_sentence(text: str) -> str:
    """A text up to the end of its first sentence."""
    return re.split(r"(?<=\.) (?=[A-Z\d])", text, maxsplit=1)[0]
