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
import zlib
from array import array
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Annotated, Any, Final, NamedTuple

import msgspec

from jobs.logs.times import LENGTH

if TYPE_CHECKING:  # a shipper needs no NumPy
    from jobs.logs.blocks import Block, Numbers

CORRELATION: Final = b',"correlationId":'
_CORRELATION_LENGTH: Final = len(CORRELATION)
_MOST_DIGITS: Final = 9  # any such number is an INT of Kafka and of Spark
_ZERO: Final = ord("0")
_API_KEY: Final = b'"requestApiKey":'
_BEAT_KEYS: Final = (b"12,", b"68,")
_HEAD_WITHIN: Final = 256  # bytes from the start of the line
TOTAL: Final = b',"totalTimeMs":'
_TOTAL_LENGTH: Final = len(TOTAL)
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
    r'\]? [A-Z]+ Completed request:\{(?:"isForwarded":(?:true|false),)?"requestHeader":\{"requestApiKey":(?:12|(?P<consumer>68))'
    rf',"requestApiVersion":(?P<api_version>(?(consumer)[01]|[0-4])),"correlationId":(?P<correlation_id>{_NUMBER})'
    rf',"clientId":(?:null|{_NAME.format("client_id")}),"requestApiKeyName":"(?(consumer)CONSUMER_GROUP_)HEARTBEAT"\}}'
)
_CLASSIC: Final = (
    rf'"generationId":(?P<generation>-?{_NUMBER}),"memberId":{_NAME.format("member_id")}'
    rf'(?:,"groupInstanceId":(?:null|{_NAME.format("instance_id")}))?\}}'
    rf',"response":\{{(?:"throttleTimeMs":{_NUMBER},)?"errorCode":(?P<error_code>-1|0|[1-9]\d?)\}}'
)
# Nothing changes: the request says nothing new, and the answer gives the same epoch and no assignment.
_STEADY: Final = (
    rf'"memberId":{_NAME.format("id")},"memberEpoch":(?P<epoch>[1-9]\d{{0,8}}),"instanceId":(?:null|{_NAME.format("static_id")})'
    r',"rackId":null,"rebalanceTimeoutMs":-1,"subscribedTopicNames":null(?:,"subscribedTopicRegex":null)?,"serverAssignor":null'
    rf',"topicPartitions":null\}},"response":\{{"throttleTimeMs":{_NUMBER},"errorCode":0,"errorMessage":null,"memberId":"(?P=id)"'
    rf',"memberEpoch":(?P=epoch),"heartbeatIntervalMs":(?P<interval>{_NUMBER}),"assignment":null\}}'
)
_BODY: Final = rf',"request":\{{"groupId":{_NAME.format("group_id")},(?(consumer){_STEADY}|{_CLASSIC})'
_REST: Final = (
    rf',"connection":{_NAME.format("connection")},"totalTimeMs":(?P<times>{_TIMES}),"securityProtocol":{_TEXT},"principal":{_TEXT}'
    rf',"listener":{_TEXT},"clientInformation":\{{"softwareName":{_NAME.format("software_name")}'
    rf',"softwareVersion":{_NAME.format("software_version")}\}}(?:,"privilegedListener":(?:true|false))?\}} \([\w.$]+\)'
)
# kafka RequestConvertToJson, and (ConsumerGroup)HeartbeatRequest.json and (ConsumerGroup)HeartbeatResponse.json of Kafka's clients.
SHAPE: Final = re.compile(f"{_HEADER}{_BODY}{_REST}".encode(), re.ASCII)
"""A heartbeat as brokers of Kafka 2.8 to 4.2 log it, from LENGTH on: read without a JSON parser, by `told_by`.

Of the consumer protocol (KIP-848) only a steady one: an accepted heartbeat that changes nothing.
"""
are_times: Final = re.compile(_TIMES.encode(), re.ASCII).fullmatch
"""Whether a text is that of the durations of a request, as Java writes them."""
PENDING: Final = 32_768  # beats whose durations may be texts

