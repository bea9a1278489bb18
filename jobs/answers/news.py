"""What comes to `rebalances`, `rebalances_provisional` and `findings` while a pipeline writes them.

Each rebalance and each finding is told once, and each correction of a rebalance, also of one that is open. Only new files are read. Where
a table has to be read again as a whole (jobs/lakehouse/growth.py), what was told before is left out.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, Final, TypeAlias

import duckdb
from deltalake import DeltaTable
from deltalake.exceptions import DeltaError, TableNotFoundError

from coordinator_model.tracker.unended import WAITS
from jobs.answers.ask import newest, parse_instant
from jobs.answers.duckdb_views import QuestionReader, Row
from jobs.answers.open_rebalances import is_open
from jobs.common.errors import LakehouseError, MissingTableError
from jobs.common.times import EPOCH
from jobs.lakehouse.growth import GrowingTable, Growth
from jobs.lakehouse.reader import create_view
from schemas.names import FINDINGS, GROUP_EVENTS, REBALANCES, REBALANCES_PROVISIONAL

LATEST: Final = 10
"""How many of the rows that are there already are told at first, unless a time says from when on."""

_SAID: Final = ("started_at", "cause", "client_id", "total_ms", "members_before", "members_after")
"""What a line about a rebalance says."""
_REMEMBERED: Final = 20_000
"""Rows of which it is known how they were told. Older ones are not told again."""
_TRIALS: Final = 20
"""Looks in succession at tables that cannot be read, until they count as broken: meanwhile others may have replaced their files."""
_NO_LIMIT: Final = 1 << 62

_REBALANCES: Final = """
    SELECT r.* FROM rebalances_with_id AS r
    WHERE ($cluster IS NULL OR r.cluster = $cluster) AND ($group IS NULL OR r.group_id = $group)
      AND r.started_at >= $since AND r.ended_at > $after
    ORDER BY r.ended_at DESC, r.started_at DESC, r.cluster DESC, r.group_id DESC, r.id LIMIT $limit
"""
_FINDINGS: Final = """
    SELECT f.* FROM findings_with_id AS f
    WHERE ($cluster IS NULL OR f.cluster = $cluster) AND ($group IS NULL OR f.group_id = $group)
      AND f.occurred_at >= $since AND f.occurred_at > $after
    ORDER BY f.occurred_at DESC, f.cluster DESC, f.group_id DESC, f.code DESC, f.id LIMIT $limit
