"""Logs that begin late, and lines that name the state of a group where others are missing: what no line shows is unknown."""

import pytest

from coordinator_model import events as kinds
from coordinator_model.events import MemberEntry
from tests.tracker.story import EXPIRED, JOINED, Story, table
from tests.tracker.test_lost_lines import logged, requested

REJOINED = "Updating metadata for member b-1 during {}; client reason: not provided"


def told(story: Story, *columns: str, number: int = -1) -> tuple:
    """Columns of one rebalance, by default of the last one."""
    row = table(story.rows(until=300_000), "rebalances")[number]
    return tuple(row[column] for column in columns)


def half_done() -> Story:
    """The assignment of generation 2 is missing: c-1 came at 20 s, the join phase ended at 20.1 s."""
    return logged().at(20_000).log_preparing(1, JOINED.format("c-1"), "c-1").at(20_100).log_stabilized(2, 3)


# lines that name the state


@pytest.mark.parametrize("kind", [kinds.MEMBER_ADDED, kinds.MEMBER_ID_ISSUED])
@pytest.mark.parametrize(
    ("state", "outcome", "end_seen", "ended"),
    [("Stable", "COMPLETED", False, 20_100), ("CompletingRebalance", "SUPERSEDED", True, 200_000), ("Empty", "ABANDONED", False, 20_100)],
)
def test_a_line_that_finds_the_group_at_rest_shows_that_a_rebalance_had_ended(kind, state, outcome, end_seen, ended) -> None:
    story = half_done().at(200_000).log(kind, member_id="d-1", state=state).log_preparing(2, JOINED.format("d-1"), "d-1")
    story.at(201_000).log_stabilized(3, 4).at(201_010).log_assignment(3, "a-1", 4)
    assert told(story, "outcome", "end_seen", "ended_at", number=1) == (outcome, end_seen, ended)
    assert told(story, "sync_ms", "total_ms", number=1) == ((179_900, 180_000) if end_seen else (None, None))


def test_it_is_told_so_as_soon_as_the_line_is_read() -> None:
    """An id was given out. Nobody has used it yet."""
    story = half_done().at(200_000).log(kinds.MEMBER_ID_ISSUED, member_id="d-1", state="Stable")
    assert told(story, "outcome", "end_seen", number=1) == ("COMPLETED", False)
    assert table(story.rows(until=300_000), "group_transitions")[-1]["to_state"] == "Stable"


@pytest.mark.parametrize(("state", "outcome"), [("Stable", "COMPLETED"), ("CompletingRebalance", "SUPERSEDED")])
def test_a_reason_that_names_the_state_shows_it_too(state: str, outcome: str) -> None:
    story = half_done().at(200_000).log_preparing(2, REJOINED.format(state), "b-1")
    assert told(story.at(201_000).log_stabilized(3, 3).at(201_010).log_assignment(3, "a-1", 3), "outcome", number=1) == (outcome,)


@pytest.mark.parametrize(("at", "outcome", "end_seen"), [(25_000, "SUPERSEDED", True), (200_000, "ABANDONED", False)])
def test_long_after_the_join_phase_it_is_not_known_how_it_ended(at: int, outcome: str, *, end_seen: bool) -> None:
    story = half_done().at(at).log(kinds.MEMBER_FAILED, member_id="b-1").log_preparing(2, EXPIRED.format("b-1"), "b-1")
    story.at(at + 100).log_stabilized(3, 2).at(at + 110).log_assignment(3, "a-1", 2)
    assert told(story, "outcome", "end_seen", number=1) == (outcome, end_seen)


def test_members_that_did_not_sync_had_waited_for_the_assignment() -> None:
    story = half_done().at(320_100).log_preparing(2, "Removing b-1 on pending sync request expiration", "b-1")
    assert told(story.at(321_000).log_stabilized(3, 2).at(321_010).log_assignment(3, "a-1", 2), "outcome", number=1) == ("SUPERSEDED",)


def test_lines_of_one_millisecond_have_no_order() -> None:
    """d-1 was added after the assignment had come, in the same millisecond."""
    story = half_done().at(20_110).log(kinds.MEMBER_ADDED, member_id="d-1", state="Stable").log_assignment(2, "a-1", 3)
    story.log_preparing(2, JOINED.format("d-1"), "d-1").at(20_200).log_stabilized(3, 4).at(20_210).log_assignment(3, "a-1", 4)
    assert told(story, "outcome", "end_seen", "ended_at", number=1) == ("COMPLETED", True, 20_110)


