"""A broker's line in other log4j patterns, as Kafka's own configuration writes it: `[time] LEVEL message (logger)`.

| pattern | of |
|---|---|
| `[%d] %p %m (%c)%n` | Kafka's config/log4j.properties and log4j2.yaml, which Bitnami's and Confluent's images take over |
| `%d{ISO8601} %p %m (%c) [%t]%n` | Strimzi and AMQ Streams with log4j 1 (their default-logging/KafkaCluster.properties) |
| `%d{yyyy-MM-dd HH:mm:ss} %-5p [%t] %c{1}:%L - %m%n` | the same with log4j 2 |
| `%d [%t] %-5p %c - %m%n` | log4j's TTCC, Logback, and what people make of them |

The level may stand before or after the time, the thread before or after the level, and the logger may be cut (`%c{1}`, `%c{1.}`). A line
that ends without a logger stays without one: it may have been cut there. A user can name the pattern (patterns.py), who knows better.

A request whose time has whole seconds is none that is read: the order of a request and of what it caused is lost then, and the model would
find causes that were none.
"""

from __future__ import annotations

import re
from typing import Any, Final

from jobs.logs.envelopes.instants import EPOCH, TIME, has_millis, stamp_of, stamp_of_value

LEVEL: Final = rb"(?:TRACE|DEBUG|INFO|WARN(?:ING)?|ERROR|FATAL)"
LOGGER: Final = rb"[A-Za-z_$][\w$]*(?:\.[\w$]+)+"
"""A name with dots, whole or cut: `kafka.server.KafkaServer`, `k.s.KafkaServer`."""

# `:\d\d:\d\d|\d{10}`, with a first character of its own: so it is found twice as fast.
ANY_TIME_SIGN: Final = re.compile(rb"[:\d](?:(?<=:)\d\d:\d\d|(?<=\d)\d{9})")
"""What every time has, of any form."""
OWN_HEADER: Final = rb"\[\d{4}-\d\d-\d\d \d\d:\d\d:\d\d,\d{3}\] "
OWN_START: Final = OWN_HEADER + LEVEL + rb" (?![ \t]|\[[^\]\n]*\][ \t]+(?:\[|Completed request:))"  # a thread may stand there
_OWN: Final = re.compile(OWN_START)
_COLOURS: Final = re.compile(rb"\x1b\[[0-9;]*[mK]")
_COLOUR: Final = rb"(?:" + _COLOURS.pattern + rb")*"
_COLOURED_LOGGER: Final = rb"(?:\(" + _COLOUR + rb"[\w.$:]+" + _COLOUR + rb"\))?"
_COLOURED_END: Final = re.compile(_COLOUR + rb"[ \t]?" + _COLOUR + _COLOURED_LOGGER + _COLOUR + rb"\s*\Z")
_HEADER_BYTES: Final = 96  # in which time, level, thread and a short logger stand
_LONG_HEADER_BYTES: Final = 256  # with a long logger, and at the end of a line
_HEADER: Final = re.compile(
    rb"(?:\[?(" + LEVEL + rb")[ \t]*\]?[:|-]?[ \t]*)?(\[)?(?:(" + TIME + rb")|(" + EPOCH + rb"))(?(2)\])(?:[ \t]+(?:[-|][ \t]+)?|(?=\[))"
)
"""A level or none, and a time, in brackets or not. With one bracket alone the line has lost bytes."""

_SHORT_NAMES: Final = {
    b"GroupCoordinator": b"kafka.coordinator.group.GroupCoordinator",
    b"GroupMetadata": b"kafka.coordinator.group.GroupMetadata",
    b"GroupMetadataManager": b"org.apache.kafka.coordinator.group.GroupMetadataManager",
    b"GroupCoordinatorService": b"org.apache.kafka.coordinator.group.GroupCoordinatorService",
    b"GroupCoordinatorShard": b"org.apache.kafka.coordinator.group.GroupCoordinatorShard",
    b"OffsetMetadataManager": b"org.apache.kafka.coordinator.group.OffsetMetadataManager",
    b"ClassicGroup": b"org.apache.kafka.coordinator.group.classic.ClassicGroup",
    b"ConsumerGroup": b"org.apache.kafka.coordinator.group.modern.consumer.ConsumerGroup",
    b"CoordinatorRuntime": b"org.apache.kafka.coordinator.common.runtime.CoordinatorRuntime",
    b"BrokerServer": b"kafka.server.BrokerServer",
    b"KafkaServer": b"kafka.server.KafkaServer",
    b"LogManager": b"kafka.log.LogManager",
    b"LoggingSignalHandler": b"org.apache.kafka.common.utils.LoggingSignalHandler",
    b"ZooKeeperClient": b"kafka.zookeeper.ZooKeeperClient",
    b"FetchSessionHandler": b"org.apache.kafka.clients.FetchSessionHandler",
    b"ReplicationControlManager": b"org.apache.kafka.controller.ReplicationControlManager",
    b"KafkaController": b"kafka.controller.KafkaController",
    b"logger": b"kafka.request.logger",
}
"""The loggers that matter, by the last part of their names. Messages of kafka.coordinator.group.GroupMetadataManager show it."""

