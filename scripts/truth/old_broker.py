"""Records a broker of Kafka 0.9 to 2.7, with its own ZooKeeper, while consumers of the same release come, leave, freeze and die.

    python -m scripts.truth.old_broker VERSION JARS FOLDER

JARS is a folder with all that org.apache.kafka:kafka_2.11 (since 2.4: kafka_2.12) of that version and org.slf4j:slf4j-log4j12 depend on, as
`mvn dependency:copy-dependencies` makes it. Java 17 needs org.apache.zookeeper:zookeeper:3.5.9 in the place of an older one, and up to
0.11 javax.xml.bind:jaxb-api:2.3.1.

It writes to FOLDER what tests/parsing/test_old_brokers.py reads: both logs of the broker and truth.jsonl with a line for each
action, with its time (epoch ms). A recording takes two minutes. The consumers are Kafka's own console consumers.
"""

from __future__ import annotations

import argparse
import gzip
import json
import re
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import IO, Any, Final

from jobs.demo.local_broker import free_port

JAVA: Final = (
    "java", "-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Duser.timezone=UTC", "--add-opens=java.base/java.nio=ALL-UNNAMED",
    "--add-opens=java.base/sun.nio.ch=ALL-UNNAMED", "--add-opens=java.base/java.lang=ALL-UNNAMED",
)  # fmt: skip
LOG4J: Final = """\
log4j.rootLogger=INFO, server
log4j.appender.server=org.apache.log4j.FileAppender
log4j.appender.server.File={logs}/server.log
log4j.appender.server.layout=org.apache.log4j.PatternLayout
log4j.appender.server.layout.ConversionPattern=[%d] %p %m (%c)%n
log4j.appender.request=org.apache.log4j.FileAppender
log4j.appender.request.File={logs}/kafka-request.log
log4j.appender.request.layout=org.apache.log4j.PatternLayout
log4j.appender.request.layout.ConversionPattern=[%d] %p %m (%c)%n
log4j.logger.kafka.request.logger=TRACE, request
log4j.additivity.kafka.request.logger=false
"""
SETTINGS: Final = """\
broker.id=1
listeners=PLAINTEXT://127.0.0.1:{port}
zookeeper.connect=127.0.0.1:{zookeeper}
log.dirs={data}
num.partitions=4
offsets.topic.replication.factor=1
offsets.topic.num.partitions=5
offsets.retention.minutes=1
offsets.retention.check.interval.ms=5000
group.initial.rebalance.delay.ms=500
"""
MEMBER: Final = "client.id={name}\ngroup.id={group}\nsession.timeout.ms=6000\nheartbeat.interval.ms=2000\nfetch.max.wait.ms=5000\n"
PATIENCE_S: Final = 120
OF_THE_MACHINE: Final = re.compile(rb" environment:|/tmp/|file:/")
"""Lines that are left out: they name folders of the machine."""


