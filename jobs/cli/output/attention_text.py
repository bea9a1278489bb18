"""The first part of the report: what needs attention, an entry for each incident."""

from __future__ import annotations

import re
import textwrap
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from datetime import datetime
from typing import Final

from rich.console import Console
from rich.text import Text

from jobs.answers.attention import SEVERITIES, AttentionEntry, Bill
from jobs.answers.duckdb_views import Row
from jobs.answers.outages import broker_name
from jobs.cli.output.terminal import write
from jobs.common.text import printable, who
from jobs.common.times import duration

_PARAGRAPH: Final = 116  # columns: a longer line is hard to read
_LEAST: Final = 40
_STYLES: Final = {"ERROR": "bold red", "WARNING": "yellow", "INFO": "cyan"}
_NOUNS: Final = {"ERROR": "error", "WARNING": "warning", "INFO": "note"}
_NAMED: Final = 4  # clients, or groups, in a line
_SENTENCES: Final = 600  # characters of a message or of advice


class AttentionText:
    """Writes entries. `time` and `name` show a time and a group of a cluster as the rest of the report does."""

    def __init__(self, console: Console, time: Callable[[datetime], str], name: Callable[[str, str], str]) -> None:
        self._console = console
        self._time = time
        self._name = name
        self._advised: dict[tuple[str, str], int] = {}  # code and sentence, and the number of the entry that has it

    def write(self, entries: Sequence[AttentionEntry], limit: int) -> None:
        """Writes the entries that come first, and counts the others."""
        if not entries:
            write(self._console, "No findings: nothing here needs attention.\n", "green")
            return
        counted = Counter(entry.severity for entry in entries)
        counts = [f"{counted[name]} {_NOUNS[name]}{'s' if counted[name] > 1 else ''}" for name in SEVERITIES if counted[name]]
        write(self._console, f"What needs attention ({', '.join(counts)})", "bold")
        write(
            self._console,
            "    `rebalance evidence ID` shows the log lines of an entry's gravest finding, with --entry those of all its findings.",
            "dim",
        )
        for number, entry in enumerate(entries[:limit], 1):
            self._entry(number, entry)
        if len(entries) > limit:
            write(self._console, f"    … and {len(entries) - limit} more: --limit {len(entries)} shows all")
        write(self._console)

    def _entry(self, number: int, entry: AttentionEntry) -> None:
        row = entry.gravest
        title = Text(f"{number:>2}. ")
        title.append(f"{entry.severity:<7}", style=_STYLES.get(entry.severity, ""))
        title.append(f"  {row['code']}  {self._subject(entry)}  {self._when(entry)}")
        others = len(entry.findings) + len(entry.followed_by) - 1
        title.append(f"  {row['id']}" + (f" and {others} more" if others else ""), style="dim")
        write(self._console, title)
        for label, text in self._paragraphs(entry):
            self._paragraph(label, text)
        self._paragraph("Advice", self._advice(number, entry))

    def _subject(self, entry: AttentionEntry) -> str:
        """The group, or the broker and how many groups."""
        row = entry.gravest
        if entry.outage is None:
            return self._name(row["cluster"], row["group_id"])
        count = len({finding["group_id"] for finding in entry.findings})
        groups = f"{count} groups" if count > 1 else f"group {printable(row['group_id'], 60)}"
        return f"{self._name(row['cluster'], broker_name(entry.outage.broker))}, {groups}"

    def _when(self, entry: AttentionEntry) -> str:
        first, last = (self._time(at)[:-4] for at in (entry.first_at, entry.findings[-1]["occurred_at"]))
        times = f"{len(entry.findings)} times, " if len(entry.findings) > 1 and entry.outage is None else ""
        return f"{times}{first}" + (f" to {last}" if first != last else "")

    def _paragraphs(self, entry: AttentionEntry) -> Iterator[tuple[str, str]]:
        several = len(entry.findings) > 1 and entry.outage is None
        yield "What", ("The gravest: " if several else "") + entry.message
        if entry.outage is not None and len(entry.groups) > 1:
            yield "Groups", _folded([printable(group, 60) for group in entry.groups], 2 * _NAMED)
        elif clients := self._clients(entry):
            yield "Who", clients
        yield from zip(("Then", *[""] * len(entry.followed_by)), self._then(entry), strict=False)
        if entry.refused is not None:
            requests, last_at = entry.refused
            yield "Refused", f"{requests:,} join{'s' if requests > 1 else ''}, the last at {self._time(last_at)[:-4]}"
        if entry.bill.rebalances and (several or "total_ms" not in entry.gravest["details"]):  # else the message says it
            yield "Cost", _cost(entry.bill)

    def _advice(self, number: int, entry: AttentionEntry) -> str:
        """Advice without the sentences that an entry of the same code has above: on a bad day often only the figures differ."""
        sentences = re.split(r"(?<=\.) (?=[A-Z])", " ".join(entry.advice))
        told = [self._advised.setdefault((entry.gravest["code"], sentence), number) for sentence in sentences]
        above = [f"As in {min(told)}."] if min(told) < number else []
        return " ".join(above + [sentence for sentence, first in zip(sentences, told, strict=True) if first == number])

    def _clients(self, entry: AttentionEntry) -> str:
        clients = entry.clients
        if len(clients) == 1:
            return who(*clients[0][:2], min(entry.members) if len(entry.members) == 1 else None)
        return _folded([who(client, host, None) + (f" ({count})" if count > 1 else "") for client, host, count in clients], _NAMED)

    def _then(self, entry: AttentionEntry) -> list[str]:
        """What followed: a sentence for each code if it is about one client, else counts."""
        by_code: dict[str, list[Row]] = {}
        for row in sorted(entry.followed_by, key=lambda row: row["occurred_at"]):
            by_code.setdefault(row["code"], []).append(row)
        if entry.outage is not None or len({row["member_id"] for row in entry.followed_by}) > 1:
            counts = [f"{code} ({len(rows)})" if len(rows) > 1 else code for code, rows in by_code.items()]
            return [", ".join(counts) + (" in these groups soon afterwards" if entry.outage else "")] if counts else []
        return [f"{self._time(rows[0]['occurred_at'])[:-4]} {code}: {rows[0]['message']}" for code, rows in by_code.items()]

    def _paragraph(self, label: str, text: str) -> None:
        width = max(min(self._console.width if self._console.is_terminal else _PARAGRAPH, _PARAGRAPH), _LEAST)
        shown = printable(text, _SENTENCES * 2)
        lines = textwrap.wrap(shown, width, initial_indent=f"    {label:<7} ", subsequent_indent=" " * 12, break_on_hyphens=False)
        for line in lines:
            write(self._console, line)


def _cost(bill: Bill) -> str:
    lost = bill.unavailable_partition_ms
    owners = f", {duration(lost)} without an owner over all partitions" if lost is not None else ""
    return f"{bill.rebalances} rebalance{'s' if bill.rebalances > 1 else ''}, {duration(bill.total_ms)} of rebalancing{owners}"


def _folded(names: Sequence[str], most: int) -> str:
    """Names in a line, some of them only counted."""
    return ", ".join(names[:most]) + (f" and {len(names) - most} more" if len(names) > most else "")
