"""What may be said of each group: that nothing needs attention, or what could not be judged, why, and which line would tell.

The rule of every all-clear is here, and nowhere else. Nothing needs attention in a group only if all of this holds:

* a broker, its records or its answers tell of the group: an application's log alone shows neither who began a rebalance nor who missed;
* its last state is known and nothing is going on in it; or heartbeats were answered; or its clients commit without membership;
* the log of its coordinator reaches the end of the time, and no generation is missing in it;
* the cause and the end of each of its rebalances are known;
* no line with a word of trouble (jobs/common/trouble.py) is about it, except those that prove a finding, or are about its member or its
  group.instance.id, and those that a broker cannot be reached while an entry tells of its trouble.

A group that an entry is about is judged by the entry. Lines that were not understood may be about any group.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from itertools import chain, islice
from typing import Any, Final, NamedTuple

from coordinator_model import events as e
from coordinator_model.diagnosis.catalogue import FENCED_INSTANCE
from coordinator_model.diagnosis.incidents import HINDSIGHT_MS
from coordinator_model.view import reasons
from coordinator_model.view.outcomes import ABANDONED
from jobs.answers.attention import AttentionEntry
from jobs.answers.duckdb_views import Key, QuestionReader, Row, key_of, quoted
from jobs.common.text import many, printable
from jobs.common.times import epoch_ms, instant, milliseconds
from jobs.common.trouble import OVERTAKEN, ROUTINE, UNREACHED, WORDS

_LATE: Final = timedelta(minutes=1)  # logs of one cluster end within this time of each other
_SENTENCE: Final = 160  # characters of a line that is quoted

_ALWAYS: Final = (
    *(e.MEMBER_FAILED, e.MEMBERS_NOT_REJOINED, e.MEMBERS_NOT_SYNCED, e.NO_MEMBER_REJOINED, e.LEADER_NOT_REJOINED, e.INSTANCE_FENCED),
    *(e.PENDING_MEMBER_EXPIRED, e.CLIENT_POLL_TIMEOUT, e.CLIENT_SESSION_TIMEOUT),
)
"""Kinds of lines that tell of trouble whatever their words are."""
_BY_WORDS: Final = (e.COORDINATOR_NOTE, e.CONSUMER_GROUP_LOG, e.PREPARING_REBALANCE, e.CLIENT_LEAVES, e.CLIENT_REJOINS, e.CLIENT_NOTE)
_ACTS: Final = (e.EXPIRED, e.STUCK, e.REFUSED)


_IN_SCOPE: Final = "($cluster IS NULL OR x.cluster = $cluster) AND x.occurred_at <= $until"
_EVIDENCE: Final = f"""
    SELECT x.cluster, x.group_id, count(*) FILTER (x.broker <> '{e.CLIENTS}') AS told, min(x.occurred_at) AS first_at,
           max(x.occurred_at) AS last_at,
           bool_or(x.kind = '{e.SIMPLE_GROUP}' OR (x.kind IN ({quoted(sorted(e.HEARTBEATS))}) AND x.error_code = 0)) AS works,
           arg_max(x.broker, x.occurred_at) FILTER (x.source IN ('{e.COORDINATOR_SOURCE}', '{e.REQUEST_SOURCE}')) AS coordinator
    FROM group_events AS x
    WHERE {_IN_SCOPE} AND x.group_id <> '' AND ($group IS NULL OR x.group_id = $group)
          AND x.kind NOT IN ({quoted(e.OFFSETS_ALONE)})
    GROUP BY ALL ORDER BY ALL
"""  # noqa: S608 - no user's text
_ENDS: Final = f"""
    SELECT x.cluster, x.broker, max(x.occurred_at) AS last_at FROM group_events AS x
    WHERE x.source = 'clock' AND x.broker <> '{e.CLIENTS}' AND ($cluster IS NULL OR x.cluster = $cluster) GROUP BY ALL ORDER BY ALL
