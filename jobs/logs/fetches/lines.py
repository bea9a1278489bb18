"""The FETCH, LIST_OFFSETS and WRITE_TXN_MARKERS of a log: positions in partitions, ends of their logs, and which have transactions.

A consumer sends several FETCH a second, and they are most lines of a log that has them. So each becomes numbers while the log is read, and
jobs/parsing/runs/fetch_runs.py makes rows of them. A line that has another shape is skipped: what it would tell, the next one tells, too.
"""

from __future__ import annotations

from array import array
from collections import Counter, defaultdict
from itertools import chain
from typing import Annotated, Any, Final, Generic, NamedTuple, TypeVar

from msgspec import Meta, MsgspecError, Struct, json, msgpack

from coordinator_model.events import FETCH, LIST_OFFSETS, WRITE_TXN_MARKERS
from coordinator_model.offsets.reads import NOT_TOLD, OUT_OF_RANGE

METADATA: Final = "METADATA"
BY_NUMBERS: Final = (FETCH, LIST_OFFSETS, METADATA, WRITE_TXN_MARKERS)
"""The APIs of whose requests numbers are taken."""

WIDTH: Final = 9
"""Numbers of a cell, 8 bytes each: connection, partition, time of the line (ms), position, end of the log, number of the line, whether the
answer shows a transaction, time of the request's arrival (ms), last stable offset."""
_CONSUMER: Final = -1
_LATEST: Final = -1
"""ListOffsetsRequest.LATEST_TIMESTAMP."""
_READ_COMMITTED: Final = 1
"""IsolationLevel: in the place of the end stands the last stable offset, where the first transaction began that has not ended."""

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
    topic: str = ""  # of a FETCH before topics had ids
    topic_id: str = ""
    name: str = ""  # elsewhere


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
    last_stable_offset: _Offset = NOT_TOLD  # where isolation.level is read_committed
    aborted_transactions: list[object] | None = None

    def end(self, position: int, asked_ms: int) -> tuple[int, int, bool, int, int]:
        """The cells from the end of the log on. A transaction is open (UnifiedLog.lastStableOffset), or was aborted."""
        end, stable = self.high_watermark, self.last_stable_offset
        shows = NOT_TOLD < stable < end or bool(self.aborted_transactions)
        return (end if self.error_code == 0 else OUT_OF_RANGE), position, shows, asked_ms, stable


class _Response(Struct, gc=False, rename="camel"):
    responses: list[_Topic[_Told]]


class _Wanted(Struct, gc=False, rename="camel"):
    partition_index: _Number
    timestamp: int


class _Listed(Struct, gc=False, rename="camel"):
    partition_index: _Number
    error_code: int
    offset: _Offset = NOT_TOLD


class _ListRequest(Struct, gc=False, rename="camel"):
    topics: list[_Topic[_Wanted]]
    replica_id: int
    isolation_level: int = 0


class _Topics(Struct, Generic[_Part], gc=False):
    topics: list[_Part]


class _Markers(Struct, gc=False):
    markers: list[_Topics[_Topic[_Listed]]]


class _Header(Struct, gc=False, rename="camel"):
    client_id: str | None


class _Software(Struct, gc=False, frozen=True, rename="camel"):
    software_name: str = ""
    software_version: str = ""


class _Answered(Struct, Generic[_Answers], gc=False, rename="camel"):
    """A completed request (kafka.network.RequestConvertToJson) of which the answer alone is read."""

    response: _Answers


class _Line(Struct, Generic[_Asks, _Answers], gc=False, rename="camel"):
    """The same with more of it."""

    request_header: _Header
    request: _Asks
    response: _Answers
    connection: str
    client_information: _Software = _Software()
    total_time_ms: Annotated[float, Meta(ge=0, lt=1 << 30)] = 0.0


class _Named(Struct, gc=False, rename="camel"):
    error_code: int
    name: str | None = None
    topic_id: str = ""


