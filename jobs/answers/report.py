"""What the lakehouse says, as data: clusters, groups, rebalances, findings. jobs/cli/report_text.py shows it."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from jobs.answers.duckdb_views import QuestionReader
from jobs.common.errors import LakehouseError
from jobs.common.times import iso

Row = dict[str, Any]

_CLUSTERS: Final = """
    SELECT cluster, list_sort(list(DISTINCT broker)) brokers,
           min(epoch_ms("at")) first_ms, max(epoch_ms("at")) last_ms
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
    FROM group_events WHERE group_id <> '' AND ($1 IS NULL OR group_id = $1) GROUP BY cluster, group_id
"""
# The last transition. Several may share a millisecond: then by generation, and within it in the order of the protocol.
_STATES: Final = """
    SELECT cluster, group_id, arg_max(to_state, o) state, max(o).generation generation
    FROM (
        SELECT *, struct_pack(
            "at" := epoch_ms("at"), generation := coalesce(generation, -1),
            rank := CASE to_state WHEN 'CompletingRebalance' THEN 0 WHEN 'Stable' THEN 1 WHEN 'Empty' THEN 1
                    WHEN 'PreparingRebalance' THEN 2 ELSE 3 END) o
        FROM group_transitions WHERE $1 IS NULL OR group_id = $1
    ) GROUP BY cluster, group_id
"""
_REBALANCES: Final = """
    SELECT * EXCLUDE (started_at, joined_at, ended_at, batch_id), epoch_ms(started_at) started_ms,
           epoch_ms(joined_at) joined_ms, epoch_ms(ended_at) ended_ms
    FROM rebalances_with_id WHERE $1 IS NULL OR group_id = $1
    ORDER BY cluster, group_id, started_at, ended_at, generation
"""
_FINDINGS: Final = """
    SELECT * EXCLUDE ("at", batch_id), epoch_ms("at") at_ms
    FROM findings_with_id WHERE $1 IS NULL OR group_id = $1
    ORDER BY "at", cluster, group_id, code, member_id, details
"""


@dataclass(frozen=True)
class Report:
    """Rows by name of what they are about, each list in a fixed order. Times are epoch milliseconds, ids as logged."""

    clusters: list[Row]
    groups: list[Row]
    rebalances: list[Row]
    findings: list[Row]
    group: str | None = None


def read_report(lakehouse: Path, group: str | None = None) -> Report:
    """Reads the lakehouse, as a whole or what concerns one group."""
    reader = QuestionReader(lakehouse)

    def rows(query: str, *parameters: object) -> list[Row]:
        try:
            reader.prepare(query)
        except LakehouseError:  # no such table yet
            return []
        return reader.rows(query, *parameters)

    lines = {row.pop("cluster"): row for row in rows(_LINES)}
    clusters = [{**row, "lines": lines.get(row["cluster"])} for row in rows(_CLUSTERS)]
    rebalances = rows(_REBALANCES, group)
    states = {_key(row): row for row in rows(_STATES, group)}
    groups = _groups(rows(_GROUPS, group), states, rebalances)
    return Report(clusters, groups, rebalances, rows(_FINDINGS, group), group)


def _key(row: Row) -> tuple[str, str]:
    return row["cluster"], row["group_id"]


def _groups(seen: Iterable[Row], states: dict[tuple[str, str], Row], rebalances: Iterable[Row]) -> list[Row]:
    by_group: dict[tuple[str, str], list[Row]] = {}
    for rebalance in rebalances:
        by_group.setdefault(_key(rebalance), []).append(rebalance)
    consumer_protocol = {_key(row): bool(row["consumer_protocol"]) for row in seen}
    groups = []
    for key in sorted({*consumer_protocol, *states, *by_group}):
        own = by_group.get(key, [])
        state = states.get(key, {})
        by_cause: dict[str, int] = {}
        for rebalance in own:
            by_cause[rebalance["cause"]] = by_cause.get(rebalance["cause"], 0) + rebalance["total_ms"]
        groups.append(
            {
                "cluster": key[0],
                "group_id": key[1],
                "protocol": "consumer" if consumer_protocol.get(key) and not own else "classic",
                "state": state.get("state"),
                "generation": state["generation"] if state.get("generation", -1) >= 0 else None,
                "members": _members(state.get("state"), own),
                "rebalances": len(own),
                "rebalancing_ms": sum(by_cause.values()),
                "worst_cause": max(sorted(by_cause), key=by_cause.__getitem__) if by_cause else None,
            }
        )
    return groups


def _members(state: str | None, rebalances: Iterable[Row]) -> int | None:
    """Members after the last rebalance; nobody is in a group that is empty or gone."""
    if state in {"Empty", "Dead"}:
        return 0
    known = [row["members_after"] for row in rebalances if row["members_after"] is not None]
    return known[-1] if known else None


def to_json(report: Report) -> str:
    """For programs: every column, times as ISO 8601 in UTC, ids as they are (escaped as JSON does, ASCII only)."""
    return json.dumps(
        {
            "clusters": [_timed(row) for row in report.clusters],
            "groups": report.groups,
            "rebalances": [_timed(row, "evidence") for row in report.rebalances],
            "findings": [_timed(row, "evidence", "details") for row in report.findings],
        },
        indent=2,
    )


def _timed(row: Row, *embedded: str) -> Row:
    """A row with its `_ms` times as texts and the JSON texts in it as what they stand for."""
    shown: Row = {}
    for name, value in row.items():
        if name in _TIMES:
            shown[_TIMES[name]] = None if value is None else iso(value)
        else:
            shown[name] = json.loads(value) if name in embedded and value else value
    return shown


_TIMES: Final = {
    "first_ms": "first_at",
    "last_ms": "last_at",
    "started_ms": "started_at",
    "joined_ms": "joined_at",
    "ended_ms": "ended_at",
    "at_ms": "at",
}
