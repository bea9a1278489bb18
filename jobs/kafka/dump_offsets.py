"""`rebalance dump-offsets`: the records of `__consumer_offsets` that say what groups are, as lines of JSON (record_lines.py).

A partition is read from its first record, or behind the last one that a file has, to where it ended when the dump began.
Its records lie in a file of their own until all
partitions are read; then they are written in the order of their times, as the pipeline reads them, whatever their number. With
`follow` the dump goes on with what is written from then on, and tells every few seconds that it lives.
"""

from __future__ import annotations

import base64
import heapq
import json
import os
import re
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from datetime import datetime, timezone
from pathlib import Path
from typing import IO, Any, Final

from confluent_kafka import TIMESTAMP_NOT_AVAILABLE, Consumer, KafkaError, KafkaException, Message, TopicPartition

from jobs.common.errors import UserError
from jobs.kafka.clients import CONNECT_SECONDS, Cluster, reason
from jobs.kafka.group_metadata import GROUP_KEY

TOPIC: Final = "__consumer_offsets"
FORMAT: Final = "rebalance-offsets-1"
ALIVE_SECONDS: Final = 5.0

_BATCH: Final = 500
_WAIT_SECONDS: Final = 0.5
_PLACE: Final = re.compile(rb'"partition":(\d+),"offset":(\d+)')
_TIME: Final = re.compile(rb'"timestamp":(\d+)')
_NO_LEADER_YET: Final = frozenset(
    {KafkaError.NOT_LEADER_FOR_PARTITION, KafkaError.LEADER_NOT_AVAILABLE, KafkaError.UNKNOWN_TOPIC_OR_PART, KafkaError._UNKNOWN_PARTITION}  # noqa: SLF001
)
_GROUP_KEY: Final = GROUP_KEY.to_bytes(2, "big")


@dataclass
class Dumped:
    """What was read and what was written."""

    partitions: int = 0
    read: int = 0
    written: int = 0


@dataclass(frozen=True)
class Known:
    """Where a dump that is there ends: the last offset by partition, and the newest time in it, epoch ms (-1: none)."""

    offsets: Mapping[int, int]
    newest_ms: int = -1


class BrokersTime:
    """A time that has come on the brokers: the newest that was read, and what has passed since. This machine's clock is none of theirs."""

    def __init__(self, newest_ms: int = -1) -> None:
        self._newest_ms = newest_ms
        self._heard = time.monotonic()

    def read(self, at_ms: int) -> None:
        """A record of this time was read."""
        if at_ms > self.now_ms():
            self._newest_ms, self._heard = at_ms, time.monotonic()

    def now_ms(self) -> int:
        """Epoch ms; -1 while nothing was read."""
        return -1 if self._newest_ms < 0 else self._newest_ms + int((time.monotonic() - self._heard) * 1000)


def dump(
    cluster: Cluster,
    write: Callable[[str], object],
    *,
    stopped: Callable[[], bool],
    everything: bool = False,
    follow: bool = False,
    after: Known | None = None,
    topic: str = TOPIC,
) -> Dumped:
    """Writes the lines. `everything`: commits and other kinds of groups too. UserError: the topic cannot be read, and why.

    `after`: where an earlier dump ends, which this one continues. With `follow`, a topic that is not there is waited for.
    """
    numbers = _partitions(cluster, topic, wait=follow, stopped=stopped)
    done = Dumped(len(numbers))
    if not numbers:
        return done
    consumer = cluster.consumer()
    brokers_time = BrokersTime(after.newest_ms if after else -1)
    try:
        if after is None:
            write(_header(cluster.bootstrap))
        parts = [TopicPartition(topic, number, _first(consumer, topic, number, after)) for number in numbers]
        consumer.assign(parts)
        wanted = _all if everything else _of_groups
        with tempfile.TemporaryDirectory(prefix="rebalance-dump-") as folder, ExitStack() as files:
            spills: dict[int, IO[str]] = {}
            open_: set[int | None] = {part.partition for part in parts}
            while open_ and not stopped():
                for message in _consume(consumer, topic):
                    if message.error() is not None:
                        open_.discard(message.partition())
                        continue
                    done.read += 1
                    brokers_time.read(message.timestamp()[1])
                    if wanted(message):
                        number = message.partition() or 0
                        if number not in spills:
                            spills[number] = files.enter_context(Path(folder, str(number)).open("w+", encoding="ascii"))
                        spills[number].write(f"{message.timestamp()[1]} {line(message)}\n")
            if open_:
                return done  # half a dump would put the rest of its records after later ones
            for text in _merged(list(spills.values())):
                write(text)
                done.written += 1
        if follow:
            _follow(consumer, topic, write, wanted, done, brokers_time, stopped)
    except KafkaException as error:
        raise UserError(f"reading {topic} of {cluster.bootstrap} failed: {reason(error)}") from None
    finally:
        consumer.close()
    return done


