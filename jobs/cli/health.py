"""`rebalance health`: reads what the pipeline wrote of itself, without Spark, and says whether it is well."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

from jobs.common.errors import UserError
from jobs.common.text import printable
from jobs.common.times import parse_span
from jobs.health.reading import read, summary, to_json
from jobs.health.verdict import STATE_WINDOW_MS, Limits, problems


def limits_of(times: Mapping[str, str], *, quarantined: float, late: float, divergences: int) -> Limits:
    """Limits as they are typed: times as 60s, 5m, by option; shares in percent. UserError: no such time."""
    typed = {name: round(parse_span(text, name=f"--{name.replace('_', '-')}").total_seconds() * 1_000) for name, text in times.items()}
    if typed["window"] > STATE_WINDOW_MS:
        raise UserError("--window: 24h at most")
    return Limits(
        max_lag_ms=typed["max_lag"],
        max_stall_ms=typed["max_stall"],
        max_batch_ms=typed["max_batch"],
        max_quarantined=quarantined / 100,
        max_late=late / 100,
        max_divergences=divergences,
        window_ms=typed["window"],
    )


def run(folder: Path, limits: Limits, form: str, now_ms: int, say: Callable[[str], None]) -> int:
    """Says it; returns the exit code: 0 well, 1 not. LakehouseError: it cannot be told."""
    evidence = read(folder, now_ms)
    found = problems(evidence, limits)
    if form == "json":
        say(to_json(evidence, limits, found))
    elif found:
        for problem in found:
            say(printable(problem.text(), 600))
    else:
        say(f"OK: {summary(evidence, limits)}")
    return 1 if found else 0
