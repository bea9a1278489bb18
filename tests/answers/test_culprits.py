"""Whom the questions blame for a rebalance: whom the findings blame, not the member that happened to join first."""

from __future__ import annotations

import json

import pytest

from jobs.answers.report import read_report
from tests.answers.asking import asked
from tests.lakehouse.rows import DAY, finding, line, rebalance, write

pytestmark = pytest.mark.slow

OLD = [f"app-{n}-00000000-0000-0000-0000-00000000000{n}" for n in (1, 2)]


def moved(at, lost, broker="b3", **values):
    details = json.dumps({"from_broker": broker, "members_lost": lost, "to_broker": "b1"}, separators=(",", ":"))
    return finding(occurred_at=DAY + at, code="COORDINATOR_MOVED", details=details, **values)


def blamed(lakehouse):
    """Cause, broker and client of each rebalance."""
    return [(row["cause"], row["broker"], row["client_id"], row["rebalances"]) for row in asked(lakehouse, "why")]


@pytest.mark.parametrize("cause", ["MEMBER_JOINED", "SESSION_TIMEOUT", "COORDINATOR_MOVED"])
def test_the_broker_is_blamed_for_members_that_were_lost_with_it(lakehouse, cause):
    own = {"cause": cause, "client_id": "app-1", "client_host": "h", "member_id": "app-1-new", "members_before": 2}
    write(lakehouse, line(at=90_000), moved(8_000, OLD), rebalance(start=10_000, left=OLD[::-1], **own))
    assert blamed(lakehouse) == [("COORDINATOR_MOVED", "b3", None, 1)]
    assert asked(lakehouse, "culprits") == []
    (row,) = asked(lakehouse, "rebalances")
    assert (row["began_with"], row["client_id"], row["cause"], row["culprit"]) == (cause, "app-1", "COORDINATOR_MOVED", "b3")
    assert asked(lakehouse, "rebalances", cause="COORDINATOR_MOVED") == [row]
    assert [bill["payer"] for bill in asked(lakehouse, "bill")] == ["b3"]
    assert [group["cause"] for group in asked(lakehouse, "worst")] == ["COORDINATOR_MOVED"]
    report = read_report(lakehouse)
    assert report.groups[0]["worst_cause"] == "COORDINATOR_MOVED"
    assert [(row["blamed"], row["culprit_broker"], row["culprit_client_id"]) for row in report.rebalances] == [
        ("COORDINATOR_MOVED", "b3", None)
    ]


def test_the_broker_is_blamed_although_another_rebalance_removes_the_members(lakehouse):
    """Clients that had given up their ids join first; their sessions end only while the leader makes the assignment."""
    first = rebalance(start=10_000, outcome="SUPERSEDED", client_id="app-1", members_before=2)
    write(lakehouse, line(at=90_000), moved(8_000, OLD), first, rebalance(start=12_000, generation=2, left=OLD, cause="SESSION_TIMEOUT"))
    assert blamed(lakehouse) == [("COORDINATOR_MOVED", "b3", None, 2)]


def test_a_member_that_was_not_lost_joins_by_itself(lakehouse):
    own = {"client_id": "app-3", "client_host": "h", "members_before": 2}
    write(lakehouse, line(at=90_000), moved(8_000, OLD), rebalance(start=10_000, **own), rebalance("other", start=10_000, left=OLD, **own))
    assert blamed(lakehouse) == [("MEMBER_JOINED", None, "app-3", 1), ("MEMBER_JOINED", None, "app-3", 1)]


FAILURES = ["SESSION_TIMEOUT", "POLL_TIMEOUT", "SYNC_TIMEOUT", "REBALANCE_TIMEOUT", "SLOW_JOINER", "STUCK_RECONCILING"]


