"""The report as data: what needs attention, clusters, groups, rebalances, findings. jobs/cli/output/report_text.py renders it."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime, timezone
from functools import cached_property
from typing import Any, Final

from coordinator_model.diagnosis.refusals import REFUSED_JOINS
from coordinator_model.events import OFFSETS_ALONE
from jobs.answers.as_json import as_json
from jobs.answers.ask import MOST_ROWS, newest, outside_of, parse_instant, unknown_name
from jobs.answers.attention import AttentionEntry, as_row, attention
from jobs.answers.client_words import Said, said_alone
from jobs.answers.duckdb_views import QuestionReader, Row, key_of, quoted
from jobs.answers.in_records import RECORDS, RecordsOf
from jobs.answers.incidents.bills import TIMES, RebalanceTimes
from jobs.answers.judgement import Judgement, judged
from jobs.answers.open_rebalances import OPEN_ONES, as_finding
from jobs.common.stores import Place
from jobs.common.times import EPOCH

_CLUSTERS: Final = """
    SELECT cluster, list_sort(list(DISTINCT broker)) brokers,
           min(occurred_at) first_at, max(occurred_at) last_at
    FROM group_events WHERE kind <> 'end' AND ($cluster IS NULL OR cluster = $cluster) GROUP BY cluster ORDER BY cluster
"""
_LINES: Final = """
    SELECT cluster, sum(lines_read)::BIGINT lines_read, sum(skipped)::BIGINT skipped, sum(events)::BIGINT events,
           sum(quarantined)::BIGINT quarantined
    FROM input_lines GROUP BY cluster ORDER BY cluster
"""
# Groups that any line names, rebalanced or not, and whether they follow the consumer protocol (KIP-848) by now. A committed offset alone
# shows no group of consumers: it may be that of a group of Streams.
_GROUPS: Final = f"""
    SELECT cluster, group_id, coalesce(
        max(occurred_at) FILTER (WHERE kind LIKE 'CONSUMER_GROUP%' AND (kind <> 'CONSUMER_GROUP_HEARTBEAT' OR error_code = 0)) >
        coalesce(max(occurred_at) FILTER (WHERE kind IN ('STABILIZED', 'JOIN_GROUP', 'SYNC_GROUP', 'HEARTBEAT')), '-infinity'), false
    ) consumer_protocol
    FROM group_events
    WHERE group_id <> '' AND kind NOT IN ({quoted(OFFSETS_ALONE)}) AND ($cluster IS NULL OR cluster = $cluster)
          AND ($group IS NULL OR group_id = $group) AND occurred_at <= $until
    GROUP BY cluster, group_id
"""  # noqa: S608 - no user's text
_STATES: Final = """
    SELECT cluster, group_id, state, generation, members FROM group_states
    WHERE ($cluster IS NULL OR cluster = $cluster) AND ($group IS NULL OR group_id = $group)
          AND since <= $until AND (next_at IS NULL OR next_at > $until)
"""
# What rebalances cost each group since `since`. One that is open belongs to that time however long ago it began.
_COSTS: Final = """
    WITH own AS (
        SELECT cluster, group_id, started_at, total_ms, startup, unavailable_partition_ms, blamed,
               started_at >= $since OR outcome = 'OPEN' AND ended_at >= $since AS counts
        FROM rebalances_with_culprit
        WHERE ($cluster IS NULL OR cluster = $cluster) AND ($group IS NULL OR group_id = $group) AND started_at <= $until
    ),
    causes AS (
        SELECT cluster, group_id, blamed AS cause,
               row_number() OVER (PARTITION BY cluster, group_id ORDER BY sum(coalesce(total_ms, 0)) DESC, blamed) AS place
        FROM own WHERE counts AND NOT startup GROUP BY cluster, group_id, blamed
    )
    SELECT o.cluster, o.group_id,
           count(*) FILTER (o.counts) rebalances,
           coalesce(sum(o.total_ms) FILTER (o.counts), 0)::BIGINT rebalancing_ms,
           count(*) FILTER (o.counts AND o.startup) startups,
           coalesce(sum(o.total_ms) FILTER (o.counts AND o.startup), 0)::BIGINT startup_ms,
           (sum(o.unavailable_partition_ms) FILTER (o.counts AND NOT o.startup))::BIGINT unavailable_partition_ms,
           any_value(c.cause) worst_cause
    FROM own AS o LEFT JOIN causes AS c ON c.cluster = o.cluster AND c.group_id = o.group_id AND c.place = 1
    GROUP BY o.cluster, o.group_id
