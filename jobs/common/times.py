"""Times and durations: as people type them, as people and programs read them."""

from __future__ import annotations

import re
from datetime import datetime, timedelta, timezone, tzinfo
from typing import Final
from zoneinfo import ZoneInfo

from coordinator_model.events import TIMES_FROM_MS
from jobs.common.errors import UserError
from jobs.common.text import printable

EPOCH: Final = datetime(1970, 1, 1, tzinfo=timezone.utc)
LATEST_MS: Final = 253_402_300_799_999
"""The end of the year 9999: the last time that a table can hold, epoch ms."""
_FIXED: Final = re.compile(r"UTC([+-])(\d\d):(\d\d)")
SPAN: Final = re.compile(r"(\d{1,9}(?:\.\d{1,3})?)(ms|s|m|h|d|w)")
_UNITS: Final = {
    "ms": timedelta(milliseconds=1),
    "s": timedelta(seconds=1),
    "m": timedelta(minutes=1),
    "h": timedelta(hours=1),
    "d": timedelta(days=1),
    "w": timedelta(weeks=1),
}

_TWO_UNITS: Final = ((172_800, 86_400, "d", 3_600, "h"), (3_600, 3_600, "h", 60, "min"), (60, 60, "min", 1, "s"))
"""From how many seconds on, the greater unit, the smaller one; each with its seconds."""


def zone_named(name: str) -> tzinfo:
    """The zone of a name in the time zone database, or of a fixed offset: UTC+09:00. ValueError, KeyError, OSError: there is none."""
    fixed = _FIXED.fullmatch(name)
    if fixed is None:
        return ZoneInfo(name)
    offset = timedelta(hours=int(fixed[2]), minutes=int(fixed[3]))
    return timezone(-offset if fixed[1] == "-" else offset)


def milliseconds(span: timedelta) -> int:
    """Whole milliseconds of a duration."""
    return span // _UNITS["ms"]


def epoch_ms(time: datetime) -> int:
    """Whole milliseconds since 1970 of an aware time."""
    return milliseconds(time - EPOCH)


def is_known(time: datetime) -> bool:
    """Whether an aware time is one, and not the number of a line without a time."""
    return epoch_ms(time) >= TIMES_FROM_MS


def instant(at_ms: int | None) -> str:
    """A time as ISO 8601 in UTC, to the millisecond, with a blank in the middle; a line of which it is not known by its number."""
    if at_ms is None:
        return "-"
    return f"line {at_ms}" if at_ms < TIMES_FROM_MS else _written(at_ms, " ")


def to_second(written: str) -> str:
    """What `instant` wrote, without the milliseconds."""
    return written.partition(".")[0]


def second(time: datetime) -> str:
    """The same of an aware time, to the second."""
    return to_second(instant(epoch_ms(time)))


def moment(time: datetime) -> str:
    """The same with its zone."""
    return second(time) + (" UTC" if is_known(time) else "")


def iso(time: datetime) -> str:
    """An aware time as ISO 8601 in UTC, to the millisecond, for programs: 2026-11-21T17:27:33.641Z."""
    return _written(epoch_ms(time), "T") + "Z"


def _written(at_ms: int, middle: str) -> str:
    return (EPOCH + timedelta(milliseconds=at_ms)).isoformat(sep=middle, timespec="milliseconds")[:23]


def duration(span_ms: int | None) -> str:
    """A duration at a glance: 20 ms, 6.0 s, 3 min 50 s, 2 h 5 min, 3 d 4 h."""
    if span_ms is None:
        return "-"
    if span_ms < 1_000:
        return f"{span_ms} ms"
    if span_ms < 59_950:
        return f"{span_ms / 1_000:.1f} s"
    seconds = round(span_ms / 1_000)
    _, size, unit, smaller_size, smaller_unit = next(units for units in _TWO_UNITS if seconds >= units[0])
    rest = seconds % size // smaller_size
    return f"{seconds // size} {unit}" + (f" {rest} {smaller_unit}" if rest else "")


def parse_span(text: str, *, name: str) -> timedelta:
    """A duration as typed: a number and one of ms, s, m, h, d, w. UserError: not a duration; `name` says of what."""
    match = SPAN.fullmatch(text.strip())
    if match is None:
        raise UserError(f"{name} {printable(text, 40)}: not a duration, such as 90s, 5m or 24h")
    return float(match.group(1)) * _UNITS[match.group(2)]
