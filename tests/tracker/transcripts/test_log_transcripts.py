"""Stories as the coordinator's own log tells them."""

from __future__ import annotations

from coordinator_model import events as kinds
from tests.tracker.story import JOINED, Story, table


def stable_group() -> Story:
    """Two members, generation 1, stable from 3.01 s on."""
    story = Story()
    story.at(0).log_preparing(0, JOINED.format("a-1"), "a-1")
    story.log(kinds.MEMBER_ADDED, member_id="a-1", state="Empty")
    story.at(100).log(kinds.MEMBER_ADDED, member_id="b-1", state="PreparingRebalance")
    story.at(3_000).log_stabilized(1, 2)
    story.at(3_010).log_assignment(1, "a-1", 2)
    return story


def test_first_rebalance_of_a_new_group() -> None:
    rows = stable_group().rows()
    (rebalance,) = table(rows, "rebalances")
    assert (rebalance["started_at"], rebalance["joined_at"], rebalance["ended_at"]) == (0, 3_000, 3_010)
    assert (rebalance["join_ms"], rebalance["sync_ms"], rebalance["total_ms"]) == (3_000, 10, 3_010)
    assert (rebalance["generation"], rebalance["outcome"], rebalance["cause"]) == (1, "COMPLETED", "MEMBER_JOINED")
    assert (rebalance["member_id"], rebalance["leader_id"]) == ("a-1", "a-1")
    assert (rebalance["members_before"], rebalance["members_after"], rebalance["joined"]) == (0, 2, ["a-1", "b-1"])
    assert [(t["from_state"], t["to_state"], t["occurred_at"]) for t in table(rows, "group_transitions")] == [
        ("Empty", "PreparingRebalance", 0),
        ("PreparingRebalance", "CompletingRebalance", 3_000),
        ("CompletingRebalance", "Stable", 3_010),
    ]
    assert table(rows, "findings") == []


def test_java_client_that_leaves_at_its_poll_timeout() -> None:
    """The 4.x coordinator gives the client's reason on the member's line, not in the reason of the rebalance."""
    story = stable_group()
    story.at(50_000).log(kinds.MEMBER_LEFT, member_id="b-1", reason="consumer poll timeout has expired.")
    story.log_preparing(1, "explicit `LeaveGroup` request for (b-1) members.", "b-1")
    story.at(50_500).log_stabilized(2, 1)
    story.at(50_505).log_assignment(2, "a-1", 1)
    rows = story.rows()
    assert table(rows, "rebalances")[1]["cause"] == "POLL_TIMEOUT"
    assert [f["code"] for f in table(rows, "findings")] == ["POLL_TIMEOUT"]
    assert table(rows, "member_sessions")[0]["end_kind"] == "POLL_TIMEOUT"


def test_a_coordinator_that_moves_ends_the_rebalance_without_result() -> None:
    story = stable_group()
    story.at(20_000).log_preparing(1, JOINED.format("c-1"), "c-1")
    story.at(21_000).log(kinds.GROUP_UNLOADED, generation=1)
    story.on("broker-2").at(21_500).log(kinds.GROUP_LOADED, member_count=2)
    rows = story.rows(until=60_000)
    rebalance = table(rows, "rebalances")[1]
    assert (rebalance["outcome"], rebalance["generation"], rebalance["ended_at"]) == ("ABANDONED", None, 21_000)
    assert [(t["from_state"], t["to_state"], t["trigger"]) for t in table(rows, "group_transitions")][-2:] == [
        ("PreparingRebalance", "Dead", "COORDINATOR_MOVED"),
        ("Dead", "Stable", "GROUP_LOADED"),
    ]


def test_a_group_converted_to_the_consumer_protocol_ends_its_classic_rebalance() -> None:
    story = stable_group()
    story.at(20_000).log_preparing(1, "explicit `LeaveGroup` request for (b-1) members.", "b-1")
    story.at(21_000).log(kinds.GROUP_CONVERTED, state="consumer")
    story.at(30_000).log_stabilized(9, 9)
    rows = story.rows()
    assert [(r["generation"], r["outcome"]) for r in table(rows, "rebalances")] == [(1, "COMPLETED"), (None, "ABANDONED")]
