"""Times as envelopes and layouts write them, as the stamp of a line: `[2026-11-21 06:09:19,456] ` or, exact, `[2026-11-21 06:09:19,456Z] `.

A time with an offset, a Z or of an epoch is exact: its stamp ends with Z, and no time zone of a cluster applies (jobs/logs/times.py).
"""

from __future__ import annotations

import re
from datetime import datetime, timedelta, timezone
from typing import Any, Final

_OFFSET: Final = rb"(?: ?(?:Z|UTC|GMT)| ?[+-]\d\d(?::?\d\d)?)"
TIME: Final = rb"\d{4}[-/]\d\d[-/]\d\d[T ]\d\d:\d\d:\d\d(?:[.,:](?:\d{3}){1,3})?" + _OFFSET + rb"?"
"""A date and a time as log4j writes them: DEFAULT, ISO8601, their _OFFSET_, _PERIOD and _MICROS kinds. Other fractions lack a digit."""

EPOCH: Final = rb"\d{13}|\d{10}(?:\.\d{1,9})?"
"""log4j's UNIX_MILLIS and UNIX. The years 2001 to 2286."""

ANY_TIME: Final = rb"\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(?:[.,]\d{1,9})?" + _OFFSET + rb"?"
EXACT_TIME: Final = rb"\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(?:[.,]\d{1,9})?" + _OFFSET
"""Times as collectors write them, the latter with an offset. Go leaves zeros at the end of a fraction out."""

_PARTS: Final = re.compile(
    rb"\s*(\d{4})[-/](\d\d)[-/](\d\d)[T ](\d\d:\d\d:\d\d)(?:[.,:](\d{1,9}))?"
    rb"(?:( ?(?:Z|UTC|GMT)| ?[+-]00(?::?00)?)| ?([+-])(\d\d):?(\d\d)?)?\s*\Z"
)
_NUMBER: Final = re.compile(rb"\s*(\d{10})(?:(\d{3})(?:\d{3}){0,2}|\.(\d{1,9}))?\s*\Z")
_AMERICAN: Final = re.compile(rb"(\d\d?)/(\d\d?)/(\d{4}), (\d\d?):(\d\d:\d\d)(?:\.(\d{1,7}))? ([AP])M\Z")
"""`11/21/2026, 6:09:19.456 AM`: exports of Azure Monitor, in UTC."""
_MILLIS: Final = re.compile(rb"[.,]\d|:\d\d:\d{3}|\A\d{13}")
_MOST_SECONDS: Final = 9_999_999_999  # a greater number is one of ms, µs or ns
_EPOCH_START: Final = datetime(1970, 1, 1, tzinfo=timezone.utc)


def stamp_of(text: bytes) -> bytes | None:
    """The stamp of a time that is written in one of these forms; None for another text."""
    parts = _PARTS.match(text)
    if parts is not None:
        year, month, day, clock, fraction, is_utc, sign, hours, minutes = parts.groups()
        millis = (fraction + b"00")[:3] if fraction else b"000"
        if sign is None:
            return b"[%s-%s-%s %s,%s%s] " % (year, month, day, clock, millis, b"Z" if is_utc else b"")
        return _shifted(b"%s-%s-%sT%s" % (year, month, day, clock), millis, sign, int(hours) * 60 + int(minutes or b"0"))
    number = _NUMBER.match(text)
    if number is not None:
        seconds, millis, fraction = number.groups()
        return _stamp_of_epoch(int(seconds), millis or ((fraction or b"") + b"00")[:3].ljust(3, b"0"))
    american = _AMERICAN.match(text)
    if american is not None:
        month, day, year, hour, rest, fraction, half = american.groups()
        hours = int(hour) % 12 + (12 if half == b"P" else 0)
        return b"[%s-%02d-%02d %02d:%s,%sZ] " % (year, int(month), int(day), hours, rest, ((fraction or b"") + b"00")[:3].ljust(3, b"0"))
    return None


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


def _stamp_of_epoch(seconds: int, millis: bytes) -> bytes:
    at = _EPOCH_START + timedelta(seconds=seconds)
    return b"[%s,%sZ] " % (at.strftime("%Y-%m-%d %H:%M:%S").encode(), millis)


def _shifted(local: bytes, millis: bytes, sign: bytes, minutes: int) -> bytes | None:
    try:
        at = datetime.fromisoformat(local.decode()) + timedelta(minutes=minutes if sign == b"-" else -minutes)
    except (ValueError, OverflowError):
        return None
    return b"[%s,%sZ] " % (at.isoformat(" ").encode(), millis)
