"""`rebalance report`."""

from __future__ import annotations

import io
from pathlib import Path
from typing import TYPE_CHECKING

import click
from rich.console import Console

from jobs.cli.output.not_understood import WHAT_IS_READ
from jobs.cli.output.terminal import stderr, stdout, tell, warn, write
from jobs.common import exit_codes, options
from jobs.common.errors import LakehouseError, UserError
from jobs.common.stores import Place
from jobs.common.text import many, printable

if TYPE_CHECKING:
    from collections.abc import Sequence

    from jobs.answers.duckdb_views import QuestionReader
    from jobs.answers.report import Report, Scope

PAGE_LIMIT = 38  # the page stays under 3 MB

limit_option = click.option(
    "--limit", type=click.IntRange(1, 1_000_000), metavar="N", help="Rows of each list at most. [default: 20; for HTML 38; for JSON all]"
)
form_option = options.output_format(
    "text", "json", "html", text="For people, for programs, or a page for a browser, with pictures and log lines."
)
fail_on_option = click.option(
    "--fail-on",
    type=click.Choice(["error", "warning"]),
    help="Exit with 6 if an entry has this severity or a higher one, with 7 if none has but something could not be judged.",
)


@options.command(
    "rebalance report --lakehouse lake/",
    "rebalance report --lakehouse lake/ --since 24h",
    "rebalance report --lakehouse lake/ --group payments --since 2026-11-21T06:10 --until 06:20",
    "rebalance report --lakehouse lake/ --format json | jq '.attention[] | select(.severity == \"ERROR\")'",
    "rebalance report --lakehouse lake/ --format html > out.html",
    "rebalance report --lakehouse lake/ --since 1h --fail-on error",
)
@options.lakehouse()
@options.texts(options.SCOPE)
@limit_option
@form_option
@options.logs_read("For HTML: the logs")
@fail_on_option
def report(lakehouse: Place, *, limit: int | None, form: str, source: Path | None, fail_on: str | None, **typed: str | None) -> int:
    """Show what needs attention, and what rebalances cost.

    It has an entry for each incident: what brokers did, then what cost most. Then come the groups and the rebalances that cost most.
    Times are UTC. Durations such as `--since 2h` count back from the newest time in the tables, so that the same logs give the same report
    on any day.
    """
    from jobs.answers.report import Scope
    from jobs.lakehouse.folder import known_inputs

    if form != "html":
        tell(f"with --format {form}, which shows no log lines", "source")
    if source is not None and not source.exists():
        raise UserError(f"no such file or folder: {source}")
    inputs = [source] if source else known_inputs(lakehouse)
    return show(lakehouse, Scope(**typed), limit=limit, form=form, inputs=inputs, fail_on=fail_on)


def show(
    lakehouse: Place, scope: Scope, *, limit: int | None, form: str, inputs: Sequence[Path], fail_on: str | None,
    reader: QuestionReader | None = None, kept: bool = True, of_nothing: int = exit_codes.DONE,
) -> int:  # fmt: skip
    """Writes the report to standard output; returns the exit code. `inputs`: where logs were read from.

    `reader`: of the lakehouse, if there is one already. `kept`: the lakehouse stays, so that other commands can say more.
    `of_nothing`: the exit code where no line names a group.
    """
    from jobs.answers.report import read_report, to_json
    from jobs.cli.output.report_text import LIMIT, render

    try:
        rows = read_report(reader or lakehouse, scope, limit=limit or {"text": LIMIT, "html": PAGE_LIMIT}.get(form))
    except LakehouseError as error:
        if work := _work_under_way(lakehouse):
            raise LakehouseError(f"{error}; {work}") from None
        raise
    reason = rows.hint
    if not reason and not (rows.groups or rows.since or rows.until):
        reason = _why_empty(lakehouse, rows, kept=kept)
    is_nothing = bool(of_nothing and reason and not rows.hint)
    if form == "json":
        click.echo(to_json(rows, limit=limit))
        if problem := reason or rows.outside:
            warn(problem)
    elif form == "html":
        _write_page(lakehouse, rows, inputs, limit or PAGE_LIMIT, reason)
    elif is_nothing:
        warn(printable(reason, options.LINE_CHARS))
    elif reason:
        write(stdout(), printable(reason, options.LINE_CHARS))
    else:
        render(rows, stdout(), limit=limit or LIMIT, kept=kept)
    return of_nothing if is_nothing else _exit_code(rows, fail_on)


