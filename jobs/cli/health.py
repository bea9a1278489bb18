"""`rebalance health`: reads what the pipeline recorded about itself, without Spark, and lists what is wrong."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

import click

from jobs.common import exit_codes, options
from jobs.common.errors import UserError
from jobs.common.stores import Place
from jobs.common.text import printable
from jobs.common.times import milliseconds

if TYPE_CHECKING:
    from jobs.health.verdict import Limits

# The parameters have the names and units of `Limits`.
_SPAN_MS: Final[dict[str, Any]] = {"type": options.SPAN, "callback": lambda *given: milliseconds(given[-1])}
_SHARE: Final[dict[str, Any]] = {"type": click.FloatRange(0, 100), "metavar": "PERCENT", "callback": lambda *given: given[-1] / 100}


@options.command(
    "rebalance health --lakehouse lake/",
    "rebalance health --lakehouse lake/ --max-lag 5m --window 15m",
    "rebalance health --lakehouse lake/ --format json | jq '.problems[].code'",
)
@options.lakehouse("Folder that `rebalance run` works in.")
@click.option("--max-lag", "max_lag_ms", default="60s", help="Age of the newest event when it is processed.", **_SPAN_MS)
@click.option("--max-stall", "max_stall_ms", default="5m", help="How long input may wait while no micro-batch finishes.", **_SPAN_MS)
@click.option("--max-batch", "max_batch_ms", default="60s", help="Median duration of a micro-batch.", **_SPAN_MS)
@click.option("--max-quarantined", default=1.0, help="Share of unreadable lines.", **_SHARE)
@click.option("--max-late", default=0.1, help="Share of events that arrive too late.", **_SHARE)
@click.option("--max-divergences", type=click.IntRange(0), default=0, metavar="N", help="Number of MODEL_DIVERGENCE findings.")
@click.option("--window", "window_ms", default="1h", help="Judge the micro-batches of this last span, 24h at most.", **_SPAN_MS)
@click.option(
    "--liveness", "process_only", is_flag=True, help="Only what a restart can fix: NOT_RUNNING, FAILED, SILENT, STALLED. For probes."
)
@options.output_format("text", "json")
def health(lakehouse: Place, *, form: str, **limits: Any) -> int:
    """Say whether the pipeline is healthy, and what to do if not.

    Prints a line for each problem. Reads what `rebalance run` records about itself. Write times as 500ms, 60s, 5m, 24h.
    """
    from jobs.health.verdict import STATE_WINDOW_MS, Limits

    if limits["window_ms"] > STATE_WINDOW_MS:
        raise UserError("--window: 24h at most")
    return write_verdict(lakehouse, Limits(**limits), form, time.time_ns() // 1_000_000, click.echo)


def write_verdict(folder: Place, limits: Limits, form: str, now_ms: int, write: Callable[[str], None]) -> int:
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
