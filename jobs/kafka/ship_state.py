"""What a shipper remembers: how far each log was read, delivered and acknowledged. One file, replaced as a whole.

A second file beside it, with `.lock` at its end, is locked while a shipper runs: two that share a state would each forget what the
other has read.
"""

from __future__ import annotations

import fcntl
import json
from dataclasses import dataclass
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, Final

from jobs.common.errors import UserError
from jobs.common.files import write_whole
from jobs.logs.slicer import Stream, stream_of, streams_state

if TYPE_CHECKING:
    from typing_extensions import Self

VERSION: Final = 1


@dataclass(frozen=True)
class Target:
    """What is shipped and where to. A state is good for one target: elsewhere, everything would have to be shipped again."""

    cluster: str
    broker: str
    topic: str


class ShipState:
    """The file of one shipper. Use it as a context: it is locked meanwhile."""

    def __init__(self, path: Path, target: Target) -> None:
        self.path = path
        self._target = target
        self._lock: IO[bytes] | None = None

    def __enter__(self) -> Self:
        lock = self.path.with_name(self.path.name + ".lock")
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            self._lock = lock.open("ab")
        except OSError as error:
            raise UserError(f"--state {self.path}: cannot be written: {error.strerror}") from None
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            self._lock.close()
            raise UserError(f"--state {self.path}: another shipper is using it; give each its own") from None
        return self

    def __exit__(self, *_: object) -> None:
        if self._lock is not None:
            self._lock.close()

    def load(self) -> list[Stream]:
        """The logs as of the last save; none if there was none. UserError: the file is of something else."""
        try:
            text = self.path.read_text(encoding="utf-8")
        except FileNotFoundError:
            return []
        except (OSError, UnicodeDecodeError) as error:
            raise UserError(f"--state {self.path}: cannot be read: {error}") from None
        try:
            state: Any = json.loads(text)
            version, target = state["version"], Target(**state["target"])
            streams = [stream_of(entry) for entry in state["streams"]] if version == VERSION else []
        except (ValueError, TypeError, KeyError, AttributeError):
            raise UserError(f"--state {self.path}: this is no state of a shipper; without it all logs are shipped again") from None
        if version != VERSION:
            raise UserError(f"--state {self.path}: it is of version {version}; this program reads {VERSION}")
        if target != self._target:
            raise UserError(
                f"--state {self.path}: it is of cluster {target.cluster}, broker {target.broker}, topic {target.topic}; give another file"
            )
        return streams

    def save(self, streams: list[Stream]) -> None:
        """Replaces the file: after a crash there is either the old one or the new one, whole."""
        target = {"cluster": self._target.cluster, "broker": self._target.broker, "topic": self._target.topic}
        state = {"version": VERSION, "target": target, "streams": streams_state(streams)}
        try:
            write_whole(self.path, json.dumps(state, separators=(",", ":")).encode())
        except OSError as error:
            raise UserError(f"--state {self.path}: cannot be written: {error.strerror}") from None
