"""Entries in JSON: lines, or the parts of which they are put together, as collectors, log stores and log4j's JSON layouts write them.

A value of JSON is split into its entries, wherever they stand in it: an object with a text that may be a line, a row of a table, a pair of
time and line, a text alone. What stands around an entry in its document gives it what it lacks: its time, and who wrote it.

| names of fields | of |
|---|---|
| `instant`, `timeMillis`, `level`, `loggerName`, `message` | log4j2's JsonLayout, and JsonTemplateLayout's JsonLayout.json |
| `@timestamp`, `level`, `logger_name`, `message` | log4j1's JSONEventLayoutV1, LogstashJsonEventLayoutV1.json |
| `@timestamp`, `log.level`, `log.logger`, `message` | EcsLayout.json; Filebeat nests it: `log: {level, logger}` |
| `@timestamp`, `log.level`, `kafka.log.class`, `kafka.log.component`, `message` | Elastic's integration of Kafka, Filebeat's module |
| `status`, `logger.name`, `message` | Datadog's pipeline of Kafka |
| `level`, `timestamp`, `message: {coordinatorId, reason}` | the rebalancing logs of Huawei's DMS |
| `timestamp`, `level` (a number of syslog), `_logger`, `short_message` | GelfLayout.json |
| `timestamp`, `severity`, `_logger`, `message` | GcpLayout.json |
| `MESSAGE`, `__REALTIME_TIMESTAMP` | journalctl -o json |
| `timeUnixNano`, `body` | OpenTelemetry |
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import cached_property
from typing import Any, Final

import msgspec

from jobs.common.expressions import expression
from jobs.logs.envelopes.anchors import ANCHOR, line_of
from jobs.logs.envelopes.instants import ANY_TIME, last_time, leading_stamp, stamp_of_value
from jobs.logs.envelopes.layouts import LEVELS, guessed_logger, is_own

TEXT_FIELDS: Final = (
    "log", "message", "MESSAGE", "msg", "textPayload", "line", "_raw", "LogMessage", "LogEntry", "short_message", "@message",
    "event", "body", "_msg", "Message",
)  # fmt: skip
"""Where most put the line: here it is looked for first, then in all texts. `event` is structlog's, `_msg` that of VictoriaLogs."""
_TIME_FIELDS: Final = (
    "@timestamp", "timestamp", "time", "instant", "timeMillis", "__REALTIME_TIMESTAMP", "TimeGenerated", "_time", "ts", "date", "datetime",
    "timeUnixNano", "observedTimeUnixNano",
)  # fmt: skip
_LOGGER_FIELDS: Final = (
    "loggerName", "logger_name", "log.logger", "_logger", "logger", "loggername", "kafka.log.class", "logger.name",
    "attributes.logger.name",
)  # fmt: skip
_LEVEL_FIELDS: Final = ("level", "log.level", "severity", "loglevel", "Level", "status")
_COMPONENT: Final = "kafka.log.component"
_NO_COMPONENT: Final = "unknown"
_COORDINATOR: Final = "coordinatorId"
_WITH_COLON: Final = re.compile(r"[A-Z][\w ]* \d+")  # Kafka's older classes: `[GroupCoordinator 1]: `
_SOURCES: Final = (
    "podname", "pod.name", "pod", "containername", "container.name", "container", "logstreamname", "logstream", "hostname", "host.name",
    "host",
)  # fmt: skip
"""Fields that say who wrote a line, in small letters and without underscores, the narrowest first."""
_MOST_LABELS: Final = 64
_DEPTH: Final = 4

_SEVERITIES: Final = dict(enumerate((b"FATAL", b"FATAL", b"FATAL", b"ERROR", b"WARN", b"INFO", b"INFO", b"DEBUG")))  # of syslog, RFC 5424

_SHORTEST: Final = 20  # characters of a line
_BLANKS: Final = 3  # ... and of its blanks
# Where an object, a string or a member begins, also behind the number of a line that grep writes.
_BEGIN: Final = re.compile(rb'\{\s*\\?"|(?:\A|[ \t]|(?<=\*)|(?<=\d[-:]))[ \t,\[]{0,32}"')
_REST: Final = re.compile(r"[\s,\]}]*")  # behind a part of a document, or what an export left there
_MOST_BYTES: Final = 16 << 20
_QUOTED: Final = expression(rb'(?:(?<=[,;\t :-])|^)"([^"]*(?:""[^"]*)*)(?:"(?=[,;\t\r]|\Z)|\Z)')
_TIME_COLUMN: Final = expression(
    rb'(?:(?<=[,;\t])|^)"?(' + ANY_TIME + rb"|\d{13}|\d\d?/\d\d?/\d{4}, \d\d?:\d\d:\d\d(?:\.\d+)? [AP]M)" + rb'"?(?=[,;\t\r]|\Z)'
)

Find = Callable[[bytes, Any], "bytes | None"]  # finds the line in a text, by the text and the time of what stands around it
Read = Callable[["dict[str, Any]", Any, Find], "bytes | None"]  # finds the line in the texts of an entry, by the time around it

