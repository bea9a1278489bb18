"""One real consumer in its own process, which polls and obeys its standard input (consumers.py is the other end).

    python -m jobs.demo.worker java orders '{"bootstrap.servers": "127.0.0.1:9092", "group.id": "orders-app"}' 0

The last argument is how many seconds its rebalance listener takes before it gives partitions up. Commands, one a line: `stall SECONDS`
(does not poll, but sends heartbeats), `subscribe TOPIC,TOPIC`, `commit`, `leave`. It ends at once when its input is closed. A topic that
begins with ^ is a regular expression. Without a topic it writes `ready`, and joins when it is told to subscribe.
It writes `assigned N` when the number of its partitions changes, `committed` or `refused REASON` after a commit, and `left` or `failed
REASON` before it ends.
"""

from __future__ import annotations

import json
import os
import queue
import sys
import threading
import time
from collections.abc import Mapping

from jobs.demo.bound import end_with_parent
from jobs.demo.real_consumer import JAVA, POLL_SECONDS, CommitRefusedError, ConsumerFailedError, RealConsumer


def _work(consumer: RealConsumer, commands: queue.SimpleQueue[str], topic: str) -> None:
    partitions = 0
    subscribed = bool(topic)
    if not subscribed:
        _report("ready")
    while True:
        while not commands.empty():
            command, _, argument = commands.get().partition(" ")
            if command == "leave":
                consumer.close()
                _report("left")
                return
            if command == "stall":
                time.sleep(float(argument))
            elif command == "subscribe":
                consumer.subscribe(argument.split(","))
                subscribed = True
            elif command == "commit":
                try:
                    consumer.commit()
                    _report("committed")
                except CommitRefusedError as error:
                    _report(f"refused {error}")
        if not subscribed:
            time.sleep(POLL_SECONDS)
            continue
        consumer.poll()
        if (assigned := consumer.assigned()) != partitions:
            partitions = assigned
            _report(f"assigned {assigned}")


def _report(text: str) -> None:
    print(text, flush=True)  # noqa: T201 - the other end reads it


def _listen(commands: queue.SimpleQueue[str]) -> None:
    for line in sys.stdin:
        commands.put(line.strip())
    os._exit(1)  # does not leave the group: to its coordinator it was killed


def _consumer(kind: str, topic: str, config: Mapping[str, str], revocation_seconds: float) -> RealConsumer:
    if kind == JAVA:
        from jobs.demo.java_consumer import JavaConsumer

        return JavaConsumer(topic, config, revocation_seconds)
    from jobs.demo.librdkafka_consumer import LibrdkafkaConsumer

    return LibrdkafkaConsumer(topic, config, revocation_seconds)


def main() -> int:
    """Runs the consumer; returns the exit code."""
    end_with_parent()
    kind, topic, config, revocation_seconds = sys.argv[1:]
    commands: queue.SimpleQueue[str] = queue.SimpleQueue()
    threading.Thread(target=_listen, args=(commands,), daemon=True).start()
    try:
        _work(_consumer(kind, topic, json.loads(config), float(revocation_seconds)), commands, topic)
    except ConsumerFailedError as error:
        _report(f"failed {error}")
        return 1
    return 0


if __name__ == "__main__":
    code = main()
    sys.stdout.flush()
    os._exit(code)  # the listening thread and Py4J's would keep the process alive
