"""Asks the lakehouse a named question: times and other values from what was typed, rows from DuckDB."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import datetime, timedelta, timezone
from difflib import get_close_matches
from pathlib import Path
from typing import Any, Final

from jobs.answers import questions
from jobs.answers.duckdb_views import Answer, QuestionReader
from jobs.answers.questions import Question
from jobs.common.errors import QuestionError
from jobs.common.text import printable
from jobs.common.times import EPOCH, SPAN, parse_span

MOST_ROWS: Final = 1_000_000

_CLOCK: Final = re.compile(r"\d\d:\d\d(?::\d\d(?:\.\d{3}|\.\d{6})?)?")
_NEWEST: Final = """
    SELECT max(e.at) AS newest FROM group_events AS e WHERE e.kind <> 'end' AND (:cluster IS NULL OR e.cluster = :cluster)
"""


class BoundQuestion:
    """A question with a value for each of its parameters, and the lakehouse that answers it."""

    def __init__(self, lakehouse: Path, question: Question, given: Mapping[str, str]) -> None:
        """`given`: what was typed, by parameter."""
        self.question = question
        self._reader = QuestionReader(lakehouse)
        self._given = given
        self.values = values(question, given, newest(self._reader, given.get("cluster")))
        self.cut = False  # whether there are more rows than `limit`

    def answer(self) -> Answer:
        """The rows."""
        bound = dict(self.values)
        limit = bound.get("limit")
        if limit is not None:
            bound["limit"] = limit + 1
        found = self._reader.ask(self.question.for_duckdb(), bound)
        self.cut = limit is not None and len(found.rows) > limit
        return Answer(found.columns, found.rows[:limit])

    def why_nothing(self) -> str:
        """What may be the reason for an answer without rows, in a sentence; empty if nothing is known."""
        for name, column in (("cluster", "cluster"), ("group", "group_id")):
            wanted = self._given.get(name)
            if wanted is None or self._known(column, wanted):
                continue
            near = get_close_matches(wanted, self._all(column), n=1, cutoff=0.6)
            hint = f" Did you mean {printable(near[0], 60)}?" if near else ""
            return f"No line names {name} {printable(wanted, 60)}.{hint}"
        if self.question.needs_requests and not self._known("source", "request"):
            return "This needs kafka-request.log, of which the lakehouse has no line; docs/capture.md has how to get it."
        return ""

    def _known(self, column: str, value: str) -> bool:
        text = f"SELECT 1 AS one FROM group_events AS e WHERE e.{column} = $value LIMIT 1"  # noqa: S608 - a name from above
        return bool(self._reader.ask(text, {"value": value}).rows)

    def _all(self, column: str) -> list[str]:
        text = f"SELECT DISTINCT e.{column} AS name FROM group_events AS e WHERE e.{column} <> '' ORDER BY name LIMIT 10000"  # noqa: S608
        return [str(row[0]) for row in self._reader.ask(text, {}).rows]


def newest(reader: QuestionReader, cluster: str | None) -> datetime:
    """The newest time in the tables, of all clusters or of one: what `now` means."""
    rows = reader.ask(_NEWEST.replace(":cluster", "$cluster"), {"cluster": cluster}).rows
    found = rows[0][0]
    return found if isinstance(found, datetime) else EPOCH


def values(question: Question, given: Mapping[str, str], now: datetime) -> dict[str, Any]:
    """A value for every parameter of a question: what was typed, else its default. `now`: the newest time in the tables.

    Without a zone, `now` is local time, as Spark collects it. QuestionError: a value of no use, or for no parameter.
    """
    now = now.astimezone(timezone.utc)
    for name in given:
        if name not in question.names:
            raise QuestionError(f"{question.name} takes no {name} (it takes: {', '.join(question.names) or 'nothing'})")
    until = parse_instant(given["until"], now, name="until") if "until" in given else now
    found: dict[str, Any] = {}
    for parameter in question.parameters:
        name = parameter.name
        text = given.get(name, parameter.default)
        if name == "until":
            found[name] = until
        elif name in questions.TIMES:
            found[name] = (until if name == "at" else EPOCH) if text is None else parse_instant(text, until, name=name)
        elif name in questions.SPANS:
            found[name] = parse_span(text or "", name=name) // timedelta(milliseconds=1)
        elif name in questions.CHOICES:
            found[name] = _one_of(name, text or "")
        elif name in questions.TEXTS:
            found[name] = text
        else:
            found[name] = _number(name, text or "")
    return found


def parse_instant(text: str, now: datetime, *, name: str) -> datetime:
    """A time as it was typed: ISO 8601, in UTC unless it says otherwise, or a duration before `now`.

    A time alone is one of the day of `now`. A day alone is its beginning; as `until`, its end.
    """
    text = text.strip()
    if SPAN.fullmatch(text):
        try:
            return now - parse_span(text, name=name)
        except OverflowError:
            return EPOCH
    typed = f"{now.date().isoformat()}T{text}" if _CLOCK.fullmatch(text) else text.upper().replace("Z", "+00:00")
    try:
        found = datetime.fromisoformat(typed)
        found = found.replace(tzinfo=timezone.utc) if found.tzinfo is None else found.astimezone(timezone.utc)
        if name == "until" and len(text) == len("2026-11-21"):
            found += timedelta(days=1) - timedelta(microseconds=1)
    except (ValueError, OverflowError):
        raise QuestionError(
            f"--{name} {printable(text, 40)}: neither a time in UTC (2026-11-21T05:10:00, 05:10) nor a duration before the newest (24h)"
        ) from None
    return found


def _one_of(name: str, text: str) -> str:
    if text not in questions.CHOICES[name]:
        raise QuestionError(f"{name}: must be one of {', '.join(questions.CHOICES[name])}, not {printable(text, 40)}")
    return text


def _number(name: str, text: str) -> int:
    if not re.fullmatch(r"\d{1,12}", text) or (name == "limit" and not 1 <= int(text) <= MOST_ROWS):
        raise QuestionError(
            f"{name}: must be a whole number{f' from 1 to {MOST_ROWS}' if name == 'limit' else ''}, not {printable(text, 40)}"
        )
    return int(text)