_decode: Final = msgspec.json.Decoder().decode
_read_value: Final = json.JSONDecoder().raw_decode


class _Usual(msgspec.Struct):
    """The fields in which most collectors put the line. What else an object has is skipped, which takes half of the time."""

    log: Any = None
    message: Any = None


_decode_usual: Final = msgspec.json.Decoder(_Usual).decode


class Level:
    """An object of JSON in which entries stand, and what it gives to them. `outer`: the one in which it stands."""

    def __init__(self, value: dict[str, Any], outer: Level | None = None) -> None:
        self._value = value
        self._outer = outer

    @cached_property
    def moment(self) -> Any:
        """The nearest time."""
        return moment_of(self._value, None if self._outer is None else self._outer.moment)

    @cached_property
    def source(self) -> str:
        """Who wrote the lines: the nearest pod, container, stream or host."""
        return source_in(self._value) or ("" if self._outer is None else self._outer.source)

    @cached_property
    def columns(self) -> list[str]:
        """The names of the columns of a table."""
        columns = self._value.get("columns", self._value.get("fields"))
        names = [one.get("name") if isinstance(one, dict) else one for one in columns] if isinstance(columns, list) else []
        return [name for name in names if isinstance(name, str)]


def source_in(value: dict[str, Any]) -> str:
    """Who wrote the lines in an object, by its labels; empty if none says so."""
    texts = list(_texts(value))
    return next((text for sign in _SOURCES for path, text in texts if path.endswith(f".{sign}")), "")


def _texts(value: dict[str, Any], path: str = "", depth: int = _DEPTH) -> Iterator[tuple[str, str]]:
    """The texts in an object, and in those in it, by where they stand: `.kubernetes.podname`."""
    for name, one in value.items():
        inner, below = _named(one) if isinstance(one, list) else one, f"{path}.{name.lower().replace('_', '').lstrip('@')}"
        if isinstance(inner, str):
            yield below, inner
        elif isinstance(inner, dict) and depth:
            yield from _texts(inner, below, depth - 1)


def _named(value: list[Any]) -> dict[str, Any]:
    """The object that a list of names and values stands for: OpenTelemetry's attributes, a row of CloudWatch; empty for other lists."""
    pairs = {}
    for one in value[:_MOST_LABELS]:
        name = one.get("key", one.get("field")) if isinstance(one, dict) and len(one) == len(("name", "value")) else None
        if not isinstance(name, str) or "value" not in one:
            return {}
        pairs[name] = _single(one["value"])
    return pairs


def _single(value: Any) -> Any:
    """What stands alone in a list, as Elasticsearch hands out fields, or in an object that names its type, as OpenTelemetry does."""
    if isinstance(value, list) and len(value) == 1:
        return value[0]
    return value.get("stringValue", value) if isinstance(value, dict) else value


def _at(entry: dict[str, Any], path: str) -> Any:
    """The field at a path, whose dots may belong to its name; None if there is none."""
    if path in entry:
        return _single(entry[path])
    first, _, rest = path.partition(".")
    inner = entry.get(first) if rest else None
    return _at(inner, rest) if isinstance(inner, dict) else None


