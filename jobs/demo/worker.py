"""One real consumer in a process of its own: it polls, and does what its standard input says (consumers.py is the other end).

    python -m jobs.demo.worker java orders '{"bootstrap.servers": "127.0.0.1:9092", "group.id": "orders-app"}'

Commands, a line each: `stall SECONDS` (nobody calls poll, heartbeats go on), `commit`, `leave`. The end of the input ends it at once.
It says `assigned N` when it has other partitions than before, `left`, or `failed REASON` and ends.
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
from jobs.demo.client import JAVA, Client, FailedError, RefusedError


def _work(client: Client, commands: queue.SimpleQueue[str]) -> None:
    had = 0
    while True:
        while not commands.empty():
            command, _, argument = commands.get().partition(" ")
            if command == "leave":
                client.close()
                _say("left")
                return
            if command == "stall":
                time.sleep(float(argument))
            elif command == "commit":
                try:
                    client.commit()
                    _say("committed")
                except RefusedError as error:
                    _say(f"refused {error}")
        client.poll()
        if (has := client.assigned()) != had:
            had = has
            _say(f"assigned {has}")


def _say(text: str) -> None:
    print(text, flush=True)  # noqa: T201 - the other end reads it


def _listen(commands: queue.SimpleQueue[str]) -> None:
    for line in sys.stdin:
        commands.put(line.strip())
    os._exit(1)  # without a word to the group, as when it is killed: who gave the commands is gone


def _client(kind: str, topic: str, config: Mapping[str, str]) -> Client:
    if kind == JAVA:
        from jobs.demo.java_client import JavaClient

        return JavaClient(topic, config)
    from jobs.demo.librdkafka_client import LibrdkafkaClient

    return LibrdkafkaClient(topic, config)


def main() -> int:
    """Entry; returns the exit code."""
    end_with_parent()
    kind, topic, config = sys.argv[1:]
    commands: queue.SimpleQueue[str] = queue.SimpleQueue()
    threading.Thread(target=_listen, args=(commands,), daemon=True).start()
    try:
        _work(_client(kind, topic, json.loads(config)), commands)
    except FailedError as error:
        _say(f"failed {error}")
        return 1
    return 0


if __name__ == "__main__":
    code = main()
    sys.stdout.flush()
    os._exit(code)  # neither the thread that listens nor a gateway's ends by itself
