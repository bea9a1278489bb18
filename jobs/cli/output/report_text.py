"""The report as text: within the terminal's width where there is a terminal, else as wide as it needs to be.

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
from jobs.cli.output.columns import Columns
from jobs.cli.output.terminal import write
from jobs.common.text import printable, who
from jobs.common.times import duration, epoch_ms, instant

_PARAGRAPH: Final = 120  # columns: a longer line is hard to read
# The first layout that fits is used. Who caused a rebalance and how long it took matter most.
_LAYOUTS: Final = (
    ("  Time", ">Gen", "Cause", "~Culprit", ">Join", ">Sync", ">Total", "Outcome", "Members", ">Moved", ">Time lost"),
    ("  Time", ">Gen", "Cause", "~Culprit", ">Join", ">Sync", ">Total", "Outcome", "Members"),
    ("  Time", ">Gen", "Cause", "~Culprit", ">Total", "Members"),
    ("  At", ">Gen", "Cause", "~Client", ">Total", "Members"),
)
_STYLES: Final = {"ERROR": "bold red", "WARNING": "yellow", "INFO": "cyan"}
_OTHER_SOURCES: Final = {CLIENTS: "logs of clients", OFFSETS_SOURCE: "records of __consumer_offsets", POLL_SOURCE: "polls"}
"""Sources other than brokers, by the name that the tables give in the column `broker`."""


def render(report: Report, console: Console, *, rebalances_per_group: int | None = None) -> None:
    """Writes the report. `rebalances_per_group` keeps the costliest of each group, in time order, and counts the others."""
    view = _View(report, console, rebalances_per_group)
    for cluster in report.clusters:
        view.header(cluster)
    if not report.groups:
        named = f"group {printable(report.group)}" if report.group else "any consumer group"
        write(console, f"Nothing found: no line names {named}.")
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
        self.one_day = len({row[name].date() for row in report.clusters for name in ("first_at", "last_at") if row[name] is not None}) == 1

    def time(self, at: datetime) -> str:
        """Without the day, if the header shows it."""
        return instant(epoch_ms(at))[11 if self.one_day else 0 :]

    def name(self, row: Row) -> str:
        """A group, with its cluster if there are several."""
        return (printable(row["cluster"], 30) + "/" if self.many_clusters else "") + printable(row["group_id"], 60)

    def header(self, cluster: Row) -> None:
        """Cluster, time span, account of the lines."""
        first_ms, last_ms = epoch_ms(cluster["first_at"]), epoch_ms(cluster["last_at"])
        write(self.console, f"Cluster {printable(cluster['cluster'], 60)}", "bold")
        write(self.console, f"  Time    {instant(first_ms)} to {instant(last_ms)} UTC ({duration(last_ms - first_ms)})")
        brokers = [printable(broker, 30) for broker in cluster["brokers"] if broker not in _OTHER_SOURCES]
        others = [_OTHER_SOURCES[broker] for broker in cluster["brokers"] if broker in _OTHER_SOURCES]
        if brokers:
            write(self.console, f"  Brokers {', '.join(brokers)}")
        if others:
            write(self.console, f"  {'And' if brokers else 'From':7} {', '.join(others)}")
        if lines := cluster["lines"]:
            counts = "{lines_read:,} read: {skipped:,} unrelated, {events:,} events, {quarantined:,} unreadable".format_map(lines)
            write(self.console, f"  Lines   {counts}")
        write(self.console)

    def groups(self) -> None:
        """One line per group."""
        columns = Columns(("~Group", "State", ">Gen", ">Members", ">Rebalances", ">Rebalancing", "Worst cause"), self.console)
        for row in self.report.groups:
            columns.add(
                self.name(row),
                row["state"] or ("consumer protocol" if row["protocol"] == "consumer" else "not seen"),
                _number(row["generation"]),
                _number(row["members"]),
                str(row["rebalances"]),
                duration(row["rebalancing_ms"] or None),
                row["worst_cause"] or "-",
            )
        self.table(f"Groups ({len(self.report.groups)})", columns)

    def table(self, title: str, columns: Columns) -> None:
        """A table under its title."""
        write(self.console, title, "bold")
        columns.write()
        write(self.console)

    def rebalances(self) -> None:
        """Rebalances of each group, in time order."""
        rebalances = self.report.rebalances
        if not rebalances:
            write(self.console, "No rebalances.\n")
            return
        layouts = [self.rebalance_columns(rebalances, names) for names in _LAYOUTS]
        fitting = next((columns for columns in layouts if columns.fits()), layouts[-1])
        self.table(f"Rebalances ({len(rebalances)})", fitting)

    def rebalance_columns(self, rebalances: Sequence[Row], names: Sequence[str]) -> Columns:
        """The table of rebalances with some of its columns."""
        columns = Columns(names, self.console)
        for _, rows in groupby(rebalances, key=lambda row: (row["cluster"], row["group_id"])):
            of_group = list(rows)
            costliest = {id(row) for row in sorted(of_group, key=lambda row: -(row["total_ms"] or 0))[: self.per_group]}
            columns.heading(self.name(of_group[0]))
            for row in of_group:
                if id(row) in costliest:
                    cells = self.rebalance(row)
                    if names is _LAYOUTS[2] and row["outcome"] != "COMPLETED":
                        cells["Members"] += f" {row['outcome']}"
                    columns.add(*(cells[name] for name in columns.names))
            if len(costliest) < len(of_group):
                columns.heading(f"  {len(of_group) - len(costliest)} more")
        return columns

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
        """What needs attention, and what to do about it."""
        findings = self.report.findings
        if not findings:
            write(self.console, "No findings: nothing here needs attention.", "green")
            return
        advised: set[str] = set()
        write(self.console, f"Findings ({len(findings)})", "bold")
        for row in findings:
            client = who(row["client_id"], row["client_host"], row["member_id"])
            title = Text(f"  {self.time(row['occurred_at'])} ")
            title.append(f"{row['severity']:<8}", style=_STYLES.get(row["severity"], ""))
            title.append(f"{row['code']}  {self.name(row)}  {client}")
            title.append(f"  {row['id']}", style="dim")
            write(self.console, title)
            self.paragraph("", row["message"])
            if row["advice"] not in advised:  # once: a bad day has the same finding many times
                self.paragraph("Advice: ", row["advice"])
                advised.add(row["advice"])

    def paragraph(self, label: str, text: str) -> None:
        """An indented paragraph."""
        width = max(min(self.console.width, _PARAGRAPH) - 2, 40)
        for line in textwrap.wrap(label + printable(text, 600), width, initial_indent=" " * 6, subsequent_indent=" " * 6):
            write(self.console, line)


def _number(value: int | None, absent: str = "-") -> str:
    return absent if value is None else str(value)