def texts_of(entry: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """What an entry has where most put the line, by the name of the field: put together where Elastic took it apart."""
    for name in TEXT_FIELDS:
        text = _single(entry[name]) if name in entry else None
        if isinstance(text, dict) and name == "event":
            text = text.get("original")
        elif isinstance(text, dict) and _COORDINATOR in text and isinstance(text.get("reason"), str):
            text = f"[GroupCoordinator {text[_COORDINATOR]}]: {text['reason']}"
        if isinstance(text, str) and text:
            component = _at(entry, _COMPONENT) if name == "message" else None
            if isinstance(component, str) and component != _NO_COMPONENT and not text.startswith(f"[{component}]"):
                text = f"[{component}]{':' if _WITH_COLON.fullmatch(component) else ''} {text}"
            yield name, text


def entries_of(value: Any, around: Level | None = None, *, inside: bool = False) -> Iterator[tuple[dict[str, Any] | str, Level | None]]:
    """The entries in a value, each with the level at which it stands. `inside`: the value is a part of another one.

    Of objects in each other, the one that has the text is the entry. Labels, and lists of them, are none.
    """
    if isinstance(value, str):
        if not inside or _says(value) or value.startswith('{"'):
            yield value, around
    elif isinstance(value, list):
        row = _row(value, [] if around is None else around.columns)
        for one in [row] if row else value:
            yield from entries_of(one, around, inside=inside or around is not None)
    elif isinstance(value, dict):
        length = max((len(text) for _, text in texts_of(value)), default=0)
        inner: list[tuple[dict[str, Any] | str, Level | None]] = []
        if length < _SHORTEST and not any(map(_has_anchor, value.values())):
            level = Level(value, around)
            inner = [found for one in value.values() if isinstance(one, dict | list) for found in entries_of(one, level, inside=True)]
        says = length > 0 or any(map(_says, value.values()))
        if inner and (not says or any(isinstance(one, str) or any(texts_of(one)) for one, _ in inner)):
            yield from inner
        elif not inside or says or moment_of(value, None) is not None:
            yield value, around


def _row(value: list[Any], columns: list[str]) -> dict[str, Any]:
    """The entry that a list is: a row of a table, names with values, a time with a line of Loki; empty for other lists."""
    if len(value) > 1 and len(value) == len(columns) and not isinstance(value[0], dict) and value != columns:
        return dict(zip(columns, value, strict=True))
    if len(value) > 1 and isinstance(value[1], str) and not isinstance(value[0], dict | list) and stamp_of_value(value[0]) is not None:
        return {"timestamp": value[0], "message": value[1]}
    return _named(value)


def _says(value: Any) -> bool:
    """Whether a value is a text with words."""
    return isinstance(value, str) and len(value) >= _SHORTEST and value.count(" ") >= _BLANKS


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
    """The line that stands in the JSON of a text that begins before `place`, or anywhere if that is -1.

    None if there is none, or several: then the text is a document (documents.py). `read`: how an entry is read; as a broker's if left out.
    """
    begin = _BEGIN.search(text, 0, place if place >= 0 else len(text))
    if begin is None or len(text) > _MOST_BYTES:
        return None
    time = last_time(text[: begin.start()])
    end = text.rfind(b"}" if b"{" in begin[0] else b'"') + 1
    found = text[begin.start() : end] if end > place else b""  # the name of a thread in quotes may stand before a line
    try:
        value = _decode(found)
    except (msgspec.DecodeError, ValueError, RecursionError):
        value = _part(found)
    if time is not None:
        moment = time[0]
    lines = {line for one, around in entries_of(value) if (line := _line_in(one, around, moment, find, read or _of_broker)) is not None}
    return lines.pop() if len(lines) == 1 else None


def line_of_csv(text: bytes, place: int, moment: Any, find: Find) -> bytes | None:
    """The line in the field of a row of CSV in which `place` is: exports of CloudWatch Logs Insights, Splunk, Datadog, Kibana and Azure.

    A field that holds a broker's line has commas, so it has quotes around it. A field with line ends continues in the next lines, which are
    those of a stack trace. None if there is no such field.
    """
    if place < 0:
        return None
    field = next((field for field in _QUOTED.finditer(text) if field.end() > place), None)
    if field is None or field.start() > place or len(field[1]) == len(text):
        return None
    column = _TIME_COLUMN.search(text)
    at = moment if column is None else column[1]
    return find(field[1].replace(b'""', b'"'), at)


def _line_in(entry: dict[str, Any] | str, around: Level | None, moment: Any, find: Find, read: Read) -> bytes | None:
    if around is not None and around.moment is not None:
        moment = around.moment
    line = find(_first_line(entry), moment) if isinstance(entry, str) else read(entry, moment_of(entry, moment), find)
    return None if line is None else _unescaped(line)


def _part(text: bytes) -> Any:
    """The value of one line of a document, or of JSON that was escaped once more; None if it is none."""
    if text.startswith(b'{\\"'):
        return _unescaped_object(text)
    try:
        written = text.decode("utf-8", "replace").lstrip(" \t,[")
        value, end = _read_value(written)
        if isinstance(value, str) and (member := written[end:].lstrip(" \t")).startswith(":"):
            written = member[1:].lstrip(" \t")
            inner, end = _read_value(written)
            value = {value: inner}
    except (ValueError, RecursionError):
        return None
    return value if _REST.fullmatch(written, end) else None


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
    times = (_single(entry[name]) for name in _TIME_FIELDS if name in entry)
    return next((time for time in times if stamp_of_value(time) is not None), moment)


def _of_broker(entry: dict[str, Any], moment: Any, find: Find) -> bytes | None:
    texts = [_first_line(text) for _, text in texts_of(entry)]
    texts += [_first_line(value) for name, value in entry.items() if name not in TEXT_FIELDS and _has_anchor(value)]
    own = (text for text in texts if is_own(text))
    # A text with a time in its first 32 bytes is a whole line, whatever fields stand beside it.
    found = ((leading_stamp(text[:32]) is None and _in_parts(entry, text, moment)) or find(text, moment) for text in texts)
    return next(own, None) or next(filter(None, found), None)


def _has_anchor(value: Any) -> bool:
    return isinstance(value, str) and len(value) >= _SHORTEST and ANCHOR.search(value.encode("utf-8", "replace")) is not None


def _in_parts(entry: dict[str, Any], message: bytes, moment: Any) -> bytes | None:
    """The line of an event whose time, level, logger and message are fields."""
    logger = next((found for name in _LOGGER_FIELDS if isinstance(found := _at(entry, name), str)), "")
    source = logger.encode("utf-8", "replace") or guessed_logger(message)
    if not source:
        return None
    level = next((found for name in _LEVEL_FIELDS if (found := _at(entry, name)) is not None), None)
    name = LEVELS.get(level.upper().encode("utf-8", "replace")) if isinstance(level, str) else None
    name = _SEVERITIES.get(level) if isinstance(level, int) else name
    return None if name is None else line_of(moment, name, message, source)
