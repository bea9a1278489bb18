"""Stories as the coordinator's own log tells them."""

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


def test_a_member_whose_session_expires() -> None:
    story = stable_group()
    story.at(60_000).log(kinds.MEMBER_FAILED, member_id="b-1")
    story.log_preparing(1, "removing member b-1 on heartbeat expiration", "b-1")
    story.at(61_000).log_stabilized(2, 1)
    story.at(61_005).log_assignment(2, "a-1", 1)
    rows = story.rows()
    rebalance = table(rows, "rebalances")[1]
    assert (rebalance["cause"], rebalance["member_id"], rebalance["left"]) == ("SESSION_TIMEOUT", "b-1", ["b-1"])
    assert (rebalance["members_before"], rebalance["members_after"]) == (2, 1)
    (session,) = table(rows, "member_sessions")
    assert (session["member_id"], session["end_kind"], session["joined_at"], session["ended_at"]) == ("b-1", "SESSION_TIMEOUT", 100, 60_000)
    assert [f["code"] for f in table(rows, "findings")] == ["SESSION_TIMEOUT"]


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


def test_scala_coordinator_writes_the_leave_after_the_rebalance_it_starts() -> None:
    story = stable_group()
    story.at(50_000).log_preparing(1, "Removing member b-1 on LeaveGroup; client reason: the consumer is being closed", "b-1")
    story.at(50_001).log(kinds.MEMBER_LEFT, member_id="b-1", reason="the consumer is being closed")
    story.at(50_500).log_stabilized(2, 1)
    story.at(50_505).log_assignment(2, "a-1", 1)
    rows = story.rows()
    rebalance = table(rows, "rebalances")[1]
    assert (rebalance["cause"], rebalance["member_id"], rebalance["left"]) == ("MEMBER_LEFT", "b-1", ["b-1"])
    assert table(rows, "findings") == []


def test_a_rebalance_overtaken_by_the_next() -> None:
    story = stable_group()
    story.at(20_000).log_preparing(1, JOINED.format("c-1"), "c-1")
    story.at(20_400).log_stabilized(2, 3)
    story.at(21_000).log_preparing(2, JOINED.format("d-1"), "d-1")
    story.at(21_300).log_stabilized(3, 4)
    story.at(21_310).log_assignment(3, "a-1", 4)
    rows = story.rows()
    assert [(r["generation"], r["outcome"], r["started_at"], r["ended_at"]) for r in table(rows, "rebalances")] == [
        (1, "COMPLETED", 0, 3_010),
        (2, "SUPERSEDED", 20_000, 21_000),
        (3, "COMPLETED", 21_000, 21_310),
    ]
    assert ("CompletingRebalance", "PreparingRebalance") in [(t["from_state"], t["to_state"]) for t in table(rows, "group_transitions")]


def test_the_last_member_leaves() -> None:
    """Stable → PreparingRebalance → Empty in one instant, a generation further."""
    story = stable_group()
    for member, ms in (("a-1", 10_000), ("b-1", 10_500)):
        story.at(ms).log(kinds.MEMBER_LEFT, member_id=member, reason="")
        if member == "a-1":
            story.log_preparing(1, "explicit `LeaveGroup` request for (a-1) members.", member)
    story.at(10_500).log(kinds.GROUP_EMPTY, generation=2)
    rows = story.rows()
    rebalance = table(rows, "rebalances")[1]
    assert (rebalance["outcome"], rebalance["generation"], rebalance["ended_at"]) == ("EMPTIED", 2, 10_500)
    assert (rebalance["members_before"], rebalance["members_after"], rebalance["left"]) == (2, 0, ["a-1", "b-1"])
    assert table(rows, "group_transitions")[-1]["to_state"] == "Empty"


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


def test_a_log_that_begins_in_the_middle() -> None:
    """The first line is the end of a join phase: no start is invented before it, and nothing is missing after it."""
    story = Story()
    story.at(0).log_stabilized(41, 3)
    story.at(10).log_assignment(41, "a-1", 3)
    story.at(60_000).log_preparing(41, JOINED.format("c-1"), "c-1")
    story.at(61_000).log_stabilized(42, 4)
    story.at(61_010).log_assignment(42, "a-1", 4)
    rows = story.rows()
    assert [(r["generation"], r["started_at"], r["cause"], r["members_before"]) for r in table(rows, "rebalances")] == [
        (41, 0, "UNKNOWN", None),
        (42, 60_000, "MEMBER_JOINED", 3),
    ]


def test_a_fencing_line_names_no_group() -> None:
    """The instance id tells the group, where only one of the shard uses it."""
    story = Story()
    story.at(0).log(kinds.MEMBER_ADDED, member_id="i-1", instance_id="inst", state="Empty")
    story.log_preparing(0, "Adding new member i-1 with group instance id inst; client reason: not provided", "i-1")
    story.at(3_000).log_stabilized(1, 1)
    story.at(3_001).log_assignment(1, "i-1", 1)
    story.at(9_000).log(kinds.INSTANCE_FENCED, group_id="", member_id="i-1", instance_id="inst", answer_member_id="i-2")
    (finding,) = table(story.rows(), "findings")
    assert (finding["group_id"], finding["code"], finding["occurred_at"]) == ("orders", "FENCED_INSTANCE", 9_000)


def test_a_group_converted_to_the_consumer_protocol_ends_its_classic_rebalance() -> None:
    story = stable_group()
    story.at(20_000).log_preparing(1, "explicit `LeaveGroup` request for (b-1) members.", "b-1")
    story.at(21_000).log(kinds.GROUP_CONVERTED, state="consumer")
    story.at(30_000).log_stabilized(9, 9)
    rows = story.rows()
    assert [(r["generation"], r["outcome"]) for r in table(rows, "rebalances")] == [(1, "COMPLETED"), (None, "ABANDONED")]


def test_a_member_id_holds_the_client_id() -> None:
    """The coordinator's log does not name clients, but it makes a dynamic member's id out of the client's."""
    member = "pay-ments-1-0a9114c9-6472-428a-8e84-9f866df89f04"
    story = Story()
    story.at(0).log_preparing(0, JOINED.format(member), member)
    story.at(3_000).log_stabilized(1, 1)
    story.at(3_001).log_assignment(1, member, 1)
    (rebalance,) = table(story.rows(), "rebalances")
    assert (rebalance["client_id"], rebalance["client_host"]) == ("pay-ments-1", None)
