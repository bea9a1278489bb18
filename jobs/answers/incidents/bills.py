"""What rebalances cost: in time, added up for what caused them, and in records, in numbers and in words."""

from __future__ import annotations

from bisect import bisect
from collections import defaultdict
from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta
from statistics import median
from typing import Any, Final, NamedTuple

from jobs.answers.duckdb_views import Key, Row, key_of
from jobs.common.text import many
from jobs.common.times import EPOCH, duration, epoch_ms

RebalanceKey = tuple[str, str, int, int]
"""Cluster, group, start and end in epoch ms."""


class Records(NamedTuple):
    """Columns of the view `rebalance_records`, of one rebalance or of several. None: no line shows it."""

    reread_min: int | None = None
    reread_max: int | None = None
    lag_added: int | None = None
    catch_up_ms: int | None = None  # of several the longest
    gaps: bool = False  # offsets are counted, which are records at most
    told: str = ""  # of how many rebalances that partitions stopped with `reread_max` is not known, if of some

    @classmethod
    def of(cls, row: Row) -> Records:
        """From a row with such columns; one of a single partition has no time until all had caught up."""
        return cls(row["reread_min"], row["reread_max"], row["lag_added"], row.get("catch_up_ms"), row["gaps"])

    def figures(self) -> Row:
        """For programs."""
        return dict(zip(self._fields[:5], self[:5], strict=True))

    def read_twice(self) -> str:
        """How many records, in a table: 0 to 133."""
        least, most = self.reread_min or 0, self.reread_max
        if most is None:
            return f"{least:,} or more" if least else "-"
        return f"{most:,}" if least == most else f"{least:,} to {most:,}"

    def lag(self) -> str:
        """By how many records the lag grew, in a table."""
        if self.lag_added is None:
            return "-"
        return f"up to +{self.lag_added:,}" if self.gaps and self.lag_added else f"+{self.lag_added:,}"

    def in_words(self) -> str:
        """Such as: up to 133 records read twice, lag about +1,350, back after 12 s. Empty where no line shows it."""
        parts = []
        if (number := self.read_twice()) != "-":
            noun = "record" if self.reread_max == 1 else "records"
            parts.append(f"{number.replace('0 to', 'up to', 1) if number.startswith('0 to') else number} {noun} read twice{self.told}")
        if self.lag_added is not None:
            parts.append(f"lag {'about ' if self.lag_added and not self.gaps else ''}{self.lag()}")
        if self.catch_up_ms is not None:
            parts.append(f"back after {duration(self.catch_up_ms)}")
        return ", ".join(parts)


class RecordsOf:
    """What each rebalance cost in records."""

    def __init__(self, rows: Iterable[Row] = ()) -> None:
        """`rows`: answers to RECORDS."""
        self._of = {_key_of(row): Records.of(row) for row in rows}
        self._ended = {(cluster, group, end_ms) for cluster, group, _, end_ms in self._of}

    def rebalance(self, row: Row) -> Records:
        """Of a row of `rebalances`."""
        return self._of.get(_key_of(row), Records())

    def together(self, rebalances: Iterable[Rebalanced]) -> Records:
        """Of some rebalances. What was read twice is that of those that tell; the lag is known if that of each is.

        Nor is it of one without a row, unless no partition stopped with it, or all stopped already with the one that ended as it began.
        What a group left unread when its last member went, the row of a later one tells.
        """
        rows = [(self._of.get((*one[:2], one.start_ms, one.end_ms)), one) for one in sorted(rebalances, key=lambda one: one.start_ms)]
        found, last = [row for row, _ in rows if row], {one[:2]: one.start_ms for row, one in rows if row}
        untold = (one for row, one in rows if row is None and (*one[:2], one.start_ms) not in self._ended)
        unknown = sum(one.start_ms > last.get(one[:2], 0) if one.unavailable_ms is None else one.unavailable_ms > 0 for one in untold)
        if not found:
            return Records()
        telling = [each for each in found if each.reread_max is not None]
        unknown += len(found) - len(telling)
        lag, catch_up = [each.lag_added for each in found], [each.catch_up_ms for each in found]
        return Records(
            sum(each.reread_min or 0 for each in telling or found),
            sum(each.reread_max or 0 for each in telling) if telling else None,
            None if None in lag else sum(filter(None, lag)),
            None if None in catch_up else max(filter(None, catch_up), default=0),
            any(each.gaps for each in found),
            f" ({many(unknown, 'rebalance')} unknown)" if telling and unknown else "",
        )


def _key_of(row: Row) -> RebalanceKey:
    return row["cluster"], row["group_id"], epoch_ms(row["started_at"]), epoch_ms(row["ended_at"])


LONG_MS: Final = 30_000
MANY_RECORDS: Final = 1_000


class Bill(NamedTuple):
    """What an incident cost: its rebalances, their time, and the time that partitions had no owner, summed over them; None: unknown."""

    rebalances: int = 0
    total_ms: int | None = 0
    unavailable_partition_ms: int | None = None
    at_least: str | None = None  # those of the sums of which some parts are not known


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
        return self._records.together(dict.fromkeys(found))


def bill_of(found: Sequence[Rebalanced]) -> Bill:
    """What some rebalances cost."""
    return billed(len(found), [one.total_ms for one in found] or [0], [one.unavailable_ms for one in found])


def billed(rebalances: int, *parts: Sequence[int | None]) -> Bill:
    """The bill of the times of so many rebalances, and of those in which partitions had no owner."""
    sums = dict(zip(("total_ms", "unavailable_partition_ms"), map(known_sum, parts), strict=True))
    least = [name for name, of in zip(sums, parts, strict=True) if sums[name] and None in of]
    return Bill(rebalances, **sums, at_least=", ".join(least) or None)


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
