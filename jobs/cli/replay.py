"""`rebalance replay`: runs it, and tells what it came to."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from rich.text import Text

from jobs.cli.progress import Progress
from jobs.common.settings import Settings
from jobs.pipeline.replay import replay

if TYPE_CHECKING:
    from rich.console import Console


def run(old: Path, new: Path, settings: Settings, console: Console, complain: Callable[[str], None], *, swap: bool) -> int:
    """Replays and tells what it came to; the exit code. UserError, QueryFailedError: see there."""

    def line(text: str) -> None:
        console.print(Text(text), soft_wrap=True)

    with Progress(console) as progress:
        outcome = replay(old, new, settings=settings, swap_them=swap, show=progress.show)
    if outcome.signal is not None:
        complain("stopped before the end of the events; the same command continues")
        return 128 + outcome.signal
    figures = f"{outcome.events:,} events; {outcome.rebalances:,} rebalances, {outcome.findings:,} findings"
    line(f"Done after {outcome.seconds:.0f} s: {figures}")
    if outcome.without_events:
        line(
            f"{outcome.without_events:,} rebalances of the old lakehouse are older than the events that were kept: the new one lacks them."
        )
    if outcome.before is None:
        line(f"{new} is up to date with {old}. To go on with it: stop `rebalance run`, and repeat this command with --swap.")
    else:
        line(f"{old} is the new lakehouse now; `rebalance run` goes on with it. The old one is {outcome.before}.")
    return 0
