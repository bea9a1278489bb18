"""A consumer of librdkafka, through confluent-kafka."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence

from confluent_kafka import Consumer, KafkaError, KafkaException, TopicPartition

from jobs.demo.real_consumer import POLL_SECONDS, CommitRefusedError, ConsumerFailedError, Place, Record


class LibrdkafkaConsumer:
    """A consumer that has subscribed to its topic, or to none if its name is empty."""

    def __init__(self, topic: str, config: Mapping[str, str], revocation_seconds: float) -> None:
        self._revocation_seconds = revocation_seconds
        self._fatal: KafkaError | None = None
        self._consumer = Consumer({**config, "error_cb": self._on_error})
        if topic:
            self.subscribe([topic])

    def poll(self) -> list[Record]:
        """Polls for POLL_SECONDS. ConsumerFailedError: it cannot continue."""
        message = self._consumer.poll(POLL_SECONDS)
        error = message.error() if message is not None else None
        if error is not None:
            self._on_error(error)
        if self._fatal is not None:
            raise ConsumerFailedError(self._fatal.str())
        if message is None or error is not None:
            return []
        return [Record(Place(message.topic() or "", message.partition() or 0), message.offset() or 0)]  # they have all three

    def assigned(self) -> int:
        """How many partitions it has."""
        return len(self._consumer.assignment())

    def places(self) -> list[Place]:
        """Its partitions."""
        return [Place(part.topic, part.partition) for part in self._consumer.assignment()]

    def subscribe(self, topics: Sequence[str]) -> None:
        """Subscribes to these topics, or to one regular expression, in the place of the former ones."""
        self._consumer.subscribe(list(topics), on_revoke=self._on_revoke)

    def pause(self, places: Sequence[Place]) -> None:
        """Reads no longer from these of its partitions, which it keeps."""
        self._consumer.pause([TopicPartition(*place) for place in places])

    def resume(self, places: Sequence[Place]) -> None:
        """Reads from them again."""
        self._consumer.resume([TopicPartition(*place) for place in places])

    def commit(self, positions: Mapping[Place, int]) -> None:
        """Commits these offsets, those of the next records to read. CommitRefusedError: the coordinator did not accept them."""
        try:
            self._consumer.commit(offsets=with_offsets(positions), asynchronous=False)
        except KafkaException as error:
            raise CommitRefusedError(error.args[0].name()) from None

    def close(self) -> None:
        """Leaves the group, unless the member is static."""
        self._consumer.close()

    def _on_revoke(self, _consumer: Consumer, _partitions: Sequence[TopicPartition]) -> None:
        time.sleep(self._revocation_seconds)

    def _on_error(self, error: KafkaError) -> None:
        if error.fatal() or error.code() == KafkaError._FATAL:  # noqa: SLF001 - the name of a public code
            self._fatal = error


def with_offsets(positions: Mapping[Place, int]) -> list[TopicPartition]:
    """Positions as the client wants them."""
    return [TopicPartition(place.topic, place.partition, offset) for place, offset in positions.items()]
