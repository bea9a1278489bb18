"""What needs attention, and the first page: all groups over time, their states, what they cost, and what all this was read from."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import timedelta
from typing import Any, Final

from jobs.answers.attention import SEVERITIES, AttentionEntry
from jobs.answers.attention_words import CLIENTS_SAY, AttentionWords, as_row, counts_of
from jobs.answers.coverage import coverage, missing
from jobs.answers.duckdb_views import Key, QuestionReader, Row, key_of
from jobs.answers.incidents.bills import known_sum
from jobs.answers.report import Report, Scope
from jobs.common.places import own_query
from jobs.common.text import printable
from jobs.common.times import EPOCH, LATEST_MS, epoch_ms, instant, is_known, iso
from jobs.dashboard.queries import asked, look_of, named, shown

_SENTENCES: Final = 1_200
_ENTRIES: Final = 200
_LANES: Final = 40
_FEW: Final = 5
_MARKS: Final = 100  # of a lane
_MARK: Final = ("id", "occurred_at", "severity", "code", "client_id", "client_host", "member_id", "message")
_SECONDS: Final = (1, 5, 10, 15, 30, 60, 300, 600, 900, 1_800, 3_600, 7_200, 21_600, 86_400, 604_800)
_NO_TIMES: Final = "the times of these lines: they have none, so they are shown in line order, without durations and rates"
_FIRST_STATES: Final = ("PreparingRebalance", "CompletingRebalance", "Reconciling", "Stable")
_COLUMNS: Final = 80  # of a chart at most
_ROOM: Final = 25  # at both ends of the time that is shown: a twenty-fifth of it
_LEAST_ROOM_MS: Final = 2_000


def scope_of(given: Mapping[str, str]) -> Scope:
    """What a page is about: cluster, group, since and until as typed."""
    return Scope(**{name: given.get(name) for name in ("cluster", "group", "since", "until")})


def attention(overview: Report) -> dict[str, Any]:
    """What needs attention, as `rebalance report` says it."""
    entries = overview.attention
    form = "{}/{}" if len(overview.clusters) > 1 else "{1}"
    words = AttentionWords(lambda at: instant(epoch_ms(at)), lambda *of: form.format(*(printable(name, 60) for name in of)), overview.ends)
    return {
        "entries": [as_row(entry) | words.of(entry) | {"settings": words.settings([entry])} for entry in entries[:_ENTRIES]],
        "all": len(entries),
        "counts": counts_of(entries),
        "calm": printable(words.calm(overview.judgement), _SENTENCES),
        "all_clear": overview.judgement.all_clear and not entries,
        "gaps": [
            {"why": printable(words.gap(gap), _SENTENCES), "next": printable(gap.next, _SENTENCES)}
            for gap in overview.judgement.gaps[:_ENTRIES]
        ],
        "clients_say": CLIENTS_SAY,
        "said": [
            {"cluster": one.cluster, "group_id": one.group_id, "text": printable(words.said(one), _SENTENCES)}
            for one in overview.said[:_ENTRIES]
        ],
        "clusters": overview.clusters,
        "outside": overview.outside,
        "hint": overview.hint,
    }


def first_page(reader: QuestionReader, overview: Report) -> dict[str, Any]:
    """The whole first page: besides what needs attention, answers of named questions, `lanes`, and the `period` they show (epoch ms)."""
    shown = attention(overview)
    if not overview.clusters:
        return shown
    given = {"cluster": overview.scope.cluster, "until": iso(overview.until) if overview.until else None}
    # The questions count back 24 h unless they are told otherwise.
    since = iso(overview.since or min(row["first_at"] for row in overview.clusters))
    few = {**given, "group": overview.scope.group, "since": since, "limit": str(_FEW)}
    lanes, rebalances = _lanes(reader, overview, {**given, "since": since, "limit": str(_LANES)})
    span = _period(overview, rebalances)
    step = next((1_000 * each for each in _SECONDS if (span["to"] - span["from"]) / (1_000 * each) <= _COLUMNS), 1_000 * _SECONDS[-1])
    first_step = iso(EPOCH + timedelta(milliseconds=span["from"] // step * step))
    activity = {**given, "group": overview.scope.group, "since": first_step, "step": f"{step}ms"}
    return {
        **shown,
        "states": _states(overview.states),
        "lanes": lanes,
        "period": span,
        "step": step,
        "activity": [{**row, "look": look_of(row["cause"])} for row in asked(reader, "activity", activity)["rows"]],
        **{name: asked(reader, name, few) for name in ("culprits", "deploys")},
        "missing": [
            *([] if all(is_known(row["first_at"]) for row in overview.clusters) else [_NO_TIMES]),
            *(printable(text, _SENTENCES) for one in coverage(reader) for text in missing(one.sources, one.begins)),
        ],
        "shown": {name: at and epoch_ms(at) for name, at in (("since", overview.since), ("until", overview.until))},
    }


def _states(rows: Sequence[Row]) -> list[Row]:
    """How many groups are in which state and protocol, and their members: those in a rebalance first, as `ask states` tells it."""
    members: dict[tuple[str, str], list[int | None]] = {}
    for row in rows:
        members.setdefault((row["state"] or "UNKNOWN", row["protocol"]), []).append(row["members"])
    return [
        {"state": state, "group_protocol": protocol, "groups": len(its), "members": known_sum(its)}
        for (state, protocol), its in sorted(members.items(), key=lambda one: ([*_FIRST_STATES, one[0][0]].index(one[0][0]), one[0]))
    ]


def _lanes(reader: QuestionReader, overview: Report, given: Mapping[str, str | None]) -> tuple[list[dict[str, Any]], list[Row]]:
    """The groups over time: those of the gravest incidents first, then those that cost most, then others. And their rebalances.

    `given`: what `ask worst` takes; it is asked where there is room for more than the groups of incidents.
    """
    incidents, scope = Incidents(overview.attention), overview.scope
    until = overview.until or EPOCH + timedelta(milliseconds=LATEST_MS)
    values = {"cluster": scope.cluster, "since": overview.since or EPOCH, "until": until, "limit": _LANES}
    groups = [key for key in incidents.groups if scope.group in (None, key[1])]
    if len(groups) < _LANES:
        others = [*asked(reader, "worst", given)["rows"], *reader.found(own_query("other_groups"), values)]
        groups += [key_of(row) for row in others if scope.group in (None, row["group_id"])]
    of: dict[Key, list[Row]] = {key: [] for key in list(dict.fromkeys(groups))[:_LANES]}
    for row in reader.found(own_query("lanes"), {**values, "groups": [group for _, group in of]}):
        of.get(key_of(row), []).append(row)
    lanes = [
        {
            "cluster": key[0],
            "group_id": key[1],
            "severity": incidents.severity(key),
            "rebalances": [shown(row) for row in rows],
            "findings": [named({name: row[name] for name in _MARK}) for row in incidents.marked(key)[:_MARKS]],
        }
        for key, rows in of.items()
    ]
    return lanes, [row for rows in of.values() for row in rows]


class Incidents:
    """The entries of a report by group."""

    def __init__(self, entries: Sequence[AttentionEntry]) -> None:
        self._of: dict[Key, list[tuple[bool, int, AttentionEntry]]] = {}  # whether a broker did it, and its place
        for place, entry in enumerate(entries):
            for key in entry.keys:
                self._of.setdefault(key, []).append((entry.incident is not None, place, entry))

    @property
    def groups(self) -> list[Key]:
        """The groups that they have to do with: those of the first entry, then by its own gravest incident, then by what a broker did."""
        return sorted(self._of, key=lambda key: (self._of[key][0][1] > 0, min(one[:2] for one in self._of[key]), key))

    def about(self, key: Key, *, own: bool = False) -> list[AttentionEntry]:
        """Those that a group has to do with. `own`: without what a broker did, which stands in the lane of the broker, and is a band."""
        return [entry for of_broker, _, entry in self._of.get(key, []) if not (own and of_broker)]

    def severity(self, key: Key) -> str:
        """The gravest of its own; empty if there are none."""
        return min((entry.severity for entry in self.about(key, own=True)), key=SEVERITIES.index, default="")

    def marked(self, key: Key) -> list[Row]:
        """The findings that the lane of a group shows, as grave as their entries."""
        found = [(entry, row) for entry in self.about(key, own=True) for row in (*entry.findings, *entry.followed_by) if key_of(row) == key]
        return [row | {"severity": entry.severity} for entry, row in found]


def _period(overview: Report, rebalances: Iterable[Row]) -> dict[str, int]:
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
        times += [entry.incident["last_at"]] if entry.incident else []
    spans = [epoch_ms(at) for at in times or [row[name] for row in rows for name in ("started_at", "ended_at")]]
    if not spans:
        return {"from": first_ms, "to": last_ms}
    room = max((max(spans) - min(spans)) // _ROOM, _LEAST_ROOM_MS)
    begin = max(min(spans) - room, first_ms)
    return {"from": begin, "to": max(min(max(spans) + room, last_ms), begin + 1_000)}
