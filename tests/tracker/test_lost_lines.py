"""Logs with holes: lines that were not written, were lost, or that older releases do not have."""

import pytest

from coordinator_model import events as kinds
from coordinator_model.errors import Error
from tests.tracker.story import EXPIRED, JOINED, Story, table


def logged(count: int = 2) -> Story:
    """a-1, b-1 … of generation 1, stable from 3.01 s on."""
    story = Story()
    story.at(0).log_preparing(0, JOINED.format("a-1"), "a-1").log(kinds.MEMBER_ADDED, member_id="a-1", state="Empty")
    for member in ("b-1", "c-1")[: count - 1]:
        story.at(100).log(kinds.MEMBER_ADDED, member_id=member, state="PreparingRebalance")
    return story.at(3_000).log_stabilized(1, count).at(3_010).log_assignment(1, "a-1", count)


def requested() -> Story:
    """The same of a-1 and b-1, as requests tell it, with heartbeats until 15 s."""
    story = Story()
    story.at(50).id_issued("a-1").id_issued("b-1")
    story.at(3_000).join("a-1", 1, "a-1", ["a-1", "b-1"], waited=2_900)
    story.at(3_000).join("b-1", 1, "a-1", waited=2_800)
    story.at(3_010).sync("a-1", 1, {"a-1": ("t-0",), "b-1": ("t-1",)}).sync("b-1", 1, {"b-1": ("t-1",)})
    return story.beats(["a-1", "b-1"], 1, 4_000, 15_000)


def told(story: Story) -> list[tuple[int | None, str, str]]:
    """(generation, outcome, cause) of every rebalance."""
    return [(row["generation"], row["outcome"], row["cause"]) for row in table(story.rows(), "rebalances")]


def states(story: Story) -> list[str]:
    """Every change of state."""
    return [f"{row['from_state']} > {row['to_state']}" for row in table(story.rows(), "group_transitions")]


# the coordinator's log


def test_a_rebalance_whose_end_is_missing_is_abandoned_when_the_next_begins() -> None:
    story = logged()
    story.at(20_000).log_preparing(1, JOINED.format("c-1"), "c-1")
    story.at(40_000).log_preparing(2, JOINED.format("d-1"), "d-1")
    story.at(41_000).log_stabilized(3, 4).at(41_010).log_assignment(3, "a-1", 4)
    assert told(story) == [(1, "COMPLETED", "MEMBER_JOINED"), (None, "ABANDONED", "MEMBER_JOINED"), (3, "COMPLETED", "MEMBER_JOINED")]
    row = table(story.rows(), "rebalances")[1]
    assert (row["ended_at"], row["end_seen"], row["total_ms"]) == (20_000, False, None)  # its last line
    assert states(story)[3:6] == ["Stable > PreparingRebalance", "PreparingRebalance > Stable", "Stable > PreparingRebalance"]


def test_a_group_that_is_found_in_the_next_generation_had_become_stable() -> None:
    story = logged()
    story.at(20_000).log_preparing(1, JOINED.format("c-1"), "c-1")
    story.at(40_000).heartbeat("a-1", 2)
    story.at(60_000).log(kinds.GROUP_UNLOADED, generation=2)
    assert states(story)[3:] == ["Stable > PreparingRebalance", "PreparingRebalance > Stable", "Stable > Dead"]
    assert [row["trigger"] for row in table(story.rows(), "group_transitions")][3:] == [
        "MEMBER_JOINED",
        "LINES_MISSING",
        "COORDINATOR_MOVED",
    ]


def test_the_end_of_a_join_phase_whose_beginning_is_missing_supersedes_the_one_before() -> None:
    """No assignment of generation 2 was seen, nor what ended it: generation 3 was made, so there was another rebalance."""
    story = logged()
    story.at(20_000).log_preparing(1, JOINED.format("c-1"), "c-1").at(20_100).log_stabilized(2, 3)
    story.at(21_000).log_stabilized(3, 3).at(21_010).log_assignment(3, "a-1", 3)
    assert told(story) == [(1, "COMPLETED", "MEMBER_JOINED"), (2, "SUPERSEDED", "MEMBER_JOINED"), (3, "COMPLETED", "UNKNOWN")]
    row = table(story.rows(), "rebalances")[2]
    assert (row["started_at"], row["joined_at"], row["join_ms"]) == (21_000, 21_000, None)
    assert (row["start_seen"], row["sync_ms"], row["total_ms"]) == (False, 10, None)


