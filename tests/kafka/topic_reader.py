"""Reads a topic of log lines from its beginning to where it ends now: what `rebalance ship` wrote."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

from confluent_kafka import Consumer, KafkaError, KafkaException, Message, TopicPartition

from jobs.kafka.bundles import VERSION, decoded
from jobs.kafka.topic_records import Header
from schemas.names import CLOCK, HEARTBEATS, LINE
from tests.waiting import PATIENCE_SECONDS


class RecordError(ValueError):
    """No shipper wrote the record. The message says what is wrong with it."""


@dataclass(frozen=True)
class TopicRecord:
    """One record of the topic, read."""

    cluster: str
    broker: str
    record: str
    origin: str
    position: int
    text: str
    source: str = ""
    at_ms: int | None = None
    fault: str | None = None
    context: str | None = None
    lines: int | None = None  # of a clock: lines of this log, up to its position, that were kept and shipped; of a bundle: its lines
    read_ms: int | None = None  # of a clock: when all logs of the broker were found read to their ends; None if there was more
    value: bytes = b""
    crc: str | None = None  # of a bundle


def read_record(headers: Iterable[Header] | None, value: bytes | None) -> TopicRecord:
    """A record from its headers and value. RecordError: they are no record of a shipper."""
    found = {name: data.decode("utf-8", "backslashreplace") for name, data in headers or ()}
    for name in ("cluster", "broker", "record", "origin", "position"):
        if name not in found:
            raise RecordError(f"no header {name}")
    if found["record"] not in {LINE, HEARTBEATS, CLOCK}:
        raise RecordError(f"header record is {found['record'][:40]}")
    position = _number(found, "position")
    assert position is not None
    if found["record"] == HEARTBEATS and found.get("version") != str(VERSION):
        raise RecordError(f"heartbeats of version {found.get('version')}")
    return TopicRecord(
        cluster=found["cluster"], broker=found["broker"], record=found["record"], origin=found["origin"], position=position,
        text=(value or b"").decode("utf-8", "backslashreplace"), source=found.get("source", ""), at_ms=_number(found, "at"),
        fault=found.get("fault"), context=found.get("context"), lines=_number(found, "lines"), read_ms=_number(found, "read"),
        value=value or b"", crc=found.get("crc"),
    )  # fmt: skip


def _number(found: dict[str, str], name: str) -> int | None:
    text = found.get(name)
    if text is None:
        return None
    if re.fullmatch(r"-?[0-9]{1,18}", text) is None:
        raise RecordError(f"header {name} is no number: {text[:40]}")
    return int(text)


def each_line(record: TopicRecord) -> Iterator[TopicRecord]:
    """A record itself, or a record for each heartbeat of a bundle. Of their text only the correlation id is left."""
    if record.record != HEARTBEATS:
        yield record
        return
    beats = decoded(record.value, record.crc)
    assert (len(beats), min(beats.positions)) == (record.lines, record.position)
    for position, at_ms, number in zip(beats.positions, beats.ats, beats.correlation_ids, strict=True):
        yield replace(record, record=LINE, position=position, at_ms=at_ms, text=f'"correlationId":{number}', lines=None)


def topic_records(bootstrap: str, topic: str) -> Iterator[tuple[Message, TopicRecord]]:
    """All records, each partition in its order. KafkaException: the topic cannot be read; RecordError: a record is no shipper's."""
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": "reader", "enable.partition.eof": True, "enable.auto.commit": False})
    try:
        left = set(consumer.list_topics(topic, timeout=PATIENCE_SECONDS).topics[topic].partitions)
        consumer.assign([TopicPartition(topic, number, 0) for number in left])
        while left:
            message = consumer.poll(5)
            if message is None:
                continue
            error = message.error()
            if error is None:
                yield message, read_record(message.headers(), message.value())
            elif error.code() == KafkaError._PARTITION_EOF:
                left.discard(message.partition())
            else:
                raise KafkaException(error)
    finally:
        consumer.close()
