"""Resident memory of processes."""

from __future__ import annotations

import os
from dataclasses import dataclass

import psutil


@dataclass(frozen=True)
class Memory:
    """Bytes; None: not known."""

    driver: int | None = None
    jvm: int | None = None
    workers: int | None = None  # all Python processes that the JVM started; a page that they share counts for each


def measured(jvm: int | None) -> Memory:
    """The memory of this process, of the JVM with that process id, and of the processes that the JVM started."""
    driver = resident(os.getpid())
    if jvm is None:
        return Memory(driver)
    return Memory(driver, resident(jvm), sum(resident(pid) or 0 for pid in _descendants(jvm)))


def resident(pid: int) -> int | None:
    """Resident bytes of a process; None: it has ended, or this user may not read it."""
    try:
        return int(psutil.Process(pid).memory_info().rss)
    except psutil.Error:
        return None


def _descendants(pid: int) -> set[int]:
    """Ids of the processes that a process started, and of those that they started."""
    try:
        return {process.pid for process in psutil.Process(pid).children(recursive=True)}
    except psutil.Error:
        return set()
