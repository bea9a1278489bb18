"""Log lines as records of a Kafka topic, as `rebalance ship` writes them (docs/shipping.md).

The value is the line. The headers hold the rest, as texts in UTF-8 with numbers in decimal: cluster, broker, record (line, heartbeats or
clock), origin, position, and where there is one: source, at (epoch ms, UTC), fault, context and around. They mean the same as in
schemas/raw_lines.md. A clock also has lines and read; heartbeats (bundles.py) have version, lines and crc. Readers ignore other headers, so
that later versions may add some.

This module does not import Spark: the agent beside a broker has to be small.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Final

from coordinator_model.events import CLIENT_SOURCE, CLIENTS, COORDINATOR_SOURCE, PSEUDO_BROKERS, REQUEST_SOURCE
from jobs.kafka import bundles
from schemas.names import CLOCK, HEARTBEATS

Header = tuple[str, bytes]

MAX_KEY_BYTES: Final = 256
_DIGITS: Final = 9
_GROUP_WITHIN: Final = 4_096  # bytes of a client's line that are searched for its group: the cost grows with their square

_REQUEST_SIGNS: Final = (b"Completed request:", b"(kafka.request.logger)")
_JSON_GROUP: Final = re.compile(rb'"groupId":"((?:[^"\\]|\\.)*)"')
_CLIENT_GROUP: Final = re.compile(rb"groupId=([^\],]+)[\],]|Group \"([^\"]*)\"")
_SENTENCE_GROUP: Final = re.compile(rb"\b(?:group|Group|GroupId) ([^\s,:()]+)")


def log_headers(cluster: str, broker: str, record: str, origin: str) -> list[Header]:
    """The headers that all records of one log share."""
    return list(_given(cluster=cluster, broker=broker, record=record, origin=origin))


def line_headers(
    shared: list[Header], source: str, position: int, at_ms: int | None, fault: str = "", context: str = "", around: bytes = b""
) -> list[Header]:
    """The headers of a line."""
    return [*shared, *_given(source=source, position=position, at=at_ms, fault=fault, context=context, around=around)]


def bundle_headers(shared: list[Header], position: int, lines: int, value: bytes) -> list[Header]:
    """The headers of a bundle. `position`: of its first line."""
    crc = bundles.checksum(value)
    return [*shared, *_given(source=REQUEST_SOURCE, position=position, lines=lines, version=bundles.VERSION, crc=crc)]


def lines_in(headers: Iterable[Header]) -> int:
    """How many lines a record holds, by its headers."""
    named = dict(headers)
    if named.get("record") != HEARTBEATS.encode():
        return int(named.get("record") != CLOCK.encode())
    count = named.get("lines") or b""
    return int(count) if count.isdigit() and len(count) < _DIGITS else 1


def clock_headers(shared: list[Header], position: int, at_ms: int | None, lines: int, read_ms: int | None) -> list[Header]:
    """The headers of a clock.

    `lines`: lines of this log, up to its position, that were kept and shipped. `read_ms`: when all logs of the broker were read to their
    ends; None if there was more to read.
    """
    return [*shared, *_given(position=position, lines=lines, at=at_ms, read=read_ms)]


def _given(**values: str | bytes | int | None) -> Iterator[Header]:
    """A header for each value that is neither missing nor empty."""
    for name, value in values.items():
        if value is not None and value not in ("", b""):
            yield name, value if isinstance(value, bytes) else str(value).encode()


def line_source(broker: str, line: bytes) -> str:
    """The source of a line in the tables: request log, coordinator log, client log or records."""
    if broker == CLIENTS:
        return CLIENT_SOURCE
    if broker in PSEUDO_BROKERS:
        return broker
    return REQUEST_SOURCE if any(sign in line for sign in _REQUEST_SIGNS) else COORDINATOR_SOURCE


def record_key(source: str, line: bytes, context: str, origin: str) -> bytes:
    """The group of a line if a quick search finds it, else the line's log. Records with one key stay in order.

    A wrong group does no harm: ticks restore the order between partitions.
    """
    if context:
        return context.encode()[:MAX_KEY_BYTES]
    if source == REQUEST_SOURCE:
        group = _JSON_GROUP.search(line)
    elif source == COORDINATOR_SOURCE:
        group = _SENTENCE_GROUP.search(line)
    elif source == CLIENT_SOURCE:
        group = _CLIENT_GROUP.search(line, 0, _GROUP_WITHIN)
    else:
        group = None
    if group is None:
        return origin.encode()
    return (group[1] or group[group.lastindex or 1] or origin.encode())[:MAX_KEY_BYTES]
