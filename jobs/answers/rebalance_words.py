"""What a rebalance is called, and whom it is blamed on, wherever its row is shown: in the report, by `watch`, in alerts, on the pages.

And what is said of one that has not ended: how grave it is, whom it waits for, and what to look at. Which ones are open, since when and
for whom is decided by the tracker (coordinator_model/tracker/unended.py), and how long they have lasted by the view `rebalances_open`. One
of the consumer protocol is told round by round: when, why, who, and who gave partitions up, from when to when.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, Final

from coordinator_model.diagnosis.findings import broker_name, current
from coordinator_model.diagnosis.titles import rebalance_title
from coordinator_model.tracker import closing
from coordinator_model.tracker.unended import JOIN, RECONCILE, SYNC, TOLD_AFTER_MS, is_overdue, limit_ms
from coordinator_model.view import reasons
from coordinator_model.view.members import client_in
from coordinator_model.view.outcomes import OPEN
from jobs.answers.duckdb_views import QuestionReader, Row
from jobs.common.places import own_query
from jobs.common.stores import Place
from jobs.common.text import many, printable, who
from jobs.common.times import duration, epoch_ms, instant, is_known, moment

CODE: Final = "OPEN_REBALANCE"
"""The code of its entry in what needs attention, and of its alert."""

_PHASES: Final = {
    JOIN: "in its join phase (PreparingRebalance)",
    SYNC: "without an assignment (CompletingRebalance)",
    RECONCILE: "reconciling (Reconciling)",
}
_WAITS: Final = {JOIN: "members to rejoin", SYNC: "the leader's assignment", RECONCILE: "members to reach the epoch"}
_PENDING: Final = {
    closing.ANSWERS: "its last lines not read yet",
    closing.STORAGE: "no line yet that its assignment was stored",
    closing.MEMBERS_START: "members still starting",
    closing.REQUESTS: "request log not read yet",
    closing.DEPARTURE: "not known yet why a client left",
    closing.RETURN: "not known yet whether a client comes back",
    closing.NEXT_REBALANCE: "the next rebalance has not ended",
    closing.EARLIER_REBALANCE: "the one before it may change",
}
_NAMED: Final = 4
_ADVICE: Final = {
    JOIN: "No member gets its assignment until all have rejoined. The rebalance timeout, max.poll.interval.ms{current} (in Kafka "
    "Connect: rebalance.timeout.ms), limits the phase: the coordinator then removes the members that have not rejoined. Check whether the "
    "poll loop of {them} is stuck (a thread dump shows where): shorten the work between two polls (max.poll.records) or lower the "
    "setting. The coordinator removes a paused process after its session.timeout.ms.",
    SYNC: "All members wait for the leader to compute the assignment and send it. Check whether {them} is stuck in its assignor, or "
    "paused. The rebalance timeout, max.poll.interval.ms{current} (in Kafka Connect: rebalance.timeout.ms), limits this where the broker "
    "removes members that send no SyncGroup; the broker removes a paused leader after its session.timeout.ms.",
    RECONCILE: "Take a thread dump of {them}: it shows what holds up the polls, or onPartitionsRevoked. A member gives up its partitions "
    "only when it polls. The rebalance timeout, max.poll.interval.ms{current}, limits this; the coordinator removes a silent "
    "member after the group's session timeout (group.{type}.session.timeout.ms).",
}
_EMPTY_BEFORE: Final = (
    "The group was empty: the broker waits group.initial.rebalance.delay.ms for more members after each one that joins, up to the "
    "rebalance timeout, max.poll.interval.ms{current}. Check whether members keep joining."
)
_OVERDUE: Final = (
    " The coordinator should have ended it by now: if it has, the lines that show it are missing (an excerpt, another broker's log, a "
    "rotated log)."
)
_AFTER: Final = "`rebalance report` says what it cost, and `rebalance ask stuck` for whom the group waited."


def culprit_of(row: Row, *, host: bool = True, member: bool = True) -> str:
    """Whom it is blamed on: the broker, or the client with its host and which of its members. `-`: no line tells."""
    if row["culprit_broker"]:
        return printable(broker_name(row["culprit_broker"]), 30)
    static = row["instance_id"] if row["culprit_member_id"] == row["member_id"] else None
    place, which = row["culprit_client_host"] if host else None, row["culprit_member_id"] if member else None
    return who(row["culprit_client_id"], place, which, static)


def with_words(row: Row) -> Row:
    """A rebalance for a page: what it is `called`, whom it is blamed on (`by`), both in words (`title`), and what it waits for (`note`)."""
    blamed = culprit_of(row, host=False, member=False)
    title = rebalance_title(row["blamed"], printable(row["group_id"], 60), None if blamed == "-" else blamed)
    words = {"called": row["blamed"], "by": culprit_of(row), "title": title}
    return row | words | {"note": waits_note(row) if row["waits_for"] else ""}


def is_open(row: Row) -> bool:
    """Whether a rebalance has not ended."""
    return bool(row["outcome"] == OPEN)


def waits_note(row: Row) -> str:
    """Why a rebalance has no final row yet, in a few words."""
    if is_open(row):
        return f"open: waiting for {_WAITS[row['waits_for']]}"
    return f"may change: {', '.join(_PENDING.get(one, one) for one in row['waits_for'].split(', '))}"


def as_finding(row: Row) -> Row:
    """What is said of a rebalance that is open, or was (ENDED), as a row of `findings`, whose id is that of the rebalance.

    ERROR: it has lasted longer than its rebalance timeout. WARNING: so it has, but the ends of the group's other rebalances are missing,
    too, as in a log from which only some lines were taken; or it has lasted longer than members need to learn of a rebalance
    (TOLD_AFTER_MS), and than half of the group's rebalances took. INFO: it has only begun when the log ends, which is nothing to mend; but
    nobody is to take the group for one at rest.
    """
    awaited = row["awaited"] or []
    known = row["limit_ms"] is not None
    lasts = row["total_ms"] >= max(TOLD_AFTER_MS, row.get("usual_ms") or 0)
    severity = ("WARNING" if row.get("ends_missing") else "ERROR") if is_overdue(row) else "WARNING" if lasts else "INFO"
    details = {
        "phase": row["waits_for"],
        "open_ms": row["total_ms"],
        "rebalance_timeout_ms": row["limit_ms"],
        "waited_for": awaited if not row["awaited_unnamed"] else [],  # else another one may be the culprit
        "awaited": awaited,
        "unnamed": row["awaited_unnamed"] or 0,
        "cause": row["cause"],
        "began": row["client_id"] or row["member_id"],
    }
    return {
        "id": row.get("id") or "",
        "cluster": row["cluster"],
        "group_id": row["group_id"],
        "occurred_at": row["started_at"],
        "code": CODE,
        "severity": severity,
        "generation": row["generation"],
        "member_id": awaited[0] if len(awaited) == 1 and not row["awaited_unnamed"] else None,
        "client_id": None,  # whom it waits for, as `details` say; who began it is often innocent
        "client_host": None,
        "message": open_story(row) if is_open(row) else _ended(row),
        "advice": _advice(row, known=known) + (_OVERDUE if is_overdue(row) else "") if is_open(row) else _AFTER,
        "details": json.dumps(details, separators=(",", ":"), ensure_ascii=False),
        "evidence": row["evidence"],
    }


def open_story(row: Row) -> str:
    """How long a rebalance has lasted that has not ended, what began it, and whom it waits for."""
    since = "since" if row["start_seen"] else "since, at the latest,"
    broker = f" of {printable(row['broker'], 30)}" if row["broker"] else ""
    limit = ""
    if is_overdue(row):
        own = "its rebalance timeout" if row["limit_ms"] is not None else "the usual rebalance timeout (no request shows this group's)"
        limit = f", longer than {own} of {duration(limit_ms(row))}"
    at, lasted = moment(row["started_at"]), f": for {duration(row['total_ms'])}" if is_known(row["started_at"]) else ""
    what = f"The group has been {_PHASES[row['waits_for']]} {since} {at}{lasted} when the log{broker} ends"
    return f"{what}{limit}. {_began(row)} {_whom(row)}"


def _ended(row: Row) -> str:
    at = moment(row["started_at"])
    return f"The rebalance that began at {at} and lasted longer than {duration(limit_ms(row))} has ended."


def _began(row: Row) -> str:
    client = who(row["client_id"], row["client_host"], None if row["client_id"] else row["member_id"], row["instance_id"])
    if row["cause"] == reasons.UNKNOWN:
        return "No line shows what began it." if client == "-" else f"It began with {client}."
    return f"It began with {row['cause']}" + (f" of {client}." if client != "-" else ".")


def _whom(row: Row) -> str:
    awaited, unnamed = row["awaited"] or [], row["awaited_unnamed"] or 0
    names, count = _names(awaited, unnamed), len(awaited) + unnamed
    if row["waits_for"] == SYNC:
        return f"The join phase has ended, and no line shows that the leader{f' {names}' if names else ''} has sent the assignment."
    if not count:
        return "No line shows which member it waits for."
    members = f"{many(count, 'member')} {'has' if count == 1 else 'have'}"
    if row["waits_for"] == RECONCILE:
        return f"{members} not reached epoch {row['generation']}, or not given up partitions: {names}."
    return f"{members} not rejoined, as far as lines show: {names}."


def _names(awaited: Sequence[str], unnamed: int) -> str:
    shown = [who(client_in(member_id, "") or None, None, member_id) for member_id in awaited[:_NAMED]]
    shown += [f"{len(awaited) - _NAMED} more"] if len(awaited) > _NAMED else []
    shown += [f"{unnamed} unnamed"] if unnamed else []
    return ", ".join(shown)


def _advice(row: Row, *, known: bool) -> str:
    own = current(row["limit_ms"] if known else -1)
    if row["waits_for"] == JOIN and row["members_before"] == 0:
        return _EMPTY_BEFORE.format(current=own)
    count = len(row["awaited"] or []) + (row["awaited_unnamed"] or 0)
    them = "this member" if count == 1 else "these members" if count else "its members"
    them = "the leader" if row["waits_for"] == SYNC else them
    return _ADVICE[row["waits_for"]].format(current=own, them=them, type=row["group_protocol"])


CLASSIC: Final = "classic"
CONSUMER: Final = "consumer"

_WHY: Final[Mapping[str, str]] = {
    reasons.MEMBER_JOINED: "{who} joined",
    reasons.MEMBER_LEFT: "{who} left",
    reasons.SESSION_TIMEOUT: "the session of {who} ended",
    reasons.REBALANCE_TIMEOUT: "{who} was removed, since it did not give partitions up in time",
    reasons.SUBSCRIPTION_CHANGED: "{who} changed its subscription",
    reasons.METADATA_CHANGED: "topics or partitions of the subscription changed",
    reasons.REGEX_RESOLVED: "topics of regular expressions were found: a member has a new one, or one matches others than before",
    reasons.GROUP_CONFIG_CHANGED: "a setting of the group changed",
    reasons.UNKNOWN: "no line shows why",
}
_DEPARTURES: Final = frozenset({reasons.MEMBER_LEFT, reasons.SESSION_TIMEOUT, reasons.REBALANCE_TIMEOUT, reasons.UNKNOWN})
_WAIT_MS: Final = 500
"""Shorter waits are not told."""
_GIVEN_UP: Final[Mapping[str | None, str]] = {
    None: "no line shows that it did",
    "ACKNOWLEDGED": "it had after {took}",
    "AWAY": "it left for a while {took} later",
    reasons.LEFT: "it left {took} later",
    reasons.SESSION_TIMEOUT: "its session ended {took} later",
    reasons.REBALANCE_TIMEOUT: "it had not, and was removed {took} later",
}


def rounds_of(reader: QuestionReader, rebalance: Row) -> list[Row]:
    """The rows of `rebalance_rounds` of a row of `rebalances`, in the order of time; none if it is of a classic group."""
    if rebalance["group_protocol"] == CLASSIC:
        return []
    of = {name: rebalance[name] for name in ("cluster", "group_id", "generation", "started_at", "ended_at")}
    return reader.found(own_query("rounds"), of)


def last_rounds(lakehouse: Place, ids: Sequence[str]) -> list[tuple[str, list[Row]]]:
    """The rounds of rebalances, by their ids; those without any are left out."""
    reader = QuestionReader(lakehouse)
    text = "SELECT r.* FROM rebalances_with_id AS r WHERE list_contains($ids, r.id)"
    by_id = {row["id"]: rounds_of(reader, row) for row in reader.ask(text, {"ids": list(ids)}).by_name()} if ids else {}
    return [(row_id, by_id[row_id]) for row_id in ids if by_id.get(row_id)]


def rounds_in_words(rounds: Sequence[Row]) -> list[str]:
    """A sentence for each round."""
    return [_sentence(one, rounds[number + 1 : number + 2]) for number, one in enumerate(rounds)]


def _sentence(one: Row, following: Sequence[Row]) -> str:
    client = who(one["client_id"], one["client_host"], one["member_id"], one["instance_id"])
    why = _WHY.get(one["cause"], printable(one["cause"], 40) + " of {who}").format(who="a member" if client == "-" else client)
    told = [*_wait(one), *(f"; {_revocation(entry)}" for entry in json.loads(one.get("revocations") or "[]"))]
    if one["reconciled_at"] is not None:
        end = f". All members had the new assignment at {instant(epoch_ms(one['reconciled_at']))}."
    elif following:
        end = f". Epoch {following[0]['epoch']} followed before all members had the new assignment."
    else:
        end = ". No line shows when all members had the new assignment."
    return f"Epoch {one['epoch']} at {instant(epoch_ms(one['started_at']))}: {why}{''.join(told)}{end}"


def _wait(one: Row) -> list[str]:
    """A heartbeat asks for an assignment at once. If it comes later, the assignment interval had not passed. A departure asks for none."""
    if one.get("computed_at") is None or one["cause"] in _DEPARTURES:
        return []
    waited_ms = epoch_ms(one["computed_at"]) - epoch_ms(one["started_at"])
    return [f"; the group waited {duration(waited_ms)} for the assignment interval"] if waited_ms >= _WAIT_MS else []


def _revocation(entry: Mapping[str, Any]) -> str:
    member = who(entry["client_id"], None, entry["member_id"])
    partitions = "1 partition" if entry["partitions"] == 1 else f"{entry['partitions']} partitions"
    took = duration(entry["ended_at"] - entry["told_at"]) if entry["ended_at"] is not None else ""
    given_up = _GIVEN_UP.get(entry["end"], "it was gone {took} later").format(took=took)
    return f"{member} was told to give up {partitions} at {instant(entry['told_at'])}, {given_up}"
