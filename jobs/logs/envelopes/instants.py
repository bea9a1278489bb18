"""Times as envelopes and layouts write them, as the stamp of a line: `[2026-11-21 06:09:19,456] ` or, exact, `[2026-11-21 06:09:19,456Z] `.

A time with an offset, a Z or of an epoch is exact: its stamp ends with Z, and no time zone of a cluster applies (jobs/logs/times.py).
"""

from __future__ import annotations

import re
from datetime import datetime, timedelta, timezone
from functools import lru_cache
from typing import Any, Final

from jobs.common.expressions import expression

_OFFSET: Final = rb"(?: ?(?:Z|UTC|GMT)| ?[+-]\d\d(?::?\d\d)?)"
TIME: Final = rb"\d{4}[-/]\d\d[-/]\d\d[T ]\d\d:\d\d:\d\d(?:[.,:](?:\d{3}){1,3})?" + _OFFSET + rb"?"
"""A date and a time as log4j writes them: DEFAULT, ISO8601, their _OFFSET_, _PERIOD and _MICROS kinds. Other fractions lack a digit."""

EPOCH: Final = rb"\d{13}|\d{10}(?:\.\d{1,9})?"  # log4j's UNIX_MILLIS and UNIX. The years 2001 to 2286.

EXACT_TIME: Final = rb"\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(?:[.,]\d{1,9})?" + _OFFSET
ANY_TIME: Final = EXACT_TIME + rb"?"  # a time as collectors write it. Go leaves zeros at the end of a fraction out.

