"""Consumers beyond those of `rebalance demo-live` (jobs/demo), for live tests and recordings: they commit and subscribe when told to.

A consumer whose topic has no name writes `ready`, and joins when it is told to subscribe. After a commit it writes `committed` or
`refused`.
"""

import sys
import time
from typing import ClassVar

from confluent_kafka import KafkaException, TopicPartition
from py4j.java_gateway import CallbackServerParameters
from py4j.protocol import Py4JJavaError

from jobs.demo.consumers import CONSUMER, JAVA, LIBRDKAFKA, POLL_SECONDS, Consumers
from jobs.demo.java_consumer import JavaConsumer
from jobs.demo.librdkafka_consumer import LibrdkafkaConsumer
from jobs.demo.worker import report


class _Further:
    """What both clients do alike."""

    def __init__(self, topic, config, **habits):
        self._subscribed = False
        super().__init__(topic, config, **habits)
        if not topic:
            report("ready")

    def subscribe(self, *topics):
        """Joins with these; with none if the only one has no name."""
        self._subscribed = topics != ("",)
        if self._subscribed:
            super().subscribe(*topics)

    def poll(self):
        if self._subscribed:
            super().poll()
        else:
            time.sleep(POLL_SECONDS)

    def commit(self):
        """Commits the first offset of each of its partitions."""
        try:
            self.commit_first()
            report("committed")
        except (KafkaException, Py4JJavaError) as error:
            sys.stderr.write(f"commit: {error}\n")
            report("refused")


class FurtherLibrdkafka(_Further, LibrdkafkaConsumer):
    """With librdkafka."""

    def commit_first(self):
        firsts = [TopicPartition(part.topic, part.partition, 0) for part in self._consumer.assignment()]
        self._consumer.commit(offsets=firsts, asynchronous=False)


class _ListeningJava(JavaConsumer):
    """With the Java client, regular expressions, and a rebalance listener that takes its time."""

    def __init__(self, topic, config, *, revocation_seconds=0):
        self._protocol = config.get("group.protocol")
        self._revocation_seconds = revocation_seconds
        super().__init__(topic, config)

    def subscribe(self, *topics):
        """A topic that begins with ^ is a regular expression, as for librdkafka."""
        jvm, wanted, listener = self._gateway.jvm, list(topics), ()
        if topics[0].startswith("^"):
            of_clients, of_coordinators = jvm.java.util.regex.Pattern.compile, jvm.org.apache.kafka.clients.consumer.SubscriptionPattern
            wanted = (of_coordinators if self._protocol == CONSUMER else of_clients)(topics[0])
        if self._revocation_seconds:
            self._let_java_call()
            listener = (_Listener(self._revocation_seconds),)
        self._consumer.subscribe(wanted, *listener)

    def _let_java_call(self):
        """Lets the JVM call objects of this process, on a port of this machine that is free. Py4J's JVM sends no token there."""
        self._gateway.start_callback_server(CallbackServerParameters(port=0, daemonize=True, daemonize_connections=True))
        server = self._gateway.java_gateway_server
        server.resetCallbackClient(server.getCallbackClient().getAddress(), self._gateway.get_callback_server().get_listening_port())


class FurtherJava(_Further, _ListeningJava):
    """With the Java client."""

    def commit_first(self):
        first = self._gateway.jvm.org.apache.kafka.clients.consumer.OffsetAndMetadata(0)
        self._consumer.commitSync(dict.fromkeys(self._consumer.assignment(), first))


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


class FurtherConsumers(Consumers):
    """Those of a cluster."""

    kinds: ClassVar = {LIBRDKAFKA: f"{__name__}:FurtherLibrdkafka", JAVA: f"{__name__}:FurtherJava"}
