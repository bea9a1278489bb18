"""What connections read, as FETCH requests tell it, of one log and column by column: the tracker gets it instead of events.

FETCH names no group. Whose it is only the shard knows that has a group with a member of this client id and host, so every shard can look
into all, and takes what it can use.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate
from typing import Final, NamedTuple

NOT_TOLD: Final = -1
OUT_OF_RANGE: Final = -2
"""In the place of an end: the position was none of the log (Errors.OFFSET_OUT_OF_RANGE)."""
SPAN_MS: Final = 5_000
"""What is read is told by spans of time, each a multiple of this."""
PAUSE_MS: Final = 2_000
"""A client asks for records at least so often, while it has a partition in which records come: fetch.max.wait.ms is half a second."""


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

    @property
    def kind(self) -> int:
        """0: the position is none of the log. 1: only the end is told. 2: where it reads."""
        return 0 if self.end == OUT_OF_RANGE else 1 if self.position == NOT_TOLD else 2

    def follows(self, last_ms: int, reached: int) -> bool:
        """Whether it goes on where the connection was. After a pause it may be the partition's owner once more, and others between."""
        return self.position == reached or (self.position > reached and self.first_ms - last_ms <= PAUSE_MS)


@dataclass(frozen=True)
class Reads:
    """FETCH requests of a log. The first four lists have an entry for each connection; the numbers are those of all reads, in order."""

    connections: list[int]  # checksums: what tells them apart
    clients: list[str]  # `client_key`
    positions: list[int]  # of its last line
    counts: list[int]  # of its reads
    origin: str
    base_ms: int
    partitions: list[str]
    numbers: Sequence[Sequence[int]]
    """Columns: the places of partitions; the first times since `base_ms`; until the last ones; from these until the ends were told; the
    positions; how far from there to the last one, and from that to the end."""

    def of_clients(self, wanted: Iterable[str]) -> Iterator[tuple[int, list[Read]]]:
        """The places of connections of these clients, and what was read on them."""
        for place in sorted(place for client in wanted for place in self._places.get(client, ())):
            end = self._ends[place]
            own = zip(*(column[end - self.counts[place] : end] for column in self.numbers), strict=True)
            yield place, [self._read(*one) for one in own]

    @cached_property
    def _places(self) -> dict[str, list[int]]:
        places: dict[str, list[int]] = {}
        for place, client in enumerate(self.clients):
            places.setdefault(client, []).append(place)
        return places

    @cached_property
    def _ends(self) -> list[int]:
        return [*accumulate(self.counts)]

    def _read(self, of: int, first: int, lasted: int, until_end: int, position: int, step: int, to_end: int) -> Read:
        first_ms, reached = self.base_ms + first, position + step
        last_ms, end = first_ms + lasted, reached + to_end
        return Read(self.partitions[of], first_ms, last_ms, -1 if end == NOT_TOLD else last_ms + until_end, position, reached, end)
