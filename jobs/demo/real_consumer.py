"""The interface that all kinds of real consumers have."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple, Protocol

LIBRDKAFKA: Final = "librdkafka"
JAVA: Final = "java"
CLASSIC: Final = "classic"
CONSUMER: Final = "consumer"
"""Values of group.protocol (KIP-848)."""
EXPRESSION: Final = "^"
"""A subscription that begins with it is a regular expression, as for librdkafka."""
POLL_SECONDS: Final = 0.1


class Place(NamedTuple):
    """A partition of a topic."""

    topic: str
    partition: int


class Record(NamedTuple):
    """Where a record is."""

    place: Place
    offset: int


@dataclass(frozen=True)
class Habits:
    """What an application does besides polling."""

    revocation_seconds: float = 0
    """How long its rebalance listener takes before it gives partitions up."""
    commit_every: int = 0
    """It commits by itself after so many records; 0: never."""
    record_seconds: float = 0
    """How long it takes to process a record."""
    processed: str = ""
    """The file to which it adds a line for each record that it processes; empty: none."""


class ConsumerFailedError(Exception):
    """The consumer cannot continue: it was fenced, or it did not start."""


class CommitRefusedError(Exception):
    """The coordinator did not accept a commit."""


class RealConsumer(Protocol):
    """One consumer that has subscribed to its topic, or to none if its name is empty."""

    def poll(self) -> Sequence[Record]:
        """Polls for POLL_SECONDS; returns what it got. ConsumerFailedError: it cannot continue."""

    def assigned(self) -> int:
        """How many partitions it has."""

    def places(self) -> list[Place]:
        """Its partitions."""

    def subscribe(self, topics: Sequence[str]) -> None:
        """Subscribes to these topics, or to one regular expression, in the place of the former ones."""

    def pause(self, places: Sequence[Place]) -> None:
        """Reads no longer from these of its partitions, which it keeps."""

    def resume(self, places: Sequence[Place]) -> None:
        """Reads from them again."""

    def commit(self, positions: Mapping[Place, int]) -> None:
        """Commits these offsets, those of the next records to read. CommitRefusedError: the coordinator did not accept them."""

    def close(self) -> None:
        """Leaves the group, unless the member is static."""
