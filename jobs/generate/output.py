"""Generated lines as files, or as one stream."""

from __future__ import annotations

import heapq
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import IO, TYPE_CHECKING, Final

from jobs.common.errors import UserError
from jobs.generate.cluster import Cluster

if TYPE_CHECKING:
    from typing_extensions import Self

REQUEST_LOG: Final = "kafka-request.log"
COORDINATOR_LOG: Final = "server.log"
_STAMP: Final = 25  # characters at the beginning of a line

Taken = list[tuple[bool, int, list[str]]]


@dataclass
class Progress:
    """How far it is."""

    lines: int = 0
    bytes: int = 0


class Folder:
    """`broker-N/kafka-request.log` and `broker-N/server.log` in a folder, as `rebalance run --input` reads the logs of a cluster."""

    def __init__(self, folder: Path, brokers: int) -> None:
        self._folder = folder
        self._brokers = brokers
        self._stack = ExitStack()
        self._files: dict[tuple[bool, int], IO[bytes]] = {}

    def __enter__(self) -> Self:
        """UserError: the folder holds something."""
        if self._folder.exists() and (not self._folder.is_dir() or any(self._folder.iterdir())):
            raise UserError(f"{self._folder} is there already: remove it, or write to another folder")
        for broker in range(self._brokers):
            place = self._folder / f"broker-{broker + 1}"
            place.mkdir(parents=True)
            for is_request, name in ((True, REQUEST_LOG), (False, COORDINATOR_LOG)):
                self._files[is_request, broker] = self._stack.enter_context((place / name).open("wb", buffering=0))
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def write(self, taken: Taken) -> int:
        """Append lines to their logs; returns the bytes."""
        return sum(_whole(self._files[is_request, broker], "".join(lines)) for is_request, broker, lines in taken)


class Stream:
    """Both logs of one broker in one stream, in order of time: as a container writes them to its standard output."""

    def __init__(self, out: IO[bytes]) -> None:
        self._out = out

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._out.flush()

    def write(self, taken: Taken) -> int:
        """Write lines; returns the bytes."""
        return _whole(self._out, "".join(heapq.merge(*(lines for _, _, lines in taken), key=_stamp)))


def _whole(file: IO[bytes], text: str) -> int:
    """Write a text, however much of it the system takes at once."""
    left = memoryview(text.encode("ascii"))
    size = len(left)
    while left:
        left = left[file.write(left) :]
    return size


def write(cluster: Cluster, to: Folder | Stream, lines: int) -> Iterator[Progress]:
    """Write a number of lines; yields after each step."""
    done = Progress()
    while done.lines < lines:
        for _ in cluster.advance(cluster.now_ms + 1_000):
            taken = cluster.book.take()
            done.lines += sum(len(one) for _, _, one in taken)
            if done.lines > lines:
                _drop_last(taken, done.lines - lines)
                done.lines = lines
            done.bytes += to.write(taken)
            yield done
            if done.lines == lines:
                return


def _drop_last(taken: Taken, number: int) -> None:
    """Leave out as many lines, those of the latest times."""
    for _ in range(number):
        log = max((one for _, _, one in taken if one), key=lambda one: _stamp(one[-1]))
        log.pop()


def _stamp(line: str) -> str:
    return line[:_STAMP]
