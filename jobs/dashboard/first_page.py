"""What needs attention, and the first page: all groups over time, their states, what they cost, and what all this was read from."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import Any, Final

from jobs.answers.attention_words import CLIENTS_SAY, AttentionWords, as_row, counts_of
from jobs.answers.coverage import coverage, missing
from jobs.answers.duckdb_views import QuestionReader, Row, key_of
from jobs.answers.report import Report, Scope
from jobs.common.places import own_query
from jobs.common.text import printable
from jobs.common.times import EPOCH, LATEST_MS, epoch_ms, instant, is_known, iso
from jobs.dashboard.incidents import Incidents, period
from jobs.dashboard.queries import asked, look_of, named, shown

_SENTENCES: Final = 1_200
_ENTRIES: Final = 200
_LANES: Final = 40
_FEW: Final = 5
_MARKS: Final = 100  # of a lane
_MARK: Final = ("id", "occurred_at", "severity", "code", "client_id", "client_host", "member_id", "message")
_SECONDS: Final = (1, 5, 10, 15, 30, 60, 300, 600, 900, 1_800, 3_600, 7_200, 21_600, 86_400, 604_800)
_NO_TIMES: Final = "the times of these lines: they have none, so they are shown in line order, without durations and rates"
_COLUMNS: Final = 80  # of a chart at most


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
    worst = asked(reader, "worst", {**given, "since": since, "limit": str(_LANES)})
    lanes, rebalances = _lanes(reader, overview, worst["rows"])
    span = period(overview, rebalances)
    step = next((1_000 * each for each in _SECONDS if (span["to"] - span["from"]) / (1_000 * each) <= _COLUMNS), 1_000 * _SECONDS[-1])
    first_step = iso(EPOCH + timedelta(milliseconds=span["from"] // step * step))
    activity = {**given, "group": overview.scope.group, "since": first_step, "step": f"{step}ms"}
    return {
        **shown,
        "states": asked(reader, "states", given)["rows"],
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


def _lanes(reader: QuestionReader, overview: Report, worst: Sequence[Row]) -> tuple[list[dict[str, Any]], list[Row]]:
    """The groups over time: those of the gravest incidents first, then those that cost most, then others. And their rebalances."""
    incidents = Incidents(overview.attention)
    until = overview.until or EPOCH + timedelta(milliseconds=LATEST_MS)
    scope = overview.scope
    values = {"cluster": scope.cluster, "since": overview.since or EPOCH, "until": until, "limit": _LANES}
    others = [*worst, *reader.found(own_query("other_groups"), values)]
    chosen = (key for key in (*incidents.groups, *map(key_of, others)) if scope.group in (None, key[1]))
    keys = list(dict.fromkeys(chosen))[:_LANES]
    rows = [row for row in reader.found(own_query("lanes"), {**values, "groups": [group for _, group in keys]}) if key_of(row) in set(keys)]
    lanes = [
        {
            "cluster": key[0],
            "group_id": key[1],
            "severity": incidents.severity(key),
            "rebalances": [shown(row) for row in rows if key_of(row) == key],
            "findings": [named({name: row[name] for name in _MARK}) for row in incidents.marked(key)[:_MARKS]],
        }
        for key in keys
    ]
    return lanes, rows