_EXPIRY_THREAD: Final = b"[executor-Heartbeat]"
_BY_EXPIRY_THREAD: Final = b" (thread: executor-Heartbeat)"
_JAVA_COORDINATOR: Final = b"[GroupCoordinator id="
_SCALA_MANAGER: Final = b"[GroupMetadataManager brokerId="
REQUEST: Final = b"Completed request:"
_MARKS: Final = (b"[GroupCoordinator ", _SCALA_MANAGER, REQUEST + b"{")
"""How messages begin that only one logger writes."""

_NAMES: Final = b"|".join(re.escape(name) for name in _SHORT_NAMES if name != b"logger")
_SHORT: Final = rb"(?:" + _NAMES + rb")(?:\$\w*)?|logger(?=:\d|[ \t]*\]?[ \t:-]+Completed )"
_NUMBERED: Final = rb"[\w$]+(?=:[\d?]+[ \t]+-)"  # %c{1}:%L -
_ANY_LOGGER: Final = rb"(" + LOGGER + rb"|" + _NUMBERED + rb"|" + _SHORT + rb")(?::[\d?]+)?"
_THREAD: Final = rb"\[(?!\d{4}-)[^\[\]]*\]"
_TO_LEVEL: Final = re.compile(rb"(?:" + _THREAD + rb"[ \t]*)?\[?(" + LEVEL + rb")\b[ \t]*\]?:?[ \t]*(?:[-|][ \t]+)?")
_LOGGER_LAST: Final = re.compile(rb"(.*)[ \t]\((" + LOGGER + rb"|" + _SHORT + rb")(?::[\d?]+)?\)(?:[ \t]*\[[^\[\]]*\])?\s*\Z", re.DOTALL)
_LOGGER_FIRST: Final = tuple(
    re.compile(rb"(?:" + _THREAD + rb"[ \t]*(?:-[ \t]+)?)?" + pattern + rb"[ \t]+(.*)\Z", re.DOTALL)
    for pattern in (
        _ANY_LOGGER + rb"[ \t]*[-:]",
        rb"\[" + _ANY_LOGGER + rb"[ \t]*\](?:[ \t]*" + _THREAD + rb")?[ \t]*[-:]?",
        _ANY_LOGGER + rb"[ \t]+" + _THREAD + rb"[ \t]*[-:]?",
    )
)
_OF_MESSAGE: Final = (
    rb"\[(?:BrokerServer|Kafka ?Server|ZooKeeperClient|ReplicaFetcher|QuorumController|Controller|BrokerChangeListener on Controller)[ \]]"
)
_THREAD_BEFORE: Final = re.compile(rb"(?!" + _OF_MESSAGE + rb")" + _THREAD + rb"[ \t]+(?=[^ \t])")


def is_own(text: bytes) -> bool:
    """Whether a line has Kafka's own pattern already."""
    return text[-1:] == b")" and _OWN.match(text) is not None


def as_own(text: bytes, moment: Any = None) -> bytes | None:
    """The line as Kafka's own configuration writes it; None if this is no such line, nor one of another log4j pattern.

    `moment`: when the line was written, as what stands around it says (`stamp_of_value`), for a line that has no time.
    """
    if is_own(text):
        return text
    text = text.rstrip(b"\r\n")
    stamp, level, rest, at = None, None, text, moment
    while level is None and (header := _HEADER.match(rest)) is not None:
        level, _, time, epoch = header.groups()
        at, rest = time or epoch, rest[header.end() :]
        stamp = stamp_of(at)
        if stamp is None:
            return None
    if level is None:
        found = _TO_LEVEL.match(rest)
        if found is not None:
            level, rest = found[1], rest[found.end() :]
        elif not rest.startswith(_MARKS):
            return None
    message, logger = _parts(rest)
    if message.startswith(REQUEST) and not has_millis(at):
        return None
    if not logger and (level is None or stamp is None):
        logger = guessed_logger(message)
    if stamp is None:
        stamp = stamp_of_value(moment) if logger else None
    return None if stamp is None else rebuilt(stamp, level, with_thread(message, text), logger)


