"""Takes off what stands around a client's line, and brings what clients of many kinds write into few forms.

    payments-1  | 2026-11-21 06:09:19,456 WARNING kafka.coordinator: Heartbeat poll expired, leaving group

becomes `2026-11-21 06:09:19,456 %||kafka-python| Heartbeat poll expired, leaving group`. These forms leave here:

* a line of Java's client with a time before it, whatever the pattern: `… [Consumer clientId=…, groupId=…] sentence`
* `%4|1795241359.456|MAXPOLL|payments-1#consumer-1| [thrd:main]: sentence`, as librdkafka writes it to standard error
* `time %|facility|client| [thrd:…]: sentence`, librdkafka's line through one of its bindings
* `time %||library| sentence`, a line of another library (sentences.py)
* any other line as it is, but for its envelopes: its time counts, not its text

The line's own time counts. If it has none, the time of the innermost envelope that has one counts. The result depends on the line alone.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from datetime import datetime, timedelta
from typing import Any, Final

from jobs.logs.clients.sentences import library_of, with_fields
from jobs.logs.clients.times import BEGINNING, DATE_AND_TIME
from jobs.logs.envelopes import PREFIXES, TEXT_FIELDS

_LOGFMT_BEGINNING: Final = rb"(?:time|ts|level|lvl|msg|t|logger|caller)="
_DATED: Final = rb"\[?\d{4}[-/]\d\d[-/]\d\d[ T]\d|%\d\||\{|" + _LOGFMT_BEGINNING
"""How a line begins of which nothing is missing."""

_PREFIXES: Final = {
    **PREFIXES,
    # A client's line may begin with any words, so the two words of stern count only before a line that is whole.
    "stern": re.compile(rb"[a-z0-9][a-z0-9.-]{0,252} [a-z0-9][a-z0-9-]{0,62} (?=" + _DATED + rb")"),
}
_TEXT_FIELDS: Final = (*TEXT_FIELDS, "short_message", "event", "body")
"""Also where GELF, structlog and OpenTelemetry have the message."""
_TIME_FIELDS: Final = ("@timestamp", "timestamp", "time", "ts", "instant", "date", "_time", "timeMillis", "__REALTIME_TIMESTAMP")
"""Where JSON and logfmt have the time: as text, or as seconds, ms, µs or ns since 1970."""
_INNER_FIELDS: Final = ("jsonPayload", "_source", "result", "attributes")
"""Where Google Cloud, Elasticsearch, Splunk and Datadog keep the application's own fields."""

_MOST: Final = 6  # envelopes in each other
_ENTRY_BYTES: Final = 1 << 20
_COLOURS: Final = re.compile(rb"\x1b\[[0-9;]*m")
_LINE_ENDS: Final = re.compile(r"[\r\n]+[ \t]*")
_STAMP: Final = re.compile(DATE_AND_TIME)
_AROUND: Final = re.compile(rb"[ \t]*(?:std(?:out|err) [FP] |" + _DATED + rb"|\S{1,255} [^\s:\[]{1,64}(?:\[\d+\])?: )")
"""What follows the time of an envelope, rather than that of a line."""
_LOGFMT: Final = re.compile(_LOGFMT_BEGINNING)
_PAIR: Final = re.compile(r'([A-Za-z_@][\w.@-]*)=("(?:[^"\\]|\\.)*"|[^\s"]*)')

SIGNED: Final = re.compile(rb"(?:%\d\|[\d.]+|(?:\d[\d:./, TUZC+-]{17,46} )?%)\|([A-Z_]*)\|(.*?)\| (\[thrd:[^\]]*\]: )?", re.DOTALL)
"""The beginning of a line in the forms of librdkafka and of other libraries: facility, client or library, librdkafka's thread."""
SIGNED_WITHIN: Final = 8_192  # bytes of a line that are looked through for it

_NAME: Final = rb"#(?:consumer|producer)-\d+"
_NATIVE: Final = re.compile(rb"%\d\|\d{1,11}\.\d{3}\|[A-Z_]+\|")
_BOUND: Final = (
    # confluent-kafka-python with a logger (confluent_kafka.c, log_cb)
    re.compile(rb"(?P<facility>[A-Z_]+) \[(?P<name>[^\[\]]*" + _NAME + rb")?\] (?=\[thrd:)"),
    # confluent-kafka-go with a channel of logs (kafka/log.go, LogEvent.String)
    re.compile(rb"\[(?P<name>[^\[\]]*" + _NAME + rb")\]\[(?P<facility>[A-Z_]+)\]\[\d\](?=\[thrd:)"),
    # Confluent.Kafka of .NET (Loggers.cs, ConsoleLogger)
    re.compile(rb"\|(?P<name>[^|]*" + _NAME + rb")\|(?P<facility>[A-Z_]+)\| (?=\[thrd:)"),
    # rdkafka.c, rd_kafka_log_syslog
    re.compile(rb"(?P<facility>[A-Z_]+): (?P<name>[^:]*" + _NAME + rb"): (?=\[thrd:)"),
)
"""How bindings put together what librdkafka hands them: a facility, the client's name, and `[thrd:…]: sentence`."""

_THREAD: Final = b"[thrd:"
_JAVA: Final = (b"[Consumer ", b"[Worker ")
_NEW_YEAR: Final = datetime(1970, 1, 1)  # noqa: DTZ001 - the result bears Z
_UNITS: Final = ((10**11, 1), (10**14, 1_000), (10**17, 1_000_000), (10**20, 1_000_000_000))
"""Below such a number an epoch time is in seconds, ms, µs, ns: true of 1973 to 5138."""
_OLDEST: Final = 10**8  # s; smaller numbers count from the start of the process