LONGEST_MS: Final = 1_000_000_000  # longest duration that is believed: 11 days. A JoinGroup waits for max.poll.interval.ms at most.
TIMES_TOLERANCE_MS: Final = 0.01
"""Each of five parts and their sum is cut to microseconds: `totalTimeMs` exceeds the sum of its parts by 0 to 0.005."""
NAMES: Final = bytes(set(b'"requestQueueTimeMs":"localTimeMs":"remoteTimeMs":"throttleTimeMs":"responseQueueTimeMs":"sendTimeMs":'))
"""The bytes of the durations that are not of their numbers: without them digits, dots and commas are left."""


NO_INTERVAL: Final = -1

_Int = Annotated[int, msgspec.Meta(ge=-(1 << 31), lt=1 << 31)]


class Group(NamedTuple):
    """What the heartbeats of a group share. `software`: name and version.

    `interval_ms`: the heartbeat interval in the answers, if the group follows the consumer protocol; then all heartbeats are steady.
    """

    group_id: str
    generation: _Int  # or the member epoch
    api_version: _Int
    error_code: _Int
    software: str
    interval_ms: _Int


Told = tuple[Group, str, str | None, str | None, str]
"""What the heartbeats of a member share while it keeps its connection: group, member id, client id, instance id, connection. None: null."""

_OF_BOTH: Final = ("api_version", "client_id", "connection", "group_id", "software_name", "software_version")
_OF_CLASSIC: Final = ("generation", "error_code", "member_id", "instance_id", *_OF_BOTH)
_OF_CONSUMER: Final = ("epoch", "interval", "id", "static_id", *_OF_BOTH)


def told_by(found: re.Match[bytes]) -> Told:
    """What a heartbeat that has SHAPE tells."""
    is_classic = found["consumer"] is None
    epoch, number, member_id, instance, version, client, connection, group_id, *software = found.group(
        *(_OF_CLASSIC if is_classic else _OF_CONSUMER)
    )
    error_code, interval_ms = (int(number), NO_INTERVAL) if is_classic else (0, int(number))
    group = Group(group_id.decode(), int(epoch), int(version), error_code, b" ".join(software).decode(), interval_ms)
    client_id, instance_id = client if client is None else client.decode(), instance if instance is None else instance.decode()
    return group, member_id.decode(), client_id, instance_id, connection.decode()


Repeats = Callable[[bytes, int, int], bool]
"""Takes a line with its position and its time (epoch ms). Returns whether it repeats another; if so, it is not kept as text."""


def places_in(line: bytes) -> tuple[int, int, int]:
    """Where a heartbeat's correlation id begins with its name, where it ends, and where the durations begin.

    What names the member stands between the last two.
    """
    correlation = line.find(CORRELATION, LENGTH, _HEAD_WITHIN)
    number_end = line.find(b",", correlation + _CORRELATION_LENGTH)
    return correlation, number_end, line.find(TOTAL, number_end)


def _key_of(line: bytes) -> bytes:
    """The key of a request's API, and what follows it."""
    start = line.find(_API_KEY, LENGTH, _HEAD_WITHIN) + len(_API_KEY)
    return line[start : start + 3]


def around(line: bytes, places: tuple[int, int, int]) -> tuple[bytes, bytes]:
    """What stands in a heartbeat between the time and the correlation id, and after the durations."""
    return line[LENGTH : places[0]], line[line.index(_AFTER_TIMES, places[2]) :]


def numbers_in(line: bytes, places: tuple[int, int, int], before: bytes, after: bytes) -> tuple[bytes, bytes] | None:
    """Correlation id and durations of a line that names the same member as another; None if it does not repeat that one.

    `before`, `after`: what stands there `around` these numbers.
    """
    correlation, number_end, body_end = places
    number, times = line[correlation + _CORRELATION_LENGTH : number_end], line[body_end + _TOTAL_LENGTH : -len(after)]
    if line[LENGTH:correlation] != before or not line.endswith(after) or are_times(times) is None:
        return None
    if not number.isdigit() or len(number) > _MOST_DIGITS or number[0] == _ZERO:
        return None
    return number, times


