"""The report as text: within the terminal's width where a person looks, as wide as it gets where the output is piped.

Everything that comes from a log goes through jobs/common/text.py; nothing is read as markup.
"""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from datetime import datetime
from itertools import groupby
from typing import Final

from rich.console import Console
from rich.text import Text

from coordinator_model.events import CLIENTS, OFFSETS_SOURCE, POLL_SOURCE
from jobs.answers.report import Report, Row
from jobs.cli.columns import Columns
from jobs.common.text import printable, who
from jobs.common.times import duration, epoch_ms, instant

_PARAGRAPH: Final = 120  # columns: a line that is longer is not easy to read
# The first one that fits is taken. Who did it and how long it took matter more than the rest.
_LAYOUTS: Final = (
    ("  Time", ">Gen", "Cause", "~Culprit", ">Join", ">Sync", ">Total", "Outcome", "Members", ">Moved", ">Time lost"),
    ("  Time", ">Gen", "Cause", "~Culprit", ">Join", ">Sync", ">Total", "Outcome", "Members"),
    ("  Time", ">Gen", "Cause", "~Culprit", ">Total", "Members"),
    ("  At", ">Gen", "Cause", "~Client", ">Total", "Members"),
)
_STYLES: Final = {"ERROR": "bold red", "WARNING": "yellow", "INFO": "cyan"}

_BESIDE: Final = {CLIENTS: "logs of clients", OFFSETS_SOURCE: "records of __consumer_offsets", POLL_SOURCE: "polls"}
"""What is no broker, by what stands in the place of one."""


def render(report: Report, console: Console, *, rebalances_per_group: int | None = None) -> None:
    """Writes the report. `rebalances_per_group` keeps the costliest of each group, in time order, and says so."""
    view = _View(report, console, rebalances_per_group)
    for cluster in report.clusters or [{}]:
        view.header(cluster)
    if not report.groups:
        named = f"group {printable(report.group)}" if report.group else "any consumer group"
        view.line(f"Nothing found: no line names {named}.")
        return
    view.groups()
    view.rebalances()
    view.findings()