"""  # noqa: S608 - no user's text
_TROUBLES: Final = f"""
    WITH proofs AS (
        SELECT DISTINCT f.cluster, unnest(from_json(f.evidence, '[{{"origin": "VARCHAR", "position": "BIGINT"}}]')) AS line
        FROM findings AS f WHERE ($cluster IS NULL OR f.cluster = $cluster)
    ),
    outages AS (
        SELECT unnest(from_json($outages, '[{{"cluster": "VARCHAR", "broker": "VARCHAR", "since": "BIGINT", "until": "BIGINT"}}]')) AS o
    ),
    nodes AS (
        SELECT x.cluster, x.broker, any_value(x.coordinator_id) AS node FROM group_events AS x
        WHERE x.source = '{e.COORDINATOR_SOURCE}' AND x.coordinator_id IS NOT NULL AND $outages <> '[]' GROUP BY ALL
    ),
    troubled AS (
        SELECT x.cluster, coalesce(x.group_id, '') AS group_id, x.occurred_at, x.origin, x.position, x.kind,
               coalesce(x.reason, '') AS reason, coalesce(x.member_id, '') AS member_id,
               coalesce(x.instance_id, '') AS instance_id
        FROM group_events AS x
        WHERE {_IN_SCOPE} AND x.occurred_at >= $since
          AND ($group IS NULL OR coalesce(x.group_id, '') IN ('', $group))
          AND (x.kind IN ({quoted(_ALWAYS)}) OR (x.kind = '{e.CONSUMER_GROUP_LOG}' AND x.state IN ({quoted(_ACTS)}))
               OR (x.kind IN ({quoted(_BY_WORDS)}) AND regexp_matches(x.reason, '{WORDS}')
                   AND NOT regexp_matches(x.reason, '{ROUTINE}')))
    ),
    untold AS (
        SELECT t.* FROM troubled AS t
        WHERE NOT (regexp_matches(t.reason, '{OVERTAKEN}') AND NOT EXISTS (
            SELECT 1 FROM group_events AS b WHERE b.cluster = t.cluster AND b.group_id = t.group_id AND b.broker <> '{e.CLIENTS}'
        ))
        AND NOT EXISTS (
            SELECT 1 FROM proofs AS p WHERE p.cluster = t.cluster AND p.line.origin = t.origin AND p.line.position = t.position
        )
        AND NOT EXISTS (
            SELECT 1 FROM findings AS f
            WHERE f.cluster = t.cluster AND ((t.member_id <> '' AND f.member_id = t.member_id) OR (
                t.kind = '{e.INSTANCE_FENCED}' AND f.code = '{FENCED_INSTANCE.code}'
                AND json_extract_string(f.details, '$.instance_id') = t.instance_id
              )) AND f.occurred_at BETWEEN t.occurred_at - INTERVAL 1 MINUTE AND t.occurred_at + INTERVAL 1 MINUTE
        )
        AND NOT (regexp_matches(t.reason, '{UNREACHED}') AND EXISTS (
            SELECT 1 FROM outages LEFT JOIN nodes AS n ON n.cluster = o.cluster AND n.broker = o.broker
            WHERE o.cluster = t.cluster AND epoch_ms(t.occurred_at) BETWEEN o.since AND o.until
              AND (n.node IS NULL OR NOT contains(t.reason, ' to node ') OR contains(t.reason, ' to node ' || n.node || ':'))
        ))
        AND NOT ((t.kind = '{e.CLIENT_REJOINS}' OR (t.kind = '{e.CLIENT_NOTE}' AND regexp_matches(t.reason, '(?i:rebalanc)'))) AND EXISTS (
            SELECT 1 FROM rebalances_now AS r
            WHERE r.cluster = t.cluster AND r.group_id = t.group_id
              AND t.occurred_at BETWEEN r.started_at - INTERVAL 1 MINUTE AND r.ended_at + INTERVAL 1 MINUTE
        ))
    )
    SELECT u.cluster, u.group_id, count(*) AS lines, arg_min(struct_pack(a := epoch_ms(u.occurred_at), o := u.origin, p := u.position,
           k := u.kind, r := u.reason), (u.occurred_at, u.origin, u.position)) AS first
    FROM untold AS u GROUP BY ALL ORDER BY ALL
"""  # noqa: S608 - no user's text
_TROUBLED: Final = (
    *(reasons.SESSION_TIMEOUT, reasons.POLL_TIMEOUT, reasons.JOIN_TIMEOUT, reasons.SYNC_TIMEOUT, reasons.REBALANCE_TIMEOUT),
    *(reasons.ASSIGNMENT_NOT_STORED, reasons.GROUP_OVER_CAPACITY),
)
"""Causes that are no part of everyday life."""
_CAUSES: Final = f"""
    SELECT x.cluster, x.group_id, count(*) AS rebalances, count(*) FILTER (x.blamed = '{reasons.UNKNOWN}') AS unknown,
           count(*) FILTER (x.blamed IN ({quoted(_TROUBLED)})) AS troubled,
           min(x.started_at) FILTER (x.blamed = '{reasons.UNKNOWN}') AS first_at,
           count(*) FILTER (x.outcome = '{ABANDONED}') AS abandoned, max(x.ended_at) FILTER (x.outcome = '{ABANDONED}') AS abandoned_at,
           bool_or(x.group_protocol = 'consumer') FILTER (x.blamed = '{reasons.UNKNOWN}') AS by_epoch
    FROM rebalances_with_culprit AS x
    WHERE ($cluster IS NULL OR x.cluster = $cluster) AND ($group IS NULL OR x.group_id = $group) AND NOT x.startup
      AND x.started_at BETWEEN $since AND $until
    GROUP BY ALL ORDER BY ALL
