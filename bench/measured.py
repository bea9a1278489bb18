"""Runs a command and measures its whole process tree: time, processor time, memory.

Processes whose parent ends become children of this one (PR_SET_CHILD_SUBREAPER), so that the processor time of Spark's Python workers is
counted too. Linux only.
"""

from __future__ import annotations

import ctypes
import os
import resource
import subprocess
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Final, NamedTuple

import psutil

_PR_SET_CHILD_SUBREAPER: Final = 36
_FIRST_SAMPLE_SECONDS: Final = 0.1
_SAMPLE_SECONDS: Final = 1.0
_LINGER_SECONDS: Final = 20.0


class Usage(NamedTuple):
    """What a run took."""

    seconds: float
    core_seconds: float
    """User and system time of all processes."""
    peak_mb: float
    """The most memory of all processes at one moment. What several of them share counts once."""


def run(command: Sequence[str], folder: Path, log: Path) -> Usage:
    """Runs a command in a folder; SystemExit with its output if it fails."""
    if ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0):
        raise OSError(ctypes.get_errno(), "prctl")
    before = _children_seconds()
    peak, pause = 0.0, _FIRST_SAMPLE_SECONDS
    begun = time.monotonic()
    with log.open("ab") as out:
        process = subprocess.Popen(command, stdout=out, stderr=out, stdin=subprocess.DEVNULL, cwd=folder)
    while True:
        peak = max(peak, _memory_mb())
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
    return Usage(seconds, _children_seconds() - before, peak)


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


def _memory_mb() -> float:
    return sum(map(_proportional_mb, psutil.Process().children(recursive=True)))


def _proportional_mb(process: psutil.Process) -> float:
    """A process's share of memory (PSS); 0 if it has ended."""
    try:
        lines = Path(f"/proc/{process.pid}/smaps_rollup").read_text(encoding="ascii").splitlines()
    except OSError:
        return 0.0
    return sum(int(line.split()[1]) for line in lines if line.startswith("Pss:")) / 1024
