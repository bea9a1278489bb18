"""One real consumer in its own process, which polls and obeys its standard input (consumers.py is the other end).

    python -m jobs.demo.worker jobs.demo.java_consumer:JavaConsumer orders '{"bootstrap.servers": "127.0.0.1:9092", "group.id": "a"}' '{}'

The last argument holds its Habits. A line of its input is a method of Application and its arguments, such as ["stall", 5]. It ends at
once when its input is closed. A topic that begins with ^ is a regular expression. Without a topic it writes `ready`, and joins when it is
told to subscribe. It writes `assigned N` when the number of its partitions changes, `committed` or `refused REASON` after a commit that it
was told, `left` or `failed REASON` before it ends, and a line of JSON for each record that it processes, if it notes them.
"""

from __future__ import annotations

import json
import os
import queue
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from pkgutil import resolve_name
from typing import TYPE_CHECKING

from jobs.demo.bound import end_with_parent
from jobs.demo.real_consumer import POLL_SECONDS, CommitRefusedError, ConsumerFailedError, Habits, Place, Record

if TYPE_CHECKING:
    from jobs.demo.java_consumer import JavaConsumer
    from jobs.demo.librdkafka_consumer import LibrdkafkaConsumer


class Application:
    """Polls, and processes records: it notes them before it commits."""

    def __init__(self, consumer: JavaConsumer | LibrdkafkaConsumer, habits: Habits, *, subscribed: bool) -> None:
        self.ended = False
        self._consumer = consumer
        self._habits = habits
        self._subscribed = subscribed
        self._assigned = 0
        self._positions: dict[Place, int] = {}
        self._new: dict[Place, int] = {}
        self._count = 0

    def poll(self) -> None:
        """Polls once, and processes what comes."""
        if not self._subscribed:
            time.sleep(POLL_SECONDS)
            return
        try:
            self._process(self._consumer.poll())
        except CommitRefusedError as error:
            sys.stderr.write(f"commit: {error}\n")
        if (assigned := self._consumer.assigned()) != self._assigned:
            self._assigned = assigned
            _report(f"assigned {assigned}")

    def stall(self, seconds: float) -> None:
        """Does not poll, while the client keeps sending heartbeats."""
        time.sleep(seconds)

    def subscribe(self, *topics: str) -> None:
        """Subscribes to these topics, in the place of the former ones."""
        self._consumer.subscribe(topics)
        self._subscribed = True

    def pause(self, partition: int) -> None:
        """Keeps a partition, and reads no longer from it."""
        self._consumer.pause(self._places(partition))

    def resume(self, partition: int) -> None:
        """Reads from it again."""
        self._consumer.resume(self._places(partition))

    def commit(self) -> None:
        """Commits its position in each of its partitions: 0 where it has processed nothing."""
        positions = self._positions | self._new
        try:
            self._commit({place: positions.get(place, 0) for place in self._consumer.places()})
            _report("committed")
        except CommitRefusedError as error:
            _report(f"refused {error}")

    def leave(self) -> None:
        """Closes the consumer. One that commits by itself does it before."""
        if self._habits.commit_every:
            self._commit_new()
        self._consumer.close()
        self.ended = True
        _report("left")

    def _places(self, partition: int) -> list[Place]:
        return [place for place in self._consumer.places() if place.partition == partition]

    def _process(self, records: Sequence[Record]) -> None:
        for place, offset in records:
            time.sleep(self._habits.record_seconds)
            if self._habits.notes:
                _report(json.dumps({"at": time.time_ns() // 1_000_000, "partition": place.partition, "offset": offset}))
            self._new[place] = offset + 1
        self._count += len(records)
        if self._habits.commit_every and self._count >= self._habits.commit_every:
            self._commit_new()

    def _commit_new(self) -> None:
        self._commit({place: self._new[place] for place in self._consumer.places() if place in self._new})

    def _commit(self, positions: Mapping[Place, int]) -> None:
        self._positions |= self._new
        self._new, self._count = {}, 0
        self._consumer.commit(positions)


def _report(text: str) -> None:
    print(text, flush=True)  # noqa: T201 - the other end reads it


def _listen(commands: queue.SimpleQueue[list[object]]) -> None:
    for line in sys.stdin:
        commands.put(json.loads(line))
    os._exit(1)  # does not leave the group: to its coordinator it was killed


def main() -> int:
    """Runs the consumer; returns the exit code."""
    end_with_parent()
    kind, topic, config, habits = resolve_name(sys.argv[1]), sys.argv[2], json.loads(sys.argv[3]), Habits(**json.loads(sys.argv[4]))
    commands: queue.SimpleQueue[list[object]] = queue.SimpleQueue()
    threading.Thread(target=_listen, args=(commands,), daemon=True).start()
    try:
        application = Application(kind(topic, config, habits.revocation_seconds), habits, subscribed=bool(topic))
        if not topic:
            _report("ready")
        while not application.ended:
            if commands.empty():
                application.poll()
            else:
                command, *arguments = commands.get()
                getattr(application, str(command))(*arguments)
    except ConsumerFailedError as error:
        _report(f"failed {error}")
        return 1
    return 0


if __name__ == "__main__":
    code = main()
    sys.stdout.flush()
    os._exit(code)  # the listening thread and Py4J's would keep the process alive
