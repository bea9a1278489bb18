"""Finds the processes of a test: those with its mark in their environment, which children inherit. Linux alone tells."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any


def wait_until(condition: Callable[[], Any], seconds: float = 120.0) -> Any:
    """Waits for a state, and returns it. It takes a moment on a quiet machine, and may take long on a busy one."""
    deadline = time.monotonic() + seconds
    while not (found := condition()):
        assert time.monotonic() < deadline
        time.sleep(0.05)
    return found


def running_with(mark: dict[str, str]) -> list[int]:
    """The ids of processes with a mark. A process that has ended has no environment any more."""
    ((name, value),) = mark.items()
    wanted = f"{name}={value}".encode()
    return [int(process.name) for process in Path("/proc").glob("[0-9]*") if wanted in _environment(process)]


def _environment(process: Path) -> list[bytes]:
    try:
        return (process / "environ").read_bytes().split(b"\0")
    except OSError:
        return []