"""

_Key: TypeAlias = tuple[Any, ...]


@dataclass(frozen=True)
class Told:
    """What was told of a row."""

    id: str
    said: tuple[Any, ...]
    waits_for: str | None

    @property
    def was_open(self) -> bool:
        """Whether the rebalance had not ended by then."""
        return self.waits_for in WAITS


@dataclass(frozen=True)
class NewsItem:
    """A finding, or a rebalance that is new or of which more is known than when it was told before."""

    table: str
    """`rebalances` or `findings`. Provisional rows count to `rebalances`."""
    row: Row
    """With its `id`; a rebalance also with `waits_for`, which is None in its final row."""
    replaced: Told | None = None
    """What was told of the rebalance before."""

    @property
    def at(self) -> datetime:
        """When the rebalance ended, or when that happened which the finding is about."""
        at: datetime = self.row["ended_at" if self.table == REBALANCES else "occurred_at"]
        return at

    @property
    def key(self) -> _Key:
        """What the rebalance or finding is known by, whatever else of it is corrected. A group has one rebalance that is open."""
        if self.table == FINDINGS:
            return (self.row["id"],)
        if is_open(self.row):
            return self.open_key
        row = self.row  # as in sql/views/rebalances_waiting.sql
        return row["cluster"], row["group_id"], row["generation"], row["joined_at"] or row["ended_at"]

    @property
    def open_key(self) -> _Key:
        """What the rebalance is known by that is open in its group."""
        return self.row["cluster"], self.row["group_id"]

    @property
    def waits_for(self) -> str | None:
        """What a provisional row waits for; None: it is final."""
        return self.row.get("waits_for")

    @property
    def told(self) -> Told:
        """What of it is to be remembered."""
        said = tuple(self.row[name] for name in _SAID) if self.table == REBALANCES else ()
        return Told(self.row["id"], said, self.waits_for)

    @property
    def is_correction(self) -> bool:
        """Whether a line about it says something else than the line before."""
        return self.replaced is not None and self.replaced.said != self.told.said


class News:
    """Looks at the tables of a lakehouse, which may not exist yet, and may be maintained or made anew meanwhile."""

    def __init__(self, lakehouse: Path, *, cluster: str | None = None, group: str | None = None, since: str | None = None) -> None:
        """`since`: only rows of this time and later, as it was typed. QuestionError: it is no time."""
        if since is not None:
            parse_instant(since, EPOCH, name="since")
        self._lakehouse = lakehouse
        self._scope = {"cluster": cluster, "group": group}
        self._typed = since
        self._since = EPOCH if since is None else None
        # In the order in which they are looked at: a provisional row that is found after the final one is not told.
        self._tables = {name: GrowingTable(lakehouse / name) for name in (REBALANCES_PROVISIONAL, REBALANCES, FINDINGS)}
        self._told: OrderedDict[_Key, tuple[Told, datetime]] = OrderedDict()
        self._forgotten: datetime | None = None  # what is not younger is not told when tables are read again
        self._failed = 0

    def take(self) -> list[NewsItem]:
        """What came since the last call, in the order of time. LakehouseError: the tables cannot be read."""
        growths = {name: growth for name, table in self._tables.items() if (growth := table.look()) is not None}
        if not growths:
            return []
        try:
            if not DeltaTable.is_deltatable(str(self._lakehouse / GROUP_EVENTS)) or (since := self._from()) is None:
                return self._later()
            items = self._new(growths, since)
        except MissingTableError:  # it is being made
            return self._later()
        except (DeltaError, duckdb.Error, FileNotFoundError) as error:  # files are gone, because others have replaced them
            self._failed += 1
            if self._failed > _TRIALS:
                raise LakehouseError(f"the tables of {self._lakehouse} cannot be read: {str(error).partition(chr(10))[0]}") from None
            return self._later()
        self._failed = 0
        return items

    def _later(self) -> list[NewsItem]:
        for table in self._tables.values():
            table.forget()
        return []

    def _from(self) -> datetime | None:
        """The time from which on rows are told; None: it counts back from the newest event, and there is none yet."""
        if self._since is None and self._typed is not None:
            now = newest(QuestionReader(self._lakehouse), self._scope["cluster"])
            self._since = parse_instant(self._typed, now, name="since") if now > EPOCH else None
        return self._since

    def _new(self, growths: Mapping[str, Growth], since: datetime) -> list[NewsItem]:
        reader = _GrowthReader(self._lakehouse, growths)
        is_first = self._forgotten is None
        limit = LATEST + 1 if is_first and self._typed is None else _NO_LIMIT
        found: list[NewsItem] = []
        for table, query, sources in (
            (REBALANCES, _REBALANCES, (REBALANCES, REBALANCES_PROVISIONAL)),
            (FINDINGS, _FINDINGS, (FINDINGS,)),
        ):
            if growths.keys() & set(sources):
                is_read_again = any(growth.files is None for name, growth in growths.items() if name in sources)
                after = self._forgotten if is_read_again and self._forgotten is not None else EPOCH
                values = self._scope | {"since": since, "after": after, "limit": limit}
                found += [NewsItem(table, row) for row in reversed(reader.ask(query, values).by_name())]
        found.sort(key=lambda item: item.at)
        if is_first:
            self._forgotten = EPOCH
            if len(found) >= limit:
                found = found[-LATEST:]
                self._forgotten = found[0].at - timedelta(microseconds=1)
        return [told for item in found if (told := self._remembered(item)) is not None]

    def _remembered(self, item: NewsItem) -> NewsItem | None:
        """The item with what was told of it before; None: all of it was told."""
        before, _ = self._told.get(item.key, (None, None))
        if before is None and item.table == REBALANCES and not is_open(item.row):
            before = self._ended(item)
        if before is not None:
            is_old = item.table == FINDINGS or before == item.told or (before.waits_for is None and item.waits_for is not None)
            if is_old:
                return None
        self._told[item.key] = item.told, item.at
        self._told.move_to_end(item.key)
        if len(self._told) > _REMEMBERED:
            _, (_, at) = self._told.popitem(last=False)
            self._forgotten = max(at, self._forgotten or at)
        return NewsItem(item.table, item.row, before)

    def _ended(self, item: NewsItem) -> Told | None:
        """What was told of the rebalance as it was open, which this row shows to have ended."""
        told, _ = self._told.get(item.open_key, (None, None))
        if told is None or item.row["ended_at"] <= told.said[0]:  # the one before it
            return None
        del self._told[item.open_key]
        return told


class _GrowthReader(QuestionReader):
    """Shows of some tables what came to them since the last look, of the others nothing."""

    def __init__(self, folder: Path, growths: Mapping[str, Growth]) -> None:
        self._growths = growths
        super().__init__(folder)

    def add_view(self, name: str) -> bool:
        growth = self._growths.get(name)
        try:
            if growth is None:
                create_view(self.connection, self.folder / name, files=[])
            else:
                create_view(self.connection, self.folder / name, growth.table, growth.files)
        except TableNotFoundError:
            return False
        return True