class Taken(NamedTuple):
    """Heartbeats column by column, in the order in which they were read."""

    of: list[Any]  # of each: the row of the line that it repeats, or who sent it
    positions: list[int]
    ats: list[int]  # epoch ms
    numbers: list[bytes]  # correlation ids
    times: list[bytes]  # the durations, as logged

    def add(self, of: object, position: int, at_ms: int, number: bytes, times: bytes) -> None:
        """Adds one."""
        self.of.append(of)
        self.positions.append(position)
        self.ats.append(at_ms)
        self.numbers.append(number)
        self.times.append(times)

    def part(self, begin: int, end: int) -> Taken:
        """Some of them."""
        return Taken(self.of[begin:end], self.positions[begin:end], self.ats[begin:end], self.numbers[begin:end], self.times[begin:end])


class LogBeats:
    """The repeated heartbeats of one log: what is known of the lines that others may repeat."""

    def __init__(self, beats: Beats, next_row: Callable[[], int]) -> None:
        """`next_row`: the row of a line that is kept now."""
        self._beats = beats
        self._next_row = next_row
        self.known: dict[bytes, int] = {}  # by the part that names the member: an index in what follows
        self.rows = array("q")
        self.before_of, self.after_of = array("q"), array("q")  # indexes of what stands before and after its numbers
        self.befores: dict[bytes, int] = {}
        self.afters: dict[bytes, int] = {}
        self._around: list[tuple[bytes, bytes]] = []

    def take(self, line: bytes, position: int, at_ms: int, *, is_beat: bool = False) -> bool:
        """Takes a line with its position and its time (epoch ms), if it repeats another. If not, it is kept as text.

        `is_beat`: it is known to have SHAPE.
        """
        if not is_beat and _key_of(line) not in _BEAT_KEYS:
            return False
        places = places_in(line)
        name = line[places[1] : places[2]]
        first = self.known.get(name)
        if first is None:
            if is_beat or SHAPE.fullmatch(line, LENGTH):
                self._learn(name, *around(line, places))
            return False
        own = numbers_in(line, places, *self._around[first])
        if own is None:
            return False
        self._beats.add(self.rows[first], position, at_ms, *own)
        return True

    def _learn(self, name: bytes, before: bytes, after: bytes) -> None:
        row = self._next_row()
        self.known[name] = len(self.rows)
        self.rows.append(row)
        self.before_of.append(self.befores.setdefault(before, len(self.befores)))
        self.after_of.append(self.afters.setdefault(after, len(self.afters)))
        self._around.append((before, after))
        self._beats.firsts.append(row)
        self._beats.names.append(zlib.crc32(name))


class Beats:
    """The repeated heartbeats of a slice, by the row of their first line."""

    block_of: Callable[[bytes], Block | None] | None = None
    """Makes a block of lines whose repetitions can be taken at once; None if they are taken line by line (beat_numbers.py)."""

    def __init__(self) -> None:
        self.firsts: list[int] = []  # rows of lines that others may repeat
        self.names: list[int] = []  # of each of them: a checksum of what names its member
        self.taken = Taken([], [], [], [], [])
        self._logs: dict[object, LogBeats] = {}
        self.count = 0

    def of_log(self, log: object, next_row: Callable[[], int]) -> Repeats:
        """Takes the lines of one log. `next_row`: the row of a line that is kept now."""
        return self.log(log, next_row).take

    def log(self, log: object, next_row: Callable[[], int]) -> LogBeats:
        """Those of one log."""
        if log not in self._logs:
            self._logs[log] = LogBeats(self, next_row)
        return self._logs[log]

    def add(self, row: int, position: int, at_ms: int, number: bytes, times: bytes) -> None:
        """Adds a line that repeats the one of this row. `number`: its correlation id; `times`: its durations, as logged."""
        self.taken.add(row, position, at_ms, number, times)
        self.count += 1
        if len(self.taken.times) >= PENDING:
            self.settle()

    def take_block(self, log: LogBeats, block: Block, ats: Numbers, first_position: int) -> Sequence[int]:
        """Takes lines of a block that repeat what the log has had before; returns the indexes of the others.

        `ats`: the times of its first lines, which alone are looked at. `first_position`: that of its first line.
        """
        raise NotImplementedError

    def settle(self) -> None:
        """Is called when many texts have come together."""
