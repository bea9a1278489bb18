"""Lines that stand in a column of CSV: exports of CloudWatch Logs Insights, Splunk, Datadog, Kibana and Azure.

A field that holds a broker's line has commas, so it has quotes around it. A field with line ends continues in the next lines, which are
those of a stack trace.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, Final

from jobs.logs.envelopes.instants import ANY_TIME

_QUOTED: Final = re.compile(rb'(?:(?<=[,;\t])|^)[ ]?"([^"]*(?:""[^"]*)*)(?:"(?=[,;\t\r]|\Z)|\Z)')
_TIME_COLUMN: Final = re.compile(
    rb'(?:(?<=[,;\t])|^)"?(' + ANY_TIME + rb"|\d{13}|\d\d?/\d\d?/\d{4}, \d\d?:\d\d:\d\d(?:\.\d+)? [AP]M)" + rb'"?(?=[,;\t\r]|\Z)'
)
_SHORTEST: Final = 20  # characters of a line


def line_of_csv(text: bytes, moment: Any, unwrap: Callable[[bytes, Any], bytes | None]) -> bytes | None:
    """The broker's line in a field of a row; None if there is none."""
    column = _TIME_COLUMN.search(text)
    at = moment if column is None else column[1]
    for field in _QUOTED.finditer(text):
        value = field[1]
        if len(value) < _SHORTEST or len(value) == len(text):
            continue
        found = unwrap(value.replace(b'""', b'"'), at)
        if found is not None:
            return found
    return None
