"""What FETCH, LIST_OFFSETS and WRITE_TXN_MARKERS tell, of one log and column by column: the tracker gets it instead of events.

They name no group. Whose a FETCH is only the shard knows that has a group with a member of this client id and host, and the end of a log
concerns all groups that read it. So every shard can look into all, and takes what it can use.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate, repeat
from typing import Any, Final, NamedTuple

from coordinator_model.events import REQUEST_SOURCE
from coordinator_model.view.rows import Ref

NOT_TOLD: Final = -1
OUT_OF_RANGE: Final = -2
"""In the place of an end: the position was none of the log (Errors.OFFSET_OUT_OF_RANGE)."""
END_ALONE: Final = 1
"""A kind of read."""
SPAN_MS: Final = 5_000
"""What is read is told by spans of time, each a multiple of this."""
PAUSE_MS: Final = 2_000
"""A client asks for records at least so often, while it has a partition in which records come: fetch.max.wait.ms is half a second."""


def client_key(client_id: str, client_host: str) -> str:
    """How a client is known that names no group; empty if it is not."""
    return f"{client_id}\0{client_host}" if client_id and client_host else ""


def span_of(at_ms: Any) -> Any:
    """When the span of a time, or of an array of times, begins."""
    return at_ms - at_ms % SPAN_MS


def kind_of(position: Any, end: Any) -> Any:
    """0: the position is none of the log. END_ALONE: no position is told. 2: where it reads. Of numbers, or of arrays of them."""
    return (end != OUT_OF_RANGE) * (END_ALONE + (position != NOT_TOLD))


class Read(NamedTuple):
    """What a connection read of a partition in a span, without going back. -1: not told. Their order is that in which they are judged."""

    at_ms: int  # `span_of` the first time
    connection: int  # a checksum: what tells connections apart
    kind: int  # `kind_of`
    partition: str  # with its topic, or the id of that
    first_ms: int
    position: int  # from where it read on first
    last_ms: int
    reached: int  # ... and last
    end_ms: int  # when `end` was told
    end: int  # of the log, as an answer told last
    transactions: int  # 1: an answer showed a transaction, or one has ended
    asked_ms: int  # when the last request arrived: an answer is also sent to a client that died meanwhile
    previous: int  # the position in the request before the last one, if that is of the span, too
    stable: int  # the last stable offset, told with the end or in its place
    client: str  # `client_key`; of LIST_OFFSETS: the partition
    sign: Ref  # a request at the end

    def follows(self, last_ms: int, reached: int) -> bool:
        """Whether it goes on where the connection was. After a pause it may be the partition's owner once more, and others between."""
        return self.position == reached or (self.position > reached and self.first_ms - last_ms <= PAUSE_MS)

    def goes_on(self, later: Read) -> bool:
        """Whether the next one in order is of the same connection and span, without going back."""
        return self[:4] == later[:4] and later.follows(self.last_ms, self.reached)

    def and_then(self, later: Read) -> Read:
        """This, and what goes on."""
        end_ms, end, stable = max((self.end_ms, self.end, self.stable), (later.end_ms, later.end, later.stable))
        previous = self.reached if later.previous == NOT_TOLD else later.previous
        whole = later._replace(first_ms=self.first_ms, position=self.position, end_ms=end_ms, end=end, previous=previous)
        return whole._replace(stable=stable, sign=max(self.sign, later.sign))


class End(NamedTuple):
    """How long the log of a partition was, as an answer tells."""

    at_ms: int
    end: int
    sign: Ref
    partition: str
    transactions: int = 0  # as of Read
    stable: int = NOT_TOLD


@dataclass(frozen=True)
class Reads:
    """What requests of a log tell, column by column: FETCH by connection, the ends in LIST_OFFSETS one by one."""

    origin: str
    connections: list[int]  # of each part: a checksum
    keys: list[str]  # whom it concerns: the client (`client_key`), or all that read a partition
    positions: list[int]  # of its last line
    counts: list[int]  # of its reads
    partitions: list[str]
    numbers: Sequence[Sequence[int]]
    """Columns of all reads: `at_ms` of Read, `kind`, a place in `partitions`, `first_ms` and so on to `stable`."""

    def of(self, wanted: Iterable[str]) -> Iterator[tuple[str, list[Read]]]:
        """Each part that concerns one of these, and whom."""
        for place in sorted(place for key in wanted for place in self._places.get(key, ())):
            key, end = self.keys[place], self._ends[place]
            sign = Ref(REQUEST_SOURCE, self.origin, self.positions[place])
            ats, kinds, of, *rest = (column[end - self.counts[place] : end] for column in self.numbers)
            names = map(self.partitions.__getitem__, of)
            yield key, [*map(Read, ats, repeat(self.connections[place]), kinds, names, *rest, repeat(key), repeat(sign))]

    @cached_property
    def _places(self) -> dict[str, list[int]]:
        places: dict[str, list[int]] = {}
        for place, key in enumerate(self.keys):
            places.setdefault(key, []).append(place)
        return places

    @cached_property
    def _ends(self) -> list[int]:
        return [*accumulate(self.counts)]
