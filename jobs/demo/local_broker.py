"""A real Kafka broker on this machine, for tests and demonstrations: one process that is broker and controller (KRaft).

    with LocalBroker(folder) as broker:
        broker.create_topic("orders", partitions=6)
        Consumer({"bootstrap.servers": broker.bootstrap, ...})

It writes to its folder alone: `data/`, and in the format of Kafka's own configuration `logs/server.log` and `logs/kafka-request.log`, which
has the requests of consumer groups. A broker that is started again in a folder continues with its data. It needs Java 17 or later and the
JARs that jobs/common/jars.py downloads. On Linux it is killed when the thread that started it ends.
"""

from __future__ import annotations

import base64
import contextlib
import fcntl
import random
import re
import socket
import subprocess
import time
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from jobs.common.errors import UserError
from jobs.common.java import archive_options, check_java, java_program
from jobs.common.places import KAFKA_VERSION, class_archive, kafka_jar_dir
from jobs.demo.bound import bound
from jobs.logs.broker_judge import GROUP_APIS

if TYPE_CHECKING:
    from typing_extensions import Self

READY_SECONDS: Final = 300
STOP_SECONDS: Final = 120
ATTEMPTS: Final = 3
"""Another program may take a free port before the broker listens on it."""

_HOST: Final = "127.0.0.1"
_STEP_SECONDS: Final = 0.1
_JAVA_OPTIONS: Final = (
    "-Xmx400m",
    "-XX:+UseSerialGC",
    "-XX:TieredStopAtLevel=1",
    "-Duser.timezone=UTC",  # of the log's timestamps, which carry no zone
)
_REPLICATED: Final = ("offsets.topic", "transaction.state.log", "share.coordinator.state.topic", "default")
_LOG4J: Final = """\
status = error
appender.server.type = File
appender.server.name = server
appender.server.fileName = {logs}/server.log
appender.server.layout.type = PatternLayout
appender.server.layout.pattern = [%d] %p %m (%c)%n
rootLogger.level = info
rootLogger.appenderRef.server.ref = server
appender.request.type = File
appender.request.name = request
appender.request.fileName = {logs}/kafka-request.log
appender.request.layout.type = PatternLayout
appender.request.layout.pattern = [%d] %p %m (%c)%n
appender.request.filter.groups.type = RegexFilter
appender.request.filter.groups.regex = (?s).*?"requestApiKeyName":"({apis})".*
appender.request.filter.groups.onMatch = ACCEPT
appender.request.filter.groups.onMismatch = DENY
logger.request.name = kafka.request.logger
logger.request.level = debug
logger.request.additivity = false
logger.request.appenderRef.request.ref = request
"""


def free_port() -> int:
    """A free port below those that the kernel gives to clients: no client takes it while its broker is down."""
    for port in random.SystemRandom().sample(range(20_000, 32_768), 1_000):  # a seed that two processes share gives both the same
        with socket.socket() as probe, contextlib.suppress(OSError):
            probe.bind((_HOST, port))
            return port
    raise UserError(f"no port of {_HOST} is free")


