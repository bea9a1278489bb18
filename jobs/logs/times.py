"""Timestamps of log lines: from `[2026-11-21 06:09:19,456]` in the broker's zone, or `[2026-11-21 06:09:19,456Z]`, to epoch ms, UTC.

Kafka's log patterns print no offset, so a local time in the hour that a daylight-saving change repeats has two
meanings. A log is written in order, so the meaning nearest to the time of the lines before it is the true one.

A Z stands where the instant is known (jobs/logs/envelopes): the zone and the lines before it do not matter then.
"""

from __future__ import annotations

import re
from datetime import datetime, timedelta, tzinfo
from typing import Final

from jobs.common.times import zone_named

NEVER: Final = -(1 << 62)  # before any time: "nothing read yet"

MINUTE: Final = slice(0, 17)  # of a line: `[2026-11-21 06:09`
SECOND: Final = slice(17, 25)  # of a line: `:19,456]`
LENGTH: Final = 25
EXACT: Final = slice(24, 26)  # of a line: `Z]`

_MINUTE: Final = re.compile(rb"\[(\d{4})-(\d\d)-(\d\d)[ T](\d\d):(\d\d)")
_SECOND: Final = re.compile(rb":(\d\d)[,.](\d{3})\]")
_EPOCH: Final = datetime(1970, 1, 1)  # noqa: DTZ001 - local times are subtracted from it
_MILLISECOND: Final = timedelta(milliseconds=1)
_MAX_MINUTES: Final = 10_000  # kept at a time: a week


class Seconds(dict[bytes, int]):
    """Milliseconds into the minute by their text; filled as texts occur, at most 120,000."""

    def find(self, text: bytes) -> int | None:
        """Those of a text; None if it has another form."""
        value = self.get(text)
        if value is None and (match := _SECOND.fullmatch(text)) is not None and match[1] <= b"59":
            value = self[text] = int(match[1]) * 1000 + int(match[2])
        return value


SECONDS: Final = Seconds()


class LocalTimes:
    """The local times of one zone. Minutes are looked up once: a line costs two dictionary look-ups."""

    exact = False  # whether times are beyond doubt. Times in text may be damaged.

    def __init__(self, zone: str) -> None:
        self._zone = zone_named(zone)
        self._minutes: dict[bytes, tuple[int, int]] = {}  # with two meanings each

    def minute(self, text: bytes) -> int | None:
        """Epoch ms at which the minute starts; None if it has no meaning, or two."""
        pair = self._meanings(text)
        return pair[0] if pair is not None and pair[0] == pair[1] else None

    def read(self, line: bytes, near_ms: int) -> int | None:
        """The time of a line, epoch ms; None if it has none. A time with two meanings has the one nearer to `near_ms`."""
        if line.isspace():
            return None  # as lines of another log in the file are shown
        if line[EXACT] == b"Z]":
            return UTC.read(line[:24] + b"]", NEVER)
        pair = self._minutes.get(line[MINUTE]) or self._meanings(line[MINUTE])
        millis = SECONDS.find(line[SECOND])
        if pair is None or millis is None:
            return None
        if pair[0] == pair[1]:
            return pair[0] + millis
        earlier, later = sorted((pair[0] + millis, pair[1] + millis))
        # No line comes before a log's first: it counts as the first pass of the repeated hour.
        return later if near_ms != NEVER and later - near_ms < near_ms - earlier else earlier

    def _meanings(self, text: bytes) -> tuple[int, int] | None:
        if text not in self._minutes:
            pair = self._resolve(text)
            if pair is None:
                return None  # not remembered: damage comes in any number of forms
            if len(self._minutes) >= _MAX_MINUTES:
                self._minutes.clear()
            self._minutes[text] = pair
        return self._minutes[text]

    def _resolve(self, text: bytes) -> tuple[int, int] | None:
        """Both meanings of a local minute, epoch ms: equal but in the repeated (or left out) hour. None: impossible."""
        match = _MINUTE.fullmatch(text)
        if match is None:
            return None
        try:
            year, month, day, hour, minute = (int(part) for part in match.groups())
            local = datetime(year, month, day, hour, minute)  # noqa: DTZ001 - the zone is put on below
            first = utc_ms(local, self._zone)
            second = utc_ms(local, self._zone, fold=1)
        except (ValueError, OverflowError):
            return None
        return first, second


class LaterTimes(LocalTimes):
    """The local times of a clock that was set back: all of them so much later."""

    def __init__(self, times: LocalTimes, later_ms: int) -> None:
        self._times = times
        self._later_ms = later_ms

    def minute(self, text: bytes) -> int | None:
        """Epoch ms at which the minute starts."""
        start = self._times.minute(text)
        return None if start is None else start + self._later_ms

    def read(self, line: bytes, near_ms: int) -> int | None:
        """The time of a line, epoch ms."""
        at = self._times.read(line, near_ms - self._later_ms if near_ms != NEVER else NEVER)
        return None if at is None else at + self._later_ms


UTC: Final = LocalTimes("UTC")


def _local(line: bytes) -> bytes:
    """A line's first 25 bytes, without a Z."""
    return line[:24] + b"]" if line[EXACT] == b"Z]" else line[:LENGTH]


def looks_like_time(line: bytes) -> bool:
    """Whether a line begins with the form of a timestamp, even of an impossible date."""
    return _MINUTE.fullmatch(line[MINUTE]) is not None and _SECOND.fullmatch(_local(line)[SECOND]) is not None


def utc_ms(local: datetime, zone: tzinfo, *, fold: int = 0) -> int:
    """A local time as epoch ms."""
    offset = local.replace(tzinfo=zone, fold=fold).utcoffset()
    assert offset is not None
    return (local - _EPOCH - offset) // _MILLISECOND
