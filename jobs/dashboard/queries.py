"""The rows that pages show: answers of named questions, and tables and views of sql/ as they are. Nothing is summed up here.

Each query takes `limit` and what it names with `$`. Times that no value is given for are from the beginning, or to the end.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta
from typing import Any, Final

from jobs.answers import questions
from jobs.answers.ask import BoundQuestion
from jobs.answers.duckdb_views import QuestionReader, Row
from jobs.answers.open_rebalances import is_open, open_story
from jobs.answers.rebalance_words import with_words
from jobs.common.text import who
from jobs.common.times import EPOCH, LATEST_MS
from jobs.dashboard import families

MOST: Final = 5_000
"""Rows of a kind that a page gets unless it asks for fewer."""
MOST_POINTS: Final = 2_000
"""Of a line over time."""

_LATEST: Final = EPOCH + timedelta(milliseconds=LATEST_MS)

_GROUP: Final = "x.cluster = $cluster AND x.group_id = $group"
_REBALANCE: Final = "x.* EXCLUDE (evidence, batch_id)"
_OF_REQUEST: Final = """
    x.source, x.broker, x.kind, coalesce(nullif(x.answer_member_id, ''), x.member_id) AS member_id, x.client_id, x.client_host,
    x.connection, x.received_at, x.occurred_at, x.generation, x.answer_generation, x.error_code, x.reason, x.origin, x.position
"""

_BEATS: Final = (
    "SELECT x.member_id, x.received_at AS first_at, coalesce(x.last_at, x.received_at) AS last_at, x.beat_count",
    """
        FROM group_events AS x
        WHERE OF_GROUP AND coalesce(x.last_at, x.received_at) >= $since AND x.received_at <= $until
          AND x.kind IN ('HEARTBEAT', 'CONSUMER_GROUP_HEARTBEAT') AND x.error_code = 0 AND x.member_id <> ''
        ORDER BY x.received_at, x.origin, x.position LIMIT $limit
    """,
)
"""Heartbeats that were answered without an error: a row for each run of them."""

_LAG: Final = """
    WITH polled AS (
        SELECT x.occurred_at AS at, unnest(x.offsets) AS one FROM group_events AS x
        WHERE OF_GROUP AND x.kind = 'OFFSETS_POLLED' AND x.occurred_at <= $until
    ),
    waiting AS (
        SELECT p.at, p.one."partition" AS name, if(p.one."offset" < 0, 0, greatest(p.one."end" - p.one."offset", 0)) AS lag
        FROM polled AS p WHERE p.one."end" IS NOT NULL
    ),
    added AS (
        SELECT w.at, w.lag - coalesce(lag(w.lag) OVER (PARTITION BY w.name ORDER BY w.at), 0) AS lag FROM waiting AS w
    ),
    summed AS (
        SELECT a.at, CAST(sum(sum(a.lag)) OVER (ORDER BY a.at) AS BIGINT) AS lag FROM added AS a GROUP BY a.at
    ),
    points AS (
        SELECT s.at, s.lag FROM summed AS s WHERE s.at >= $since
        UNION ALL SELECT $since, max_by(s.lag, s.at) FROM summed AS s WHERE s.at < $since HAVING count(*) > 0
        UNION ALL SELECT n.at, max_by(s.lag, s.at) FROM summed AS s, (
            SELECT max(x.occurred_at) AS at FROM group_events AS x
            WHERE x.cluster = $cluster AND x.source = 'poll' AND x.occurred_at BETWEEN $since AND $until
        ) AS n GROUP BY n.at HAVING n.at IS NOT NULL
    )
    SELECT max_by(p.at, p.lag) AS at, max(p.lag) AS lag
    FROM points AS p, (SELECT min(p.at) AS first_at, max(p.at) AS last_at FROM points AS p) AS span
    GROUP BY least($limit - 1, MOST_POINTS) * epoch_ms(p.at - span.first_at) // (epoch_ms(span.last_at - span.first_at) + 1)
    ORDER BY 1
"""
"""What the partitions of a group had behind their committed offsets together, at each poll that saw a change, and at the last poll of all.

