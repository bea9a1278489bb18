"""Decides which lines of a broker's log are kept: those that may concern a group, tell of a broker's life or release, or are damaged."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import Final

from jobs.logs.bytes import LogBytes
from jobs.logs.envelopes import Unwrapper, unwrapped
from jobs.logs.envelopes.unwrap import ENVELOPE
from jobs.logs.faults import BAD_API_NAME, BAD_TIMESTAMP, NO_TIMESTAMP, NOT_A_REQUEST
from jobs.logs.fetches.lines import BY_NUMBERS
from jobs.logs.judge import LineJudge
from jobs.logs.mark import Mark
from jobs.logs.times import LENGTH, looks_like_time
from jobs.sentences import broker

_GROUP_API_KEYS: Final = {
    b"JOIN_GROUP": b"11", b"SYNC_GROUP": b"14", b"HEARTBEAT": b"12", b"LEAVE_GROUP": b"13", b"OFFSET_COMMIT": b"8", b"OFFSET_FETCH": b"9",
    b"TXN_OFFSET_COMMIT": b"28", b"DELETE_GROUPS": b"42", b"FIND_COORDINATOR": b"10", b"CONSUMER_GROUP_HEARTBEAT": b"68",
    b"SHARE_GROUP_HEARTBEAT": b"76", b"STREAMS_GROUP_HEARTBEAT": b"88", b"SHARE_FETCH": b"78", b"SHARE_ACKNOWLEDGE": b"79",
}  # fmt: skip
GROUP_APIS: Final = frozenset(_GROUP_API_KEYS)
_KEYS: Final = frozenset(_GROUP_API_KEYS.values())
# The frequent ones of the others. A name that is not here is looked at twice, no more.
_OTHER_APIS: Final = frozenset(
    b"PRODUCE FETCH LIST_OFFSETS METADATA OFFSET_FOR_LEADER_EPOCH "
    b"BROKER_HEARTBEAT ADD_PARTITIONS_TO_TXN ADD_OFFSETS_TO_TXN END_TXN INIT_PRODUCER_ID WRITE_TXN_MARKERS "
    b"LEADER_AND_ISR STOP_REPLICA UPDATE_METADATA ALTER_PARTITION SASL_HANDSHAKE SASL_AUTHENTICATE "
    b"DESCRIBE_GROUPS LIST_GROUPS DESCRIBE_CONFIGS CONSUMER_GROUP_DESCRIBE".split()
)

_OF_SHARE: Final = frozenset({b"SHARE_FETCH", b"SHARE_ACKNOWLEDGE"})
_AGAIN: Final = re.compile(rb'"deliveryCount":(?!1\})|[eE]rrorCode":(?!0,)')
"""What shows that records were delivered again, or acknowledged too late; other requests of share consumers are not read."""

_BY_NUMBERS: Final = {api.encode(): api for api in BY_NUMBERS}
_API_VERSIONS: Final = b"API_VERSIONS"
_FEATURE: Final = b'"name":"metadata.version","minVersion":'
_LEVEL: Final = re.compile(_FEATURE + rb'\d{1,5},"maxVersion":(\d{1,5})\}')
_CONNECTION: Final = b'"connection":"'
_ADDRESS: Final = re.compile(_CONNECTION + rb'([^"\s]{1,255}?:\d{1,5})-')

_REQUEST: Final = b"Completed request:"
_API: Final = b'"requestApiKeyName":"'
_API_LENGTH: Final = len(_API)
_REQUEST_WITHIN: Final = 256  # bytes from the start of the line; level, thread and class may stand before it
_OLD_REQUEST: Final = re.compile(rb"Completed request:(?:RequestHeader\(apiKey=([A-Z_0-9]+)[,)]|\{api_key=(\d+),|Name: ?(\w+);)")
_OLD_NAMES: Final = GROUP_APIS | _KEYS | {b"OffsetCommitRequest", b"OffsetFetchRequest"}
_API_KEY: Final = re.compile(rb'"requestApiKey":(\d+)')
_API_NAME: Final = re.compile(rb"[A-Z_0-9]+")
_API_NAME_WITHIN: Final = 64

_COORDINATOR_LOGGERS: Final = (b"kafka.coordinator.group.", b"org.apache.kafka.coordinator.group.", b"kafka.coordinator.Group")
_STACK_TRACE: Final = re.compile(rb"\s*(?:at |Caused by: |Suppressed: |\.\.\. \d+ |[\w.$]+(?:Exception|Error)\b)")
_LOG_LINE: Final = re.compile(rb".{24}Z?. ?(?:TRACE|DEBUG|INFO|WARN|ERROR|FATAL)\b.*\(([\w.$\-]+)\)\Z", re.DOTALL)
_LIFE_LOGGERS: Final = frozenset(logger.encode() for logger in broker.LOGGERS)
_REQUEST_LOGGER: Final = b"kafka.request.logger"
_REQUEST_SIGNS: Final = (_REQUEST_LOGGER, b'"requestApi', b'"correlationId"', b'"errorCode"', b'"clientInformation"')


class BrokerJudge(LineJudge):
    """Judges the lines of a request log, a server.log, or one file with both."""

    repeats = True

    def __init__(self, mark: Mark, unwrap: Unwrapper = unwrapped) -> None:
        """`unwrap`: takes off what stands around a line."""
        super().__init__(mark)
        self.bare = unwrap
        self.candidates = unwrap.candidates
        self.leaves_own = not unwrap.layouts

    def begin(self, lines: Iterable[bytes], log: Callable[[], LogBytes]) -> None:  # noqa: ARG002
        """Decides from a log's first lines which kind it is, so that the very first line is judged correctly."""
        for line in lines:
            if _REQUEST in line[:_REQUEST_WITHIN]:
                self.mark.requests += 1
            elif line.strip():
                self.mark.others += 1
                self.mark.other_loggers += bool(_other_logger(line))

    def timed(self, line: bytes, fault: str) -> str | None:
        """Keeps requests of group APIs, lines of the group coordinator, those that tell a release, and damaged lines."""
        if fault:
            return fault
        offset = line.find(_REQUEST, LENGTH, _REQUEST_WITHIN)
        if offset < 0:
            return self._no_request(line)
        mark = self.mark
        mark.requests += 1
        mark.after_other = False
        start = line.find(_API, offset) + _API_LENGTH
        name = line[start : line.find(b'"', start)]
        if name in GROUP_APIS:
            return None if name in _OF_SHARE and line.endswith(b")") and _AGAIN.search(line, start) is None else ""
        if name in _OTHER_APIS and line.find(_REQUEST, offset + 1) < 0:
            return _BY_NUMBERS.get(name)
        if name == _API_VERSIONS and line.find(_REQUEST, offset + 1) < 0:
            return self._versions(line, start)
        return _unusual_request(line, offset)

    def _versions(self, line: bytes, start: int) -> str | None:
        """Keeps an answer to ApiVersions, 5 kB for each connection, only if its broker did not tell the same metadata.version before.

        Several brokers may write into one log: each has an address of its own.
        """
        place = line.rfind(_FEATURE, start)  # it stands near the end
        level = _LEVEL.match(line, place) if place > 0 else None
        if level is None or not line.endswith(b")"):
            return None
        found = _ADDRESS.match(line, max(line.rfind(_CONNECTION, level.end()), 0))
        address, number = "" if found is None else found[1].decode("utf-8", "replace"), int(level[1])
        if self.mark.levels.get(address) == number:
            return None
        self.mark.levels[address] = number
        return ""

    def _no_request(self, line: bytes) -> str | None:
        mark = self.mark
        is_coordinator = _is_coordinator(line)
        logger = b"" if is_coordinator else _other_logger(line)
        if is_coordinator or logger:
            mark.others += 1
            mark.other_loggers += 1
            mark.after_other = True
            return "" if is_coordinator or _tells_of_life(line, logger) else None
        # In a log of requests alone such a line is damage; where other loggers write too, it may be the first line
        # of a longer message.
        pure = mark.is_request_log and not mark.other_loggers
        mark.others += 1
        mark.after_other = not (pure or any(sign in line for sign in _REQUEST_SIGNS))
        return None if mark.after_other else NOT_A_REQUEST

    def untimed(self, line: bytes, fault: str) -> str:
        """Keeps damaged lines, and those that look as if they had lost their time."""
        if fault or not line.strip():
            return fault
        if looks_like_time(line):
            return BAD_TIMESTAMP
        mark = self.mark
        is_request = _REQUEST in line or b'"requestApiKeyName"' in line
        if is_request or (mark.is_request_log and not mark.after_other and not _is_of_another_program(line)):
            mark.others += not is_request
            return NO_TIMESTAMP
        mark.others += 1
        return NO_TIMESTAMP if _STACK_TRACE.match(line) is None and _is_coordinator(line) else ""


