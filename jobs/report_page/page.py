"""Renders a report as one HTML page that needs nothing else: styles, pictures and the small script are in it.

Names from logs pass through jobs/common/text.py, which shows invisible characters as escapes; Jinja2 escapes all that is put into the page.
A policy in its head lets the browser load nothing, and run this script alone.
"""

from __future__ import annotations

import base64
import hashlib
import json
from collections import Counter
from collections.abc import Sequence
from datetime import datetime
from functools import cache
from itertools import groupby
from pathlib import Path
from typing import Any, Final

from jinja2 import Environment, PackageLoader, StrictUndefined, select_autoescape
from markupsafe import escape

from jobs.answers.attention import SEVERITIES, AttentionEntry
from jobs.answers.attention_words import CLIENTS_SAY, NOUNS, AttentionWords, clients_of, cost_of
from jobs.answers.coverage import missing
from jobs.answers.duckdb_views import Key, Row, key_of
from jobs.answers.open_rebalances import waits_note
from jobs.answers.report import Report
from jobs.answers.rounds import CLASSIC, in_words
from jobs.common.text import printable, who
from jobs.common.times import duration, epoch_ms, instant
from jobs.report_page import families
from jobs.report_page.incidents import Incidents, axis_of, headline
from jobs.report_page.pictures import Pictures, culprit, legend_of
from jobs.report_page.rows import PROVEN, PageRows, proven_of, read_rows

_LINES_BYTES: Final = 800_000  # of log lines on a page; `rebalance evidence` has the others
_LINE_CHARS: Final = 2_000  # of one, as in `rebalance evidence`
_SENTENCES: Final = 1_200
_FIRST: Final = 8  # incidents in the list at the top


class Budget:
    """How many bytes of log lines may still be shown."""

    def __init__(self) -> None:
        self._left = _LINES_BYTES

    def take(self, text: str) -> bool:
        """Whether there is room for a line."""
        size = len(escape(text).encode("utf-8", "backslashreplace"))
        fits = size <= self._left
        self._left -= size if fits else 0
        return fits


def render_page(lakehouse: Path, report: Report, inputs: Sequence[Path], *, limit: int, why_empty: str = "") -> str:
    """The page. `inputs`: where logs were read from; `limit`: rows of each list; `why_empty`: what is said in the place of all."""
    empty = why_empty or report.outside
    entries = [] if empty else report.attention[:limit]
    incidents = Incidents(entries)
    busy = [row for row in report.groups if incidents.about(key_of(row)) or row["rebalances"] > row["startups"]]
    groups = [] if empty else busy[:limit]
    keys = [key_of(row) for row in groups]
    rows = read_rows(lakehouse, report, keys, entries, inputs)
    return _Page(rows, incidents, groups, limit).html(empty)