MONTHS: Final = (b"Jan", b"Feb", b"Mar", b"Apr", b"May", b"Jun", b"Jul", b"Aug", b"Sep", b"Oct", b"Nov", b"Dec")
_MONTH: Final = rb"(?P<b>" + b"|".join(MONTHS) + rb")[a-z]{0,6}\.?"
_FRACTION: Final = rb"(?:[.,:](?P<f>\d{1,9}))?"
_CLOCK: Final = rb"(?P<H>\d\d):(?P<M>\d\d:\d\d)" + _FRACTION
_ZONE: Final = (
    rb"(?:(?P<utc> ?(?:Z|UTC|GMT)\b| ?[+-]00:?00(?![\d:])|[+-]00(?![\d:]))"
    rb"|(?: (?=[+-]\d\d:?\d\d(?!\d)))?(?P<sign>[+-])(?P<h>\d\d):?(?P<m>\d\d)?(?![\d:]))?"
)
_FORMS: Final = (
    # 2026-11-21 06:09:19,456; 2026/11/21; ClickHouse's 2026.11.21; with or without +0100, +01:00, +01, Z, UTC
    rb"(?P<Y>\d{4})[-/.](?P<n>\d\d)[-/.](?P<d>\d\d)[T _]{1,2}" + _CLOCK + _ZONE,
    rb"(?P<Y>(?:19|20)\d\d)(?P<n>\d\d)(?P<d>\d\d)[-T _]" + _CLOCK + _ZONE,  # 20261121-06:09:19
    rb"(?P<d>\d\d?)[-/ ]" + _MONTH + rb"[-/ ](?P<Y>\d{4})[:T ]{1,2}" + _CLOCK + _ZONE,  # 21/Nov/2026:06:09:19 +0100, of web servers
    rb"(?P<Y>\d{4})[-/ ]" + _MONTH + rb"[-/ ](?P<d>\d\d?) " + _CLOCK + _ZONE,  # 2026 Nov 21 06:09:19
    # java.util.logging's Nov 21, 2026 6:09:19 AM; Kibana's Nov 21, 2026 @ 06:09:19.456
    _MONTH + rb" (?P<d>\d\d?), (?P<Y>\d{4}),?(?: @)? (?P<H>\d\d?):(?P<M>\d\d:\d\d)" + _FRACTION + rb"(?: (?P<p>[AP])M)?",
    _MONTH + rb" [ ]?(?P<d>\d\d?) " + _CLOCK + rb"(?: [A-Z]{3,4})? (?P<Y>\d{4})",  # Sat Nov 21 06:09:19 2026, of ctime
    _CLOCK + rb" (?P<Y>\d{4})-(?P<n>\d\d)-(?P<d>\d\d)(?![T ]\d\d:\d\d)",  # 06:09:19,456 2026-11-21
)
"""Dates with times of which no number can be taken for another. `03/01/26` is none: only where Spark writes it the year is sure."""
_SPARKS: Final = rb"\d\d/\d\d/\d\d \d\d:\d\d:\d\d(?= (?:TRACE|DEBUG|INFO|WARN|ERROR|FATAL) [\w.$]+: )"
"""Spark's own configuration, `%d{yy/MM/dd HH:mm:ss} %p %c{1}: %m%n`: the century is left out."""
_READ: Final = tuple(expression(form) for form in _FORMS)
_WRITTEN: Final = expression(
    rb"(?<![\w./])(?:" + b"|".join(re.sub(rb"\(\?P<\w+>", b"(?:", form) for form in _FORMS) + rb"|(" + _SPARKS + rb"))"
)
_DATE: Final = expression(rb"[0-9](?<![\w./][0-9])[0-9]{3}[-/.][0-9]{2}[-/.][0-9]{2}[T _]")
_FIRST_FORM: Final = expression(re.sub(rb"\(\?P<\w+>", b"(?:", _FORMS[0]) + b"((?!))?")
_LOST_DIGIT: Final = expression(rb":\d\d:\d\d[.,](?:\d{1,2}|\d{4,5}|\d{7,8})\Z")
_NEAR_EPOCH: Final = expression(rb"(?<![\w.])(\d{13})\]?[ \t]+(?:\Z|\[?(?:TRACE|DEBUG|INFO|WARN|ERROR|FATAL)\b)")
_EPOCHS: Final = expression(rb"(?<![\w.])(?:\d{13}|\d{10}\.\d{1,9}|(?<!.)\d{10})(?![\w.])", re.DOTALL)
_USUAL: Final = expression(rb"(\d{4}-\d\d-\d\d)[ T](\d\d:\d\d:\d\d)[,.](\d{3}) +\[?[A-Z]{4}")
"""How most lines of applications begin: a time and a level."""
_USUAL_ALONE: Final = expression(rb"(\d{4}-\d\d-\d\d)[ T](\d\d:\d\d:\d\d)[,.](\d{3})(Z?)")
_LEADING_BYTES: Final = 160
_BETWEEN_BYTES: Final = 60  # of host and program
_LEVEL: Final = expression(rb"\b(?:TRACE|DEBUG|INFO|NOTICE|WARN(?:ING)?|ERROR|CRITICAL|FATAL|SEVERE)\b", re.IGNORECASE)
_NUMBER: Final = expression(rb"(\d{10})(?:(\d{3})(?:\d{3}){0,2}|\.(\d{1,9}))?")
_AMERICAN: Final = expression(
    rb"(?P<n>\d\d?)/(?P<d>\d\d?)/(?P<Y>\d{4}), (?P<H>\d\d?):(?P<M>\d\d:\d\d)(?:\.(?P<f>\d{1,7}))?(?P<utc> )(?P<p>[AP])M"
)
"""`11/21/2026, 6:09:19.456 AM`: exports of Azure Monitor, in UTC."""
_MILLIS: Final = expression(rb"[.,]\d|:\d\d:\d{3}|\A\d{13}")
_MOST_SECONDS: Final = 9_999_999_999  # a greater number is one of ms, µs or ns
_EPOCH_START: Final = datetime(1970, 1, 1, tzinfo=timezone.utc)


def last_time(text: bytes) -> tuple[bytes, int] | None:
    """The last date with a time in a text, else the last epoch time, and where it ends; None if there is none."""
    if not text:
        return None
    found = _only_time(text)
    for match in _WRITTEN.finditer(text) if found is None and b":" in text else ():
        if _is_whole(text, match):
            found = match
    epoch = _NEAR_EPOCH.search(text, 0 if found is None else found.end())
    if epoch is not None:
        return epoch[1], epoch.end(1)
    if found is not None:
        return found[0] if found[1] is None else b"20" + found[1], found.end()
    epochs = list(_EPOCHS.finditer(text))
    return (epochs[-1][0], epochs[-1].end()) if epochs else None


def _only_time(text: bytes) -> re.Match[bytes] | None:
    """The first time of the first form if no other follows: each has a colon. To look for all forms takes ten times as long."""
    date = _DATE.search(text)
    found = None if date is None else _FIRST_FORM.match(text, date.start())
    return found if found is not None and text.find(b":", found.end()) < 0 and _is_whole(text, found) else None


