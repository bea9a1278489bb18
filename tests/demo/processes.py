"""Finds the processes of a test: those with its mark in their environment, which children inherit. Linux alone tells."""

from pathlib import Path


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
