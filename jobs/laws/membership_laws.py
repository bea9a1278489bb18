"""Laws of the rows of `member_sessions`, beside `rebalances`: every membership begins and ends once."""

from __future__ import annotations

from collections import Counter
from typing import Final

from jobs.laws.group_rows import Breaches, GroupRows

_WITHOUT_REBALANCE: Final = frozenset({"REPLACED", "GROUP_GONE", "UNKNOWN"})
"""Ends after which the group need not rebalance: another id took the place, or the group ended too."""


def one_membership(group: GroupRows) -> Breaches:
    """A member has one row, and ends no sooner than it began.

    In the consumer protocol a client makes its member id itself, and comes back with it: then it has a row for each time.
    """
    rows = Counter(row["member_id"] for row in group.sessions)
    ended_at: dict[str, int] = {}
    comes_back = any(row["group_protocol"] == "consumer" for row in group.rebalances)
    comes_back = comes_back or any(row["to_state"] == "Reconciling" for row in group.transitions)  # its rebalance goes on
    for row in group.sessions:
        member_id, joined, ended = row["member_id"], row["joined_at"], row["ended_at"]
        before = ended_at.get(member_id)
        is_next = before is None or (joined is not None and joined >= before)
        if rows[member_id] > 1 and not (comes_back and is_next):
            yield row, f"{member_id} has {rows[member_id]} rows in member_sessions"
            rows[member_id] = 0
        ended_at[member_id] = ended
        if joined is not None and joined > ended:
            yield row, f"{member_id} ended {joined - ended} ms before it began"


def departure_has_session(group: GroupRows) -> Breaches:
    """A member that left in a rebalance has a row that says how, and ended before the rebalance did."""
    sessions = {row["member_id"]: row for row in reversed(group.sessions)}  # of one that came back: its first
    for row in group.rebalances:
        for member_id in row["left"]:
            session = sessions.get(member_id)
            if session is None:
                yield row, f"{member_id} left, but member_sessions has no such row"
            elif session["ended_at"] > row["ended_at"]:
                yield row, f"{member_id} left, but its membership ended {session['ended_at'] - row['ended_at']} ms after the rebalance"


def session_has_departure(group: GroupRows) -> Breaches:
    """A member that left or was removed did so in a rebalance, if there is one that could have it."""
    left = {member_id for row in group.rebalances for member_id in row["left"]}
    joined = {member_id for row in group.rebalances for member_id in row["joined"]}
    for row in group.sessions:
        if row["end_kind"] in _WITHOUT_REBALANCE or row["member_id"] in left:
            continue
        around = [r for r in group.rebalances if r["started_at"] <= row["ended_at"] <= r["ended_at"] and r["outcome"] != "ABANDONED"]
        if any(r["group_protocol"] == "consumer" and r["started_at"] <= (row["joined_at"] or -1) for r in around):
            continue  # it came in that rebalance too, and will come again with its id
        if around and row["member_id"] in joined:
            yield row, f"{row['member_id']} joined, and ended with {row['end_kind']}, but left in no rebalance"


LAWS: Final = (one_membership, departure_has_session, session_has_departure)
