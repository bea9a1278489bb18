"""What connections read, as FETCH requests tell it, of one log and column by column: the tracker gets it instead of events.

FETCH names no group. Whose it is only the shard knows that has a group with a member of this client id and host, so every shard gets all,
and looks into what it can use.
"""

from __future__ import annotations

import zlib
from collections.abc import Container, Iterator
from functools import lru_cache
from typing import Final, NamedTuple

from msgspec import Struct, msgpack

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


class Reads(Struct, array_like=True, frozen=True):
    """FETCH requests of a log. The first four lists have an entry for each connection; the numbers are those of all reads, in order."""

    connections: list[int]  # checksums: what tells them apart
    clients: list[str]  # `client_key`
    positions: list[int]  # of its last line
    counts: list[int]  # of its reads
    origin: str
    base_ms: int
    partitions: list[str]
    ints: bytes  # 32 bits each: of all reads the places of partitions; the first times since `base_ms`; until the last ones; until the ends
    longs: bytes  # 64 bits each: of all reads the position; how far from there to the last one, and from that to the end

    def of_clients(self, wanted: Container[str]) -> Iterator[tuple[int, list[Read]]]:
        """The places of connections of these clients, and what was read on them."""
        begin, total = 0, sum(self.counts)
        ints, longs = memoryview(self.ints).cast("i"), memoryview(self.longs).cast("q")
        columns = [ints[place : place + total] for place in range(0, 4 * total, total)] if total else []
        columns += [longs[place : place + total] for place in range(0, 3 * total, total)] if total else []
        for place, (client, count) in enumerate(zip(self.clients, self.counts, strict=True)):
            if client in wanted:
                yield place, [self._read(*one) for one in zip(*(column[begin : begin + count] for column in columns), strict=True)]
            begin += count

    def _read(self, of: int, first: int, lasted: int, until_end: int, position: int, step: int, to_end: int) -> Read:
        first_ms, reached = self.base_ms + first, position + step
        last_ms, end = first_ms + lasted, reached + to_end
        return Read(self.partitions[of], first_ms, last_ms, -1 if end == NOT_TOLD else last_ms + until_end, position, reached, end)


def packed(reads: Reads) -> bytes:
    """The form in which every shard gets it. Each batch of a busy cluster has some 100,000 reads."""
    return zlib.compress(_ENCODER.encode(reads), 1)


@lru_cache(maxsize=64)
def unpacked(blob: bytes) -> Reads:
    """What `packed` made. Shards of one process get the same one after the other."""
    return _DECODER.decode(zlib.decompress(blob))


_ENCODER: Final = msgpack.Encoder()
_DECODER: Final = msgpack.Decoder(Reads)
