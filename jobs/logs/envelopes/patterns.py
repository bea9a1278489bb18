"""Patterns that a user names: the `pattern` of a log4j PatternLayout, as the broker's configuration has it.

`%d{dd MMM yyyy HH:mm:ss.SSS}{UTC} %p %m (%c) [%t]%n` is compiled to an expression that finds time, level, message and logger in a line.
Conversion words: log4j 2, manual/pattern-layout; log4j 1, org.apache.log4j.PatternLayout. Letters of dates: java.text.SimpleDateFormat.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, Final

from jobs.common.errors import SettingsError
from jobs.logs.envelopes.anchors import line_of
from jobs.logs.envelopes.instants import EPOCH, MONTHS, TIME
from jobs.logs.envelopes.layouts import LEVEL, guessed_logger

AUTO: Final = "auto"
BUILT_IN: Final = {
    "kafka": "[%d] %p %m (%c)%n",
    "strimzi-log4j1": "%d{ISO8601} %p %m (%c) [%t]%n",
    "strimzi": "%d{yyyy-MM-dd HH:mm:ss} %-5p [%t] %c{1}:%L - %m%n",
    "ttcc": "%d [%t] %-5p %c - %m%n",
}
"""Patterns that have a name of their own. All of them are found without it, too."""

_WORD: Final = re.compile(r"%[-0]*\d*(?:\.-?\d+)?([A-Za-z]+|%)((?:\{[^{}]*\})*)")
_WRAPPER: Final = re.compile(r"%(?:highlight|style|enc|encode|notEmpty|maxLen|maxLength)\{((?:[^{}]|\{[^{}]*\})*)\}(?:\{[^{}]*\})*")
_ANYTHING: Final = rb"[^\n]{0,256}?"
_FIELDS: Final = {
    **dict.fromkeys(("p", "level"), rb"[ \t]*(?P<level>" + LEVEL + rb")[ \t]*"),
    **dict.fromkeys(("c", "logger"), rb"[ \t]*(?P<logger>[\w.$-]+)[ \t]*"),
    **dict.fromkeys(("m", "msg", "message"), rb"(?P<message>.*)"),
    **dict.fromkeys(("L", "line"), rb"[\d?]*"),
    **dict.fromkeys(("n", "ex", "exception", "throwable", "rEx", "rException", "xEx", "xException"), rb""),
    "%": rb"%",
}
_DATES: Final = {
    "COMPACT": "yyyyMMddHHmmssSSS",
    "ISO8601_BASIC": "yyyyMMdd'T'HHmmss,SSS",
    "ISO8601_BASIC_PERIOD": "yyyyMMdd'T'HHmmss.SSS",
    "DATE": "dd MMM yyyy HH:mm:ss,SSS",
    "DATE_PERIOD": "dd MMM yyyy HH:mm:ss.SSS",
}
_LIKE_ISO: Final = re.compile(r"|DEFAULT\w*|ISO8601(?:_PERIOD|_OFFSET)\w*|ISO8601|UNIX(?:_MILLIS)?")
_DATE_PART: Final = re.compile(r"y{4}|u{4}|M{1,3}|d{1,2}|H{1,2}|m{2}|s{2}|S{1,9}|n{1,9}|X{1,3}|x{1,3}|Z|'[^']*'|[A-Za-z]+|[^A-Za-z']+")
_PARTS_OF_DATE: Final = {
    "yyyy": rb"(?P<year>\d{4})", "uuuu": rb"(?P<year>\d{4})",
    "MM": rb"(?P<month>\d\d)", "M": rb"(?P<month>\d\d?)", "MMM": rb"(?P<month>" + b"|".join(MONTHS) + rb")",
    "dd": rb"(?P<day>\d\d)", "d": rb"(?P<day>\d\d?)",
    "HH": rb"(?P<hour>\d\d)", "H": rb"(?P<hour>\d\d?)", "mm": rb"(?P<minute>\d\d)", "ss": rb"(?P<second>\d\d)",
    **dict.fromkeys(("Z", "X", "XX", "XXX", "x", "xx", "xxx"), rb"(?P<offset>Z|[+-]\d\d(?::?\d\d)?)"),
}  # fmt: skip
_NEEDED: Final = ("year", "month", "day", "hour", "minute", "second")
_UTC: Final = ("UTC", "GMT", "Z", "GMT+0", "UTC+0", "Etc/UTC")


class Layout:
    """A pattern that a user named."""

    def __init__(self, name: str, pattern: str) -> None:
        """SettingsError: lines of this pattern cannot be read."""
        self.name = name
        self._exact = False
        self._has_date = False
        text = pattern.strip()
        while (unwrapped := _WRAPPER.sub(r"\1", text)) != text:
            text = unwrapped
        expression, end = b"", 0
        for word in _WORD.finditer(text):
            expression += _literal(text[end : word.start()]) + self._of_word(word[1], re.findall(r"\{([^{}]*)\}", word[2]))
            end = word.end()
        expression += _literal(text[end:])
        if b"(?P<message>" not in expression:
            raise SettingsError(f"log format {name}: the pattern has no %m, so its lines have no message")
        try:
            self._search = re.compile(expression + rb"[ \t]*\Z", re.DOTALL).search
        except re.error:
            raise SettingsError(f"log format {name}: the pattern has one of %d, %p, %c, %m twice") from None

    def as_own(self, text: bytes, moment: Any) -> bytes | None:
        """The line as Kafka's own configuration writes it; None if it has not this pattern. `moment`: as in `anchors.line_at`."""
        match = self._search(text.rstrip(b"\r\n"))
        if match is None:
            return None
        found = match.groupdict()
        at, message = self._time(found) if self._has_date else moment, found["message"]
        line = line_of(at, found.get("level"), message, found.get("logger") or guessed_logger(message))
        return line[:24] + b"Z" + line[24:] if line is not None and self._exact and line[24:25] != b"Z" else line

    def _of_word(self, word: str, options: list[str]) -> bytes:
        if word in ("d", "date"):
            self._has_date = True
            return self._of_date(*options[:2])
        if word in _FIELDS:
            return _FIELDS[word]
        # `%tid` is one word, `%pid` another: log4j takes the longest that it knows. What is not needed may be anything.
        return _ANYTHING

    def _of_date(self, form: str = "", zone: str = "") -> bytes:
        if zone and zone not in _UTC:
            raise SettingsError(f"log format {self.name}: write %d without {{{zone}}} and give --timezone {zone}")
        self._exact = bool(zone)
        if _LIKE_ISO.fullmatch(form):
            return rb"(?P<time>" + TIME + rb"|" + EPOCH + rb")"
        expression = b"".join(_date_part(part, self.name) for part in _DATE_PART.findall(_DATES.get(form, form)))
        missing = [name for name in _NEEDED if b"(?P<%s>" % name.encode() not in expression]
        if missing:
            raise SettingsError(f"log format {self.name}: %d{{{form}}} has no {missing[0]}")
        return expression

    @staticmethod
    def _time(found: dict[str, bytes | None]) -> bytes:
        time = found.get("time")
        if time is None:
            parts = {name: found[name] or b"" for name in _NEEDED}
            month = parts["month"]
            number = MONTHS.index(month) + 1 if month in MONTHS else int(month)
            time = b"%s-%02d-%02d %02d:%s:%s%s%s" % (
                parts["year"], number, int(parts["day"]), int(parts["hour"]), parts["minute"], parts["second"],
                b".%s" % found["fraction"] if found.get("fraction") else b"", found.get("offset") or b"",
            )  # fmt: skip
        return time


