"""Sends records to a topic and knows when all of them have arrived.

The producer is idempotent and waits for all replicas; nothing times out while somebody may still wait for it. What the producer
cannot hold makes the sender wait: memory stays bounded however long a broker is away.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, Final

from confluent_kafka import KafkaError, KafkaException, Message

from jobs.common.errors import UserError
from jobs.kafka.clients import Cluster, reason
from jobs.kafka.topic_records import Header

STOP_SECONDS: Final = 10.0
"""How long to wait for acknowledgements after somebody asked to stop."""
ONCE_SECONDS: Final = 60.0
"""How long a record may take where nobody waits for ever."""

_METADATA_SECONDS: Final = 10.0
_STEP_SECONDS: Final = 0.2
_AWAY_SECONDS: Final = 5.0
_DEFAULTS: Final[dict[str, Any]] = {
    "client.id": "rebalance-ship",
    "compression.type": "lz4",
    "linger.ms": 20,
    "queue.buffering.max.kbytes": 32 * 1024,
    "reconnect.backoff.max.ms": 2_000,
    "partitioner": "murmur2_random",  # that of Java's clients
}


class DeliveryError(Exception):
    """Some records were refused; how many of the others arrived is not known. The message says why."""


class StoppedError(Exception):
    """Somebody asked to stop, and what was sent did not arrive in time."""


class Outbox:
    """A producer for one topic."""

    def __init__(
        self, cluster: Cluster, topic: str, *, stopped: Callable[[], bool], complain: Callable[[str], None], once: bool = False
    ) -> None:
        """`once`: a cluster that is away is an error after a minute. Without it, it is waited for."""
        self.topic = topic
        self.partitions = 0
        self.delivered = 0
        self._cluster = cluster
        self._stopped = stopped
        self._complain = complain
        self._once = once
        self._sent = 0
        self._refused: KafkaError | None = None
        self._away_since: float | None = None
        self._told = False
        self._producer = self._new_producer()
        self.max_bytes = self._max_bytes(cluster)

    def connect(self) -> bool:
        """Finds out how many partitions the topic has; False if stopped before. UserError: there is no such topic."""
        complained = False
        while not self._stopped():
            try:
                found = self._producer.list_topics(self.topic, timeout=_METADATA_SECONDS).topics.get(self.topic)
            except KafkaException as error:
                self._producer.poll(0)
                said = f"cannot reach a cluster at {self._cluster.bootstrap}: {self._cluster.said or reason(error)}"
                if self._once:
                    raise UserError(said) from None
                if not complained:
                    self._complain(f"{said}; trying on")
                complained = True
                continue
            if found is None or found.error is not None:
                said = f": {found.error.str()}" if found is not None and found.error is not None else ""
                raise UserError(f"cannot write to topic {self.topic} of {self._cluster.bootstrap}{said}; create it (docs/shipping.md)")
            self.partitions = len(found.partitions)
            return True
        return False

    def refresh(self) -> None:
        """Looks whether the topic has got more partitions. A cluster that is away is no error."""
        try:
            found = self._producer.list_topics(self.topic, timeout=_STEP_SECONDS * 5).topics.get(self.topic)
        except KafkaException:
            return
        if found is not None and found.error is None:
            self.partitions = max(self.partitions, len(found.partitions))

    def send(self, value: bytes, key: bytes, headers: list[Header], partition: int = -1) -> None:
        """Hands a record to the producer; waits while it has no room."""
        while True:
            try:
                self._producer.produce(self.topic, value, key, partition, self._on_delivery, headers=headers)
            except BufferError:
                self._wait(_STEP_SECONDS)
                continue
            except KafkaException as error:
                raise DeliveryError(reason(error)) from None
            self._sent += 1
            return

    def settle(self) -> None:
        """Waits until all that was sent has arrived. DeliveryError, StoppedError: it has not."""
        until: float | None = None
        while self._producer.flush(_STEP_SECONDS):
            self._look()
            if self._stopped():
                until = until or time.monotonic() + STOP_SECONDS
                if time.monotonic() > until:
                    raise StoppedError
        if self._refused is not None:
            raise DeliveryError(self._refused.str())
        if self._told:
            self._complain(f"{self._cluster.bootstrap} acknowledges again")
        self._away_since, self._told = None, False
        self.delivered += self._sent
        self._sent = 0

    def renew(self) -> None:
        """Forgets what was sent and did not arrive, and begins anew."""
        self.close()
        self._producer = self._new_producer()
        self._sent, self._refused = 0, None

    def close(self) -> None:
        """Lets go of what did not arrive."""
        self._producer.purge()
        self._producer.flush(1)

    def _wait(self, seconds: float) -> None:
        self._producer.poll(seconds)
        self._look()
        if self._stopped() and self._away_since is not None and time.monotonic() - self._away_since > STOP_SECONDS:
            raise StoppedError

    def _look(self) -> None:
        """Complains, once, that nothing is acknowledged."""
        if self._refused is not None:
            raise DeliveryError(self._refused.str())
        now = time.monotonic()
        self._away_since = self._away_since or now
        if not self._told and now - self._away_since > _AWAY_SECONDS:
            self._told = True
            said = f": {self._cluster.said}" if self._cluster.said else ""
            self._complain(f"{self._cluster.bootstrap} acknowledges nothing{said}; waiting, nothing is lost")

    def _on_delivery(self, error: KafkaError | None, _message: Message) -> None:
        if error is None:
            self._away_since = None
        elif self._refused is None:
            self._refused = error

    def _new_producer(self) -> Any:
        own = {"enable.idempotence": True, "acks": "all", "message.timeout.ms": int(ONCE_SECONDS * 1000) if self._once else 0}
        return self._cluster.producer(_DEFAULTS, own)

    @staticmethod
    def _max_bytes(cluster: Cluster) -> int:
        """Of a record: what the producer takes, less what headers and the like may need."""
        return int(cluster.setting("message.max.bytes") or 1_000_000) - 4_096