def test_an_assignment_shows_that_the_join_phase_had_ended() -> None:
    story = logged()
    story.at(20_000).log_preparing(1, JOINED.format("c-1"), "c-1")
    story.at(21_010).log_assignment(2, "a-1", 3)
    row = table(story.rows(), "rebalances")[1]
    assert (row["generation"], row["outcome"], row["joined_at"], row["ended_at"]) == (2, "COMPLETED", None, 21_010)
    assert (row["start_seen"], row["join_ms"], row["sync_ms"], row["total_ms"]) == (True, None, None, 1_010)


def test_a_log_that_begins_after_the_join_phase() -> None:
    story = Story().at(21_010).log_assignment(2, "a-1", 3)
    (row,) = table(story.rows(), "rebalances")
    assert (row["generation"], row["started_at"], row["joined_at"], row["ended_at"]) == (2, 21_010, None, 21_010)
    assert (row["start_seen"], row["join_ms"], row["sync_ms"], row["total_ms"]) == (False, None, None, None)


@pytest.mark.parametrize("requests", [False, True])
def test_a_log_that_begins_within_the_join_phase(*, requests: bool) -> None:
    """The requests that it was waiting for are logged when they are answered, with the time at which they came."""
    story = Story().at(21_000).log_stabilized(2, 2)
    if requests:
        story.at(21_001).join("a-1", 2, "a-1", ["a-1", "b-1"], waited=900).at(21_001).join("b-1", 2, "a-1", waited=400)
    story.at(21_010).log_assignment(2, "a-1", 2)
    (row,) = table(story.rows(), "rebalances")
    assert (row["joined_at"], row["sync_ms"]) == (21_000, 10)
    assert row["started_at"] == (20_101 if requests else 21_000)
    assert (row["start_seen"], row["cause"], row["member_id"], row["join_ms"], row["total_ms"]) == (False, "UNKNOWN", None, None, None)


def test_a_member_whose_id_is_issued_within_the_log_is_new_wherever_that_begins() -> None:
    story = Story().at(20_100).id_issued("a-1")
    story.at(21_001).join("a-1", 2, "b-1", waited=900).at(21_002).join("b-1", 2, "b-1", ["a-1", "b-1"], waited=400)
    (row,) = table(story.at(21_010).sync("b-1", 2, {"a-1": (), "b-1": ()}).rows(), "rebalances")
    assert (row["start_seen"], row["cause"], row["member_id"], row["join_ms"]) == (True, "MEMBER_JOINED", "a-1", 900)


@pytest.mark.parametrize("missing", [0, 1])
def test_a_group_that_is_empty_has_no_members_whichever_lines_are_missing(missing: int) -> None:
    """b-1 left, and its line is lost; with it the one that says that the coordinator prepares a rebalance."""
    story = logged()
    if not missing:
        story.at(20_000).log_preparing(1, "explicit `LeaveGroup` request for (b-1) members.", "b-1")
    story.at(20_500).log(kinds.MEMBER_LEFT, member_id="a-1", reason="the consumer is being closed")
    story.log(kinds.GROUP_EMPTY, generation=2)
    rows = story.rows()
    row = table(rows, "rebalances")[1]
    assert (row["generation"], row["outcome"], row["members_after"], row["ended_at"]) == (2, "EMPTIED", 0, 20_500)
    assert row["started_at"] == (20_500 if missing else 20_000)
    assert [(s["member_id"], s["end_kind"]) for s in table(rows, "member_sessions")] == [
        ("a-1", "LEFT"),
        ("b-1", "UNKNOWN" if missing else "LEFT"),
    ]
    assert [t["to_state"] for t in table(rows, "group_transitions")][-2:] == ["PreparingRebalance", "Empty"]


def test_the_coordinators_count_is_believed() -> None:
    """c-1 is gone, though no line says so: what is known of the members is given up rather than counted on."""
    story = logged(3)
    story.at(20_000).log_preparing(1, EXPIRED.format("x-1"), "x-1").at(20_100).log_stabilized(2, 2).at(20_110).log_assignment(2, "a-1", 2)
    story.at(40_000).log_preparing(2, JOINED.format("d-1"), "d-1").at(40_100).log_stabilized(3, 3).at(40_110).log_assignment(3, "a-1", 3)
    assert [(row["members_before"], row["members_after"]) for row in table(story.rows(), "rebalances")][1:] == [(3, 2), (2, 3)]


