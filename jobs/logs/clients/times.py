"""Times in logs of applications, which write them as they like.

A time may stand in brackets or not, after a level or the name of a logger, with or without an offset, to the second or finer. librdkafka
writes epoch seconds; Go's loggers separate the date with slashes. A time without a date, as Logback and Log4j 2 write it without a
configuration, is none.
"""

from __future__ import annotations

import re
from typing import Final

from jobs.logs.times import LocalTimes

_LEAD: Final = (
    rb"(?:\[[^\[\]]{1,64}\][ \t]*"  # [sarama], [INFO], [main]
    rb"|(?:TRACE|DEBUG|INFO|NOTICE|WARN(?:ING)?|ERROR|CRITICAL|FATAL)[ \t:|]+"
    rb"|[A-Z][a-z]{3,8}\|"  # Warning|
    rb"|[A-Za-z][\w. -]{0,40}:[ \t]+){0,3}?"  # kafka reader:
)
DATE_AND_TIME: Final = (
    rb"\d{4}[-/]\d\d[-/]\d\d[ T]\d\d:\d\d:\d\d(?:[.,]\d{1,9})?(?:Z|[+-]\d\d(?::?\d\d)?(?![\d:])| (?:UTC|[+-]\d{4}(?!\d)))?"
)

_EPOCH: Final = re.compile(rb"%\d\|(\d{1,11})\.(\d{3})\|")
_ISO: Final = re.compile(
    _LEAD + rb"[\[(]?(\d{4})[-/](\d\d)[-/](\d\d)[ T](\d\d:\d\d)(:\d\d)(?:[.,](\d{1,9}))?"
    rb"(?:(Z| UTC)|(?: (?=[+-]\d{4}(?!\d)))?([+-])(\d\d):?(\d\d)?(?![\d:]))?"
)
BEGINNING: Final = re.compile(rb"%\d\|\d{1,11}\.\d{3}\||" + _LEAD + rb"[\[(]?" + DATE_AND_TIME + rb"[\])]?")
"""The beginning of a line that has its own time."""


class ClientTimes(LocalTimes):
    """The times of lines as `client_line` (envelopes.py) returns them. A time without an offset is one of the zone."""

    def read(self, line: bytes, near_ms: int) -> int | None:
        """The time of a line, epoch ms; None if it has none."""
        if line[:1] == b"\t":
            return None
        epoch = _EPOCH.match(line)
        if epoch is not None:
            return int(epoch[1]) * 1_000 + int(epoch[2])
        iso = _ISO.match(line)
        if iso is None:
            return None
        year, month, day, minute, second, fraction, utc, sign, hours, minutes = iso.groups()
        local = b"[%s-%s-%s %s%s,%s]" % (year, month, day, minute, second, (fraction or b"")[:3].ljust(3, b"0"))
        if utc is None and sign is None:
            return super().read(local, near_ms)
        at = _UTC.read(local, near_ms)
        if at is None or sign is None:
            return at
        offset = (int(hours) * 60 + int(minutes or 0)) * 60_000
        return at - offset if sign == b"+" else at + offset


_UTC: Final = LocalTimes("UTC")