class _View:
    """Where and how one report is shown."""

    def __init__(self, report: Report, console: Console, per_group: int | None) -> None:
        self.report = report
        self.console = console
        self.per_group = per_group
        self.many_clusters = len({row["cluster"] for row in report.groups}) > 1
        days = {row[name].date() for row in report.clusters for name in ("first_at", "last_at") if row[name] is not None}
        self.one_day = len(days) == 1

    def line(self, text: str = "", style: str = "") -> None:
        """One line, as it is: no markup, no wrapping."""
        self.console.print(Text(text, style=style), soft_wrap=True)

    def time(self, at: datetime) -> str:
        """The time alone where the header says the day."""
        return instant(epoch_ms(at))[11 if self.one_day else 0 :]

    def name(self, row: Row) -> str:
        """A group, with its cluster where there are several."""
        return (printable(row["cluster"], 30) + "/" if self.many_clusters else "") + printable(row["group_id"], 60)

    def header(self, cluster: Row) -> None:
        """Cluster, time span, account of the lines."""
        if not cluster:
            return
        self.line(f"Cluster {printable(cluster['cluster'], 60)}", "bold")
        first_ms, last_ms = epoch_ms(cluster["first_at"]), epoch_ms(cluster["last_at"])
        self.line(f"  Time    {instant(first_ms)} to {instant(last_ms)} UTC ({duration(last_ms - first_ms)})")
        brokers = [broker for broker in cluster["brokers"] if broker not in _BESIDE]
        if brokers:
            self.line(f"  Brokers {', '.join(printable(broker, 30) for broker in brokers)}")
        if beside := [_BESIDE[broker] for broker in cluster["brokers"] if broker in _BESIDE]:
            self.line(f"  {'And' if brokers else 'From':7} {', '.join(beside)}")
        if lines := cluster["lines"]:
            self.line(
                f"  Lines   {lines['lines_read']:,} read: {lines['skipped']:,} unrelated,"
                f" {lines['events']:,} events, {lines['quarantined']:,} unreadable"
            )
        self.line()

    def groups(self) -> None:
        """One line per group."""
        groups = self.report.groups
        columns = self.columns("~Group", "State", ">Gen", ">Members", ">Rebalances", ">Rebalancing", "Worst cause")
        for row in groups:
            columns.add(
                self.name(row),
                row["state"] or ("consumer protocol" if row["protocol"] == "consumer" else "not seen"),
                _number(row["generation"]),
                _number(row["members"]),
                str(row["rebalances"]),
                duration(row["rebalancing_ms"] or None),
                row["worst_cause"] or "-",
            )
        self.line(f"Groups ({len(groups)})", "bold")
        self.print(columns)

    def rebalances(self) -> None:
        """Rebalances of each group, in time order."""
        rebalances = self.report.rebalances
        if not rebalances:
            self.line("No rebalances.")
            self.line()
            return
        self.line(f"Rebalances ({len(rebalances)})", "bold")
        layouts = (self.rebalance_columns(rebalances, names) for names in _LAYOUTS)
        fitting = next((columns for columns in layouts if columns.fits), None)
        self.print(fitting or self.rebalance_columns(rebalances, _LAYOUTS[-1]))

    def rebalance_columns(self, rebalances: Sequence[Row], names: Sequence[str]) -> Columns:
        """The table of rebalances with some of its columns."""
        columns = self.columns(*names)
        for _, rows in groupby(rebalances, key=lambda row: (row["cluster"], row["group_id"])):
            of_group = list(rows)
            shown = self.costliest(of_group)
            columns.heading(self.name(of_group[0]))
            for row in shown:
                cells = self.rebalance(row)
                if names is _LAYOUTS[2] and row["outcome"] != "COMPLETED":
                    cells["Members"] += f" {row['outcome']}"
                columns.add(*(cells[name.lstrip(">~")] for name in names))
            if len(shown) < len(of_group):
                columns.heading(f"  {len(of_group) - len(shown)} more")
        return columns

    def costliest(self, rows: Sequence[Row]) -> list[Row]:
        """The rows to show."""
        if self.per_group is None or len(rows) <= self.per_group:
            return list(rows)
        order = sorted(range(len(rows)), key=lambda index: -rows[index]["total_ms"])[: self.per_group]
        return [rows[index] for index in sorted(order)]

    def rebalance(self, row: Row) -> dict[str, str]:
        """The cells of one rebalance, by column."""
        client = row["client_id"], row["client_host"], row["member_id"], row["instance_id"]
        moved = row["partitions_moved"]
        return {
            "  Time": "  " + self.time(row["started_at"]),
            "  At": "  " + self.time(row["started_at"])[:-4],
            "Gen": _number(row["generation"]),
            "Cause": row["cause"],
            "Culprit": who(*client),
            "Client": who(client[0], None, *client[2:]),
            "Join": duration(row["join_ms"]),
            "Sync": duration(row["sync_ms"]),
            "Total": duration(row["total_ms"]),
            "Outcome": row["outcome"],
            "Members": f"{_number(row['members_before'], '?')} > {_number(row['members_after'], '?')}",
            "Moved": "-" if moved is None else f"{moved}/{_number(row['partitions'], '?')}",
            "Time lost": duration(row["unavailable_partition_ms"]),
        }

    def findings(self) -> None:
        """What is worth a person's time, with what to do about it."""
        findings = self.report.findings
        if not findings:
            self.line("No findings: nothing here needs attention.", "green")
            return
        advised: set[str] = set()
        self.line(f"Findings ({len(findings)})", "bold")
        for row in findings:
            client = who(row["client_id"], row["client_host"], row["member_id"])
            title = Text(f"  {self.time(row['at'])} ")
            title.append(f"{row['severity']:<8}", style=_STYLES.get(row["severity"], ""))
            title.append(f"{row['code']}  {self.name(row)}  {client}")
            title.append(f"  {row['id']}", style="dim")
            self.console.print(title, soft_wrap=True)
            self.paragraph("", row["message"])
            if row["advice"] not in advised:  # once: a bad day brings the same finding many times
                self.paragraph("Advice: ", row["advice"])
                advised.add(row["advice"])

    def paragraph(self, label: str, text: str) -> None:
        """An indented paragraph."""
        width = min(self.console.width, _PARAGRAPH) - 2
        for piece in textwrap.wrap(label + printable(text, 600), max(width, 40), initial_indent=" " * 6, subsequent_indent=" " * 6):
            self.line(piece)

    def columns(self, *names: str) -> Columns:
        """An empty table, as wide as may be."""
        return Columns(names, self.console.width if self.console.is_terminal else None)

    def print(self, columns: Columns) -> None:
        """Prints a table."""
        for text in columns.lines():
            self.console.print(text, soft_wrap=True)
        self.line()


def _number(value: int | None, absent: str = "-") -> str:
    return absent if value is None else str(value)
