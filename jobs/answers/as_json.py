"""Answers for programs."""

from __future__ import annotations

import json
from datetime import datetime

from jobs.common.times import epoch_ms, iso


def as_json(value: object) -> str:
    """JSON in ASCII: times as ISO 8601 in UTC, texts as they were logged."""
    return json.dumps(value, indent=2, default=_as_text)


def as_json_line(value: object) -> str:
    """The same in one line."""
    return json.dumps(value, separators=(",", ":"), default=_as_text)


def for_browser(value: object) -> bytes:
    """JSON in ASCII: times as epoch ms, texts as they were logged. The page escapes what it shows."""
    return json.dumps(
        value, default=lambda each: epoch_ms(each) if isinstance(each, datetime) else str(each), separators=(",", ":")
    ).encode()


def _as_text(value: object) -> str:
    return iso(value) if isinstance(value, datetime) else str(value)
