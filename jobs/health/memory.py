"""Resident memory of processes, as Linux tells it in /proc. Elsewhere nothing is known."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Final

_PROC: Final = Path("/proc")
_PAGE: Final = os.sysconf("SC_PAGE_SIZE") if hasattr(os, "sysconf") else 4096


@dataclass(frozen=True)
class Memory:
    """Bytes; None: not known."""

    driver: int | None = None
    jvm: int | None = None
    workers: int | None = None  # all Python processes that the JVM started; pages that they share count for each


def measured(jvm: int | None) -> Memory:
    """Of this process, of the JVM with that process id, and of what it started."""
    driver = resident(os.getpid())
    if jvm is None or driver is None:
        return Memory(driver)
    workers = [bytes_ for pid in descendants(jvm) if (bytes_ := resident(pid)) is not None]
    return Memory(driver, resident(jvm), sum(workers))


def resident(pid: int) -> int | None:
    """Bytes of a process; None: it is gone, or this is not Linux."""
    try:
        return int((_PROC / str(pid) / "statm").read_bytes().split()[1]) * _PAGE
    except (OSError, IndexError, ValueError):
        return None


def descendants(pid: int) -> set[int]:
    """Processes that a process started, and those that they did."""
    parents = {}
    for folder in _PROC.glob("[0-9]*"):
        try:
            # The name of the command is in parentheses, and may hold some itself.
            parents[int(folder.name)] = int((folder / "stat").read_bytes().rpartition(b")")[2].split()[1])
        except (OSError, IndexError, ValueError):  # noqa: PERF203 - it ended since it was listed
            continue
    found: set[int] = set()
    while new := {child for child, parent in parents.items() if (parent == pid or parent in found) and child not in found}:
        found |= new
    return found
