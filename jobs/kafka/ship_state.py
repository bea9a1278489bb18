"""The state of a shipper: how far each log was read, delivered and acknowledged. One file, always replaced as a whole.

While a shipper runs it locks a second file, whose name ends in `.lock`: two shippers with one state would overwrite each other's
progress.
"""

from __future__ import annotations

import fcntl
import os
from dataclasses import dataclass
from pathlib import Path
from typing import IO, TYPE_CHECKING, Final

import msgspec

from jobs.common.errors import UserError
from jobs.common.files import write_whole
from jobs.logs.streams import StoredStream, Stream, stream_of, streams_state

if TYPE_CHECKING:
    from typing_extensions import Self

VERSION: Final = 1


@dataclass(frozen=True)
class ShipTarget:
    """Whose logs are shipped, and the topic that they are shipped to. A state belongs to one target."""

    cluster: str
    broker: str
    topic: str


@dataclass(frozen=True)
class _StateFile:
    version: int
    target: ShipTarget
    streams: list[StoredStream]


class ShipState:
    """The file of one shipper. Use it as a context, in which the file is locked."""

    def __init__(self, path: Path, target: ShipTarget) -> None:
        self.path = path
        self._target = target
        self._lock_path = path.with_name(f"{path.name}.lock")
        self._lock: IO[bytes] | None = None

    def __enter__(self) -> Self:
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            self._lock = self._lock_path.open("ab")
        except OSError as error:
            raise UserError(f"--state {self.path}: cannot be written: {error.strerror}") from None
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if self._lock_path.stat().st_ino != os.fstat(self._lock.fileno()).st_ino:  # a shipper that ended has removed the one we opened
                raise FileNotFoundError
        except OSError:
            self._lock.close()
            raise UserError(f"--state {self.path}: another shipper is using it; give each its own") from None
        return self

    def __exit__(self, *_: object) -> None:
        if self._lock is not None:
            self._lock_path.unlink(missing_ok=True)
            self._lock.close()

    def load(self) -> list[Stream]:
        """The logs that were saved last; none without a file. UserError: the file is no state, or that of another target."""
        try:
            data = self.path.read_bytes()
        except FileNotFoundError:
            return []
        except OSError as error:
            raise UserError(f"--state {self.path}: cannot be read: {error.strerror}") from None
        try:
            state = msgspec.json.decode(data, type=_StateFile)
            streams = [stream_of(entry) for entry in state.streams] if state.version == VERSION else []
        except (msgspec.DecodeError, ValueError, TypeError, KeyError):
            raise UserError(f"--state {self.path}: not the state of a shipper; without one all logs are shipped again") from None
        if state.version != VERSION:
            raise UserError(f"--state {self.path}: it has version {state.version}; this program reads version {VERSION}")
        if (other := state.target) != self._target:
            raise UserError(
                f"--state {self.path}: it is of cluster {other.cluster}, broker {other.broker}, topic {other.topic}; give another file"
            )
        return streams

    def save(self, streams: list[Stream]) -> None:
        """Replaces the file: after a crash there is either the old one or the new one, whole."""
        try:
            write_whole(self.path, msgspec.json.encode(_StateFile(VERSION, self._target, streams_state(streams))))
        except OSError as error:
            raise UserError(f"--state {self.path}: cannot be written: {error.strerror}") from None
