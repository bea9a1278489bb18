"""A consumer of Kafka's own Java client, in a JVM that it has to itself.

Kafka's distribution brings no consumer that can be told to stall, and a machine with a Java runtime need not have a compiler. So the JVM
runs nothing of ours: the gateway through which PySpark talks to Java makes a KafkaConsumer, and each poll is a call. Heartbeats are
the JVM's own business, as in any application.
"""

from __future__ import annotations

import logging
import subprocess
import sys
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import IO, Any, Final

import pyspark
from py4j.java_gateway import GatewayParameters, JavaGateway  # type: ignore[import-untyped]
from py4j.protocol import Py4JJavaError  # type: ignore[import-untyped]

from jobs.common.java import java_program
from jobs.common.places import kafka_jar_dir
from jobs.demo.bound import bound
from jobs.demo.client import POLL_SECONDS, FailedError, RefusedError

_HEAP: Final = "48m"
_BYTES: Final = "org.apache.kafka.common.serialization.ByteArrayDeserializer"
_FINAL: Final = frozenset({"FencedInstanceIdException", "InconsistentGroupProtocolException", "GroupMaxSizeReachedException"})


class JavaClient:
    """See Client in client.py."""

    def __init__(self, topic: str, config: Mapping[str, str]) -> None:
        logging.getLogger("py4j").setLevel(logging.CRITICAL)  # what goes wrong is raised, too
        # Ends with its standard input: the pipe is closed when this process is gone.
        command = [
            *(java_program(), f"-Xmx{_HEAP}", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Duser.timezone=UTC"),
            *("-cp", f"{_gateway_jar()}:{kafka_jar_dir()}/*", "py4j.GatewayServer", "--die-on-broken-pipe", "--enable-auth", "0"),
        ]
        self._process = subprocess.Popen(bound(*command), stdin=subprocess.PIPE, stdout=subprocess.PIPE)  # noqa: S603
        said = self._process.stdout
        assert said is not None
        port, token = said.readline().decode().strip(), said.readline().decode().strip()
        if not port.isdigit():
            raise FailedError(f"the JVM did not start: {port}")
        threading.Thread(target=_drain, args=(said,), daemon=True).start()
        self._gateway = JavaGateway(gateway_parameters=GatewayParameters(port=int(port), auth_token=token, auto_convert=True))
        jvm: Any = self._gateway.jvm
        properties = jvm.java.util.Properties()
        for name, value in {**config, "key.deserializer": _BYTES, "value.deserializer": _BYTES}.items():
            properties.setProperty(name, value)
        self._wait = jvm.java.time.Duration.ofMillis(int(POLL_SECONDS * 1000))
        self._consumer = jvm.org.apache.kafka.clients.consumer.KafkaConsumer(properties)
        self._consumer.subscribe([topic])

    def poll(self) -> None:
        """Asks for records."""
        try:
            self._consumer.poll(self._wait)
        except Py4JJavaError as error:
            if _name(error) in _FINAL:
                raise FailedError(_name(error)) from None
            sys.stderr.write(f"poll: {_name(error)}\n")  # of a commit, for instance: the client goes on

    def assigned(self) -> int:
        """Partitions that it has now."""
        return int(self._consumer.assignment().size())

    def commit(self) -> None:
        """Commits."""
        offset = self._gateway.jvm.org.apache.kafka.clients.consumer.OffsetAndMetadata
        try:
            self._consumer.commitSync({part: offset(0) for part in self._consumer.assignment()})
        except Py4JJavaError as error:
            raise RefusedError(_name(error)) from None

    def close(self) -> None:
        """Leaves."""
        self._consumer.close()


def _gateway_jar() -> Path:
    """The JAR that PySpark brings along."""
    return next((Path(pyspark.__file__).parent / "jars").glob("py4j-*.jar"))


def _drain(said: IO[bytes]) -> None:
    """Passes on what the JVM writes: it would wait when nobody reads."""
    for line in said:
        sys.stderr.buffer.write(line)
        sys.stderr.flush()


def _name(error: Py4JJavaError) -> str:
    """The simple name of the exception in Java."""
    return str(error.java_exception.getClass().getSimpleName())
