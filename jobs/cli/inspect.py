"""`rebalance inspect`: what is in a folder of logs."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import click

from jobs.cli.output.terminal import stdout, warn
from jobs.common import options
from jobs.common.errors import UserError
from jobs.common.exit_codes import NOTHING_UNDERSTOOD
from jobs.common.settings import load


@click.command(
    epilog="""\b
Examples:
  rebalance inspect logs/
  rebalance inspect kubectl.log --timezone Europe/Berlin
  rebalance inspect logs/ --format json | jq '.samples'
""",
)
@click.argument("path", type=options.PATH)
@options.timezones
@click.option(
    "--lines", "most", type=click.IntRange(1), metavar="N", help="Look at about N lines, those of the earliest times. [default: 2000000]"
)
@options.output_format("text", "json")
def inspect(path: Path, *, timezones: Sequence[str], most: int | None, form: str) -> int:
    """Show what is in log files: brokers, times, kinds of lines, and what is not understood.

    It needs no Java and writes nothing. PATH is a file, or a folder that you would give to `rebalance run --input`.
    """
    from jobs.cli.output.inspect_text import render, to_json
    from jobs.logs.slices import SlicerSettings
    from jobs.parsing.inspection import MOST_LINES, Inspector

    if not path.exists():
        raise UserError(f"no such file or folder: {path}")
    settings = load(timezones=timezones)
    inspector = Inspector(path, SlicerSettings(timezone=settings.timezone, timezones=dict(settings.timezones)))
    for lines in inspector.work(most or MOST_LINES):
        if form == "text" and stdout().is_terminal:
            click.echo(f"\r{lines:,} lines", nl=False, err=True)
    if form == "text" and stdout().is_terminal:
        click.echo("\r\033[K", nl=False, err=True)
    result = inspector.result
    if form == "json":
        click.echo(to_json(result))
    else:
        render(result, str(path), settings.timezone, stdout())
    if result.understood:
        return 0
    warn(f"nothing in {path} is understood" if result.not_understood or not result.logs else f"no line in {path} names a consumer group")
    return NOTHING_UNDERSTOOD if result.not_understood or not result.logs else 0
