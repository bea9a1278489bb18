"""Tells the rounds of a rebalance of the consumer protocol in words: when, why, who, and who gave partitions up, from when to when."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, Final

from coordinator_model.view import reasons
from jobs.answers.duckdb_views import QuestionReader, Row
from jobs.common.places import own_query
from jobs.common.stores import Place
from jobs.common.text import printable, who
from jobs.common.times import duration, epoch_ms, instant

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


def in_words(rounds: Sequence[Row]) -> list[str]:
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
