"""JSON in which a line, or its parts, are fields: what collectors write, and log4j's JSON layouts.

| names of fields | of |
|---|---|
| `instant`, `timeMillis`, `level`, `loggerName`, `message` | log4j2's JsonLayout, and JsonTemplateLayout's JsonLayout.json |
| `@timestamp`, `level`, `logger_name`, `message` | log4j1's JSONEventLayoutV1, LogstashJsonEventLayoutV1.json |
| `@timestamp`, `log.level`, `log.logger`, `message` | EcsLayout.json; Filebeat nests it: `log: {level, logger}` |
| `timestamp`, `level` (a number of syslog), `_logger`, `short_message` | GelfLayout.json |
| `timestamp`, `severity`, `_logger`, `message` | GcpLayout.json |
| `log`, `time` | Docker's json-file; Fluent Bit and Fluentd |
| `message`, `timestamp` | CloudWatch, Vector, Datadog (in `attributes` or `content`), Elasticsearch (in `_source`) |
| `MESSAGE`, `__REALTIME_TIMESTAMP` | journalctl -o json |
| `textPayload`, `jsonPayload`, `timestamp` | Google Cloud |
| `LogMessage`, `LogEntry`, `TimeGenerated` | Azure's Container Insights, the new table and the old one |
| `line`, `timestamp` | logcli -o jsonl |
| `_raw`, `_time` (in `result`) | Splunk |
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any, Final

import msgspec

from jobs.logs.envelopes.anchors import ANCHOR, line_of
from jobs.logs.envelopes.instants import last_time, stamp_of_value
from jobs.logs.envelopes.layouts import LEVELS, guessed_logger, is_own

TEXT_FIELDS: Final = (
    "log", "message", "MESSAGE", "msg", "textPayload", "line", "_raw", "LogMessage", "LogEntry", "short_message", "@message",
    "event", "body",
)  # fmt: skip
"""Where most put the line: here it is looked for first, then in all texts. `event` is structlog's, `body` OpenTelemetry's."""
_TIME_FIELDS: Final = (
    "@timestamp", "timestamp", "time", "instant", "timeMillis", "__REALTIME_TIMESTAMP", "TimeGenerated", "_time", "ts", "date", "datetime",
)  # fmt: skip
_LOGGER_FIELDS: Final = ("loggerName", "logger_name", "log.logger", "_logger", "logger", "loggername")
_LEVEL_FIELDS: Final = ("level", "log.level", "severity", "loglevel", "Level")

_SEVERITIES: Final = dict(enumerate((b"FATAL", b"FATAL", b"FATAL", b"ERROR", b"WARN", b"INFO", b"INFO", b"DEBUG")))  # of syslog, RFC 5424

_SHORTEST: Final = 20  # characters of a line
_BEGIN: Final = re.compile(rb'\{\s*\\?"|(?:\A|[ \t])[ \t,\[]{0,32}"')  # where an object begins, or a string or a member of an object
_MOST_BYTES: Final = 16 << 20
_NAMES: Final = "|".join(map(re.escape, TEXT_FIELDS)).encode()
_MEMBER: Final = re.compile(rb'\s*"(?:' + _NAMES + rb')"[ \t]*:[ \t]*(".*")[ \t]*,?\s*\Z', re.DOTALL)
"""One member of an object that is printed over several lines: `    "message": "…",` (the AWS CLI, gcloud, jq)."""
_STRING: Final = re.compile(rb'\s*(".*")[ \t]*,?\s*\Z', re.DOTALL)  # jq .message

Find = Callable[[bytes, Any], "bytes | None"]  # finds the line in a text, by the text and the time of what stands around it
Read = Callable[["dict[str, Any]", Any, Find], "bytes | None"]  # finds the line in the texts of an entry, not in those of entries in it

_decode: Final = msgspec.json.Decoder().decode
_read_object: Final = json.JSONDecoder().raw_decode


class _Usual(msgspec.Struct):
    """The fields in which most collectors put the line. What else an object has is skipped, which takes half of the time."""

    log: Any = None
    message: Any = None


_decode_usual: Final = msgspec.json.Decoder(_Usual).decode


def own_line_of_json(text: bytes) -> bytes | None:
    """What `line_of_json` finds in a usual field if it is a line of Kafka's own pattern; None for anything else."""
    try:
        entry = _decode_usual(text)
    except (msgspec.DecodeError, ValueError, RecursionError):
        return None
    for value in (entry.log, entry.message):
        if value.__class__ is str:
            line = _first_line(value)
            if is_own(line):
                return _unescaped(line) if b"\\" in line else line
    return None


def line_of_json(text: bytes, place: int, moment: Any, find: Find, read: Read | None = None) -> bytes | None:
    """The line that stands in the JSON of a text that begins before `place`, or anywhere if that is -1; None if there is none.

    `read`: how an entry is read; as a broker's if left out.
    """
    begin = _BEGIN.search(text, 0, place if place >= 0 else len(text))
    if begin is None or len(text) > _MOST_BYTES:
        return None
    time = last_time(text[: begin.start()])
    found = text[begin.start() : text.rfind(b"}" if b"{" in begin[0] else b'"') + 1]
    try:
        value = _decode(found)
    except (msgspec.DecodeError, ValueError, RecursionError):
        value = _part(found)
    return _in_value(value, moment if time is None else time[0], find, read or _of_broker)


