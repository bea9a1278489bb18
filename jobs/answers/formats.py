"""Answers for programs, as JSON, and for spreadsheets, as CSV.

What comes from a log may hold anything. A cell of CSV is made printable (jobs/common/text.py). A text that a spreadsheet would take for a
formula gets a ' before it, and every text stands in quotes: where a spreadsheet takes ; for the separator, a formula could hide behind one.
"""

from __future__ import annotations

import json
import re
from datetime import datetime
from typing import Any, Final

from jobs.answers.duckdb_views import Answer
from jobs.common.text import printable
from jobs.common.times import epoch_ms, iso

_TEXT_CELL: Final = 32_767  # what a spreadsheet takes
_FORMULA: Final = re.compile(r"\s*[=+\-@\uff1d\uff0b\uff0d\uff20]")  # wide ones too, which some take for the same


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


def as_csv(answer: Answer) -> str:
    """Names, then rows. No cell is read as a formula, and none moves a terminal's cursor."""
    lines = [",".join(answer.columns), *(",".join(map(_csv_cell, row)) for row in answer.rows)]
    return "".join(f"{line}\n" for line in lines)


def _csv_cell(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, datetime):
        return iso(value)
    if isinstance(value, (bool, int, float)):
        return str(value)
    shown = printable(str(value), _TEXT_CELL - 1)
    harmless = "'" + shown if _FORMULA.match(shown) else shown
    return '"' + harmless.replace('"', '""') + '"'
