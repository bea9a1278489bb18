"""`rebalance dump-offsets`: writes the records of `__consumer_offsets` that describe groups as lines of JSON (jobs/logs/record_judge.py).

A dump reads each partition from its first record, or from behind the last one that the file has, to its end when the dump began. It keeps
the records of each partition in a temporary file, and then writes all of them in the order of their times, which is how the pipeline reads
them. So memory stays small however many records there are. With `follow` the dump continues with new records, and writes a sign of life
every few seconds.
"""

from __future__ import annotations

import base64
import heapq
import json
import os
import re
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from datetime import datetime, timezone
from pathlib import Path
from typing import IO, Any, Final

from confluent_kafka import Consumer, KafkaError, KafkaException, Message, TopicPartition

from jobs.common.errors import UserError
from jobs.kafka.clients import CONNECT_SECONDS, Cluster, reason
from jobs.logs.record_judge import COMMIT_KEYS, GROUP_KEYS

FORMAT: Final = "rebalance-offsets-1"
ALIVE_SECONDS: Final = 5.0
"""Between two signs of life."""

_TOPIC: Final = "__consumer_offsets"
_BATCH: Final = 500
_WAIT_SECONDS: Final = 0.5
_PLACE: Final = re.compile(rb'"partition":(\d+),"offset":(\d+)')
_TIME: Final = re.compile(rb'"timestamp":(-?\d+)')
_GROUPS: Final = tuple(kind.to_bytes(2, "big") for kind in sorted(GROUP_KEYS))
_COMMITS: Final = tuple(kind.to_bytes(2, "big") for kind in sorted(COMMIT_KEYS))
_EVERYTHING: Final = (b"",)


@dataclass
class DumpCounts:
    """How much was read and written."""

    partitions: int = 0
    read: int = 0
    written: int = 0


@dataclass(frozen=True)
class DumpPosition:
    """Where an earlier dump ends: the last offset of each partition, and the newest time in it (epoch ms; -1: none)."""

    offsets: Mapping[int, int]
    newest_ms: int = -1


class ClusterTime:
    """The brokers' time: the newest timestamp that was read, plus the time since then. The clock of this machine may differ from theirs."""

    def __init__(self, newest_ms: int = -1) -> None:
        self._newest_ms = newest_ms
        self._read_at = time.monotonic()

    def advance(self, at_ms: int) -> None:
        """Takes the timestamp of a record."""
        if at_ms > self.now_ms():
            self._newest_ms, self._read_at = at_ms, time.monotonic()

    def now_ms(self) -> int:
        """Epoch ms; -1 before the first record."""
        return -1 if self._newest_ms < 0 else self._newest_ms + int((time.monotonic() - self._read_at) * 1000)


def dump_to_file(
    cluster: Cluster,
    path: Path | None,
    *,
    stopped: Callable[[], bool],
    commits: bool = False,
    everything: bool = False,
    follow: bool = False,
    alive_seconds: float = ALIVE_SECONDS,
) -> DumpCounts:
    """Writes a dump, or continues the one in the file; without a path, writes to standard output.

    The records are those of consumer groups; with `commits` also the offsets they committed, with `everything` all that there are. With
    `follow`, a topic that does not exist yet is waited for.
    UserError: the topic cannot be read, or the file cannot be written.
    """
    try:
        after = None if path is None else dump_position(path)
        with ExitStack() as stack:
            file: IO[str] = sys.stdout
            if path is not None:
                path.parent.mkdir(parents=True, exist_ok=True)
                file = stack.enter_context(path.open("a", encoding="ascii"))

            def write(text: str) -> None:
                print(text, file=file, flush=follow)

            keys = _EVERYTHING if everything else (*_COMMITS, *_GROUPS) if commits else _GROUPS
            dump = _Dump(cluster, write, after, stopped, keys)
            return dump.run(alive_seconds if follow else None)
    except OSError as error:
        if path is None:
            raise
        raise UserError(f"cannot write {path}: {error.strerror}") from None
    except KafkaException as error:
        raise UserError(f"reading {_TOPIC} of {cluster.bootstrap} failed: {reason(error)}") from None


def dump_position(path: Path) -> DumpPosition | None:
    """Where the dump in a file ends; None if there is none. Removes a last line that was cut off. UserError: the file is no dump."""
    if not path.exists() or path.stat().st_size == 0:
        return None
    offsets: dict[int, int] = {}
    whole, newest_ms = 0, -1
    with path.open("rb") as file:
        for number, text in enumerate(file):
            if number == 0 and not text.startswith(b'{"format":"rebalance-offsets-'):
                raise UserError(f"--out {path}: this file exists and is not a dump")
            if not text.endswith(b"\n"):
                break
            whole += len(text)
            newest_ms = max(newest_ms, _time_ms(text))
            if (place := _PLACE.search(text)) is not None:
                offsets[int(place[1])] = max(int(place[2]), offsets.get(int(place[1]), -1))
    if whole < path.stat().st_size:
        os.truncate(path, whole)
    return DumpPosition(offsets, newest_ms) if whole else None


