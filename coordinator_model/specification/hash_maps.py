"""The hash maps of Kafka's coordinators, with their iteration orders.

The order of members in a hash map decides which member succeeds a leader, which of two protocols with equal votes wins, who gets the odd
partition, in which order records are written, and in which order sessions start. Kafka does not specify it, but it is exact: it depends on
the keys, on the order of insertion, and on how large the map once was. Maps never shrink.

* `JavaHashMap`: java.util.HashMap. Buckets ascending; within a bucket, `put` appends and `compute` prepends. Doubles after an insert that
  exceeds 3/4.
* `TimelineHashMap`: org.apache.kafka.timeline.TimelineHashMap, which keeps the state of a consumer group. Buckets ascending; within a
  bucket, newest first. It can be reverted to its last commit.
* `MapOrder`: the order alone, for the map of a classic group's members, in Java or in
  * Scala 2.13: buckets ascending; within a bucket, by hash. Doubles before an insert that would reach 3/4.
  * Scala 2.11: buckets descending; within a bucket, newest first. Doubling moves the entries one by one in iteration order, so
    neighbours that stay in one bucket change places. This order cannot be computed from the keys, so `chained` keeps it.

Trees are not modelled: HashMap makes one of a bucket with more than 8 keys, which takes keys that were chosen for it.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from functools import lru_cache
from typing import Final, Generic, TypeVar

from coordinator_model.specification.config import HashMapKind
from coordinator_model.specification.consumer.topics import TopicId

K = TypeVar("K", str, int, TopicId)
V = TypeVar("V")

INITIAL_CAPACITY: Final = 16
_MASK: Final = 0xFFFFFFFF
_MASK_64: Final = 0xFFFFFFFFFFFFFFFF
_GOLDEN: Final = -7046029254386353131  # 2^64 divided by the golden ratio, signed: Fibonacci hashing


@lru_cache(maxsize=65_536)
def string_hash(text: str) -> int:
    """Java's `String.hashCode` as an unsigned 32 bit number. It is made of UTF-16 units, not of characters."""
    h = 0
    units = text.encode("utf-16-be", "surrogatepass")
    for high, low in zip(units[::2], units[1::2], strict=True):
        h = (31 * h + (high << 8 | low)) & _MASK
    return h


def java_hash(key: str | int | TopicId) -> int:
    """`hashCode` of a String, an Integer that is not negative, or a Uuid, as an unsigned 32 bit number."""
    if isinstance(key, str):
        return string_hash(key)
    if isinstance(key, int):
        return key
    both = (key.most_significant ^ key.least_significant) & _MASK_64
    return (both >> 32) ^ (both & _MASK)


def _spread(key: str | int | TopicId) -> int:
    """java.util.HashMap.hash, and Scala 2.13's improveHash."""
    h = java_hash(key)
    return h ^ (h >> 16)


def _signed(h: int) -> int:
    return h - (1 << 32) if h & 0x80000000 else h


def table_size_for(capacity: int) -> int:
    """`HashMap.tableSizeFor`: the smallest power of two that is not below `capacity`."""
    return 1 << (max(capacity, 1) - 1).bit_length()


def capacity_of_copy(size: int) -> int:
    """The capacity that `new HashMap(map)` asks for, to hold `size` keys without growing. Java up to 18."""
    return int(size / 0.75 + 1)


class JavaHashMap(Mapping[K, V]):
    """java.util.HashMap. Iteration gives the keys in Java's order."""

    __slots__ = ("_first", "_places", "capacity", "entries")

    def __init__(self, initial_capacity: int = INITIAL_CAPACITY) -> None:
        self.entries: dict[K, V] = {}
        self._places: dict[K, int] = {}
        """The keys that came to the head of their bucket, each with a lower number than the last. Others are in the order of `entries`."""
        self._first = 0
        self.capacity = table_size_for(initial_capacity)

    @classmethod
    def copy_of(cls, entries: Iterable[tuple[K, V]], size: int) -> JavaHashMap[K, V]:
        """`new HashMap(map)`, where the iteration of `map` gives `entries`."""
        made = cls(capacity_of_copy(size)) if size else cls()
        for key, value in entries:
            made.put(key, value)
        return made

    def __len__(self) -> int:
        return len(self.entries)

    def __getitem__(self, key: K) -> V:
        return self.entries[key]

    def __iter__(self) -> Iterator[K]:
        mask = self.capacity - 1
        return iter(sorted(self.entries, key=lambda key: (_spread(key) & mask, self._places.get(key, 0))))

    def put(self, key: K, value: V) -> None:
        """`put`: appends a new key to its bucket, and grows after that."""
        self.entries[key] = value
        self._grow()

    def compute(self, key: K, change: Callable[[V | None], V | None]) -> None:
        """`compute` and `computeIfAbsent`: grow before anything else, and put a new key at the head of its bucket."""
        self._grow()
        value = change(self.entries.get(key))
        if value is None:
            self.remove(key)
            return
        if key not in self.entries:
            self._first -= 1
            self._places[key] = self._first
        self.entries[key] = value

    def remove(self, key: K) -> None:
        """`remove`."""
        self.entries.pop(key, None)
        self._places.pop(key, None)

    def _grow(self) -> None:
        if len(self.entries) > 0.75 * self.capacity:
            self.capacity *= 2


