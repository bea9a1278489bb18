"""Runs a command and measures its whole process tree: time, processor time, memory. And says on what: a figure without it says nothing.

The kernel counts the processor time of a process whose parent waits for it. Processes whose parent ends become children of this one
(PR_SET_CHILD_SUBREAPER), which waits for them. But Spark's Python daemon ignores the end of its workers, and the kernel forgets what they
took. So each process is also sampled while it lives, and the greater of the two sums counts. Linux only.
"""

from __future__ import annotations

import contextlib
import ctypes
import itertools
import os
import platform
import resource
import subprocess
import time
from collections.abc import Iterable, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any, Final, NamedTuple

import psutil

_PR_SET_CHILD_SUBREAPER: Final = 36
_FIRST_SAMPLE_SECONDS: Final = 0.05
_SAMPLE_SECONDS: Final = 0.2
_SAMPLES_FOR_ONE_OF_MEMORY: Final = 6
_LINGER_SECONDS: Final = 240.0
_PACKAGES: Final = ("pyspark", "delta-spark", "deltalake", "duckdb", "pyarrow", "pandas", "msgspec")


class Usage(NamedTuple):
    """What a run took."""

    seconds: float
    core_seconds: float
    """User and system time of all processes; at most 0.2 s too little for each process whose parent does not wait for it."""
    peak_mb: float
    """The most memory of all processes at one moment. What several of them share counts once."""


def run(command: Sequence[str], folder: Path, log: Path) -> Usage:
    """Runs a command in a folder; SystemExit with its output if it fails."""
    if ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0):
        raise OSError(ctypes.get_errno(), "prctl")
    before = _children_seconds()
    peak, pause = 0.0, _FIRST_SAMPLE_SECONDS
    sampled: dict[tuple[int, float], float] = {}
    begun = time.monotonic()
    with log.open("ab") as out:
        process = subprocess.Popen(command, stdout=out, stderr=out, stdin=subprocess.DEVNULL, cwd=folder)
    for number in itertools.count():
        tree = psutil.Process().children(recursive=True)
        sampled.update(_seconds_of(tree))
        if number < _SAMPLES_FOR_ONE_OF_MEMORY or number % _SAMPLES_FOR_ONE_OF_MEMORY == 0:  # a short run has few samples
            peak = max(peak, sum(map(_proportional_mb, tree)))
        try:
            code = process.wait(pause)
            break
        except subprocess.TimeoutExpired:
            pause = min(1.5 * pause, _SAMPLE_SECONDS)
    seconds = time.monotonic() - begun
    _reap()
    if code:
        tail = log.read_text(encoding="utf-8", errors="replace").splitlines()[-20:]
        raise SystemExit("\n".join([f"{' '.join(command)} ended with exit code {code}:", *tail]))
    return Usage(seconds, max(_children_seconds() - before, sum(sampled.values())), peak)


def machine() -> dict[str, Any]:
    """Processor, memory, load, system and versions."""
    processor = Path("/proc/cpuinfo").read_text(encoding="utf-8").partition("model name")[2].partition("\n")[0]
    commit = subprocess.run(["git", "describe", "--always", "--dirty"], check=False, capture_output=True, text=True).stdout.strip()
    return {
        "processor": processor.strip("\t: ") or platform.machine(),
        "cores": len(os.sched_getaffinity(0)),
        "memory_gb": round(psutil.virtual_memory().total / 2**30, 1),
        "load_before": round(os.getloadavg()[0], 2),
        "system": f"{platform.system()} {platform.release()}",
        "python": platform.python_version(),
        "commit": commit,
        **{name: version(name) for name in _PACKAGES},
    }


def disk_mb(folder: Path) -> float:
    """What the files of a folder take up."""
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file()) / 1e6


def _children_seconds() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def _reap() -> None:
    """Wait for processes that a command has left behind: only then does their time count."""
    until = time.monotonic() + _LINGER_SECONDS
    while time.monotonic() < until:
        try:
            pid, _ = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return
        if not pid:
            time.sleep(0.05)


def _seconds_of(processes: Iterable[psutil.Process]) -> dict[tuple[int, float], float]:
    """The processor time of each process by its id and start, without that of its children."""
    found = {}
    for process in processes:
        with contextlib.suppress(psutil.Error):
            times = process.cpu_times()
            found[process.pid, process.create_time()] = times.user + times.system
    return found


def _proportional_mb(process: psutil.Process) -> float:
    """A process's share of memory (PSS); 0 if it has ended."""
    try:
        lines = Path(f"/proc/{process.pid}/smaps_rollup").read_text(encoding="ascii").splitlines()
    except OSError:
        return 0.0
    return sum(int(line.split()[1]) for line in lines if line.startswith("Pss:")) / 1024
