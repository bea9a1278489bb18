"""Consumers that note each record that they process: of librdkafka, of Java and of kafka-python. Their scenes are in cost_scenes.py.

They write `read TIME PARTITION OFFSET`, the time in epoch ms, when a record is processed. One whose `fails_at` is an offset of its first
partition fails on that record, and goes back to it, as frameworks do.
"""

import time
from typing import ClassVar

from confluent_kafka import OFFSET_STORED, TopicPartition

from jobs.demo.consumers import JAVA, LIBRDKAFKA, POLL_SECONDS, Consumers
from jobs.demo.java_consumer import JavaConsumer
from jobs.demo.librdkafka_consumer import LibrdkafkaConsumer
from jobs.demo.worker import report

PYTHON = "python"


class _Reading:
    """What all clients do alike. `numbers`: those of the partitions that it takes by assign(); none: it subscribes."""

    def __init__(self, topic, config, *, settings=(), numbers=(), fails_at=-1, commit_seconds=0):
        """`settings`: more of the client. `commit_seconds`: so often it commits by itself; 0: the client does."""
        self._topic, self._numbers, self._fails_at, self._commit_seconds = topic, numbers, fails_at, commit_seconds
        self._record_seconds, self._committed, self._next = 0, time.monotonic(), {}
        super().__init__(topic, {**config, **dict(settings)})

    def subscribe(self, topic):
        """Subscribes to its topic, or takes partitions of it."""
        if self._numbers:
            self._consumer.assign([self.part(number) for number in self._numbers])
        else:
            super().subscribe(topic)

    def poll(self):
        """Polls, and processes what comes, until a record fails."""
        records = self.records(super().poll())
        for place, (number, offset) in enumerate(records):
            if (number, offset) == (0, self._fails_at):
                time.sleep(POLL_SECONDS)
                for again, first in reversed(records[place:]):
                    self.seek(again, first)
                break
            time.sleep(self._record_seconds)
            report(f"read {time.time_ns() // 1_000_000} {number} {offset}")
            self._next[number] = offset + 1
        if self._commit_seconds and self._next and time.monotonic() > self._committed + self._commit_seconds:
            self.commit(self._next)
            self._committed, self._next = time.monotonic(), {}

    def slow(self, seconds):
        """Takes so long for each record from now on."""
        self._record_seconds = seconds

    def skip(self):
        """Fails no more."""
        self._fails_at = -1

    def pause(self, number):
        """Keeps a partition, and reads no longer from it."""
        self._consumer.pause(*self.parts(number))

    def resume(self, number):
        """Reads from it again."""
        self._consumer.resume(*self.parts(number))

    def parts(self, number):
        """One of its partitions, as the client wants several."""
        return ([self.part(number)],)


class ReadingLibrdkafka(_Reading, LibrdkafkaConsumer):
    """With librdkafka. A poll returns one record."""

    def part(self, number, offset=OFFSET_STORED):
        return TopicPartition(self._topic, number, offset)

    def records(self, message):
        """Partition and offset of what came."""
        return [(message.partition(), message.offset())] if message is not None else []

    def seek(self, number, offset):
        self._consumer.seek(self.part(number, offset))

    def commit(self, offsets):
        self._consumer.commit(offsets=[self.part(*one) for one in offsets.items()], asynchronous=False)


class ReadingJava(_Reading, JavaConsumer):
    """With the Java client."""

    def __init__(self, topic, config, **habits):
        self._bootstrap = config["bootstrap.servers"]
        super().__init__(topic, config, **habits)

    def part(self, number):
        return self._gateway.jvm.org.apache.kafka.common.TopicPartition(self._topic, number)

    def records(self, polled):
        parts = polled.partitions() if polled is not None and not polled.isEmpty() else ()
        return [(part.partition(), one.offset()) for part in parts for one in polled.records(part)]

    def seek(self, number, offset):
        self._consumer.seek(self.part(number), offset)

    def commit(self, offsets):
        place = self._gateway.jvm.org.apache.kafka.clients.consumer.OffsetAndMetadata
        self._consumer.commitSync({self.part(number): place(offset) for number, offset in offsets.items()})

    def delete_offset(self, group, number):
        """Deletes the committed offset of a partition, as kafka-consumer-groups --delete-offsets does."""
        jvm, properties = self._gateway.jvm, self._gateway.jvm.java.util.Properties()
        properties.setProperty("bootstrap.servers", self._bootstrap)
        admin = jvm.org.apache.kafka.clients.admin.Admin.create(properties)
        gone = jvm.java.util.HashSet()
        gone.add(self.part(number))
        admin.deleteConsumerGroupOffsets(group, gone).all().get()
        admin.close()
        report("deleted")


class _KafkaPython:
    """The beginning of a consumer of kafka-python, which the project does not need otherwise (`pip install kafka-python`)."""

    def __init__(self, topic, config):
        import kafka

        self._kafka = kafka
        typed = {name.replace(".", "_"): int(value) if value.isdigit() else value == "true" or value for name, value in config.items()}
        self._consumer = kafka.KafkaConsumer(**typed | {"enable_auto_commit": typed["enable_auto_commit"] is True})
        self.subscribe(topic)

    def subscribe(self, topic):
        self._consumer.subscribe([topic])

    def poll(self):
        return self._consumer.poll(timeout_ms=int(POLL_SECONDS * 1000))

    def assigned(self):
        return len(self._consumer.assignment())

    def close(self):
        self._consumer.close()


class ReadingPython(_Reading, _KafkaPython):
    """With kafka-python."""

    def part(self, number):
        return self._kafka.TopicPartition(self._topic, number)

    def parts(self, number):
        return (self.part(number),)

    def records(self, polled):
        return [(part.partition, one.offset) for part, batch in polled.items() for one in batch]

    def seek(self, number, offset):
        self._consumer.seek(self.part(number), offset)

    def commit(self, offsets):
        self._consumer.commit({self.part(number): self._kafka.OffsetAndMetadata(offset, "", -1) for number, offset in offsets.items()})


class ReadingConsumers(Consumers):
    """Those of a cluster."""

    kinds: ClassVar = {kind: f"{__name__}:Reading{kind.title()}" for kind in (LIBRDKAFKA, JAVA, PYTHON)}
