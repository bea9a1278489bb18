"""What connections read, as FETCH requests tell it, of one log and column by column: the tracker gets it instead of events.

FETCH names no group. Whose it is only the shard knows that has a group with a member of this client id and host, so every shard gets all,
and looks into what it can use.
"""

from __future__ import annotations

from collections.abc import Iterator
from struct import Struct
from typing import Final, NamedTuple

OUT_OF_RANGE: Final = -2
"""In the place of an end: the position was none of the log (Errors.OFFSET_OUT_OF_RANGE)."""
SPAN_MS: Final = 5_000
"""What is read is told by spans of time, each a multiple of this."""
PAUSE_MS: Final = 2_000
"""A client asks for records at least so often, while it has a partition in which records come: fetch.max.wait.ms is half a second."""
_CELL: Final = Struct("<4i3q")


def client_key(client_id: str, client_host: str) -> str:
    """How a client is known that names no group; empty if it is not."""
    return f"{client_id}\0{client_host}" if client_id and client_host else ""


class Read(NamedTuple):
    """What a connection read of a partition in a span, without going back. -1: not told."""

    partition: str  # with its topic, or the id of that
    first_ms: int
    last_ms: int
    end_ms: int  # when `end` was told
    position: int  # from where it read on first
    reached: int  # ... and last
    end: int  # of the log, as an answer told last

    @property
    def at_ms(self) -> int:
        """When the span begins."""
        return self.first_ms - self.first_ms % SPAN_MS

    def follows(self, last_ms: int, reached: int) -> bool:
        """Whether it goes on where the connection was. After a pause it may be the partition's owner once more, and others between."""
        return self.position == reached or (self.position > reached and self.first_ms - last_ms <= PAUSE_MS)


class Reads(NamedTuple):
    """FETCH requests of a log. The first four lists have an entry for each connection."""

    connections: list[str]
    clients: list[str]  # `client_key`
    positions: list[int]  # of its last line
    counts: list[int]  # of its cells
    origin: str
    base_ms: int
    partitions: list[str]
    cells: bytes  # of each Read: place of its partition, and its other fields, the times since `base_ms`

    def by_connection(self) -> Iterator[tuple[int, slice]]:
        """The place of each connection, and that of its cells."""
        begin = 0
        for place, count in enumerate(self.counts):
            end = begin + count * _CELL.size
            yield place, slice(begin, end)
            begin = end

    def read(self, cells: slice) -> list[Read]:
        """Some of the cells."""
        base, partitions = self.base_ms, self.partitions
        return [
            Read(partitions[of], base + first, base + last, base + end_at, position, reached, end)
            for of, first, last, end_at, position, reached, end in _CELL.iter_unpack(self.cells[cells])
        ]
