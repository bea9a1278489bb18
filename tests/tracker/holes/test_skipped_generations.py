"""Generations that no line has: what the group did meanwhile is not known, and is told as such."""

import json

import pytest

from coordinator_model import events as kinds
from coordinator_model.events import MemberEntry
from jobs.laws.laws import breaches
from tests.tracker.story import EXPIRED, JOINED, Story, table
from tests.tracker.test_lost_lines import logged, requested

DAY = 86_400_000


def holes(story: Story) -> list[tuple]:
    """First and last missing generation, when the hole begins, how long it is."""
    told = [row for row in table(story.rows(), "findings") if row["code"] == "LINES_MISSING"]
    details = [json.loads(row["details"]) for row in told]
    return [(d["first"], d["last"], row["occurred_at"], d["hole_ms"]) for row, d in zip(told, details, strict=True)]


def rebalances(story: Story, *columns: str) -> list[tuple]:
    """Columns of all rebalances. The rows break no law."""
    rows = story.rows()
    tables = {name: [row.values for row in rows if row.table == name] for name in {row.table for row in rows}}
    assert breaches(tables) == []
    return [tuple(row[column] for column in columns) for row in table(rows, "rebalances")]


def begun() -> Story:
    """c-1 comes to a-1 and b-1 at 20 s; the group is in generation 1."""
    return logged().at(20_000).log_preparing(1, JOINED.format("c-1"), "c-1")


def next_day(story: Story, old_generation: int, members: int = 3) -> Story:
    """A day later d-1 comes."""
    story.at(DAY).log_preparing(old_generation, JOINED.format("d-1"), "d-1")
    return story.at(DAY + 100).log_stabilized(old_generation + 1, members).at(DAY + 110).log_assignment(old_generation + 1, "d-1", members)


# what is told of a hole


def test_the_missing_generations_are_said_and_how_long_the_hole_is() -> None:
    assert holes(next_day(begun(), 33)) == [(3, 33, 20_000, DAY - 20_000)]  # that to generation 2 was running
    row = next(row for row in table(next_day(begun(), 33).rows(), "findings") if row["code"] == "LINES_MISSING")
    assert row["message"] == "Generations 3 to 33 are missing from these lines: what the group did for 24 h is not known."
    assert (row["severity"], row["generation"], row["member_id"]) == ("INFO", 1, None)
    assert [line["position"] for line in json.loads(row["evidence"])] == [6, 7]  # the last line before, and the first after


def test_one_generation_is_one() -> None:
    (row,) = [row for row in table(next_day(begun(), 3).rows(), "findings") if row["code"] == "LINES_MISSING"]
    assert row["message"].startswith("Generation 3 is missing from these lines")


def test_the_rebalance_that_ended_in_the_hole_has_no_duration() -> None:
    assert rebalances(next_day(begun(), 33), "generation", "outcome", "end_seen", "ended_at", "total_ms", "sync_ms", "members_after") == [
        (1, "COMPLETED", True, 3_010, 3_010, 10, 2),
        (None, "ABANDONED", False, 20_000, None, None, None),
        (34, "COMPLETED", True, DAY + 110, 110, 10, 3),
    ]


def test_so_it_is_of_one_whose_join_phase_had_ended() -> None:
    story = next_day(begun().at(21_000).log_stabilized(2, 3), 33)
    assert holes(story) == [(3, 33, 21_000, DAY - 21_000)]
    assert rebalances(story, "generation", "outcome", "end_seen", "join_ms", "total_ms")[1] == (2, "ABANDONED", False, 1_000, None)


def test_a_group_whose_last_member_had_gone_was_empty_at_first() -> None:
    story = logged().at(20_000).log_preparing(1, EXPIRED.format("b-1"), "b-1").log(kinds.MEMBER_FAILED, member_id="b-1")
    story = next_day(story.at(21_000).log(kinds.MEMBER_FAILED, member_id="a-1"), 33)
    assert holes(story) == [(3, 33, 20_000, DAY - 20_000)]
    assert rebalances(story, "generation", "outcome", "end_seen")[1] == (2, "EMPTIED", False)


def test_nobody_knows_who_is_there_and_who_has_what_after_a_hole() -> None:
    columns = "members_before", "members_after", "joined", "left", "left_unnamed", "joined_unnamed", "partitions_moved"
    assert rebalances(next_day(begun(), 33, members=2), *columns)[-1] == (None, 2, ["d-1"], [], 0, 0, None)
    assert [row for row in table(next_day(begun(), 33).rows(), "member_sessions") if row["ended_at"] < DAY] == []


