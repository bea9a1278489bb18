"""A consumer of Kafka's Java client, in its own JVM.

Kafka's distribution has no consumer that stalls on command, and a machine with a Java runtime may lack a compiler. So no Java code is
written: Py4J, through which PySpark talks to Java, makes a KafkaConsumer, and each poll is a call. The JVM sends heartbeats by itself, as
in any application.
"""

from __future__ import annotations

import logging
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import IO, Any, Final, cast

import pyspark
from py4j.java_gateway import CallbackServerParameters, GatewayParameters, JavaGateway  # type: ignore[import-untyped]
from py4j.protocol import Py4JJavaError  # type: ignore[import-untyped]

from jobs.common.java import archive_options, java_program
from jobs.common.places import class_archive, kafka_jar_dir
from jobs.demo.bound import bound
from jobs.demo.real_consumer import (
    CLASSIC,
    CONSUMER,
    EXPRESSION,
    POLL_SECONDS,
    CommitRefusedError,
    ConsumerFailedError,
    Place,
    Record,
)

_HEAP: Final = "48m"
_BYTES: Final = "org.apache.kafka.common.serialization.ByteArrayDeserializer"
_FINAL: Final = frozenset(
    f"{error}Exception" for error in ("FencedInstanceId", "GroupMaxSizeReached", "InconsistentGroupProtocol", "UnreleasedInstanceId")
)


