"""Sends records to a topic, and knows when all of them have arrived.

The producer is idempotent and waits for all replicas. Unless it runs with `once`, no record times out. A producer whose buffer is full
makes the sender wait, so memory stays bounded however long a broker is away.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

from confluent_kafka import KafkaError, KafkaException, Message

from jobs.common.errors import UserError
from jobs.kafka.clients import Cluster, reason, topic_metadata
from jobs.kafka.topic_records import Header

METADATA_SECONDS: Final = 10.0
STOP_SECONDS: Final = 10.0
"""How long a shipper that is being stopped waits for acknowledgements."""
ONCE_SECONDS: Final = 60.0
"""How long a record may take with `once`."""

_STEP_SECONDS: Final = 0.2
_AWAY_SECONDS: Final = 5.0
_DEFAULTS: Final[dict[str, Any]] = {
    "client.id": "rebalance-ship",
    "linger.ms": 20,
    "queue.buffering.max.kbytes": 32 * 1024,
    "reconnect.backoff.max.ms": 2_000,
    "partitioner": "murmur2_random",  # that of Java's clients
}
_OVERHEAD_BYTES: Final = 4_096  # of a record, for headers and the like


class DeliveryError(Exception):
    """Some records were refused; how many of the others arrived is not known. The message says why."""


class StoppedError(Exception):
    """The shipper was stopped, and what it had sent was not acknowledged in time."""


@dataclass
class Outbox:
    """A producer for one topic."""

    cluster: Cluster
    topic: str
    stopped: Callable[[], bool]
    complain: Callable[[str], None]
    once: bool = False
    """A cluster that is away is an error, after `metadata_seconds`. Otherwise the outbox waits for it."""
    compression: str = "lz4"
    """As of Kafka's `compression.type`, unless the cluster's settings have one."""
    metadata_seconds: float = METADATA_SECONDS

    def __post_init__(self) -> None:
        self.partitions = 0
        self.max_bytes = int(self.cluster.setting("message.max.bytes") or 1_000_000) - _OVERHEAD_BYTES
        self._refused: KafkaError | None = None
        self._away_since: float | None = None
        self._complained = False
        self._producer = self._new_producer()

    def connect(self) -> bool:
        """Finds out how many partitions the topic has; False if stopped before. UserError: there is no such topic."""
        complained = False
        while not self.stopped():
            try:
                topic = topic_metadata(self._producer, self.topic, self.metadata_seconds, stopped=self.stopped).topics[self.topic]
            except KafkaException as error:
                self._producer.poll(0)
                problem = f"cannot reach a cluster at {self.cluster.bootstrap}: {self.cluster.last_error or reason(error)}"
                if self.once:
                    raise UserError(problem) from None
                if not complained:
                    self.complain(f"{problem}; still trying")
                complained = True
                continue
            if topic.error is not None:
                place = f"topic {self.topic} of {self.cluster.bootstrap}"
                raise UserError(f"cannot write to {place}: {topic.error.str()}; create it (docs/shipping.md)")
            self.partitions = len(topic.partitions)
            return True
        return False

    def refresh(self) -> None:
        """Checks whether the topic has more partitions now. A cluster that is away is no error."""
        try:
            topic = self._producer.list_topics(self.topic, timeout=_STEP_SECONDS * 5).topics.get(self.topic)
        except KafkaException:
            return
        if topic is not None and topic.error is None:
            self.partitions = max(self.partitions, len(topic.partitions))

    def send(self, value: bytes, key: bytes, headers: list[Header], partition: int = -1) -> None:
        """Hands a record to the producer; waits while its buffer is full."""
        while True:
            try:
                self._producer.produce(self.topic, value, key, partition, self._on_delivery, headers=headers)
            except BufferError:  # noqa: PERF203 - each attempt may fail
                self._producer.poll(_STEP_SECONDS)
                self._check_progress()
                if self.stopped() and self._away_since is not None and time.monotonic() - self._away_since > STOP_SECONDS:
                    raise StoppedError from None
            except KafkaException as error:
                raise DeliveryError(reason(error)) from None
            else:
                return

    def settle(self) -> None:
        """Waits until all records that were sent have arrived. DeliveryError, StoppedError: they have not."""
        until: float | None = None
        while self._producer.flush(_STEP_SECONDS):
            self._check_progress()
            if self.stopped():
                until = until or time.monotonic() + STOP_SECONDS
                if time.monotonic() > until:
                    raise StoppedError
        if self._refused is not None:
            raise DeliveryError(self._refused.str())
        if self._complained:
            self.complain(f"{self.cluster.bootstrap} acknowledges again")
        self._away_since, self._complained = None, False

    def renew(self) -> None:
        """Forgets records that did not arrive, and starts a new producer."""
        self.close()
        self._producer = self._new_producer()
        self._refused = None

    def close(self) -> None:
        """Drops records that did not arrive."""
        self._producer.purge()
        self._producer.flush(1)

    def _check_progress(self) -> None:
        """Complains once when nothing is acknowledged for some seconds. DeliveryError: a record was refused."""
        if self._refused is not None:
            raise DeliveryError(self._refused.str())
        now = time.monotonic()
        self._away_since = self._away_since or now
        if not self._complained and now - self._away_since > _AWAY_SECONDS:
            self._complained = True
            detail = f": {self.cluster.last_error}" if self.cluster.last_error else ""
            self.complain(f"{self.cluster.bootstrap} acknowledges nothing{detail}; waiting, nothing is lost")

    def _on_delivery(self, error: KafkaError | None, _message: Message) -> None:
        if error is None:
            self._away_since = None
        elif self._refused is None:
            self._refused = error

    def _new_producer(self) -> Any:
        timeout_ms = int(ONCE_SECONDS * 1000) if self.once else 0
        defaults = _DEFAULTS | {"compression.type": self.compression}
        return self.cluster.producer(defaults, {"enable.idempotence": True, "acks": "all", "message.timeout.ms": timeout_ms})
