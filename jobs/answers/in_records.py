"""What rebalances cost in records, in numbers and in words: records that were read twice, and lag that they added."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from jobs.answers.duckdb_views import Row
from jobs.common.times import duration, epoch_ms

RebalanceKey = tuple[str, str, int, int]
"""Cluster, group, start and end in epoch ms."""


class Records(NamedTuple):
    """Columns of the view `rebalance_records`, of one rebalance or of several. None: no line shows it."""

    reread_min: int | None = None
    reread_max: int | None = None
    lag_added: int | None = None
    catch_up_ms: int | None = None  # of several the longest
    gaps: bool = False  # offsets are counted, which are records at most
    told: str = ""  # of how many rebalances `reread_max` is known, if not of all

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
        """Such as: up to 133 records read twice, lag +1,350, back after 12 s. Empty where no line shows it."""
        parts = []
        if (number := self.read_twice()) != "-":
            noun = "record" if self.reread_max == 1 else "records"
            parts.append(f"{number.replace('0 to', 'up to', 1) if number.startswith('0 to') else number} {noun} read twice{self.told}")
        if self.lag_added is not None:
            parts.append(f"lag {self.lag()}")
        if self.catch_up_ms is not None:
            parts.append(f"back after {duration(self.catch_up_ms)}")
        return ", ".join(parts)


class RecordsOf:
    """What each rebalance cost in records."""

    def __init__(self, rows: Iterable[Row] = ()) -> None:
        """`rows`: answers to RECORDS."""
        self._of = {_key_of(row): Records.of(row) for row in rows}

    def rebalance(self, row: Row) -> Records:
        """Of a row of `rebalances`."""
        return self._of.get(_key_of(row), Records())

    def together(self, keys: Iterable[RebalanceKey]) -> Records:
        """Of some rebalances. What was read twice is that of those that tell; the lag is known if that of each is."""
        found = [self._of[key] for key in keys if key in self._of]
        if not found:
            return Records()
        telling = [each for each in found if each.reread_max is not None]
        lag, catch_up = [each.lag_added for each in found], [each.catch_up_ms for each in found]
        return Records(
            sum(each.reread_min or 0 for each in telling or found),
            sum(each.reread_max or 0 for each in telling) if telling else None,
            None if None in lag else sum(filter(None, lag)),
            None if None in catch_up else max(filter(None, catch_up), default=0),
            any(each.gaps for each in found),
            f" in {len(telling)} of {len(found)} rebalances" if 0 < len(telling) < len(found) else "",
        )


def _key_of(row: Row) -> RebalanceKey:
    return row["cluster"], row["group_id"], epoch_ms(row["started_at"]), epoch_ms(row["ended_at"])
