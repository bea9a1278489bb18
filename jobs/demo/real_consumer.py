"""What all kinds of real consumers share."""

from __future__ import annotations

from typing import Final

LIBRDKAFKA: Final = "librdkafka"
JAVA: Final = "java"
CLASSIC: Final = "classic"
CONSUMER: Final = "consumer"
"""Values of group.protocol (KIP-848)."""
POLL_SECONDS: Final = 0.1


class ConsumerFailedError(Exception):
    """The consumer cannot continue: it was fenced, or it did not start."""