class _Page:
    """What the template shows, made of rows."""

    def __init__(self, rows: PageRows, incidents: Incidents, groups: Sequence[Row], limit: int) -> None:
        self._rows, self._incidents, self._groups, self._limit = rows, incidents, groups, limit
        self._report = rows.report
        self._many_clusters = len({row["cluster"] for row in self._report.groups}) > 1
        days = {row[name].date() for row in self._report.clusters for name in ("first_at", "last_at") if row[name] is not None}
        self._one_day = len(days) == 1
        self._group_ids = {key_of(row): f"g{number}" for number, row in enumerate(groups, 1)}
        self._rebalance_ids: dict[str, str] = {}
        shown_groups = set(self._group_ids)
        for row in self._report.rebalances:
            if key_of(row) in shown_groups:
                self._rebalance_ids.setdefault(row["id"], f"r{len(self._rebalance_ids) + 1}")
        self._pictures = Pictures(rows, incidents, self._time, self._group_ids, self._rebalance_ids)
        entries = [entry for _, entry in incidents.numbered]
        self._axes = {
            name: axis_of(self._report, entries, self._report.rebalances, name)
            for name in (row["cluster"] for row in self._report.clusters)
        }
        self._words = AttentionWords(self._time, self._name)
        self._budget = Budget()

    def html(self, empty: str) -> str:
        """The whole page."""
        script = _file("page.js")
        clusters = [self._cluster(row) for row in self._report.clusters[: self._limit]]
        incidents = [self._incident(number, entry) for number, entry in self._incidents.numbered]
        groups = [self._group(row) for row in self._groups]
        pictures = [one["overview"] for one in clusters if one["overview"]] + [one["picture"] for one in (*incidents, *groups)]
        return _environment().get_template("page.html").render(
            clusters=clusters,
            title=", ".join(one["name"] for one in clusters[:3]) or "no cluster",
            shown=self._period(),
            empty=printable(empty, _SENTENCES),
            summary=self._summary(),
            incidents=incidents,
            headline=headline(self._report.attention[0]) if incidents else "",
            first=_FIRST,
            calm=printable(self._words.calm(self._report.judgement), _SENTENCES),
            all_clear=self._report.judgement.all_clear,
            gaps=[(printable(self._words.gap(gap), _SENTENCES), printable(gap.next, _SENTENCES)) for gap in self._report.judgement.gaps],
            clients_say=CLIENTS_SAY,
            said=self._said(),
            more_incidents=len(self._report.attention) - len(incidents),
            all_incidents=len(self._report.attention),
            groups=groups,
            quiet=self._quiet(),
            rebalances_shown=len(self._report.rebalances),
            rebalances=sum(row["rebalances"] for row in self._report.groups),
            no_proofs=printable(self._rows.no_proofs, _SENTENCES),
            legend=legend_of(pictures),
            marks=families.MARKS,
            style=_file("page.css"),
            script=script,
            script_hash=base64.b64encode(hashlib.sha256(script.encode()).digest()).decode(),
            limit=self._limit,
        ).rstrip() + "\n"  # fmt: skip

    def _time(self, at: datetime) -> str:
        return instant(epoch_ms(at))[11 if self._one_day else 0 :]

    def _name(self, cluster: str, name: str) -> str:
        return (printable(cluster, 30) + "/" if self._many_clusters else "") + printable(name, 60)

    def _cluster(self, row: Row) -> dict[str, Any]:
        first_ms, last_ms = epoch_ms(row["first_at"]), epoch_ms(row["last_at"])
        known = self._rows.coverage.get(row["cluster"])
        own = [key for key in self._group_ids if key[0] == row["cluster"]]
        own.sort(key=lambda key: (self._incidents.place(key), key))
        return {
            "name": printable(row["cluster"], 60),
            "first": instant(first_ms),
            "last": instant(last_ms),
            "length": duration(last_ms - first_ms),
            "sources": [printable(broker, 30) for broker in row["brokers"]],
            "lines": row["lines"],
            "files": known.files if known else None,
            "missing": [printable(text, _SENTENCES) for text in missing(known.sources, known.begins)] if known else [],
            "overview": self._pictures.overview(row["cluster"], own, self._axes[row["cluster"]]) if own else None,
        }

    def _period(self) -> str:
        since, until = self._report.since, self._report.until
        if since is None and until is None:
            return ""
        begin = f"from {instant(epoch_ms(since))[:19]} UTC" if since is not None else "from the beginning"
        end = f"to {instant(epoch_ms(until))[:19]} UTC" if until is not None else "to the end"
        group = f"group {printable(self._report.scope.group, 60)} " if self._report.scope.group else ""
        return f"{group}{begin} {end}"

    def _said(self) -> list[dict[str, Any]]:
        """What clients say, the first lines of all, by group."""
        own = groupby(self._report.said[: self._limit], key=lambda one: (one.cluster, one.group_id))
        return [
            {"group": self._name(*key), "lines": [(one.left_out, printable(self._words.said(one), _SENTENCES)) for one in ones]}
            for key, ones in own
        ]

    def _summary(self) -> dict[str, Any]:
        counted = Counter(entry.severity for entry in self._report.attention)
        touched = {(entry.gravest["cluster"], group) for entry in self._report.attention for group in entry.groups}
        return {
            "counts": [
                {"count": counted[name], "noun": NOUNS[name] + ("s" if counted[name] != 1 else ""), "severity": name.lower()}
                for name in SEVERITIES
                if counted[name]
            ],
            "touched": len(touched),
            "groups": len(self._report.groups),
            "startups": sum(row["startups"] for row in self._report.groups),
            "rebalancing": duration(sum(row["rebalancing_ms"] - row["startup_ms"] for row in self._report.groups)),
        }

    def _incident(self, number: int, entry: AttentionEntry) -> dict[str, Any]:
        row = entry.gravest
        clients = "" if entry.incident is not None and len(entry.groups) > 1 else clients_of(entry)
        return {
            "number": number,
            "severity": entry.severity,
            "code": entry.code,
            "subject": self._words.subject(entry),
            "when": self._words.when(entry),
            "who": clients,
            "cost": cost_of(entry.bill) if entry.bill.rebalances else "",
            "paragraphs": [(label, printable(text, _SENTENCES)) for label, text in self._words.paragraphs(entry)],
            "advice": printable(" ".join(entry.advice), _SENTENCES),
            "picture": self._pictures.incident(number, entry, self._axes[row["cluster"]]),
            "groups": [self._link((row["cluster"], group)) for group in entry.groups],
            "proofs": [self._proof(finding) for finding in proven_of(entry)],
            "unproven": max(len(entry.findings) + len(entry.followed_by) - PROVEN, 0),
            "id": row["id"],
        }

    def _link(self, key: Key) -> tuple[str, str]:
        return self._name(*key), f"#{self._group_ids[key]}" if key in self._group_ids else ""

    def _proof(self, row: Row) -> dict[str, Any]:
        proven = self._rows.proofs.get(row["id"])
        lines = []
        for line in proven.lines if proven is not None else ():
            text = printable(line.text, _LINE_CHARS) if line.text is not None else None
            fits = text is None or self._budget.take(text)
            place = f"{printable(line.origin)}:{line.position}"
            lines.append({"place": place, "text": text if fits else None, "left_out": not fits})
        if proven is None:
            refs = json.loads(row["evidence"])
            lines = [{"place": f"{printable(ref['origin'])}:{ref['position']}", "text": None, "left_out": True} for ref in refs]
        client = who(row["client_id"], row["client_host"], row["member_id"])
        return {
            "id": row["id"],
            "code": row["code"],
            "severity": row["severity"],
            "at": self._time(row["occurred_at"]),
            "who": client,
            "group": self._name(row["cluster"], row["group_id"]),
            "message": printable(row["message"], _SENTENCES),
            "lines": lines,
        }

    def _group(self, row: Row) -> dict[str, Any]:
        key = key_of(row)
        own = [one for one in self._report.rebalances if key_of(one) == key]
        return {
            "anchor": self._group_ids[key],
            "name": self._name(*key),
            "state": row["state"] or "not seen",
            "protocol": row["protocol"],
            "members": row["members"],
            "count": row["rebalances"] - row["startups"],
            "rebalancing": duration(row["rebalancing_ms"] - row["startup_ms"]),
            "lost": duration(row["unavailable_partition_ms"]),
            "worst": row["worst_cause"],
            "severity": self._incidents.severity(key),
            "picture": self._pictures.group(key, self._axes[key[0]]),
            "rebalances": [self._rebalance(one) for one in own],
            "left_out": row["rebalances"] - len(own),
            "incidents": [(number, entry.severity, entry.code, self._words.when(entry)) for number, entry in self._incidents.about(key)],
        }

    def _rebalance(self, row: Row) -> dict[str, Any]:
        moved = row["partitions_moved"]
        look = families.of_rebalance(row)
        rounds = [] if row["group_protocol"] == CLASSIC else self._rows.rounds.get((*key_of(row), row["generation"]), [])
        began = "" if row["blamed"] == row["cause"] else f"began with {row['cause']} of {who(row['client_id'], row['client_host'], None)}"
        return {
            "anchor": self._rebalance_ids.get(row["id"], ""),
            "id": row["id"],
            "at": self._time(row["started_at"]),
            "generation": row["generation"],
            "look": look,
            "cause": "start-up" if row["startup"] else row["blamed"],
            "began": printable(began, _SENTENCES),
            "reason": printable(row["reason"], 300),
            "waits_for": waits_note(row) if row["waits_for"] else "",
            "culprit": culprit(row),
            "phases": f"{duration(row['join_ms'])} + {duration(row['sync_ms'])}" if row["join_ms"] is not None else "-",
            "total": duration(row["total_ms"]),
            "lost": duration(row["unavailable_partition_ms"]),
            "moved": "-" if moved is None else f"{moved} of {_number(row['partitions'])}",
            "members": f"{_number(row['members_before'])} → {_number(row['members_after'])}",
            "outcome": row["outcome"],
            "rounds": in_words(rounds, day=not self._one_day) if len(rounds) > 1 or any(_is_told(one) for one in rounds) else [],
        }  # fmt: skip

    def _quiet(self) -> list[str]:
        """Groups that were judged, and need no section of their own."""
        return [self._name(*key) for key in self._report.judgement.healthy if key not in self._group_ids]


def _is_told(one: Row) -> bool:
    """Whether a round made members give partitions up."""
    return (one["revocations"] or "[]") != "[]"


def _number(value: int | None) -> str:
    return "?" if value is None else str(value)


@cache
def _environment() -> Environment:
    return Environment(
        loader=PackageLoader("jobs.report_page"),
        autoescape=select_autoescape(default=True, default_for_string=True),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )


@cache
def _file(name: str) -> str:
    """A file beside the templates, as it is."""
    source, _, _ = _environment().loader.get_source(_environment(), name)  # type: ignore[union-attr]
    return source
