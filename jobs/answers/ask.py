"""Answers a named question: values from the texts that were typed, rows from DuckDB."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import datetime, timedelta, timezone
from difflib import get_close_matches
from typing import Any, Final

from coordinator_model.events import REQUEST_SOURCE
from jobs.answers import questions
from jobs.answers.duckdb_views import Answer, QuestionReader
from jobs.answers.questions import Parameter, Question
from jobs.common.errors import QuestionError
from jobs.common.places import own_query
from jobs.common.stores import Place
from jobs.common.text import printable
from jobs.common.times import EPOCH, SPAN, milliseconds, parse_span, second

MOST_ROWS: Final = 1_000_000

_CLOCK: Final = re.compile(r"\d\d:\d\d(?::\d\d(?:\.\d{3}|\.\d{6})?)?")
_DAY: Final = timedelta(days=1) - timedelta(microseconds=1)  # from its beginning to its end
_COUNT: Final = """
    SELECT count(*) FROM {rows} AND ($cluster IS NULL OR r.cluster = $cluster) AND ($group IS NULL OR r.group_id = $group)
"""
_STARTUPS: Final = _COUNT.format(rows="rebalances_with_culprit AS r WHERE r.startup")
_PROVISIONAL: Final = _COUNT.format(rows="rebalances_waiting AS r WHERE true")


class BoundQuestion:
    """A question with a value for each of its parameters, and the lakehouse that answers it."""

    def __init__(self, lakehouse: Place | QuestionReader, question: Question, given: Mapping[str, str | None]) -> None:
        """`lakehouse`: its folder, or a reader of it. `given`: what was typed, by parameter; None: nothing was."""
        self.question = question
        self._reader = lakehouse if isinstance(lakehouse, QuestionReader) else QuestionReader(lakehouse)
        self._given = {name: text for name, text in given.items() if text is not None}
        self.values = values(question, self._given, newest(self._reader, given.get("cluster")))
        self.cut = False  # whether there are more rows than `limit`

    def answer(self) -> Answer:
        """The rows, at most `limit`."""
        limit: int = self.values["limit"]
        answer = self._reader.ask(self.question.for_duckdb(), self.values | {"limit": limit + 1})
        self.cut = len(answer.rows) > limit
        return Answer(answer.columns, answer.rows[:limit])

    @property
    def fixed(self) -> list[str]:
        """Columns of which all rows have one value, however many there are: the only cluster, and the group that was asked for."""
        one_cluster = "cluster" in self._given or len(_names(self._reader, "cluster")) == 1
        return [*(["cluster"] if one_cluster else []), *(["group_id"] if "group" in self._given else [])]

    def provisional(self) -> int:
        """How many of the rebalances that the answer is made of may still be corrected, at any time."""
        if "rebalances_now" not in questions.views_of(self.question.text, questions.views()):
            return 0
        return self._count(_PROVISIONAL)

    def _count(self, text: str) -> int:
        """How many rows there are of the cluster and of the group that were asked for."""
        return int(self._reader.ask(text, {name: self._given.get(name) for name in ("cluster", "group")}).rows[0][0])

    def why_nothing(self) -> str:
        """A sentence with a possible reason for an answer without rows; empty if unknown."""
        if unknown := unknown_name(self._reader, self._given):
            return unknown
        first, last, _ = self._reader.ask(own_query("span"), {"cluster": self._given.get("cluster")}).rows[0]
        asked: dict[str, datetime] = {name: self.values[name] for name in ("since", "until", "at") if name in self._given}
        if first is not None and (outside := outside_of(first, last, asked)):
            return outside
        if "Needs kafka-request.log" in self.question.answer and REQUEST_SOURCE not in _names(self._reader, "source"):
            return "This needs kafka-request.log, but the lakehouse has no line from it; docs/capture.md explains how to get it."
        if "Start-ups are left out" in self.question.answer and self._count(_STARTUPS):
            return "There are start-ups only: `rebalance ask first-join` shows them."
        return ""


def outside_of(first: datetime, last: datetime, asked: Mapping[str, datetime]) -> str:
    """A sentence with the span of the data if a time that was asked for, by parameter, lies outside of it; else empty."""
    for name, time in asked.items():
        side = "after" if time > last and name != "until" else "before" if time < first and name != "since" else ""
        if side:
            return f"The data is from {second(first)} to {second(last)} UTC; --{name} {second(time)} is {side} that."
    return ""


def unknown_name(reader: QuestionReader, given: Mapping[str, str]) -> str:
    """A sentence about a cluster or group that was asked for and that no line names; empty if all are known."""
    for name, column in (("cluster", "cluster"), ("group", "group_id")):
        wanted = given.get(name)
        if wanted is None or wanted in (names := _names(reader, column)):
            continue
        near = get_close_matches(wanted, names[:10_000], n=1, cutoff=0.6)
        hint = f" Did you mean {printable(near[0], 60)}?" if near else ""
        return f"The logs do not mention {name} {printable(wanted, 60)}.{hint}"
    return ""


def _names(reader: QuestionReader, column: str) -> list[str]:
    text = f"SELECT DISTINCT e.{column} AS name FROM group_events AS e WHERE e.{column} <> '' ORDER BY name"  # noqa: S608 - no user's text
    return [str(name) for (name,) in reader.ask(text, {}).rows]


def check_order(since: datetime | None, until: datetime | None) -> None:
    """QuestionError: there is no time between them."""
    if since is not None and until is not None and since > until:
        raise QuestionError(f"--since {second(since)} is after --until {second(until)}: there is no time between them")


def newest(reader: QuestionReader, cluster: str | None) -> datetime:
    """The newest time in the tables, of all clusters or of one: what `now` means."""
    if cluster not in reader.newest:
        reader.newest[cluster] = reader.ask(own_query("span"), {"cluster": cluster}).rows[0][2] or EPOCH
    return reader.newest[cluster]


def values(question: Question, given: Mapping[str, str], now: datetime) -> dict[str, Any]:
    """A value for every parameter of a question: the typed text as a value, or the default. `now`: the newest time in the tables.

    A `now` without a zone is local time, as Spark returns it. QuestionError: an unknown parameter, or a text that is no value for one.
    """
    now = now.astimezone(timezone.utc)
    for name in given:
        if name not in question.names:
            raise QuestionError(f"{question.name} takes no {name} (it takes: {', '.join(question.names) or 'nothing'})")
    until = parse_instant(given["until"], now, name="until") if "until" in given else now
    found = {one.name: _value(one, given.get(one.name, one.default), until) for one in question.parameters}
    if "until" in given:
        check_order(found.get("since"), until)
    return found


def _value(one: Parameter, text: str | None, until: datetime) -> Any:
    name, choices = one.name, one.choices
    if choices and text is not None and text not in choices:
        raise QuestionError(f"{name}: must be one of {', '.join(choices)}, not {printable(text, 40)}")
    if choices or name in questions.TEXTS:
        return text
    if name == "until" or (name == "at" and text is None):
        return until
    if name in questions.TIMES:
        return EPOCH if text is None else parse_instant(text, until, name=name)
    text = text or ""
    if name in questions.SPANS:
        return milliseconds(parse_span(text, name=name))
    limit = f" from 1 to {MOST_ROWS}" if name == "limit" else ""
    if not re.fullmatch(r"\d{1,12}", text) or (limit and not 1 <= int(text) <= MOST_ROWS):
        raise QuestionError(f"{name}: must be a whole number{limit}, not {printable(text, 40)}")
    return int(text)


def parse_instant(text: str, now: datetime, *, name: str) -> datetime:
    """A time as typed: ISO 8601, in UTC unless it has an offset, or a duration before `now`.

    A time alone is one of the day of `now`. A day alone is its beginning; as `until`, its end.
    """
    text = text.strip()
    try:
        if SPAN.fullmatch(text):
            return now - parse_span(text, name=name)
    except OverflowError:
        return EPOCH
    try:
        time = datetime.fromisoformat(f"{now.date()}T{text}" if _CLOCK.fullmatch(text) else text.upper().replace("Z", "+00:00"))
        time = time.replace(tzinfo=timezone.utc) if time.tzinfo is None else time.astimezone(timezone.utc)
        return time + _DAY if name == "until" and len(text) == len("2026-11-21") else time
    except (ValueError, OverflowError):
        raise QuestionError(
            f"--{name} {printable(text, 40)}: neither a time in UTC (2026-11-21T05:10:00, 05:10) nor a duration before the newest (24h)"
        ) from None
