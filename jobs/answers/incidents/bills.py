"""What rebalances cost, added up for what caused them."""

from __future__ import annotations

from bisect import bisect
from collections import defaultdict
from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta
from statistics import median
from typing import Any, Final, NamedTuple

from jobs.answers.duckdb_views import Key, Row, key_of
from jobs.answers.in_records import Records, RecordsOf
from jobs.common.times import EPOCH, epoch_ms

LONG_MS: Final = 30_000
MANY_RECORDS: Final = 1_000


class Bill(NamedTuple):
    """What an incident cost: its rebalances, their time, and the time that partitions had no owner, summed over them; None: unknown."""

    rebalances: int = 0
    total_ms: int | None = 0
    unavailable_partition_ms: int | None = None
    at_least: str | None = None  # those of the sums of which some parts are not known

    @classmethod
    def of(cls, rebalances: int, **parts: Sequence[int | None]) -> Bill:
        """`parts`: of each sum, by its name."""
        sums = {name: known_sum(of) for name, of in parts.items()}
        return cls(rebalances, **sums, at_least=", ".join(name for name in sums if sums[name] and None in parts[name]) or None)


class Rebalanced(NamedTuple):
    """A rebalance as it is billed: a row of sql/rows/times.sql."""

    cluster: str
    group: str
    id: str
    start_ms: int
    end_ms: int
    total_ms: int | None
    unavailable_ms: int | None
    finding_id: str | None  # that it is blamed on


class RebalanceTimes:
    """When each group rebalanced, and what that cost. A group has one rebalance at a time."""

    def __init__(self, rows: Iterable[Sequence[Any]], records: RecordsOf | None = None) -> None:
        """Rows of sql/rows/times.sql, in the order of time."""
        self._records = records or RecordsOf()
        self._of: dict[Key, list[Rebalanced]] = defaultdict(list)
        self._blamed: dict[tuple[str, str], list[Rebalanced]] = defaultdict(list)  # by cluster and finding
        for one in map(Rebalanced._make, rows):
            self._of[one.cluster, one.group].append(one)
            if one.finding_id is not None:
                self._blamed[one.cluster, one.finding_id].append(one)

    def blamed_on(self, findings: Iterable[Row]) -> list[Rebalanced]:
        """The rebalances that are blamed on some findings, as `why` and `bill` tell. Findings with the same content have one id."""
        return [one for key in dict.fromkeys((row["cluster"], row["id"]) for row in findings) for one in self._blamed.get(key, ())]

    def at(self, findings: Iterable[Row], within_ms: int) -> list[Rebalanced]:
        """The rebalances that were under way at a finding in the same group, or began so soon afterwards."""
        found: dict[Rebalanced, None] = {}
        for row in findings:
            at_ms, of_group = epoch_ms(row["occurred_at"]), self._of.get(key_of(row), [])
            index = bisect(of_group, at_ms + within_ms, key=lambda one: one.start_ms)
            while index > 0 and of_group[index - 1].end_ms >= at_ms:
                index -= 1
                found[of_group[index]] = None
        return list(found)

    def is_grave(self, found: Iterable[Rebalanced], records: Records) -> bool:
        """Whether some rebalances cost what somebody is woken for (docs/findings.md has the rule).

        One took LONG_MS and left partitions without an owner, and took twice as long as half of the group's others; or MANY_RECORDS were
        read twice for certain.
        """
        own = dict.fromkeys(found)
        long = [one for one in own if (one.total_ms or 0) >= LONG_MS and one.unavailable_ms != 0]
        usual = {
            key: median([one.total_ms or 0 for one in self._of[key] if one not in own] or [0])
            for key in {(one.cluster, one.group) for one in long}
        }
        return (records.reread_min or 0) >= MANY_RECORDS or any((one.total_ms or 0) >= 2 * usual[one.cluster, one.group] for one in long)

    def records(self, found: Iterable[Rebalanced]) -> Records:
        """What some rebalances cost in records."""
        return self._records.together((one.cluster, one.group, one.start_ms, one.end_ms) for one in dict.fromkeys(found))


def bill_of(found: Sequence[Rebalanced]) -> Bill:
    """What some rebalances cost."""
    times = [one.total_ms for one in found] or [0]
    return Bill.of(len(found), total_ms=times, unavailable_partition_ms=[one.unavailable_ms for one in found])


def known_sum(parts: Sequence[int | None]) -> int | None:
    """The sum of the parts that are known; None where it is not even known that there is one: unknown parts beside zeros."""
    return sum(part or 0 for part in parts) or (0 if parts and None not in parts else None)


def bound(name: str, row: Row) -> str:
    """The sign before a sum in a table, by its column: of some of its parts no line shows the cost."""
    return "≥ " if name in (row.get("at_least") or "").split(", ") else ""


def span_of(found: Sequence[Rebalanced]) -> tuple[datetime, datetime] | None:
    """From the start of the first of some rebalances to the end of the last; None if there are none."""
    if not found:
        return None
    first_ms, last_ms = min(one.start_ms for one in found), max(one.end_ms for one in found)
    return EPOCH + timedelta(milliseconds=first_ms), EPOCH + timedelta(milliseconds=last_ms)
