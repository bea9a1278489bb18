"""A consumer of librdkafka that reads, writes and commits in transactions: exactly once."""

from __future__ import annotations

import contextlib

from confluent_kafka import KafkaException, Producer

from jobs.demo.consumers import ConsumerFailedError
from tests.lab.reading_consumers import ReadingLibrdkafka

OUTPUT_SUFFIX = "-out"
"""A record that it reads from `orders` it writes to `orders-out`."""
_SECONDS = 30.0


class TransactionalConsumer(ReadingLibrdkafka):
    """Its transactional.id is its client id. A commit ends a transaction, and so does a rebalance."""

    def __init__(self, topic, config, **habits):
        name = {"bootstrap.servers": config["bootstrap.servers"], "client.id": f"{config['client.id']}-producer"}
        self._producer = Producer({**name, "transactional.id": config["client.id"]})
        self._producer.init_transactions(_SECONDS)
        self._open = False
        self._read = {}
        super().__init__(topic, {**config, "enable.auto.commit": "false", "isolation.level": "read_committed"}, **habits)

    def records(self, message):
        """What a poll returned; it writes that."""
        records = super().records(message)
        for place, offset in records:
            if not self._open:
                self._producer.begin_transaction()
                self._open = True
            self._producer.produce(f"{place.topic}{OUTPUT_SUFFIX}", partition=place.partition, value=str(offset).encode())
            self._read[place] = offset + 1
        return records

    def commit_positions(self, positions):
        """Ends the transaction. ConsumerFailedError: it was aborted, and what was read has to be read again."""
        self._end({place: offset for place, offset in positions.items() if place in self._read})

    def _end(self, positions):
        if not self._open:
            return
        self._open = False
        self._read.clear()
        offsets = [self.part(*one) for one in positions.items()]
        try:
            self._producer.send_offsets_to_transaction(offsets, self._consumer.consumer_group_metadata(), _SECONDS)
            self._producer.commit_transaction(_SECONDS)
        except KafkaException as error:
            with contextlib.suppress(KafkaException):
                self._producer.abort_transaction(_SECONDS)
            raise ConsumerFailedError(error.args[0].name()) from None

    def _on_revoke(self, consumer, partitions):
        with contextlib.suppress(ConsumerFailedError):  # they belong to another consumer by now, which reads it again
            self._end(dict(self._read))
        super()._on_revoke(consumer, partitions)
