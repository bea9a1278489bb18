"""`rebalance health`: reads what the pipeline recorded about itself, without Spark, and lists what is wrong."""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING

import click

from jobs.common import exit_codes, options
from jobs.common.errors import UserError
from jobs.common.text import printable
from jobs.common.times import milliseconds

if TYPE_CHECKING:
    from jobs.health.verdict import Limits


@options.command(
    "rebalance health --lakehouse lake/",
    "rebalance health --lakehouse lake/ --max-lag 5m --window 15m",
    "rebalance health --lakehouse lake/ --format json | jq '.problems[].code'",
)
@options.lakehouse("Folder that `rebalance run` works in.")
@click.option("--max-lag", type=options.SPAN, default="60s", help="Age of the newest event when it is tracked.")
@click.option("--max-stall", type=options.SPAN, default="5m", help="How long input may wait while no micro-batch ends.")
@click.option("--max-batch", type=options.SPAN, default="60s", help="Duration of a micro-batch (median).")
@click.option(
    "--max-quarantined", type=click.FloatRange(0, 100), default=1.0, metavar="PERCENT", help="Share of lines that cannot be read."
)
@click.option("--max-late", type=click.FloatRange(0, 100), default=0.1, metavar="PERCENT", help="Share of events that come too late.")
@click.option("--max-divergences", type=click.IntRange(0), default=0, metavar="N", help="Number of findings MODEL_DIVERGENCE.")
@click.option("--window", type=options.SPAN, default="1h", help="Judge the micro-batches of this last span, 24h at most.")
@click.option("--liveness", is_flag=True, help="Only what a restart can mend: NOT_RUNNING, FAILED, SILENT, STALLED. For probes.")
@options.output_format("text", "json")
def health(
    lakehouse: Path,
    *,
    max_lag: timedelta,
    max_stall: timedelta,
    max_batch: timedelta,
    max_quarantined: float,
    max_late: float,
    max_divergences: int,
    window: timedelta,
    liveness: bool,
    form: str,
) -> int:
    """Say whether the pipeline is well, and what to do if not.

    Prints a line for each problem. Reads what `rebalance run` records about itself. Times are written 500ms, 60s, 5m, 24h.
    """
    from jobs.health.verdict import STATE_WINDOW_MS, Limits

    if milliseconds(window) > STATE_WINDOW_MS:
        raise UserError("--window: 24h at most")
    limits = Limits(
        max_lag_ms=milliseconds(max_lag),
        max_stall_ms=milliseconds(max_stall),
        max_batch_ms=milliseconds(max_batch),
        max_quarantined=max_quarantined / 100,
        max_late=max_late / 100,
        max_divergences=max_divergences,
        window_ms=milliseconds(window),
        process_only=liveness,
    )
    return write_verdict(lakehouse, limits, form, time.time_ns() // 1_000_000, click.echo)


def write_verdict(folder: Path, limits: Limits, form: str, now_ms: int, write: Callable[[str], None]) -> int:
    """Writes the problems of a pipeline, or that it has none; returns the exit code. LakehouseError: there is nothing to judge by."""
    from jobs.health.reading import read, summary, to_json
    from jobs.health.verdict import problems

    evidence = read(folder, now_ms)
    wrong = problems(evidence, limits)
    if form == "json":
        write(to_json(evidence, limits, wrong))
    else:
        for line in [printable(problem.text(), 600) for problem in wrong] or [f"OK: {summary(evidence, limits)}"]:
            write(line)
    return exit_codes.FAILED if wrong else exit_codes.DONE
