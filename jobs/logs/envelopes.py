"""Takes off what stands around a broker's line: what containers, log shippers and other log4j patterns add to it.

    broker-1  | [2026-11-21 06:09:19,456] INFO [GroupCoordinator 1]: Stabilized group … (kafka.coordinator.group.GroupCoordinator)

becomes the line as Kafka's own configuration writes it. Envelopes may stand in each other (`kubectl logs --prefix --timestamps`). A line
whose inside is no line of a broker stays as it is. The result depends on the line alone.

The broker's own time counts. The time that an envelope has is that of the collector.
"""

from __future__ import annotations

import json
import re
from typing import Any, Final

_LEVEL: Final = rb"(TRACE|DEBUG|INFO|WARN|ERROR|FATAL)"
_UTC_TIME: Final = rb"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d{1,9})?(?:Z|[+-]\d\d:?\d\d)"

PREFIXES: Final = {
    "colours": re.compile(rb"(?:\x1b\[[0-9;]*m)+"),
    "byte order mark": re.compile(rb"\xef\xbb\xbf"),
    # docker compose logs: `broker-1  | `; docker service logs: `kafka_broker.1.x7f3@node-1    | `
    "compose": re.compile(rb"[\w.@-]{1,128} +\| "),
    # journalctl -o short-iso
    "journal iso": re.compile(rb"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?[+-]\d\d:?\d\d \S{1,255} [^\s:\[]{1,64}(?:\[\d+\])?: "),
    # The files of a kubelet (CRI): `2026-11-21T06:09:19.456789012Z stdout F `
    "cri": re.compile(_UTC_TIME + rb" (?:stdout|stderr) [FP] "),
    # kubectl logs --timestamps, docker logs --timestamps, GitHub Actions
    "timestamps": re.compile(_UTC_TIME + rb" "),
    # kubectl logs --prefix: `[pod/kafka-0/kafka] `
    "kubectl prefix": re.compile(rb"\[pod/[\w.-]+/[\w.-]+\] "),
    # stern: `kafka-0 kafka `
    "stern": re.compile(rb"[a-z0-9][a-z0-9.-]{0,252} [a-z0-9][a-z0-9-]{0,62} (?=[\[\d])"),
    # journalctl -o short, syslog: `Nov 21 06:09:19 host kafka-server-start.sh[812]: `
    "journal": re.compile(rb"[A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d(?:\.\d+)? \S{1,255} [^\s:\[]{1,64}(?:\[\d+\])?: "),
    # RFC 5424: `<134>1 2026-11-21T06:09:19.456Z host kafka 812 - - `
    "syslog": re.compile(rb"<\d{1,3}>1 \S+ \S{1,255} \S{1,48} \S{1,128} \S{1,32} (?:-|\[.*?\]) "),
    "syslog priority": re.compile(rb"<\d{1,3}>(?=[A-Z][a-z]{2} )"),
    # grep -r, grep -rn: `broker-1/server.log:`, `broker-1/server.log:812:`
    "grep": re.compile(rb"[^\s:{}\"]{1,512}\.(?:log|out|txt)(?:\.[\w-]+)*(?::\d+)?:"),
}
"""What may stand before a line, by its name."""

TEXT_FIELDS: Final = ("log", "message", "MESSAGE", "msg", "textPayload", "line", "_raw")
"""Where JSON has the line: Docker's json-file and Fluent Bit, Filebeat and CloudWatch, journald, others, Google Cloud, Loki, Splunk."""

