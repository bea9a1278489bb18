"""A broker's line as Kafka's own configuration writes it: `[time] LEVEL message (logger)`, and which loggers write what.

A logger may be cut (`%c{1}`, `%c{1.}`). A line that ends without a logger stays without one: it may have been cut there. A user can name
the pattern (patterns.py), who knows better.
"""

from __future__ import annotations

import re
from typing import Final

LEVEL: Final = rb"(?:TRACE|DEBUG|INFO|WARN(?:ING)?|ERROR|FATAL)"
LEVELS: Final[dict[bytes, bytes]] = {
    **{name: name for name in (b"TRACE", b"DEBUG", b"INFO", b"WARN", b"ERROR", b"FATAL")},
    b"WARNING": b"WARN", b"NOTICE": b"INFO", b"CRITICAL": b"FATAL", b"ALERT": b"FATAL", b"EMERGENCY": b"FATAL", b"SEVERE": b"ERROR",
    b"CONFIG": b"DEBUG", b"FINE": b"DEBUG", b"FINER": b"TRACE", b"FINEST": b"TRACE",
}  # fmt: skip
"""By log4j's names, those of Python, Google Cloud and java.util.logging."""
LOGGER: Final = rb"[A-Za-z_$][\w$]*(?:\.[\w$]+)+"  # a name with dots, whole or cut: `kafka.server.KafkaServer`, `k.s.KafkaServer`

# `:\d\d:\d\d|\d{10}`, with a first character of its own: so it is found twice as fast.
ANY_TIME_SIGN: Final = re.compile(rb"[:\d](?:(?<=:)\d\d:\d\d|(?<=\d)\d{9})")  # what every time has, of any form
OWN_HEADER: Final = rb"\[\d{4}-\d\d-\d\d \d\d:\d\d:\d\d,\d{3}\] "
OWN_START: Final = OWN_HEADER + LEVEL + rb" (?![ \t]|\[[^\]\n]*\][ \t]+(?:\[|Completed request:))"  # a thread may stand there
_OWN: Final = re.compile(OWN_START)
_COLOURS: Final = re.compile(rb"\x1b\[[0-9;]*[mK]")
_COLOUR: Final = rb"(?:" + _COLOURS.pattern + rb")*"
_COLOURED_LOGGER: Final = rb"(?:\(" + _COLOUR + rb"[\w.$:]+" + _COLOUR + rb"\))?"
_COLOURED_END: Final = re.compile(_COLOUR + rb"[ \t]?" + _COLOUR + _COLOURED_LOGGER + _COLOUR + rb"(?:[^\w\x1b]|\t\d{13})*\Z")
_HEADER_BYTES: Final = 96  # in which time, level, thread and a short logger stand
_LONG_HEADER_BYTES: Final = 256  # with a long logger, and at the end of a line
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
    b"AppInfoParser": b"org.apache.kafka.common.utils.AppInfoParser",
    b"KafkaController": b"kafka.controller.KafkaController",
    b"logger": b"kafka.request.logger",
}
"""The loggers that matter, by the last part of their names. Messages of kafka.coordinator.group.GroupMetadataManager show it."""

_EXPIRY_THREAD: Final = b"[executor-Heartbeat]"
_BY_EXPIRY_THREAD: Final = b" (thread: executor-Heartbeat)"
_JAVA_COORDINATOR: Final = b"[GroupCoordinator id="
_SCALA_MANAGER: Final = b"[GroupMetadataManager brokerId="
REQUEST: Final = b"Completed request:"
_MARKS: Final = (b"[GroupCoordinator ", _SCALA_MANAGER, REQUEST + b"{")  # how messages begin that only one logger writes

_NAMES: Final = b"|".join(re.escape(name) for name in _SHORT_NAMES if name != b"logger")
SHORT: Final = rb"(?:" + _NAMES + rb")(?:\$\w*)?|logger(?=:\d|[ \t]*\]?[ \t:-]+Completed )"
NUMBERED: Final = rb"[\w$]+(?=:[\d?]+[ \t]+-)"  # %c{1}:%L -


def is_own(text: bytes) -> bool:
    """Whether a line has Kafka's own pattern already."""
    return text[-1:] == b")" and _OWN.match(text) is not None


def is_java(message: bytes) -> bool:
    """Whether the coordinator of Kafka 4 wrote a message."""
    return message.startswith(_JAVA_COORDINATOR)


def with_thread(message: bytes, line: bytes) -> bytes:
    """A message that a rebalance begins, with the thread that wrote it where that alone tells why.

    Coordinators before 2.1 write no reason. Sessions expire on a thread of their own: DelayedHeartbeat.onExpiration runs on the executor of
    the purgatory "Heartbeat" (DelayedOperationPurgatory.scala; SystemTimer in Timer.scala names it `executor-` and so).
    """
    is_begin = message.startswith(_MARKS[0]) and b": Preparing to re" in message and b" (reason: " not in message
    return message + _BY_EXPIRY_THREAD if _EXPIRY_THREAD in line and is_begin else message


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
        elif is_java(message):
            logger = b"org.apache.kafka.coordinator.group." + last + dollar + inner
    return b"%s%s %s (%s)" % (stamp, name, message, logger)


def guessed_logger(message: bytes) -> bytes:
    """The logger of a whole message that shows it; empty for others."""
    if message.startswith(b"Completed request:{"):
        return b"kafka.request.logger"
    if is_java(message):
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


def is_known_logger(logger: bytes) -> bool:
    """Whether it is one whose lines are read."""
    is_known = logger.rpartition(b".")[2].partition(b"$")[0] in _SHORT_NAMES
    return is_known or logger.startswith((b"kafka.coordinator.group.", b"org.apache.kafka.coordinator.", b"kafka.request."))
