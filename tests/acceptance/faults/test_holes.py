"""Logs that begin late or lack lines, and columns that have to agree: what no line shows is unknown, never something else."""

from __future__ import annotations

from datetime import datetime, timezone

import pytest

pytestmark = pytest.mark.slow


def at(time: str) -> int:
    """A time of the day of the recordings in epoch milliseconds."""
    moment = datetime.fromisoformat(f"2026-11-21T{time}").replace(tzinfo=timezone.utc)
    return round(moment.timestamp() * 1_000)


def rebalance(told, cluster: str, group: str, generation: int) -> dict:
    (row,) = told.rows("rebalances", cluster, group_id=group, generation=generation)
    return row


@pytest.mark.parametrize("mode", ["both", "request"])
def test_what_owners_lost_whom_no_line_showed_is_unknown(told, mode):
    row = rebalance(told, f"late-start-cost-{mode}", "app-29", 2)
    assert (row["partitions_moved"], row["unavailable_partition_ms"]) == (None, None)
    assert (row["partitions"], row["cause"], row["client_id"]) == (6, "MEMBER_JOINED", "app-29-3")


def test_a_line_that_finds_the_group_stable_shows_that_its_rebalance_had_ended(told):
    row = rebalance(told, "assignment-line-lost-coordinator", "app-73", 1)
    assert (row["outcome"], row["end_seen"], row["ended_at"]) == ("COMPLETED", False, row["joined_at"])
    assert (row["sync_ms"], row["total_ms"], row["join_ms"]) == (None, None, 6_000)
    (change,) = told.rows("group_transitions", "assignment-line-lost-coordinator", to_state="Stable", generation=1)
    assert change["trigger"] == "LINES_MISSING"


def test_a_member_that_is_added_to_a_stable_group_began_the_rebalance(told):
    row = rebalance(told, "preparing-line-lost-coordinator", "app-36", 2)
    assert (row["cause"], row["client_id"], row["start_seen"]) == ("MEMBER_JOINED", "app-36-3", False)
    assert (row["started_at"], row["join_ms"], row["total_ms"]) == (at("05:54:24.886"), None, None)


def test_the_first_member_of_a_group_leads_it(told):
    assert rebalance(told, "first-joiner-request", "app-53", 1)["client_id"] == "app-53-1"


def test_nobody_is_named_where_two_join_together(told):
    row = rebalance(told, "first-joiner-request", "app-82", 2)
    assert (row["cause"], row["member_id"], row["client_id"], row["reason"]) == ("MEMBER_JOINED", None, None, None)


@pytest.mark.parametrize(("group", "client", "time"), [("app-1", "app-1-1", "06:19:11.773"), ("app-3", "app-3-2", "06:18:43.099")])
def test_a_member_joined_when_its_request_arrived(told, group, client, time):
    rows = told.rows("member_sessions", "joined-at-late-request", group_id=group, client_id=client)
    assert at(time) in [row["joined_at"] for row in rows]


@pytest.mark.parametrize(
    ("group", "generation", "cause"),
    [
        ("app-6", 2, "SUBSCRIPTION_CHANGED"),
        ("app-6", 3, "SUBSCRIPTION_CHANGED"),
        ("app-67", 2, "POLL_TIMEOUT"),
        ("app-42", 2, "POLL_TIMEOUT"),
    ],
)
def test_the_trigger_of_a_transition_is_the_cause_of_the_rebalance(told, group, generation, cause):
    cluster = "trigger-contradicts-cause-both"
    row = rebalance(told, cluster, group, generation)
    changes = told.rows("group_transitions", cluster, group_id=group, to_state="PreparingRebalance", generation=generation - 1)
    (change,) = [change for change in changes if change["occurred_at"] == row["started_at"]]
    assert (row["cause"], change["trigger"], change["member_id"]) == (cause, cause, row["member_id"])
    ends = [end["end_kind"] for end in told.rows("member_sessions", cluster, member_id=row["member_id"])]
    assert ends == ([cause] if cause == "POLL_TIMEOUT" else [])


@pytest.mark.parametrize("mode", ["both", "coordinator", "request"])
def test_a_static_member_that_was_removed_did_not_leave_by_itself(told, mode):
    cluster = f"admin-removed-39-{mode}"
    row = rebalance(told, cluster, "app-66", 2)
    assert (row["cause"], row["instance_id"]) == ("ADMIN_REMOVED", "app-66-1")
    assert row["slowest_member_id"] != row["member_id"]
    (end,) = told.rows("member_sessions", cluster, member_id=row["member_id"])
    assert end["end_kind"] == "ADMIN_REMOVED"
