"""What a run says at its end: what became of all lines, what evidence there was, and what was not understood."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from coordinator_model.events import CLIENTS
from jobs.answers.coverage import coverage, missing
from jobs.answers.duckdb_views import QuestionReader
from jobs.cli.output.not_understood import has_no_year, next_step
from jobs.cli.output.terminal import NO_GROUPS, say, warn
from jobs.common.places import own_query
from jobs.common.stores import Place
from jobs.common.text import many
from jobs.common.times import EPOCH
from jobs.lakehouse.reader import TableReader
from jobs.pipeline.run_progress import RunResult

_CLUSTERS_SHOWN: Final = 5
_MANY_REFUSED: Final = 0.01  # of the lines that may be about groups
_SAMPLE_CHARACTERS: Final = 200
_REFUSED_SHOWN: Final = 5  # of an excerpt
_WITHOUT_TIME: Final = ("NO_TIMESTAMP", "NO_TIME")


def write_account(result: RunResult, source: str) -> None:
    """Prints what became of all lines, in this run and in the whole lakehouse."""
    if result.nothing_new and result.signal is None:
        if result.understood:  # else nothing was written, and the last line says why
            say(f"Nothing new in {source}.")
    else:
        say(f"{'Done' if result.signal is None else 'Stopped'} after {result.seconds:.0f} s: {_account(result.added)}")
    if any(result.before.values()):
        say(f"The lakehouse: {_account(result.after)}")
    for line in result.troubles:
        say(line)
    if result.understood and result.after["lines_read"] and not (result.after["events"] or result.after["quarantined"]):
        say(NO_GROUPS)
    if result.late_events:
        late = f"{result.late_events:,} events came too late to be counted"
        say(f"{late}: a larger --lateness-ms and a new lakehouse would include them.")


def write_evidence(lakehouse: Place | QuestionReader) -> None:
    """Prints what the tables were made of, and what they cannot answer."""
    clusters = coverage(lakehouse)
    for read in clusters[:_CLUSTERS_SHOWN]:
        brokers = sorted(name for name in read.sources if name != CLIENTS)
        who = ", ".join([*brokers, *([CLIENTS] if CLIENTS in read.sources else [])])
        known = read.first and read.last and read.first.year > EPOCH.year
        span = f", {read.first:%Y-%m-%d %H:%M:%S} to {read.last:%Y-%m-%d %H:%M:%S} UTC" if known else ""
        say(f"Read of cluster {read.cluster}: {many(read.files, 'file')} of {who or 'no broker'}{span}")
        for text in missing(read.sources, read.begins):
            say(f"Missing: {text}")
    if len(clusters) > _CLUSTERS_SHOWN:
        say(f"… and {len(clusters) - _CLUSTERS_SHOWN} more clusters")


def warn_of_refused(result: RunResult, lakehouse: Place, *, kept: bool = True) -> None:
    """Says so if many lines of this run were refused, with one of them. `kept`: the lakehouse can be asked about them."""
    refused, about = result.added["quarantined"], result.added["quarantined"] + result.added["events"]
    if refused <= about * _MANY_REFUSED:
        return
    line, *others = TableReader(lakehouse, ("quarantine",)).rows(own_query("refused_lines"), 1 if kept else _REFUSED_SHOWN)
    lead = "were not understood"
    if line["code"] in _WITHOUT_TIME:
        lacks = "a date without a year" if has_no_year(line["raw"] or "") else "no date or no time"
        lead = f"have {lacks}, so they were left out"
    warn(f"{refused:,} of {about:,} lines that may be about groups ({refused / about:.0%}) {lead}, such as {_shown(line)}")
    for other in others:
        warn(f"and {_shown(other)}")
    for code, raw in {row["code"]: row["raw"] or "" for row in (*others, line)}.items():
        warn(f"{code}: {next_step(code, raw)}")
    if kept:
        warn(f"`rebalance ask quarantine --lakehouse {lakehouse}` counts the lines by reason")


def _shown(row: Mapping[str, Any]) -> str:
    return f"{row['origin']}:{row['position']}, {row['reason']}: {(row['raw'] or '')[:_SAMPLE_CHARACTERS]}"


def _account(totals: Mapping[str, int]) -> str:
    return (
        f"{totals['lines_read']:,} lines: {totals['skipped']:,} unrelated, {totals['events']:,} events,"
        f" {totals['quarantined']:,} unreadable; {totals['rebalances']:,} rebalances, {totals['findings']:,} findings"
    )
