"""A line for a terminal about each rebalance and each finding, as it comes."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timezone
from typing import Final

from rich.cells import cell_len
from rich.text import Text

from coordinator_model.view.reasons import UNKNOWN
from jobs.answers.duckdb_views import Row
from jobs.answers.news import NewsItem
from jobs.answers.rounds import CONSUMER
from jobs.common.text import printable
from jobs.common.times import duration
from schemas.names import REBALANCES

_MARKS: Final = "○●▲"
_ASCII_MARKS: Final = "oO!"
_STYLES: Final = {"ERROR": "bold red", "WARNING": "yellow", "INFO": "cyan"}
_ORDINARY: Final = frozenset({"MEMBER_JOINED", "MEMBER_LEFT"})
_MESSAGE: Final = 400


@dataclass(frozen=True)
class NewsText:
    """How lines look. Widths in characters; longer names are cut."""

    group: int = 12
    code: int = 18
    client: int = 18
    ascii_only: bool = False
    with_ids: bool = False
    """Whether a line has the id of the row, and that of a finding its message too."""

    @property
    def marks(self) -> str:
        """Of a provisional rebalance, a final one, and a finding."""
        return _ASCII_MARKS if self.ascii_only else _MARKS

    def legend(self) -> str:
        """What the marks mean, and of what the times are."""
        return "{1} rebalance, at its end   {0} one that later lines may correct   {2} finding".format(*self.marks)

    def line(self, item: NewsItem, note: str = "", *, group: str = "") -> Text:
        """The line about an item. `note`: what stands at its end; `group`: another name for its group."""
        row = item.row
        is_rebalance = item.table == REBALANCES
        text = Text(f"{clock(item.at)}  ")  # lines come in the order of this time
        mark = self.marks[(item.waits_for is None) if is_rebalance else 2]
        text.append(f"{mark} {_cell(group or row['group_id'], self.group)} ", "bold")
        if is_rebalance:
            self._rebalance(text, item)
        else:
            self._finding(text, row)
        if note:
            text.append(f"   ({note})", "dim")
        return text

    def _rebalance(self, text: Text, item: NewsItem) -> None:
        row = item.row
        style = "green" if row["cause"] in _ORDINARY else "bold red"
        text.append(f"{_cell(row['cause'], self.code)} ", "dim" if is_open(item) else style)
        text.append(_cell(row["client_id"], self.client))
        text.append(f"{duration(row['total_ms']):>8}")
        text.append(f"   {_count(row['members_before'])} -> {_count(row['members_after'])} members", "dim")
        if row["group_protocol"] == CONSUMER:
            text.append("   consumer protocol", "dim")
        if self.with_ids and item.waits_for is None:  # the id of a provisional row may change
            text.append(f"  {row['id']}", "dim")

    def _finding(self, text: Text, row: Row) -> None:
        text.append(f"{_cell(row['code'], self.code)} ", _STYLES.get(row["severity"], ""))
        text.append(_cell(row["client_id"], self.client))
        if self.with_ids:
            text.append(f"  {row['id']}", "dim")
            text.append(f"  {printable(row['message'], _MESSAGE)}")
        else:
            text.rstrip()


def is_open(item: NewsItem) -> bool:
    """Whether the lines so far do not decide what began the rebalance."""
    return item.waits_for is not None and item.row["cause"] == UNKNOWN


def clock(at: datetime) -> str:
    """The time of the day in UTC."""
    return f"{at.astimezone(timezone.utc):%H:%M:%S}"


def _cell(name: str | None, width: int) -> str:
    """A name that fills its column; some characters take two places."""
    shown = printable(name, width) or "-"
    return shown + " " * (width - cell_len(shown))


def _count(members: int | None) -> str:
    return "?" if members is None else str(members)
