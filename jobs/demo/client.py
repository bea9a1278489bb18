"""What the kinds of real consumers have in common."""

from __future__ import annotations

from typing import Final, Protocol

LIBRDKAFKA: Final = "librdkafka"
JAVA: Final = "java"
POLL_SECONDS: Final = 0.1


class FailedError(Exception):
    """The consumer is of no use any more: it was fenced, or never came to life."""


class RefusedError(Exception):
    """The coordinator did not take a commit."""


class Client(Protocol):
    """One consumer that has subscribed to its topic."""

    def poll(self) -> None:
        """Asks for records, for POLL_SECONDS. FailedError: it cannot go on."""

    def assigned(self) -> int:
        """Partitions that it has now."""

    def commit(self) -> None:
        """Commits the beginning of each of its partitions. RefusedError: it may not."""

    def close(self) -> None:
        """Leaves the group, unless the member is static."""