@dataclass
class LocalBroker:
    """One Kafka process and its folder. Use it as a context, or call `start` and `stop`."""

    folder: Path
    settings: Mapping[str, str] | None = None  # broker properties, which override those of this module
    node_id: int = 1
    port: int = 0  # 0 takes a free one at each start
    version: str = KAFKA_VERSION
    log_folder: Path | None = None  # `folder/logs` unless it is given
    join: LocalBroker | None = None  # a running broker whose cluster this one joins
    replicas: int = 1  # of every topic
    client: Mapping[str, str] | None = None  # settings of librdkafka for the connection, where `settings` ask for a login or TLS
    java_options: Sequence[str] = ()  # more options of the JVM of the broker
    also_logged: Sequence[str] = ()  # further APIs whose requests are logged

    def __post_init__(self) -> None:
        self.logs = self.log_folder or self.folder / "logs"
        self._port = self.port
        self._controller = 0
        self._process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    @property
    def bootstrap(self) -> str:
        """The address for clients."""
        return f"{_HOST}:{self._port}"

    def start(self) -> None:
        """Starts it and waits until it answers. UserError: it cannot start, and why."""
        self._check_jars()
        check_java()
        self._check_free()
        for attempt in range(1, ATTEMPTS + 1):
            self._configure(fresh=attempt > 1)
            self._format()
            if self._launch():
                return
            if attempt == ATTEMPTS or not self._port_was_taken():
                raise UserError(f"the broker did not start: {self._failure()} (more in {self._output})")

    def stop(self) -> None:
        """Ends it with SIGTERM, as an operator does; kills it if that takes too long."""
        if self._process is not None:
            self._process.terminate()
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._process.wait(STOP_SECONDS)
        self.kill()

    def kill(self) -> None:
        """Ends it at once, as `kill -9` and power cuts do."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None

    @property
    def running(self) -> bool:
        """Whether its process lives."""
        return self._process is not None and self._process.poll() is None

    def create_topic(self, name: str, partitions: int) -> None:
        """Creates a topic, and waits for the answer."""
        admin = self._admin()  # it has to live until the answer is there
        admin.create_topics([NewTopic(name, partitions)])[name].result(30)

    def _check_jars(self) -> None:
        folder = kafka_jar_dir(self.version)
        if any(folder.glob("*kafka_2.13-*.jar")):
            return
        raise UserError(f"no JARs of Kafka in {folder}: run `python -m jobs.common.jars kafka {self.version}`")

    def _check_free(self) -> None:
        """UserError: a broker is running in the folder, or the port is taken."""
        try:
            with (self.folder / "data" / ".lock").open("r+b") as lock:  # which Kafka locks
                fcntl.lockf(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except FileNotFoundError:
            pass
        except OSError:
            raise UserError(f"{self.folder} is the folder of a broker that is running; stop that one, or take another folder") from None
        if self.port:
            with socket.socket() as probe:
                probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # like Kafka: a port that was just left is free
                try:
                    probe.bind((_HOST, self.port))
                except (OSError, OverflowError):
                    raise UserError(f"port {self.port} of {_HOST} is taken, or this user may not open it") from None

    @property
    def _output(self) -> Path:
        return self.logs / "broker.out"

    def _configure(self, *, fresh: bool) -> None:
        self.logs.mkdir(parents=True, exist_ok=True)
        self.folder.mkdir(parents=True, exist_ok=True)
        self._port = self.port or free_port()
        if fresh or not self._controller:  # else the port stays: brokers that joined look for their controller there
            self._controller = free_port()
        plain, controller = f"PLAINTEXT://{_HOST}:{self._port}", f"CONTROLLER://{_HOST}:{self._controller}"
        voter = self if self.join is None else self.join
        properties = {
            "process.roles": "broker,controller" if voter is self else "broker",
            "node.id": str(self.node_id),
            "controller.quorum.voters": f"{voter.node_id}@{_HOST}:{voter._controller}",  # noqa: SLF001 - of this class
            "controller.listener.names": "CONTROLLER",
            "listeners": f"{plain},{controller}" if voter is self else plain,
            "advertised.listeners": plain,
            "listener.security.protocol.map": "CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT",
            "log.dirs": str(self.folder / "data"),
            "auto.create.topics.enable": "false",
            **{f"{topics}.replication.factor": str(self.replicas) for topics in _REPLICATED},
            **{f"{topics}.min.isr": str(max(self.replicas - 1, 1)) for topics in _REPLICATED[1:3]},
            **(self.settings or {}),
        }
        file = self.folder / "server.properties"
        file.touch(0o600)  # it may hold passwords
        file.write_text("".join(f"{name}={value}\n" for name, value in properties.items()), encoding="utf-8")
        apis = "|".join(sorted([*(api.decode() for api in GROUP_APIS), "API_VERSIONS", *self.also_logged]))  # it tells the release
        (self.folder / "log4j2.properties").write_text(_LOG4J.format(logs=self.logs, apis=apis), encoding="utf-8")

    def _format(self) -> None:
        if (self.folder / "data" / "meta.properties").exists():
            return
        if self.join is None:
            cluster_id = base64.urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("=").replace("-", "A")  # a - may look like an option
        else:
            text = _tail(self.join.folder / "data" / "meta.properties")
            cluster_id = text.partition("cluster.id=")[2].partition("\n")[0].strip()
        command = self._java("kafka.tools.StorageTool", "format", "-t", cluster_id, "-c", str(self.folder / "server.properties"))
        done = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603
        if done.returncode:
            raise UserError(f"the storage of the broker cannot be formatted: {_first_error(done.stderr + done.stdout)}")

    def _launch(self) -> bool:
        """Starts the process; False if it does not answer."""
        with self._output.open("wb") as output:
            self._process = subprocess.Popen(  # noqa: S603
                bound(*self._java(*self.java_options, "kafka.Kafka", str(self.folder / "server.properties"))),
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,  # Ctrl-C does not reach it: it is stopped after the consumers
            )
        ready = False
        try:
            admin, until = self._admin(), time.monotonic() + READY_SECONDS
            while not ready and self.running and time.monotonic() < until:
                with contextlib.suppress(KafkaException):
                    ready = self.node_id in admin.list_topics(timeout=1).brokers
                time.sleep(_STEP_SECONDS)
        finally:
            if not ready:
                self.kill()
        return ready

    def _admin(self) -> AdminClient:
        return AdminClient({**(self.client or {}), "bootstrap.servers": self.bootstrap, "log_level": 0})

    def _java(self, *arguments: str) -> list[str]:
        jars = kafka_jar_dir(self.version)
        log4j = f"-Dlog4j2.configurationFile={self.folder / 'log4j2.properties'}"
        return [java_program(), *_JAVA_OPTIONS, *archive_options(class_archive(jars)), log4j, "-cp", str(jars / "*"), *arguments]

    def _port_was_taken(self) -> bool:
        return any("Address already in use" in _tail(path) for path in (self._output, self.logs / "server.log"))

    def _failure(self) -> str:
        """Why it did not start."""
        errors = (_first_error(_tail(path)) for path in (self._output, self.logs / "server.log"))
        return next(filter(None, errors), f"no answer within {READY_SECONDS} s")


def brokers_of(
    folder: Path, count: int, *, port: int = 0, version: str = KAFKA_VERSION, settings: Mapping[str, str] | None = None
) -> list[LocalBroker]:
    """The brokers of a folder, not yet started. The first one is also the controller. It listens on `port`, the others on the next ports.

    `settings`: further broker properties.
    """
    brokers: list[LocalBroker] = []
    for number in range(1, count + 1):
        broker = LocalBroker(
            folder / f"broker-{number}",
            settings=settings,
            node_id=number,
            port=port + number - 1 if port else 0,
            version=version,
            log_folder=folder / "logs" / f"broker-{number}",
            join=brokers[0] if brokers else None,
            replicas=count,
        )
        brokers.append(broker)
    return brokers


def _tail(path: Path) -> str:
    """The end of a file; empty if there is none."""
    try:
        return path.read_text(encoding="utf-8", errors="replace")[-100_000:]
    except FileNotFoundError:
        return ""


def _first_error(text: str) -> str:
    """The first error in an output."""
    match = re.search(r"(?:ERROR|FATAL|\w*Exception|\w*Error)\b.*", text)
    return match.group()[:300] if match else ""
