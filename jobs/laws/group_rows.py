"""The rows of one group, as the laws read them, and what a law says about rows that break it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, fields
from typing import Any, Final

from schemas.names import (
    FINDINGS,
    GROUP_TRANSITIONS,
    MEMBER_SESSIONS,
    REBALANCE_OFFSETS,
    REBALANCE_ROUNDS,
    REBALANCES,
    REBALANCES_PROVISIONAL,
)

Row = Mapping[str, Any]
"""A row by column name; times are epoch ms."""
Breaches = Iterator[tuple[Row, str]]
"""What a law says of a group: the rows that break it, and what is wrong with each."""

TABLES: Final = (REBALANCES, GROUP_TRANSITIONS, MEMBER_SESSIONS, FINDINGS)
LINES: Final = "lines"
SIGNS: Final = "signs"
REPORTED: Final = "reported"
"""What is read beside the tables: the lines of their evidence, the requests of members that findings call silent, the report's groups."""
_READ: Final = (*TABLES, REBALANCES_PROVISIONAL, REBALANCE_ROUNDS, REBALANCE_OFFSETS, LINES, SIGNS, REPORTED)
"""In the order of the lists of GroupRows."""

_TIMES: Final = ("started_at", "occurred_at", "ended_at")
"""The time of a row: the first of these that it has."""


@dataclass(frozen=True)
class Breach:
    """A row that breaks a law. `row_id`: its id, for `rebalance evidence`; empty where rows come without ids."""

    law: str
    cluster: str
    group_id: str
    at_ms: int
    text: str
    row_id: str = ""


@dataclass
class GroupRows:
    """All rows of one group, each table in the order of time."""

    cluster: str
    group_id: str
    rebalances: list[Row] = field(default_factory=list)
    transitions: list[Row] = field(default_factory=list)
    sessions: list[Row] = field(default_factory=list)
    findings: list[Row] = field(default_factory=list)
    provisional: list[Row] = field(default_factory=list)
    rounds: list[Row] = field(default_factory=list)
    offsets: list[Row] = field(default_factory=list)
    lines: list[Row] = field(default_factory=list)
    signs: list[Row] = field(default_factory=list)
    reported: list[Row] = field(default_factory=list)

    def breach(self, law: str, row: Row, text: str) -> Breach:
        """A breach by one of the group's rows."""
        at_ms = next(row[name] for name in _TIMES if name in row)
        return Breach(law, self.cluster, self.group_id, at_ms, text, row.get("id") or "")


def by_group(tables: Mapping[str, Iterable[Row]]) -> list[GroupRows]:
    """The rows of the tables by group, in the order of cluster and group."""
    groups: dict[tuple[str, str], GroupRows] = {}
    for name, own in zip(_READ, fields(GroupRows)[2:], strict=True):
        for row in tables.get(name, ()):
            key = (row.get("cluster") or "", row["group_id"])
            getattr(groups.setdefault(key, GroupRows(*key)), own.name).append(row)
    for group in groups.values():
        group.rebalances.sort(key=lambda row: (row["started_at"], row["ended_at"], _number(row["generation"])))
        group.transitions.sort(key=lambda row: (row["occurred_at"], _number(row["generation"]), _step(row)))
        group.sessions.sort(key=lambda row: (row["ended_at"], row["member_id"]))
        group.findings.sort(key=lambda row: (row["occurred_at"], row["code"], row["message"]))
    return [groups[key] for key in sorted(groups)]


def _number(value: int | None) -> int:
    return -1 if value is None else value


def _step(row: Row) -> int:
    """The order of transitions with the same time and generation, as in sql/views/group_transitions_with_id.sql."""
    to_state = row["to_state"]
    if to_state in ("CompletingRebalance", "Reconciling"):
        return 1
    if to_state == "Dead":
        return 3
    if to_state == "PreparingRebalance" and row["from_state"] != "Dead":
        return 5 if row["generation"] is not None else 0
    return 4 if row["from_state"] == "Dead" else 2