A poll tells of the partitions that changed. Commits of request logs are no points: no line shows the ends of the logs at their time. The
span asked for has so many parts as there may be points; of each the largest is taken.
"""

_SHORT: Final[Mapping[str, str]] = {
    "clusters": "SELECT DISTINCT x.cluster FROM group_events AS x WHERE x.group_id <> '' ORDER BY x.cluster LIMIT $limit",
    "codes": "SELECT DISTINCT x.code FROM findings AS x ORDER BY x.code LIMIT $limit",
    "states": """
        SELECT x.id, x.occurred_at, x.from_state, x.to_state, x.generation, x.trigger, x.member_id, x.client_id, x.client_host, x.reason
        FROM group_transitions_with_id AS x WHERE OF_GROUP AND x.occurred_at <= $until
        ORDER BY x.occurred_at, x.generation NULLS FIRST, x.step, x.id LIMIT $limit
    """,
    "rebalances": """
        SELECT A_REBALANCE FROM rebalances_with_culprit AS x
        WHERE OF_GROUP AND x.started_at <= $until AND x.ended_at >= $since
        ORDER BY x.started_at, x.ended_at, x.generation NULLS FIRST, x.id LIMIT $limit
    """,
    "findings": """
        SELECT x.* EXCLUDE (evidence, batch_id) FROM findings_with_id AS x
        WHERE OF_GROUP AND x.occurred_at BETWEEN $since AND $until
        ORDER BY x.occurred_at, x.code, x.member_id NULLS FIRST, x.id LIMIT $limit
    """,
    "stopped": """
        SELECT x.* EXCLUDE (evidence, batch_id) FROM rebalance_offsets AS x
        WHERE OF_GROUP AND x.started_at = $since AND x.ended_at = $until ORDER BY x.partition LIMIT $limit
    """,
    "lag": _LAG,
    "rounds": """
        SELECT x.* EXCLUDE (evidence, batch_id) FROM rebalance_rounds AS x
        WHERE OF_GROUP AND x.started_at BETWEEN $since AND $until
        ORDER BY x.started_at, x.epoch LIMIT $limit
    """,
    # Join, sync and leave requests with how long their answers took, and all that was refused.
    "requests": """
        SELECT A_REQUEST FROM group_events AS x
        WHERE OF_GROUP AND x.occurred_at >= $since AND x.received_at <= $until
          AND (x.kind IN ('JOIN_GROUP', 'SYNC_GROUP', 'LEAVE_GROUP', 'OFFSET_FETCH')
            OR x.kind IN ('HEARTBEAT', 'CONSUMER_GROUP_HEARTBEAT', 'OFFSET_COMMIT', 'TXN_OFFSET_COMMIT') AND x.error_code <> 0
            OR x.kind = 'CONSUMER_GROUP_HEARTBEAT' AND x.answer_generation <> x.generation)
        ORDER BY x.received_at, x.occurred_at, x.origin, x.position LIMIT $limit
    """,
    # Without each heartbeat, for times so long that none of them can be told from the next.
    "heartbeats": f"{_BEATS[0]}, x.beats {_BEATS[1]}",
    "heartbeat_runs": " ".join(_BEATS),
    "rebalance": """
        SELECT A_REBALANCE FROM rebalances_with_culprit AS x WHERE x.id LIKE $id || '%' ORDER BY x.id LIMIT $limit
    """,
    "finding": """
        SELECT x.* EXCLUDE (evidence, batch_id) FROM findings_with_id AS x WHERE x.id LIKE $id || '%' ORDER BY x.id LIMIT $limit
    """,
}

OTHER_GROUPS: Final = """
    SELECT DISTINCT x.cluster, x.group_id FROM rebalances_with_id AS x
    WHERE ($cluster IS NULL OR x.cluster = $cluster) AND x.started_at <= $until AND x.ended_at >= $since
    ORDER BY x.cluster, x.group_id LIMIT $limit
"""
"""Groups that rebalanced at all, be it as they started."""

LANES: Final = """
    SELECT x.cluster, x.group_id, x.id, x.started_at, x.ended_at, x.total_ms, x.startup, x.blamed, x.outcome, x.generation, x.reason,
           x.waits_for, x.unavailable_partition_ms, x.member_id, x.instance_id, x.culprit_broker, x.culprit_client_id,
           x.culprit_client_host, x.culprit_member_id
    FROM rebalances_with_culprit AS x
    WHERE list_contains($groups, x.group_id) AND x.started_at <= $until AND x.ended_at >= $since
    QUALIFY row_number() OVER (
        PARTITION BY x.cluster, x.group_id
        ORDER BY x.startup, x.unavailable_partition_ms DESC NULLS LAST, x.total_ms DESC NULLS LAST, x.id) <= 100
    ORDER BY x.started_at, x.id
"""
"""Rebalances of some groups: of each those that cost most."""

QUERIES: Final[Mapping[str, str]] = {
    name: text.replace("MOST_POINTS", str(MOST_POINTS))
    .replace("OF_GROUP", _GROUP)
    .replace("A_REBALANCE", _REBALANCE)
    .replace("A_REQUEST", _OF_REQUEST)
    for name, text in _SHORT.items()
}
"""By name, as the pages ask for them: /api/rows/NAME."""


def answer(reader: QuestionReader, name: str, given: Mapping[str, str | None]) -> dict[str, Any]:
    """The answer of a named question, with all that its own page shows. `cut`: there are more rows than `limit`."""
    bound = BoundQuestion(reader, questions.load(name), given)
    found = bound.answer()
    return {
        "columns": found.columns,
        "kinds": [_kind(row[index] for row in found.rows) for index in range(len(found.columns))],
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


def _kind(values: Iterable[Any]) -> str:
    """What a column holds: `time`, `number`, `list` or `text`."""
    first = next((value for value in values if value is not None), None)
    if isinstance(first, datetime):
        return "time"
    if isinstance(first, (int, float)) and not isinstance(first, bool):
        return "number"
    return "list" if isinstance(first, (list, dict)) else "text"


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


def shown(row: Row) -> Row:
    """A rebalance with its look and its words."""
    return {**with_words(row), "look": families.of_rebalance(row)}


def _told(row: Row) -> Row:
    """The rebalance of a page, with the story of one that has not ended."""
    return shown(row) | ({"story": open_story(row)} if is_open(row) else {})


def _with_details(row: Row) -> Row:
    return {**row, "details": json.loads(row["details"] or "{}")}


_CHANGES: Final = {"rebalances": shown, "rebalance": _told, "findings": _with_details, "finding": _with_details}
