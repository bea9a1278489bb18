"""Partitions of `__consumer_offsets` that move from broker to broker, as before a broker is restarted: one after the other."""

from __future__ import annotations

from typing import Final, NamedTuple

from jobs.generate.sentences import Words
from jobs.generate.site import Site

PARTITIONS: Final = 50
_FIRST_MS: Final = 45_000
_EVERY_MS: Final = 300_000
_APART_MS: Final = 1_500


class Move(NamedTuple):
    """A partition moves."""

    partition: int
    source: int
    target: int
    away_ms: int
    """From the end at its old broker to the beginning at its new one."""


class Moves:
    """Which broker leads which partition, and when that changes: every five minutes a broker gives up all that it has."""

    def __init__(self, site: Site, words: Words) -> None:
        self._site = site
        self._words = words
        self._brokers = len(site.book.requests)
        self._leaders = [partition % self._brokers for partition in range(PARTITIONS)]
        self._epochs = [0] * PARTITIONS
        self._next_ms = _FIRST_MS
        self._round = 0
        self._waiting: list[int] = []

    def due(self, now_ms: int) -> Move | None:
        """The partition that moves now."""
        if self._brokers == 1 or now_ms < self._next_ms:
            return None
        source = self._round % self._brokers
        if not self._waiting:
            self._waiting = [partition for partition, leader in enumerate(self._leaders) if leader == source]
        partition = self._waiting.pop()
        self._next_ms = now_ms + _APART_MS
        if not self._waiting:
            self._round += 1
            self._next_ms = _FIRST_MS + self._round * _EVERY_MS
        target = (source + 1 + partition % (self._brokers - 1)) % self._brokers
        self._leaders[partition] = target
        return Move(partition, source, target, 60 + partition)

    def write(self, move: Move, at_ms: int, groups: int) -> int:
        """Write what both brokers say about a move; when its groups leave the old one."""
        self._epochs[move.partition] += 1
        values = {
            "partition": move.partition,
            "offsets": f"__consumer_offsets-{move.partition}",
            "epoch": self._epochs[move.partition],
            "took": move.away_ms,
            "groups": groups,
            "count": groups,
            "bytes": groups * 900,
        }
        left_ms, there_ms = at_ms + 1, at_ms + 1 + move.away_ms
        for broker, times, lines in (
            (move.source, (at_ms, left_ms + 1), self._words.gives_up),
            (move.target, (at_ms + 1, there_ms + 1), self._words.takes_over),
        ):
            for time_ms, line in zip(times, lines, strict=True):
                self._site.book.put(time_ms, self._site.book.sayings[broker], f" {line.format_map(values | {'broker': broker + 1})}\n")
        return left_ms