def _part(text: bytes) -> Any:
    """The value of one line of a document that has several, or of JSON that was escaped once more; None if it is none."""
    if text.startswith(b'{\\"'):
        return _unescaped_object(text)
    if (member := _MEMBER.match(text) or _STRING.match(text)) is not None:
        part = member[1]
    else:
        part = text.strip(b" \t\r,").removeprefix(b"[").removesuffix(b"]").strip(b" \t,")
        if not part.startswith((b"{", b'"')):
            return None
    try:
        return _decode(part)
    except (msgspec.DecodeError, ValueError, RecursionError):
        return _whole_object(part)


def _unescaped_object(text: bytes) -> Any:
    """The object in JSON that was escaped once more; its text if it is not whole. Some escape nothing but quotes, JSON in it or not."""
    *usual, bare = _unescapings(text)
    for inner in (*usual, bare):
        with suppress(msgspec.DecodeError, ValueError, RecursionError):
            return _decode(inner)
    return usual[0].decode("utf-8", "replace") if usual else None


def _unescapings(text: bytes) -> Iterator[bytes]:
    r"""What a text may have been before its quotes were escaped: with its backslashes, as JSON does it, or alone (`\\"` was `\"`)."""
    with suppress(msgspec.DecodeError, ValueError):
        if isinstance(value := _decode(b'"%s"' % text), str):
            yield value.encode("utf-8", "replace")
    yield text.replace(b'\\"', b'"')


def _whole_object(text: bytes) -> Any:
    """The object with which a text begins, behind which an export left a brace of its own."""
    try:
        return _read_object(text.decode("utf-8", "replace"))[0] if text.endswith(b"}}") else None
    except (ValueError, RecursionError):
        return None


def _in_value(value: Any, moment: Any, find: Find, read: Read) -> bytes | None:
    if isinstance(value, list) and len(value) == 1:  # with more, it is a document of several lines
        value = value[0]
    if isinstance(value, dict):
        return in_entry(value, moment, find, read)
    found = find(_first_line(value), moment) if isinstance(value, str) else None
    return None if found is None else _unescaped(found)


def in_entry(entry: dict[str, Any], moment: Any, find: Find, read: Read) -> bytes | None:
    """The line that stands in an entry, or in an entry that is one of its fields."""
    found = read(entry, moment, find)
    if found is not None:
        return _unescaped(found)
    inner = (_in_value(value, moment_of(entry, moment), find, read) for value in entry.values() if isinstance(value, dict | list))
    return next((found for found in inner if found is not None), None)


def _first_line(value: str) -> bytes:
    """A text without what follows its first line, which is no line of its own in the plain log either."""
    text = value.encode("utf-8", "replace")
    if text[-1:] in b"\r\n":
        text = text.rstrip(b"\r\n")
    return text.partition(b"\n")[0] if b"\n" in text else text


def _unescaped(line: bytes) -> bytes:
    r"""A line without the backslash before each quote of its message: `Completed request:{\"isForwarded\":…`."""
    if line.find(b'Completed request:{\\"', 0, 256) < 0:
        return line
    return next(_unescapings(line))


def moment_of(entry: dict[str, Any], moment: Any) -> Any:
    """The time of an entry; `moment` if it has none."""
    return next((entry[name] for name in _TIME_FIELDS if name in entry and stamp_of_value(entry[name]) is not None), moment)


def _of_broker(entry: dict[str, Any], moment: Any, find: Find) -> bytes | None:
    texts = [_first_line(entry[name]) for name in TEXT_FIELDS if isinstance(entry.get(name), str)]
    texts += [_first_line(value) for name, value in entry.items() if name not in TEXT_FIELDS and _has_anchor(value)]
    own = next((text for text in texts if is_own(text)), None)
    if own is not None:
        return own
    moment = moment_of(entry, moment) if texts else moment
    found = (_in_parts(entry, text, moment) or find(text, moment) for text in texts)
    return next((line for line in found if line is not None), None)


def _has_anchor(value: Any) -> bool:
    return isinstance(value, str) and len(value) >= _SHORTEST and ANCHOR.search(value.encode("utf-8", "replace")) is not None


def _in_parts(entry: dict[str, Any], message: bytes, moment: Any) -> bytes | None:
    """The line of an event whose time, level, logger and message are fields."""
    nested = entry["log"] if isinstance(entry.get("log"), dict) else {}
    logger = next((entry[name] for name in _LOGGER_FIELDS if name in entry), nested.get("logger"))
    source = logger.encode("utf-8", "replace") if isinstance(logger, str) else guessed_logger(message)
    if not source:
        return None
    level = next((entry[name] for name in _LEVEL_FIELDS if name in entry), nested.get("level"))
    name = LEVELS.get(level.upper().encode("utf-8", "replace")) if isinstance(level, str) else None
    name = _SEVERITIES.get(level) if isinstance(level, int) else name
    return None if name is None else line_of(moment, name, message, source)
