"""What all kinds of real consumers share."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, NamedTuple

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
    notes: bool = False
    """It notes each record that it processes."""


class ConsumerFailedError(Exception):
    """The consumer cannot continue: it was fenced, or it did not start."""


class CommitRefusedError(Exception):
    """The coordinator did not accept a commit."""
