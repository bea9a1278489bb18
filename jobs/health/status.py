"""The status file: what the process that works in a lakehouse is doing, written every few seconds and replaced as a whole.

The table `pipeline_health` shows finished micro-batches; this file shows the present, and how the process ended. A process that is killed
writes nothing more: its file still says that it runs, while no process holds the lock.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from typing import Final

import msgspec

from jobs.common.files import write_whole
from jobs.common.stores import Place

RUNNING: Final = "running"
FINISHED: Final = "finished"  # with --once: all input was processed
STOPPED: Final = "stopped"  # by a signal
FAILED: Final = "failed"

VERSION: Final = 1


@dataclass(frozen=True)
class QueryStatus:
    """A streaming query. Times are epoch ms."""

    query: str
    active: bool
    finished_ms: int | None = None  # end of its newest micro-batch with input, in this run
    waiting_since_ms: int | None = None  # since when it has had input and finished nothing
    lag_events: int | None = None  # rows that wait, as in pipeline_health


@dataclass(frozen=True)
class Status:
    """The process. Times are epoch ms."""

    pid: int
    state: str
    once: bool
    started_ms: int
    at_ms: int  # when this was written
    stopping: bool = False  # a signal came: the process finishes what it has begun
    reason: str | None = None  # why it failed
    away: str | None = None  # why the cluster of the topic does not answer, while it does not
    unwritten: str | None = None  # why pipeline_health cannot be written
    lag_bytes: int | None = None  # of log files
    queries: tuple[QueryStatus, ...] = ()


class _FileVersion(msgspec.Struct):
    version: int


def write(path: Place, status: Status) -> None:
    """Replaces the file. OSError: it could not be written."""
    write_whole(path, json.dumps({"version": VERSION, **asdict(status)}).encode())


def read(path: Place) -> Status | None:
    """The status; None: there is no file, or this version cannot read it. Fields of newer programs are ignored."""
    try:
        data = path.read_bytes()
        if msgspec.json.decode(data, type=_FileVersion).version != VERSION:
            return None
        return msgspec.json.decode(data, type=Status)
    except (OSError, msgspec.MsgspecError):
        return None
