"""Real consumers, each in its own process, that suffer the accidents of real applications on command.

    with Consumers(broker.bootstrap) as consumers:
        consumer = consumers.start(JAVA, "orders-app", "orders-1", "orders")
        consumer.freeze()

None of them outlives this process.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Mapping
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Final

from jobs.common.places import PROJECT

LIBRDKAFKA: Final = "librdkafka"
JAVA: Final = "java"
CLASSIC: Final = "classic"
CONSUMER: Final = "consumer"
"""Values of group.protocol (KIP-848)."""
POLL_SECONDS: Final = 0.1
KINDS: Final = {LIBRDKAFKA: "jobs.demo.librdkafka_consumer:LibrdkafkaConsumer", JAVA: "jobs.demo.java_consumer:JavaConsumer"}
"""The classes of consumers, by kind."""
SESSION_MS: Final = 6_000
HEARTBEAT_MS: Final = 1_000
CONSUMER_SESSION_MS: Final = 12_000  # outlives the search for a new coordinator
CONSUMER_HEARTBEAT_MS: Final = 3_000
"""Of the consumer protocol. librdkafka gives an answer up after one interval, and with it an assignment, which it is not told again until
its rebalance timeout: a busy broker needs more than a second."""
POLL_MS: Final = 300_000
CONSUMER_GROUP_SETTINGS: Final = {
    "group.consumer.session.timeout.ms": str(CONSUMER_SESSION_MS),
    "group.consumer.min.session.timeout.ms": str(CONSUMER_SESSION_MS),
    "group.consumer.heartbeat.interval.ms": str(CONSUMER_HEARTBEAT_MS),
    "group.consumer.min.heartbeat.interval.ms": str(CONSUMER_HEARTBEAT_MS),
    "group.consumer.migration.policy": "bidirectional",
}
"""Settings of a broker for members of the consumer protocol (KIP-848), whose timeouts are not the client's."""


class ConsumerFailedError(Exception):
    """The consumer cannot continue: it was fenced, or it did not start."""


class ConsumerProcess:
    """A running consumer. `lines`: the output of its worker (worker.py) so far."""

    def __init__(self, kind: str, topic: str, config: dict[str, str], habits: Mapping[str, float], log: Path | None) -> None:
        self.client_id = config["client.id"]
        self.lines: list[str] = []
        with (log or Path(os.devnull)).open("ab") as errors:
            # Its own session, and so its own process group: Ctrl-C does not reach it, and a signal to the group reaches its JVM too.
            self._process = subprocess.Popen(  # noqa: S603
                [sys.executable, "-m", "jobs.demo.worker", kind, topic, json.dumps(config), json.dumps(habits)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
                text=True,
                cwd=PROJECT,
                start_new_session=True,
            )
        threading.Thread(target=self._listen, name=self.client_id, daemon=True).start()

    @property
    def running(self) -> bool:
        """Whether its process lives, frozen or not."""
        return self._process.poll() is None

    @property
    def partitions(self) -> int:
        """How many partitions it last reported."""
        return next((int(line.split()[1]) for line in reversed(self.lines) if line.startswith("assigned ")), 0)

    @property
    def failure(self) -> str | None:
        """Why it failed, if it did."""
        return next((line.removeprefix("failed ") for line in self.lines if line.startswith("failed ")), None)

    def stall(self, seconds: float) -> None:
        """Makes the application stop polling, while the client keeps sending heartbeats."""
        self.command("stall", seconds)

    def leave(self) -> None:
        """Closes the consumer, which leaves its group unless the member is static."""
        self.command("leave")

    def freeze(self) -> None:
        """Sends SIGSTOP: like a long garbage collection, or a machine that is suspended."""
        self._signal(signal.SIGSTOP)

    def thaw(self) -> None:
        """Sends SIGCONT."""
        self._signal(signal.SIGCONT)

    def kill(self) -> None:
        """Sends SIGKILL: the consumer does not leave its group."""
        self._signal(signal.SIGKILL)
        self._process.wait()

    def command(self, name: str, *arguments: object) -> None:
        """Has its worker call a method of the consumer before the next poll."""
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(f"{json.dumps([name, *arguments])}\n")
            self._process.stdin.flush()
        except BrokenPipeError:
            return  # it has failed

    def _signal(self, number: int) -> None:
        if self.running:
            os.killpg(self._process.pid, number)

    def _listen(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            self.lines.append(line.strip())


class Consumers(AbstractContextManager["Consumers"]):
    """The consumers of one cluster, all that were `started`. Use it as a context, whose end kills those that still run."""

    kinds: Mapping[str, str] = KINDS

    def __init__(self, bootstrap: str, logs: Path | None = None) -> None:
        """`logs`: the folder for what clients write to standard error."""
        self.bootstrap = bootstrap
        self._logs = logs
        self.started: list[ConsumerProcess] = []
        if logs is not None:
            logs.mkdir(parents=True, exist_ok=True)

    def __exit__(self, *_: object) -> None:
        self.kill_all()

    def start(
        self,
        kind: str,
        group: str,
        client_id: str,
        topic: str,
        *,
        protocol: str = CLASSIC,
        instance_id: str = "",
        session_ms: int = SESSION_MS,
        poll_ms: int = POLL_MS,
        habits: Mapping[str, float] | None = None,
    ) -> ConsumerProcess:
        """Starts a consumer that joins the group. Several consumers may have one client id.

        `protocol`: its group.protocol. `session_ms`: of the classic protocol alone. `poll_ms`: its max.poll.interval.ms.
        `habits`: more arguments of its class.
        """
        timeouts = {"session.timeout.ms": str(session_ms), "heartbeat.interval.ms": str(HEARTBEAT_MS)}
        config = {
            "bootstrap.servers": self.bootstrap,
            "group.id": group,
            "client.id": client_id,
            **({"group.protocol": CONSUMER} if protocol == CONSUMER else timeouts),
            "max.poll.interval.ms": str(max(poll_ms, session_ms)),
            **({"group.instance.id": instance_id} if instance_id else {}),
        }
        log = self._logs / f"{group}.{client_id}.log" if self._logs is not None else None
        consumer = ConsumerProcess(self.kinds[kind], topic, config, habits or {}, log)
        self.started.append(consumer)
        return consumer

    def kill_all(self) -> None:
        """Kills all consumers, frozen ones too."""
        for consumer in self.started:
            consumer.kill()
