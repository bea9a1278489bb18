"""Counts what happened to consumer groups since the process began, and keeps how they are now, for the metrics.

The tracker's thread adds rows, and another thread reads the metrics: every method takes the lock. Only so many groups have metrics of their
own; the sums of a cluster are complete.
"""

from __future__ import annotations

import hashlib
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from prometheus_client.metrics_core import Metric

from coordinator_model.states import State
from coordinator_model.tracker import unended
from coordinator_model.view.outcomes import ENDED, OPEN
from jobs.common.errors import LakehouseError
from jobs.common.places import own_query
from jobs.common.stores import Place
from jobs.common.times import EPOCH, epoch_ms
from jobs.health.metrics import families
from jobs.lakehouse.reader import TableReader
from schemas.names import FINDINGS, GROUP_TRANSITIONS, REBALANCE_OFFSETS, REBALANCES, REBALANCES_PROVISIONAL

TABLES: Final = (GROUP_TRANSITIONS, REBALANCES, REBALANCES_PROVISIONAL, REBALANCE_OFFSETS, FINDINGS)
"""The tables whose rows are counted."""

FIRST_SECONDS: Final = 60.0
"""For which a new series of a counter stands at 0 after its first scrape. `increase` does not see the first value of a series, and most
series here begin with the event that matters."""

_DEAD: Final = State.DEAD.value
_WITHOUT_MEMBERS: Final = (State.EMPTY.value, _DEAD)
_NAME_CHARS: Final = 200  # of a group in a label; a client may send 32 kB
_HASH_CHARS: Final = 8


Key = tuple[str, str]
"""Cluster and group."""


@dataclass
class _Now:
    """How a group is, as far as rows say. Times are epoch ms."""

    state: str | None = None
    state_ms: int = -1
    members: int | None = None
    members_ms: int = -1
    rebalanced_ms: int = -1
    open_ms: int = -1  # when a rebalance began that has not ended
    overdue: bool = False
    open_told: bool = False  # whether a micro-batch of this process said so


