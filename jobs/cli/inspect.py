"""`rebalance inspect`: what is in a folder of logs."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import click

from jobs.cli.output.terminal import NO_GROUPS, partly_read, say, stderr, warn, warn_nothing_understood
from jobs.cli.piped import as_file
from jobs.common import exit_codes, options
from jobs.common.errors import UserError
from jobs.common.settings import Settings, load

_SLICE_LINES = 100_000  # between two words about the progress


@options.command(
    "rebalance inspect logs/",
    "rebalance inspect kubectl.log --timezone Europe/Berlin",
    "rebalance inspect logs/ --format json | jq '.samples'",
)
@click.argument("path", type=click.Path(path_type=Path, allow_dash=True), metavar="PATH|-")
@options.timezones
@options.log_format
@options.settings
@click.option("--lines", "most", type=click.IntRange(1), metavar="N", default=2_000_000, help="Look at about N lines, the earliest ones.")
@options.output_format("text", "json")
def inspect(path: Path, *, timezones: Sequence[str], log_format: str | None, config: Path | None, most: int, form: str) -> int:
    """Show what is in log files: brokers, times, kinds of lines, and what is not understood.

    It needs no Java and writes nothing. PATH is a file, or a folder that you would give to `rebalance run --input`; - reads standard input.
    """
    settings = load(config, timezones=timezones, log_format=log_format)
    given = [("--timezone", ",".join(timezones)), ("--config", str(config or "")), ("--log-format", log_format or "")]
    with as_file(path) as (source, name):
        if not source.exists():
            raise UserError(f"no such file or folder: {name}")
        return _inspect(source, name, settings, most, form, given)


def _inspect(path: Path, name: str, settings: Settings, most: int, form: str, given: list[tuple[str, str]]) -> int:
    from jobs.cli.output.inspect_text import command_line, render, to_json
    from jobs.cli.output.progress import Progress
    from jobs.logs.files import left_out, left_out_in
    from jobs.logs.slices import SlicerSettings
    from jobs.parsing.inspection import Inspector
    from jobs.pipeline.run_progress import RunProgress

    inspector = Inspector(path, SlicerSettings.of(settings, slice_lines=min(most, _SLICE_LINES)))
    with Progress(stderr()) as progress:
        progress.show(RunProgress("reading"))
        for lines in inspector.work(most):
            progress.show(RunProgress("reading", lines=lines))
    result = inspector.result
    if form == "json":
        click.echo(to_json(result, {one.kind: one.number for one in left_out(path)}))
    else:
        render(result, name, settings.timezone)
        (zone, typed), *others = given
        say()
        say(command_line(path if str(path) == name else Path("PATH"), [(zone, ",".join(filter(None, [typed, *result.zones]))), *others]))
        if left := left_out_in(path):
            say(left)
    if not any(log.understood for log in result.logs):
        warn_nothing_understood(name)
        return exit_codes.NOTHING_UNDERSTOOD
    if not (result.about_groups or result.not_understood) and form == "text":
        say(NO_GROUPS)
    if result.unread:
        warn(partly_read(result.unread, name))
        return exit_codes.PARTLY_READ
    return exit_codes.DONE
