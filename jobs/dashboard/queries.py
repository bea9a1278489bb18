"""The rows that pages show: answers of named questions, and tables and views of sql/ as they are. Nothing is summed up here.

Each query takes `limit` and what it names with `$`. Times that no value is given for are from the beginning, or to the end.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from datetime import timedelta
from typing import Any, Final

from jobs.answers import questions
from jobs.answers.ask import BoundQuestion
from jobs.answers.duckdb_views import QuestionReader, Row
from jobs.answers.evidence import ProvenRow, prove
from jobs.answers.rebalance_words import is_open, open_story, with_words
from jobs.common.errors import EvidenceError
from jobs.common.places import SQL, own_query
from jobs.common.stores import Place
from jobs.common.text import printable, who
from jobs.common.times import EPOCH, LATEST_MS
from jobs.lakehouse.folder import known_inputs

MOST: Final = 5_000
"""Rows of a kind that a page gets unless it asks for fewer."""

_OF_CAUSE: Final = {
    **dict.fromkeys(("COORDINATOR_MOVED", "ASSIGNMENT_NOT_STORED"), "broker"),
    **dict.fromkeys(("SESSION_TIMEOUT", "POLL_TIMEOUT", "SYNC_TIMEOUT", "REBALANCE_TIMEOUT", "SLOW_JOINER", "STUCK_RECONCILING"), "failed"),
    **dict.fromkeys(("MEMBER_JOINED", "MEMBER_LEFT", "ADMIN_REMOVED", "STATIC_MEMBER_REPLACED", "GROUP_OVER_CAPACITY"), "came"),
    "STARTUP": "startup",
    "UNKNOWN": "unknown",
}
"""How rebalances are drawn, by what they are blamed on (assets/looks.js); all others as `changed`."""
_LINE_CHARS: Final = 2_000  # of a log line, as in `rebalance evidence`
_LATEST: Final = EPOCH + timedelta(milliseconds=LATEST_MS)

QUERIES: Final[Mapping[str, str]] = {path.stem: own_query(path.stem, "pages") for path in sorted((SQL / "pages").glob("*.sql"))}
"""By name, as the pages ask for them: /api/rows/NAME."""


def answer(reader: QuestionReader, name: str, given: Mapping[str, str | None]) -> dict[str, Any]:
    """The answer of a named question, with all that its own page shows. `cut`: there are more rows than `limit`."""
    bound = BoundQuestion(reader, questions.load(name), given)
    found = bound.answer()
    return {
        "columns": found.columns,
        "rows": found.rows,
        "names": [_names(row) for row in found.by_name()],
        "fixed": bound.fixed,
        "cut": bound.cut,
        "provisional": bound.provisional(),
        "nothing": "" if found.rows else bound.why_nothing(),
    }


def asked(reader: QuestionReader, name: str, given: Mapping[str, str | None]) -> dict[str, Any]:
    """Its `rows` by column name, `cut`, and why there is `nothing`: a page asks many, and shows no more of each."""
    bound = BoundQuestion(reader, questions.load(name), given)
    rows = [named(row) for row in bound.answer().by_name()]
    return {"rows": rows, "cut": bound.cut, "nothing": "" if rows else bound.why_nothing()}


def rows_of(reader: QuestionReader, name: str, *, limit: int = MOST, **values: Any) -> dict[str, Any]:
    """The `rows` of a query, at most `limit`, and whether there are more (`cut`)."""
    found = reader.found(QUERIES[name], {"since": EPOCH, "until": _LATEST, **values, "limit": limit + 1})
    change = _CHANGES.get(name, dict)
    return {"rows": [named(change(row)) for row in found[:limit]], "cut": len(found) > limit}


def _names(row: Row) -> Row:
    """The clients of a row as the report names them: `who` with which of its members, `name` without."""
    names: Row = {}
    for of in ("", "from_", "to_"):
        if f"{of}client_id" in row:
            client, static = (row[f"{of}client_id"], row.get(f"{of}client_host")), row.get("instance_id")
            names[f"{of}who"] = who(*client, row.get(f"{of}member_id"), static)
            if not of:
                names["name"] = who(*client, None, static)
    return names


def named(row: Row) -> Row:
    """A row with the names of its clients, in which their hosts are."""
    return {column: value for column, value in row.items() if not column.endswith("client_host")} | _names(row)


def look_of(cause: str) -> str:
    """The name of the look of a cause."""
    return _OF_CAUSE.get(cause, "changed")


def shown(row: Row) -> Row:
    """A rebalance with its look and its words."""
    return {**with_words(row), "look": look_of(row["blamed"])}


def _told(row: Row) -> Row:
    """The rebalance of a page, with the story of one that has not ended."""
    return shown(row) | ({"story": open_story(row)} if is_open(row) else {})


def _with_details(row: Row) -> Row:
    return {**row, "details": json.loads(row["details"] or "{}")}


_CHANGES: Final = {"rebalances": shown, "rebalance": _told, "findings": _with_details, "finding": _with_details}


def evidence(lakehouse: Place, row_id: str) -> dict[str, Any]:
    """The lines that prove a row, as `rebalance evidence` finds them, or the `problem` with them."""
    try:
        return lines_of(prove(lakehouse, row_id, known_inputs(lakehouse)))
    except EvidenceError as error:
        return {"lines": [], "problem": printable(str(error), 600)}


def lines_of(proven: Iterable[ProvenRow]) -> dict[str, Any]:
    """The lines of some rows."""
    return {
        "lines": [
            {
                "source": line.source,
                "place": f"{printable(line.origin)}:{line.position}",
                "file": printable(line.file.name) if line.file is not None else None,
                "text": printable(line.text, _LINE_CHARS) if line.text is not None else None,
            }
            for row in proven
            for line in row.lines
        ]
    }