def _is_of_another_program(line: bytes) -> bool:
    """Whether a line stands in an envelope and has nothing of a request: `docker compose logs` shows all containers."""
    return ENVELOPE.match(line) is not None and not any(sign in line for sign in _REQUEST_SIGNS)


def _unusual_request(line: bytes, offset: int) -> str | None:
    """Judges a request of no known API that starts at `offset`: None to skip it, "" to keep it, else its fault."""
    if line.find(_REQUEST, offset + 1) > 0:
        return ""  # two lines in one: one of them was cut
    start = line.find(_API, offset)
    if start < 0:
        old = _OLD_REQUEST.match(line, offset)  # text, before Kafka 2.8
        return None if old is not None and old[old.lastindex or 0] not in _OLD_NAMES else ""
    start += _API_LENGTH
    end = line.find(b'"', start, start + _API_NAME_WITHIN)
    if end < 0 or _API_NAME.fullmatch(line, start, end) is None:
        return BAD_API_NAME
    key = _API_KEY.search(line, offset, start)
    return BAD_API_NAME if key is not None and key[1] in _KEYS else None


def _is_coordinator(line: bytes) -> bool:
    """Whether a line comes from the group coordinator. Two signs, because a cut line may have only one of them."""
    if b"[GroupCoordinator" in line or b"GroupMetadataManager" in line or b"[Group Metadata Manager on Broker " in line:
        return True
    return line.endswith(b")") and line.startswith(_COORDINATOR_LOGGERS, line.rfind(b"(") + 1)


def _tells_of_life(line: bytes, logger: bytes) -> bool:
    """Whether a line says how a broker comes or goes, or which release it runs."""
    return logger.rpartition(b".")[2] in _LIFE_LOGGERS and broker.read(line.decode("utf-8", "replace")) is not None


def _other_logger(line: bytes) -> bytes:
    """The logger of a complete line of a logger other than the request logger; empty for other lines."""
    match = _LOG_LINE.match(line)
    return match[1] if match is not None and match[1] != _REQUEST_LOGGER else b""