@pytest.mark.parametrize("begun", [False, True])
def test_a_member_that_is_said_to_be_gone_and_added_again_neither_joined_nor_left(*, begun: bool) -> None:
    """The coordinator gives no id twice: a line between is lost or damaged. It counts once, as it did before."""
    story = logged().at(20_000).log(kinds.MEMBER_FAILED, member_id="b-1")
    if begun:
        story.log_preparing(1, EXPIRED.format("b-1"), "b-1")
    story.at(20_050).log(kinds.MEMBER_ADDED, member_id="b-1", state="PreparingRebalance")
    if not begun:
        story.at(20_060).log_preparing(1, JOINED.format("b-1"), "b-1")
    story.at(20_100).log_stabilized(2, 2).at(20_110).log_assignment(2, "a-1", 2)
    row = table(story.rows(), "rebalances")[1]
    assert (row["joined"], row["left"], row["members_before"], row["members_after"]) == ([], [], 2, 2)


def test_releases_before_2_8_do_not_give_the_count() -> None:
    """Stabilized group orders generation 1 (__consumer_offsets-9): members are remembered all the same."""
    story = logged()
    for event in story.events[-2:]:
        story.events[story.events.index(event)] = event._replace(member_count=-1, leader_id="")
    story.at(60_000).log(kinds.MEMBER_FAILED, member_id="b-1").log_preparing(1, EXPIRED.format("b-1"), "b-1")
    story.at(61_000).log_stabilized(2, -1).at(61_005).log(kinds.ASSIGNMENT_RECEIVED, generation=2)
    rows = story.rows()
    assert [(r["generation"], r["members_after"], r["leader_id"]) for r in table(rows, "rebalances")] == [(1, None, None), (2, None, None)]
    (session,) = table(rows, "member_sessions")
    assert (session["member_id"], session["joined_at"]) == ("b-1", 100)


def test_an_assignment_without_a_count_leaves_that_of_the_join_phase() -> None:
    """Kafka 2.7 and older name neither leader nor count when the assignment comes."""
    story = logged()
    story.events[-1] = story.events[-1]._replace(member_count=-1, leader_id="")
    (row,) = table(story.rows(), "rebalances")
    assert (row["members_after"], row["leader_id"]) == (2, None)


@pytest.mark.parametrize(("count", "joined"), [(2, ["a-1", "b-1"]), (3, ["a-1", "b-1", "x-1"])])
def test_an_id_that_was_handed_out_is_a_member_if_the_count_says_so(count: int, joined: list[str]) -> None:
    """Scala brokers do not log at INFO that a client used its id. Whether x-1 did is told by the count."""
    story = Story()
    story.at(0).log(kinds.MEMBER_ID_ISSUED, member_id="a-1", state="Empty").log_preparing(0, JOINED.format("a-1"), "a-1")
    story.at(100).log(kinds.MEMBER_ADDED, member_id="b-1", state="PreparingRebalance")
    story.at(200).log(kinds.MEMBER_ID_ISSUED, member_id="x-1", state="PreparingRebalance")
    story.at(3_000).log_stabilized(1, count).at(3_010).log_assignment(1, "a-1", count)
    assert table(story.rows(), "rebalances")[0]["joined"] == joined


def test_an_id_that_was_never_used_becomes_no_member() -> None:
    """PENDING_MEMBER_EXPIRED takes it back: the member that the count speaks of is another."""
    story = Story()
    story.at(0).log(kinds.MEMBER_ID_ISSUED, member_id="x-1", state="Empty")
    story.at(50).log(kinds.MEMBER_ID_ISSUED, member_id="y-1", state="Empty")
    story.at(10_000).log(kinds.PENDING_MEMBER_EXPIRED, member_id="x-1")
    story.at(10_050).log_stabilized(1, 1).at(10_060).log_assignment(1, "y-1", 1)
    story.at(40_000).log(kinds.MEMBER_FAILED, member_id="y-1").log_preparing(1, EXPIRED.format("y-1"), "y-1")
    story.log(kinds.GROUP_EMPTY, generation=2)
    sessions = table(story.rows(), "member_sessions")
    assert [(s["member_id"], s["joined_at"]) for s in sessions] == [("y-1", 50)]