@pytest.mark.parametrize("code", FAILURES)
def test_the_client_that_all_waited_for_is_blamed(lakehouse, code):
    joins = {"client_id": "app-3", "client_host": "h", "members_before": 2}
    slow = finding(occurred_at=DAY + 18_990, code=code, client_id="app-1", client_host="h", member_id=OLD[0])
    write(lakehouse, line(at=90_000), slow, rebalance(start=10_000, total=9_000, **joins))
    assert blamed(lakehouse) == [(code, None, "app-1", 1)]
    (row,) = asked(lakehouse, "culprits")
    assert (row["client_id"], row["cause"], row["failures"]) == ("app-1", code, 1)
    (row,) = asked(lakehouse, "rebalances")
    assert (row["began_with"], row["client_id"], row["cause"], row["culprit"]) == ("MEMBER_JOINED", "app-3", code, "app-1")
    assert asked(lakehouse, "why", client="app-3") == []


@pytest.mark.parametrize(
    ("at", "values"),
    [
        (9_000, {}),  # before it began
        (19_001, {}),  # after it ended
        (15_000, {"group_id": "other"}),
        (15_000, {"client_id": "app-3"}),  # a crashed member comes back before its session ends
        (15_000, {"code": "UNKNOWN_MEMBER"}),
    ],
)
def test_nobody_else_is_blamed_without_a_finding_that_explains_the_rebalance(lakehouse, at, values):
    joins = {"client_id": "app-3", "client_host": "h", "members_before": 2}
    other = finding(occurred_at=DAY + at, **{"client_id": "app-1", "client_host": "h"} | values)
    write(lakehouse, line(at=90_000), other, rebalance(start=10_000, total=9_000, **joins))
    assert blamed(lakehouse) == [("MEMBER_JOINED", None, "app-3", 1)]
    assert asked(lakehouse, "rebalances")[0]["began_with"] is None


@pytest.mark.parametrize(
    "cause", ["ADMIN_REMOVED", "METADATA_CHANGED", "REVOCATION_FOLLOW_UP", "ASSIGNMENT_NOT_STORED", "GROUP_OVER_CAPACITY", "REGEX_RESOLVED"]
)
def test_a_member_that_was_told_or_removed_by_somebody_else_is_not_to_blame(lakehouse, cause):
    own = {"cause": cause, "client_id": "app-1", "client_host": "h", "member_id": OLD[0], "members_before": 2}
    write(lakehouse, line(at=90_000), rebalance(start=10_000, **own))
    assert blamed(lakehouse) == [(cause, None, None, 1)]
    assert asked(lakehouse, "culprits") == []
    (row,) = asked(lakehouse, "rebalances")
    assert (row["client_id"], row["cause"], row["culprit"]) == ("app-1", cause, None)
    assert [bill["payer"] for bill in asked(lakehouse, "bill")] == ["(no culprit)"]


@pytest.mark.parametrize("cause", ["METADATA_CHANGED", "REGEX_RESOLVED"])
def test_who_held_partitions_of_topics_that_changed_may_have_been_unable_to_give_them_up(lakehouse, cause):
    late = finding(occurred_at=DAY + 15_000, code="REBALANCE_TIMEOUT", client_id="app-1", client_host="h")
    write(lakehouse, line(at=90_000), late, rebalance(start=10_000, total=9_000, cause=cause, client_id=None, members_before=2))
    assert blamed(lakehouse) == [(cause, None, None, 1)]


def test_what_only_shows_once_the_next_rebalance_has_begun_is_blamed_for_the_one_before(lakehouse):
    """By the request log alone a leader without SyncGroup is known to be gone when the others join again."""
    gone = finding(occurred_at=DAY + 19_002, code="SYNC_TIMEOUT", client_id="app-1", client_host="h", member_id=OLD[0])
    joins = {"client_id": "app-3", "client_host": "h", "members_before": 2}
    write(lakehouse, line(at=90_000), gone, rebalance(start=10_000, total=9_000, outcome="SUPERSEDED", **joins))
    assert blamed(lakehouse) == [("SYNC_TIMEOUT", None, "app-1", 1)]


def test_a_cause_that_is_a_failure_stays(lakehouse):
    ended = {"cause": "SESSION_TIMEOUT", "client_id": "app-2", "client_host": "h", "members_before": 2}
    slow = finding(occurred_at=DAY + 15_000, code="SLOW_JOINER", client_id="app-1", client_host="h")
    write(lakehouse, line(at=90_000), slow, rebalance(start=10_000, total=9_000, **ended))
    assert blamed(lakehouse) == [("SESSION_TIMEOUT", None, "app-2", 1)]


