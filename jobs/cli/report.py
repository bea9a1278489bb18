"""`rebalance report`."""

from __future__ import annotations

from pathlib import Path

import click

from jobs.cli.output.terminal import stdout
from jobs.common import options


@click.command(
    epilog="""\b
Examples:
  rebalance report --lakehouse lake/
  rebalance report --lakehouse lake/ --group payments
  rebalance report --lakehouse lake/ --format json | jq '.rebalances[] | select(.cause == "SESSION_TIMEOUT")'
""",
)
@options.lakehouse()
@click.option("--group", metavar="GROUP", help="Only this consumer group.")
@options.output_format("text", "json")
def report(lakehouse: Path, *, group: str | None, form: str) -> int:
    """Show groups, rebalances and findings. Times are UTC."""
    from jobs.answers.report import read_report, to_json

    rows = read_report(lakehouse, group)
    if form == "json":
        click.echo(to_json(rows))
    else:
        from jobs.cli.output.report_text import render

        render(rows, stdout())
    return 0