class Recorder:
    """A broker, its ZooKeeper and its consumers, as processes."""

    def __init__(self, version: str, jars: Path, folder: Path) -> None:
        self._release = tuple(int(part) for part in version.split("."))
        self._jars, self._folder, self._zookeeper, self._port = jars, folder, free_port(), free_port()
        self._alive: dict[str, subprocess.Popen[bytes]] = {}
        self._output: IO[bytes] = (folder / "output").open("wb")
        self.truth: list[dict[str, Any]] = []
        (folder / "broker.log4j").write_text(LOG4J.format(logs=folder))
        (folder / "other.log4j").write_text("log4j.rootLogger=OFF\n")
        (folder / "server.properties").write_text(SETTINGS.format(port=self._port, zookeeper=self._zookeeper, data=folder / "data"))

    def _java(self, name: str, arguments: Sequence[str], log4j: str = "other") -> None:
        options = ("-cp", f"{self._jars}/*", f"-Dlog4j.configuration=file:{self._folder}/{log4j}.log4j")
        self._alive[name] = subprocess.Popen((*JAVA, *options, *arguments), stdout=self._output, stderr=subprocess.STDOUT)

    def noted(self, action: str, **of: str) -> None:
        """Writes down an action at the moment of acting."""
        self.truth.append({"ts_ms": time.time_ns() // 1_000_000, "action": action, **of})

    def start_broker(self) -> None:
        """Starts the broker, and ZooKeeper before the first time. Waits until it serves."""
        if not self._alive:
            self._java("zookeeper", ("org.apache.zookeeper.server.ZooKeeperServerMain", str(self._zookeeper), f"{self._folder}/zookeeper"))
        self.noted("start_broker")
        before = len(self.lines(r" started \(kafka\.server\.KafkaServer\)"))
        self._java("broker", ("kafka.Kafka", f"{self._folder}/server.properties"), "broker")
        self.until(lambda: len(self.lines(r" started \(kafka\.server\.KafkaServer\)")) > before)

    def create_topic(self) -> None:
        """Creates the topic that all groups read."""
        options = ("--create", "--topic", "orders", "--partitions", "4", "--replication-factor", "1")
        self._java("topics", ("kafka.admin.TopicCommand", "--zookeeper", f"127.0.0.1:{self._zookeeper}", *options))
        self._alive.pop("topics").wait(PATIENCE_S)

    def start(self, group: str, name: str) -> None:
        """Starts a consumer, and waits until its group has a generation more."""
        self.noted("start", group=group, client_id=name)
        settings = self._folder / f"{name}.properties"
        settings.write_text(MEMBER.format(name=name, group=group))
        new = ("--new-consumer",) if self._release < (0, 11) else ()
        options = ("--bootstrap-server", f"127.0.0.1:{self._port}", "--topic", "orders", "--consumer.config", str(settings), *new)
        generation = self.generation(group)
        self._java(name, ("kafka.tools.ConsoleConsumer", *options))
        self.until(lambda: self.generation(group) > generation)

    def signal(self, action: str, group: str, name: str, number: signal.Signals, generations: int = 1) -> None:
        """Sends a signal to a consumer, and waits until its group has so many generations more."""
        self.noted(action, group=group, client_id=name)
        generation = self.generation(group)
        self._alive[name].send_signal(number)
        if number in (signal.SIGTERM, signal.SIGKILL):
            self._alive.pop(name).wait(PATIENCE_S)
        self.until(lambda: self.generation(group) >= generation + generations)

    def restart_broker(self) -> None:
        """Ends the broker as an operator does, and starts it again."""
        self.noted("stop_broker")
        self._alive["broker"].terminate()
        self._alive.pop("broker").wait(PATIENCE_S)
        self.start_broker()

    def generation(self, group: str) -> int:
        """The newest generation that the coordinator's log shows of a group to be assigned, or to be empty."""
        text = rf"(?:leader for group {group} for generation|Group {group} with generation|Group {group} generation) (\d+)"
        return max((int(line[1]) for line in self.lines(text)), default=0)

    def lines(self, pattern: str) -> list[re.Match[str]]:
        """Where the coordinator's log has a text."""
        log = self._folder / "server.log"
        return list(re.finditer(pattern, log.read_text())) if log.exists() else []

    def until(self, reached: Callable[[], object]) -> None:
        """Waits for a state, then a second more."""
        end = time.monotonic() + PATIENCE_S
        while not reached():
            if time.monotonic() > end or any(process.poll() is not None for process in self._alive.values()):
                output = (self._folder / "output").read_text()
                raise SystemExit(f"it took too long, or a process ended: {output[-2_000:]}")
            time.sleep(0.1)
        time.sleep(1)

    def end(self) -> None:
        """Kills what still lives."""
        for process in self._alive.values():
            process.kill()
            process.wait()


def play(recorder: Recorder) -> None:
    """What happens in a recording."""
    recorder.start_broker()
    recorder.create_topic()
    recorder.start("audit", "audit-1")
    for number in "123":
        recorder.start("orders", f"orders-{number}")
    gone = len(recorder.lines("Group audit .*[dD]ead"))
    recorder.signal("stop", "audit", "audit-1", signal.SIGTERM, 0)
    recorder.signal("stop", "orders", "orders-3", signal.SIGTERM)
    recorder.signal("kill", "orders", "orders-2", signal.SIGKILL)
    recorder.start("orders", "orders-2")
    recorder.signal("freeze", "orders", "orders-1", signal.SIGSTOP)
    recorder.signal("thaw", "orders", "orders-1", signal.SIGCONT)
    recorder.restart_broker()
    recorder.start("orders", "orders-3")
    recorder.until(lambda: len(recorder.lines("Group audit .*[dD]ead")) > gone)
    for number in "123":
        recorder.signal("stop", "orders", f"orders-{number}", signal.SIGTERM, 0)
    recorder.restart_broker()


def main(arguments: Sequence[str]) -> int:
    """Records. Returns 0."""
    parser = argparse.ArgumentParser(description="Record an old broker.")
    parser.add_argument("version")
    parser.add_argument("jars", type=Path)
    parser.add_argument("folder", type=Path)
    given = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as made:
        recorder = Recorder(given.version, given.jars.resolve(), Path(made))
        try:
            play(recorder)
        finally:
            recorder.end()
            given.folder.mkdir(parents=True, exist_ok=True)
            for name in ("server.log", "kafka-request.log"):
                kept = [line for line in (Path(made) / name).read_bytes().splitlines(keepends=True) if OF_THE_MACHINE.search(line) is None]
                (given.folder / f"{name}.gz").write_bytes(gzip.compress(b"".join(kept), mtime=0))
            (given.folder / "truth.jsonl").write_text("".join(json.dumps(line) + "\n" for line in recorder.truth))
    return 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
