"""Logs that begin late or lack lines, and columns that have to agree: what no line shows is unknown, never something else."""

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


def test_the_first_member_of_a_group_leads_it(told):
    assert rebalance(told, "first-joiner-request", "app-53", 1)["client_id"] == "app-53-1"


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