def _is_whole(text: bytes, match: re.Match[bytes]) -> bool:
    """Whether nothing of a time is lost: a bracket, or a digit of a fraction that only collectors shorten, who write offsets."""
    before, after = text[: match.start()], text[match.end() :]
    if _LOST_DIGIT.search(match[0]) is not None:
        return False
    if before[-1:] != b"[":
        return after[:1] != b"]" or before.rfind(b"[") > before.rfind(b"]")
    inside, bracket, _ = after.partition(b"]")
    return bool(bracket) and b"[" not in inside


def leading_stamp(text: bytes) -> bytes | None:
    """The stamp of the time with which a line of any message begins: the last time before a level or a sentence. None if there is none."""
    usual = _USUAL.match(text)
    if usual is not None:
        return b"[%s %s,%s] " % usual.groups()
    found, end = None, 0
    for match in _WRITTEN.finditer(text, 0, _LEADING_BYTES):
        if found is not None and (match.start() - end > _BETWEEN_BYTES or _LEVEL.search(text, end, match.start())):
            break
        found, end = match, match.end()
    return None if found is None else stamp_of(found[0] if found[1] is None else b"20" + found[1])


@lru_cache(maxsize=64)
def stamp_of(text: bytes) -> bytes | None:
    """The stamp of a time that is written in one of these forms; None for another text."""
    text = text.strip()
    usual = _USUAL_ALONE.fullmatch(text)
    if usual is not None:
        return b"[%s %s,%s%s] " % usual.groups()
    number = _NUMBER.fullmatch(text)
    if number is not None:
        seconds, millis, fraction = number.groups()
        return b"[%s,%sZ] " % (_second(int(seconds)), millis or _milliseconds(fraction))
    for form in (*_READ, _AMERICAN):
        match = form.fullmatch(text)
        if match is not None:
            return _stamp(match.groupdict())
    return None


def _stamp(parts: dict[str, bytes | None]) -> bytes | None:
    name, half, sign = parts.get("b"), parts.get("p"), parts.get("sign")
    month = MONTHS.index(name) + 1 if name else int(parts["n"] or 0)
    hour = int(parts["H"] or 0)
    hour = hour if half is None else hour % 12 + 12 * (half == b"P")
    date = b"%s-%02d-%02d" % (parts["Y"], month, int(parts["d"] or 0))
    millis = _milliseconds(parts["f"])
    if sign is None:
        return b"[%s %02d:%s,%s%s] " % (date, hour, parts["M"], millis, b"Z" if parts.get("utc") else b"")
    minutes = int(parts["h"] or 0) * 60 + int(parts["m"] or 0)
    return _shifted(b"%sT%02d:%s" % (date, hour, parts["M"]), millis, sign, minutes)


def _milliseconds(fraction: bytes | None) -> bytes:
    return ((fraction or b"") + b"00")[:3].ljust(3, b"0")


def stamp_of_value(value: Any) -> bytes | None:
    """The stamp of a time as it stands before a line or in JSON: text; epoch seconds, ms, µs or ns; log4j2's instant."""
    text = value
    if isinstance(value, dict):
        seconds, nanos = value.get("epochSecond"), value.get("nanoOfSecond", 0)
        text = b"%d%03d" % (seconds, nanos // 1_000_000) if isinstance(seconds, int) and isinstance(nanos, int) else None
    elif isinstance(value, float):
        text = b"%d" % round(value * 1_000) if 1e9 <= value < 1e10 else None
    elif isinstance(value, int):
        text = b"%d" % value
    elif isinstance(value, str):
        text = value.encode("utf-8", "replace")
    return stamp_of(text) if isinstance(text, bytes) else None


def has_millis(value: Any) -> bool:
    """Whether a time is more precise than a second."""
    if isinstance(value, str):
        value = value.encode("utf-8", "replace")
    return _MILLIS.search(value) is not None if isinstance(value, bytes) else not isinstance(value, int) or value > _MOST_SECONDS


@lru_cache(maxsize=64)
def _second(epoch: int) -> bytes:
    return (_EPOCH_START + timedelta(seconds=epoch)).strftime("%Y-%m-%d %H:%M:%S").encode()


def _shifted(local: bytes, millis: bytes, sign: bytes, minutes: int) -> bytes | None:
    try:
        at = datetime.fromisoformat(local.decode()) + timedelta(minutes=minutes if sign == b"-" else -minutes)
    except (ValueError, OverflowError):
        return None
    return b"[%s,%sZ] " % (at.isoformat(" ").encode(), millis)