def test_a_line_that_finds_the_group_empty_shows_that_all_had_gone() -> None:
    story = logged().at(20_000).log_preparing(1, EXPIRED.format("b-1"), "b-1").log(kinds.MEMBER_FAILED, member_id="b-1")
    story.at(21_000).log(kinds.MEMBER_FAILED, member_id="a-1").at(90_000).log(kinds.MEMBER_ADDED, member_id="c-1", state="Empty")
    story.log_preparing(2, JOINED.format("c-1"), "c-1").at(93_000).log_stabilized(3, 1).at(93_010).log_assignment(3, "c-1", 1)
    assert told(story, "generation", "outcome", "ended_at", "end_seen", number=1) == (2, "EMPTIED", 21_000, False)
    assert told(story, "members_before", "joined") == (0, ["c-1"])


@pytest.mark.parametrize("generation", [1, 2])
def test_a_group_that_is_loaded_had_been_stored(generation: int) -> None:
    """Its last line is of generation 2. A coordinator that loads generation 2 found it stored."""
    story = half_done().at(21_000).log(kinds.GROUP_LOADED, generation=generation)
    row = table(story.rows(until=90_000), "rebalances")[1]
    assert (row["outcome"], row["end_seen"]) == (("COMPLETED", False) if generation == 2 else ("ABANDONED", True))


def test_a_group_that_was_never_seen_may_be_loaded_with_members_or_without() -> None:
    """Kafka 0.9 to 2.7 does not say how many. From the next line on it is known that there were some."""
    story = Story().at(0).log(kinds.GROUP_LOADED, generation=4)
    story.at(9_000).log_preparing(4, EXPIRED.format("b-1"), "b-1").at(9_100).log_stabilized(5, 2).at(9_110).log_assignment(5, "a-1", 2)
    assert told(story, "members_before", "cause") == (None, "SESSION_TIMEOUT")
    assert "Empty" not in {row["from_state"] for row in table(story.rows(), "group_transitions")}


def test_a_coordinator_that_gives_a_group_up_long_after_the_join_phase_does_not_show_how_that_ended() -> None:
    story = half_done().at(200_000).log(kinds.GROUP_UNLOADED, generation=2)
    assert told(story, "outcome", "end_seen", "ended_at", number=1) == ("ABANDONED", False, 20_100)


def test_a_group_whose_members_had_all_gone_was_empty_when_its_coordinator_gave_it_up() -> None:
    story = logged().at(20_000).log_preparing(1, EXPIRED.format("b-1"), "b-1").log(kinds.MEMBER_FAILED, member_id="b-1")
    story.at(21_000).log(kinds.MEMBER_FAILED, member_id="a-1").at(200_000).log(kinds.GROUP_UNLOADED, generation=2)
    assert told(story, "generation", "outcome", "ended_at", "end_seen", number=1) == (2, "EMPTIED", 21_000, False)


# the line about the beginning is missing


def test_a_member_that_is_added_to_a_stable_group_begins_a_rebalance() -> None:
    story = logged().at(20_000).log(kinds.MEMBER_ADDED, member_id="c-1", state="Stable")
    story.at(28_000).log(kinds.MEMBER_LEFT, member_id="b-1", reason="consumer poll timeout has expired.").log_stabilized(2, 2)
    story.at(28_010).log_assignment(2, "a-1", 2)
    assert told(story, "cause", "member_id", "started_at", "start_seen", "join_ms") == ("MEMBER_JOINED", "c-1", 20_000, False, None)


@pytest.mark.parametrize("gone", [kinds.MEMBER_LEFT, kinds.MEMBER_FAILED, kinds.MEMBERS_NOT_REJOINED])
def test_a_departure_may_have_come_amid_a_rebalance(gone: str) -> None:
    story = logged().at(20_000).log(gone, member_id="b-1", members=(MemberEntry("b-1", "", 0, "", None),))
    story.at(20_100).log_stabilized(2, 1).at(20_110).log_assignment(2, "a-1", 1)
    assert told(story, "cause", "member_id", "start_seen", "left") == ("UNKNOWN", None, False, ["b-1"])


