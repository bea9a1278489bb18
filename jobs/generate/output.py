"""Generated lines as files, or as one stream."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Final

from jobs.common.errors import UserError
from jobs.generate.cluster import Cluster

REQUEST_LOG: Final = "kafka-request.log"
COORDINATOR_LOG: Final = "server.log"
_STAMP: Final = 25  # characters at the beginning of a line

Taken = list[tuple[bool, int, list[str]]]
Write = Callable[[Taken], int]
"""Appends lines to their logs; returns the bytes."""


@dataclass
class Progress:
    """How far it is."""

    lines: int = 0
    bytes: int = 0


@contextmanager
def to_folder(folder: Path, brokers: int) -> Iterator[Write]:
    """To `broker-N/kafka-request.log` and `broker-N/server.log` in a folder, as `rebalance run --input` reads the logs of a cluster.

    UserError: the folder holds something.
    """
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise UserError(f"{folder} is there already: remove it, or write to another folder")
    with ExitStack() as opened:
        files: dict[tuple[bool, int], IO[bytes]] = {}
        for broker in range(brokers):
            place = folder / f"broker-{broker + 1}"
            place.mkdir(parents=True)
            for is_request, name in ((True, REQUEST_LOG), (False, COORDINATOR_LOG)):
                files[is_request, broker] = opened.enter_context((place / name).open("wb"))
        yield lambda taken: sum(files[is_request, broker].write("".join(lines).encode("ascii")) for is_request, broker, lines in taken)


@contextmanager
def to_stream(out: IO[bytes]) -> Iterator[Write]:
    """To one stream, both logs of one broker in order of time: as a container writes them to its standard output."""
    try:
        yield lambda taken: out.write("".join(heapq.merge(*(lines for _, _, lines in taken), key=_stamp)).encode("ascii"))
    finally:
        out.flush()


def write(cluster: Cluster, put: Write, lines: int) -> Iterator[Progress]:
    """Write a number of lines; yields after each step."""
    done = Progress()
    while done.lines < lines:
        for _ in cluster.advance(cluster.now_ms + 1_000):
            taken = cluster.book.take()
            done.lines += sum(len(one) for _, _, one in taken)
            if done.lines > lines:
                _drop_last(taken, done.lines - lines)
                done.lines = lines
            done.bytes += put(taken)
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
