"""Recordings of a few lines, and rows of the tables, for the tests of the score."""

from pathlib import Path

from scripts.truth.recordings import Recording

UUID = "00000000-0000-0000-0000-{:012x}"
T0 = 1_700_000_000_000


def member(client, number=1):
    return f"{client}-{UUID.format(number)}"


def reasons():
    """The brokers' words, by what they say."""
    return {
        "joined": "Adding new member {} with group instance id null; client reason: not provided",
        "expired": "removing member {} on heartbeat expiration.",
        "left": "explicit `LeaveGroup` request for ({}) members.",
        "leader": "Leader {} re-joining group during Stable; client reason: not provided",
        "sync": "Removing [{}] on pending sync request expiration",
    }


def rebalance(at_ms, reason, *, group="g", generation=1, empty=False):
    """A line of rebalances.jsonl."""
    at_ms += T0
    return {
        "group": group,
        "protocol": "classic",
        "generation": generation,
        "preparing_at": at_ms,
        "stabilized_at": None if empty else at_ms + 10,
        "assignment_at": None if empty else at_ms + 20,
        "became_empty_at": at_ms + 10 if empty else None,
        "reason_text": reason,
    }


def done(at_ms, action, expect, client=None, *, group="g", **more):
    """A line of truth.jsonl."""
    line = {"ts_ms": at_ms + T0, "scenario": "s00", "group": group, "action": action, "expect": expect, "note": ""}
    if client:
        line |= {"client_id": client, "client": client, "instance_id": None, "member_id": None, "protocol": "classic"}
    return line | more


def recording(rebalances=(), truth=(), departures=None):
    return Recording(Path("some-recording"), "UTC", tuple(rebalances), tuple(truth), departures or {})


def row(at_ms, cause, member_id=None, *, group="g", generation=1, joined=(), left=(), outcome="COMPLETED"):
    """A row of the table rebalances."""
    return {
        "group_id": group,
        "generation": generation,
        "started_at": at_ms + T0,
        "joined_at": at_ms + T0 + 10,
        "ended_at": at_ms + T0 + 20,
        "outcome": outcome,
        "cause": cause,
        "member_id": member_id,
        "client_id": member_id[:-37] if member_id else None,
        "joined": list(joined),
        "left": list(left),
        "members_after": 1,
        "partitions": None,
    }


def finding(at_ms, code, member_id=None, *, group="g", generation=1, client_id=None):
    """A row of the table findings."""
    return {
        "group_id": group,
        "occurred_at": at_ms + T0,
        "code": code,
        "member_id": member_id,
        "client_id": client_id or (member_id[:-37] if member_id else None),
        "generation": generation,
    }


def tables(rebalances=(), findings=(), sessions=(), transitions=()):
    return {
        "rebalances": list(rebalances),
        "findings": list(findings),
        "member_sessions": list(sessions),
        "group_transitions": list(transitions),
    }
