"""Heartbeats as numbers: lines that repeat an earlier line of their log, except for time, correlation id and durations.

A member writes the same heartbeat every few seconds. Its first line of a slice is kept as text and parsed; of every further one only the
numbers are kept. So most of a request log costs neither a parser nor memory for text.

A line is a repetition if all of the following hold. They make sure that the parser would read both lines alike (jobs/parsing):

* its first line has the exact shape of a heartbeat, without escapes or other characters beyond printable ASCII;
* its own numbers are numbers as Java writes them;
* everything else is equal, byte for byte.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pa_csv

from jobs.logs.times import LENGTH

WIDTH: Final = 4
"""Numbers of one beat, 8 bytes each, little-endian: position, time (epoch ms), arrival (epoch µs), correlation id."""

LONGEST_MS: Final = 1_000_000_000
"""Longest duration that is believed: 11 days. A JoinGroup waits for max.poll.interval.ms at most."""
TIMES_TOLERANCE_MS: Final = 0.01
"""Each of five parts and their sum is cut to microseconds: `totalTimeMs` exceeds the sum of its parts by 0 to 0.005."""

_CORRELATION: Final = b',"correlationId":'
_OF_HEARTBEAT: Final = b'"requestApiKey":12,'
_TOTAL: Final = b',"totalTimeMs":'
_AFTER_TIMES: Final = b',"securityProtocol":'
_NAMES: Final = tuple(f'"{name}TimeMs":'.encode() for name in ("requestQueue", "local", "remote", "throttle", "responseQueue", "send"))

_NUMBER: Final = r"(?:0|[1-9]\d{0,8})"
_TIME: Final = rf"{_NUMBER}\.\d{{1,3}}"
_TEXT: Final = r'"[ !#-\[\]-~]*"'
_NAME: Final = r'"(?P<{}>[ !#-\[\]-~]*)"'
_TIMES: Final = (
    rf'{_TIME},"requestQueueTimeMs":{_TIME},"localTimeMs":{_TIME},"remoteTimeMs":{_TIME},"throttleTimeMs":{_NUMBER}'
    rf',"responseQueueTimeMs":{_TIME},"sendTimeMs":{_TIME}'
)
_HEADER: Final = (
    r'\]? [A-Z]+ Completed request:\{(?:"isForwarded":(?:true|false),)?"requestHeader":\{"requestApiKey":12,"requestApiVersion":'
    rf'(?P<api_version>[0-4]),"correlationId":(?P<correlation_id>{_NUMBER}),"clientId":(?:null|{_NAME.format("client_id")})'
    r',"requestApiKeyName":"HEARTBEAT"\}'
)
_REQUEST: Final = (
    rf',"request":\{{"groupId":{_NAME.format("group_id")},"generationId":(?P<generation>-?{_NUMBER})'
    rf',"memberId":{_NAME.format("member_id")}(?:,"groupInstanceId":(?:null|{_NAME.format("instance_id")}))?\}}'
)
_RESPONSE: Final = rf',"response":\{{(?:"throttleTimeMs":{_NUMBER},)?"errorCode":(?P<error_code>-1|0|[1-9]\d?)\}}'
_REST: Final = (
    rf',"connection":{_NAME.format("connection")},"totalTimeMs":(?P<times>{_TIMES}),"securityProtocol":{_TEXT},"principal":{_TEXT}'
    rf',"listener":{_TEXT},"clientInformation":\{{"softwareName":{_NAME.format("software_name")}'
    rf',"softwareVersion":{_NAME.format("software_version")}\}}(?:,"privilegedListener":(?:true|false))?\}} \([\w.$]+\)'
)
# kafka RequestConvertToJson, and HeartbeatRequest.json and HeartbeatResponse.json of Kafka's clients.
SHAPE: Final = re.compile(f"{_HEADER}{_REQUEST}{_RESPONSE}{_REST}".encode(), re.ASCII)
"""A heartbeat as brokers of Kafka 2.8 to 4.2 log it, from LENGTH on, with its fields. A line of this shape is read without a JSON parser."""
_are_times: Final = re.compile(_TIMES.encode(), re.ASCII).fullmatch
_PENDING: Final = 32_768  # beats whose durations are texts

Repeats = Callable[[bytes, int, int], bool]
"""Takes a line with its position and its time (epoch ms). Returns whether it repeats another; if so, it is not kept as text."""


class Beats:
    """The repeated heartbeats of a slice, by the row of their first line."""

    def __init__(self) -> None:
        self._firsts: list[int] = []  # rows of lines that others may repeat
        self._rows: list[int] = []
        self._positions: list[int] = []
        self._ats: list[int] = []
        self._numbers: list[bytes] = []
        self._times: list[bytes] = []
        self._done: list[tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]] = []
        self._logs: dict[object, Repeats] = {}
        self.count = 0

    def of_log(self, log: object, next_row: Callable[[], int]) -> Repeats:
        """Takes the lines of one log. `next_row`: the row of a line that is kept now."""
        if log not in self._logs:
            self._logs[log] = self._taker(next_row)
        return self._logs[log]

    def _taker(self, next_row: Callable[[], int]) -> Repeats:
        first_rows: dict[tuple[bytes, bytes, bytes], int] = {}
        find = first_rows.get

        def take(line: bytes, position: int, at_ms: int) -> bool:
            head, _, rest = line.partition(_CORRELATION)
            if _OF_HEARTBEAT not in head:
                return False
            number, _, rest = rest.partition(b",")
            body, _, rest = rest.rpartition(_TOTAL)
            times, _, end = rest.partition(_AFTER_TIMES)
            key = head[LENGTH:], body, end
            row = find(key)
            if row is None:
                if SHAPE.fullmatch(line, LENGTH):
                    first_rows[key] = next_row()
                    self._firsts.append(next_row())
                return False
            if not number.isdigit() or len(number) > 9 or number[0] == 48 or _are_times(times) is None:
                return False
            self._rows.append(row)
            self._positions.append(position)
            self._ats.append(at_ms)
            self._numbers.append(number)
            self._times.append(times)
            self.count += 1
            if len(self._times) >= _PENDING:
                self._settle()
            return True

        return take

    def _settle(self) -> None:
        """Turns the texts of the newest beats into numbers."""
        at_us = np.array(self._ats, np.int64)
        at_us *= 1_000
        beats = np.empty((len(at_us), WIDTH), np.int64)
        beats[:, 0] = self._positions
        beats[:, 1] = self._ats
        beats[:, 2] = at_us - durations_us(self._times)
        beats[:, 3] = np.array(self._numbers).astype(np.int64)
        self._done.append((np.array(self._rows, np.int64), beats))
        for texts in (self._rows, self._positions, self._ats, self._numbers, self._times):
            texts.clear()

    def by_row(self, rows: int) -> pa.Array:
        """A value for each of `rows` kept lines: the lines that repeat it, in order, WIDTH numbers each; null without SHAPE."""
        if self._times:
            self._settle()
        row_of = np.concatenate([np.zeros(0, np.int64), *(own for own, _ in self._done)])
        beats = np.concatenate([np.zeros((0, WIDTH), np.int64), *(numbers for _, numbers in self._done)])
        beats = beats[np.argsort(row_of, kind="stable")]
        counts = np.bincount(row_of, minlength=rows)
        offsets = np.zeros(rows + 1, np.int32)
        np.cumsum(counts * (WIDTH * 8), out=offsets[1:])
        is_first = np.zeros(rows, np.bool_)
        is_first[self._firsts] = True
        valid = np.packbits(is_first, bitorder="little")
        buffers = [pa.py_buffer(valid), pa.py_buffer(offsets), pa.py_buffer(np.ascontiguousarray(beats))]
        return pa.Array.from_buffers(pa.binary(), rows, buffers)


def durations_us(times: list[bytes]) -> npt.NDArray[np.int64]:
    """How long the broker had each request; 0 where the numbers contradict each other (request_checks.duration_ms of jobs/parsing)."""
    text = b"\n".join(times)
    for name in _NAMES:
        text = text.replace(name, b"")
    names = ["total", "request_queue", "local", "remote", "throttle", "response_queue", "send"]
    read = pa_csv.ReadOptions(column_names=names, use_threads=False, block_size=max(1, len(text)) + 1)
    types = dict.fromkeys(names, pa.float64())
    table = pa_csv.read_csv(pa.BufferReader(text), read_options=read, convert_options=pa_csv.ConvertOptions(column_types=types))
    column = {name: table[name].to_numpy() for name in names}
    parts = column["request_queue"] + column["local"] + column["remote"] + column["response_queue"] + column["send"]
    overlap = np.where(column["remote"] == 0, column["local"], 0.0)
    total = column["total"]
    believed = (total <= LONGEST_MS) & (parts <= total + overlap + TIMES_TOLERANCE_MS)
    return np.where(believed, np.rint(total * 1_000), 0).astype(np.int64)


def counts_of(repeated: pa.Array) -> pa.Array:
    """The number of lines in each value of `Beats.by_row`."""
    return pc.fill_null(pc.divide(pc.binary_length(repeated), WIDTH * 8), 0).cast(pa.int64())


def numbers_of(repeated: pa.ChunkedArray) -> npt.NDArray[np.int64]:
    """The lines in all values of `Beats.by_row`, one after another: an array of WIDTH columns."""
    return np.frombuffer(b"".join(value for value in repeated.to_pylist() if value is not None), np.int64).reshape(-1, WIDTH)