"""
_CHOSEN: Final = """
    WHERE ($cluster IS NULL OR cluster = $cluster) AND ($group IS NULL OR group_id = $group) AND {at} BETWEEN $since AND $until
"""
_REBALANCES: Final = f"""
    SELECT * EXCLUDE (batch_id, alarm)
    FROM (
        SELECT * FROM rebalances_with_culprit
        {_CHOSEN.format(at="CASE WHEN outcome = 'OPEN' AND $since BETWEEN started_at AND ended_at THEN $since ELSE started_at END")}
        ORDER BY startup, unavailable_partition_ms DESC NULLS LAST, total_ms DESC NULLS LAST, cluster, group_id, started_at, id
        LIMIT $limit
    )
    ORDER BY cluster, group_id, started_at, ended_at, generation
"""  # noqa: S608 - no user's text
_FINDINGS: Final = f"""
    SELECT * EXCLUDE (batch_id)
    FROM findings_with_id {_CHOSEN.format(at="occurred_at")}
    ORDER BY occurred_at, cluster, group_id, code, member_id, details
"""  # noqa: S608 - no user's text
_INCIDENTS: Final = "SELECT * FROM incidents ORDER BY began_at, cluster, broker, id"
_REFUSED: Final = f"""
    SELECT cluster, group_id, client_id, client_host, code, sum(lines)::BIGINT requests, max(occurred_at) last_at,
           coalesce(max(joined_at) > max(occurred_at), false) joined
    FROM (
        SELECT cluster, group_id, nullif(client_id, '') client_id, nullif(client_host, '') client_host, lines, occurred_at,
               CASE error_code {" ".join(f"WHEN {number} THEN '{code}'" for number, code in REFUSED_JOINS.items())} END code,
               max(occurred_at) FILTER (error_code = 0) OVER (PARTITION BY cluster, group_id, client_id, client_host) joined_at
        FROM group_events {_CHOSEN.format(at="occurred_at")} AND kind = 'JOIN_GROUP'
    )
    WHERE code IS NOT NULL GROUP BY ALL ORDER BY last_at, cluster, group_id, client_id, client_host, code
