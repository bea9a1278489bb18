"""The iteration order of Java's and Scala's hash maps.

A coordinator keeps its members in a hash map. Its iteration order decides which member succeeds a leader, which of two protocols
with equal votes wins, and in which order sessions start. Kafka does not specify this order, but it is exact: it depends on the
keys, on the order of insertion, and on how large the map once was.

* Java: buckets ascending; within a bucket, insertion order. Doubles after an insert that exceeds 3/4.
* Scala 2.13: buckets ascending; within a bucket, by hash. Doubles before an insert that would reach 3/4.
* Scala 2.11: buckets descending; within a bucket, newest first. Doubling moves the entries one by one in iteration order, so
  neighbours that stay in one bucket change places. This order cannot be computed from the keys, so `chained` keeps it.

Maps never shrink.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Collection, Iterable
from functools import lru_cache
from typing import Final

from coordinator_model.specification.config import HashMapKind

INITIAL_CAPACITY: Final = 16
_MASK: Final = 0xFFFFFFFF


@lru_cache(maxsize=65_536)
def string_hash(text: str) -> int:
    """Java's `String.hashCode` as an unsigned 32 bit number. It is made of UTF-16 units, not of characters."""
    h = 0
    units = text.encode("utf-16-be", "surrogatepass")
    for high, low in zip(units[::2], units[1::2], strict=True):
        h = (31 * h + (high << 8 | low)) & _MASK
    return h


def _spread(text: str) -> int:
    """java.util.HashMap.hash, and Scala 2.13's improveHash."""
    h = string_hash(text)
    return h ^ (h >> 16)


def _signed(h: int) -> int:
    return h - (1 << 32) if h & 0x80000000 else h


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
