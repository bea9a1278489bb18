"""Partitions of `__consumer_offsets` that move from broker to broker, as before a broker is restarted: one after the other."""

from __future__ import annotations

from typing import Final, NamedTuple

from coordinator_model.events import COORDINATOR_ELECTED, COORDINATOR_RESIGNED
from jobs.generate.book import Book

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

    def __init__(self, book: Book) -> None:
        self._book = book
        self._brokers = len(book.requests)
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

    def write(self, move: Move, at_ms: int) -> int:
        """Write what both brokers say about a move; when its groups leave the old one."""
        self._epochs[move.partition] += 1
        for time_ms, broker, kind in ((at_ms, move.source, COORDINATOR_RESIGNED), (at_ms + 1, move.target, COORDINATOR_ELECTED)):
            words = self._book.words
            self._book.say(time_ms, broker, words.line(broker, words.moved(kind, move.partition, self._epochs[move.partition])))
        return at_ms + 1
