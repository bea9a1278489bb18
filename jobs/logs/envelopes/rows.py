"""Lines that stand in a column of CSV: exports of CloudWatch Logs Insights, Splunk, Datadog, Kibana and Azure.

A field that holds a broker's line has commas, so it has quotes around it. A field with line ends continues in the next lines, which are
those of a stack trace.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from jobs.common.expressions import expression
from jobs.logs.envelopes.instants import ANY_TIME

_QUOTED: Final = expression(rb'(?:(?<=[,;\t :-])|^)"([^"]*(?:""[^"]*)*)(?:"(?=[,;\t\r]|\Z)|\Z)')
_TIME_COLUMN: Final = expression(
    rb'(?:(?<=[,;\t])|^)"?(' + ANY_TIME + rb"|\d{13}|\d\d?/\d\d?/\d{4}, \d\d?:\d\d:\d\d(?:\.\d+)? [AP]M)" + rb'"?(?=[,;\t\r]|\Z)'
)


def line_of_csv(text: bytes, place: int, moment: Any, find: Callable[[bytes, Any], bytes | None]) -> bytes | None:
    """The line in the field of a row in which `place` is; None if there is none."""
    if place < 0:
        return None
    field = next((field for field in _QUOTED.finditer(text) if field.end() > place), None)
    if field is None or field.start() > place or len(field[1]) == len(text):
        return None
    column = _TIME_COLUMN.search(text)
    at = moment if column is None else column[1]
    return find(field[1].replace(b'""', b'"'), at)
