"""What is sent to the browser: JSON in ASCII, times as epoch ms."""

from __future__ import annotations

import json
from datetime import datetime
from typing import Any

from jobs.common.times import epoch_ms


def encoded(value: Any) -> bytes:
    """The bytes. Texts are sent as they were logged: the page escapes what it shows."""
    return json.dumps(value, default=_plain, separators=(",", ":")).encode()


def _plain(value: object) -> object:
    return epoch_ms(value) if isinstance(value, datetime) else str(value)
