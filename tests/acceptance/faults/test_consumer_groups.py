"""Groups of the consumer protocol (KIP-848), of which parts were told wrongly or not at all."""

from __future__ import annotations

import json

import pytest

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("mode", ["both", "request"])
def test_an_acknowledgement_counts_from_its_arrival(told, mode):
    cluster = f"acknowledged-on-arrival-{mode}"
    (told_of,) = (json.loads(row["revocations"]) for row in told.rows("rebalance_rounds", cluster, epoch=8))
    assert [(one["client_id"], one["ended_at"], one["end"]) for one in told_of] == [("app-176-3", 1795240620292, "ACKNOWLEDGED")]
    (rebalance,) = told.rows("rebalances", cluster, generation=8)
    assert rebalance["unavailable_partition_ms"] == 3 * 3_010


@pytest.mark.parametrize("mode", ["both", "request"])
def test_heartbeats_of_a_classic_member_count_in_a_consumer_group(told, mode):
    (session,) = told.rows("member_sessions", f"mixed-group-heartbeats-{mode}", client_id="app-64-2")
    assert (session["heartbeats"], session["session_timeout_ms"]) == (13, 8_000)
    assert 2_000 <= session["longest_gap_ms"] < 2_050


@pytest.mark.parametrize("mode", ["both", "coordinator"])
def test_a_static_member_whose_session_ended_may_come_back_and_keep_its_partitions(told, mode):
    (finding,) = told.rows("findings", f"static-away-nobody-else-{mode}", code="STATIC_MEMBER_AWAY")
    assert "its session ended after 7 s, before it came back" in finding["message"]
    assert "did not come back" not in finding["message"]
    assert "the others" not in finding["message"]
    assert json.loads(finding["details"])["came_back"] is None


EPOCHS = [
    (5, 1795240579961, "SESSION_TIMEOUT", "app-75-2"),
    (6, 1795240598352, "SESSION_TIMEOUT", "app-75-3"),
    (7, 1795240607383, "MEMBER_JOINED", "app-75-3"),
    (8, 1795240618843, "MEMBER_JOINED", "app-75-1"),
]


def test_requests_show_who_was_removed_though_the_line_about_it_is_lost(told):
    rows = sorted(told.rows("rebalances", "fenced-line-lost-both"), key=lambda row: row["generation"])[4:]
    assert [(row["first_epoch"], row["started_at"], row["cause"], row["client_id"]) for row in rows] == EPOCHS
    assert [(row["generation"], row["members_after"], row["outcome"]) for row in rows] == [
        (5, 1, "COMPLETED"),
        (6, 0, "EMPTIED"),
        (7, 1, "COMPLETED"),
        (8, 2, "COMPLETED"),
    ]
    assert all(row["ended_at"] - row["started_at"] < 3_000 for row in rows)


def test_an_epoch_whose_line_is_lost_has_no_cause_and_later_ones_no_number_of_members(told):
    rows = sorted(told.rows("rebalances", "fenced-line-lost-coordinator"), key=lambda row: row["generation"])[4:]
    assert [(row["first_epoch"], row["started_at"]) for row in rows] == [(epoch, at_ms) for epoch, at_ms, _, _ in EPOCHS]
    assert [row["cause"] for row in rows] == ["UNKNOWN", *(cause for _, _, cause, _ in EPOCHS[1:])]
    assert [row["members_after"] for row in rows] == [None] * 4