def _exit_code(rows: Report, fail_on: str | None) -> int:
    from jobs.answers.attention import SEVERITIES

    if fail_on is None:
        return exit_codes.DONE
    grave = SEVERITIES[: SEVERITIES.index(fail_on.upper()) + 1]
    if any(entry.severity in grave for entry in rows.attention):
        return exit_codes.NEEDS_ATTENTION
    judged = (rows.attention or rows.judgement.healthy) and not (rows.judgement.gaps or rows.outside)
    return exit_codes.DONE if judged else exit_codes.NOT_JUDGED


def _write_page(lakehouse: Place, rows: Report, inputs: Sequence[Path], limit: int, why_empty: str) -> None:
    from jobs.cli.output.progress import Progress
    from jobs.dashboard.saved import saved_report
    from jobs.pipeline.run_progress import RunProgress

    with Progress(stderr()) as progress:
        progress.show(RunProgress("writing the page"))
        text = why_empty or as_text(rows, limit)
        page = saved_report(lakehouse, rows, inputs, limit=limit, text=text, why_empty=why_empty)
    click.echo(page.encode("utf-8", "backslashreplace"), nl=False)


def as_text(rows: Report, limit: int) -> str:
    """What a terminal shows of a report."""
    from jobs.cli.output.report_text import render

    written = io.StringIO()
    render(rows, Console(file=written, width=120, highlight=False, markup=False, emoji=False), limit=limit)
    return written.getvalue()


def _why_empty(lakehouse: Place, rows: Report, *, kept: bool) -> str:
    """Why a report has no groups, and what to do, in a line. `kept`: other commands can say more."""
    lines, unreadable = (sum(row[name] for row in rows.lines) for name in ("lines_read", "quarantined"))
    if work := _work_under_way(lakehouse):
        return f"Nothing yet: {f'{lines:,} lines read, none of them names a consumer group' if lines else 'no line read'}; {work}"
    if not lines:
        return "Nothing to report: no line was read yet. `rebalance run --input LOGS --lakehouse LAKE --once` reads a folder of logs."
    bad = f"; {unreadable:,} could not be read{' (`rebalance ask quarantine` says why)' if kept else ''}" if unreadable else ""
    if kept:
        needed = "Give `rebalance run` the brokers' server.log or kafka-request.log (docs/capture.md)."
        return f"Nothing to report: {lines:,} lines were read and none names a consumer group{bad}. {needed}"
    were = f"{many(lines, 'line')} {'was' if lines == 1 else 'were'} read"  # of an excerpt, in which nothing is no all-clear
    return f"No answer: {were}, and none both describes a consumer group and names it{bad}. Take more lines: {WHAT_IS_READ}."


def _work_under_way(lakehouse: Place) -> str:
    """What a `rebalance run` that works in the lakehouse is doing; empty if none does."""
    from jobs.health import status
    from jobs.lakehouse import locks
    from jobs.lakehouse.folder import Lakehouse

    house = Lakehouse(lakehouse)
    try:
        if not locks.is_held(house.lock):
            return ""
    except LakehouseError:  # nor can the rest be read
        return ""
    known = status.read(house.status)
    if known is not None and known.state != status.RUNNING:
        return "another process is using the lakehouse: ask again when it has ended"
    first = known is None or not any(query.finished_ms for query in known.queries)
    doing = "processing its first micro-batch" if first else "running"
    return f"`rebalance run` is {doing}: ask again in a minute (`rebalance health --lakehouse {lakehouse}` shows its status)"
