"""Heartbeats that become numbers: lines that repeat an earlier line of their log, except for time, correlation id and durations.

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

from jobs.logs.times import LENGTH

_CORRELATION: Final = b',"correlationId":'
_CORRELATION_LENGTH: Final = len(_CORRELATION)
_MOST_DIGITS: Final = 9  # any such number is an INT of Kafka and of Spark
_ZERO: Final = ord("0")
_HEAD_WITHIN: Final = 256  # bytes from the start of the line
_TOTAL: Final = b',"totalTimeMs":'
_TOTAL_LENGTH: Final = len(_TOTAL)
_AFTER_TIMES: Final = b',"securityProtocol":'

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
"""A heartbeat as brokers of Kafka 2.8 to 4.2 log it, from LENGTH on, with its fields: read without a JSON parser."""
_are_times: Final = re.compile(_TIMES.encode(), re.ASCII).fullmatch
_PENDING: Final = 32_768  # beats whose durations are texts

Repeats = Callable[[bytes, int, int], bool]
"""Takes a line with its position and its time (epoch ms). Returns whether it repeats another; if so, it is not kept as text."""


class Beats:
    """The repeated heartbeats of a slice, by the row of their first line."""

    def __init__(self) -> None:
        self.firsts: list[int] = []  # rows of lines that others may repeat
        self.rows: list[int] = []
        self.positions: list[int] = []
        self.ats: list[int] = []
        self.numbers: list[bytes] = []
        self.times: list[bytes] = []
        self._logs: dict[object, Repeats] = {}
        self.count = 0

    def of_log(self, log: object, next_row: Callable[[], int]) -> Repeats:
        """Takes the lines of one log. `next_row`: the row of a line that is kept now."""
        if log not in self._logs:
            self._logs[log] = self._taker(next_row)
        return self._logs[log]

    def _taker(self, next_row: Callable[[], int]) -> Repeats:
        known: dict[bytes, tuple[int, bytes, bytes]] = {}  # by the part that names the member: row, what is before and after
        find = known.get
        add_row, add_position, add_at = self.rows.append, self.positions.append, self.ats.append
        add_number, add_times = self.numbers.append, self.times.append

        def take(line: bytes, position: int, at_ms: int) -> bool:
            correlation = line.find(_CORRELATION, LENGTH, _HEAD_WITHIN)
            number_end = line.find(b",", correlation + _CORRELATION_LENGTH)
            body_end = line.find(_TOTAL, number_end)
            first = find(line[number_end:body_end])
            if first is None:
                if SHAPE.fullmatch(line, LENGTH):
                    after = line[line.index(_AFTER_TIMES, body_end) :]
                    known[line[number_end:body_end]] = next_row(), line[LENGTH:correlation], after
                    self.firsts.append(next_row())
                return False
            row, before, after = first
            number, times = line[correlation + _CORRELATION_LENGTH : number_end], line[body_end + _TOTAL_LENGTH : -len(after)]
            if line[LENGTH:correlation] != before or not line.endswith(after) or _are_times(times) is None:
                return False
            if not number.isdigit() or len(number) > _MOST_DIGITS or number[0] == _ZERO:
                return False
            add_row(row)
            add_position(position)
            add_at(at_ms)
            add_number(number)
            add_times(times)
            self.count += 1
            if len(self.times) >= _PENDING:
                self.settle()
            return True

        return take

    def settle(self) -> None:
        """Is called when many texts have come together."""
