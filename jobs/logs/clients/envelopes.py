"""Finds a client's words in what stands around them, and brings what clients of many kinds write into few forms.

    payments-1  | 2026-11-21 06:09:19,456 WARNING kafka.coordinator: Heartbeat poll expired, leaving group

becomes `[2026-11-21 06:09:19,456] WARN %||kafka-python| Heartbeat poll expired, leaving group`. These forms leave here:

* `[time] LEVEL [Consumer clientId=…, groupId=…] sentence (logger)`, of Java's client
* `[time] LEVEL %|facility|client| [thrd:…]: sentence`, of librdkafka and its bindings
* `[time] LEVEL %||library| sentence`, of another library (sentences.py)
* `[time] line`, any other line with a time at its beginning

The time is the last one before the words (jobs/logs/envelopes/anchors.py). The result depends on the line alone.
"""

from __future__ import annotations

import json
import re
from contextlib import suppress
from functools import partial
from typing import Any, Final, NamedTuple

from jobs.common.expressions import expression
from jobs.logs.clients.sentences import library_of, with_fields, with_fields_behind
from jobs.logs.envelopes.anchors import evened, is_alone, level_in, parts, unmarked
from jobs.logs.envelopes.entries import Find, line_of_csv, line_of_json, moment_of, texts_of
from jobs.logs.envelopes.instants import last_time, leading_stamp, stamp_of_value
from jobs.logs.envelopes.layouts import OWN_HEADER, rebuilt
from jobs.sentences.client import PREFIX

_MOST: Final = 6  # entries in each other
_ENTRY_BYTES: Final = 1 << 20
_COLOURS: Final = expression(rb"\x1b\[[0-9;]*m")
_LINE_ENDS: Final = expression(r"[\r\n]+[ \t]*")
_LOGFMT: Final = expression(rb"(?<![\w.])(?:time|ts|level|lvl|msg|t|logger|caller)=")
_LOGFMT_WITHIN: Final = 512
_PAIR: Final = expression(r'([A-Za-z_@][\w.@-]*)=("(?:[^"\\]|\\.)*"|[^\s"]*)')

SIGNED: Final = expression(rb"(?:\[[\d :,Z-]{23,24}\] [A-Z]+ )?%\|([A-Z_]*)\|(.*?)\| (\[thrd:[^\]]*\]: )?", re.DOTALL)
"""The beginning of a line in the forms of librdkafka and of other libraries: facility, client or library, librdkafka's thread."""
SIGNED_WITHIN: Final = 8_192  # bytes of a line that are looked through for it

_OWN: Final = expression(OWN_HEADER)
_NAME: Final = rb"#(?:consumer|producer)-\d+"
_NATIVE: Final = expression(rb"%\d\|(?P<time>\d{1,11}\.\d{3})\|(?P<facility>[A-Z_]+)\|(?P<name>[^|]*)\| ")
_BOUND: Final = (
    # confluent-kafka-python with a logger (confluent_kafka.c, log_cb)
    expression(rb"(?P<facility>[A-Z_]+) \[(?P<name>[^\[\]]*" + _NAME + rb")?\] (?=\[thrd:)"),
    # confluent-kafka-go with a channel of logs (kafka/log.go, LogEvent.String)
    expression(rb"\[(?P<name>[^\[\]]*" + _NAME + rb")\]\[(?P<facility>[A-Z_]+)\]\[\d\](?=\[thrd:)"),
    # Confluent.Kafka of .NET (Loggers.cs, ConsoleLogger)
    expression(rb"\|(?P<name>[^|]*" + _NAME + rb")\|(?P<facility>[A-Z_]+)\| (?=\[thrd:)"),
    # rdkafka.c, rd_kafka_log_syslog
    expression(rb"(?P<facility>[A-Z_]+): (?P<name>[^:]*" + _NAME + rb"): (?=\[thrd:)"),
    # ClickHouse (src/Storages/Kafka, the callback of the log)
    expression(rb"\[rdk:(?P<facility>[A-Z_]+)\](?P<name>) (?=\[thrd:)"),
)
"""How bindings put together what librdkafka hands them: a facility, the client's name, and `[thrd:…]: sentence`."""

_THREAD: Final = b"[thrd:"
_JAVA: Final = expression(PREFIX.encode())
_JAVA_SIGN: Final = b"clientId="  # is found faster
_SIGNS: Final = tuple(sign.decode() for sign in (_THREAD, _JAVA_SIGN))


class _Words(NamedTuple):
    """A client's words in a line: where they begin, with their signature, and where the sentence does."""

    start: int
    sentence: int
    form: bytes  # that replaces the signature
    time: bytes | None = None  # that the signature has


def client_line(line: bytes) -> bytes:
    """A line in one of the forms above; the line itself where there is nothing to change."""
    text = _COLOURS.sub(b"", line) if b"\x1b[" in line else line
    found = _of_librdkafka(text) or _found(text, None, _MOST)
    return line if found is None or found == line else found


