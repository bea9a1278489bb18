"""A consumer of librdkafka, by way of confluent-kafka."""

from __future__ import annotations

from collections.abc import Mapping

from confluent_kafka import Consumer, KafkaError, KafkaException, TopicPartition

from jobs.demo.client import POLL_SECONDS, FailedError, RefusedError


class LibrdkafkaClient:
    """See Client in client.py."""

    def __init__(self, topic: str, config: Mapping[str, str]) -> None:
        self._fatal: KafkaError | None = None
        self._consumer = Consumer({**config, "error_cb": self._failed})
        self._consumer.subscribe([topic])

    def poll(self) -> None:
        """Asks for records."""
        message = self._consumer.poll(POLL_SECONDS)
        error = message.error() if message is not None else None
        if error is not None:
            self._failed(error)
        if self._fatal is not None:
            raise FailedError(self._fatal.str())

    def assigned(self) -> int:
        """Partitions that it has now."""
        return len(self._consumer.assignment())

    def commit(self) -> None:
        """Commits."""
        beginnings = [TopicPartition(part.topic, part.partition, 0) for part in self._consumer.assignment()]
        try:
            self._consumer.commit(offsets=beginnings, asynchronous=False)
        except KafkaException as error:
            raise RefusedError(error.args[0].name()) from None

    def close(self) -> None:
        """Leaves."""
        self._consumer.close()

    def _failed(self, error: KafkaError) -> None:
        if error.fatal() or error.code() == KafkaError._FATAL:  # noqa: SLF001 - so it is called
            self._fatal = error
