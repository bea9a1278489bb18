"""The report as data: what needs attention, clusters, groups, rebalances, findings. jobs/cli/output/report_text.py renders it."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from datetime import datetime, timezone
from functools import cached_property
from typing import Any, Final

from coordinator_model.diagnosis.refusals import REFUSED_JOINS
from jobs.answers.ask import MOST_ROWS, check_order, newest, outside_of, parse_instant, unknown_name
from jobs.answers.attention import AttentionEntry, attention
from jobs.answers.attention_words import End, as_row
from jobs.answers.client_words import Said, said_alone
from jobs.answers.duckdb_views import Key, QuestionReader, Row, key_of
from jobs.answers.formats import as_json
from jobs.answers.incidents.bills import LONG_MS, RebalanceTimes, RecordsOf
from jobs.answers.judgement import Judgement, judged
from jobs.answers.rebalance_words import as_finding
from jobs.common.places import own_query
from jobs.common.stores import Place, is_store
from jobs.common.times import EPOCH, is_known

_END_OF_TIME: Final = datetime(9999, 12, 31, tzinfo=timezone.utc)


@dataclass(frozen=True)
class Scope:
    """What a report is about; times as typed (`parse_instant`), relative to the newest time in the tables."""

    cluster: str | None = None
    group: str | None = None
    since: str | None = None
    until: str | None = None


@dataclass(frozen=True)
class Report:
    """What needs attention in what a report is about, each list in a fixed order. Ids are as logged."""

    clusters: list[Row]
    findings: list[Row]
    attention: list[AttentionEntry]
    scope: Scope = field(default_factory=Scope)
    since: datetime | None = None
    until: datetime | None = None
    hint: str = ""  # why a name that was asked for is not there
    lines: list[Row] = field(default_factory=list)
    judgement: Judgement = field(default_factory=Judgement)
    states: list[Row] = field(default_factory=list)  # of each group that a line names, at the end of the time
    said: list[Said] = field(default_factory=list)  # of groups that only clients name
    groups: list[Row] = field(default_factory=list)  # of an overview neither these nor the rebalances
    rebalances: list[Row] = field(default_factory=list)

    @property
    def ends(self) -> dict[str, End]:
        """When the time that is shown ends, by cluster."""
        return {
            row["cluster"]: End(row["logs_end_at"], of_logs=True)
            if self.until is None or self.until >= row["logs_end_at"]
            else End(self.until, of_logs=False)
            for row in self.clusters
        }

    @property
    def outside(self) -> str:
        """A sentence with the span of the data, if no line is from the time that was asked for; else empty."""
        if not self.clusters:
            return ""
        first, last = min(row["first_at"] for row in self.clusters), max(row["last_at"] for row in self.clusters)
        return outside_of(first, last, {name: time for name, time in (("since", self.since), ("until", self.until)) if time is not None})


class Scoped:
    """Answers queries about what `scope` says. QuestionError: a time cannot be read, or none lies between both."""

    def __init__(self, lakehouse: Place | QuestionReader, scope: Scope) -> None:
        self.reader = lakehouse if isinstance(lakehouse, QuestionReader) else QuestionReader(lakehouse, keeps=is_store(lakehouse))
        self.scope = scope
        self.since = self.until = None
        if scope.since or scope.until:
            now = newest(self.reader, scope.cluster)
            self.until = parse_instant(scope.until, now, name="until") if scope.until else None
            self.since = parse_instant(scope.since, self.until or now, name="since") if scope.since else None
            check_order(self.since, self.until)
        self.values = {
            "cluster": scope.cluster, "group": scope.group, "since": self.since or EPOCH, "until": self.until or _END_OF_TIME
        }  # fmt: skip

    @cached_property
    def records(self) -> RecordsOf:
        """What each rebalance cost in records."""
        return RecordsOf(self.rows("records"))

    def times(self) -> list[tuple[Any, ...]]:
        """The rebalances that findings cost."""
        return self.reader.ask(own_query("times"), {**self.values, "long_ms": LONG_MS}).rows

    def rows(self, query: str, **values: Any) -> list[Row]:
        """The rows of a query of sql/rows by column name; none where the lakehouse lacks the table."""
        return self.reader.found(own_query(query), self.values | values)


def read_overview(lakehouse: Place | QuestionReader, scope: Scope | None = None) -> Report:
    """What needs attention, in the lakehouse as a whole or in what `scope` says: a part of `read_report`, in less time."""
    return _overview(Scoped(lakehouse, scope or Scope()))


def _overview(its: Scoped) -> Report:
    lines = its.rows("lines")
    lines_of = {row["cluster"]: {name: value for name, value in row.items() if name != "cluster"} for row in lines}
    clusters = [{**row, "lines": lines_of.get(row["cluster"])} for row in its.rows("clusters")]
    findings = its.rows("findings")
    open_ones = [as_finding(row) for row in its.rows("open_rebalances")]
    times = RebalanceTimes(its.times(), its.records) if findings else RebalanceTimes(())
    refused = (
        [row | {"code": REFUSED_JOINS[row["error_code"]]} for row in its.rows("refused_joins", errors=list(REFUSED_JOINS))]
        if any(row["code"] in REFUSED_JOINS.values() for row in findings)
        else []
    )
    incidents = read_incidents(its.reader)
    named = {name: value for name in ("cluster", "group") if (value := getattr(its.scope, name))}
    hint = "" if findings else unknown_name(its.reader, named)
    entries = attention([*findings, *open_ones], times, refused, incidents)
    spans = {row["cluster"]: (row["first_at"], row["last_at"]) for row in clusters}
    states = its.rows("states")
    judgement = judged(its.reader, its.values, states, entries, incidents, spans)
    said = said_alone(its.reader, its.values, judgement)
    return Report(clusters, findings, entries, its.scope, its.since, its.until, hint, lines, judgement, states, said)


def read_report(lakehouse: Place | QuestionReader, scope: Scope | None = None, *, limit: int | None = None) -> Report:
    """Reads the lakehouse, as a whole or what `scope` says. `lakehouse`: its folder, or a reader of it.

    `limit`: only so many rebalances, those that cost most; start-ups come last. QuestionError: a time cannot be read.
    """
    its = Scoped(lakehouse, scope or Scope())
    overview = _overview(its)
    return replace(
        overview,
        groups=_groups(overview.states, its.rows("costs")),
        rebalances=[row | its.records.rebalance(row).figures() for row in its.rows("rebalances", limit=limit or MOST_ROWS)],
    )


def read_incidents(reader: QuestionReader) -> list[Row]:
    """All rows of `incidents`, in the order of time; none where the lakehouse lacks the table."""
    return reader.found("SELECT * FROM incidents ORDER BY began_at, cluster, broker, id", {})


def _groups(states: Iterable[Row], costs: Iterable[Row]) -> list[Row]:
    """A row for each group that an event names, a transition or a rebalance: what cost most first."""
    nothing: Row = {"cluster": "", "group_id": "", "protocol": "classic", "state": None, "generation": None, "members": None}
    nothing |= {"rebalances": 0, "rebalancing_ms": 0, "worst_cause": None, "startups": 0, "startup_ms": 0}
    nothing |= {"unavailable_partition_ms": None, "at_least": None}
    groups: dict[Key, Row] = {}
    for row in (*states, *costs):
        groups[key_of(row)] = groups.get(key_of(row), nothing) | {name: value for name, value in row.items() if name in nothing}
    rows = [{**group, "state": group["state"] or "UNKNOWN"} for group in groups.values()]
    return sorted(rows, key=lambda group: (*_cost_of_group(group), *key_of(group)))


def _cost_of_group(row: Row) -> tuple[object, ...]:
    lost = row["unavailable_partition_ms"]
    return lost is None, -(lost or 0), -(row["rebalancing_ms"] or 0)


def to_json(report: Report, *, limit: int | None = None) -> str:
    """For programs: every column of the tables, with `evidence` and `details` as objects. `limit`: rows of each list at most."""
    return as_json(
        {
            "without_times": not all(is_known(row["first_at"]) for row in report.clusters),
            "since": report.since,
            "until": report.until,
            "attention": [as_row(entry) for entry in report.attention[:limit]],
            "not_judged": [gap._asdict() for gap in report.judgement.gaps],
            "clients_say": [one._asdict() for one in report.said[:limit]],
            "healthy": [{"cluster": cluster, "group_id": group} for cluster, group in report.judgement.healthy[:limit]],
            "clusters": report.clusters[:limit],
            "groups": report.groups[:limit],
            "rebalances": [parsed(row) for row in report.rebalances[:limit]],
            "findings": [parsed(row) for row in (report.findings[-limit:] if limit else report.findings)],
        }
    )


def parsed(row: Row) -> Row:
    """A row with the JSON texts in it as objects."""
    return {name: json.loads(value) if name in {"evidence", "details"} and value else value for name, value in row.items()}
