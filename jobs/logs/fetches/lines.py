"""The FETCH and LIST_OFFSETS requests of a log: positions in partitions, and the ends of these partitions' logs.

A consumer sends several FETCH a second, and they are most lines of a log that has them. So each becomes numbers while the log is read, and
jobs/parsing/runs/fetch_runs.py makes rows of them. A line that has another shape is skipped: what it would tell, the next one tells, too.
"""

from __future__ import annotations

from array import array
from collections import Counter
from typing import Annotated, Any, Final, Generic, NamedTuple, TypeVar

from msgspec import Meta, MsgspecError, Struct, json, msgpack

from coordinator_model.events import FETCH, LIST_OFFSETS
from coordinator_model.offsets.reads import NOT_TOLD, OUT_OF_RANGE
from jobs.logs.times import LENGTH

METADATA: Final = "METADATA"
BY_NUMBERS: Final = (FETCH, LIST_OFFSETS, METADATA)
"""The APIs of whose requests numbers are taken."""

WIDTH: Final = 6
"""Numbers of a cell, 8 bytes each: connection, partition, time of the line (ms), position, end of the log, number of the line."""
_CONSUMER: Final = -1
_LATEST: Final = -1
"""ListOffsetsRequest.LATEST_TIMESTAMP."""
_READ_UNCOMMITTED: Final = 0
"""IsolationLevel: the end of a log is that of all its records, not of those whose transactions have ended."""
_VERSION: Final = b'"requestApiVersion":'

_TELLING: Final = frozenset({0, 1})
"""Errors.NONE and Errors.OFFSET_OUT_OF_RANGE."""

_Part = TypeVar("_Part")
_Asks = TypeVar("_Asks")
_Answers = TypeVar("_Answers")
_Read = TypeVar("_Read")
_MOST: Final = 1 << 62
_Number = Annotated[int, Meta(ge=0, lt=1 << 31)]
_Offset = Annotated[int, Meta(ge=-1, lt=_MOST)]


class _Topic(Struct, Generic[_Part], gc=False, rename="camel"):
    partitions: list[_Part]
    topic: str = ""
    topic_id: str = ""


class _Asked(Struct, gc=False, rename="camel"):
    partition: _Number
    fetch_offset: _Offset


class _Request(Struct, gc=False, rename="camel"):
    topics: list[_Topic[_Asked]]
    replica_id: int = _CONSUMER
    replica_state: object = None


class _Told(Struct, gc=False, rename="camel"):
    partition_index: _Number
    error_code: int
    high_watermark: _Offset


class _Response(Struct, gc=False, rename="camel"):
    responses: list[_Topic[_Told]]


class _ListedTopic(Struct, Generic[_Part], gc=False):
    name: str
    partitions: list[_Part]


class _Wanted(Struct, gc=False, rename="camel"):
    partition_index: _Number
    timestamp: int


class _Listed(Struct, gc=False, rename="camel"):
    partition_index: _Number
    error_code: int
    offset: _Offset


class _ListRequest(Struct, gc=False, rename="camel"):
    topics: list[_ListedTopic[_Wanted]]
    replica_id: int
    isolation_level: int = _READ_UNCOMMITTED


class _ListResponse(Struct, gc=False):
    topics: list[_ListedTopic[_Listed]]


class _Header(Struct, gc=False, rename="camel"):
    client_id: str | None


class _Software(Struct, gc=False, frozen=True, rename="camel"):
    software_name: str = ""
    software_version: str = ""


class _Line(Struct, Generic[_Asks, _Answers], gc=False, rename="camel"):
    """A completed request (kafka.network.RequestConvertToJson)."""

    request_header: _Header
    request: _Asks
    response: _Answers
    connection: str
    client_information: _Software = _Software()


_Fetch = _Line[_Request, _Response]
"""What is read of a FETCH: FetchRequest.json and FetchResponse.json of Kafka's clients, v4 to v18."""
_ListOffsets = _Line[_ListRequest, _ListResponse]
"""What is read of a LIST_OFFSETS: ListOffsetsRequest.json and ListOffsetsResponse.json, v1 to v11."""


class _Named(Struct, gc=False, rename="camel"):
    error_code: int
    name: str | None = None
    topic_id: str = ""


class _Topics(Struct, gc=False, rename="camel"):
    topics: list[_Named]


class _Metadata(Struct, gc=False, rename="camel"):
    """What is read of a METADATA: MetadataResponse.json, v10 and later, names the ids of topics."""

    response: _Topics


_FETCH_LINE: Final = json.Decoder(_Fetch)
_LIST_LINE: Final = json.Decoder(_ListOffsets)
_METADATA_LINE: Final = json.Decoder(_Metadata)


class Sender(NamedTuple):
    """Who sent requests of one API on a connection."""

    api: str
    connection: str
    client_id: str
    software: str


