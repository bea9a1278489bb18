"""What renews a session, and how long it was not renewed: one rule for `silences` and `heartbeats`."""

from itertools import pairwise

import pytest

from tests.answers.asking import asked
from tests.lakehouse.rows import DAY, MEMBER, line, row, write

pytestmark = pytest.mark.slow

KNOWN = {"member_id": MEMBER, "source": "request", "error_code": 0, "lines": 1}
JOIN = {"kind": "JOIN_GROUP", "session_timeout_ms": 10_000}


def sign(at, kind="HEARTBEAT", took=1, **values):
    return line(at=at, **KNOWN | {"kind": kind, "position": at, "occurred_at": DAY + at + took} | values)


def beats(*arrivals):
    gaps = [later - before for before, later in pairwise(arrivals)]
    run = {"beats": [at - arrivals[0] for at in arrivals], "beat_count": len(arrivals), "longest_gap_ms": max(gaps)}
    return sign(arrivals[0], last_at=DAY + arrivals[-1], **run)


def ended(at, end_kind="SESSION_TIMEOUT", member_id=MEMBER, **values):
    return row("member_sessions", group_id="payments", member_id=member_id, ended_at=DAY + at, end_kind=end_kind, **values)


def epoch(at, generation, member_id=MEMBER, group="payments"):
    return sign(at, "CONSUMER_GROUP_HEARTBEAT", generation=generation, member_id=member_id, group_id=group)


def silences(lakehouse, *rows, **given):
    write(lakehouse, *rows, line(at=90_000))
    return [(one["silent_ms"], one["used_percent"], one["expired"]) for one in asked(lakehouse, "silences", **given)]


TIMED_OUT = sign(6_000, "OFFSET_COMMIT", 5_000, error_code=7)


@pytest.mark.parametrize(
    ("between", "gaps_ms"),
    [
        (TIMED_OUT, [5_000, 5_000]),
        (sign(6_000, "OFFSET_COMMIT", error_code=7), [10_000]),  # refused at once
        (sign(6_000, "OFFSET_COMMIT", error_code=27), [10_000]),
        (sign(4_000, "SYNC_GROUP", 3_000), [4_000]),
    ],
    ids=["a commit whose write timed out", "one that was refused", "one before the assignment", "a SyncGroup that waited"],
)
def test_what_was_accepted_renews_the_session_when_it_arrives(lakehouse, between, gaps_ms):
    found = silences(lakehouse, sign(0, **JOIN), sign(1_000), between, sign(11_000))
    assert [gap for gap, _, _ in found] == gaps_ms
    (member,) = asked(lakehouse, "heartbeats")
    assert member["longest_gap_ms"] == (max(gaps_ms) if gaps_ms != [10_000] else 999)


def test_a_sign_between_two_heartbeats_of_a_run_parts_them(lakehouse):
    assert silences(lakehouse, sign(0, **JOIN), beats(1_000, 3_000, 9_000), sign(6_500, took=300)) == []
    assert [one["longest_gap_ms"] for one in asked(lakehouse, "heartbeats")] == [3_500]


def test_a_session_that_another_broker_began_anew_counts_from_then(lakehouse):
    write(lakehouse, sign(0, **JOIN), sign(2_000), sign(30_000, broker="b2"), line(at=90_000))
    assert [one["longest_gap_ms"] for one in asked(lakehouse, "heartbeats")] == [1_999]
    write(lakehouse, line(at=22_000, broker="b2", kind="GROUP_LOADED", source="coordinator"), batch=1)
    assert [one["longest_gap_ms"] for one in asked(lakehouse, "heartbeats")] == [8_000]


def test_who_has_left_is_not_silent(lakehouse):
    left = [epoch(1_000, 0), epoch(5_000, -1), ended(5_000, "LEFT"), epoch(40_000, 0), ended(51_000)]
    assert silences(lakehouse, *left) == [(11_000, 100, True)]


def test_the_session_of_the_consumer_protocol_is_what_a_member_was_removed_after(lakehouse):
    """First that of its group, else that of the cluster. A broker that was lost cut another one short."""
    others = [epoch(0, 3, "of-group"), ended(20_000, member_id="of-group"), epoch(0, 3, "lost"), ended(15_000, member_id="lost")]
    moved = row("findings", group_id="payments", code="COORDINATOR_MOVED", occurred_at=DAY, details='{"members_lost":["lost"]}')
    elsewhere = [epoch(0, 3, "of-cluster", "other"), ended(11_000, member_id="of-cluster") | {"group_id": "other"}]
    asked_about = [epoch(at, 3, group=group) for group in ("payments", "third") for at in (0, 10_000)]
    write(lakehouse, moved)
    silences(lakehouse, *others, *elsewhere, *asked_about)
    found = {one["group_id"]: one["used_percent"] for one in asked(lakehouse, "silences", member=MEMBER, percent="1")}
    assert found == {"payments": 50, "third": 90}