def test_a_storm_is_what_the_tracker_found(lakehouse):
    """Neither fewer rebalances nor more: the report, the dashboard and `watch` tell of the same one."""
    figures = {"rebalances": 5, "span_ms": 20_000, "total_ms": 9_000, "unavailable_partition_ms": 7_000, "common_causes": ["MEMBER_LEFT"]}
    storm = finding(occurred_at=DAY + 10_000, code="REBALANCE_STORM", client_id="app-2", details=json.dumps(figures))
    rounds = [rebalance(start=5_000 * n, generation=n, client_id="app-2", cause="MEMBER_LEFT") for n in range(1, 9)]
    write(lakehouse, line(at=90_000), *rounds)
    assert asked(lakehouse, "storms") == []
    write(lakehouse, storm, batch=1)
    (found,) = asked(lakehouse, "storms")
    assert {name: found[name] for name in ("rebalances", "total_ms", "unavailable_partition_ms", "cause", "client_id")} == {
        "rebalances": 5, "total_ms": 9_000, "unavailable_partition_ms": 7_000, "cause": "MEMBER_LEFT", "client_id": "app-2"
    }  # fmt: skip
    assert asked(lakehouse, "storms", group="other") == []


def test_culprits_by_what_they_are(lakehouse):
    """Two clients of one application on one host, and one of another version. Who joined at a start-up is nobody's culprit."""
    members = [("app-1", "h", "java 4.0"), ("app-2", "h", "java 4.0"), ("other-7d9f8b6c5d-x2x4z", "i", "java 3.9")]
    joined = [line(kind="JOIN_GROUP", error_code=0, member_id=client, client_id=client, software=name) for client, _, name in members]
    causes = ("MEMBER_LEFT", "SESSION_TIMEOUT", "MEMBER_LEFT")
    caused = [
        rebalance(start=1_000 * n, total=100 * n, members_before=2, client_id=client, client_host=host, member_id=client, cause=cause)
        for n, ((client, host, _), cause) in enumerate(zip(members, causes, strict=True), 1)
    ]
    write(lakehouse, *joined, line(at=90_000), *caused, rebalance(start=50_000, members_before=0, startup=True, client_id="app-1"))

    def led(by):
        rows = asked(lakehouse, "culprits-by", **({"by": by} if by else {}))
        return [(row["culprit"], row["clients"], row["rebalances"], row["failures"], row["total_ms"], row["cause"]) for row in rows]

    assert led("") == [("app", 2, 2, 1, 300, "SESSION_TIMEOUT"), ("other", 1, 1, 0, 300, "MEMBER_LEFT")]
    assert led("host") == [("h", 2, 2, 1, 300, "SESSION_TIMEOUT"), ("i", 1, 1, 0, 300, "MEMBER_LEFT")]
    assert led("software") == [("java 4.0", 2, 2, 1, 300, "SESSION_TIMEOUT"), ("java 3.9", 1, 1, 0, 300, "MEMBER_LEFT")]


@pytest.mark.parametrize(
    ("member_id", "start", "said"),
    [
        ("m-1", 30_000, ("COORDINATOR_MOVED", "broker-1", None, 1)),
        ("m-2", 30_000, ("MEMBER_JOINED", None, "app-1", 1)),  # another one
        ("m-1", 70_000, ("MEMBER_JOINED", None, "app-1", 1)),  # long afterwards
    ],
)
def test_a_member_that_a_broker_lost_comes_back_because_of_that(lakehouse, member_id, start, said):
    """In the consumer protocol it keeps its id."""
    details = '{"from_broker":"broker-1","members_lost":["m-1"],"to_broker":"broker-2"}'
    lost = finding(occurred_at=DAY + 5_000, code="COORDINATOR_MOVED", client_id=None, member_id=None, details=details)
    joins = {"client_id": "app-1", "client_host": "h", "member_id": member_id, "members_before": 1}
    write(lakehouse, line(at=90_000), lost, rebalance(start=start, total=2_000, **joins))
    assert blamed(lakehouse) == [said]
