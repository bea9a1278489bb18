"""Real consumers, each in a process of its own, and what can be done to them: what operators see happen to applications.

    with Consumers(broker.bootstrap) as consumers:
        one = consumers.start(JAVA, "orders-app", "orders-1", "orders")
        one.freeze()

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
from types import TracebackType
from typing import TYPE_CHECKING, Final

from jobs.common.places import PROJECT
from jobs.demo.client import JAVA, LIBRDKAFKA

if TYPE_CHECKING:
    from typing_extensions import Self

__all__ = ["JAVA", "LIBRDKAFKA", "Consumers", "LiveConsumer"]

SESSION_MS: Final = 6_000
HEARTBEAT_MS: Final = 1_000
POLL_MS: Final = 300_000


class LiveConsumer:
    """A consumer that runs. `said`: the lines of its worker (worker.py), so far."""

    def __init__(self, kind: str, topic: str, config: dict[str, str], log: Path | None) -> None:
        self.kind = kind
        self.client_id = config["client.id"]
        self.said: list[str] = []
        with (log or Path(os.devnull)).open("ab") as errors:
            # A session, and so a process group, of its own: Ctrl-C is for us, and a signal reaches its JVM as well.
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
        """Whether its process lives, be it frozen."""
        return self._process.poll() is None

    @property
    def partitions(self) -> int:
        """How many it has, as it says."""
        told = [line for line in self.said if line.startswith("assigned ")]
        return int(told[-1].split()[1]) if told else 0

    @property
    def failure(self) -> str | None:
        """Why it ended by itself, if it did."""
        return next((line.removeprefix("failed ") for line in self.said if line.startswith("failed ")), None)

    def stall(self, seconds: float) -> None:
        """The application is busy: nobody polls, while the client goes on with its heartbeats."""
        self._tell(f"stall {seconds}")

    def commit(self) -> None:
        """Commits offsets when it next polls."""
        self._tell("commit")

    def leave(self) -> None:
        """Closes: the group is told, unless the member is static."""
        self._tell("leave")

    def freeze(self) -> None:
        """SIGSTOP: as a long pause of garbage collection, or a machine that is suspended."""
        self._signal(signal.SIGSTOP)

    def thaw(self) -> None:
        """SIGCONT."""
        self._signal(signal.SIGCONT)

    def kill(self) -> None:
        """SIGKILL: the group is told nothing."""
        self._signal(signal.SIGKILL)
        self._process.wait()

    def _tell(self, command: str) -> None:
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(f"{command}\n")
            self._process.stdin.flush()
        except BrokenPipeError:
            return  # it failed before

    def _signal(self, number: int) -> None:
        if self.running:
            os.killpg(self._process.pid, number)

    def _listen(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            self.said.append(line.strip())


class Consumers:
    """Those of one cluster. Use it as a context: who still runs at its end is killed."""

    def __init__(self, bootstrap: str, logs: Path | None = None) -> None:
        """`logs`: a folder for what clients write to standard error."""
        self._bootstrap = bootstrap
        self._logs = logs
        self.started: list[LiveConsumer] = []
        if logs is not None:
            logs.mkdir(parents=True, exist_ok=True)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
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
    ) -> LiveConsumer:
        """Starts a consumer that joins the group. `poll_ms`: its max.poll.interval.ms. Client ids may be given twice."""
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
        consumer = LiveConsumer(kind, topic, config, log)
        self.started.append(consumer)
        return consumer

    def kill_all(self) -> None:
        """Kills all of them, frozen ones too."""
        for consumer in self.started:
            consumer.kill()
