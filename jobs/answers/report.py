"""The report as data: clusters, groups, rebalances, findings. jobs/cli/output/report_text.py renders it."""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from jobs.answers.as_json import as_json
from jobs.answers.duckdb_views import QuestionReader
from jobs.common.errors import MissingTableError

Row = dict[str, Any]

_CLUSTERS: Final = """
    SELECT cluster, list_sort(list(DISTINCT broker)) brokers,
           min(occurred_at) first_at, max(occurred_at) last_at
    FROM group_events WHERE kind <> 'end' GROUP BY cluster ORDER BY cluster
"""
_LINES: Final = """
    SELECT cluster, sum(lines_read)::BIGINT lines_read, sum(skipped)::BIGINT skipped, sum(events)::BIGINT events,
           sum(quarantined)::BIGINT quarantined
    FROM input_lines GROUP BY cluster
"""
# Groups that any line names, rebalanced or not. Groups of the new protocol (KIP-848) have no rebalances of this kind.
_GROUPS: Final = """
    SELECT cluster, group_id, bool_and(kind LIKE 'CONSUMER_GROUP%' OR kind = 'OFFSET_COMMIT') AND
           bool_or(kind LIKE 'CONSUMER_GROUP%') consumer_protocol
    FROM group_events WHERE group_id <> '' AND ($group IS NULL OR group_id = $group) GROUP BY cluster, group_id
"""
# The last transition. Several may share a millisecond: then by generation, and within it in the order of the protocol.
_STATES: Final = """
    SELECT cluster, group_id, arg_max(to_state, o) state, max(o).generation generation
    FROM (
        SELECT *, struct_pack(
            occurred_at := epoch_ms(occurred_at), generation := coalesce(generation, -1),
            rank := CASE to_state WHEN 'CompletingRebalance' THEN 0 WHEN 'Stable' THEN 1 WHEN 'Empty' THEN 1
                    WHEN 'PreparingRebalance' THEN 2 ELSE 3 END) o
        FROM group_transitions WHERE $group IS NULL OR group_id = $group
    ) GROUP BY cluster, group_id
"""
_REBALANCES: Final = """
    SELECT * EXCLUDE batch_id
    FROM rebalances_with_id WHERE $group IS NULL OR group_id = $group
    ORDER BY cluster, group_id, started_at, ended_at, generation
"""
_FINDINGS: Final = """
    SELECT * EXCLUDE batch_id
    FROM findings_with_id WHERE $group IS NULL OR group_id = $group
    ORDER BY occurred_at, cluster, group_id, code, member_id, details
"""


@dataclass(frozen=True)
class Report:
    """The rows of a report, each list in a fixed order. Ids are as logged."""

    clusters: list[Row]
    groups: list[Row]
    rebalances: list[Row]
    findings: list[Row]
    group: str | None = None


def read_report(lakehouse: Path, group: str | None = None) -> Report:
    """Reads the lakehouse, as a whole or what concerns one group."""
    reader = QuestionReader(lakehouse)

    def rows(query: str) -> list[Row]:
        try:
            return reader.ask(query, {"group": group} if "$group" in query else {}).by_name()
        except MissingTableError:
            return []

    lines = {row.pop("cluster"): row for row in rows(_LINES)}
    clusters = [{**row, "lines": lines.get(row["cluster"])} for row in rows(_CLUSTERS)]
    rebalances = rows(_REBALANCES)
    return Report(clusters, _groups(rows(_GROUPS), rows(_STATES), rebalances), rebalances, rows(_FINDINGS), group)


def _key(row: Row) -> tuple[str, str]:
    return row["cluster"], row["group_id"]


def _groups(named: Iterable[Row], states: Iterable[Row], rebalances: Iterable[Row]) -> list[Row]:
    """A row for each group that an event names, a transition or a rebalance."""
    rebalances_of: dict[tuple[str, str], list[Row]] = defaultdict(list)
    for row in rebalances:
        rebalances_of[_key(row)].append(row)
    consumer_protocol = {_key(row) for row in named if row["consumer_protocol"]}
    state_of = {_key(row): row for row in states}
    groups = []
    for key in sorted({*map(_key, named), *state_of, *rebalances_of}):
        own = rebalances_of.get(key, [])
        last = state_of.get(key, {"state": None, "generation": -1})
        cost: Counter[str] = Counter()
        for row in own:
            cost[row["cause"]] += row["total_ms"] or 0
        sizes = [row["members_after"] for row in own if row["members_after"] is not None]
        groups.append(
            {
                "cluster": key[0],
                "group_id": key[1],
                "protocol": "consumer" if key in consumer_protocol and not own else "classic",
                "state": last["state"],
                "generation": last["generation"] if last["generation"] >= 0 else None,
                "members": 0 if last["state"] in {"Empty", "Dead"} else sizes[-1] if sizes else None,
                "rebalances": len(own),
                "rebalancing_ms": cost.total(),
                "worst_cause": max(sorted(cost), key=cost.__getitem__, default=None),
            }
        )
    return groups


def to_json(report: Report) -> str:
    """For programs: every column of the tables, with `evidence` and `details` as objects."""
    return as_json(
        {
            "clusters": report.clusters,
            "groups": report.groups,
            "rebalances": [parsed(row) for row in report.rebalances],
            "findings": [parsed(row) for row in report.findings],
        }
    )


def parsed(row: Row) -> Row:
    """A row with the JSON texts in it as objects."""
    return {name: json.loads(value) if name in {"evidence", "details"} and value else value for name, value in row.items()}
