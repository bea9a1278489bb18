"""Resident memory and processor time of a pipeline's processes over time."""

from __future__ import annotations

import contextlib
import statistics
import time
from collections.abc import Sequence
from typing import NamedTuple

import psutil


class Sample(NamedTuple):
    """Resident memory at one moment, in MB, and processor time up to then, in seconds."""

    seconds: float
    jvm: float
    python: float
    jvm_cpu: float
    python_cpu: float


def sample(pid: int, since: float) -> Sample:
    """Memory and time of a process tree. Processes that end meanwhile count as nothing."""
    jvm = python = jvm_cpu = python_cpu = 0.0
    with contextlib.suppress(psutil.NoSuchProcess):
        root = psutil.Process(pid)
        for process in (root, *root.children(recursive=True)):
            with contextlib.suppress(psutil.NoSuchProcess, psutil.AccessDenied):
                size, times = process.memory_info().rss / 2**20, process.cpu_times()
                if process.exe().endswith("/java"):
                    jvm = max(jvm, size)  # a child that the JVM has forked looks like a second JVM at first
                    jvm_cpu = max(jvm_cpu, times.user + times.system)
                else:
                    python += size
                    python_cpu += times.user + times.system
    return Sample(time.monotonic() - since, jvm, python, jvm_cpu, python_cpu)


def slope(samples: Sequence[Sample], name: str) -> float:
    """MB per minute, fitted over the second half of the run: the first holds start-up and the heap's growth to its limit."""
    half = [s for s in samples if s.seconds > samples[-1].seconds / 2]
    if len(half) < 3:
        return 0.0
    fit = statistics.linear_regression([s.seconds / 60 for s in half], [getattr(s, name) for s in half])
    return fit.slope