"""  # noqa: S608 - no user's text
_END_OF_TIME: Final = datetime(9999, 12, 31, tzinfo=timezone.utc)


@dataclass(frozen=True)
class Scope:
    """What a report is about; times as typed (`parse_instant`), relative to the newest time in the tables."""

    cluster: str | None = None
    group: str | None = None
    since: str | None = None
    until: str | None = None


@dataclass(frozen=True)
class Overview:
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
    said: list[Said] = field(default_factory=list)  # of groups that only clients name

    @property
    def ends(self) -> dict[str, datetime]:
        """When the time that is shown ends, by cluster."""
        return {row["cluster"]: min(filter(None, (row["last_at"], self.until))) for row in self.clusters}

    @property
    def outside(self) -> str:
        """A sentence with the span of the data, if no line is from the time that was asked for; else empty."""
        if not self.clusters:
            return ""
        since, until = self.since, self.until
        if since is not None and until is not None and since > until:
            return "--since is after --until: there is no time between them."
        first, last = min(row["first_at"] for row in self.clusters), max(row["last_at"] for row in self.clusters)
        return outside_of(first, last, {name: time for name, time in (("since", since), ("until", until)) if time is not None})


@dataclass(frozen=True, kw_only=True)
class Report(Overview):
    """All rows of a report."""

    groups: list[Row]
    rebalances: list[Row]


class _Scoped:
    """Answers queries about what `scope` says. QuestionError: a time cannot be read."""

    def __init__(self, lakehouse: Place | QuestionReader, scope: Scope) -> None:
        self.reader = lakehouse if isinstance(lakehouse, QuestionReader) else QuestionReader(lakehouse)
        self.scope = scope
        self.since = self.until = None
        if scope.since or scope.until:
            now = newest(self.reader, scope.cluster)
            self.until = parse_instant(scope.until, now, name="until") if scope.until else None
            self.since = parse_instant(scope.since, self.until or now, name="since") if scope.since else None
        self.values = {
            "cluster": scope.cluster, "group": scope.group, "since": self.since or EPOCH, "until": self.until or _END_OF_TIME
        }  # fmt: skip

    @cached_property
    def states(self) -> list[Row]:
        """The state of each group at the end of the time."""
        return self.rows(_STATES)

    @cached_property
    def records(self) -> RecordsOf:
        """What each rebalance cost in records."""
        return RecordsOf(self.rows(RECORDS))

    def tuples(self, query: str) -> list[tuple[Any, ...]]:
        """The rows of a query."""
        return self.reader.ask(query, self.values).rows

    def rows(self, query: str, **values: Any) -> list[Row]:
        """The rows of a query by column name; none where the lakehouse lacks the table."""
        return self.reader.found(query, self.values | values)


def read_overview(lakehouse: Place | QuestionReader, scope: Scope | None = None) -> Overview:
    """What needs attention, in the lakehouse as a whole or in what `scope` says: a part of `read_report`, in less time."""
    return _overview(_Scoped(lakehouse, scope or Scope()))


def _overview(its: _Scoped) -> Overview:
    lines = its.rows(_LINES)
    lines_of = {row["cluster"]: {name: value for name, value in row.items() if name != "cluster"} for row in lines}
    clusters = [{**row, "lines": lines_of.get(row["cluster"])} for row in its.rows(_CLUSTERS)]
    findings = its.rows(_FINDINGS)
    open_ones = [as_finding(row) for row in its.rows(OPEN_ONES)]
    times = RebalanceTimes(its.tuples(TIMES), its.records) if findings else RebalanceTimes(())
    refused = its.rows(_REFUSED) if any(row["code"] in REFUSED_JOINS.values() for row in findings) else []
    incidents = read_incidents(its.reader) if findings else []
    named = {name: value for name in ("cluster", "group") if (value := getattr(its.scope, name))}
    hint = "" if findings else unknown_name(its.reader, named)
    entries = attention([*findings, *open_ones], times, refused, incidents)
    spans = {row["cluster"]: (row["first_at"], row["last_at"]) for row in clusters}
    judgement = judged(its.reader, its.values, its.states, entries, spans)
    said = said_alone(its.reader, its.values, judgement)
    return Overview(clusters, findings, entries, its.scope, its.since, its.until, hint, lines, judgement, said)


def read_report(lakehouse: Place | QuestionReader, scope: Scope | None = None, *, limit: int | None = None) -> Report:
    """Reads the lakehouse, as a whole or what `scope` says. `lakehouse`: its folder, or a reader of it.

    `limit`: only so many rebalances, those that cost most; start-ups come last. QuestionError: a time cannot be read.
    """
    its = _Scoped(lakehouse, scope or Scope())
    overview = _overview(its)
    return Report(
        **vars(overview),
        groups=_groups(its.rows(_GROUPS), its.states, its.rows(_COSTS)),
        rebalances=[row | its.records.rebalance(row).figures() for row in its.rows(_REBALANCES, limit=limit or MOST_ROWS)],
    )


def read_findings(reader: QuestionReader, scope: Scope) -> list[Row]:
    """All findings of a cluster or group, in the order of time."""
    return reader.ask(_FINDINGS, {"cluster": scope.cluster, "group": scope.group, "since": EPOCH, "until": _END_OF_TIME}).by_name()


def read_incidents(reader: QuestionReader) -> list[Row]:
    """All rows of `incidents`, in the order of time; none where the lakehouse lacks the table."""
    return reader.found(_INCIDENTS, {})


def _groups(named: Iterable[Row], states: Iterable[Row], costs: Iterable[Row]) -> list[Row]:
    """A row for each group that an event names, a transition or a rebalance: what cost most first."""
    consumer_protocol = {key_of(row): row["consumer_protocol"] for row in named}
    state_of = {key_of(row): row for row in states}
    cost_of = {key_of(row): row for row in costs}
    nothing: Row = {"worst_cause": None, "unavailable_partition_ms": None}
    nothing |= {"rebalances": 0, "rebalancing_ms": 0, "startups": 0, "startup_ms": 0}
    groups = []
    for key in sorted({*consumer_protocol, *state_of, *cost_of}):
        cost = cost_of.get(key, nothing)
        last = state_of.get(key, {"state": None, "generation": None, "members": None})
        groups.append(
            {
                "cluster": key[0],
                "group_id": key[1],
                "protocol": "consumer" if consumer_protocol.get(key) else "classic",
                **{name: last[name] for name in ("state", "generation", "members")},
                **{name: cost[name] for name in ("rebalances", "rebalancing_ms", "worst_cause")},
                **{name: cost[name] for name in ("startups", "startup_ms", "unavailable_partition_ms")},
            }
        )
    return sorted(groups, key=lambda row: (-(row["unavailable_partition_ms"] or -1), row["startup_ms"] - row["rebalancing_ms"]))


def to_json(report: Report, *, limit: int | None = None) -> str:
    """For programs: every column of the tables, with `evidence` and `details` as objects. `limit`: rows of each list at most."""
    return as_json(
        {
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
