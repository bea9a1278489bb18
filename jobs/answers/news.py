"""What comes to `rebalances`, `rebalances_provisional` and `findings` while a pipeline writes them, and a line for a terminal about each.

Each rebalance and each finding is told once, and each correction: also of a rebalance that is open, of what it is blamed on, which a
finding may decide that comes after it, and of the broker that a finding is about. A row is new if a later micro-batch wrote it than any
that was seen. Only files that are new or were written lately are read.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta, timezone
from typing import Any, Final, TypeAlias

import duckdb
from deltalake.exceptions import DeltaError, TableNotFoundError
from rich.cells import cell_len
from rich.text import Text

from coordinator_model.diagnosis.catalogue import COORDINATOR_MOVED
from coordinator_model.diagnosis.findings import broker_name
from coordinator_model.tracker.unended import WAITS
from coordinator_model.view.reasons import UNKNOWN
from jobs.answers.ask import newest, parse_instant
from jobs.answers.attention_words import STYLES, title_of
from jobs.answers.duckdb_views import QuestionReader, Row
from jobs.answers.incidents.bills import Records, RecordsOf
from jobs.answers.rebalance_words import CONSUMER, waits_note
from jobs.common.errors import LakehouseError, MissingTableError
from jobs.common.places import own_query
from jobs.common.stores import Place
from jobs.common.text import printable, some
from jobs.common.times import EPOCH, duration
from jobs.lakehouse import opening
from jobs.lakehouse.delta_files import data_files
from jobs.lakehouse.parquet import is_plain
from jobs.lakehouse.reader import create_view
from schemas.names import FINDINGS, GROUP_EVENTS, INCIDENTS, REBALANCE_OFFSETS, REBALANCES, REBALANCES_PROVISIONAL

LATEST: Final = 10
"""How many of the rows that are there already are told at first, unless a time says from when on."""

_SAID: Final = (
    *("started_at", "startup", "blamed", "culprit_broker", "culprit_client_id", "total_ms"),
    *("members_before", "members_after"),
)
"""What a line about a rebalance says. That about a finding only says its broker anew."""
_REMEMBERED: Final = ("cluster", "group_id", "id", "waits_for", "occurred_at", "ended_at", *_SAID)
_MOST: Final = 20_000
"""Rows of which it is known how they were told. Older ones are not told again."""
_TRIALS: Final = 20
"""Looks in succession at tables that cannot be read, until they count as broken: meanwhile others may have replaced their files. As many at
findings about brokers that are part of no incident yet, until they are told without: the pipeline may have been killed."""
_NO_LIMIT: Final = 1 << 62
_LATELY_MS: Final = {REBALANCES_PROVISIONAL: 300_000, REBALANCES: 300_000, FINDINGS: 900_000}
"""How long before the newest one a file may have been written that is read again: findings for longer, so that those which decide what a
rebalance is blamed on are there for as long as it is."""

_BATCHES: Final = " UNION ALL ".join(f"SELECT '{name}', coalesce(max(batch_id), -1) FROM {name}" for name in _LATELY_MS)  # noqa: S608
_UNKNOWN: Final = Records()

_Key: TypeAlias = tuple[Any, ...]


@dataclass(frozen=True)
class NewsItem:
    """A rebalance or a finding that is new, or of which more is known than when it was told before."""

    table: str
    """`rebalances` or `findings`. Provisional rows count to `rebalances`."""
    row: Row
    """With its `id` and `culprit_broker`; a rebalance also with `waits_for`, which is None in its final row."""
    replaced: NewsItem | None = None
    """What was told of it before: of its row only what is to be remembered."""
    records: Records = _UNKNOWN
    """What a rebalance cost in records that was there at the first look: minutes pass until that is known."""

    @property
    def at(self) -> datetime:
        """When the rebalance ended, or when that happened which the finding is about."""
        at: datetime = self.row["ended_at" if self.table == REBALANCES else "occurred_at"]
        return at

    @property
    def key(self) -> _Key:
        """What the rebalance or finding is known by, whatever else of it is corrected. A group has one rebalance that is open."""
        if self.table == FINDINGS:
            return self.row["id"], self.row["group_id"]  # all groups of an incident of which no finding tells have its id
        if self.goes_on:
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
    def goes_on(self) -> bool:
        """Whether the rebalance has not ended."""
        return self.waits_for in WAITS

    @property
    def told(self) -> NewsItem:
        """What of it is to be remembered."""
        return NewsItem(self.table, {name: self.row.get(name) for name in _REMEMBERED})

    @property
    def is_correction(self) -> bool:
        """Whether a line about it says something else than the line before."""
        return self.replaced is not None and any(self.replaced.row[name] != self.row.get(name) for name in _SAID)

    @property
    def says_more(self) -> bool:
        """Whether a line about it is new, or says something else than the line before."""
        return self.replaced is None or self.is_correction


class News:
    """Looks at the tables of a lakehouse, which may not exist yet, and may be maintained or made anew meanwhile."""

    def __init__(self, lakehouse: Place, *, cluster: str | None = None, group: str | None = None, since: str | None = None) -> None:
        """`since`: only rows of this time and later, as it was typed. QuestionError: it is no time."""
        if since is not None:
            parse_instant(since, EPOCH, name="since")
        self._lakehouse = lakehouse
        self._scope = {"cluster": cluster, "group": group}
        self._typed = since
        self._since: datetime | None = None  # not known yet
        self._logs: dict[str, tuple[str, int] | None] = {}  # as they were at the last look
        self._files: dict[str, int] = {}  # the files that were there, and when each was written, epoch ms
        self._batches: dict[str, int] = {}  # the newest micro-batch that was seen of each table
        self._told: dict[_Key, NewsItem] = {}  # what was told last is the last
        self._forgotten: datetime | None = None  # what is not younger is not told when tables are made anew
        self._failed = self._waited = 0

    def take(self) -> list[NewsItem]:
        """What came since the last call, in the order of time. LakehouseError: the tables cannot be read."""
        logs = {name: opening.version_of(self._lakehouse / name) for name in (*_LATELY_MS, INCIDENTS)}
        if logs == self._logs:
            return []
        if any(log is None or log[:1] != (self._logs.get(name) or ())[:1] for name, log in logs.items()):
            self._files, self._batches = {}, dict.fromkeys(_LATELY_MS, -1)  # others have made them anew
        seen, self._logs = self._logs, {}
        try:
            if opening.version_of(self._lakehouse / GROUP_EVENTS) is None:
                return []
            if self._typed is not None and self._since is None:
                now = newest(QuestionReader(self._lakehouse), self._scope["cluster"])
                if now == EPOCH:  # a span counts back from the newest event, and there is none yet
                    return []
                self._since = parse_instant(self._typed, now, name="since")
            items = self._new()
        except MissingTableError:  # it is being made
            return []
        except (DeltaError, duckdb.Error, FileNotFoundError) as error:  # files are gone, because others have replaced them
            self._failed += 1
            if self._failed > _TRIALS:
                raise LakehouseError(f"the tables of {self._lakehouse} cannot be read: {str(error).partition(chr(10))[0]}") from None
            return []
        self._logs, self._failed = seen if items is None else logs, 0
        return items or []

    def _new(self) -> list[NewsItem] | None:
        """None: the micro-batch is not over, which writes at its end which broker findings are about."""
        reader = _RecentReader(self._lakehouse, self._files)
        is_first, known = self._forgotten is None, self._batches
        limit = LATEST + 1 if is_first and self._typed is None else _NO_LIMIT
        after = EPOCH if self._files or self._forgotten is None else self._forgotten
        values = self._scope | known | {"since": self._since or EPOCH, "after": after, "limit": limit}
        queries = ((REBALANCES, own_query("new_rebalances")), (FINDINGS, own_query("new_findings")))
        found = [NewsItem(table, row) for table, query in queries for row in reversed(reader.ask(query, values).by_name())]
        found.sort(key=lambda item: item.at)
        unknown = [item for item in found if item.row.get("code") == COORDINATOR_MOVED.code and not item.row["culprit_broker"]]
        self._waited = self._waited + 1 if unknown else 0
        if 0 < self._waited <= _TRIALS:
            return None
        self._files = reader.files
        self._batches = {name: max(batch, known[name]) for name, batch in reader.ask(_BATCHES, {}).rows}
        if is_first:
            self._forgotten = EPOCH
            if len(found) >= limit:
                found = found[-LATEST:]
                self._forgotten = found[0].at - timedelta(microseconds=1)
            found = self._with_records(reader, found)
        return [told for item in found if (told := self._remembered(item, known)) is not None]

    def _with_records(self, reader: QuestionReader, items: list[NewsItem]) -> list[NewsItem]:
        """Rebalances with what they cost in records."""
        first = min((item.row["started_at"] for item in items if item.table == REBALANCES), default=None)
        records = RecordsOf(
            () if first is None else reader.found(f"{own_query('records')} AND started_at >= $first", self._scope | {"first": first})
        )
        return [replace(item, records=records.rebalance(item.row)) if item.table == REBALANCES else item for item in items]

    def _remembered(self, item: NewsItem, known: Mapping[str, int]) -> NewsItem | None:
        """The item with what was told of it before; None: all of it was told, or it was there when nothing had been told.

        `known`: the newest micro-batch of each table at the last look.
        """
        since = known[item.table if item.waits_for is None else REBALANCES_PROVISIONAL]
        batch = item.row["batch_id"]  # none of a crash of which no finding tells: what was told tells whether it is new
        is_new = item.at > (self._forgotten or EPOCH) if batch is None else batch > since
        before = self._told.get(item.key)
        if before is None and not item.goes_on:
            before = self._ended(item)
        if before is None and not is_new:
            return None
        if before is not None and (before == item.told or (before.waits_for is None and item.waits_for is not None)):
            return None
        self._told.pop(item.key, None)
        self._told[item.key] = item.told
        if len(self._told) > _MOST:
            oldest = self._told.pop(next(iter(self._told)))
            self._forgotten = max(oldest.at, self._forgotten or oldest.at)
        return replace(item, replaced=before)

    def _ended(self, item: NewsItem) -> NewsItem | None:
        """What was told of the rebalance as it was open, which this row shows to have ended."""
        told = self._told.get(item.open_key) if item.table == REBALANCES else None
        if told is None or item.row["ended_at"] <= told.row["started_at"]:  # the one before it
            return None
        return self._told.pop(item.open_key)


class _RecentReader(QuestionReader):
    """Shows of the tables that are followed what was written lately, and no events: those would give each open rebalance a new end."""

    def __init__(self, folder: Place, seen: Mapping[str, int]) -> None:
        """`seen`: the files that were there at the last look, and when each was written, epoch ms."""
        self.files: dict[str, int] = {}
        self._seen, self._last_ms = seen, max(seen.values(), default=0)
        super().__init__(folder)

    def add_view(self, name: str) -> bool:
        if name in (INCIDENTS, REBALANCE_OFFSETS):  # as a whole; the latter is only asked for at the first look
            return super().add_view(name)
        try:
            table = opening.opened(self.folder / name)
        except TableNotFoundError:
            return False
        files = data_files(table) if name in _LATELY_MS else []
        self.files |= {file.path: file.written_ms for file in files}
        recent = [file.path for file in files if file.path not in self._seen or file.written_ms >= self._last_ms - _LATELY_MS[name]]
        create_view(self.connection, self.folder / name, table, recent if is_plain(table) or not files else None)
        return True


_MARKS: Final = "○●▲"
_ASCII_MARKS: Final = "oO!"
_LEGEND: Final = "{1} rebalance, at its end   {0} one that later lines may change   {2} finding   STARTUP: of a group that was new or empty"
_ORDINARY: Final = frozenset({"STARTUP", "MEMBER_JOINED", "MEMBER_LEFT"})
_MESSAGE: Final = 400
_NAMED: Final = 4  # groups in a line


class NewsText:
    """How lines look. `wide`: there is room for longer names, for the ids of rows, and for the messages of findings."""

    def __init__(self, *, wide: bool = False, ascii_only: bool = False) -> None:
        self._wide = wide
        self._group, self._code, self._client = (20, 24, 20) if wide else (12, 18, 18)  # characters; longer names are cut
        self._marks = _ASCII_MARKS if ascii_only else _MARKS  # of a provisional rebalance, a final one, and a finding
        self._clusters: set[str] = set()
        self._day = ""

    def lines(self, items: Iterable[NewsItem]) -> Iterator[Text]:
        """The lines about items, each after a line with its day where that is another one. What a broker did to its groups is one line."""
        for same in _folded(items):
            if (day := f"{same[0].at:%Y-%m-%d}") != self._day:
                heading = Text(f"{day} UTC", style="bold")
                if not self._day:
                    heading.append(f"   {_LEGEND.format(*self._marks)}", "not bold dim")
                self._day = day
                yield heading
            yield self.line(*same)

    def line(self, item: NewsItem, *others: NewsItem) -> Text:
        """The line about an item, and others of the same broker. Groups have the name of their cluster once there are several of these."""
        is_rebalance, cluster = item.table == REBALANCES, item.row["cluster"]
        self._clusters.add(cluster)
        groups = list(dict.fromkeys(one.row["group_id"] for one in (item, *others)))
        about = f"{len(groups)} groups" if len(groups) > 1 else groups[0]
        about = f"{cluster}/{about}" if len(self._clusters) > 1 else about
        text = Text(f"{clock(item.at)}  ", no_wrap=True, overflow="ellipsis")  # lines come in the order of this time
        text.append(f"{self._marks[(item.waits_for is None) if is_rebalance else 2]} {_cell(about, self._group)} ", "bold")
        if is_rebalance:
            self._rebalance(text, item)
        else:
            self._finding(text, [item.row, *(one.row for one in others)], groups)
        has_ended = item.replaced is not None and item.replaced.goes_on
        note = waits_note(item.row) if item.waits_for is not None else "corrected" if item.is_correction and not has_ended else ""
        if note:
            text.append(f"   ({note})", "dim")
        return text

    def _rebalance(self, text: Text, item: NewsItem) -> None:
        row = item.row
        cause = row["blamed"]
        is_undecided = item.waits_for is not None and cause == UNKNOWN
        text.append(f"{_cell(cause, self._code)} ", "dim" if is_undecided else "green" if cause in _ORDINARY else "bold red")
        broker, client = row["culprit_broker"], row["culprit_client_id"]
        text.append(_cell(broker_name(broker) if broker else client, self._client))
        text.append(f"{duration(row['total_ms']):>8}")
        text.append(f"   members {_count(row['members_before'])} -> {_count(row['members_after'])}", "dim")
        if row["group_protocol"] == CONSUMER:
            text.append("   consumer protocol", "dim")
        if self._wide and item.waits_for is None:  # the id of a provisional row may change
            text.append(f"  {row['id']}", "dim")
            text.append(f"  {cost}" if (cost := item.records.in_words()) else "")

    def _finding(self, text: Text, rows: Sequence[Row], groups: Sequence[str]) -> None:
        row, broker = rows[0], rows[0]["culprit_broker"]
        text.append(title_of(rows) + (f" ({printable(broker_name(broker), 30)})" if broker else ""), STYLES.get(row["severity"], ""))
        text.append(f"  {row['code']}", "dim")
        if self._wide:
            names = some([printable(group, 60) for group in groups], _NAMED)
            text.append(f"  {row['id']}", "dim")
            text.append(f"  {names if len(groups) > 1 else printable(row['message'], _MESSAGE)}")


def _folded(items: Iterable[NewsItem]) -> Iterable[list[NewsItem]]:
    """Items in their order. The findings about what a broker did to its groups at one time stand where the first of them does.

    The groups that come back to it do so at another time than they left.
    """
    found: dict[object, list[NewsItem]] = {}
    for number, item in enumerate(items):
        row = item.row
        broker = None if item.table == REBALANCES else row["culprit_broker"]
        details = json.loads(row["details"]) if broker else {}
        way = [details.get("to_broker") == one for one in (broker, details.get("from_broker"))]  # it came back, or it stayed
        found.setdefault((row["cluster"], row["incident"], item.is_correction, *way) if broker else number, []).append(item)
    return found.values()


def clock(at: datetime) -> str:
    """The time of the day in UTC."""
    return f"{at.astimezone(timezone.utc):%H:%M:%S}"


def _cell(name: str | None, width: int) -> str:
    """A name that fills its column; some characters take two places."""
    shown = printable(name, width) or "-"
    return shown + " " * (width - cell_len(shown))


def _count(members: int | None) -> str:
    return "?" if members is None else str(members)