def hash_set(elements: Iterable[K], initial_capacity: int = INITIAL_CAPACITY) -> JavaHashMap[K, bool]:
    """`new HashSet(initialCapacity)`, with `elements` added one by one."""
    made: JavaHashMap[K, bool] = JavaHashMap(initial_capacity)
    for element in elements:
        made.put(element, True)
    return made


def hash_set_of(elements: Iterable[K]) -> JavaHashMap[K, bool]:
    """`new HashSet(collection)`."""
    listed = list(elements)
    return hash_set(listed, max(capacity_of_copy(len(listed)), INITIAL_CAPACITY))


class _Table(Generic[K]):
    """`BaseHashTable`: which keys are in which bucket, oldest first."""

    __slots__ = ("buckets", "size")

    def __init__(self) -> None:
        self.buckets: list[list[K]] = [[], []]
        self.size = 0

    def bucket(self, key: K) -> list[K]:
        """The bucket of a key."""
        product = _signed(java_hash(key)) * _GOLDEN & _MASK_64
        return self.buckets[product >> (65 - len(self.buckets).bit_length())]

    def add(self, key: K) -> None:
        """`baseAddOrReplace`: grows before, also where the key is there already."""
        if (self.size + 1) * 0.75 > len(self.buckets):
            keys = [key for bucket in self.buckets for key in bucket]
            self.buckets = [[] for _ in range(2 * len(self.buckets))]
            for other in keys:
                self.bucket(other).append(other)
        bucket = self.bucket(key)
        if key not in bucket:
            bucket.append(key)
            self.size += 1

    def remove(self, key: K) -> None:
        """`baseRemove`."""
        self.bucket(key).remove(key)
        self.size -= 1


class TimelineHashMap(Mapping[K, V]):
    """A map that can be reverted to its last commit. Iteration gives the keys in Kafka's order.

    `SnapshottableHashTable`: a revert takes out what came since the commit, then puts back what was there, so that these keys may
    change places within their buckets. A table that has grown stays as it is.
    """

    __slots__ = ("_displaced", "_displaced_values", "_fresh", "_table", "_values")

    def __init__(self) -> None:
        self._table: _Table[K] = _Table()
        self._values: dict[K, V] = {}
        self._fresh: set[K] = set()
        self._displaced: _Table[K] | None = None
        self._displaced_values: dict[K, V] = {}

    def __len__(self) -> int:
        return len(self._values)

    def __getitem__(self, key: K) -> V:
        return self._values[key]

    def __iter__(self) -> Iterator[K]:
        return iter([key for bucket in self._table.buckets for key in reversed(bucket)])

    def put(self, key: K, value: V) -> None:
        """`put`."""
        self._displace(key)
        self._table.add(key)
        self._values[key] = value
        self._fresh.add(key)

    def remove(self, key: K) -> None:
        """`remove`."""
        if key in self._values:
            self._displace(key)
            self._table.remove(key)
            del self._values[key]

    def _displace(self, key: K) -> None:
        if key in self._values and key not in self._fresh:
            if self._displaced is None:
                self._displaced = _Table[K]()
            self._displaced.add(key)
            self._displaced_values[key] = self._values[key]

    def commit(self) -> None:
        """Keep what there is: it is in the log."""
        self._fresh.clear()
        self._displaced = None
        self._displaced_values = {}

    def revert(self) -> None:
        """Go back to the last commit (`executeRevert`): the log did not take the records."""
        for key in list(self):
            if key in self._fresh:
                self._table.remove(key)
                del self._values[key]
        if self._displaced is not None:
            for bucket in self._displaced.buckets:
                for key in bucket:
                    self._table.add(key)
                    self._values[key] = self._displaced_values[key]
        self.commit()

    def copy(self) -> TimelineHashMap[K, V]:
        """An independent map with the same entries, committed."""
        return TimelineHashMap.restored(len(self._table.buckets), self.stored())

    def capacity(self) -> int:
        """The number of buckets."""
        return len(self._table.buckets)

    def stored(self) -> list[tuple[K, V]]:
        """Keys and values, each bucket oldest first: with `capacity`, all that there is to know."""
        return [(key, self._values[key]) for bucket in self._table.buckets for key in bucket]

    @classmethod
    def restored(cls, capacity: int, entries: Iterable[tuple[K, V]]) -> TimelineHashMap[K, V]:
        """The map of which `capacity` and `stored` were taken."""
        made: TimelineHashMap[K, V] = cls()
        made._table.buckets = [[] for _ in range(capacity)]
        for key, value in entries:
            made._table.bucket(key).append(key)
            made._table.size += 1
            made._values[key] = value
        return made