_NOT_ANSWERED: Final = _Told(0, 0, NOT_TOLD)
_FETCH: Final = json.Decoder(_Line[_Request, _Response])
"""FetchRequest.json and FetchResponse.json of Kafka's clients, v4 to v18."""
_LIST_OFFSETS: Final = json.Decoder(_Line[_ListRequest, _Topics[_Topic[_Listed]]])
"""ListOffsetsRequest.json and ListOffsetsResponse.json, v1 to v11."""
_MARKERS: Final = json.Decoder(_Line[object, _Markers])
"""WriteTxnMarkersResponse.json, v0 to v2."""
_METADATA: Final = json.Decoder(_Answered[_Topics[_Named]])
"""MetadataResponse.json, v10 and later, names the ids of topics."""


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
        self.partitions: list[str] = []  # the topic, or its id, and the number of each
        self.cells = array("q")  # WIDTH numbers each
        self.topics: dict[str, tuple[str, int, int]] = {}  # as of Fetched
        self.lines = Counter[str]()  # that were taken, by API
        self._connections: dict[str, dict[str, int]] = {FETCH: {}, LIST_OFFSETS: {}, WRITE_TXN_MARKERS: {}}  # by API
        self._places = defaultdict[str, dict[int, int]](dict)  # in `partitions`: by topic and number

    def take_fetch(self, request: bytes, position: int, at_ms: int) -> bool:
        """Takes a FETCH, as JSON, with the number of its line and its time. False: it tells nothing."""
        told = _read(_FETCH, request)
        if told is None or told.request.replica_id != _CONSUMER or told.request.replica_state is not None:
            return False
        connection, asked_ms = self._connection(FETCH, told), at_ms - round(told.total_time_ms)
        known, answered, cells = self._places, dict[int, _Told](), list[int]()
        for topic in told.response.responses:
            places = known[topic.topic_id or topic.topic]
            for part in topic.partitions:
                if part.error_code in _TELLING:
                    place = places.get(part.partition_index)
                    if place is None:
                        place = self._place(topic.topic_id or topic.topic, part.partition_index)
                    answered[place] = part
        for wanted in told.request.topics:
            places = known[wanted.topic_id or wanted.topic]
            for asked in wanted.partitions:
                place = places.get(asked.partition)
                if place is None:
                    place = self._place(wanted.topic_id or wanted.topic, asked.partition)
                end = answered.pop(place, _NOT_ANSWERED).end(position, asked_ms)
                cells += (connection, place, at_ms, asked.fetch_offset, *end)
        for place, part in answered.items():
            if part.error_code == 0 <= part.high_watermark:
                cells += (connection, place, at_ms, NOT_TOLD, *part.end(position, asked_ms))
        return self._take(FETCH, cells)

    def take_ends(self, request: bytes, position: int, at_ms: int) -> bool:
        """Takes the ends of logs from a LIST_OFFSETS, as JSON, with the number of its line and its time. False: it tells none."""
        told = _read(_LIST_OFFSETS, request)
        if told is None or told.request.replica_id != _CONSUMER:
            return False
        is_stable = told.request.isolation_level == _READ_COMMITTED
        topics, cells = told.request.topics, list[int]()
        latest = {(topic.name, part.partition_index) for topic in topics for part in topic.partitions if part.timestamp == _LATEST}
        for topic in told.response.topics:
            for part in topic.partitions:
                if (topic.name, part.partition_index) in latest and part.error_code == 0 <= part.offset:
                    place = self._place(topic.name, part.partition_index)
                    end, stable = (NOT_TOLD, part.offset) if is_stable else (part.offset, NOT_TOLD)
                    cells += (self._connection(LIST_OFFSETS, told), place, at_ms, NOT_TOLD, end, position, False, at_ms, stable)
        return self._take(LIST_OFFSETS, cells)

    def take_markers(self, request: bytes, position: int, at_ms: int) -> bool:
        """Takes from a WRITE_TXN_MARKERS, as JSON, in which partitions a transaction has ended. False: it tells none."""
        told = _read(_MARKERS, request)
        markers = told.response.markers if told is not None else []
        topics = [topic for marker in markers for topic in marker.topics if topic.name]
        places = [self._place(topic.name, part.partition_index) for topic in topics for part in topic.partitions if part.error_code == 0]
        of = self._connection(WRITE_TXN_MARKERS, told) if told is not None else -1
        cells = [(of, place, at_ms, NOT_TOLD, NOT_TOLD, position, True, at_ms, NOT_TOLD) for place in places]
        return self._take(WRITE_TXN_MARKERS, [*chain.from_iterable(cells)])

    def learn(self, request: bytes, position: int, at_ms: int) -> None:
        """Takes the ids of topics from an answer to METADATA."""
        told = _read(_METADATA, request)
        for topic in told.response.topics if told is not None else ():
            if topic.error_code == 0 and topic.name and topic.topic_id:
                self.topics.setdefault(topic.topic_id, (topic.name, at_ms, position))

    def _take(self, api: str, cells: list[int]) -> bool:
        if not cells:
            return False
        self.cells.fromlist(cells)
        self.lines[api] += 1
        return True

    def _place(self, topic: str, number: int) -> int:
        """Where a partition stands."""
        places = self._places[topic]
        if number not in places:
            places[number] = len(self.partitions)
            self.partitions.append(f"{topic}-{number}")
        return places[number]

    def _connection(self, api: str, told: _Line[Any, Any]) -> int:
        """The number of the line's connection among those with requests of this API."""
        number = self._connections[api].setdefault(told.connection, len(self.senders))
        if number == len(self.senders):
            client, software = told.request_header.client_id or "", told.client_information
            self.senders.append(Sender(api, told.connection, client, f"{software.software_name} {software.software_version}"))
        return number

    def __bool__(self) -> bool:
        return bool(self.cells or self.topics)


def json_in(text: bytes, begin: int, end: int) -> bytes:
    """The JSON in a line, which begins and ends there in a text."""
    return text[text.find(b"{", begin, end) : text.rfind(b"}", begin, end) + 1]


def _read(decoder: json.Decoder[_Read], request: bytes) -> _Read | None:
    """A request that was completed. None: it is not JSON, or not of this kind."""
    try:
        return decoder.decode(request)
    except (MsgspecError, UnicodeDecodeError):
        return None


encoded: Final = msgpack.Encoder().encode
decoded: Final = msgpack.Decoder(Fetched).decode
"""The stored form of requests, and back."""
