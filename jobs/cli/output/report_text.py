"""The report as text: within the terminal's width where there is a terminal, else within 120 columns.

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
from jobs.answers.attention import AttentionEntry
from jobs.answers.attention_words import CLIENTS_SAY, EXPLAINED, STYLES, TOO_SHORT, AttentionWords, counts_of, title
from jobs.answers.duckdb_views import Row, key_of
from jobs.answers.incidents.bills import Records, bound
from jobs.answers.rebalance_words import culprit_of, is_open
from jobs.answers.report import Report
from jobs.cli.output.columns import Columns
from jobs.cli.output.terminal import write
from jobs.common.text import many, printable, some
from jobs.common.times import duration, epoch_ms, instant, is_known, second, to_second

LIMIT: Final = 20
"""Rows of each list that a person is shown."""

_WIDTH: Final = 120  # where there is no terminal
_PARAGRAPH: Final = 116  # columns: a longer line is hard to read
_LEAST: Final = 40
_SENTENCES: Final = 600  # characters of a message or of advice
_ORDER: Final = "Broker failures first, then by cost. Unowned partition time: time without an owner, summed over partitions."
_PROOFS: Final = "`rebalance evidence ID` shows the log lines behind a finding; add --entry for the whole entry."
_PROOFS_IF_KEPT: Final = "With --keep DIR: `rebalance evidence ID --lakehouse DIR` shows the log lines behind a finding."
_NOT_SEEN: Final = "not seen"
_NO_TIMES: Final = "in line order, since the lines have no times"
_NAMED: Final = 10  # brokers, or groups, in a line
_CELLS: Final = {"Read twice": Records.read_twice, "Lag": Records.lag}
_IN_RECORDS: Final = tuple(f">{name}" for name in _CELLS)  # each where any row tells it
# The first layout that fits is used, if need be with names cut. Who caused a rebalance and what it cost matter most.
_LAYOUTS: Final = (
    ("  Time", ">Gen", "Cause", "~Culprit", ">Join", ">Sync", ">Total", ">Unowned", *_IN_RECORDS, ">Moved", "Members", "Outcome"),
    ("  Time", ">Gen", "Cause", "~Culprit", ">Total", ">Unowned", *_IN_RECORDS, ">Moved", "Members"),
    ("  Time", ">Gen", "Cause", "~By whom", ">Total", ">Unowned", *_IN_RECORDS, ">Moved", "Members"),
    ("  Time", "Cause", "~By whom", ">Total", ">Unowned", *_IN_RECORDS, "Members"),
    ("  Time", "Cause", "~By whom", ">Total", ">Unowned", "Members"),
    ("  At", "Cause", "~Name", ">Total", ">Unowned"),
    ("  At", "Cause", "~Name", ">Total"),
)
_GROUP_COLUMNS: Final = ("~Group", ">Unowned", ">Rebalancing", ">Rebalances", "Main cause", "State", ">Members")
_GROUP_LAYOUTS: Final = tuple(_GROUP_COLUMNS[:count] for count in (7, 5, 4, 2))
_OTHER_SOURCES: Final = {CLIENTS: "client logs", OFFSETS_SOURCE: "records of __consumer_offsets", POLL_SOURCE: "polls"}
"""Sources other than brokers, by the name that the tables give in the column `broker`."""


def render(report: Report, console: Console, *, limit: int = LIMIT, kept: bool = True) -> None:
    """Writes the report, the answer first. `limit`: rows of each list. `kept`: other commands can ask the lakehouse."""
    view = _View(report, console, limit)
    if report.outside:
        view.headers()
        write(console, report.outside)
        return
    view.period()
    view.attention(kept=kept)
    view.headers()
    view.groups()
    view.rebalances()


class _View:
    """Where and how one report is shown."""

    def __init__(self, report: Report, console: Console, limit: int) -> None:
        self.report = report
        self.console = console
        self.limit = limit
        self.many_clusters = len({row["cluster"] for row in report.groups}) > 1
        days = {row[name].date() for row in report.clusters for name in ("first_at", "last_at") if row[name] is not None}
        self.has_times = all(is_known(row["first_at"]) for row in report.clusters)
        self.one_day = len(days) == 1 and self.has_times
        self.day = f", {days.pop():%Y-%m-%d} UTC" if self.one_day else "" if self.has_times else f", {_NO_TIMES}"
        self._unexplained = dict(EXPLAINED)
        self._words = AttentionWords(self.time, self.name, report.ends)

    def time(self, at: datetime) -> str:
        """Without the day, if the heading shows it."""
        return instant(epoch_ms(at))[11 if self.one_day else 0 :]

    def name(self, cluster: str, name: str) -> str:
        """A group or broker, with its cluster if there are several."""
        return (printable(cluster, 30) + "/" if self.many_clusters else "") + printable(name, 60)

    def attention(self, *, kept: bool) -> None:
        """What needs attention, what clients say, and what could not be judged. `kept`: `rebalance evidence` can be asked."""
        judgement = self.report.judgement
        if self.report.attention:
            self._entries(self.report.attention, kept=kept)
        else:
            write(self.console, printable(self._words.calm(judgement), _SENTENCES), "green" if judgement.all_clear else "yellow")
        write(self.console)
        if self.report.said:
            self._said()
        if judgement.gaps:
            write(self.console, f"Not judged ({len(judgement.gaps)})", "bold")
            for gap in judgement.gaps[: self.limit]:
                self._wrapped(self._words.gap(gap), "  ", "    ")
                self._paragraph("Next", gap.next)
            self.more(len(judgement.gaps))
            write(self.console)

    def _said(self) -> None:
        """What clients say, by group."""
        write(self.console, f"{CLIENTS_SAY}{self.day}", "bold")
        for group, own in groupby(self.report.said[: self.limit], key=lambda one: (one.cluster, one.group_id)):
            write(self.console, f"  {self.name(*group)}")
            for one in own:
                if one.left_out:
                    write(self.console, f"    … {many(one.left_out, 'line')} in between")
                self._wrapped(self._words.said(one), "    ", " " * 6)
        self.more(len(self.report.said))
        write(self.console)

    def _entries(self, entries: Sequence[AttentionEntry], *, kept: bool) -> None:
        write(self.console, f"What needs attention ({counts_of(entries)}){self.day}", "bold")
        self._wrapped(_ORDER, "    ", "    ")
        for number, entry in enumerate(entries[: self.limit], 1):
            self._entry(number, entry)
        self.more(len(entries))
        write(self.console, f"    {_PROOFS if kept else _PROOFS_IF_KEPT}", "dim")
        if settings := self._words.settings(entries):
            write(self.console, f"\n{TOO_SHORT} ({len(settings)})", "bold")
            for text in settings[: self.limit]:
                write(self.console, f"  {text}")
            self.more(len(settings))

    def _entry(self, number: int, entry: AttentionEntry) -> None:
        said = self._words.of(entry)
        head = Text(f"{number:>2}. ")
        head.append(f"{entry.severity:<7}", style=STYLES.get(entry.severity, ""))
        head.append(f"  {title(entry)}", "bold")
        head.append(f"\n{'':11}  {entry.code}  {said['subject']}  {said['when']}")
        others = len(entry.ids - {said["id"]})
        head.append(f" (id {said['id']}" + (f", {others:,} more)" if others else ")"), style="dim")
        write(self.console, head)
        for label, text in self._words.paragraphs(entry):
            self._paragraph(label, text)
        if said["advice"]:
            self._paragraph("Advice", said["advice"])

    def _paragraph(self, label: str, text: str) -> None:
        self._wrapped(text, f"    {label:<7} ", " " * 12)

    def _wrapped(self, text: str, first: str, others: str) -> None:
        width = max(min(self.console.width if self.console.is_terminal else _PARAGRAPH, _PARAGRAPH), _LEAST)
        shown = printable(text, _SENTENCES * 2)
        write(self.console, textwrap.fill(shown, width, initial_indent=first, subsequent_indent=others, break_on_hyphens=False))

    def headers(self) -> None:
        """What the answer above is made of: clusters, each with its time span and the account of its lines."""
        for cluster in self.report.clusters[: self.limit]:
            self._header(cluster)
        self.more(len(self.report.clusters), " clusters")

    def _header(self, cluster: Row) -> None:
        first_ms, last_ms = epoch_ms(cluster["first_at"]), epoch_ms(cluster["last_at"])
        write(self.console, f"Cluster {printable(cluster['cluster'], 60)}", "bold")
        span = f"{instant(first_ms)} to {instant(last_ms)} UTC ({duration(last_ms - first_ms)})"
        span = span if self.has_times else "unknown: these lines have no times, so durations and rates are unknown, too"
        write(self.console, f"  Time    {span}")
        brokers = [printable(broker, 30) for broker in cluster["sources"] if broker not in _OTHER_SOURCES]
        others = [_OTHER_SOURCES[broker] for broker in cluster["sources"] if broker in _OTHER_SOURCES]
        if brokers:
            write(self.console, f"  Brokers {some(brokers, _NAMED)}")
        if others:
            write(self.console, f"  {'Also' if brokers else 'From':7} {', '.join(others)}")
        if lines := cluster["lines"]:
            counts = "{lines_read:,} read: {skipped:,} unrelated, {events:,} events, {quarantined:,} unreadable".format_map(lines)
            write(self.console, f"  Lines   {counts}")
        write(self.console)

    def period(self) -> None:
        """The part of the time that is shown, if not all."""
        since, until = self.report.since, self.report.until
        if since is None and until is None:
            return
        begin = f"from {second(since)} UTC" if since is not None else "from the beginning"
        end = f"to {second(until)} UTC" if until is not None else "to the end"
        early = since is not None and all(row["first_at"] > since for row in self.report.clusters)
        write(self.console, f"Shown: {begin} {end}{' (the data begin later)' if early else ''}\n", "bold")

    def more(self, count: int, what: str = "") -> None:
        """How many rows are not shown, if any. `what` they are stands below a table."""
        if count > self.limit:
            text = f"… and {count - self.limit} more{what}: --limit {count} shows all"
            write(self.console, f"{text}\n" if what else f"  {text}")

    def groups(self) -> None:
        """A line for each group that rebalanced after its start, and one for all others."""
        troubled = [row for row in self.report.groups if row["rebalances"]]
        quiet = [row for row in self.report.groups if not row["rebalances"]]
        about = ", most expensive first (`Unowned`: how long partitions had no owner, summed over all of them)" if troubled else ""
        write(self.console, f"Groups ({len(self.report.groups)}){about}", "bold")
        if troubled:
            _fitting([self._group_columns(troubled[: self.limit], names) for names in _GROUP_LAYOUTS]).write()
            self._explain({row["worst_cause"] for row in troubled[: self.limit]})
        self.more(len(troubled), " groups")
        if quiet:
            self._quiet(quiet)
        write(self.console)

    def _explain(self, shown: set[str]) -> None:
        """What words of a table mean, where they first stand."""
        for word in sorted(shown & self._unexplained.keys()):
            write(self.console, f"  {word}: {self._unexplained.pop(word)}", "dim")

    def _group_columns(self, groups: Sequence[Row], names: Sequence[str]) -> Columns:
        """The table of groups with some of its columns."""
        columns = Columns(names, self.console, _WIDTH)
        for row in groups:
            cells = {
                "Group": self.name(row["cluster"], row["group_id"]),
                "Unowned": bound("unavailable_partition_ms", row) + duration(row["unavailable_partition_ms"]),
                "Rebalancing": bound("rebalancing_ms", row) + duration(row["rebalancing_ms"] or None),
                "Rebalances": str(row["rebalances"]),
                "Main cause": row["worst_cause"] or "-",
                "State": _state(row),
                "Members": _number(row["members"]),
            }
            columns.add(*(cells[name] for name in columns.names))
        return columns

    def _quiet(self, quiet: Sequence[Row]) -> None:
        """Groups without rebalances other than start-ups, in a line for each state: the healthy, those with findings, and the others."""
        healthy = set(self.report.judgement.healthy)
        found = {key for entry in self.report.attention for key in entry.keys}

        def kind(row: Row) -> tuple[int, str]:
            return 0 if key_of(row) in healthy else 1 if key_of(row) in found else 2, _state(row)

        for (place, state), rows in groupby(sorted(quiet, key=lambda row: (kind(row), key_of(row))), key=kind):
            names = [self.name(row["cluster"], row["group_id"]) for row in rows]
            what = ("Healthy and no rebalance", "With findings but no rebalance", "Not judged and no rebalance")[place]
            write(self.console, f"{what}, {'state ' if state == _NOT_SEEN else ''}{state} ({len(names)}): {some(names, _NAMED)}")

    def rebalances(self) -> None:
        """Rebalances of each group in time order, the group that cost most first."""
        caused, startups, startup_ms = (
            sum(row[name] or 0 for row in self.report.groups) for name in ("rebalances", "startups", "startup_ms")
        )
        if not caused + startups:
            alone = ": application logs alone do not show them" if self.report.judgement.of_clients else ""
            write(self.console, f"No rebalances{alone}.")
            return
        one_group = self.report.scope.group is not None
        place = {key_of(row): number for number, row in enumerate(self.report.groups)}
        shown = [row for row in self.report.rebalances if one_group or not row["startup"]]
        shown = sorted(shown, key=lambda row: place.get(key_of(row), len(place)))
        count = caused + startups if one_group else caused
        title = f"Rebalances ({count})" if len(shown) == count else f"Rebalances ({len(shown)} of {count}, the most expensive)"
        if shown:
            write(self.console, title, "bold")
            nothing = {name for name, cell in _CELLS.items() if all(cell(Records.of(row)) == "-" for row in shown)}
            layouts = [[name for name in names if name.lstrip(">") not in nothing] for names in _LAYOUTS]
            _fitting([self._rebalance_columns(shown, names) for names in layouts]).write()
            self._explain({row[name] for row in shown for name in ("blamed", "outcome")})
        if any(row["waits_for"] and not is_open(row) for row in shown):
            write(self.console, "  * provisional: lines still to come may change this row")
        if len(shown) < count:
            write(self.console, f"  … and {count - len(shown)} more: --limit {count} shows all, --group GROUP those of one group")
        if startups and not one_group:
            what = "the first rebalance of a group that was new or empty"
            left_out = "1 start-up is" if startups == 1 else f"{startups} start-ups are"
            least = any(row["startup_ms"] is None or bound("startup_ms", row) for row in self.report.groups)
            write(self.console, f"  {left_out} not shown ({what}): {'at least ' if least else ''}{duration(startup_ms)} of rebalancing")

    def _rebalance_columns(self, rebalances: Sequence[Row], names: Sequence[str]) -> Columns:
        """The table of rebalances with some of its columns."""
        columns = Columns(names, self.console, _WIDTH)
        for _, rows in groupby(rebalances, key=key_of):
            of_group = list(rows)
            columns.heading(self.name(of_group[0]["cluster"], of_group[0]["group_id"]))
            protocols = [row["group_protocol"] for row in of_group]
            for number, row in enumerate(of_group):
                # Of one group they stand in the order of time.
                if number and protocols[number] != protocols[number - 1] and self.report.scope.group is not None:
                    columns.heading(f"  from here on: {protocols[number]} protocol")
                cells = self._rebalance(row)
                if "Outcome" not in columns.names and row["outcome"] != "COMPLETED":
                    cells["Members"] += f" {row['outcome']}"
                columns.add(*(cells[name] for name in columns.names))
        return columns

    def _rebalance(self, row: Row) -> dict[str, str]:
        """The cells of one rebalance, by column."""
        moved = row["partitions_moved"]
        return {
            "  Time": "  " + self.time(row["started_at"]),
            "  At": "  " + to_second(self.time(row["started_at"])),
            "Gen": _number(row["generation"]),
            "Cause": row["blamed"] + (" *" if row["waits_for"] and not is_open(row) else ""),
            "Culprit": culprit_of(row),
            "By whom": culprit_of(row, member=False),
            "Name": culprit_of(row, host=False),
            "Join": duration(row["join_ms"]),
            "Sync": duration(row["sync_ms"]),
            "Total": duration(row["total_ms"]),
            "Outcome": row["outcome"],
            "Members": f"{_number(row['members_before'], '?')} > {_number(row['members_after'], '?')}",
            "Moved": "-" if moved is None else f"{moved}/{_number(row['partitions'], '?')}",
            "Unowned": duration(row["unavailable_partition_ms"]),
            **{name: cell(Records.of(row)) for name, cell in _CELLS.items()},
        }


def _fitting(layouts: Sequence[Columns]) -> Columns:
    """The first layout that fits, else one of the two narrowest with names cut."""
    cut = (columns for columns in layouts[-2:] if columns.fits(cut=True))
    return next((columns for columns in layouts if columns.fits()), next(cut, layouts[-1]))


def _state(row: Row) -> str:
    not_seen = _NOT_SEEN if row["protocol"] == "classic" else f"{row['protocol']} protocol"
    return not_seen if row["state"] == "UNKNOWN" else str(row["state"])


def _number(value: int | None, absent: str = "-") -> str:
    return absent if value is None else str(value)