def test_members_that_did_not_sync_are_named_by_the_reason_alone_where_debug_lines_are_off() -> None:
    """Kafka logs at DEBUG who did not send SyncGroup; the reason of the rebalance that follows names it at INFO."""
    story = logged().at(20_000).log_preparing(1, JOINED.format("c-1"), "c-1").at(20_100).log_stabilized(2, 3)
    story.at(50_100).log_preparing(2, "Removing [c-1] on pending sync request expiration", "c-1")
    story.at(50_200).log_stabilized(3, 2).at(50_210).log_assignment(3, "a-1", 2)
    rows = story.rows()
    assert [(r["outcome"], r["cause"]) for r in table(rows, "rebalances")][1:] == [
        ("SUPERSEDED", "MEMBER_JOINED"),
        ("COMPLETED", "SYNC_TIMEOUT"),
    ]
    assert [(s["member_id"], s["end_kind"], s["ended_at"]) for s in table(rows, "member_sessions")] == [("c-1", "SYNC_TIMEOUT", 50_100)]
    assert [f["code"] for f in table(rows, "findings")] == ["SYNC_TIMEOUT"]


def test_where_the_log_begins_with_the_end_of_the_group_nothing_is_invented_before_it() -> None:
    assert Story().at(0).log(kinds.GROUP_UNLOADED, generation=7).rows(until=60_000) == []


# the request log


def test_heartbeats_of_a_generation_that_was_not_seen_made_end_what_was_open() -> None:
    """b-1 leaves; the lines of the rebalance are lost; a-1's heartbeats show that it is over."""
    story = requested().at(15_500).leave("b-1", "the consumer is being closed", took=0)
    story.beats(["a-1"], 2, 20_000, 60_000)
    assert told(story) == [(1, "COMPLETED", "MEMBER_JOINED"), (None, "ABANDONED", "MEMBER_LEFT")]
    assert table(story.rows(), "rebalances")[1]["ended_at"] == 19_999


def test_answers_of_a_generation_that_is_over_change_nothing() -> None:
    """b-1's connection is slow: what it was answered in generation 2 is logged when the group has long made generation 3."""
    story = requested().at(16_000).id_issued("c-1")
    story.at(16_500).heartbeat("a-1", 1, Error.REBALANCE_IN_PROGRESS)
    story.at(17_000).join("c-1", 2, "a-1", waited=900)
    story.at(17_000).join("a-1", 2, "a-1", ["a-1", "b-1", "c-1"], waited=400)
    story.at(17_010).sync("a-1", 2, {"a-1": ("t-0",), "b-1": ("t-1",), "c-1": ()}).sync("c-1", 2, {"c-1": ()})
    story.at(18_000).leave("c-1", "the consumer is being closed", took=0)
    story.at(18_500).heartbeat("a-1", 2, Error.REBALANCE_IN_PROGRESS)
    story.at(19_000).join("a-1", 3, "a-1", ["a-1", "b-1"], waited=400)
    story.at(19_000).join("b-1", 3, "a-1", waited=100)
    story.at(19_010).sync("a-1", 3, {"a-1": ("t-1",), "b-1": ("t-0",)}).sync("b-1", 3, {"b-1": ("t-0",)})
    story.beats(["a-1", "b-1"], 3, 21_000, 40_000)
    usual = table(story.rows(), "rebalances")
    story.at(19_020).join("b-1", 2, "a-1", waited=2_500)
    story.at(19_030).sync("b-1", 2, {"b-1": ("t-1",)}, took=2_000)
    assert table(story.rows(), "rebalances") == usual
    assert [row["generation"] for row in usual] == [1, 2, 3]


def test_a_log_that_begins_with_a_sync_that_was_overtaken_invents_no_start() -> None:
    """SyncGroup of generation 4 is sent back; the join phase that did it ends in generation 5."""
    story = Story()
    story.at(0).request(kinds.SYNC_GROUP, "a-1", took=900, generation=4, error_code=Error.REBALANCE_IN_PROGRESS)
    story.at(1_000).join("b-1", 5, "b-1", ["a-1", "b-1"], waited=500).join("a-1", 5, "b-1", waited=400)
    story.at(1_010).sync("b-1", 5, {"a-1": (), "b-1": ()})
    (row,) = table(story.rows(), "rebalances")
    assert (row["generation"], row["started_at"]) == (5, 500)


