"""A producer that writes to each partition of its topics at a constant rate, and notes what the broker acknowledged."""

from __future__ import annotations

import json
import threading
import time
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Final

from confluent_kafka import KafkaError, Message, Producer

if TYPE_CHECKING:
    from typing_extensions import Self

TICK_SECONDS: Final = 0.25
"""Each partition gets a record so often."""


class SteadyProducer:
    """Use it as a context. A record's value is its number within its topic. It makes up for a tick that came late."""

    def __init__(self, bootstrap: str, log: Path) -> None:
        """`log`: gets a line for each acknowledged record: its time (epoch ms), topic, partition and offset."""
        self._producer = Producer({"bootstrap.servers": bootstrap, "client.id": "producer", "linger.ms": "20", "log_level": 0})
        self._log = log.open("a", encoding="utf-8")
        self._lock = threading.Lock()
        self._topics: dict[str, int] = {}
        self._sent: Counter[str] = Counter()
        self._ends: dict[tuple[str, int], int] = {}
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._run, name="producer", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stopped.set()
        self._thread.join()
        self._producer.flush(10)
        self._log.close()

    def start(self, topic: str, partitions: int) -> None:
        """Writes to a topic from now on."""
        with self._lock:
            self._topics[topic] = partitions

    def stop(self, topic: str) -> None:
        """Writes to it no longer."""
        with self._lock:
            self._topics.pop(topic, None)

    def writes(self, topic: str) -> bool:
        """Whether it writes to it."""
        with self._lock:
            return topic in self._topics

    def ends(self, topic: str) -> dict[int, int]:
        """The offset behind the last acknowledged record, by partition."""
        with self._lock:
            return {partition: end for (name, partition), end in self._ends.items() if name == topic}

    def _run(self) -> None:
        due = time.monotonic()
        while not self._stopped.is_set():
            with self._lock:
                topics = sorted(self._topics.items())
            for topic, partitions in topics:
                for partition in range(partitions):
                    value = str(self._sent[topic]).encode()
                    self._producer.produce(topic, value, partition=partition, on_delivery=self._acknowledged)
                    self._sent[topic] += 1
            self._producer.poll(0)
            due += TICK_SECONDS
            while (rest := due - time.monotonic()) > 0:
                self._producer.poll(rest)

    def _acknowledged(self, error: KafkaError | None, message: Message) -> None:
        if error is not None:
            raise RuntimeError(f"a record was not written: {error.str()}")
        topic, partition, offset = message.topic() or "", message.partition() or 0, message.offset() or 0
        line = {"at": message.timestamp()[1], "topic": topic, "partition": partition, "offset": offset}
        self._log.write(json.dumps(line, separators=(",", ":")) + "\n")
        with self._lock:
            self._ends[topic, partition] = offset + 1
