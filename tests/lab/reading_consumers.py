"""Consumers that process what they read: for recordings and tests. Those of `rebalance demo-live` (jobs/demo) only hold partitions.

A consumer without a topic writes `ready`, and joins when it is told to subscribe. It writes `committed` or `refused REASON` after a commit
that it was told, and a line of JSON for each record that it processes, if it notes them.
"""

from __future__ import annotations

import json
import sys
import time
from typing import ClassVar, NamedTuple

from confluent_kafka import KafkaException, TopicPartition
from py4j.java_gateway import CallbackServerParameters
from py4j.protocol import Py4JJavaError

from jobs.demo.consumers import CONSUMER, JAVA, LIBRDKAFKA, POLL_SECONDS, ConsumerProcess, Consumers
from jobs.demo.java_consumer import JavaConsumer, simple_name
from jobs.demo.librdkafka_consumer import LibrdkafkaConsumer
from jobs.demo.worker import report

TRANSACTIONAL = "transactional"


class Place(NamedTuple):
    """A partition of a topic."""

    topic: str
    partition: int


class CommitRefusedError(Exception):
    """The coordinator did not accept a commit."""


class Reading:
    """What both clients do alike: note records before they commit them."""

    def __init__(self, topic, config, *, commit_every=0, record_seconds=0, notes=False, **habits):
        """`commit_every`: it commits by itself after so many records; 0: never. `record_seconds`: how long it takes to process one."""
        self._commit_every, self._record_seconds, self._notes = commit_every, record_seconds, notes
        self._subscribed = False
        self._positions, self._new, self._count = {}, {}, 0
        super().__init__(topic, config, **habits)
        if not topic:
            report("ready")

    def subscribe(self, *topics):
        """Joins with these; with none if the only one has no name."""
        self._subscribed = topics != ("",)
        if self._subscribed:
            super().subscribe(*topics)

    def poll(self):
        """Polls, and processes what comes."""
        if not self._subscribed:
            time.sleep(POLL_SECONDS)
            return
        try:
            self._process(self.records(super().poll()))
        except CommitRefusedError as error:
            sys.stderr.write(f"commit: {error}\n")

    def commit(self):
        """Commits its position in each of its partitions: 0 where it has processed nothing."""
        positions = self._positions | self._new
        try:
            self._commit({place: positions.get(place, 0) for place in self.places()})
            report("committed")
        except CommitRefusedError as error:
            report(f"refused {error}")

    def close(self):
        """One that commits by itself does it before."""
        if self._commit_every:
            self._commit_new()
        super().close()

    def parts(self, partition):
        """Its partitions with a number, as the client wants them."""
        return [self.part(place) for place in self.places() if place.partition == partition]

    def pause(self, partition):
        """Keeps a partition, and reads no longer from it."""
        self._consumer.pause(self.parts(partition))

    def resume(self, partition):
        """Reads from it again."""
        self._consumer.resume(self.parts(partition))

    def places(self):
        """Its partitions."""
        return [Place(part.topic, part.partition) for part in self._consumer.assignment()]

    def _process(self, records):
        for place, offset in records:
            time.sleep(self._record_seconds)
            if self._notes:
                report(json.dumps({"at": time.time_ns() // 1_000_000, "partition": place.partition, "offset": offset}))
            self._new[place] = offset + 1
        self._count += len(records)
        if self._commit_every and self._count >= self._commit_every:
            self._commit_new()

    def _commit_new(self):
        self._commit({place: self._new[place] for place in self.places() if place in self._new})

    def _commit(self, positions):
        self._positions |= self._new
        self._new, self._count = {}, 0
        self.commit_positions(positions)


class ReadingLibrdkafka(Reading, LibrdkafkaConsumer):
    """With librdkafka."""

    def part(self, place, *offset):
        return TopicPartition(*place, *offset)

    def records(self, message):
        """The place and offset of each record that a poll returned."""
        return [(Place(message.topic(), message.partition()), message.offset())] if message is not None else []

    def commit_positions(self, positions):
        """Commits these offsets, those of the next records to read. CommitRefusedError: the coordinator did not accept them."""
        try:
            self._consumer.commit(offsets=[self.part(*one) for one in positions.items()], asynchronous=False)
        except KafkaException as error:
            raise CommitRefusedError(error.args[0].name()) from None


class ReadingJava(Reading, JavaConsumer):
    """With the Java client."""

    def __init__(self, topic, config, *, revocation_seconds=0, **habits):
        self._protocol = config.get("group.protocol")
        self._revocation_seconds = revocation_seconds
        super().__init__(topic, config, **habits)

    def subscribe(self, *topics):
        """One that begins with ^ is a regular expression, as for librdkafka."""
        self._subscribed = topics != ("",)
        if not self._subscribed:
            return
        jvm, wanted, listener = self._gateway.jvm, list(topics), ()
        if topics[0].startswith("^"):
            of_clients, of_coordinators = jvm.java.util.regex.Pattern.compile, jvm.org.apache.kafka.clients.consumer.SubscriptionPattern
            wanted = (of_coordinators if self._protocol == CONSUMER else of_clients)(topics[0])
        if self._revocation_seconds:
            self._let_java_call()
            listener = (_Listener(self._revocation_seconds),)
        self._consumer.subscribe(wanted, *listener)

    def part(self, place):
        return self._gateway.jvm.org.apache.kafka.common.TopicPartition(*place)

    def places(self):
        """Its partitions."""
        return [Place(part.topic(), part.partition()) for part in self._consumer.assignment()]

    def records(self, polled):
        """The same. Each look at an object of the JVM is a call: it asks for the ends of a list without holes alone."""
        records = []
        for part in polled.partitions() if polled is not None and not polled.isEmpty() else ():
            place, batch = Place(part.topic(), part.partition()), polled.records(part)
            count, first = batch.size(), batch.get(0).offset()
            has_holes = batch.get(count - 1).offset() - first + 1 != count
            records += [(place, offset) for offset in ((one.offset() for one in batch) if has_holes else range(first, first + count))]
        return records

    def commit_positions(self, positions):
        """The same."""
        offset = self._gateway.jvm.org.apache.kafka.clients.consumer.OffsetAndMetadata
        try:
            self._consumer.commitSync({self.part(place): offset(position) for place, position in positions.items()})
        except Py4JJavaError as error:
            raise CommitRefusedError(simple_name(error)) from None

    def _let_java_call(self):
        """Lets the JVM call objects of this process, on a port of this machine that is free. Py4J's JVM sends no token there."""
        self._gateway.start_callback_server(CallbackServerParameters(port=0, daemonize=True, daemonize_connections=True))
        server = self._gateway.java_gateway_server
        server.resetCallbackClient(server.getCallbackClient().getAddress(), self._gateway.get_callback_server().get_listening_port())


class _Listener:
    """A rebalance listener. The JVM calls it in the thread that polls."""

    class Java:
        """What it is to the JVM."""

        implements: ClassVar = ["org.apache.kafka.clients.consumer.ConsumerRebalanceListener"]

    def __init__(self, seconds):
        self._seconds = seconds

    def onPartitionsRevoked(self, _partitions):  # noqa: N802 - Java's name
        """Partitions are to be given up."""
        time.sleep(self._seconds)

    def onPartitionsAssigned(self, _partitions):  # noqa: N802
        """Partitions were assigned."""

    def onPartitionsLost(self, _partitions):  # noqa: N802
        """Partitions have another owner by now."""


class ReadingProcess(ConsumerProcess):
    """A running one. `records`: those that it has noted. `highest`: the offset of the newest of them, by partition."""

    def __init__(self, *arguments):
        self.records, self.highest = [], {}
        super().__init__(*arguments)

    @property
    def ready(self):
        """Whether it could join at once, where it was started without a topic."""
        return "ready" in self.lines

    def hear(self, line):
        if not line.startswith("{"):
            super().hear(line)
        elif line.endswith("\n"):  # the last one of a process that was killed may be cut off
            record = json.loads(line)
            self.records.append(record)
            self.highest[record["partition"]] = max(record["offset"], self.highest.get(record["partition"], -1))


class ReadingConsumers(Consumers):
    """Consumers of a cluster, of which each processes what it reads."""

    kinds: ClassVar = {
        LIBRDKAFKA: f"{__name__}:ReadingLibrdkafka",
        JAVA: f"{__name__}:ReadingJava",
        TRANSACTIONAL: "tests.lab.transactional_consumer:TransactionalConsumer",
    }
    process = ReadingProcess
