"""What the lines prove though none says it: that lines are missing, that a group rebalances without end, why a member is gone."""

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
    assert (row["client_id"], row["severity"], row["generation"]) == ("c1", "WARNING", 3)
    assert "Check its log and its host (SIGKILL, out of memory, long JVM or container pause, CPU limit, network) before " in row["advice"]


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