class GroupTally:
    """The metrics of groups. `limit`: how many groups have their own."""

    def __init__(self, limit: int, *, first_seconds: float = FIRST_SECONDS, clock: Callable[[], float] = time.monotonic) -> None:
        self._limit = limit
        self._first_seconds = first_seconds
        self._clock = clock
        self._lock = threading.Lock()
        self._now: dict[Key, _Now] = {}
        self._counters: defaultdict[str, defaultdict[tuple[str, ...], float]] = defaultdict(lambda: defaultdict(float))  # by metric, labels
        self._scraped: dict[tuple[str, tuple[str, ...]], float] = {}  # when a series was first scraped

    def seed(self, lakehouse: Place) -> None:
        """Takes from the tables how groups were when an earlier process ended. duckdb.Error, DeltaError: they cannot be read."""
        try:
            reader = TableReader(lakehouse, (GROUP_TRANSITIONS, REBALANCES, REBALANCES_PROVISIONAL))
        except LakehouseError:
            return
        states = reader.rows(own_query("newest_states"), self._limit) if GROUP_TRANSITIONS in reader.tables else []
        members = reader.rows(own_query("newest_members"), self._limit) if REBALANCES in reader.tables else []
        running = reader.rows(own_query("newest_open"), self._limit) if REBALANCES_PROVISIONAL in reader.tables else []
        with self._lock:
            for row in running:
                if (now := self._of(row)) is not None and not now.open_told:
                    self._open({**row, "started_at": _ms(row["started_at"])})
            for row in members:
                self._members(row, row["members"], _ms(row["newest_at"]), rebalanced=True)
            for row in states:
                self._state(row, row["state"], _ms(row["newest_at"]))

    def tracked(self, rows: Mapping[str, Sequence[Mapping[str, Any]]]) -> None:
        """Adds the rows of a micro-batch, by table; their times are epoch ms."""
        with self._lock:
            for row in rows.get(GROUP_TRANSITIONS, ()):
                self._state(row, row["to_state"], row["occurred_at"])
            for row in rows.get(REBALANCES_PROVISIONAL, ()):
                if row["outcome"] in (OPEN, ENDED):
                    self._open(row)
                else:
                    self._members(row, row["members_after"], row["ended_at"])
            for row in rows.get(REBALANCES, ()):
                self._rebalance(row)
            for row in rows.get(REBALANCE_OFFSETS, ()):
                self._add("records_reread_max", row, row["reread_max"])
                self._add("records_lag_added", row, row["lag_added"])
            for row in rows.get(FINDINGS, ()):
                self._count("findings_total", row, 1, row["code"], row["severity"])

    def _rebalance(self, row: Mapping[str, Any]) -> None:
        self._members(row, row["members_after"], row["ended_at"], rebalanced=True)
        self._count("rebalances_total", row, 1, row["cause"])
        self._add("rebalance_seconds", row, row["total_ms"], 1_000)
        self._add("unavailable_partition_seconds", row, row["unavailable_partition_ms"], 1_000)

    def _add(self, what: str, row: Mapping[str, Any], cost: int | None, unit: int = 1) -> None:
        """Adds a cost to its sum. One that no line shows is counted: the sum lacks it."""
        self._count(f"{what}_total", row, (cost or 0) / unit)
        self._counters["rebalance_unknown_costs_total"][row["cluster"], what] += cost is None

    def _count(self, what: str, row: Mapping[str, Any], amount: float, *labels: str) -> None:
        cluster = row["cluster"]
        self._counters[f"rebalance_{what}"][(cluster, *labels)] += amount
        left_out = self._counters["rebalance_group_rows_left_out_total"]
        if self._of(row) is not None:
            left_out[cluster,] += 0
            self._counters[f"rebalance_group_{what}"][(cluster, label(row["group_id"]), *labels)] += amount
        elif what in {"rebalances_total", "findings_total"}:
            left_out[cluster,] += 1

    def _state(self, row: Mapping[str, Any], state: str, at_ms: int) -> None:
        now = self._of(row)
        if now is not None and at_ms >= now.state_ms:
            now.state, now.state_ms = state, at_ms
            if state in _WITHOUT_MEMBERS and at_ms >= now.members_ms:
                now.members, now.members_ms = 0, at_ms

    def _members(self, row: Mapping[str, Any], members: int | None, at_ms: int, *, rebalanced: bool = False) -> None:
        now = self._of(row)
        if now is None:
            return
        if rebalanced:
            now.rebalanced_ms = max(now.rebalanced_ms, at_ms)
        if members is not None and at_ms >= now.members_ms:
            now.members, now.members_ms = members, at_ms

    def _open(self, row: Mapping[str, Any]) -> None:
        """Takes what the tracker tells of a rebalance that has not ended, or that one has."""
        if (now := self._of(row)) is not None:
            now.open_ms = row["started_at"] if row["outcome"] == OPEN else -1
            now.overdue, now.open_told = unended.is_overdue(row), True

    def _of(self, row: Mapping[str, Any]) -> _Now | None:
        """The group of a row; None if there is no room for another one. Groups that were deleted make room."""
        key = (row["cluster"], row["group_id"])
        if key not in self._now:
            if len(self._now) >= self._limit:
                self._forget_deleted()
            if len(self._now) >= self._limit:
                return None
            self._now[key] = _Now()
        return self._now[key]

    def _forget_deleted(self) -> None:
        gone = {key for key, now in self._now.items() if now.state == _DEAD}
        for key in gone:
            del self._now[key]
        names = {(cluster, label(group)) for cluster, group in gone}
        for name, series in self._counters.items():
            if name.startswith("rebalance_group_"):
                for labels in [labels for labels in series if labels[:2] in names]:
                    del series[labels]
                    self._scraped.pop((name, labels), None)

    def metrics(self) -> Iterator[Metric]:
        """The metrics of all that was counted."""
        gauges: defaultdict[str, dict[tuple[str, ...], float | None]] = defaultdict(dict)
        at = self._clock()
        with self._lock:
            for (cluster, group), now in self._now.items():
                key = (cluster, label(group))
                if now.rebalanced_ms >= 0:
                    gauges["rebalance_group_last_rebalance_timestamp_seconds"][key] = now.rebalanced_ms / 1_000
                if now.open_ms >= 0:
                    gauges["rebalance_group_open_since_timestamp_seconds"][key] = now.open_ms / 1_000
                    gauges["rebalance_group_open_overdue"][key] = float(now.overdue)
                if now.state == _DEAD:
                    continue
                gauges["rebalance_group_members"][key] = now.members
                if now.state is not None:
                    gauges["rebalance_group_state"][(*key, now.state)] = 1
            counters = {
                name: {labels: self._shown(name, labels, value, at) for labels, value in series.items()}
                for name, series in self._counters.items()
            }
        yield from families(counters)
        yield from families(gauges)

    def _shown(self, name: str, labels: tuple[str, ...], value: float, at: float) -> float:
        first = self._scraped.setdefault((name, labels), at)
        return value if at - first >= self._first_seconds else 0.0


def label(group: str) -> str:
    """The name of a group as a label: a long one is cut, and keeps a hash that tells it from others."""
    if len(group) <= _NAME_CHARS:
        return group
    digest = hashlib.sha256(group.encode("utf-8", "replace")).hexdigest()[:_HASH_CHARS]
    return f"{group[: _NAME_CHARS - _HASH_CHARS - 1]}…{digest}"


def _ms(time_: Any) -> int:
    return epoch_ms(time_.replace(tzinfo=EPOCH.tzinfo))
