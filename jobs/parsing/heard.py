"""The text of a clock: in which seconds its log was written."""

from __future__ import annotations

import json
from typing import Final

_MAX_SECOND: Final = 253_402_300_799  # the year 9999: what a timestamp can hold


def heard_seconds(text: str | None) -> list[int]:
    """First and last seconds (UTC epoch), as many of one as of the other. What is no such list says nothing."""
    try:
        found = json.loads(text or "[]")
    except (ValueError, RecursionError):
        return []
    sound = isinstance(found, list) and not len(found) % 2 and all(type(second) is int and 0 <= second <= _MAX_SECOND for second in found)
    return found if sound else []
