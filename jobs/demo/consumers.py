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
from pathlib import Path
from typing import TYPE_CHECKING, Final

from jobs.common.places import PROJECT

if TYPE_CHECKING:
    from typing_extensions import Self

SESSION_MS: Final = 6_000
HEARTBEAT_MS: Final = 1_000
POLL_MS: Final = 300_000


class ConsumerProcess:
    """A running consumer. `lines`: the output of its worker (worker.py) so far."""

    def __init__(self, kind: str, topic: str, config: dict[str, str], log: Path | None) -> None:
        self.client_id = config["client.id"]
        self.lines: list[str] = []
        with (log or Path(os.devnull)).open("ab") as errors:
            # Its own session, and so its own process group: Ctrl-C does not reach it, and a signal to the group reaches its JVM too.
            self._process = subprocess.Popen(  # noqa: S603
                [sys.executable, "-m", "jobs.demo.worker", kind, topic, json.dumps(config)],
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
        self._command(f"stall {seconds}")

    def commit(self) -> None:
        """Commits offsets at the next poll."""
        self._command("commit")

    def leave(self) -> None:
        """Closes the consumer, which leaves its group unless the member is static."""
        self._command("leave")

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

    def _command(self, line: str) -> None:
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(f"{line}\n")
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


class Consumers:
    """The consumers of one cluster. Use it as a context, whose end kills those that still run."""

    def __init__(self, bootstrap: str, logs: Path | None = None) -> None:
        """`logs`: the folder for what clients write to standard error."""
        self._bootstrap = bootstrap
        self._logs = logs
        self._started: list[ConsumerProcess] = []
        if logs is not None:
            logs.mkdir(parents=True, exist_ok=True)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.kill_all()

    def start(
        self,
        kind: str,
        group: str,
        client_id: str,
        topic: str,
        *,
        instance_id: str = "",
        session_ms: int = SESSION_MS,
        poll_ms: int = POLL_MS,
    ) -> ConsumerProcess:
        """Starts a consumer that joins the group. `poll_ms`: its max.poll.interval.ms. Several consumers may have one client id."""
        config = {
            "bootstrap.servers": self._bootstrap,
            "group.id": group,
            "client.id": client_id,
            "session.timeout.ms": str(session_ms),
            "heartbeat.interval.ms": str(HEARTBEAT_MS),
            "max.poll.interval.ms": str(max(poll_ms, session_ms)),
            **({"group.instance.id": instance_id} if instance_id else {}),
        }
        log = self._logs / f"{group}.{client_id}.log" if self._logs is not None else None
        consumer = ConsumerProcess(kind, topic, config, log)
        self._started.append(consumer)
        return consumer

    def kill_all(self) -> None:
        """Kills all consumers, frozen ones too."""
        for consumer in self._started:
            consumer.kill()