def _of_librdkafka(text: bytes) -> bytes | None:
    """What `_found` would return for a line that librdkafka wrote and nothing stands around: most lines at its debug level are such."""
    native = _NATIVE.match(text)
    if native is None or _JAVA_SIGN in text or not is_alone(text):
        return None
    time, facility, name = native.groups()
    stamp = stamp_of_value(time)
    return None if stamp is None else rebuilt(stamp, None, b"%%|%s|%s| %s" % (facility, name, evened(text[native.end() :])), b"")


def _found(text: bytes, moment: Any, left: int) -> bytes | None:
    """The line in a text; None if nothing says when it was written. `moment`: the time of the entry that it stands in."""
    if SIGNED.match(text, 0, SIGNED_WITHIN):
        return text
    found = _with_object(text, text.find(b'{"', 1), moment)
    words = _words(text)
    before = text if words is None else text[: words.start]  # the name of a field, or a quote, stands before what is in it
    if found is None and left and (b'"' in before or b"msg=" in before):
        found = _in_fields(text, words, moment, partial(_found, left=left - 1))
    if found is not None:
        return found
    if words is None:
        if _OWN.match(text):
            return text
        stamp = leading_stamp(text) or stamp_of_value(moment)
        return None if stamp is None else stamp + text.lstrip()
    head, message, logger, behind = parts(text, words.start)
    time = last_time(head) or (None if moment is not None else last_time(behind))
    stamp = stamp_of_value(words.time or (moment if time is None else time[0]))
    message = words.form + evened(message[words.sentence - words.start :])
    if stamp is None:
        return message if words.form else None
    return rebuilt(stamp, level_in(head), message, logger)


def _with_object(text: bytes, start: int, moment: Any) -> bytes | None:
    """The line whose fields stand behind its message as an object, as NestJS and zap's console write it; None if it is none."""
    fields: Any = None
    if start > 0:
        with suppress(ValueError, RecursionError):
            fields = json.loads(text[start : text.rfind(b"}") + 1])
    message = with_fields_behind(text[:start].decode("utf-8", "replace").rstrip(), fields) if isinstance(fields, dict) else ""
    time = last_time(text[:start]) if message else None
    stamp = stamp_of_value(moment_of(fields, moment if time is None else time[0])) if message else None
    return None if stamp is None else client_line(stamp + message.encode("utf-8", "replace"))


def _in_fields(text: bytes, words: _Words | None, moment: Any, find: Find) -> bytes | None:
    """The line in an entry of fields, in JSON or logfmt; None if there is none."""
    if len(text) > _ENTRY_BYTES:
        return None
    found = line_of_json(text, -1 if words is None else words.start, moment, find, _of_client)
    if found is not None:
        return found
    found = line_of_csv(text, text.find(b'""') if words is None else words.start, moment, find)
    if found is not None:
        return found
    logfmt = _LOGFMT.search(text, 0, _LOGFMT_WITHIN)
    if logfmt is None:
        return None
    pairs = unmarked(text[: logfmt.start()], text[logfmt.start() :]).decode("utf-8", "replace")
    if '=\\"' in pairs:  # what wrote the line into a text escaped its quotes
        pairs = pairs.replace('\\"', '"')
    fields = {name: _unquoted(value) for name, value in _PAIR.findall(pairs)}
    return _of_client(fields, moment_of(fields, moment), find)


def _of_client(entry: dict[str, Any], moment: Any, find: Find) -> bytes | None:
    texts = [text for _, text in texts_of(entry)]
    signed = (text for text in (*texts, *entry.values()) if isinstance(text, str) and any(sign in text for sign in _SIGNS))
    message = next(signed, texts[0] if texts else "")
    facility, name = entry.get("fac"), entry.get("name", "")
    if isinstance(facility, str) and isinstance(name, str) and message.startswith("[thrd:"):
        message = f"{facility} [{name}] {message}"  # node-rdkafka and confluent-kafka-javascript: {severity, fac, message, name}
    text = _LINE_ENDS.sub(" ", with_fields(message, entry).rstrip("\r\n")).encode("utf-8", "replace")
    return find(text, moment) if text else None


def _unquoted(value: str) -> str:
    if value[:1] != '"':
        return value
    try:
        return str(json.loads(value))
    except ValueError:
        return value[1:-1]


def _words(text: bytes) -> _Words | None:
    """What a client says in a line; None if none says anything."""
    java = _JAVA.search(text) if _JAVA_SIGN in text else None
    if java is not None:
        return _Words(java.start(), java.start(), b"")
    native = _NATIVE.search(text, 0, SIGNED_WITHIN)
    if native is not None:
        return _Words(native.start(), native.end(), b"%%|%s|%s| " % (native["facility"], native["name"]), native["time"])
    thread = text.find(_THREAD)
    if thread < 0:
        library, start = library_of(text)
        return _Words(start, start, b"%%||%s| " % library.encode()) if library else None
    bound = next((match for pattern in _BOUND if (match := pattern.search(text)) is not None), None)
    if bound is None:
        return _Words(thread, thread, b"%||| ")
    return _Words(bound.start(), bound.end(), b"%%|%s|%s| " % (bound["facility"], bound["name"] or b""))
