"""`rebalance report`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from jobs.cli.output.terminal import stdout, warn, write
from jobs.common import options
from jobs.common.errors import LakehouseError
from jobs.common.text import printable

if TYPE_CHECKING:
    from jobs.answers.report import Report


@click.command(
    epilog="""\b
Examples:
  rebalance report --lakehouse lake/
  rebalance report --lakehouse lake/ --since 24h
  rebalance report --lakehouse lake/ --group payments --since 2026-11-21T06:10 --until 06:20
  rebalance report --lakehouse lake/ --format json | jq '.attention[] | select(.severity == "ERROR")'
""",
)
@options.lakehouse()
@options.texts(options.SCOPE)
@click.option("--limit", type=click.IntRange(1, 1_000_000), metavar="N", help="Rows of each list at most. [default: 20; for JSON all]")
@options.output_format("text", "json")
def report(lakehouse: Path, *, limit: int | None, form: str, **typed: str | None) -> int:
    """Show what needs attention, and what rebalances cost.

    First errors, then warnings, an entry for each incident; then the groups and the rebalances that cost most. Times are UTC. Durations
    such as `--since 2h` count back from the newest time in the tables, so that the same logs give the same report on any day.
    """
    from jobs.answers.report import Scope, read_report, to_json
    from jobs.cli.output.report_text import LIMIT, render

    try:
        rows = read_report(lakehouse, Scope(**typed), limit=limit or (LIMIT if form == "text" else None))
    except LakehouseError as error:
        if work := _work_under_way(lakehouse):
            raise LakehouseError(f"{error}; {work}") from None
        raise
    reason = rows.hint
    if not reason and not (rows.groups or rows.since or rows.until):
        reason = _why_empty(lakehouse, rows)
    if form == "json":
        click.echo(to_json(rows, limit=limit))
        if problem := reason or rows.outside:
            warn(problem)
    elif reason:
        write(stdout(), printable(reason, options.LINE_CHARS))
    else:
        render(rows, stdout(), limit=limit or LIMIT)
    return 0


def _why_empty(lakehouse: Path, rows: Report) -> str:
    """Why a report has no groups, and what to do, in a line."""
    lines, unreadable = (sum(row[name] for row in rows.lines) for name in ("lines_read", "quarantined"))
    if work := _work_under_way(lakehouse):
        return f"Nothing yet: {f'{lines:,} lines read, none of them names a consumer group' if lines else 'no line read'}; {work}"
    if not lines:
        return "Nothing to report: no line was read yet. `rebalance run --input LOGS --lakehouse LAKE --once` reads a folder of logs."
    bad = f"; {unreadable:,} could not be read (`rebalance ask quarantine` says why)" if unreadable else ""
    needed = "Give `rebalance run` the brokers' server.log or kafka-request.log (docs/capture.md)."
    return f"Nothing to report: {lines:,} lines were read and none names a consumer group{bad}. {needed}"


def _work_under_way(lakehouse: Path) -> str:
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
        return "another process is at work in the lakehouse: ask again when it has ended"
    first = known is None or not any(query.finished_ms for query in known.queries)
    doing = "at work on its first micro-batch" if first else "at work"
    return f"`rebalance run` is {doing}: ask again in a minute (`rebalance health --lakehouse {lakehouse}` says how it goes)"
