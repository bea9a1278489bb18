"""Log lines as records of a Kafka topic: what `rebalance ship` writes and a reader of the topic finds (docs/shipping.md).

The value is the line. Everything else stands in headers, texts of UTF-8, numbers in decimal: cluster, broker, record (line or clock),
origin, position, and as far as there is one source, at (epoch ms, UTC), fault and context, with the meanings of schemas/raw_lines.py.
A clock further has lines and read. Headers that are not known here are passed over, so that later versions may add some.

Nothing of Spark is needed here: an agent beside a broker has to be small.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from coordinator_model.events import CLIENT_SOURCE, CLIENTS, COORDINATOR_SOURCE, PSEUDO_BROKERS, REQUEST_SOURCE
from schemas.names import CLOCK, LINE

Header = tuple[str, bytes]

MAX_KEY_BYTES: Final = 256
_GROUP_WITHIN: Final = 4_096  # bytes of a client's line that are looked through for its group: what costs grows with the square

_REQUEST_SIGNS: Final = (b"Completed request:", b"(kafka.request.logger)")
_JSON_GROUP: Final = re.compile(rb'"groupId":"((?:[^"\\]|\\.)*)"')
_CLIENT_GROUP: Final = re.compile(rb"groupId=([^\],]+)[\],]|Group \"([^\"]*)\"")
_SENTENCE_GROUP: Final = re.compile(rb"\b(?:group|Group|GroupId) ([^\s,:()]+)")


class RecordError(ValueError):
    """A record that no shipper of ours wrote. The message says what is wrong with it."""


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
    lines: int | None = None  # of a clock: lines of this log, up to its position, that were kept and shipped
    read_ms: int | None = None  # of a clock: when all logs of the broker were found read to their ends; None if there was more


def log_headers(cluster: str, broker: str, record: str, origin: str) -> list[Header]:
    """The headers that all records of one log share."""
    return [
        ("cluster", cluster.encode()),
        ("broker", broker.encode()),
        ("record", record.encode()),
        ("origin", origin.encode()),
    ]


def line_headers(shared: list[Header], source: str, position: int, at_ms: int | None, fault: str = "", context: str = "") -> list[Header]:
    """The headers of a line."""
    headers = [*shared, ("source", source.encode()), ("position", b"%d" % position)]
    if at_ms is not None:
        headers.append(("at", b"%d" % at_ms))
    if fault:
        headers.append(("fault", fault.encode()))
    if context:
        headers.append(("context", context.encode()))
    return headers


def clock_headers(shared: list[Header], position: int, at_ms: int | None, lines: int, read_ms: int | None) -> list[Header]:
    """The headers of a clock."""
    headers = [*shared, ("position", b"%d" % position), ("lines", b"%d" % lines)]
    if at_ms is not None:
        headers.append(("at", b"%d" % at_ms))
    if read_ms is not None:
        headers.append(("read", b"%d" % read_ms))
    return headers


def read_record(headers: Iterable[Header] | None, value: bytes | None) -> TopicRecord:
    """A record from its headers and value. RecordError: it is none."""
    found = {name: data.decode("utf-8", "backslashreplace") for name, data in headers or ()}
    for name in ("cluster", "broker", "record", "origin", "position"):
        if name not in found:
            raise RecordError(f"no header {name}")
    if found["record"] not in {LINE, CLOCK}:
        raise RecordError(f"header record is {found['record'][:40]}")
    position = _number(found, "position")
    assert position is not None
    return TopicRecord(
        cluster=found["cluster"],
        broker=found["broker"],
        record=found["record"],
        origin=found["origin"],
        position=position,
        text=(value or b"").decode("utf-8", "backslashreplace"),
        source=found.get("source", ""),
        at_ms=_number(found, "at"),
        fault=found.get("fault"),
        context=found.get("context"),
        lines=_number(found, "lines"),
        read_ms=_number(found, "read"),
    )


def source_of(broker: str, line: bytes) -> str:
    """What kind of evidence a kept line is."""
    if broker == CLIENTS:
        return CLIENT_SOURCE
    if broker in PSEUDO_BROKERS:
        return broker
    return REQUEST_SOURCE if any(sign in line for sign in _REQUEST_SIGNS) else COORDINATOR_SOURCE


def key_of(source: str, line: bytes, context: str, origin: str) -> bytes:
    """The group that a line tells of, if that can be had cheaply, else its log: lines with one key stay in order.

    A wrong guess costs nothing but the order between partitions, which ticks restore.
    """
    if context:
        return context.encode()[:MAX_KEY_BYTES]
    if source == REQUEST_SOURCE:
        found = _JSON_GROUP.search(line)
    elif source == COORDINATOR_SOURCE:
        found = _SENTENCE_GROUP.search(line)
    elif source == CLIENT_SOURCE:
        found = _CLIENT_GROUP.search(line, 0, _GROUP_WITHIN)
    else:
        found = None
    if found is None:
        return origin.encode()
    return (found[1] or found[found.lastindex or 1] or origin.encode())[:MAX_KEY_BYTES]


def _number(found: dict[str, str], name: str) -> int | None:
    text = found.get(name)
    if text is None:
        return None
    if re.fullmatch(r"-?[0-9]{1,18}", text) is None:
        raise RecordError(f"header {name} is no number: {text[:40]}")
    return int(text)