"""  # noqa: S608 - no user's text
_REFUSED: Final = """
    SELECT x.cluster, count(*) AS lines, min(x.origin || ':' || x.position || ', ' || x.reason) AS one FROM quarantine AS x
    WHERE ($cluster IS NULL OR x.cluster = $cluster) AND (x.occurred_at IS NULL OR x.occurred_at BETWEEN $since AND $until)
    GROUP BY ALL ORDER BY ALL
"""
_CALM: Final = frozenset({"Stable", "Empty", "Dead"})

ONLY_CLIENTS: Final = "only application logs name it: they show neither who began a rebalance nor whom the coordinator removed"
NO_STATE: Final = "no line shows its state"


class Gap(NamedTuple):
    """What could not be judged."""

    cluster: str
    groups: tuple[str, ...]  # empty: it may be any group
    why: str
    next: str  # what to fetch, or to do, so that it can be


@dataclass(frozen=True)
class Judgement:
    """What may be said of the groups of a report."""

    healthy: list[Key] = field(default_factory=list)
    gaps: list[Gap] = field(default_factory=list)
    span_ms: int = 0  # of the time that the lines cover

    @property
    def all_clear(self) -> bool:
        """Whether nothing needs attention, of a report without entries."""
        return bool(self.healthy) and not self.gaps

    @property
    def of_clients(self) -> set[Key]:
        """The groups that only clients name."""
        return {(gap.cluster, group) for gap in self.gaps if gap.why == ONLY_CLIENTS for group in gap.groups}


def judged(
    reader: QuestionReader,
    values: Mapping[str, Any],
    states: Iterable[Row],
    entries: Sequence[AttentionEntry],
    times: Mapping[str, tuple[datetime, datetime]],
) -> Judgement:
    """Judges each group that a line names. `states`: of each group at the end of the time. `times`: the first and the last, by cluster."""
    state_of = {key_of(row): row["state"] for row in states}
    told = {(entry.gravest["cluster"], group) for entry in entries for group in entry.groups}
    ends: dict[Key, datetime] = {(row["cluster"], row["broker"]): row["last_at"] for row in reader.found(_ENDS, values)}
    troubles = {key_of(row): row for row in reader.found(_TROUBLES, {**values, "outages": json.dumps([*_outages(entries)])})}
    causes = {key_of(row): row for row in reader.found(_CAUSES, values)}
    healthy, found = [], []
    for row in reader.found(_EVIDENCE, values):
        key = key_of(row)
        why: list[tuple[str, str]] = [*_without_brokers(row)]
        if key not in told:
            if why:
                why = [*([_untold(troubles[key])] if key in troubles else []), *why]
            else:
                of_lines = _of_lines(row, state_of.get(key), troubles.get(key), causes.get(key))
                why = [*islice(chain(of_lines, _of_end(row, ends, min(values["until"], times[row["cluster"]][1]))), 1)]
            healthy += [] if why else [key]
        found += [(*key, *gap) for gap in why]
    gaps = _folded(found)
    gaps += [Gap(row["cluster"], (), *_untold(row)) for row in troubles.values() if not row["group_id"]]
    gaps += [
        Gap(
            row["cluster"],
            (),
            f"{many(row['lines'], 'line')} that may be about a group could not be read, such as {printable(row['one'], _SENTENCE)}",
            "`rebalance inspect` shows some of them, by what is wrong with them.",
        )
        for row in reader.found(_REFUSED, values)
    ]
    spans = [min(values["until"], last) - max(values["since"], first) for first, last in times.values()]
    return Judgement(healthy, gaps, max((milliseconds(span) for span in spans), default=0))


def _outages(entries: Iterable[AttentionEntry]) -> Iterator[dict[str, Any]]:
    """When clients could not reach which broker, by the entries that tell of a broker's trouble."""
    for incident in (entry.incident for entry in entries if entry.incident is not None):
        since_ms, until_ms = epoch_ms(incident["began_at"]), epoch_ms(max(incident["last_at"], incident["back_at"] or incident["last_at"]))
        where = {"cluster": incident["cluster"], "broker": incident["broker"]}
        yield where | {"since": since_ms - HINDSIGHT_MS, "until": until_ms + HINDSIGHT_MS}