def test_two_generations_are_two_rebalances() -> None:
    """b-1 left, and a-1: the answers of generation 2 are missing, and that the group was empty then."""
    story = Story().beats(["a-1"], 1, 0, 12_000).at(12_500).leave("a-1")
    story.at(90_000).id_issued("c-1").at(93_000).join("c-1", 3, "c-1", ["c-1"], waited=2_900).at(93_010).sync("c-1", 3, {"c-1": ("t-0",)})
    rows = table(story.rows(until=120_000), "rebalances")
    assert [(row["cause"], row["end_seen"], row["ended_at"]) for row in rows[:2]] == [
        ("MEMBER_LEFT", False, 12_499),
        ("MEMBER_JOINED", True, 93_009),
    ]


# a removal that no line reports


@pytest.mark.parametrize("empty", [False, True])
def test_who_began_a_rebalance_by_going_is_gone(*, empty: bool) -> None:
    """The line about b-1 is missing. The reason of the rebalance names it."""
    story = logged().at(20_000)
    if empty:
        story.log(kinds.MEMBER_FAILED, member_id="a-1")
    story.log_preparing(1, EXPIRED.format("b-1"), "b-1").at(20_100)
    story = story.log(kinds.GROUP_EMPTY, generation=2) if empty else story.log_stabilized(2, 1).at(20_110).log_assignment(2, "a-1", 1)
    ends = {row["member_id"]: row["end_kind"] for row in table(story.rows(until=90_000), "member_sessions")}
    assert ends["b-1"] == "SESSION_TIMEOUT"
    assert told(story, "left") == (["a-1", "b-1"] if empty else ["b-1"],)


def test_who_left_by_the_reason_and_the_count_is_gone_though_no_line_reports_it() -> None:
    story = logged().at(20_000).log_preparing(1, "removing member b-1 on LeaveGroup", "b-1").at(20_100).log_stabilized(2, 1)
    rows = story.at(20_110).log_assignment(2, "a-1", 1).rows(until=90_000)
    assert [(row["member_id"], row["end_kind"]) for row in table(rows, "member_sessions")] == [("b-1", "LEFT")]
    assert table(rows, "rebalances")[-1]["left"] == ["b-1"]


# owners that no line showed


def test_partitions_of_members_from_before_the_log_have_unknown_owners() -> None:
    story = Story().beats(["a-1", "b-1"], 1, 0, 9_000).at(9_000).id_issued("c-1")
    story.at(12_000).join("a-1", 2, "a-1", ["a-1", "b-1", "c-1"], waited=1_000).join("b-1", 2, "a-1", waited=900)
    story.join("c-1", 2, "a-1", waited=2_990)
    given = {"a-1": ("t-0",), "b-1": ("t-1",), "c-1": ("t-2",)}
    story.at(12_010).sync("a-1", 2, given).sync("b-1", 2, {"b-1": ("t-1",)}).sync("c-1", 2, {"c-1": ("t-2",)})
    assert told(story, "partitions", "partitions_moved", "unavailable_partition_ms", "joined", number=0) == (3, None, None, ["c-1"])
    sessions = table(story.at(15_000).leave("a-1").at(15_001).leave("c-1").rows(until=60_000), "member_sessions")
    assert {row["member_id"]: row["joined_at"] for row in sessions} == {"a-1": None, "b-1": None, "c-1": 9_010}


@pytest.mark.parametrize("kept", [("t-0",), ("t-0", "t-1")])
def test_what_a_round_took_from_unknown_owners_moves_in_the_next_one(kept: tuple[str, ...]) -> None:
    """The first round of a cooperative rebalance in a log that begins with it: a-1 had `kept`, and goes on with t-0."""
    story = Story().beats(["a-1"], 1, 0, 9_000).at(9_000).id_issued("b-1")
    story.at(12_000).join("a-1", 2, "a-1", ["a-1", "b-1"], waited=1_000, owned=kept).join("b-1", 2, "a-1", waited=2_990)
    story.at(12_010).sync("a-1", 2, {"a-1": ("t-0",), "b-1": ()}).sync("b-1", 2, {"b-1": ()})
    story.at(14_000).join("a-1", 3, "a-1", ["a-1", "b-1"], waited=500, owned=("t-0",)).join("b-1", 3, "a-1", waited=100)
    story.at(14_010).sync("a-1", 3, {"a-1": ("t-0",), "b-1": ("t-1",)}).sync("b-1", 3, {"b-1": ("t-1",)})
    assert told(story, "partitions_moved", number=0) == (None,)
    assert told(story, "partitions_moved", number=1) == ((0,) if kept == ("t-0",) else (None,))


