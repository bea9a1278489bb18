"""`rebalance replay`: replays the events of a lakehouse and prints the result."""

from __future__ import annotations

from pathlib import Path

import click

from jobs.cli.output.terminal import stdout, warn, write
from jobs.common import exit_codes, options
from jobs.common.disks import told_if_full


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
@click.option("--lakehouse", type=options.PATH, metavar="DIR", required=True, help="Folder of the new lakehouse, beside the old one.")
@click.option("--swap", is_flag=True, help="Then swap the two folders. No other command may be working in the old one.")
@options.settings
@options.lateness
def replay(old: Path, lakehouse: Path, *, swap: bool, config: Path | None, lateness_ms: int | None) -> int:
    """Track the events of a lakehouse again, into a new one.

    Needed after some upgrades, and to use other settings. Stop it at any time, in any way; the same command continues, and reads the
    events that were added since. docs/operations.md describes an upgrade step by step.
    """
    from jobs.cli.output.progress import Progress
    from jobs.common.settings import load
    from jobs.pipeline.replay import replay as replay_events

    settings = load(config, lateness_ms=lateness_ms)
    console = stdout()
    with told_if_full(lakehouse, old), Progress(console) as progress:
        outcome = replay_events(old, lakehouse, settings=settings, swap_them=swap, show=progress.show, warn=warn)
    if outcome.signal is not None:
        warn("stopped before the end of the events; the same command continues")
        return exit_codes.ENDED_BY_SIGNAL + outcome.signal
    figures = f"{outcome.events:,} events; {outcome.rebalances:,} rebalances, {outcome.findings:,} findings"
    write(console, f"Done after {outcome.seconds:.0f} s: {figures}")
    if outcome.without_events:
        write(
            console,
            f"{outcome.without_events:,} rebalances of the old lakehouse are older than the oldest event that was kept: "
            "the new one lacks them.",
        )
    if outcome.thinned:
        write(
            console,
            f"{outcome.thinned:,} heartbeats of quiet times had been thinned (`rebalance maintain --thin-after`): "
            "as many were tracked, evenly spaced.",
        )
    if outcome.before is None:
        write(console, f"{lakehouse} is up to date with {old}. To use it: stop `rebalance run`, and repeat this command with --swap.")
    else:
        write(console, f"{old} is the new lakehouse now; `rebalance run` continues with it. The old one is {outcome.before}.")
    return 0
