"""Reads a topic of log lines from its beginning to where it ends now: what `rebalance ship` wrote."""

from __future__ import annotations

from collections.abc import Iterator

from confluent_kafka import Consumer, KafkaError, KafkaException, Message, TopicPartition

from jobs.kafka.topic_records import TopicRecord, read_record


def topic_records(bootstrap: str, topic: str) -> Iterator[tuple[Message, TopicRecord]]:
    """All records, each partition in its order. KafkaException: the topic cannot be read; RecordError: a record is no shipper's."""
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": "reader", "enable.partition.eof": True, "enable.auto.commit": False})
    try:
        left = set(consumer.list_topics(topic, timeout=20).topics[topic].partitions)
        consumer.assign([TopicPartition(topic, number, 0) for number in left])
        while left:
            for message in consumer.consume(1_000, 5):
                error = message.error()
                if error is None:
                    yield message, read_record(message.headers(), message.value())
                elif error.code() == KafkaError._PARTITION_EOF:
                    left.discard(message.partition())
                else:
                    raise KafkaException(error)
    finally:
        consumer.close()
