"""Times and durations as a person reads them."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone
from typing import Final

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=timezone.utc)


def duration(milliseconds: int | None) -> str:
    """A duration at a glance: 20 ms, 6.0 s, 3 m 50 s, 2 h 5 m."""
    if milliseconds is None:
        return "-"
    if milliseconds < 1_000:
        return f"{milliseconds} ms"
    if milliseconds < 60_000:
        return f"{milliseconds / 1_000:.1f} s"
    seconds = round(milliseconds / 1_000)
    if seconds < 3_600:
        return f"{seconds // 60} m {seconds % 60} s"
    return f"{seconds // 3_600} h {seconds % 3_600 // 60} m"


def instant(epoch_ms: int | None) -> str:
    """A time as ISO 8601 in UTC, to the millisecond, with a blank in the middle."""
    if epoch_ms is None:
        return "-"
    return (_EPOCH + timedelta(milliseconds=epoch_ms)).isoformat(sep=" ", timespec="milliseconds")[:23]
