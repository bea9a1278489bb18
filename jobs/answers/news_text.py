"""A line for a terminal about each rebalance and each finding, as it comes, in the words of the report."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime, timezone
from typing import Final

from rich.cells import cell_len
from rich.text import Text

from coordinator_model.view.reasons import UNKNOWN
from jobs.answers.attention_words import STYLES, title_of
from jobs.answers.duckdb_views import Row
from jobs.answers.incidents.outages import broker_name
from jobs.answers.news import NewsItem
from jobs.answers.rebalance_words import CONSUMER, waits_note
from jobs.common.text import printable, some
from jobs.common.times import duration
from schemas.names import REBALANCES

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
        text.append(self._culprit(row, row["culprit_client_id"]))
        text.append(f"{duration(row['total_ms']):>8}")
        text.append(f"   {_count(row['members_before'])} -> {_count(row['members_after'])} members", "dim")
        if row["group_protocol"] == CONSUMER:
            text.append("   consumer protocol", "dim")
        if self._wide and item.waits_for is None:  # the id of a provisional row may change
            text.append(f"  {row['id']}", "dim")
            text.append(f"  {cost}" if (cost := item.records.in_words()) else "")

    def _finding(self, text: Text, rows: Sequence[Row], groups: Sequence[str]) -> None:
        row, broker = rows[0], rows[0]["culprit_broker"]
        text.append(title_of(rows) + (f" ({broker_name(printable(broker, 30))})" if broker else ""), STYLES.get(row["severity"], ""))
        text.append(f"  {row['code']}", "dim")
        if self._wide:
            names = some([printable(group, 60) for group in groups], _NAMED)
            text.append(f"  {row['id']}", "dim")
            text.append(f"  {names if len(groups) > 1 else printable(row['message'], _MESSAGE)}")

    def _culprit(self, row: Row, client_id: str | None) -> str:
        broker = row["culprit_broker"]
        return _cell(broker_name(broker) if broker else client_id, self._client)


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
