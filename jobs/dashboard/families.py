"""What causes, ends of memberships and states look like: a colour, a pattern and a letter each, so that colour alone says nothing."""

from __future__ import annotations

from typing import Any, Final, NamedTuple

from jobs.answers.duckdb_views import Row


class Look(NamedTuple):
    """How a kind of thing is drawn: the name of its class, its letter, what the legend calls it, and whether it is a symbol or a span."""

    name: str
    letter: str
    meaning: str
    mark: bool = False


LEGEND: Final = (
    Look("error", "", "finding: error", mark=True),
    Look("warning", "", "finding: warning", mark=True),
    Look("info", "", "finding: note", mark=True),
    Look("away", "", "a broker was away, or held up"),
    Look("broker", "B", "rebalance: a broker was lost or held up"),
    Look("failed", "F", "rebalance: a member went silent, stalled or came late"),
    Look("came", "J", "rebalance: a member joined or left"),
    Look("changed", "C", "rebalance: topics, subscriptions or assignment changed"),
    Look("startup", "S", "rebalance: start-up of a new or empty group"),
    Look("unknown", "?", "rebalance: the logs do not tell its cause"),
    Look("stable", "", "state Stable"),
    Look("preparing", "P", "state PreparingRebalance: waits for members to join"),
    Look("completing", "A", "state CompletingRebalance: waits for the assignment"),
    Look("reconciling", "R", "state Reconciling: members give up and take partitions"),
    Look("empty", "E", "state Empty"),
    Look("dead", "D", "state Dead"),
    Look("lag", "", "lag: records behind the committed offsets, as polled"),
    Look("member", "", "in the group"),
    Look("silent", "", "no heartbeat, or no poll()"),
    Look("joined", "", "joined", mark=True),
    Look("left", "", "left by itself, or was replaced", mark=True),
    Look("removed", "", "removed: a timeout", mark=True),
    Look("gone", "", "gone: with its group, or unknown how", mark=True),
)
"""All looks, in the order of the legend."""

_OF_CAUSE: Final = {
    **dict.fromkeys(("COORDINATOR_MOVED", "ASSIGNMENT_NOT_STORED"), "broker"),
    **dict.fromkeys(("SESSION_TIMEOUT", "POLL_TIMEOUT", "SYNC_TIMEOUT", "REBALANCE_TIMEOUT", "SLOW_JOINER"), "failed"),
    **dict.fromkeys(("MEMBER_JOINED", "MEMBER_LEFT", "ADMIN_REMOVED", "STATIC_MEMBER_REPLACED", "GROUP_OVER_CAPACITY"), "came"),
    "STARTUP": "startup",
    "UNKNOWN": "unknown",
}
"""How rebalances are drawn, by what they are blamed on; all others as `changed`."""


def of_rebalance(row: Row) -> str:
    """How a rebalance is drawn: by what it is blamed on."""
    return look_of("STARTUP" if row["startup"] else row["blamed"])


def look_of(cause: str) -> str:
    """The name of the look of a cause."""
    return _OF_CAUSE.get(cause, "changed")


def as_rows() -> list[dict[str, Any]]:
    """All looks in the order of the legend."""
    return [look._asdict() for look in LEGEND]
