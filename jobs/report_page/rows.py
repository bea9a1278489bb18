"""The rows that the page shows besides those of the report: memberships, states, rounds, log lines. Nothing is computed here."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Final

from jobs.answers.attention import AttentionEntry
from jobs.answers.coverage import Coverage, coverage
from jobs.answers.duckdb_views import Key, QuestionReader, Row, key_of
from jobs.answers.evidence import ProvenRow, prove_rows
from jobs.answers.report import Report
from jobs.common.errors import EvidenceError
from jobs.common.times import EPOCH

PROVEN: Final = 5
"""Findings of an incident whose log lines are shown, the gravest first."""

_END: Final = datetime(9999, 12, 31, tzinfo=EPOCH.tzinfo)
_MOST: Final = 400  # memberships, or states, of a group: the newest
_CHOSEN: Final = "($cluster IS NULL OR x.cluster = $cluster) AND list_contains($groups, x.group_id)"
_SESSIONS: Final = f"""
    SELECT x.cluster, x.group_id, x.member_id, x.client_id, x.client_host, x.instance_id, x.joined_at, x.ended_at, x.end_kind, x.id
    FROM member_sessions_with_id AS x
    WHERE {_CHOSEN} AND x.ended_at >= $since AND coalesce(x.joined_at, x.ended_at) <= $until
    QUALIFY row_number() OVER (PARTITION BY x.cluster, x.group_id ORDER BY x.ended_at DESC, x.id) <= {_MOST}
"""  # noqa: S608 - no user's text
_STAYING: Final = f"""
    SELECT x.cluster, x.group_id, x.member_id, x.client_id, x.client_host, x.instance_id, x.came_at AS joined_at,
           NULL AS ended_at, NULL AS end_kind, x.member_id AS id
    FROM arrivals AS x
    LEFT JOIN member_sessions AS s ON s.cluster = x.cluster AND s.group_id = x.group_id AND s.member_id = x.member_id
    WHERE {_CHOSEN} AND s.member_id IS NULL AND x.came_at <= $until
    QUALIFY row_number() OVER (PARTITION BY x.cluster, x.group_id ORDER BY x.came_at DESC, x.member_id) <= {_MOST}
"""  # noqa: S608 - no user's text
_STATES: Final = f"""
    SELECT x.cluster, x.group_id, x.occurred_at, x.from_state, x.to_state
    FROM group_transitions_with_id AS x
    WHERE {_CHOSEN} AND x.occurred_at <= $until
    QUALIFY row_number() OVER (
        PARTITION BY x.cluster, x.group_id ORDER BY x.occurred_at DESC, x.generation DESC NULLS LAST, x.step DESC, x.id) <= {_MOST}
    ORDER BY x.occurred_at, x.generation NULLS FIRST, x.step, x.id
"""  # noqa: S608 - no user's text
_ROUNDS: Final = f"""
    SELECT x.* FROM rebalance_rounds AS x WHERE {_CHOSEN} AND x.started_at BETWEEN $since AND $until
    ORDER BY x.started_at, x.epoch
"""  # noqa: S608 - no user's text


@dataclass(frozen=True)
class PageRows:
    """What the page shows of the groups of a report, each list in the order of time."""

    report: Report
    coverage: Mapping[str, Coverage] = field(default_factory=dict)
    members: Mapping[Key, list[Row]] = field(default_factory=dict)
    states: Mapping[Key, list[Row]] = field(default_factory=dict)
    rounds: Mapping[tuple[str, str, int], list[Row]] = field(default_factory=dict)
    proofs: Mapping[str, ProvenRow] = field(default_factory=dict)
    no_proofs: str = ""  # why no log line is shown


def read_rows(
    lakehouse: Path, report: Report, groups: Sequence[Key], entries: Sequence[AttentionEntry], inputs: Sequence[Path]
) -> PageRows:
    """Reads what the page shows about these groups and these entries of the report. `inputs`: where logs were read from."""
    reader = QuestionReader(lakehouse)
    values = {
        "cluster": report.scope.cluster,
        "groups": sorted({group for _, group in groups}),
        "since": report.since or EPOCH,
        "until": report.until or _END,
    }
    members = [*reader.found(_SESSIONS, values), *reader.found(_STAYING, values)]
    members.sort(key=lambda row: (row["joined_at"] or row["ended_at"], row["id"]))
    rounds: dict[tuple[str, str, int], list[Row]] = {}
    for row in reader.found(_ROUNDS, values):
        rounds.setdefault((*key_of(row), row["generation"]), []).append(row)
    proven, problem = _proofs(lakehouse, entries, inputs)
    return PageRows(
        report,
        {one.cluster: one for one in coverage(lakehouse)},
        _by_group(members),
        _by_group(reader.found(_STATES, values)),
        rounds,
        {row.id: row for row in proven},
        problem,
    )


def proven_of(entry: AttentionEntry) -> list[Row]:
    """The findings of an entry whose lines are shown: the gravest, then the others in the order of time."""
    gravest = entry.gravest
    others = sorted(
        (row for row in (*entry.findings, *entry.followed_by) if row["id"] != gravest["id"]), key=lambda row: row["occurred_at"]
    )
    return [gravest, *others][:PROVEN]


def _proofs(lakehouse: Path, entries: Sequence[AttentionEntry], inputs: Sequence[Path]) -> tuple[list[ProvenRow], str]:
    rows = {row["id"]: row for entry in entries for row in proven_of(entry)}
    try:
        return prove_rows(lakehouse, list(rows.values()), inputs), ""
    except EvidenceError as error:
        return [], str(error)


def _by_group(rows: Iterable[Row]) -> dict[Key, list[Row]]:
    found: dict[Key, list[Row]] = {}
    for row in rows:
        found.setdefault(key_of(row), []).append(row)
    return found