def test_a_static_member_that_comes_back_begins_no_rebalance_though_the_log_begins_with_it() -> None:
    story = Story().at(0).join("a-2", 4, "b-1", asked_as="", instance_id="a", waited=2).at(10).heartbeat("a-2", 4)
    assert table(story.rows(until=90_000), "rebalances") == []


def test_a_member_that_was_not_heard_for_the_whole_phase_was_dropped_whatever_its_own_timeout() -> None:
    """The rebalance timeout of a-1, from before the log, is not known. The phase lasted as long as that of the others."""
    story = Story().beats(["a-1", "b-1"], 1, 0, 9_000).at(9_000).id_issued("c-1").at(9_500).heartbeat("a-1", 1, 27)
    story.at(39_020).join("b-1", 2, "b-1", ["b-1", "c-1"], waited=29_000).join("c-1", 2, "b-1", waited=30_010)
    rows = story.at(39_030).sync("b-1", 2, {"b-1": ("t-1",), "c-1": ("t-2",)}).rows(until=90_000)
    assert ("a-1", "JOIN_TIMEOUT") in [(row["member_id"], row["end_kind"]) for row in table(rows, "member_sessions")]


def test_who_came_first_is_not_known_of_two_that_came_together() -> None:
    story = requested().at(15_000).id_issued("c-1").id_issued("d-1")
    story.at(18_000).join("a-1", 2, "a-1", ["a-1", "b-1", "c-1", "d-1"], waited=500).join("b-1", 2, "a-1", waited=400)
    story.join("c-1", 2, "a-1", waited=2_999).join("d-1", 2, "a-1", waited=2_996)
    given = {"a-1": ("t-0",), "b-1": ("t-1",), "c-1": (), "d-1": ()}
    assert told(story.at(18_010).sync("a-1", 2, given), "cause", "member_id", "started_at", number=1) == ("MEMBER_JOINED", None, 15_001)


@pytest.mark.parametrize(("left", "slowest"), [(20_100, None), (27_990, "b-1")])
def test_a_member_that_left_was_waited_for_if_the_join_phase_ended_then(left: int, slowest: str | None) -> None:
    story = logged(3).at(20_000).log_preparing(1, JOINED.format("d-1"), "d-1")
    story.at(left).log(kinds.MEMBER_LEFT, member_id="b-1", reason="the consumer is being closed")
    story.at(28_000).log_stabilized(2, 3).at(28_010).log_assignment(2, "a-1", 3)
    assert told(story, "slowest_member_id") == (slowest,)


def test_a_departure_that_is_told_twice_ended_one_membership() -> None:
    story = logged().at(20_000).log(kinds.MEMBER_LEFT, member_id="b-1", reason="the consumer is being closed")
    story.log_preparing(1, "explicit `LeaveGroup` request for (b-1) members.", "b-1").at(20_001).log(kinds.MEMBER_LEFT, member_id="b-1")
    rows = story.at(20_100).log_stabilized(2, 1).at(20_110).log_assignment(2, "a-1", 1).rows()
    assert [(row["member_id"], row["end_kind"]) for row in table(rows, "member_sessions")] == [("b-1", "LEFT")]


def test_a_member_that_asked_without_an_id_joined_though_the_leaders_list_has_it_first() -> None:
    """Coordinators before 2.1 give no reason and no count, and answer the leader first."""
    story = Story().at(0).log(kinds.PREPARING_REBALANCE, generation=0).at(3_000).log(kinds.STABILIZED, generation=1)
    story.at(3_001).join("a-1", 1, "a-1", ["a-1"], waited=3_001, asked_as="").log(kinds.ASSIGNMENT_RECEIVED, generation=1)
    story.at(20_000).log(kinds.PREPARING_REBALANCE, generation=1).at(20_500).log(kinds.STABILIZED, generation=2)
    story.at(20_501).join("a-1", 2, "a-1", ["a-1", "b-1"], waited=2)
    story.at(20_503).join("b-1", 2, "a-1", waited=503, asked_as="").log(kinds.ASSIGNMENT_RECEIVED, generation=2)
    assert told(story, "cause", "member_id", "joined", "members_after") == ("MEMBER_JOINED", "b-1", ["b-1"], 2)