_MOST: Final = 5  # envelopes in each other
_JSON_BYTES: Final = 4 << 20
_HEADER: Final = re.compile(rb"(\[)?(\d{4}-\d\d-\d\d)[ T](\d\d:\d\d:\d\d)(?:[,.](\d{3})\d{0,6})?(?(1)\])[ \t]+")
"""A time, in brackets or not. With one bracket alone the line has lost bytes."""
_KAFKAS_OWN: Final = re.compile(_LEVEL + rb"[ \t]+(.*) \(([\w.$-]+)\)(?: \[[^\[\]]*\])?\s*\Z", re.DOTALL)
"""`LEVEL message (logger)`, and Strimzi's `LEVEL message (logger) [thread]`."""
_REQUEST: Final = b"Completed request:"
_LEVELED: Final = re.compile(_LEVEL + rb"[ \t]")
_LOGBACKS: Final = re.compile(
    rb"(?:\[[^\]]*\][ \t]+)?" + _LEVEL + rb"[ \t]+(?:\[[^\]]*\][ \t]+)?([A-Za-z_$][\w$]*(?:\.[\w$]+)+)[ \t]*[-:][ \t]+(.*)\Z", re.DOTALL
)
"""`[thread] LEVEL logger - message`, with the thread before or after the level."""
_SHORT: Final = re.compile(_LEVEL + rb"[ \t]+\[[^\]]*\][ \t]+([A-Za-z_$][\w$]*)(?::[\d?]*)?[ \t]+-[ \t]+(.*)\Z", re.DOTALL)
"""`LEVEL [thread] Class:line - message`: `%-5p [%t] %c{1}:%L - %m`, the pattern of Strimzi's brokers since Kafka 4."""
_LOGGERS: Final = {
    logger.rpartition(b".")[2]: logger
    for logger in (
        b"kafka.request.logger",
        b"kafka.coordinator.group.GroupCoordinator",
        b"kafka.coordinator.group.GroupMetadata",
        b"org.apache.kafka.coordinator.common.runtime.CoordinatorRuntime",
        b"org.apache.kafka.coordinator.common.runtime.CoordinatorRuntime$EventBasedCoordinatorTimer",
        b"org.apache.kafka.coordinator.group.GroupCoordinatorService",
        b"org.apache.kafka.coordinator.group.GroupCoordinatorShard",
        b"org.apache.kafka.coordinator.group.GroupMetadataManager",
        b"org.apache.kafka.coordinator.group.OffsetMetadataManager",
        b"org.apache.kafka.coordinator.group.classic.ClassicGroup",
        b"org.apache.kafka.coordinator.group.modern.consumer.ConsumerGroup",
    )
}
"""Loggers whose lines are read, by the last part of their names."""


def unwrapped(line: bytes) -> bytes:
    """The broker's own line; the line itself where nothing stands around it, or its inside is no broker's line."""
    inside = line
    for _ in range(_MOST):
        found = _plain(inside)
        if found is not None:
            return found
        inner = _text_of_json(inside) if inside[:1] == b"{" else _without_prefix(inside)
        if inner is None:
            return line
        inside = inner
    return line


def _without_prefix(text: bytes) -> bytes | None:
    for prefix in PREFIXES.values():
        match = prefix.match(text)
        if match is not None:
            return text[match.end() :]
    return None


def _text_of_json(text: bytes) -> bytes | None:
    if len(text) > _JSON_BYTES:
        return None
    try:
        entry: Any = json.loads(text)
    except (ValueError, RecursionError):
        return None
    for name in TEXT_FIELDS:
        value = entry.get(name) if isinstance(entry, dict) else None
        if isinstance(value, str):
            return value.rstrip("\r\n").encode("utf-8", "replace")
    return None


def _plain(text: bytes) -> bytes | None:
    """The line as Kafka's own configuration writes it; None if this is no such line, nor one of another log4j pattern."""
    header = _HEADER.match(text)
    if header is None:
        return None
    rest = text[header.end() :].removesuffix(b"\r").removesuffix(b"\x1b[0m")
    bracket, date, time, millis = header.groups()
    # With whole seconds the order of a request and of what it caused is lost, and the model finds causes that were none.
    if not millis and _REQUEST in rest:
        return None
    stamp = b"[%s %s,%s] " % (date, time, millis or b"000")
    if own := _KAFKAS_OWN.match(rest):
        return stamp + b"%s %s (%s)" % own.groups()
    if other := _LOGBACKS.match(rest):
        level, logger, message = other.groups()
        return stamp + b"%s %s (%s)" % (level, message, logger)
    if short := _SHORT.match(rest):
        level, logger, message = short.groups()
        return stamp + b"%s %s (%s)" % (level, message, _LOGGERS.get(logger, logger))
    # The first line of a message that has several.
    return stamp + rest if bracket and _LEVELED.match(rest) else None
