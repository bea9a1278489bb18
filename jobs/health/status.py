"""What the process that works in a lakehouse says of itself every few seconds: a small file, replaced as a whole.

The table `pipeline_health` has what was finished; this file has what is going on, and how the process ended. One that was killed says
nothing more: its file still says that it runs, while nobody holds the lock.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any, Final, TypeVar

from jobs.common.files import write_whole

RUNNING: Final = "running"
FINISHED: Final = "finished"  # with --once: everything was worked off
STOPPED: Final = "stopped"  # by a signal
FAILED: Final = "failed"

VERSION: Final = 1

_Said = TypeVar("_Said")


@dataclass(frozen=True)
class QueryStatus:
    """A streaming query. Times are epoch ms."""

    query: str
    active: bool
    finished_ms: int | None = None  # end of its newest micro-batch with input, in this run
    waiting_since_ms: int | None = None  # since when it has had something to do and finished nothing
    lag_events: int | None = None  # rows that wait, as in pipeline_health


@dataclass(frozen=True)
class Status:
    """The process. Times are epoch ms."""

    pid: int
    state: str
    once: bool
    started_ms: int
    at_ms: int  # when this was written
    stopping: bool = False  # somebody asked it to end: it finishes what it has begun
    reason: str | None = None  # why it failed
    unwritten: str | None = None  # why pipeline_health cannot be written
    lag_bytes: int | None = None  # of log files
    queries: tuple[QueryStatus, ...] = ()


def write(path: Path, status: Status) -> None:
    """OSError: it could not be written."""
    write_whole(path, json.dumps({"version": VERSION, **asdict(status)}).encode())


def read(path: Path) -> Status | None:
    """None: there is none, or none that this version can read."""
    try:
        said = json.loads(path.read_text(encoding="utf-8"))
        if said["version"] != VERSION:
            return None
        queries = tuple(_known(QueryStatus, query) for query in said["queries"])
        return _known(Status, {**said, "queries": queries})
    except (OSError, ValueError, TypeError, KeyError, AttributeError):
        return None


def _known(kind: type[_Said], values: dict[str, Any]) -> _Said:
    """What a newer program says besides is passed over."""
    return kind(**{field.name: values[field.name] for field in fields(kind) if field.name in values})  # type: ignore[arg-type]