@dataclass
class _Dump:
    """One run of the command."""

    _cluster: Cluster
    _write: Callable[[str], None]
    _after: DumpPosition | None
    _stopped: Callable[[], bool]
    _keys: tuple[bytes, ...]  # how those of the records begin that belong into the dump

    def __post_init__(self) -> None:
        self._counts = DumpCounts()
        self._clock = ClusterTime(self._after.newest_ms if self._after else -1)
        self._unread: set[int] = set()  # partitions that were not read to their ends

    def run(self, alive_seconds: float | None) -> DumpCounts:
        """Writes the records that are there; then, unless `alive_seconds` is None, new ones and signs of life until it is stopped."""
        partitions = self._partitions(wait=alive_seconds is not None)
        self._counts.partitions = len(partitions)
        self._unread = set(partitions)
        if not partitions:
            return self._counts
        consumer = self._cluster.consumer()
        try:
            if self._after is None:
                began = datetime.now(timezone.utc).isoformat(timespec="milliseconds")
                self._write(_json({"format": FORMAT, "from": self._cluster.bootstrap, "began": began}))
            # Where an offset is out of range, because the topic was made again, the consumer begins at the first record.
            offsets = self._after.offsets if self._after else {}
            consumer.assign([TopicPartition(_TOPIC, number, offsets.get(number, -1) + 1) for number in partitions])
            self._write_merged(consumer)
            if alive_seconds is not None and not self._unread:
                self._follow(consumer, alive_seconds)
        finally:
            consumer.close()
        return self._counts

    def _partitions(self, *, wait: bool) -> list[int]:
        """The topic's partitions; none if stopped before. A cluster makes the topic when the first group looks for its coordinator."""
        bootstrap = self._cluster.bootstrap
        while not self._stopped():
            topic = self._cluster.admin().list_topics(_TOPIC, timeout=CONNECT_SECONDS).topics.get(_TOPIC)
            error = topic.error if topic is not None else None
            if topic is not None and error is None:
                return sorted(topic.partitions)
            if not wait or (error is not None and error.code() != KafkaError.UNKNOWN_TOPIC_OR_PART):
                detail = f": {error.str()}" if error is not None else ""
                raise UserError(f"cannot read {_TOPIC} of {bootstrap}{detail}; no group has committed yet, or reading it is not allowed")
            time.sleep(_WAIT_SECONDS)
        return []

    def _next_records(self, consumer: Consumer) -> list[Message]:
        """The next records that belong into the dump."""
        records = []
        for message in consumer.consume(_BATCH, _WAIT_SECONDS):
            error = message.error()
            if error is None:
                self._counts.read += 1
                self._clock.advance(message.timestamp()[1])
                if (message.key() or b"").startswith(self._keys):
                    records.append(message)
            elif error.code() == KafkaError._PARTITION_EOF:  # noqa: SLF001 - the name of a public code
                self._unread.discard(message.partition())
            else:
                raise UserError(f"reading {_TOPIC} failed: {error.str()}")
        return records

    def _write_merged(self, consumer: Consumer) -> None:
        """Reads all partitions to their ends, then writes their records by time. If stopped before, writes none of them."""
        with tempfile.TemporaryDirectory(prefix="rebalance-dump-") as folder, ExitStack() as files:
            spills: dict[int, IO[bytes]] = {}
            while self._unread and not self._stopped():
                for message in self._next_records(consumer):
                    number = message.partition() or 0
                    if number not in spills:
                        spills[number] = files.enter_context(Path(folder, str(number)).open("w+b"))
                    spills[number].write(f"{_line(message)}\n".encode())
            if self._unread:
                return
            for spill in spills.values():
                spill.seek(0)
            for text in heapq.merge(*spills.values(), key=_time_ms):
                self._write(text.decode().rstrip("\n"))
                self._counts.written += 1

    def _follow(self, consumer: Consumer, alive_seconds: float) -> None:
        """Writes new records. A sign of life says that all records before its time were written, even if none come any more."""
        signed_at = time.monotonic()
        while not self._stopped():
            for message in self._next_records(consumer):
                self._write(_line(message))
                self._counts.written += 1
            if self._clock.now_ms() >= 0 and time.monotonic() - signed_at >= alive_seconds:
                signed_at = time.monotonic()
                self._write(_json({"timestamp": self._clock.now_ms(), "read": self._counts.read}))


def _line(message: Message) -> str:
    return _json(
        {
            "timestamp": message.timestamp()[1],  # -1 if the record has none
            "partition": message.partition(),
            "offset": message.offset(),
            "key": _base64(message.key()),
            "value": _base64(message.value()),
        }
    )


def _json(row: Mapping[str, Any]) -> str:
    return json.dumps(row, separators=(",", ":"))


def _time_ms(text: bytes) -> int:
    found = _TIME.search(text)
    return -1 if found is None else int(found[1])


def _base64(data: Any) -> str | None:
    return None if data is None else base64.b64encode(data).decode()