@lru_cache(maxsize=65_536)
def _improve_2_11(text: str) -> int:
    """scala.collection.mutable.HashTable.improve of Scala 2.11: byteswap32, then a rotation."""
    x = (string_hash(text) * 0x9E3775CD) & _MASK
    x = int.from_bytes(x.to_bytes(4, "little"), "big")
    x = (x * 0x9E3775CD) & _MASK
    return ((x >> 4) | (x << 28)) & _MASK


def _improve_immutable(text: str) -> int:
    """scala.collection.Hashing.improve of Scala 2.13's immutable maps."""
    h = string_hash(text)
    a = (h + ~(h << 9)) & _MASK
    b = a ^ (a >> 14)
    c = (b + (b << 4)) & _MASK
    return c ^ (c >> 10)


class MapOrder:
    """The iteration order of one hash map. The owner reports every insert and removal."""

    __slots__ = ("capacity", "chained", "kind")

    def __init__(self, kind: HashMapKind, capacity: int = INITIAL_CAPACITY, chained: Iterable[str] = ()) -> None:
        self.kind = kind
        self.capacity = capacity
        self.chained = list(chained)
        """Scala 2.11 only: the keys in iteration order."""

    def copy(self) -> MapOrder:
        """An independent copy."""
        return MapOrder(self.kind, self.capacity, self.chained)

    def added(self, key: str, size: int) -> None:
        """`key` was inserted. `size` includes it."""
        if self.kind is HashMapKind.JAVA:
            if size > 0.75 * self.capacity:
                self.capacity *= 2
        elif self.kind is HashMapKind.SCALA_2_13:
            if size >= 0.75 * self.capacity:
                self.capacity *= 2
        else:
            self._chain(self.chained, key)
            if size > 0.75 * self.capacity:
                self.capacity *= 2
                moved: list[str] = []
                for other in self.chained:
                    self._chain(moved, other)
                self.chained = moved

    def removed(self, key: str) -> None:
        """`key` was removed."""
        if self.kind is HashMapKind.SCALA_2_11:
            self.chained.remove(key)

    def keys(self, keys: Collection[str]) -> list[str]:
        """`keys`, which are in the order of insertion, in the order of iteration."""
        mask = self.capacity - 1
        if self.kind is HashMapKind.JAVA:
            return sorted(keys, key=lambda key: _spread(key) & mask)
        if self.kind is HashMapKind.SCALA_2_13:
            return sorted(keys, key=lambda key: (_spread(key) & mask, _signed(_spread(key))))
        return list(self.chained)

    def first(self, keys: Collection[str]) -> str | None:
        """The first key of the iteration; None if the map is empty."""
        return next(iter(self.keys(keys)), None)

    def _chain(self, chained: list[str], key: str) -> None:
        """Put `key` in front of its bucket."""
        at = bisect_left(chained, -self._bucket_2_11(key), key=lambda other: -self._bucket_2_11(other))
        chained.insert(at, key)

    def _bucket_2_11(self, key: str) -> int:
        return _improve_2_11(key) >> (33 - self.capacity.bit_length())


def first_of_most(votes: dict[str, int], kind: HashMapKind) -> str:
    """The name with the most votes; of equals, the first in the iteration order. `votes` is in the order of casting."""
    if kind is HashMapKind.SCALA_2_13:
        names = _trie_order(votes)
    else:
        order = MapOrder(kind)
        for size, name in enumerate(votes, start=1):
            order.added(name, size)
        names = order.keys(votes)
    return max(names, key=votes.__getitem__)


def _trie_order(names: Iterable[str], shift: int = 0) -> list[str]:
    """scala.collection.immutable.HashMap of 2.13: five bits of the hash for each level; a node's keys before its child nodes."""
    nodes: dict[int, list[str]] = {}
    for name in names:
        nodes.setdefault(_improve_immutable(name) >> shift & 31, []).append(name)
    own, below = [], []
    for _, node in sorted(nodes.items()):
        if len(node) == 1:
            own += node
        else:
            below += _trie_order(node, shift + 5) if shift < 30 else node
    return own + below
