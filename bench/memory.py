"""Resident memory of a pipeline's processes over time."""

from __future__ import annotations

import contextlib
import statistics
import time
from collections.abc import Sequence
from typing import NamedTuple

import psutil


class Sample(NamedTuple):
    """Resident memory at one moment, in MB."""

    seconds: float
    jvm: float
    python: float


def sample(pid: int, since: float) -> Sample:
    """Memory of a process tree. Processes that end meanwhile count as nothing."""
    jvm = python = 0.0
    with contextlib.suppress(psutil.NoSuchProcess):
        root = psutil.Process(pid)
        for process in (root, *root.children(recursive=True)):
            with contextlib.suppress(psutil.NoSuchProcess, psutil.AccessDenied):
                size = process.memory_info().rss / 2**20
                if process.exe().endswith("/java"):
                    jvm = max(jvm, size)  # a child that the JVM has forked looks like a second JVM at first
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
