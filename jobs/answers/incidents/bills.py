"""What rebalances cost, added up for what caused them."""

from __future__ import annotations

from bisect import bisect
from collections import defaultdict
from collections.abc import Iterable
from typing import Final, NamedTuple

from jobs.answers.duckdb_views import Key, Row, key_of
from jobs.common.times import epoch_ms

TIMES: Final = """
    SELECT cluster, group_id, id, epoch_ms(started_at), epoch_ms(ended_at), total_ms, unavailable_partition_ms
    FROM rebalances_with_id
    WHERE ($cluster IS NULL OR cluster = $cluster) AND ($group IS NULL OR group_id = $group)
    ORDER BY started_at, ended_at, id
"""


class Bill(NamedTuple):
    """What an incident cost: its rebalances, their time, and the time that partitions had no owner, summed over them; None: unknown."""

    rebalances: int = 0
    total_ms: int = 0
    unavailable_partition_ms: int | None = None


class RebalanceTimes:
    """When each group rebalanced, and what that cost. A group has one rebalance at a time."""

    def __init__(self, rows: Iterable[tuple[str, str, str, int, int, int | None, int | None]]) -> None:
        """Cluster, group, id, start and end in epoch ms, total and unavailable ms, in the order of time."""
        self._of: dict[Key, list[tuple[int, int, str, int | None, int | None]]] = defaultdict(list)
        for cluster, group, row_id, start_ms, end_ms, total_ms, unavailable_ms in rows:
            self._of[cluster, group].append((start_ms, end_ms, row_id, total_ms, unavailable_ms))

    def bill(self, findings: Iterable[Row], within_ms: int) -> Bill:
        """The rebalances that were under way at a finding in the same group, or began so soon afterwards."""
        found: dict[tuple[str, str, str], tuple[int | None, int | None]] = {}
        for row in findings:
            at_ms, of_group = epoch_ms(row["occurred_at"]), self._of.get(key_of(row), [])
            index = bisect(of_group, at_ms + within_ms, key=lambda item: item[0])
            while index > 0 and of_group[index - 1][1] >= at_ms:
                index -= 1
                found[row["cluster"], row["group_id"], of_group[index][2]] = of_group[index][3:]
        unavailable = [ms for _, ms in found.values() if ms is not None]
        return Bill(len(found), sum(ms or 0 for ms, _ in found.values()), sum(unavailable) if unavailable else None)