def client_line(line: bytes) -> bytes:
    """A line in one of the forms above; the line itself where there is nothing to change."""
    text = _COLOURS.sub(b"", line) if b"\x1b[" in line else line
    text = _inside(text, b"", _MOST) or text
    return text if text[:1] == b"%" else _said(text) or text


def _inside(text: bytes, stamp: bytes, left: int) -> bytes | None:
    """The line inside of envelopes, with a time; None if it has none. `stamp`: the time of the envelopes so far."""
    own = BEGINNING.match(text)
    if own is not None and (text[:1] == b"%" or _AROUND.match(text, own.end()) is None):
        return text
    if left and text[:1] != b"{":
        for after, time in _without_prefix(text):
            found = _inside(after, time or stamp, left - 1)
            if found is not None:
                return found
    entry = _entry(text) if left else None
    if entry is not None:
        message, time = entry
        return _inside(message, time or stamp, left - 1)
    if own is not None:
        return text
    return stamp + b" " + text.lstrip() if stamp else None


def _without_prefix(text: bytes) -> Iterator[tuple[bytes, bytes]]:
    """What follows each prefix that fits, with the time that the prefix has."""
    for prefix in _PREFIXES.values():
        match = prefix.match(text)
        if match is not None and match.end():
            stamp = _STAMP.search(match[0])
            inside = match["inside"] if "inside" in prefix.groupindex else text[match.end() :]
            yield inside, stamp[0] if stamp else b""


def _entry(text: bytes) -> tuple[bytes, bytes] | None:
    """Message and time of an entry of fields, in JSON or logfmt; None if this is none."""
    if len(text) > _ENTRY_BYTES:
        return None
    fields: Any = None
    if text[:1] == b"{":
        try:
            fields = json.loads(text)
        except (ValueError, RecursionError):
            return None
    elif _LOGFMT.match(text):
        fields = {name: _unquoted(value) for name, value in _PAIR.findall(text.decode("utf-8", "replace"))}
    if not isinstance(fields, dict):
        return None
    inner: dict[str, Any] = next((fields[name] for name in _INNER_FIELDS if isinstance(fields.get(name), dict)), {})
    message = _message(fields) or _message(inner)
    if not message:
        return None
    time = _time(inner) or _time(fields)
    return _LINE_ENDS.sub(" ", message.rstrip("\r\n")).encode("utf-8", "replace"), time


def _message(fields: Mapping[str, Any]) -> str:
    message = next((fields[name] for name in _TEXT_FIELDS if isinstance(fields.get(name), str)), "")
    facility, name = fields.get("fac"), fields.get("name", "")
    if isinstance(facility, str) and isinstance(name, str) and message.startswith("[thrd:"):
        return f"{facility} [{name}] {message}"  # node-rdkafka and confluent-kafka-javascript: {severity, fac, message, name}
    return with_fields(message, fields)


def _unquoted(value: str) -> str:
    if value[:1] != '"':
        return value
    try:
        return str(json.loads(value))
    except ValueError:
        return value[1:-1]


def _time(fields: Mapping[str, Any]) -> bytes:
    """The time of an entry as text, with its offset if it has one; empty if there is none."""
    for name in _TIME_FIELDS:
        value = fields.get(name)
        if isinstance(value, dict) and isinstance(value.get("epochSecond"), int):  # JsonLayout of Log4j 2
            value = value["epochSecond"] * 1_000 + int(value.get("nanoOfSecond") or 0) // 1_000_000
        if isinstance(value, str):
            if _STAMP.fullmatch(value.encode("utf-8", "replace")):
                return value.encode()
            value = int(value) if value.isascii() and value.isdecimal() else None
        time = _of_epoch(value) if isinstance(value, int | float) else b""
        if time:
            return time
    return b""


def _of_epoch(value: float) -> bytes:
    per_second = next((per_second for below, per_second in _UNITS if _OLDEST < value < below), None)
    if per_second is None:
        return b""
    ms = value * 1_000 // per_second if isinstance(value, int) else round(value * 1_000 / per_second)
    at = _NEW_YEAR + timedelta(milliseconds=ms)
    return at.isoformat(timespec="milliseconds").encode() + b"Z"


def _said(text: bytes) -> bytes | None:
    """What a binding of librdkafka or another library says, in the form above; None if this is no such line, or has that form."""
    thread = text.find(_THREAD)
    library, start = library_of(text) if thread < 0 else ("", thread)
    if (thread < 0 and not library) or any(sign in text for sign in _JAVA) or SIGNED.match(text, 0, SIGNED_WITHIN):
        return None
    facility, name = b"", library.encode()
    if thread >= 0:
        native = _NATIVE.search(text, 0, thread)
        if native is not None:  # behind something that is none of the envelopes
            return text[native.start() :]
        bound = next((match for pattern in _BOUND if (match := pattern.search(text)) is not None), None)
        if bound is not None:
            facility, name, start = bound["facility"], bound["name"] or b"", bound.end()
    beginning = BEGINNING.match(text)
    stamp = _STAMP.search(text, 0, beginning.end()) if beginning else None
    return (stamp[0] + b" " if stamp else b"") + b"%%|%s|%s| %s" % (facility, name, text[start:])