def _without_brokers(row: Row) -> Iterator[tuple[str, str]]:
    if not row["told"]:
        first, last = _second(row["first_at"]), _second(row["last_at"])
        span = f"of {first} UTC and just before" if first == last else f"from {first} to {last} UTC"
        tell = "`Preparing to rebalance … (reason: …)` says who began a rebalance, `Member … has failed` whom the coordinator removed."
        yield ONLY_CLIENTS, f"{_of_coordinator(row)} {span}: {tell}"


def _of_lines(row: Row, state: str | None, trouble: Row | None, causes: Row | None) -> Iterator[tuple[str, str]]:
    """Why a group cannot be called healthy by what its lines say, and what to fetch."""
    if trouble is not None:
        yield _untold(trouble)
    if causes is not None and causes["troubled"]:
        yield (
            f"{many(causes['troubled'], 'rebalance')} of it began with a trouble that no entry explains",
            "Get the client's own log of that time.",
        )
    if causes is not None and causes["abandoned"]:
        after = f"{_of_coordinator(row)} after {_second(causes['abandoned_at'])} UTC."
        yield f"the end of {causes['abandoned']} of its {many(causes['rebalances'], 'rebalance')} is not known", after
    if state is None and not row["works"]:
        yield NO_STATE, f"{_of_coordinator(row)} before the first of these lines."
    elif state is not None and state not in _CALM:
        yield f"its state is {state} when the lines end", f"{_of_coordinator(row)} after the last of these lines."
    if causes is not None and causes["unknown"]:
        group = printable(row["group_id"], 60)
        line = f"with `[GroupId {group}]`" if causes["by_epoch"] else f"`Preparing to rebalance group {group}`"
        yield (
            f"the cause of {causes['unknown']} of its {many(causes['rebalances'], 'rebalance')} is not known",
            f"Get the line {line} of {_second(causes['first_at'])} UTC or just before, or the request log (docs/capture.md).",
        )


def _of_coordinator(row: Row) -> str:
    group = printable(row["group_id"], 60)
    return (
        f"Get the lines with '{group}' from the server.log of the broker that coordinates the group"
        f" (`kafka-consumer-groups.sh --bootstrap-server HOST:9092 --describe --state --group '{group}'` names it),"
    )


def _of_end(row: Row, ends: Mapping[Key, datetime], until: datetime) -> Iterator[tuple[str, str]]:
    """Why a group cannot be called healthy up to the end of the time: the log of its coordinator ends before."""
    end = ends.get((row["cluster"], row["coordinator"]))
    if end is not None and end < until - _LATE:
        broker = printable(row["coordinator"], 30)
        yield f"the log of its coordinator, {broker}, ends at {_second(end)} UTC", f"Get the log of {broker} after {_second(end)} UTC."


def _untold(row: Row) -> tuple[str, str]:
    first = row["first"]
    said = [*([] if first["k"] in _BY_WORDS else [first["k"]]), *([f"“{printable(first['r'], _SENTENCE)}”"] if first["r"] else [])]
    place = f"{printable(first['o'])}:{first['p']}"
    more = f", and {row['lines'] - 1:,} more" if row["lines"] > 1 else ""
    tell = "tells" if row["lines"] == 1 else "tell"
    return (
        f"{many(row['lines'], 'line')} {tell} of trouble that no entry explains: {' '.join(said)} ({place}{more})",
        f"Read the other lines of the broker and of the client at {instant(first['a'])[:19]} UTC.",
    )


def _second(at: datetime) -> str:
    return instant(epoch_ms(at))[:19]


def _folded(found: Sequence[tuple[str, str, str, str]]) -> list[Gap]:
    """One gap for all groups of which the same is missing. What to fetch is said of the first of them."""
    gaps: dict[tuple[str, str], tuple[list[str], str]] = {}
    for cluster, group, why, after in found:
        gaps.setdefault((cluster, why), ([], after))[0].append(group)
    return [Gap(cluster, tuple(groups), why, after) for (cluster, why), (groups, after) in gaps.items()]
