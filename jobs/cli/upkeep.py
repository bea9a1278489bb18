"""`rebalance maintain` and `rebalance replay`: rewrite the tables of a lakehouse."""

from __future__ import annotations

from datetime import datetime, timezone
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click
from rich.filesize import decimal

from jobs.cli.output.columns import Columns
from jobs.cli.output.terminal import say, stdout, warn
from jobs.common import exit_codes, options
from jobs.common.disks import told_if_full
from jobs.common.settings import load
from jobs.common.stores import Place

if TYPE_CHECKING:
    from jobs.lakehouse.maintain import MaintainedTable

_COLUMNS: Final = ("table", ">rows removed", ">files", ">bytes", ">old files deleted", ">freed")


@options.command(
    "rebalance maintain --lakehouse lake/",
    "rebalance maintain --lakehouse lake/ --keep 90d",
    "rebalance maintain --lakehouse lake/ --keep 365d --keep-events 30d --dry-run",
)
@options.lakehouse("Folder that `rebalance run` writes to. It may be running.")
@click.option("--keep", type=options.SPAN, help="Delete rows that are older than this: 90d, 26w. [default: keep everything]")
@click.option("--keep-events", type=options.SPAN, help="The same for group_events, which `rebalance replay` reads. [default: as --keep]")
@click.option(
    "--grace",
    type=options.SPAN,
    default="7d",
    help="Delete replaced files that are older than this. A running query may still read younger ones. 7d at most.",
)
@click.option("--dry-run", is_flag=True, help="Only show what would be done.")
def maintain(lakehouse: Place, *, dry_run: bool, **ages: Any) -> int:
    """Merge and sort the files of tables; delete old rows and replaced files.

    This keeps a lakehouse fast and small. Run it at any time, also while `rebalance run` is running, and stop it at any time. Once a day is
    enough. Ages count back from the newest event in the tables.
    """
    from jobs.lakehouse.maintain import Policy
    from jobs.lakehouse.maintain import maintain as maintain_tables

    console = stdout()
    with told_if_full(lakehouse), console.status("") as status:
        done = list(maintain_tables(lakehouse, Policy(**ages), now=datetime.now(timezone.utc), dry_run=dry_run, show=status.update))
    columns = Columns(_COLUMNS, console)
    for table in done:
        columns.add(*_cells(table))
    columns.write()
    for table in done:
        if table.left_alone:
            say(f"{table.table} was left alone: {table.left_alone}")
    if dry_run:
        say("Nothing was done (--dry-run).")
    return 0


def _cells(done: MaintainedTable) -> tuple[str, ...]:
    if done.left_alone:
        return done.table, "-", "-", "-", "-", "-"
    return (
        done.table,
        f"{done.rows_removed:,}",
        _change(*(f"{number:,}" for number in done.files)),
        _change(*map(decimal, done.size)),
        f"{done.deleted:,}",
        decimal(done.deleted_bytes),
    )


def _change(before: str, after: str) -> str:
    return before if before == after else f"{before} → {after}"


@options.command(
    "rebalance replay --from lake/ --lakehouse lake-new/             while `rebalance run` works in lake/",
    "rebalance replay --from lake/ --lakehouse lake-new/ --swap      after it was stopped",
    "rebalance run --input logs/ --lakehouse lake/                   continues where it stopped, in the new one",
)
@click.option(
    "--from",
    "old",
    type=options.PATH,
    metavar="DIR",
    required=True,
    envvar=options.LAKEHOUSE,
    show_envvar=True,
    help="Lakehouse whose events are replayed.",
)
# The lakehouse in use is the old one: the environment cannot name the new one.
@click.option("--lakehouse", type=options.PLACE, metavar="DIR", required=True, help="Folder of the new lakehouse, beside the old one.")
@click.option("--swap", is_flag=True, help="Then swap the two folders. No other command may be working in the old one.")
@options.settings
@options.lateness
def replay(old: Place, lakehouse: Place, *, swap: bool, config: Path | None, lateness_ms: int | None) -> int:
    """Process the events of a lakehouse again, into a new one.

    Use it after some upgrades, or to apply other settings. Stop it at any time; the same command continues, and reads the
    events that were added since. docs/operations.md describes an upgrade step by step.
    """
    from jobs.cli.output.progress import Progress
    from jobs.pipeline.replay import replay as replay_events

    settings = load(config, lateness_ms=lateness_ms)
    with told_if_full(lakehouse, old), Progress(stdout()) as progress:
        outcome = replay_events(old, lakehouse, settings=settings, swap_them=swap, show=progress.show, warn=warn)
    if outcome.signal is not None:
        warn("stopped before the end of the events; run the same command to continue")
        return exit_codes.ENDED_BY_SIGNAL + outcome.signal
    figures = f"{outcome.events:,} events; {outcome.rebalances:,} rebalances, {outcome.findings:,} findings"
    say(f"Done after {outcome.seconds:.0f} s: {figures}")
    if outcome.without_events:
        older = f"{outcome.without_events:,} rebalances of the old lakehouse are older than the oldest event kept"
        say(f"{older}: the new one lacks them.")
    if outcome.before is None:
        say(f"{lakehouse} is up to date with {old}. To use it: stop `rebalance run`, and repeat this command with --swap.")
    elif outcome.before == old:  # nothing can be renamed in a store
        say(f"{lakehouse} replaces {old}, which stays as it is: point `rebalance run` and all readers to it.")
    else:
        say(f"{old} is the new lakehouse now; `rebalance run` continues with it. The old one is {outcome.before}.")
    return 0