def with_thread(message: bytes, line: bytes) -> bytes:
    """A message that a rebalance begins, with the thread that wrote it where that alone tells why.

    Coordinators before 2.1 write no reason. Sessions expire on a thread of their own: DelayedHeartbeat.onExpiration runs on the executor of
    the purgatory "Heartbeat" (DelayedOperationPurgatory.scala; SystemTimer in Timer.scala names it `executor-` and so).
    """
    is_begin = message.startswith(_MARKS[0]) and b": Preparing to re" in message and b" (reason: " not in message
    return message + _BY_EXPIRY_THREAD if _EXPIRY_THREAD in line and is_begin else message


def begins_without_time(text: bytes) -> bool:
    """Whether a text may be a line whose time stands elsewhere."""
    return text.startswith(_MARKS) or _TO_LEVEL.match(text) is not None


def rebuilt(stamp: bytes, level: bytes | None, message: bytes, logger: bytes) -> bytes:
    """A line of Kafka's own pattern. Levels are log4j's; a message without one is of INFO."""
    name = b"WARN" if level == b"WARNING" else level or b"INFO"
    if not logger:
        return b"%s%s %s" % (stamp, name, message)
    if not logger.startswith((b"kafka.", b"org.apache.")):
        last, dollar, inner = logger.rpartition(b".")[2].partition(b"$")
        if message.startswith(_SCALA_MANAGER):
            logger = b"kafka.coordinator.group.GroupMetadataManager"
        elif last in _SHORT_NAMES:
            logger = _SHORT_NAMES[last] + dollar + inner
        elif message.startswith(_JAVA_COORDINATOR):
            logger = b"org.apache.kafka.coordinator.group." + last + dollar + inner
    return b"%s%s %s (%s)" % (stamp, name, message, logger)


def guessed_logger(message: bytes) -> bytes:
    """The logger of a whole message that shows it; empty for others."""
    if message.startswith(b"Completed request:{"):
        return b"kafka.request.logger"
    if message.startswith(_JAVA_COORDINATOR):
        return b"org.apache.kafka.coordinator.group.GroupMetadataManager"
    if message.startswith(b"[GroupCoordinator "):
        return b"kafka.coordinator.group.GroupCoordinator"
    return b"kafka.coordinator.group.GroupMetadataManager" if message.startswith(_SCALA_MANAGER) else b""


def uncoloured(text: bytes) -> bytes:
    """A line without the colours of its layout. Those inside of a message remain: a client may have named itself so."""
    end = _COLOURED_END.search(text, max(0, len(text) - _LONG_HEADER_BYTES))
    last = end.start() if end is not None else len(text)
    first = min((at for mark in _MARKS if (at := text.find(mark, 0, _LONG_HEADER_BYTES)) >= 0), default=_HEADER_BYTES)
    first = min(first, last)
    return _COLOURS.sub(b"", text[:first]) + text[first:last] + _COLOURS.sub(b"", text[last:])


def _parts(rest: bytes) -> tuple[bytes, bytes]:
    """Message and logger of what follows time and level. A logger that is not there is empty."""
    last = _LOGGER_LAST.match(rest)
    if last is not None:
        message, logger = last.groups()
        if message.startswith(b"[") and not message.startswith(_MARKS) and (thread := _THREAD_BEFORE.match(message)) is not None:
            message = message[thread.end() :] if _matters(logger) else message
        return message, logger
    for pattern in _LOGGER_FIRST:
        first = pattern.match(rest)
        if first is not None:
            return first[2], first[1]
    return rest, b""


def _matters(logger: bytes) -> bool:
    is_known = logger.rpartition(b".")[2].partition(b"$")[0] in _SHORT_NAMES
    return is_known or logger.startswith((b"kafka.coordinator.group.", b"org.apache.kafka.coordinator.", b"kafka.request."))
