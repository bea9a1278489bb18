"""What needs attention, the pipeline's health and the lines of evidence: what `report`, `health` and `evidence` print, for pages."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from datetime import timedelta
from typing import Any, Final

from jobs.answers.attention import SEVERITIES, AttentionEntry
from jobs.answers.attention_words import AttentionWords, clients_of, cost_of
from jobs.answers.duckdb_views import Key, QuestionReader, Row, key_of
from jobs.answers.evidence import prove
from jobs.answers.report import Overview, Scope, read_overview
from jobs.common.errors import EvidenceError, LakehouseError
from jobs.common.text import printable
from jobs.common.times import EPOCH, LATEST_MS
from jobs.dashboard.encoding import encoded
from jobs.dashboard.queries import LANES, WORST
from jobs.dashboard.store import Reply, Store
from jobs.health import reading, verdict
from jobs.lakehouse.folder import known_inputs
from jobs.report_page import families
from jobs.report_page.incidents import Incidents, axis_of, headline, trouble

_LINE_CHARS = 2_000  # of a log line, as in `rebalance evidence`
_ENTRIES = 200
_LANES = 40
_MARKS = 100  # of a lane
_MARK: Final = ("id", "occurred_at", "severity", "code", "client_id", "client_host", "member_id", "message")


def attention(store: Store, given: Mapping[str, str]) -> Reply:
    """What needs attention, as `rebalance report` says it, and what it counts. `given`: cluster, group, since, until as typed there."""
    scope = Scope(**{name: given.get(name) for name in ("cluster", "group", "since", "until")})

    def compute(reader: QuestionReader) -> dict[str, Any]:
        overview = read_overview(reader, scope)
        many = len(overview.clusters) > 1
        words = AttentionWords(str, lambda cluster, name: (f"{printable(cluster, 30)}/" if many else "") + printable(name, 60))
        return {
            "entries": [_entry(entry, words) for entry in overview.attention[:_ENTRIES]],
            "all": len(overview.attention),
            "counts": {severity: sum(entry.severity == severity for entry in overview.attention) for severity in SEVERITIES},
            "calm": printable(words.calm(overview.judgement), 1_200),
            "all_clear": overview.judgement.all_clear and not overview.attention,
            "gaps": [
                {"why": printable(words.gap(gap), 1_200), "next": printable(gap.next, 1_200)} for gap in overview.judgement.gaps[:_ENTRIES]
            ],
            "clusters": overview.clusters,
            "headline": headline(overview.attention[0]) if overview.attention else "",
            **({} if scope.group or not overview.clusters else _lanes(reader, overview)),
            "outside": overview.outside,
            "hint": overview.hint,
        }

    return store.reply(("attention", *sorted(given.items())), compute)


def _lanes(reader: QuestionReader, overview: Overview) -> dict[str, Any]:
    """The groups over time, that of the gravest incident first, and from when to when something happened to them."""
    incidents = Incidents(overview.attention)
    about = {(entry.gravest["cluster"], group) for entry in overview.attention for group in entry.groups}
    keys = sorted(about, key=lambda key: (incidents.place(key), key))[:_LANES]
    until = overview.until or EPOCH + timedelta(milliseconds=LATEST_MS)
    values = {"cluster": overview.scope.cluster, "since": overview.since or EPOCH, "until": until, "limit": _LANES}
    if len(keys) < _LANES:
        keys = [*keys, *(key for row in reader.found(WORST, values) if (key := key_of(row)) not in about)][:_LANES]
    rows = reader.found(LANES, {**values, "groups": [group for _, group in keys]})
    spans: dict[Key, list[Row]] = {key: [] for key in keys}
    for row in rows:
        if key_of(row) in spans:
            spans[key_of(row)].append({**row, "look": families.of_rebalance(row).name})
    lanes = [
        {
            "cluster": key[0],
            "group_id": key[1],
            "severity": incidents.severity(key),
            "rebalances": own,
            "findings": [{name: row[name] for name in _MARK} for _, row in incidents.marked(key)[:_MARKS]],
        }
        for key, own in spans.items()
    ]
    axis = axis_of(overview, overview.attention, rows)
    return {"lanes": lanes, "period": {"from": axis.first_ms, "to": axis.last_ms}}


def _entry(entry: AttentionEntry, words: AttentionWords) -> dict[str, Any]:
    row = entry.gravest
    return {
        "id": row["id"],
        "ids": sorted(entry.ids),
        "severity": entry.severity,
        "code": entry.code,
        "cluster": row["cluster"],
        "groups": entry.groups,
        "subject": words.subject(entry),
        "away": {"from": band.began_at, "to": band.ended_at, "text": band.text} if (band := trouble(entry)) else None,
        "clients": clients_of(entry) if entry.incident is None or len(entry.groups) == 1 else "",
        "first_at": entry.first_at,
        "last_at": max(entry.first_at, entry.findings[-1]["occurred_at"]),
        "times": len(entry.findings),
        "message": printable(entry.message, 1_200),
        "advice": printable(" ".join(entry.advice), 1_200),
        "cost": cost_of(entry.bill) if entry.bill.rebalances else "",
        **entry.bill._asdict(),
    }


def health(store: Store, now_ms: int) -> Reply:
    """The verdict of `rebalance health`. `now_ms`: this machine's clock."""
    limits = verdict.Limits()
    try:
        seen = reading.read(store.folder, now_ms)
        problems = verdict.problems(seen, limits)
    except LakehouseError as error:
        return Reply(encoded({"ok": None, "summary": printable(str(error), 600), "problems": []}))
    summary = "" if problems else reading.summary(seen, limits)
    rows = seen.recent(limits)
    return Reply(
        encoded(
            {
                "ok": not problems,
                "running": seen.running,
                "summary": summary,
                "problems": [asdict(problem) for problem in problems],
                "batches": [
                    {name: getattr(row, name) for name in ("occurred_at", "query", "duration_ms", "input_rows", "lag_ms")}
                    for row in rows[-60:]
                ],
            }
        )
    )


def evidence(store: Store, row_id: str) -> Reply:
    """The lines that prove a row, as `rebalance evidence` finds them."""

    def compute(_: object) -> dict[str, Any]:
        try:
            proven = prove(store.folder, row_id, known_inputs(store.folder))
        except EvidenceError as error:
            return {"lines": [], "problem": printable(str(error), 600)}
        lines = [
            {
                "source": line.source,
                "place": f"{printable(line.origin)}:{line.position}",
                "file": printable(line.file.name) if line.file is not None else None,
                "text": printable(line.text, _LINE_CHARS) if line.text is not None else None,
            }
            for row in proven
            for line in row.lines
        ]
        return {"lines": lines}

    return store.reply(("evidence", row_id), compute)