def test_a_member_from_before_it_that_leaves_later_came_at_a_time_that_is_not_known() -> None:
    story = next_day(begun(), 33).at(DAY + 9_000).log(kinds.MEMBER_LEFT, member_id="a-1", reason="the consumer is being closed")
    story.log_preparing(34, "explicit `LeaveGroup` request for (a-1) members.", "a-1").at(DAY + 9_100).log_stabilized(35, 2)
    sessions = table(story.at(DAY + 9_110).log_assignment(35, "d-1", 2).rows(), "member_sessions")
    assert [(row["member_id"], row["joined_at"], row["end_kind"]) for row in sessions] == [("a-1", None, "LEFT")]


def test_a_hole_while_the_group_is_stable() -> None:
    assert holes(next_day(logged(), 33)) == [(2, 33, 3_010, DAY - 3_010)]
    assert [row[:1] for row in rebalances(next_day(logged(), 33), "generation")] == [(1,), (34,)]


def test_what_came_just_before_the_first_line_after_a_hole_belongs_to_it() -> None:
    story = logged().at(DAY).log(kinds.MEMBER_FAILED, member_id="x-1").at(DAY + 1).log_preparing(33, EXPIRED.format("x-1"), "x-1")
    story.at(DAY + 100).log_stabilized(34, 1).at(DAY + 110).log_assignment(34, "a-1", 1)
    assert rebalances(story, "cause", "member_id", "left")[-1] == ("SESSION_TIMEOUT", "x-1", ["x-1"])
    (finding,) = [row for row in table(story.rows(), "findings") if row["code"] == "SESSION_TIMEOUT"]
    assert finding["generation"] == 33


def test_a_session_that_ended_seconds_before_it_ended_before_the_hole() -> None:
    story = logged().at(DAY).log(kinds.MEMBER_FAILED, member_id="b-1")
    story.at(DAY + 5_000).log_preparing(33, JOINED.format("d-1"), "d-1").at(DAY + 5_100).log_stabilized(34, 2)
    (finding,) = [row for row in table(story.rows(), "findings") if row["code"] == "SESSION_TIMEOUT"]
    assert finding["generation"] == 1


def test_what_came_long_before_does_not() -> None:
    """b-1 was removed, and the line about the rebalance that this began is missing."""
    story = next_day(logged().at(20_000).log(kinds.MEMBER_FAILED, member_id="b-1"), 33)
    assert rebalances(story, "cause", "member_id", "left")[-1] == ("MEMBER_JOINED", "d-1", [])


def test_an_id_that_was_given_out_before_a_hole_is_no_member_after_it() -> None:
    story = next_day(logged().at(20_000).log(kinds.MEMBER_ID_ISSUED, member_id="y-1", state="Stable"), 33, members=4)
    assert rebalances(story, "joined")[-1] == (["d-1"],)


@pytest.mark.parametrize(
    ("kind", "generation", "last"),
    [
        (kinds.STABILIZED, 9, 8),
        (kinds.GROUP_EMPTY, 9, 8),
        (kinds.ASSIGNMENT_RECEIVED, 9, 8),
        (kinds.GROUP_LOADED, 9, 9),
        (kinds.GROUP_UNLOADED, 9, 9),
    ],
)
def test_any_line_that_names_a_generation_shows_a_hole(kind: str, generation: int, last: int) -> None:
    story = logged().at(60_000).log(kind, generation=generation)
    assert holes(story) == [(2, last, 3_010, 56_990)]
    rebalances(story)


def test_several_holes_are_several_rows() -> None:
    story = next_day(begun(), 33)
    story.at(2 * DAY).log(kinds.GROUP_EMPTY, generation=50)
    story.at(3 * DAY).log_preparing(53, JOINED.format("e-1"), "e-1").at(3 * DAY + 3_000).log_stabilized(54, 1)
    assert [hole[:2] for hole in holes(story)] == [(3, 33), (35, 49), (51, 53)]
    assert rebalances(story, "members_before", "total_ms")[-1] == (None, None)
    states = [
        f"{row['from_state']} > {row['to_state']}" for row in table(story.rows(), "group_transitions") if row["trigger"] == "LINES_MISSING"
    ]
    assert states[:2] == ["PreparingRebalance > Stable", "Empty > Stable"]  # it was empty before the last hole


# another broker


