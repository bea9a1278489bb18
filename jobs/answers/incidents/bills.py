"""What rebalances cost, added up for what caused them."""

from __future__ import annotations

from bisect import bisect
from collections import defaultdict
from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import NamedTuple

from jobs.answers.duckdb_views import Key, Row, key_of
from jobs.answers.in_records import Records, RecordsOf
from jobs.common.times import EPOCH, epoch_ms


class Bill(NamedTuple):
    """What an incident cost: its rebalances, their time, and the time that partitions had no owner, summed over them; None: unknown."""

    rebalances: int = 0
    total_ms: int = 0
    unavailable_partition_ms: int | None = None


class RebalanceTimes:
    """When each group rebalanced, and what that cost. A group has one rebalance at a time."""

    def __init__(self, rows: Iterable[tuple[str, str, str, int, int, int | None, int | None]], records: RecordsOf | None = None) -> None:
        """Cluster, group, id, start and end in epoch ms, total and unavailable ms, in the order of time."""
        self._records = records or RecordsOf()
        self._of: dict[Key, list[tuple[int, int, str, int | None, int | None]]] = defaultdict(list)
        for cluster, group, row_id, start_ms, end_ms, total_ms, unavailable_ms in rows:
            self._of[cluster, group].append((start_ms, end_ms, row_id, total_ms, unavailable_ms))

    def bill(self, findings: Iterable[Row], within_ms: int) -> Bill:
        """What the rebalances of some findings cost."""
        found = self._of_findings(findings, within_ms).values()
        unavailable = [ms for *_, ms in found if ms is not None]
        return Bill(len(found), sum(ms or 0 for *_, ms, _ in found), sum(unavailable) if unavailable else None)

    def records(self, findings: Iterable[Row], within_ms: int) -> Records:
        """What they cost in records."""
        found = self._of_findings(findings, within_ms)
        return self._records.together((cluster, group, start_ms, end_ms) for (cluster, group, _), (start_ms, end_ms, *_) in found.items())

    def span(self, findings: Iterable[Row], within_ms: int) -> tuple[datetime, datetime] | None:
        """From the start of the first of their rebalances to the end of the last; None if there are none."""
        found = self._of_findings(findings, within_ms).values()
        if not found:
            return None
        first_ms, last_ms = min(start_ms for start_ms, *_ in found), max(end_ms for _, end_ms, *_ in found)
        return EPOCH + timedelta(milliseconds=first_ms), EPOCH + timedelta(milliseconds=last_ms)

    def _of_findings(
        self, findings: Iterable[Row], within_ms: int
    ) -> dict[tuple[str, str, str], tuple[int, int, str, int | None, int | None]]:
        """The rebalances, by cluster, group and id, that were under way at a finding in the same group, or began so soon afterwards."""
        found: dict[tuple[str, str, str], tuple[int, int, str, int | None, int | None]] = {}
        for row in findings:
            at_ms, of_group = epoch_ms(row["occurred_at"]), self._of.get(key_of(row), [])
            index = bisect(of_group, at_ms + within_ms, key=lambda item: item[0])
            while index > 0 and of_group[index - 1][1] >= at_ms:
                index -= 1
                found[row["cluster"], row["group_id"], of_group[index][2]] = of_group[index]
        return found
