"""Asks the cluster of a topic for a sign of life, all the time: Spark notices only after minutes that it is away, and then fails.

A run that follows a topic waits for a cluster that is away. It says so in a line, `rebalance health` shows it, and the run goes on by
itself when the cluster answers again.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from confluent_kafka import KafkaException

from jobs.kafka.clients import Cluster, reason
from jobs.pipeline.topic_input import TopicInput

if TYPE_CHECKING:
    from typing_extensions import Self

EVERY_SECONDS: Final = 5.0
ANSWER_SECONDS: Final = 5.0
"""How long an answer may take. Two that do not come in a row mean that the cluster is away."""
_STEP_SECONDS: Final = 0.2


class TopicWatch:
    """Watches the cluster of a topic in a thread, for as long as this context lasts.

    `warn` gets a line when the cluster goes away, and one when it is back.
    """

    def __init__(self, topic: TopicInput, warn: Callable[[str], None]) -> None:
        """UserError: the client's settings are wrong."""
        self._topic = topic
        self._cluster = Cluster(topic.bootstrap, topic.config)
        self._admin = self._cluster.unconnected_admin()
        self._warn = warn
        self._answered = threading.Event()
        self._end = threading.Event()
        self._thread = threading.Thread(target=self._work, name="topic-watch", daemon=True)
        self._away: str | None = None
        self.outages = 0
        """How often the cluster went away."""

    def away(self) -> str | None:
        """Why the cluster does not answer; None while it does."""
        return self._away

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._end.set()  # without waiting for an answer that is due

    def wait(self, stopped: Callable[[], bool]) -> bool:
        """Waits for the first answer of the cluster, or its refusal of the login; False if stopped before."""
        while not self._answered.wait(_STEP_SECONDS):
            if stopped():
                return False
            if self._cluster.login_refused:
                break
        return True

    def _work(self) -> None:
        silent_since, problem = 0.0, ""
        while not self._end.is_set():
            asked = time.monotonic()
            before, problem = problem, self._ask()
            if not problem:
                self._answered.set()
                if self._away is not None:
                    self._away = None
                    self._warn(f"{self._topic.bootstrap} answers again after {time.monotonic() - silent_since:.0f} s")
            elif self._away is not None:
                self._away = problem
            elif before:
                self.outages += 1
                self._away = problem
                self._warn(f"cannot reach a cluster at {self._topic.bootstrap}: {problem}; waiting for it, nothing is lost")
            else:
                silent_since = asked
            self._end.wait(EVERY_SECONDS)

    def _ask(self) -> str:
        """Why there is no answer; empty if there is one."""
        try:
            self._admin.list_topics(self._topic.topic, timeout=ANSWER_SECONDS)
        except KafkaException as error:
            self._admin.poll(0)  # brings the reason
            return self._cluster.last_error or reason(error)
        return ""