def test_another_broker_may_have_coordinated_the_group_meanwhile() -> None:
    story = next_day(begun().on("broker-3"), 33)
    assert holes(story) == [(3, 33, 20_000, DAY - 20_000)]
    assert rebalances(story, "outcome", "end_seen", "total_ms")[1] == ("ABANDONED", False, None)


@pytest.mark.parametrize(
    ("kind", "fields"), [(kinds.GROUP_LOADED, {"generation": 33, "member_count": 3}), (kinds.GROUP_LOADED, {"generation": 33})]
)
def test_so_it_says_when_it_reads_the_group_back(kind: str, fields: dict[str, int]) -> None:
    assert holes(begun().on("broker-3").at(DAY).log(kind, **fields)) == [(3, 33, 20_000, DAY - 20_000)]


@pytest.mark.parametrize(("at", "seen", "total"), [(40_000, True, 20_000), (DAY, False, None)])
def test_long_before_the_first_line_of_another_broker_nothing_shows_when_a_rebalance_ended(
    at: int, total: int | None, *, seen: bool
) -> None:
    story = begun().on("broker-3").at(at).log_preparing(1, JOINED.format("d-1"), "d-1")
    story.at(at + 100).log_stabilized(2, 3).at(at + 110).log_assignment(2, "a-1", 3)
    assert holes(story) == []
    assert rebalances(story, "end_seen", "total_ms")[1] == (seen, total)


# requests


def test_a_heartbeat_shows_it_where_more_than_one_generation_is_missing() -> None:
    """Generation 2 is that in which the group was empty: both members had fallen silent."""
    assert holes(requested().at(DAY).heartbeat("a-1", 9)) == [(3, 8, 22_999, DAY - 23_000)]
    assert holes(requested().at(DAY).heartbeat("a-1", 4)) == []  # it may have been empty again in generation 3
    assert holes(requested().at(DAY).heartbeat("a-1", 9, 27)) == [(3, 8, 22_999, DAY - 23_000)]


def test_a_join_shows_it_unless_others_had_asked_for_an_id() -> None:
    """One that goes before it joins may leave the group empty, once more each time: no request shows that."""
    joined = requested().at(DAY).join("c-1", 9, "c-1", ["c-1"], waited=2_900).at(DAY + 10).sync("c-1", 9, {"c-1": ("t-0",)})
    assert [hole[:2] for hole in holes(joined)] == [(3, 8)]
    assert rebalances(joined, "generation", "members_before", "partitions_moved")[-1] == (9, None, None)
    alone = Story().at(50).id_issued("a-1").at(3_000).join("a-1", 1, "a-1", ["a-1"], waited=2_900).sync("a-1", 1, {"a-1": ("t-0",)})
    alone.at(60_000).id_issued("b-1").at(120_000).id_issued("c-1")
    alone.at(123_000).join("c-1", 5, "c-1", ["c-1"], waited=2_900).sync("c-1", 5, {"c-1": ("t-0",)})
    assert holes(alone) == []


# what is no hole


def test_a_late_start_is_none() -> None:
    assert holes(Story().at(0).log_preparing(33, JOINED.format("d-1"), "d-1")) == []


def test_a_group_that_was_removed_begins_anew() -> None:
    story = next_day(logged().at(20_000).log(kinds.GROUP_EMPTY, generation=2).at(30_000).log(kinds.GROUP_DEAD, generation=2), 0, members=1)
    assert holes(story) == []
    late = next_day(logged().at(20_000).log(kinds.GROUP_EMPTY, generation=2).at(30_000).log(kinds.GROUP_DEAD, generation=2), 4, members=1)
    assert [hole[:2] for hole in holes(late)] == [(1, 4)]


def test_a_generation_that_was_not_stored_is_used_again() -> None:
    story = begun().at(21_000).log_stabilized(2, 3).at(22_000).on("broker-3").log(kinds.GROUP_LOADED, generation=1, member_count=2)
    story.at(30_000).log_preparing(1, JOINED.format("d-1"), "d-1").at(31_000).log_stabilized(2, 3)
    assert holes(story) == []


def test_a_departure_that_ends_a_generation_is_none() -> None:
    entry = MemberEntry("b-1", "", 0, "", None)
    story = begun().at(50_000).log(kinds.MEMBERS_NOT_REJOINED, members=(entry,)).log_stabilized(2, 2).at(50_010).log_assignment(2, "a-1", 2)
    assert holes(story) == []
