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
from collections.abc import Mapping
from importlib.metadata import distribution
from pathlib import Path
from typing import IO, Any, Final

from py4j.java_gateway import GatewayParameters, JavaGateway  # type: ignore[import-untyped]
from py4j.protocol import Py4JJavaError  # type: ignore[import-untyped]

from jobs.common.java import archive_options, java_program
from jobs.common.places import class_archive, kafka_jar_dir
from jobs.demo.bound import bound
from jobs.demo.consumers import POLL_SECONDS, ConsumerFailedError

_HEAP: Final = "48m"
_BYTES: Final = "org.apache.kafka.common.serialization.ByteArrayDeserializer"
_FINAL: Final = frozenset(
    f"{error}Exception" for error in ("FencedInstanceId", "GroupMaxSizeReached", "InconsistentGroupProtocol", "UnreleasedInstanceId")
)


class JavaConsumer:
    """A consumer that has subscribed to its topic."""

    def __init__(self, topic: str, config: Mapping[str, str]) -> None:
        logging.getLogger("py4j").setLevel(logging.CRITICAL)  # its errors are raised as well
        jars = kafka_jar_dir()  # first on the path, as when their classes were archived
        # It ends when its standard input is closed, as it is when this process ends.
        command = [
            *(java_program(), f"-Xmx{_HEAP}", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Duser.timezone=UTC"),
            *archive_options(class_archive(jars)),
            *("-cp", f"{jars}/*:{gateway_jar()}", "py4j.GatewayServer", "--die-on-broken-pipe", "--enable-auth", "0"),
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
        self.subscribe(topic)

    def poll(self) -> Any:
        """Polls for POLL_SECONDS; Java's ConsumerRecords, None after an error. ConsumerFailedError: it cannot continue."""
        try:
            return self._consumer.poll(self._wait)
        except Py4JJavaError as error:
            if simple_name(error) in _FINAL:
                raise ConsumerFailedError(simple_name(error)) from None
            sys.stderr.write(f"poll: {simple_name(error)}\n")  # such as a failed commit: the client keeps running
            return None

    def assigned(self) -> int:
        """How many partitions it has."""
        return int(self._consumer.assignment().size())

    def subscribe(self, *topics: str) -> None:
        """Subscribes to these topics, in the place of the former ones."""
        self._consumer.subscribe(list(topics))

    def close(self) -> None:
        """Leaves the group, unless the member is static."""
        self._consumer.close()


def gateway_jar() -> Path:
    """The JAR of Py4J in PySpark."""
    return next(Path(str(distribution("pyspark").locate_file("pyspark/jars"))).glob("py4j-*.jar"))


def _drain(output: IO[bytes]) -> None:
    """Passes on the JVM's output: with a full pipe the JVM would stop."""
    for line in output:
        sys.stderr.buffer.write(line)
        sys.stderr.flush()


def simple_name(error: Py4JJavaError) -> str:
    """The simple class name of the exception in Java."""
    return str(error.java_exception.getClass().getSimpleName())
