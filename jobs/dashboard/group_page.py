"""The page of a group, and that of one of its rebalances: all rows that they show but for log lines and heartbeats."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from typing import Any, Final

from coordinator_model.view.outcomes import SUPERSEDED
from jobs.answers.duckdb_views import QuestionReader, Row
from jobs.answers.incidents.bills import Records, RecordsOf
from jobs.answers.rebalance_words import rounds_of
from jobs.common.places import own_query
from jobs.common.times import iso
from jobs.dashboard.queries import MOST, asked, named, rows_of

_AROUND: Final = timedelta(milliseconds=1_500)  # before a rebalance and after it
_GIVEN_LATER: Final = timedelta(seconds=30)  # members of a new generation may ask for their partitions that late
_REFUSED_UNTIL: Final = timedelta(minutes=10)  # after a removal its client may still be refused
_STEPS: Final = 60


def group_page(reader: QuestionReader, cluster: str, group: str) -> dict[str, Any]:
    """`about` the group, its `states`, `rebalances`, `findings` and `members`, each with `rows` and whether there are more (`cut`)."""
    of: dict[str, Any] = {"cluster": cluster, "group": group}
    rebalances = rows_of(reader, "rebalances", **of)
    return {
        "about": asked(reader, "groups", {**of, "limit": "1"}),
        **{name: rows_of(reader, name, **of) for name in ("states", "findings")},
        "rebalances": {**rebalances, "rows": _with_records(reader, rebalances["rows"], of)},
        "members": asked(reader, "members", {**of, "limit": str(MOST)}),
    }


def rebalance_page(reader: QuestionReader, row_id: str) -> dict[str, Any]:
    """The `rebalance` of an id or of its beginning, null if there is none; and what happened in it and around it."""
    found: list[Row] = rows_of(reader, "rebalance", id=row_id, limit=1)["rows"]
    if not found:
        return {"rebalance": None}
    row = found[0]
    of: dict[str, Any] = {"cluster": row["cluster"], "group": row["group_id"]}
    begin, end = row["started_at"], row["ended_at"] + timedelta(milliseconds=row["first_fetch_ms"] or 0)
    within = {**of, "since": begin - _AROUND, "until": end + _AROUND}
    times = {**of, "since": iso(begin - _AROUND), "until": iso(end + _AROUND), "limit": str(MOST)}
    findings = rows_of(reader, "findings", **within)["rows"]
    stopped = rows_of(reader, "stopped", **of, since=begin, until=row["ended_at"])["rows"]
    known = {each["id"] for each in findings}
    blamed = [] if row["finding_id"] in {None, *known} else rows_of(reader, "finding", id=row["finding_id"], limit=1)["rows"]
    return {
        "rebalance": _with_records(reader, [row], of)[0],
        **_chain(rows_of(reader, "rebalances", **of)["rows"], row),
        "requests": rows_of(reader, "requests", **within),
        "rounds": [named(each) for each in rounds_of(reader, row)],
        "stopped": [_with_cell(each, Records.of(each)) for each in stopped],
        "findings": [*blamed, *findings],
        "afterwards": rows_of(reader, "findings", **of, since=end + _AROUND, until=end + _REFUSED_UNTIL)["rows"],
        "heartbeats": rows_of(reader, "heartbeats", **within)["rows"],
        "members": asked(reader, "members", times)["rows"],
        "had": asked(reader, "assignments", {**times, "since": None, "until": iso(begin)})["rows"],
        "given": asked(reader, "assignments", {**times, "since": iso(begin), "until": iso(end + _GIVEN_LATER)})["rows"],
        "steps": asked(reader, "timeline", {**times, "limit": str(_STEPS)})["rows"],
    }


def _with_records(reader: QuestionReader, rows: list[Row], of: Mapping[str, Any]) -> list[Row]:
    """Rebalances of a group with what they cost in records, in figures and in words."""
    records = RecordsOf(reader.found(own_query("records"), of))
    costs = [(row, records.rebalance(row)) for row in rows]
    return [_with_cell(row | own.figures(), own) | {"in_records": own.in_words()} for row, own in costs]


def _with_cell(row: Row, own: Records) -> Row:
    """A row with the range of what was read twice as its cell says it."""
    return row | {"read_twice": own.read_twice(), "lag": own.lag()}


def _chain(rows: list[Row], row: Row) -> dict[str, Any]:
    """The rebalances that ended in this one (`earlier`) and that ended it (`later`), and those `before` and `next` in time."""
    index = next((place for place, each in enumerate(rows) if each["id"] == row["id"]), None)
    if index is None:
        return {"earlier": [], "later": [], "before": None, "next": None}

    def goes_on(place: int) -> bool:
        own, following = rows[place : place + 2]
        return bool(own["outcome"] == SUPERSEDED and own["ended_at"] == following["started_at"])

    first = last = index
    while first > 0 and goes_on(first - 1):
        first -= 1
    while last + 1 < len(rows) and goes_on(last):
        last += 1
    before, following = rows[index - 1] if index else None, rows[index + 1] if index + 1 < len(rows) else None
    return {"earlier": rows[first:index], "later": rows[index + 1 : last + 1], "before": before, "next": following}