def test_a_membership_ends_once_though_the_log_says_it_later() -> None:
    """c's last heartbeats are lost, so its session seems to end at 25 s; the coordinator's log, which begins then, says 32 s."""
    story = Story()
    story.at(50).id_issued("c-1")
    story.at(3_000).join("c-1", 1, "c-1", ["c-1"], waited=2_900).at(3_010).sync("c-1", 1, {"c-1": ("t-0",)})
    story.beats(["c-1"], 1, 4_000, 16_000)
    story.at(32_000).log(kinds.MEMBER_FAILED, member_id="c-1")
    (session,) = table(story.rows(until=60_000), "member_sessions")
    assert (session["end_kind"], session["ended_at"]) == ("SESSION_TIMEOUT", 22_999)


def test_a_group_that_is_empty_soon_after_it_was_stabilized_began_another_rebalance() -> None:
    """The assignment of generation 1 and the line that prepares generation 2 are lost, and no line names the member."""
    rows = Story().at(1_000).log_stabilized(1, 1).at(49_000).log(kinds.GROUP_EMPTY, generation=2).rows()
    assert [
        (row["generation"], row["outcome"], row["started_at"], row["members_before"], row["left_unnamed"], row["members_after"])
        for row in table(rows, "rebalances")
    ] == [(1, "ABANDONED", 1_000, 0, 0, 1), (2, "EMPTIED", 49_000, 1, 1, 0)]
    assert [row["join_ms"] for row in table(rows, "rebalances")] == [None, None]


def test_the_group_is_whole_again_after_an_unloading_of_which_no_line_tells_the_return() -> None:
    """The one broker restarts, its line of loading is lost, and the members go on in the generation that they had."""
    story = logged().at(20_000).log(kinds.GROUP_UNLOADED, generation=1).beats(["a-1", "b-1"], 1, 26_000, 40_000)
    story.at(40_000).log(kinds.MEMBER_LEFT, member_id="b-1", reason="the consumer is being closed")
    story.log_preparing(1, "explicit `LeaveGroup` request for (b-1) members.", "b-1")
    story.at(40_100).log_stabilized(2, 1).at(40_110).log_assignment(2, "a-1", 1)
    row = table(story.rows(), "rebalances")[1]
    assert (row["members_before"], row["members_after"], row["cause"]) == (2, 1, "MEMBER_LEFT")
    assert [t["from_state"] for t in table(story.rows(), "group_transitions")][-3:] == [
        "Stable",
        "PreparingRebalance",
        "CompletingRebalance",
    ]


def test_a_static_member_may_return_unseen_while_the_others_go_on() -> None:
    """Its JoinGroup is missing. Of the new id comes one heartbeat, then only the other member is heard for long."""
    story = Story()
    story.at(50).id_issued("a-1")
    story.at(3_000).join("a-1", 1, "a-1", ["a-1", "b-1"], waited=2_900, session_timeout_ms=45_000)
    story.at(3_000).join("b-1", 1, "a-1", waited=2_800, instance_id="b", session_timeout_ms=45_000)
    story.at(3_010).sync("a-1", 1, {"a-1": ("t-0",), "b-1": ("t-1",)}).sync("b-1", 1, {"b-1": ("t-1",)}, instance_id="b")
    story.beats(["a-1"], 1, 4_000, 40_000).at(10_000).heartbeat("b-1", 1, instance_id="b").at(16_002).heartbeat("b-2", 1, instance_id="b")
    story.at(42_000).join("a-1", 2, "a-1", ["a-1", "b-2"], waited=900).join("b-2", 2, "a-1", waited=800, instance_id="b")
    story.at(42_010).sync("a-1", 2, {"a-1": ("t-0",), "b-2": ("t-1",)}).sync("b-2", 2, {"b-2": ("t-1",)}, instance_id="b")
    assert [(row["generation"], row["members_after"]) for row in table(story.rows(), "rebalances")] == [(1, 2), (2, 2)]
