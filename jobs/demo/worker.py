"""One real consumer in its own process, which polls and obeys its standard input (consumers.py is the other end).

    python -m jobs.demo.worker jobs.demo.java_consumer:JavaConsumer orders '{"bootstrap.servers": "127.0.0.1:9092", "group.id": "a"}' '{}'

The last argument holds further arguments of the class. A line of its input is a command and its arguments, such as ["stall", 5]: `stall`,
`leave`, or a method of the consumer. It ends at once when its input is closed. It writes `assigned N` when the number of its partitions
changes, and `left` or `failed REASON` before it ends.
"""

from __future__ import annotations

import json
import os
import queue
import sys
import threading
import time
from pkgutil import resolve_name
from typing import TYPE_CHECKING

from jobs.demo.bound import end_with_parent
from jobs.demo.consumers import ConsumerFailedError

if TYPE_CHECKING:
    from jobs.demo.java_consumer import JavaConsumer
    from jobs.demo.librdkafka_consumer import LibrdkafkaConsumer


def report(text: str) -> None:
    """Writes a line for the other end."""
    print(text, flush=True)  # noqa: T201 - this is its protocol


def _listen(commands: queue.SimpleQueue[list[object]]) -> None:
    for line in sys.stdin:
        commands.put(json.loads(line))
    os._exit(1)  # does not leave the group: to its coordinator it was killed


def _run(consumer: JavaConsumer | LibrdkafkaConsumer, commands: queue.SimpleQueue[list[object]]) -> None:
    """Polls until it has left. ConsumerFailedError: it cannot continue."""
    known = 0
    while True:
        if commands.empty():
            consumer.poll()
            if (assigned := consumer.assigned()) != known:
                known = assigned
                report(f"assigned {assigned}")
            continue
        name, *arguments = commands.get()
        if name == "stall":  # the client keeps sending heartbeats
            time.sleep(float(str(arguments[0])))
        elif name == "leave":
            consumer.close()
            report("left")
            return
        else:
            getattr(consumer, str(name))(*arguments)


def main() -> int:
    """Runs the consumer; returns the exit code."""
    end_with_parent()
    kind, topic, config, habits = resolve_name(sys.argv[1]), sys.argv[2], json.loads(sys.argv[3]), json.loads(sys.argv[4])
    commands: queue.SimpleQueue[list[object]] = queue.SimpleQueue()
    threading.Thread(target=_listen, args=(commands,), daemon=True).start()
    try:
        _run(kind(topic, config, **habits), commands)
    except ConsumerFailedError as error:
        report(f"failed {error}")
        return 1
    return 0


if __name__ == "__main__":
    code = main()
    sys.stdout.flush()
    os._exit(code)  # the listening thread and Py4J's would keep the process alive
