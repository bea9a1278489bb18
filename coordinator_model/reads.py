"""What connections read, as FETCH requests tell it, of one log and column by column: the tracker gets it instead of events.

FETCH names no group. Whose it is only the shard knows that has a group with a member of this client id and host, so every shard gets all.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

OUT_OF_RANGE: Final = -2
"""In the place of an end: the position was none of the log (Errors.OFFSET_OUT_OF_RANGE)."""
SECOND_MS: Final = 1_000


def client_key(client_id: str, client_host: str) -> str:
    """How a client is known that names no group; empty if it is not."""
    return f"{client_id}\0{client_host}" if client_id and client_host else ""


class Read(NamedTuple):
    """What a connection read of a partition in a second. -1: not told."""

    at_ms: int  # the second
    partition: str  # with its topic, or the id of that
    position: int  # the lowest from which it read on
    reached: int  # the highest
    end: int  # of the log, as an answer told last
    end_ms: int  # ... when


class Reads(NamedTuple):
    """FETCH requests. The first four lists have an entry for each connection, the last five for each second and partition that it read."""

    origin: str
    connections: list[str]
    clients: list[str]  # `client_key`
    positions: list[int]  # of its last line
    counts: list[int]
    partitions: list[str]
    of: list[int]  # an index of `partitions`
    seconds: list[int]  # since 1970
    lowest: list[int]
    highest: list[int]
    ends: list[tuple[int, int]]  # the end, and how many ms after the second it was told

    def by_connection(self) -> Iterator[tuple[int, slice]]:
        """The place of each connection, and those of its reads."""
        begin = 0
        for place, count in enumerate(self.counts):
            yield place, slice(begin, begin + count)
            begin += count

    def of_connection(self, places: slice) -> Sequence[Read]:
        """Some of the reads."""
        columns = (self.seconds, self.of, self.lowest, self.highest, self.ends)
        return [
            Read(second * SECOND_MS, self.partitions[of], lowest, highest, end, second * SECOND_MS + after_ms)
            for second, of, lowest, highest, (end, after_ms) in zip(*(column[places] for column in columns), strict=True)
        ]