class Fetched(NamedTuple):
    """Requests of a log. `position`: the number of the last line.

    `topics`: for each topic id that an answer to METADATA named: its name, the time and the number of the line.
    """

    senders: list[Sender]
    partitions: list[str]  # topic or topic id, and number
    cells: bytes  # WIDTH numbers each
    topics: dict[str, tuple[str, int, int]]
    position: int


class LogFetches:
    """The requests of one log that became numbers."""

    def __init__(self) -> None:
        self.senders: list[Sender] = []
        self.cells = array("q")  # WIDTH numbers each
        self.topics: dict[str, tuple[str, int, int]] = {}  # as of Fetched
        self.lines = Counter[str]()  # that were taken, by API
        self.header = b""  # what stands in a FETCH between the time and the version of the request
        self._connections: dict[tuple[str, str], int] = {}
        self._partitions: dict[tuple[str, int], int] = {}

    def take_fetch(self, line: bytes, position: int, at_ms: int) -> bool:
        """Takes a line with its number and its time. False: it tells nothing."""
        told = _read(_FETCH_LINE, line)
        if told is None or told.request.replica_id != _CONSUMER or told.request.replica_state is not None:
            return False
        if not self.header:
            self.header = line[LENGTH : line.find(_VERSION, LENGTH)]
        connection, partitions, cells = self._connection(FETCH, told), self._partitions, self.cells
        before = len(cells)
        ends = {
            (topic.topic_id or topic.topic, part.partition_index): part.high_watermark if part.error_code == 0 else OUT_OF_RANGE
            for topic in told.response.responses
            for part in topic.partitions
            if part.error_code in _TELLING
        }
        for topic in told.request.topics:
            for part in topic.partitions:
                key = topic.topic_id or topic.topic, part.partition
                place = partitions.setdefault(key, len(partitions))
                cells.extend((connection, place, at_ms, part.fetch_offset, ends.pop(key, NOT_TOLD), position))
        for key, end in ends.items():
            if end >= 0:
                cells.extend((connection, partitions.setdefault(key, len(partitions)), at_ms, NOT_TOLD, end, position))
        if len(cells) == before:
            return False
        self.lines[FETCH] += 1
        return True

    def take_ends(self, line: bytes, position: int, at_ms: int) -> bool:
        """Takes the ends of logs from a LIST_OFFSETS with its number and its time. False: it tells none."""
        told = _read(_LIST_LINE, line)
        if told is None or told.request.replica_id != _CONSUMER or told.request.isolation_level != _READ_UNCOMMITTED:
            return False
        topics = told.request.topics
        latest = {(topic.name, part.partition_index) for topic in topics for part in topic.partitions if part.timestamp == _LATEST}
        ends = [
            (key, part.offset)
            for topic in told.response.topics
            for part in topic.partitions
            if (key := (topic.name, part.partition_index)) in latest and part.error_code == 0 <= part.offset
        ]
        for key, end in ends:
            place = self._partitions.setdefault(key, len(self._partitions))
            self.cells.extend((self._connection(LIST_OFFSETS, told), place, at_ms, NOT_TOLD, end, position))
        if not ends:
            return False
        self.lines[LIST_OFFSETS] += 1
        return True

    def learn(self, line: bytes, position: int, at_ms: int) -> None:
        """Takes the ids of topics from an answer to METADATA."""
        told = _read(_METADATA_LINE, line)
        for topic in told.response.topics if told is not None else ():
            if topic.error_code == 0 and topic.name and topic.topic_id:
                self.topics.setdefault(topic.topic_id, (topic.name, at_ms, position))

    def _connection(self, api: str, told: _Line[Any, Any]) -> int:
        """The number of the line's connection among those with requests of this API."""
        number = self._connections.get((api, told.connection))
        if number is None:
            number = self._connections[api, told.connection] = len(self.senders)
            client, software = told.request_header.client_id or "", told.client_information
            self.senders.append(Sender(api, told.connection, client, f"{software.software_name} {software.software_version}"))
        return number

    def __bool__(self) -> bool:
        return bool(self.cells or self.topics)

    @property
    def partitions(self) -> list[str]:
        """The topic, or its id, and the number of each partition."""
        return [f"{topic}-{number}" for topic, number in self._partitions]


def _read(decoder: json.Decoder[_Read], line: bytes) -> _Read | None:
    """What is in the JSON of a line; None if it is none, or not of this kind."""
    try:
        return decoder.decode(line[line.find(b"{") : line.rfind(b"}") + 1])
    except (MsgspecError, UnicodeDecodeError):
        return None


def encoded(fetched: Fetched) -> bytes:
    """The stored form of requests."""
    return _ENCODER.encode(fetched)


def decoded(value: bytes) -> Fetched:
    """What `encoded` stored."""
    return _DECODER.decode(value)


_ENCODER: Final = msgpack.Encoder()
_DECODER: Final = msgpack.Decoder(Fetched)