def _partitions(cluster: Cluster, topic: str, *, wait: bool, stopped: Callable[[], bool]) -> list[int]:
    """The topic's partitions. A cluster makes it when the first group asks for its coordinator. UserError: it cannot be read."""
    while not stopped():
        known = cluster.admin().list_topics(topic, timeout=CONNECT_SECONDS).topics.get(topic)
        error = known.error if known is not None else None
        if known is not None and error is None:
            return sorted(known.partitions)
        if not wait or (error is not None and error.code() != KafkaError.UNKNOWN_TOPIC_OR_PART):
            said = f": {error.str()}" if error is not None else ""
            raise UserError(f"cannot read {topic} of {cluster.bootstrap}{said}; no group has committed yet, or reading it is not allowed")
        time.sleep(_WAIT_SECONDS)
    return []


def _follow(
    consumer: Consumer,
    topic: str,
    write: Callable[[str], object],
    wanted: Callable[[Message], bool],
    done: Dumped,
    brokers_time: BrokersTime,
    stopped: Callable[[], bool],
) -> None:
    """Writes what comes, and every few seconds a sign of life: what was written before is past, though nobody writes anything more."""
    told = time.monotonic()
    while not stopped():
        for message in _consume(consumer, topic):
            if message.error() is not None:
                continue
            done.read += 1
            brokers_time.read(message.timestamp()[1])
            if wanted(message):
                write(line(message))
                done.written += 1
        now = time.monotonic()
        if brokers_time.now_ms() >= 0 and now - told >= ALIVE_SECONDS:
            told = now
            write(json.dumps({"timestamp": brokers_time.now_ms(), "read": done.read}, separators=(",", ":")))


def line(message: Message) -> str:
    """One record as a line."""
    kind, at_ms = message.timestamp()
    record = {
        "timestamp": -1 if kind == TIMESTAMP_NOT_AVAILABLE else at_ms,
        "partition": message.partition(),
        "offset": message.offset(),
        "key": _base64(message.key()),
        "value": _base64(message.value()),
    }
    return json.dumps(record, separators=(",", ":"))


def _header(bootstrap: str) -> str:
    began = datetime.now(timezone.utc).isoformat(timespec="milliseconds")
    return json.dumps({"format": FORMAT, "from": bootstrap, "began": began}, separators=(",", ":"))


def _first(consumer: Consumer, topic: str, number: int, after: Known | None) -> int:
    """Where to begin. A topic that was made anew ends before the record that is known of it."""
    low, high = _watermarks(consumer, topic, number)
    following = (after.offsets.get(number, -1) if after else -1) + 1
    return following if low <= following <= high else low


def _watermarks(consumer: Consumer, topic: str, number: int) -> tuple[int, int]:
    """First offset and the one after the last. Partitions of a topic that was made a moment ago may have no leader yet."""
    until = time.monotonic() + CONNECT_SECONDS
    while True:
        try:
            low, high = consumer.get_watermark_offsets(TopicPartition(topic, number), timeout=CONNECT_SECONDS)
        except KafkaException as error:  # noqa: PERF203 - each attempt may fail
            if error.args[0].code() not in _NO_LEADER_YET or time.monotonic() > until:
                raise
            time.sleep(_WAIT_SECONDS)
        else:
            return int(low), int(high)


def continued(path: Path) -> Known | None:
    """Where a dump that is there ends; None if there is none. A last line that was cut is taken away."""
    if not path.exists() or path.stat().st_size == 0:
        return None
    last: dict[int, int] = {}
    whole, newest_ms = 0, -1
    with path.open("rb") as file:
        for number, text in enumerate(file):
            if number == 0 and not text.startswith(b'{"format":"rebalance-offsets-'):
                raise UserError(f"--out {path}: there is a file of this name, which is no dump")
            if not text.endswith(b"\n"):
                break
            whole += len(text)
            if (time_ := _TIME.search(text)) is not None:
                newest_ms = max(newest_ms, int(time_[1]))
            if (found := _PLACE.search(text)) is not None:
                last[int(found[1])] = max(int(found[2]), last.get(int(found[1]), -1))
    if whole < path.stat().st_size:
        os.truncate(path, whole)
    return Known(last, newest_ms) if whole else None


def _consume(consumer: Consumer, topic: str) -> list[Message]:
    """The next records, and the ends of partitions."""
    messages: list[Message] = consumer.consume(_BATCH, _WAIT_SECONDS)
    for message in messages:
        error = message.error()
        if error is not None and error.code() != KafkaError._PARTITION_EOF:  # noqa: SLF001 - so it is called
            raise UserError(f"reading {topic} failed: {error.str()}")
    return messages


def _merged(spills: list[IO[str]]) -> Iterator[str]:
    def lines(file: IO[str]) -> Iterator[tuple[int, str]]:
        file.seek(0)
        for text in file:
            at, _, record = text.rstrip("\n").partition(" ")
            yield int(at), record

    for _, record in heapq.merge(*map(lines, spills)):
        yield record


def _base64(data: Any) -> str | None:
    return None if data is None else base64.b64encode(data).decode()


def _all(_message: Message) -> bool:
    return True


def _of_groups(message: Message) -> bool:
    key = message.key()
    return isinstance(key, bytes) and key.startswith(_GROUP_KEY)
