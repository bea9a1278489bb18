"""The interface that both kinds of real consumers have."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, Protocol

LIBRDKAFKA: Final = "librdkafka"
JAVA: Final = "java"
CLASSIC: Final = "classic"
CONSUMER: Final = "consumer"
"""Values of group.protocol (KIP-848)."""
EXPRESSION: Final = "^"
"""A subscription that begins with it is a regular expression, as for librdkafka."""
POLL_SECONDS: Final = 0.1


class ConsumerFailedError(Exception):
    """The consumer cannot continue: it was fenced, or it did not start."""


class CommitRefusedError(Exception):
    """The coordinator did not accept a commit."""


class RealConsumer(Protocol):
    """One consumer that has subscribed to its topic, or to none if its name is empty."""

    def poll(self) -> None:
        """Polls for POLL_SECONDS. ConsumerFailedError: it cannot continue."""

    def assigned(self) -> int:
        """How many partitions it has."""

    def subscribe(self, topics: Sequence[str]) -> None:
        """Subscribes to these topics, or to one regular expression, in the place of the former ones."""

    def commit(self) -> None:
        """Commits offset 0 of each of its partitions. CommitRefusedError: the coordinator did not accept it."""

    def close(self) -> None:
        """Leaves the group, unless the member is static."""