def layouts_named(name: str, defined: Sequence[tuple[str, str]]) -> tuple[Layout, ...]:
    """The patterns to try before those that are found anyway. `defined`: names and patterns of the settings, all of which AUTO tries.

    `name` may be a pattern itself: no name has a percent sign.
    SettingsError: there is no such name, or a pattern cannot be read.
    """
    layouts = {own: Layout(own, pattern) for own, pattern in defined}
    if name == AUTO:
        return tuple(layouts.values())
    if name in layouts:
        return (layouts[name],)
    if name in BUILT_IN:
        return (Layout(name, BUILT_IN[name]),)
    if "%" in name:
        return (Layout(name, name),)
    known = ", ".join([AUTO, *BUILT_IN, *layouts])
    raise SettingsError(f"there is no log format {name!r}: use one of {known}, or a pattern of log4j, such as '%d %p %m (%c)%n'")


def _literal(text: str) -> bytes:
    """What stands between two words of a pattern. Any number of blanks may stand for one."""
    return b"".join(rb"[ \t]+" if part.isspace() else re.escape(part.encode()) for part in re.findall(r"\s+|\S+", text))


def _date_part(part: str, name: str) -> bytes:
    if part in _PARTS_OF_DATE:
        return _PARTS_OF_DATE[part]
    if part[0] in "Sn" and set(part) <= {part[0]}:
        return rb"(?P<fraction>\d{%d})" % len(part)
    if part[0] == "'":
        return re.escape(part[1:-1].encode())
    if part.isalpha():
        raise SettingsError(f"log format {name}: {part!r} in %d{{…}} is not supported")
    return _literal(part)
