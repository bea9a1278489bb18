"""A consumer of librdkafka, through confluent-kafka."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence

from confluent_kafka import Consumer, KafkaError, Message, TopicPartition

from jobs.demo.consumers import POLL_SECONDS, ConsumerFailedError


class LibrdkafkaConsumer:
    """A consumer that has subscribed to its topic."""

    def __init__(self, topic: str, config: Mapping[str, str], *, revocation_seconds: float = 0) -> None:
        """`revocation_seconds`: how long its rebalance listener takes before it gives partitions up."""
        self._revocation_seconds = revocation_seconds
        self._fatal: KafkaError | None = None
        self._consumer = Consumer({**config, "error_cb": self._on_error})
        self.subscribe(topic)

    def poll(self) -> Message | None:
        """Polls for POLL_SECONDS; the record that came, if one did. ConsumerFailedError: it cannot continue."""
        message = self._consumer.poll(POLL_SECONDS)
        error = message.error() if message is not None else None
        if error is not None:
            self._on_error(error)
        if self._fatal is not None:
            raise ConsumerFailedError(self._fatal.str())
        return message if error is None else None

    def assigned(self) -> int:
        """How many partitions it has."""
        return len(self._consumer.assignment())

    def subscribe(self, *topics: str) -> None:
        """Subscribes to these topics, in the place of the former ones. One that begins with ^ is a regular expression."""
        self._consumer.subscribe(list(topics), on_revoke=self._on_revoke)

    def close(self) -> None:
        """Leaves the group, unless the member is static."""
        self._consumer.close()

    def _on_revoke(self, _consumer: Consumer, _partitions: Sequence[TopicPartition]) -> None:
        time.sleep(self._revocation_seconds)

    def _on_error(self, error: KafkaError) -> None:
        if error.fatal() or error.code() == KafkaError._FATAL:  # noqa: SLF001 - the name of a public code
            self._fatal = error
