"""What causes, ends of memberships and states look like: a colour, a pattern and a letter each, so that colour alone says nothing."""

from __future__ import annotations

from typing import Any, Final, NamedTuple

from jobs.answers.duckdb_views import Row


class Look(NamedTuple):
    """How a kind of thing is drawn: the name of its class, its letter, and what the legend calls it."""

    name: str
    letter: str
    meaning: str


BROKER: Final = Look("broker", "B", "rebalance: a broker was lost or held up")
FAILED: Final = Look("failed", "F", "rebalance: a member went silent, stalled or came late")
CAME: Final = Look("came", "J", "rebalance: a member joined or left")
CHANGED: Final = Look("changed", "C", "rebalance: topics, subscriptions or assignment changed")
STARTUP: Final = Look("startup", "S", "rebalance: start-up of a new or empty group")
UNKNOWN: Final = Look("unknown", "?", "rebalance: the logs do not tell its cause")

OF_CAUSE: Final = {
    **dict.fromkeys(("COORDINATOR_MOVED", "ASSIGNMENT_NOT_STORED"), BROKER),
    **dict.fromkeys(("SESSION_TIMEOUT", "POLL_TIMEOUT", "SYNC_TIMEOUT", "REBALANCE_TIMEOUT", "SLOW_JOINER"), FAILED),
    **dict.fromkeys(("MEMBER_JOINED", "MEMBER_LEFT", "ADMIN_REMOVED", "STATIC_MEMBER_REPLACED", "GROUP_OVER_CAPACITY"), CAME),
    "STARTUP": STARTUP,
    "UNKNOWN": UNKNOWN,
}
"""How rebalances are drawn, by what they are blamed on; all others as CHANGED."""

AWAY: Final = Look("away", "", "a broker was away, or held up")
SILENT: Final = Look("silent", "", "no heartbeat, or no poll()")
MEMBER: Final = Look("member", "", "in the group")
LAG: Final = Look("lag", "", "lag: records behind the committed offsets, as polled")
STATES: Final = {
    "Stable": Look("stable", "", "state Stable"),
    "PreparingRebalance": Look("preparing", "P", "state PreparingRebalance: waits for members to join"),
    "CompletingRebalance": Look("completing", "A", "state CompletingRebalance: waits for the assignment"),
    "Reconciling": Look("reconciling", "R", "state Reconciling: members give up and take partitions"),
    "Empty": Look("empty", "E", "state Empty"),
    "Dead": Look("dead", "D", "state Dead"),
}

JOINED: Final = Look("joined", "", "joined")
LEFT: Final = Look("left", "", "left by itself, or was replaced")
REMOVED: Final = Look("removed", "", "removed: a timeout")
GONE: Final = Look("gone", "", "gone: with its group, or unknown how")
ERROR: Final = Look("error", "", "finding: error")
WARNING: Final = Look("warning", "", "finding: warning")
INFO: Final = Look("info", "", "finding: note")

LEGEND: Final = (
    *(ERROR, WARNING, INFO, AWAY, BROKER, FAILED, CAME, CHANGED, STARTUP, UNKNOWN),
    *STATES.values(),
    *(LAG, MEMBER, SILENT, JOINED, LEFT, REMOVED, GONE),
)
"""All looks, in the order of the legend."""

MARKS: Final = frozenset(look.name for look in (ERROR, WARNING, INFO, JOINED, LEFT, REMOVED, GONE))
"""Looks that are symbols; all others fill a span."""


def of_rebalance(row: Row) -> str:
    """How a rebalance is drawn: by what it is blamed on."""
    return look_of("STARTUP" if row["startup"] else row["blamed"])


def look_of(cause: str) -> str:
    """The name of the look of a cause."""
    return OF_CAUSE.get(cause, CHANGED).name


def as_rows() -> list[dict[str, Any]]:
    """All looks in the order of the legend."""
    return [{**look._asdict(), "mark": look.name in MARKS} for look in LEGEND]
