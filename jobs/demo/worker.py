"""One real consumer in its own process, which polls and obeys its standard input (consumers.py is the other end).

    python -m jobs.demo.worker jobs.demo.java_consumer:JavaConsumer orders '{"bootstrap.servers": "127.0.0.1:9092", "group.id": "a"}' '{}'

The last argument holds its Habits. Commands, one a line: `stall SECONDS` (does not poll, but sends heartbeats), `subscribe TOPIC,TOPIC`,
`pause PARTITION` (keeps it, but reads no longer from it), `resume PARTITION`, `commit`, `leave`. It ends at once when its input is closed.
A topic that begins with ^ is a regular expression. Without a topic it writes `ready`, and joins when it is told to subscribe.
It writes `assigned N` when the number of its partitions changes, `committed` or `refused REASON` after a commit that it was told, and
`left` or `failed REASON` before it ends.
"""

from __future__ import annotations

import json
import os
import queue
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from pkgutil import resolve_name

from jobs.demo.bound import end_with_parent
from jobs.demo.real_consumer import (
    POLL_SECONDS,
    CommitRefusedError,
    ConsumerFailedError,
    Habits,
    Place,
    RealConsumer,
    Record,
)


class _Application:
    """Processes records: it notes them in its file before it commits."""

    def __init__(self, consumer: RealConsumer, client_id: str, habits: Habits) -> None:
        self._consumer = consumer
        self._client_id = client_id
        self._commit_every = habits.commit_every
        self._record_seconds = habits.record_seconds
        self._file = Path(habits.processed or os.devnull).open("a", encoding="utf-8")  # noqa: SIM115 - until the process ends
        self._positions: dict[Place, int] = {}
        self._new: dict[Place, int] = {}
        self._count = 0

    def process(self, records: Sequence[Record]) -> None:
        """Processes what a poll returned."""
        for place, offset in records:
            time.sleep(self._record_seconds)
            line = {"at": time.time_ns() // 1_000_000, "client": self._client_id, **place._asdict(), "offset": offset}
            self._file.write(f"{json.dumps(line, separators=(',', ':'))}\n")
            self._file.flush()
            self._new[place] = offset + 1
        self._count += len(records)
        if self._commit_every and self._count >= self._commit_every:
            self._commit({place: self._new[place] for place in self._consumer.places() if place in self._new})

    def close(self) -> None:
        """Closes the consumer. One that commits by itself does it before."""
        if self._commit_every:
            self._commit({place: self._new[place] for place in self._consumer.places() if place in self._new})
        self._consumer.close()

    def commit(self) -> None:
        """Commits its position in each of its partitions: 0 where it has processed nothing."""
        positions = self._positions | self._new
        self._commit({place: positions.get(place, 0) for place in self._consumer.places()})

    def _commit(self, positions: Mapping[Place, int]) -> None:
        self._positions |= self._new
        self._new, self._count = {}, 0
        self._consumer.commit(positions)


def _work(consumer: RealConsumer, application: _Application, commands: queue.SimpleQueue[str], topic: str) -> None:
    partitions = 0
    subscribed = bool(topic)
    if not subscribed:
        _report("ready")
    while True:
        while not commands.empty():
            command, _, argument = commands.get().partition(" ")
            if command == "leave":
                application.close()
                _report("left")
                return
            if command == "stall":
                time.sleep(float(argument))
            elif command == "subscribe":
                consumer.subscribe(argument.split(","))
                subscribed = True
            elif command in {"pause", "resume"}:
                getattr(consumer, command)([place for place in consumer.places() if place.partition == int(argument)])
            elif command == "commit":
                try:
                    application.commit()
                    _report("committed")
                except CommitRefusedError as error:
                    _report(f"refused {error}")
        if not subscribed:
            time.sleep(POLL_SECONDS)
            continue
        try:
            application.process(consumer.poll())
        except CommitRefusedError as error:
            sys.stderr.write(f"commit: {error}\n")
        if (assigned := consumer.assigned()) != partitions:
            partitions = assigned
            _report(f"assigned {assigned}")


def _report(text: str) -> None:
    print(text, flush=True)  # noqa: T201 - the other end reads it


def _listen(commands: queue.SimpleQueue[str]) -> None:
    for line in sys.stdin:
        commands.put(line.strip())
    os._exit(1)  # does not leave the group: to its coordinator it was killed


def main() -> int:
    """Runs the consumer; returns the exit code."""
    end_with_parent()
    kind, topic, config, habits = resolve_name(sys.argv[1]), sys.argv[2], json.loads(sys.argv[3]), Habits(**json.loads(sys.argv[4]))
    commands: queue.SimpleQueue[str] = queue.SimpleQueue()
    threading.Thread(target=_listen, args=(commands,), daemon=True).start()
    try:
        consumer: RealConsumer = kind(topic, config, habits.revocation_seconds)
        _work(consumer, _Application(consumer, config["client.id"], habits), commands, topic)
    except ConsumerFailedError as error:
        _report(f"failed {error}")
        return 1
    return 0


if __name__ == "__main__":
    code = main()
    sys.stdout.flush()
    os._exit(code)  # the listening thread and Py4J's would keep the process alive
