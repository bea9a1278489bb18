"""Documents of JSON, as log stores answer with them: shown as lines, one for each entry, wherever it stands.

    {"status":"success","data":{"result":[{"stream":{"pod":"kafka-0"},"values":[["1795241359456789012","line"],…]}]}}

becomes `{"timestamp":"2026-11-21T06:09:19.456Z","message":"line","container":"kafka-0"}`, and so on: time and text come first, then who
wrote the line by the nearest label, then whatever else the entry has. Documents may be printed over several lines, be wrapped by a
terminal, follow each other without line ends, and stand between lines of other text, which stay as they are.

A part of at most _WHOLE_BYTES is read as a whole. A larger one is opened, and its parts are read one after the other: so a document of any
size needs little memory, and its labels have to stand before its entries. One that is damaged, or ends too early, is opened, too: what is
whole in it is read, and the rest is a line of its own. So is what follows a text that is larger than that, up to the next line end.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from contextlib import suppress
from itertools import islice
from pathlib import Path
from typing import Any, Final

import msgspec

from jobs.common.expressions import expression
from jobs.logs.envelopes.entries import Level, entries_of, moment_of, source_in, texts_of
from jobs.logs.envelopes.instants import has_millis, stamp_of_value
from jobs.logs.formats.compression import ByteStream, MadeStream, UnpackedSource, first_bytes
from jobs.logs.formats.sources import Source

SAMPLE_BYTES: Final = 64 << 10  # by which a file is known to have documents
_WHOLE_BYTES: Final = 4 << 20
_STEP_BYTES: Final = 256 << 10
_TOGETHER: Final = 64  # lines: a reader takes time for each piece
_AHEAD_BYTES: Final = 4 << 10  # longer than any name and any number
_BEGINS: Final = rb"[ \t]*(?:\[\s*)*[{\[]\s*\""
_START: Final = expression(_BEGINS)
_ANY_START: Final = expression(rb"^" + _BEGINS, re.MULTILINE)
_STRING: Final = rb'"[^"\\]*(?:\\(?:\r?\n)?.[^"\\]*)*"'
_TOKEN: Final = expression(_STRING + rb'|["{}\[\]]', re.DOTALL)
_NAME: Final = expression(_STRING + rb"(?=\s*:)", re.DOTALL)
_SCALAR: Final = expression(rb"[^\s,\[\]{}\":]+|.", re.DOTALL)
_BETWEEN: Final = expression(rb"[\s,:]*")
_AFTER: Final = expression(rb"[ \t,;]*\r?\n?")
_SPOILT: Final = b'\n{"'  # at the end of a string: it lost its own, for a quote in a text is written with a backslash
_OPENS: Final = (b"{", b"[")
_TOTALS: Final = ("total", "recordsMatched")  # Elasticsearch, Logs Insights
_PAGES: Final = ("nextToken", "NextToken", "nextPageToken", "after")  # CloudWatch, Google Cloud, Datadog
_INCOMPLETE: Final = ("timed_out", "is_partial", "terminated_early")  # Elasticsearch
_UNCOUNTED: Final = ("resultType", "preview", "columns")  # Loki, Splunk, ES|QL: they tell neither a total nor of another page
_CUTS: Final = frozenset({262_118, 262_144, 1_048_550, 1_048_576})  # bytes: 256 kB, 1 MB, and what CloudWatch leaves of them
_STANDS_FOR: Final = ("itemCount", "sample_rate")  # how many an entry stands for: Azure, Vector
PAGES: Final = frozenset({100, 1_000, 5_000, 10_000})  # entries that stores hand out at most, or by default
_BEGIN_BYTES: Final = 1 << 20  # more is not looked at to tell what a file is
_MOST_MADE: Final = 8
_SHARDS: Final = "_shards"  # whose total is another
_STRANGE: Final = expression(r"[^\w.-]+")

_decode: Final = msgspec.json.Decoder().decode
_encode: Final = msgspec.json.Encoder().encode
_NOTHING: Final = Level({})
_MADE: Final[dict[tuple[Path, int, int], tuple[UnpackedSource, DocumentStream]]] = {}
"""Texts that were made of documents, by what the file was: each log in it is read by itself, and in slices."""


class DocumentStream(MadeStream):
    """A text in which each entry of a document is a line."""

    def __init__(self, text: ByteStream) -> None:
        self.left_out: dict[str, int] = {}  # what documents say of the entries that they do not have, and how many documents say so
        lines = _Cutter(b"", lambda: text.read(_STEP_BYTES), self.left_out).lines()
        super().__init__(text, iter(lambda: b"".join(islice(lines, _TOGETHER)), b""))


class DocumentSource(Source):
    """What a stream makes of documents. Behind its beginning, it is made once, and lies in a temporary file."""

    def __init__(self, again: Callable[[], DocumentStream], key: tuple[Path, int, int], *, can_grow: bool) -> None:
        """`key`: what the file is, of which the text is made."""
        self.can_grow = can_grow
        self._again, self._key = again, key
        self._stream, self._begin = again(), b""
        self.left_out = self._stream.left_out  # as in LogBytes

    def _made(self) -> UnpackedSource:
        if self._key not in _MADE:
            text = self._again()
            _MADE[self._key] = UnpackedSource(text), text
            while len(_MADE) > _MOST_MADE:
                del _MADE[next(iter(_MADE))]
        made, text = _MADE[self._key]
        self.damage, self.left_out = made.damage, text.left_out
        return made

    def size(self) -> int:
        """All bytes."""
        return self._made().size()

    def read_at(self, position: int, size: int) -> bytes:
        """What the text has there."""
        if not self._begin:
            self._begin = first_bytes(self._stream, _BEGIN_BYTES)
            self.damage = self._stream.damage
        is_made = position >= len(self._begin) >= _BEGIN_BYTES
        return self._made().read_at(position, size) if is_made else self._begin[position : position + size]


def may_have_documents(begin: bytes) -> bool:
    """Whether a text that begins so may be one of documents: `has_documents` tells."""
    return _ANY_START.search(begin) is not None


def has_documents(sample: bytes) -> bool:
    """Whether the first value of JSON in a sample, the first SAMPLE_BYTES of a text, is more than an entry on a line of its own."""
    begin = _ANY_START.search(sample)
    if begin is None:
        return False
    text = sample[begin.start() :].lstrip()
    if (end := _Cutter(text, lambda: b"", {}).end()) < 0:
        return _has_rows(text)
    text = text[:end]
    entries = [] if (value := _value(text)) is None else list(islice(entries_of(value, inside=True), 2))
    return len(entries) > 1 or (bool(entries) and (b"\n" in text or (entries[0][1] is not None and _has_rows(text))))


def _has_rows(text: bytes) -> bool:
    """Whether a text of JSON begins with an array, or has one whose first element is an object or an array."""
    before = b"[" if text[:1] == b"[" else b""
    for token in _TOKEN.finditer(text, len(before)):
        if token[0] == b'"' or b"\n[" in token[0] or token[0].endswith(_SPOILT):
            return False  # a string without its end goes on in lines of other text
        if before == b"[" and (token[0] in _OPENS or token.start() == len(before)):
            return True
        before = token[0]
    return False


def _value(text: bytes) -> Any:
    """The value of a text of JSON, in which a terminal may have put line ends; None if it is none."""
    text = _one_line(text)
    with suppress(msgspec.DecodeError, ValueError, RecursionError):
        return _decode(text)
    with suppress(ValueError, RecursionError):
        return json.loads(text.decode("utf-8", "replace"), strict=False)
    return None


def _one_line(text: bytes) -> bytes:
    return text.replace(b"\r", b"").replace(b"\n", b"") if b"\n" in text else text


class _Cutter:
    """Cuts a text. `text` is what was read of it and is needed still; the next part begins at `at`."""

    def __init__(self, text: bytes, read: Callable[[], bytes], left_out: dict[str, int]) -> None:
        self.text = text
        self.at = 0
        self._read = read
        self._left_out = left_out

    def _more(self) -> bool:
        data = self._read()
        self.text, self.at = self.text[self.at :] + data, 0
        return bool(data)

    def _use(self, end: int) -> bytes:
        used, self.at = self.text[self.at : end], end
        return used

    def _goes_on(self) -> bool:
        """Reads on, so that names and numbers are whole; False at the end of the text."""
        return len(self.text) - self.at >= _AHEAD_BYTES or self._more() or self.at < len(self.text)

    def lines(self) -> Iterator[bytes]:
        """The lines, some of them in pieces."""
        while self._goes_on():
            if _START.match(self.text, self.at) is not None and self._is_document():
                yield from self._part(None)
                self._skip(_AFTER)
            else:
                yield from self._as_it_is()

    def _is_document(self) -> bool:
        """Whether the next part is whole, or one of which something may be: not a line that lost its end."""
        is_whole = (end := self.end()) >= 0 and _value(self.text[self.at : end]) is not None
        return is_whole or _has_rows(self.text[self.at : self.at + SAMPLE_BYTES].lstrip())

    def _as_it_is(self) -> Iterator[bytes]:
        """What follows up to the next line end."""
        while (end := self.text.find(b"\n", self.at) + 1) == 0:
            yield self._use(len(self.text))
            if not self._more():
                return
        yield self._use(end)

    def _skip(self, what: re.Pattern[bytes]) -> None:
        self._use(what.match(self.text, self.at).end())  # type: ignore[union-attr]

    def _next(self) -> bytes:
        """Goes on to the next part, and returns its first character; empty at the end of the text."""
        while self._goes_on():
            self._skip(_BETWEEN)
            if self.at < len(self.text):
                return self.text[self.at : self.at + 1]
        return b""

    def end(self) -> int:
        """Where the next part ends; -1 if it is too large, or the text ends before, or a string in it is spoilt."""
        done = depth = 0
        while True:
            spoilt = False
            for token in _TOKEN.finditer(self.text, self.at + done):
                sign, spoilt = token[0], token[0].endswith(_SPOILT)
                if sign == b'"' or spoilt:
                    break  # the rest of a string was not read yet, or it has no end
                depth += (sign in _OPENS) - (sign in (b"}", b"]"))
                done = token.end() - self.at
                if depth <= 0:
                    return token.end()
            if spoilt or len(self.text) - self.at > _WHOLE_BYTES or not self._more():
                return -1

    def _part(self, around: Level | None, own: dict[str, Any] | None = None, name: str = "") -> Iterator[bytes]:
        """The lines of the next part. What has none is a field of the object that it stands in: `name` of `own`."""
        first = self._next()
        end = self.end() if first in _OPENS or first == b'"' else _SCALAR.match(self.text, self.at).end()  # type: ignore[union-attr]
        value = _value(self.text[self.at : end]) if end >= 0 else None
        if value is None and first in _OPENS and (end < 0 or _TOKEN.search(self.text, self.at + 1, end - 1) is not None):
            yield from self._opened(around)
        elif end < 0:
            yield from self._as_it_is()
        else:
            text = _one_line(self._use(end))
            value = text.decode("utf-8", "replace") if value is None and first in _OPENS else value
            is_field = own is not None and not isinstance(value, dict | list)
            entries = [] if is_field else list(entries_of(value, around, inside=around is not None))
            if around is None and isinstance(value, dict):
                self._note(value, len(entries))
            self._left_out |= {said: 1 for entry, _ in entries if (said := _cut(entry)) != ""}
            if own is not None and not entries:
                own[name] = value
            yield from (text + b"\n" if entry is value else _line(entry, level) for entry, level in entries)

    def _opened(self, around: Level | None) -> Iterator[bytes]:
        """The lines of an object or array, part by part."""
        own: dict[str, Any] | None = {} if self._use(self.at + 1) == b"{" else None
        name, found = "", 0
        while (first := self._next()) and first not in b"}]":
            if own is not None and (named := _NAME.match(self.text, self.at)) is not None:
                name = str(_value(self._use(named.end())))
                self._next()
            for line in self._part(around if own is None else Level(dict(own), around), own, name):
                found += line.endswith(b"\n")
                yield line
        self._use(self.at + len(first))
        self._note(own or {}, found)
        if own and not found:
            yield from (_line(entry, level) for entry, level in entries_of(own, around, inside=True))

    def _note(self, value: dict[str, Any], count: int) -> None:
        if count > 1 and (said := _left_out(value, count)) != "":
            self._left_out[said] = self._left_out.get(said, 0) + 1


def _left_out(value: dict[str, Any], count: int) -> str:
    """What a document of `count` entries says of those that it does not have; empty if it says nothing."""
    for name, one in value.items():
        if isinstance(one, dict) and name != _SHARDS and (said := _left_out(one, count)) != "":
            return said
        total = one.get("value") if isinstance(one, dict) else one
        is_least = isinstance(one, dict) and one.get("relation") == "gte"  # Elasticsearch stops to count
        if name in _TOTALS and isinstance(total, int | float) and (total > count or is_least):
            return f"{count:,} of {int(total):,}{' or more' if is_least else ''} entries are in it"
        if name in _UNCOUNTED and count in PAGES:
            return f"more may follow its {count:,} entries, exactly a page"
        if name in _PAGES and isinstance(one, str) and one:
            return "another page follows it"
        if name in _INCOMPLETE and one is True:
            return f"{name} says so"
    return ""


def _cut(entry: dict[str, Any] | str) -> str:
    """What an entry says of what its store cut off, or left out beside it; empty if nothing."""
    fields = {"message": entry} if isinstance(entry, str) else entry
    text = next((text for _, text in texts_of(fields)), "")
    if len(text) > _AHEAD_BYTES and (size := len(text.encode("utf-8", "replace"))) in _CUTS:
        return f"lines of {size:,} bytes end there, where stores cut them"
    rate = next((fields[name] for name in _STANDS_FOR if name in fields), 1)
    return f"it is a sample, 1 of {rate} entries" if str(rate).isdecimal() and int(rate) > 1 else ""


def _line(entry: dict[str, Any] | str, level: Level | None) -> bytes:
    """The line of an entry."""
    around = level or _NOTHING
    fields = {"message": entry} if isinstance(entry, str) else entry
    moment = moment_of(fields, around.moment)
    head: dict[str, Any] = {}
    if (stamp := stamp_of_value(moment)) is not None:
        date, _, clock = stamp.strip(b"[] ").decode().partition(" ")
        time, _, millis = clock.rstrip("Z").partition(",")
        head["timestamp"] = f"{date}T{time}{f'.{millis}' if has_millis(moment) else ''}{'Z' if clock.endswith('Z') else ''}"
    head |= {name: fields[name] for name, _ in islice(texts_of(fields), 1)}
    if (source := source_in(fields) or around.source) != "":
        head["container"] = _STRANGE.sub("-", source)
    whole = head | {name: value for name, value in fields.items() if name not in head}
    try:
        return _encode(whole) + b"\n"
    except (ValueError, TypeError, RecursionError):  # such as half of a pair of UTF-16
        return json.dumps(whole).encode() + b"\n"
