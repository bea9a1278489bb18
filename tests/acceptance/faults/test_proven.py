"""What the lines prove though none says it: that lines are missing, that a group rebalances without end, why a member is gone."""

from __future__ import annotations

import json
from datetime import datetime, timezone

import pytest

from jobs.laws.laws import breaches
from schemas import names

pytestmark = [pytest.mark.spark, pytest.mark.slow]


def at(time: str) -> int:
    """A time of March 2025 in epoch milliseconds."""
    moment = datetime.fromisoformat(f"2025-03-{time}").replace(tzinfo=timezone.utc)
    return round(moment.timestamp() * 1_000)


def finding(told, cluster: str, code: str, group: str = "g1") -> tuple[dict, dict]:
    """The only finding of this code, and its details."""
    (row,) = told.rows("findings", cluster, group_id=group, code=code)
    return row, json.loads(row["details"])


def test_a_hole_is_no_rebalancing(told):
    cluster = "gap-counted-as-rebalancing-in"
    row, details = finding(told, cluster, "LINES_MISSING")
    assert row["message"].startswith("Generations 21 to 52 are not in these lines")
    assert details == {"first": 21, "last": 52, "hole_ms": at("02 08:36:30.143") - at("01 01:45:31.241")}
    first, last = sorted(told.rows("rebalances", cluster), key=lambda row: row["started_at"])
    assert (first["outcome"], first["end_seen"], first["total_ms"], first["join_ms"], first["unavailable_partition_ms"]) == (
        "ABANDONED",
        False,
        None,
        None,
        None,
    )
    assert (last["generation"], last["total_ms"], last["members_before"]) == (53, 3_010, None)
    assert [one["code"] for one in told.rows("findings", cluster)] == ["LINES_MISSING"]


def test_a_hole_while_another_broker_coordinates_the_group(told):
    cluster = "hole-moved-in"
    assert finding(told, cluster, "LINES_MISSING", "invoices")[1]["last"] == 52
    assert [row["total_ms"] for row in told.rows("rebalances", cluster, end_seen=False)] == [None]
    assert sum(row["total_ms"] or 0 for row in told.rows("rebalances", cluster)) == 3_010


def test_several_holes_of_a_group_that_rests(told):
    holes = [json.loads(row["details"]) for row in told.rows("findings", "hole-stable-in", code="LINES_MISSING")]
    assert sorted((hole["first"], hole["last"]) for hole in holes) == [(20, 22), (24, 24)]


def test_holes_of_a_consumer_group(told):
    holes = [json.loads(row["details"]) for row in told.rows("findings", "hole-consumer-in", code="LINES_MISSING")]
    assert sorted((hole["first"], hole["last"]) for hole in holes) == [(8, 14), (16, 19), (21, 24)]


def test_targets_alone_are_rebalances(told):
    rows = sorted(told.rows("rebalances", "targets-alone-in"), key=lambda row: row["generation"])
    assert [(row["generation"], row["cause"], row["start_seen"], row["total_ms"]) for row in rows] == [
        (epoch, "UNKNOWN", False, None) for epoch in (7, 8, 15, 16)
    ]


def test_a_storm_that_no_single_client_makes(told):
    row, details = finding(told, "storm-of-three-in", "REBALANCE_STORM")
    assert (row["occurred_at"], row["client_id"]) == (at("01 11:19:00.000"), None)
    assert (details["rebalances"], details["span_ms"], details["by_client"]) == (12, 99_000, {"c1": 4, "c2": 4, "c3": 4})
    assert "each time under a new member id" in row["message"]
    assert "a client library that does not keep its member id" in row["advice"]


def test_the_reason_of_a_rebalance_tells_a_session_timeout(told):
    row, _ = finding(told, "expiry-only-in-reason-in", "SESSION_TIMEOUT")
    assert (row["client_id"], row["severity"], row["generation"]) == ("c1", "ERROR", 3)
    assert "Find out what stopped the process" in row["advice"]


@pytest.mark.parametrize(
    "cluster",
    [
        *("gap-counted-as-rebalancing-in", "hole-moved-in", "hole-stable-in", "hole-consumer-in", "targets-alone-in"),
        *("storm-of-three-in", "expiry-only-in-reason-in"),
    ],
)
def test_their_rows_break_no_law(told, cluster):
    tables = (names.REBALANCES, names.GROUP_TRANSITIONS, names.MEMBER_SESSIONS, names.FINDINGS, names.REBALANCE_ROUNDS)
    assert breaches({table: told.rows(table, cluster) for table in tables}) == []
