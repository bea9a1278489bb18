"""Generated lines as files, or as one stream."""

from __future__ import annotations

import heapq
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Final

from jobs.common.errors import UserError
from jobs.generate.cluster import Cluster

REQUEST_LOG: Final = "kafka-request.log"
COORDINATOR_LOG: Final = "server.log"
_STAMP: Final = 25  # characters at the beginning of a line

Taken = list[tuple[bool, int, list[str]]]


@dataclass
class Progress:
    """How far it is."""

    lines: int = 0
    bytes: int = 0


class Folder(ExitStack):
    """`broker-N/kafka-request.log` and `broker-N/server.log` in a folder, as `rebalance run --input` reads the logs of a cluster."""

    def __init__(self, folder: Path, brokers: int) -> None:
        """UserError: the folder holds something."""
        super().__init__()
        if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
            raise UserError(f"{folder} is there already: remove it, or write to another folder")
        self._files: dict[tuple[bool, int], IO[bytes]] = {}
        for broker in range(brokers):
            place = folder / f"broker-{broker + 1}"
            place.mkdir(parents=True)
            for is_request, name in ((True, REQUEST_LOG), (False, COORDINATOR_LOG)):
                self._files[is_request, broker] = self.enter_context((place / name).open("wb"))

    def write(self, taken: Taken) -> int:
        """Append lines to their logs; returns the bytes."""
        return sum(self._files[is_request, broker].write("".join(lines).encode("ascii")) for is_request, broker, lines in taken)


class Stream(ExitStack):
    """Both logs of one broker in one stream, in order of time: as a container writes them to its standard output."""

    def __init__(self, out: IO[bytes]) -> None:
        super().__init__()
        self._out = out
        self.callback(out.flush)

    def write(self, taken: Taken) -> int:
        """Write lines; returns the bytes."""
        return self._out.write("".join(heapq.merge(*(lines for _, _, lines in taken), key=_stamp)).encode("ascii"))


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
