"""Groups at rest: those without members, of which nothing is due, and about which nothing was read for a minute.

A cluster may have a hundred times as many of them as of others, since tools make a group for every run and Kafka keeps it for a week. They
lie in buckets. A bucket is unpacked if an event names a group that may be in it; all others stay the bytes that they are.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Iterator
from typing import Final

from coordinator_model.specification.timers import NEVER
from coordinator_model.tracker import codec
from coordinator_model.tracker.codec import Bucket, KnownGroup, ShardState

REST_MS: Final = 60_000
_BUCKETS: Final = 64
"""Of a shard: so few groups are in one that it takes less time to unpack than a batch with one event of a group."""


class Resting:
    """The groups at rest of a shard, and how a group comes to rest and wakes up: it moves between buckets and the shard's table."""

    def __init__(self, state: ShardState) -> None:
        self._state = state
        self._open: dict[int, dict[str, KnownGroup]] = {}
        self._changed: set[int] = set()

    def __len__(self) -> int:
        """How many groups rest, since the state was encoded or decoded."""
        closed = (bucket.groups for number, bucket in self._state.resting.items() if number not in self._open)
        return sum(closed) + sum(map(len, self._open.values()))

    def wake(self, group_id: str) -> None:
        """Puts a group back into the shard's table, if it rests."""
        if self._state.known(group_id).view or not (self._state.resting or self._open):
            return
        number = _number(group_id)
        group = self._opened(number).pop(group_id, None)
        if group is not None:
            self._changed.add(number)
            self._state.groups[group_id] = group

    def wake_idle_before(self, at_ms: int) -> None:
        """Wakes the groups whose last event was before a time."""
        for number in [number for number, bucket in self._state.resting.items() if bucket.oldest_ms < at_ms]:
            for group_id in [group_id for group_id, group in self._opened(number).items() if group.idle_ms < at_ms]:
                self.wake(group_id)

    def of_partition(self, partition: int) -> Iterator[tuple[str, int]]:
        """The groups whose coordinator logged this partition of __consumer_offsets, and since when."""
        for number, bucket in self._state.resting.items():
            if partition in bucket.partitions:
                for group_id, group in self._opened(number).items():
                    if group.partition == partition and group.since_ms < NEVER:
                        yield group_id, group.since_ms

    def put_away(self, group_ids: Iterable[str]) -> None:
        """Lets groups rest, and packs the buckets that have changed."""
        state = self._state
        for group_id in group_ids:
            number = _number(group_id)
            group = self._opened(number)[group_id] = state.groups.pop(group_id)
            group.view = codec.plain_view(group.view)  # a bucket is compressed as a whole: its groups are much alike
            self._changed.add(number)
        for number in sorted(self._changed):
            groups = self._open[number]
            state.resting.pop(number, None)
            if groups:
                oldest_ms = min(group.idle_ms for group in groups.values())
                partitions = sorted({group.partition for group in groups.values()})
                state.resting[number] = Bucket(len(groups), oldest_ms, partitions, codec.pack_groups(groups))
        self._open.clear()
        self._changed.clear()

    def _opened(self, number: int) -> dict[str, KnownGroup]:
        if number not in self._open:
            bucket = self._state.resting.get(number)
            self._open[number] = {} if bucket is None else codec.unpack_groups(bucket.packed)
        return self._open[number]


def _number(group_id: str) -> int:
    return zlib.crc32(group_id.encode()) % _BUCKETS
