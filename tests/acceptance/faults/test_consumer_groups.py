"""Groups of the consumer protocol (KIP-848), of which parts were told wrongly or not at all."""

from __future__ import annotations

import json

import pytest

pytestmark = [pytest.mark.spark, pytest.mark.slow]


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
    assert "its session ended after 6.997 s, before it came back" in finding["message"]
    assert "did not come back" not in finding["message"] and "the others" not in finding["message"]
    assert json.loads(finding["details"])["came_back"] is None
