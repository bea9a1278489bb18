"""A producer that writes to each partition of its topics at a constant rate, and notes what the broker acknowledged."""

from __future__ import annotations

import threading
import time
from collections import Counter

from confluent_kafka import Producer

TICK_SECONDS = 0.25
"""Each partition gets a record so often."""
_ACKNOWLEDGED_SECONDS = 30


class SteadyProducer:
    """Use it as a context. A record's value is its number within its topic. It makes up for a tick that came late.

    `acknowledged`: time (epoch ms), topic, partition and offset of each record.
    """

    def __init__(self, bootstrap):
        self.acknowledged = []
        self._producer = Producer({"bootstrap.servers": bootstrap, "client.id": "producer", "linger.ms": "20", "log_level": 0})
        self._changed = threading.Condition()
        self._topics = {}
        self._more = Counter()
        self._sent = Counter()
        self._ends = {}
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._run, name="producer", daemon=True)

    def __enter__(self):
        self._thread.start()
        return self

    def __exit__(self, *_):
        self._stopped.set()
        self._thread.join()
        self._producer.flush(10)

    def start(self, topic, partitions):
        """Writes to a topic from now on."""
        with self._changed:
            self._topics[topic] = partitions

    def burst(self, topic, count):
        """Writes so many more records to each partition of the topic at its next tick."""
        with self._changed:
            self._more[topic] += count

    def stop(self, topic):
        """Writes to it no longer. All that was written is acknowledged when this returns."""
        with self._changed:
            self._topics.pop(topic, None)
            self._changed.wait_for(lambda: sum(self.ends(topic).values()) == self._sent[topic], _ACKNOWLEDGED_SECONDS)

    def writes(self, topic):
        """Whether it writes to it."""
        with self._changed:
            return topic in self._topics

    def ends(self, topic):
        """The offset behind the last acknowledged record, by partition."""
        with self._changed:
            return {partition: end for (name, partition), end in self._ends.items() if name == topic}

    def _run(self):
        due = time.monotonic()
        while not self._stopped.is_set():
            with self._changed:
                for topic, partitions in sorted(self._topics.items()):
                    for partition in [*range(partitions)] * (1 + self._more.pop(topic, 0)):
                        self._producer.produce(topic, str(self._sent[topic]).encode(), partition=partition, on_delivery=self._on_delivery)
                        self._sent[topic] += 1
            self._producer.poll(0)
            due += TICK_SECONDS
            while (rest := due - time.monotonic()) > 0:
                self._producer.poll(rest)

    def _on_delivery(self, error, message):
        if error is not None:
            raise RuntimeError(f"a record was not written: {error.str()}")
        place, offset = (message.topic(), message.partition()), message.offset()
        with self._changed:
            self.acknowledged.append((message.timestamp()[1], *place, offset))
            self._ends[place] = offset + 1
            self._changed.notify_all()
