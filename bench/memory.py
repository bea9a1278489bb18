"""Resident memory of a pipeline's processes over time."""

from __future__ import annotations

import os
import statistics
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final, NamedTuple

PAGE: Final = os.sysconf("SC_PAGE_SIZE")


class Sample(NamedTuple):
    """Resident memory at one moment, in MB."""

    seconds: float
    jvm: float
    python: float


def family(pid: int) -> Iterator[int]:
    """A process and all its descendants."""
    yield pid
    for task in Path(f"/proc/{pid}/task").glob("*/children"):
        for child in task.read_text().split():
            yield from family(int(child))


def sample(pid: int, since: float) -> Sample:
    """Memory of a process tree; processes that end meanwhile count as nothing."""
    jvm = python = 0.0
    for process in set(family(pid)):
        try:
            resident = int(Path(f"/proc/{process}/statm").read_text(encoding="ascii").split()[1]) * PAGE / 2**20
            program = Path(f"/proc/{process}/exe").readlink().name
        except (OSError, IndexError):
            continue
        if program == "java":
            jvm = max(jvm, resident)  # a process that it is about to start still looks like another of it
        else:
            python += resident
    return Sample(time.monotonic() - since, jvm, python)


def slope(samples: Sequence[Sample], name: str) -> float:
    """MB per minute, fitted over the second half of the run: the first holds start-up and the heap's growth to its limit."""
    half = [s for s in samples if s.seconds > samples[-1].seconds / 2]
    if len(half) < 3:
        return 0.0
    fit = statistics.linear_regression([s.seconds / 60 for s in half], [getattr(s, name) for s in half])
    return fit.slope
