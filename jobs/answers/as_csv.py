"""Answers for spreadsheets.

What comes from a log may hold anything. Every cell is made printable (jobs/common/text.py). A text that a spreadsheet would take for a
formula gets a ' before it, and every text stands in quotes: where a spreadsheet takes ; for the separator, a formula could hide behind one.
"""

from __future__ import annotations

import re
from datetime import datetime
from typing import Any, Final

from jobs.answers.duckdb_views import Answer
from jobs.common.text import printable
from jobs.common.times import iso

_TEXT_CELL: Final = 32_767  # what a spreadsheet takes
_FORMULA: Final = re.compile(r"\s*[=+\-@\uff1d\uff0b\uff0d\uff20]")  # wide ones too, which some take for the same


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
