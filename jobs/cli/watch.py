"""`rebalance watch` and `rebalance dashboard`: the tables while they grow, in a terminal and in a browser."""

from __future__ import annotations

import os
import select
import sys
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

import click

from jobs.cli.output.terminal import stdout, warn
from jobs.common import options
from jobs.common.interrupts import Interrupts
from jobs.common.stores import Place

if TYPE_CHECKING:
    from jobs.answers.news import News
    from jobs.cli.output.watch_text import PlainOutput

_LOOK_SECONDS: Final = 0.5
_NICENESS: Final = 10  # where a pipeline runs on the same machine, it comes first
_SCOPE: Final = {name: options.SCOPE[name] for name in ("cluster", "group")} | {
    "since": ("TIME", "From this time on: ISO 8601 in UTC, or a duration back from the newest (15m, 24h). [default: the last 10 rows]")
}


@options.command(
    "rebalance watch --lakehouse lake/",
    "rebalance watch --lakehouse lake/ --group payments --since 1h",
    "rebalance watch --lakehouse lake/ --format json | jq -c 'select(.table == \"findings\") | [.group_id, .code, .advice]'",
)
@options.lakehouse("Folder that `rebalance run` writes. It need not exist yet.")
@options.texts(_SCOPE)
@options.output_format("text", "json", text="For people, or one object per line for programs.")
def watch(lakehouse: Place, *, form: str, **typed: str | None) -> int:
    """Show rebalances and findings as they come.

    Follows the tables that `rebalance run` writes, until Ctrl-C. A provisional row says what it waits for: later lines may still correct
    it. A terminal corrects the row in its place; a pipe or a file gets another line. With --format json the column `waits_for` is null in a
    final row, and `replaces` is the id of the row that it corrects or confirms.
    """
    from jobs.answers.news import News
    from jobs.cli.output.watch_text import JsonOutput, PlainOutput, ScreenOutput
    from jobs.lakehouse.folder import check_ours

    check_ours(lakehouse)
    news, console = News(lakehouse, **typed), stdout()
    output: PlainOutput
    if form == "json":
        output = JsonOutput(console)
    elif console.is_terminal and not console.is_dumb_terminal:
        output = ScreenOutput(console, f"Watching {lakehouse}")
    else:
        output = PlainOutput(console)
    with Interrupts() as interrupts, output:
        follow(news, lakehouse, output, stopped=interrupts.happened)
    return 0


def follow(news: News, lakehouse: Place, output: PlainOutput, *, stopped: Callable[[], bool]) -> None:
    """Shows what comes until it is stopped. BrokenPipeError: nobody reads the output any more."""
    while not stopped():
        output.show(news.take())
        output.tell(_why_nothing_comes(lakehouse))
        _check_reader()
        time.sleep(_LOOK_SECONDS)


def _why_nothing_comes(lakehouse: Place) -> str:
    """Why no row may come, and what to do; empty if no reason is known."""
    from jobs.lakehouse import locks
    from jobs.lakehouse.folder import Lakehouse, is_lakehouse
    from schemas.names import TRACK

    if not is_lakehouse(lakehouse):
        return f"Waiting for the lakehouse {lakehouse}: `rebalance run` creates it."
    house = Lakehouse(lakehouse)
    known = [lock for lock in (house.lock, house.query_locks[TRACK]) if lock.exists()]
    if known and not any(map(locks.is_held, known)):
        return f"No pipeline is writing to {lakehouse}. Start `rebalance run` again."
    return ""


def _check_reader() -> None:
    """BrokenPipeError: whoever read standard output, such as `head`, has ended. A write would tell, but there may be nothing to write."""
    try:
        output = select.poll()
        output.register(sys.stdout.fileno(), 0)
    except (OSError, AttributeError):  # no file; no poll on this system
        return
    if output.poll(0):
        raise BrokenPipeError


@options.command(
    "rebalance dashboard --lakehouse lake/",
    "rebalance dashboard --lakehouse lake/ --port 0",
    "rebalance dashboard --lakehouse lake/ --host 0.0.0.0    # for everybody who can reach this machine",
)
@options.lakehouse("Folder that `rebalance run` writes. It need not exist yet.")
@click.option(
    "--host", default="127.0.0.1", metavar="ADDRESS", help="Address to listen on. 0.0.0.0 serves everybody: there is no password."
)
@click.option("--port", type=click.IntRange(0, 65_535), default=8_060, metavar="N", help="Port. 0: any free one.")
def dashboard(lakehouse: Place, *, host: str, port: int) -> int:
    """Show the tables in a browser, while they grow.

    It shows all clusters at a glance, a timeline of each group and a waterfall of each rebalance. It reads the tables without Spark and
    writes nothing.
    """
    from jobs.dashboard.server import serve
    from jobs.lakehouse.folder import check_ours, is_lakehouse

    check_ours(lakehouse)
    if not is_lakehouse(lakehouse):
        warn(f"waiting for the lakehouse {lakehouse}: `rebalance run` makes it")
    if hasattr(os, "nice"):
        os.nice(_NICENESS)
    serve(lakehouse, host, port, click.echo)
    return 0