class JavaConsumer:
    """A consumer that has subscribed to its topic, or to none if its name is empty."""

    def __init__(self, topic: str, config: Mapping[str, str], revocation_seconds: float) -> None:
        logging.getLogger("py4j").setLevel(logging.CRITICAL)  # its errors are raised as well
        jars = kafka_jar_dir()  # first on the path, as when their classes were archived
        # It ends when its standard input is closed, as it is when this process ends.
        command = [
            *(java_program(), f"-Xmx{_HEAP}", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Duser.timezone=UTC"),
            *archive_options(class_archive(jars)),
            *("-cp", f"{jars}/*:{_gateway_jar()}", "py4j.GatewayServer", "--die-on-broken-pipe", "--enable-auth", "0"),
        ]
        self._process = subprocess.Popen(bound(*command), stdin=subprocess.PIPE, stdout=subprocess.PIPE)  # noqa: S603
        output = self._process.stdout
        assert output is not None
        port, token = output.readline().decode().strip(), output.readline().decode().strip()
        if not port.isdigit():
            raise ConsumerFailedError(f"the JVM did not start: {port}")
        threading.Thread(target=_drain, args=(output,), daemon=True).start()
        self._gateway = JavaGateway(gateway_parameters=GatewayParameters(port=int(port), auth_token=token, auto_convert=True))
        jvm: Any = self._gateway.jvm
        properties = jvm.java.util.Properties()
        for name, value in {**config, "key.deserializer": _BYTES, "value.deserializer": _BYTES}.items():
            properties.setProperty(name, value)
        self._wait = jvm.java.time.Duration.ofMillis(int(POLL_SECONDS * 1000))
        self._consumer = jvm.org.apache.kafka.clients.consumer.KafkaConsumer(properties)
        self._listener = (_Listener(revocation_seconds),) if revocation_seconds else ()
        if self._listener:
            self._let_java_call()
        self._expression = self._expressions(config.get("group.protocol", CLASSIC))
        if topic:
            self.subscribe([topic])

    def poll(self) -> list[Record]:
        """Polls for POLL_SECONDS. ConsumerFailedError: it cannot continue."""
        try:
            return _read(self._consumer.poll(self._wait))
        except Py4JJavaError as error:
            if _name(error) in _FINAL:
                raise ConsumerFailedError(_name(error)) from None
            sys.stderr.write(f"poll: {_name(error)}\n")  # such as a failed commit: the client keeps running
            return []

    def assigned(self) -> int:
        """How many partitions it has."""
        return int(self._consumer.assignment().size())

    def places(self) -> list[Place]:
        """Its partitions."""
        return [_place(part) for part in self._consumer.assignment()]

    def subscribe(self, topics: Sequence[str]) -> None:
        """Subscribes to these topics, or to one regular expression, in the place of the former ones."""
        wanted = self._expression(topics[0]) if topics[0].startswith(EXPRESSION) else list(topics)
        self._consumer.subscribe(wanted, *self._listener)

    def pause(self, places: Sequence[Place]) -> None:
        """Reads no longer from these of its partitions, which it keeps."""
        self._consumer.pause([self._part(place) for place in places])

    def resume(self, places: Sequence[Place]) -> None:
        """Reads from them again."""
        self._consumer.resume([self._part(place) for place in places])

    def commit(self, positions: Mapping[Place, int]) -> None:
        """Commits these offsets, those of the next records to read. CommitRefusedError: the coordinator did not accept them."""
        offset = self._gateway.jvm.org.apache.kafka.clients.consumer.OffsetAndMetadata
        try:
            self._consumer.commitSync({self._part(place): offset(position) for place, position in positions.items()})
        except Py4JJavaError as error:
            raise CommitRefusedError(_name(error)) from None

    def close(self) -> None:
        """Leaves the group, unless the member is static."""
        self._consumer.close()

    def _part(self, place: Place) -> Any:
        return self._gateway.jvm.org.apache.kafka.common.TopicPartition(*place)

    def _expressions(self, protocol: str) -> Callable[[str], Any]:
        """What makes a regular expression that coordinators resolve, or clients of the classic protocol."""
        jvm: Any = self._gateway.jvm
        if protocol == CONSUMER:
            return cast("Callable[[str], Any]", jvm.org.apache.kafka.clients.consumer.SubscriptionPattern)
        return cast("Callable[[str], Any]", jvm.java.util.regex.Pattern.compile)

    def _let_java_call(self) -> None:
        """Lets the JVM call objects of this process, on a port of this machine that is free. Py4J's JVM sends no token there."""
        self._gateway.start_callback_server(CallbackServerParameters(port=0, daemonize=True, daemonize_connections=True))
        server = self._gateway.java_gateway_server
        server.resetCallbackClient(server.getCallbackClient().getAddress(), self._gateway.get_callback_server().get_listening_port())


class _Listener:
    """A rebalance listener. The JVM calls it in the thread that polls."""

    class Java:
        """What it is to the JVM."""

        implements: Final = ["org.apache.kafka.clients.consumer.ConsumerRebalanceListener"]

    def __init__(self, revocation_seconds: float) -> None:
        self._seconds = revocation_seconds

    def onPartitionsRevoked(self, _partitions: object) -> None:  # noqa: N802 - Java's name
        """Partitions are to be given up."""
        time.sleep(self._seconds)

    def onPartitionsAssigned(self, _partitions: object) -> None:  # noqa: N802
        """Partitions were assigned."""

    def onPartitionsLost(self, _partitions: object) -> None:  # noqa: N802
        """Partitions have another owner by now."""


def _read(polled: Any) -> list[Record]:
    """What a poll returned. Each look at an object of the JVM is a call: it asks for the ends of a list without holes alone."""
    records: list[Record] = []
    if polled.isEmpty():
        return records
    for part in polled.partitions():
        place, batch = _place(part), polled.records(part)
        count = int(batch.size())
        first, last = int(batch.get(0).offset()), int(batch.get(count - 1).offset())
        offsets = range(first, last + 1) if last - first + 1 == count else [int(record.offset()) for record in batch]
        records += [Record(place, offset) for offset in offsets]
    return records


def _place(part: Any) -> Place:
    return Place(str(part.topic()), int(part.partition()))


def _gateway_jar() -> Path:
    """The JAR of Py4J in PySpark."""
    return next((Path(pyspark.__file__).parent / "jars").glob("py4j-*.jar"))


def _drain(output: IO[bytes]) -> None:
    """Passes on the JVM's output: with a full pipe the JVM would stop."""
    for line in output:
        sys.stderr.buffer.write(line)
        sys.stderr.flush()


def _name(error: Py4JJavaError) -> str:
    """The simple class name of the exception in Java."""
    return str(error.java_exception.getClass().getSimpleName())
