"""Which processes are left of a test: those that have its mark in their environment, which children inherit. Linux alone tells."""

from __future__ import annotations

import time
from pathlib import Path


def running_with(mark: dict[str, str]) -> list[int]:
    """Their ids. One that has ended, and that nobody has waited for, has no environment any more."""
    ((name, value),) = mark.items()
    wanted = f"{name}={value}".encode()
    return [int(process.name) for process in Path("/proc").glob("[0-9]*") if wanted in _environment(process)]


def wait_for_none(mark: dict[str, str], seconds: float = 30.0) -> None:
    """Until they have ended. AssertionError: one lives on."""
    until = time.monotonic() + seconds
    while left := running_with(mark):
        assert time.monotonic() < until, left
        time.sleep(0.1)


def _environment(process: Path) -> list[bytes]:
    try:
        return (process / "environ").read_bytes().split(b"\0")
    except OSError:
        return []
