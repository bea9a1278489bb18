"""Resident memory of a pipeline's processes over time."""

from __future__ import annotations

import statistics
import time
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from jobs.health.memory import descendants, resident


class Sample(NamedTuple):
    """Resident memory at one moment, in MB."""

    seconds: float
    jvm: float
    python: float


def sample(pid: int, since: float) -> Sample:
    """Memory of a process tree; processes that end meanwhile count as nothing."""
    jvm = python = 0.0
    for process in (pid, *descendants(pid)):
        size = (resident(process) or 0) / 2**20
        try:
            program = Path(f"/proc/{process}/exe").readlink().name
        except OSError:
            continue
        if program == "java":
            jvm = max(jvm, size)  # a process that it is about to start still looks like another of it
        else:
            python += size
    return Sample(time.monotonic() - since, jvm, python)


def slope(samples: Sequence[Sample], name: str) -> float:
    """MB per minute, fitted over the second half of the run: the first holds start-up and the heap's growth to its limit."""
    half = [s for s in samples if s.seconds > samples[-1].seconds / 2]
    if len(half) < 3:
        return 0.0
    fit = statistics.linear_regression([s.seconds / 60 for s in half], [getattr(s, name) for s in half])
    return fit.slope
