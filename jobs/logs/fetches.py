"""What consumers read, as their FETCH requests tell it: positions in partitions, and the ends of these logs.

A consumer sends several FETCH a second, and they are most lines of a log that has them. So each becomes numbers while the log is read, and
jobs/parsing/fetch_runs.py makes rows of them. A line that has another shape is skipped: what it would tell, the next one tells, too.
"""

from __future__ import annotations

import re
from array import array
from typing import Final, NamedTuple

from msgspec import msgpack

FETCH: Final = "FETCH"
METADATA: Final = "METADATA"
BY_NUMBERS: Final = (FETCH, METADATA)
"""The APIs of whose requests numbers are taken."""

WIDTH: Final = 6
"""Numbers of a cell, 8 bytes each: connection, partition, time of the line (ms), position, end of the log, number of the line."""
NOT_TOLD: Final = -1
OUT_OF_RANGE: Final = -2
"""In the place of an end: the position is none of the log (Errors.OFFSET_OUT_OF_RANGE)."""

_TAIL: Final = b',"connection":"'
_TOPICS: Final = b'"topics":['
_NO_TOPICS: Final = b'"topics":[]'
_REPLICA: Final = re.compile(rb'"replica(?:Id":(?!-1,)|State":)')
_CONNECTION: Final = re.compile(rb'[!#-\[\]-~]{1,512}(?=","totalTimeMs":)')
_SENDER: Final = re.compile(rb'"clientId":"([ !#-\[\]-~]{0,512})","requestApiKeyName"')
_SOFTWARE: Final = re.compile(rb'"softwareName":"([ !#-\[\]-~]{0,256})","softwareVersion":"([ !#-\[\]-~]{0,256})"')
# FetchRequest.json and FetchResponse.json of Kafka's clients, v4 to v18.
_ASKED: Final = re.compile(rb'":(\d{1,9}),(?:"currentLeaderEpoch":-?\d{1,9},)?"fetchOffset":(\d{1,18}),')
_ANSWERED: Final = re.compile(rb'Index":(\d{1,9}),"errorCode":([01]),"highWatermark":(-?\d{1,18}),')
_PART: Final = b'{"partition'
_PARTS: Final = b'"partitions":['
_TOPIC: Final = re.compile(rb'"topic(?:Id)?":"([\w.-]{1,249})",\Z')
_LONGEST_TOPIC: Final = 249 + len('"topicId":"",')
# MetadataResponse.json, v10 and later.
_NAMED: Final = re.compile(rb'\{"errorCode":0,"name":"([\w.-]{1,249})","topicId":"([\w-]{22})"')


class Sender(NamedTuple):
    """Who sent FETCH requests on a connection."""

    connection: str
    client_id: str
    software: str


class Fetched(NamedTuple):
    """FETCH requests of a log. `position`: the number of the last line.

    `topics`: for each topic id that an answer to METADATA named: its name, the time and the number of the line.
    """

    senders: list[Sender]
    partitions: list[str]  # topic or topic id, and number
    cells: bytes  # WIDTH numbers each
    topics: dict[str, tuple[str, int, int]]
    position: int


class LogFetches:
    """The FETCH requests of one log."""

    def __init__(self) -> None:
        self.senders: list[Sender] = []
        self.cells = array("q")  # WIDTH numbers each
        self.topics: dict[str, tuple[str, int, int]] = {}  # as of Fetched
        self._connections: dict[bytes, int] = {}
        self._partitions: dict[tuple[bytes, bytes], int] = {}

    def take(self, line: bytes, position: int, at_ms: int) -> bool:
        """Takes a line with its number and its time. False: it tells nothing."""
        tail, topics = line.rfind(_TAIL), line.find(_TOPICS)
        if topics < 0 or tail < topics or _REPLICA.search(line, 0, topics) is not None:
            return False
        found: dict[tuple[bytes, bytes], list[int]] = {}
        topic = b""
        for part in line[topics:tail].split(_PART):
            if part[:2] == b'":':
                if (match := _ASKED.match(part)) is not None:
                    found[topic, match[1]] = [int(match[2]), NOT_TOLD]
            elif (match := _ANSWERED.match(part)) is not None:
                number, error, end = match.groups()
                told = int(end) if error == b"0" else OUT_OF_RANGE
                if (topic, number) in found:
                    found[topic, number][1] = told
                elif told >= 0:
                    found[topic, number] = [NOT_TOLD, told]
            if part.endswith(_PARTS) and (match := _TOPIC.search(part, len(part) - len(_PARTS) - _LONGEST_TOPIC, len(part) - len(_PARTS))):
                topic = match[1]
        if not found or (connection := self._connection(line, tail)) < 0:
            return False
        partitions, number = self._partitions, len(self._partitions)
        for key, (offset, end) in found.items():
            place = partitions.setdefault(key, number)
            number += place == number
            self.cells.extend((connection, place, at_ms, offset, end, position))
        return True

    def learn(self, line: bytes, position: int, at_ms: int) -> None:
        """Takes the ids of topics from an answer to METADATA."""
        for name, topic_id in _NAMED.findall(line):
            self.topics.setdefault(topic_id.decode(), (name.decode(), at_ms, position))

    def _connection(self, line: bytes, tail: int) -> int:
        """The number of the line's connection; -1 if it has none."""
        match = _CONNECTION.match(line, tail + len(_TAIL))
        if match is None:
            return -1
        number = self._connections.get(match[0])
        if number is None:
            sender, software = _SENDER.search(line), _SOFTWARE.search(line, match.end())
            number = self._connections[match[0]] = len(self.senders) if sender is not None else -1
            if sender is not None:
                name = "" if software is None else f"{software[1].decode()} {software[2].decode()}"
                self.senders.append(Sender(match[0].decode(), sender[1].decode(), name))
        return number

    def __bool__(self) -> bool:
        return bool(self.cells or self.topics)

    @property
    def partitions(self) -> list[str]:
        """The topic, or its id, and the number of each partition."""
        return [b"-".join(key).decode() for key in self._partitions]


class Fetches:
    """The FETCH requests of a slice, by log."""

    def __init__(self) -> None:
        self._logs: dict[object, LogFetches] = {}
        self.count = 0  # lines that became numbers

    def take(self, log: object, api: str, line: bytes, position: int, at_ms: int) -> None:
        """Takes a line of a log, which is one of FETCH or of METADATA, with its number and its time."""
        own = self._logs.get(log)
        if own is None:
            own = self._logs[log] = LogFetches()
        if api == FETCH:
            self.count += own.take(line, position, at_ms)
        else:
            own.learn(line, position, at_ms)

    def of(self, log: object) -> LogFetches | None:
        """Those of one log. None: it has none."""
        return self._logs.get(log) or None


def encoded(fetched: Fetched) -> bytes:
    """The stored form of FETCH requests."""
    return _ENCODER.encode(fetched)


def decoded(value: bytes) -> Fetched:
    """What `encoded` stored."""
    return _DECODER.decode(value)


_ENCODER: Final = msgpack.Encoder()
_DECODER: Final = msgpack.Decoder(Fetched)
