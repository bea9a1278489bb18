"""The request log and the coordinator's log of one broker: lines of one moment come in any order, and are one story."""

import pytest

from coordinator_model import events as kinds
from coordinator_model.errors import Error
from coordinator_model.view.settings import TrackerSettings
from tests.tracker.story import JOINED, Story, table


def both() -> Story:
    """a-1 (leader) and b-1, generation 1, told by both logs; heartbeats until 20 s."""
    story = Story()
    story.at(50).id_issued("a-1").id_issued("b-1")
    story.at(100).log_preparing(0, JOINED.format("a-1"), "a-1").log(kinds.MEMBER_ADDED, member_id="a-1", state="Empty")
    story.at(100).log(kinds.MEMBER_ADDED, member_id="b-1", state="PreparingRebalance")
    story.at(3_000).log_stabilized(1, 2).join("a-1", 1, "a-1", ["a-1", "b-1"], waited=2_900).join("b-1", 1, "a-1", waited=2_900)
    story.at(3_010).log_assignment(1, "a-1", 2).sync("a-1", 1, {"a-1": ("t-0",), "b-1": ("t-1",)}).sync("b-1", 1, {"b-1": ("t-1",)})
    return story.beats(["a-1", "b-1"], 1, 4_000, 20_000)


def second(story: Story, *newcomers: str) -> Story:
    """Generation 2, at 22 s."""
    everybody = ["a-1", "b-1", *newcomers]
    story.at(22_000).log_stabilized(2, len(everybody))
    for number, member in enumerate(everybody):
        story.at(22_000).join(member, 2, "a-1", () if number else everybody, waited=500)
    story.at(22_010).log_assignment(2, "a-1", len(everybody)).sync("a-1", 2, dict.fromkeys(everybody, ("t-0",)))
    for member in everybody[1:]:
        story.at(22_010).sync(member, 2, {member: ("t-0",)})
    return story.beats(everybody, 2, 24_000, 40_000)


def test_a_heartbeat_that_arrives_before_the_rebalance_and_waits_its_turn_does_not_begin_it() -> None:
    """It arrives at 20.000 s, waits 4 ms, and is told of the rebalance which the coordinator began at 20.003 s."""
    story = both().at(19_990).id_issued("c-1")
    story.at(20_004).heartbeat("b-1", 1, Error.REBALANCE_IN_PROGRESS, took=4)
    story.at(20_003).log_preparing(1, JOINED.format("c-1"), "c-1").log(kinds.MEMBER_ADDED, member_id="c-1", state="Stable")
    rows = second(story, "c-1").rows()
    row = table(rows, "rebalances")[1]
    assert (row["started_at"], row["cause"], row["member_id"], row["joined"]) == (20_003, "MEMBER_JOINED", "c-1", ["c-1"])
    assert row["reason"] == JOINED.format("c-1")
    begun = [t for t in table(rows, "group_transitions") if t["to_state"] == "PreparingRebalance"]
    assert [(t["occurred_at"], t["trigger"]) for t in begun] == [(100, "MEMBER_JOINED"), (20_003, "MEMBER_JOINED")]


@pytest.mark.parametrize("source", ["request", "coordinator"])
def test_the_line_that_hands_out_an_id_may_come_after_the_member_has_joined_with_it(source: str) -> None:
    """Client and broker on one host: all in one millisecond. c-1 is a member then, and its LeaveGroup is that of a member."""
    story = both().at(20_003).log_preparing(1, JOINED.format("c-1"), "c-1").log(kinds.MEMBER_ADDED, member_id="c-1", state="Stable")
    if source == "request":
        story.id_issued("c-1")
    else:
        story.log(kinds.MEMBER_ID_ISSUED, member_id="c-1", state="Stable")
    second(story, "c-1")
    story.at(40_500).leave("c-1", "the consumer is being closed")
    sessions = table(story.rows(), "member_sessions")
    assert [(s["member_id"], s["joined_at"], s["end_kind"]) for s in sessions] == [("c-1", 20_003, "LEFT")]


def test_a_heartbeat_in_the_millisecond_in_which_the_phase_ends_begins_no_other() -> None:
    """b-1 is told to rejoin, does, and is the last: the phase ends, all within 22.000 s. From requests alone."""
    story = Story()
    story.events = [event for event in both().events if event.source == "request"]
    story.at(19_990).id_issued("c-1")
    story.at(22_000).heartbeat("b-1", 1, Error.REBALANCE_IN_PROGRESS, took=0)
    second(story, "c-1")
    story.events = [event for event in story.events if event.source == "request"]
    rows = table(story.rows(), "rebalances")
    assert [(row["generation"], row["outcome"], row["joined_at"]) for row in rows] == [(1, "COMPLETED", 3_000), (2, "COMPLETED", 22_000)]


@pytest.mark.parametrize("evidence", ["request log", "both logs"])
def test_a_commit_between_join_and_sync_is_refused_and_begins_no_rebalance(evidence: str) -> None:
    """CompletingRebalance answers commits with REBALANCE_IN_PROGRESS: whether the member still owns the partition is being decided."""
    story = both().at(19_990).id_issued("c-1")
    story.at(20_003).log_preparing(1, JOINED.format("c-1"), "c-1").log(kinds.MEMBER_ADDED, member_id="c-1", state="Stable")
    second(story, "c-1").at(22_005).commit("b-1", 2, Error.REBALANCE_IN_PROGRESS)
    if evidence == "request log":
        story.events = [event for event in story.events if event.source == "request"]
    rows = story.rows()
    assert [(row["generation"], row["outcome"]) for row in table(rows, "rebalances")] == [(1, "COMPLETED"), (2, "COMPLETED")]
    assert "MODEL_DIVERGENCE" not in [row["code"] for row in table(rows, "findings")]


def test_a_sync_that_is_sent_back_begins_the_next_rebalance_where_no_line_does() -> None:
    """c-1 joins while the leader computes: those who wait for their assignment are sent back to join."""
    story = Story()
    story.events = [event for event in both().events if event.source == "request"]
    story.at(20_000).request(kinds.JOIN_GROUP, "", error_code=Error.MEMBER_ID_REQUIRED, answer_member_id="c-1")
    story.at(21_000).join("a-1", 2, "a-1", ["a-1", "b-1"], waited=900).join("b-1", 2, "a-1", waited=800)
    story.at(21_500).request(kinds.SYNC_GROUP, "b-1", took=450, generation=2, error_code=Error.REBALANCE_IN_PROGRESS)
    story.at(22_000).join("a-1", 3, "a-1", ["a-1", "b-1", "c-1"], waited=400).join("b-1", 3, "a-1", waited=400)
    story.join("c-1", 3, "a-1", waited=500)
    story.at(22_010).sync("a-1", 3, {"a-1": ("t-0",), "b-1": ("t-1",), "c-1": ()})
    rows = table(story.rows(), "rebalances")
    assert [(row["generation"], row["outcome"], row["started_at"]) for row in rows][1:] == [
        (2, "SUPERSEDED", 20_100),
        (3, "COMPLETED", 21_500),
    ]


def test_what_an_administrator_tool_adds_to_a_log_is_passed_over() -> None:
    """Lines that are known and change nothing: about a member's metadata, a static member that keeps its place."""
    story = both()
    usual = story.rows()
    for kind in (kinds.STATIC_MEMBER_KEPT, kinds.COORDINATOR_NOTE):
        story.at(10_000).log(kind, member_id="b-1", reason="words")
    assert story.rows() == usual


def test_settings_are_times_that_pass() -> None:
    with pytest.raises(ValueError, match="grace_ms must not be negative, got -1"):
        TrackerSettings(grace_ms=-1)
    with pytest.raises(ValueError, match="not a Kafka release"):
        TrackerSettings(kafka_version="newest")


# Members come and go in the millisecond in which a join phase ends and the next rebalance begins. The count at the end of the phase and the
# reason of the next one show who was there.

LEFT = "Removing member {} on LeaveGroup; client reason: the consumer is being closed"
D_JOINED, B_LEFT = (JOINED.format("d-1"), "d-1"), (LEFT.format("b-1"), "b-1")
NOBODY_NAMED = (LEFT.format("b-1"), "")  # as Kafka 4 does, where a member left


def told(came: str, went: str, count: int, began: tuple[str, str], *, assigned: bool = False, late: str = "") -> list[tuple[object, ...]]:
    """c-1 has joined a-1 and b-1. `came`, `went`: who else did in the millisecond in which the phase ended with `count` members.

    `late`: that this member left is logged in the next millisecond.
    """
    story = Story().at(0).log_preparing(0, JOINED.format("a-1"), "a-1").log(kinds.MEMBER_ADDED, member_id="a-1", state="Empty")
    story.at(100).log(kinds.MEMBER_ADDED, member_id="b-1", state="PreparingRebalance")
    story.at(3_000).log_stabilized(1, 2).at(3_010).log_assignment(1, "a-1", 2)
    story.at(10_000).log_preparing(1, JOINED.format("c-1"), "c-1").log(kinds.MEMBER_ADDED, member_id="c-1", state="PreparingRebalance")
    story.at(12_000).log_stabilized(2, count)
    if assigned:
        story.log_assignment(2, "a-1", count)
    for member in came.split():
        story.log(kinds.MEMBER_ADDED, member_id=member, state="CompletingRebalance")
    for member in went.split():
        story.log(kinds.MEMBER_LEFT, member_id=member, reason="the consumer is being closed")
    story.log_preparing(2, *began)
    if late:
        story.at(12_001).log(kinds.MEMBER_LEFT, member_id=late, reason="the consumer is being closed")
    last = 3 + len(came.split()) - len(f"{went} {late}".split())
    story.at(15_000).log_stabilized(3, last).at(15_010).log_assignment(3, "a-1", last)
    rows = table(story.rows(), "rebalances")[1:]
    assert all(row["joined_unnamed"] == row["left_unnamed"] == 0 for row in rows)
    return [(" ".join(row["joined"]), " ".join(row["left"]), row["members_before"], row["members_after"]) for row in rows]


@pytest.mark.parametrize("assigned", [False, True])
@pytest.mark.parametrize(
    ("came", "went", "count", "began", "second", "third"),
    [
        pytest.param("d-1", "", 3, D_JOINED, ("c-1", "", 2, 3), ("d-1", "", 3, 4), id="the one that is named came after the end"),
        pytest.param("d-1 e-1", "", 3, D_JOINED, ("c-1", "", 2, 3), ("d-1 e-1", "", 3, 5), id="so did the other, by the count"),
        pytest.param("d-1 e-1", "", 4, D_JOINED, ("c-1 e-1", "", 2, 4), ("d-1", "", 4, 5), id="the other came before"),
        pytest.param("d-1", "b-1", 3, D_JOINED, ("c-1", "", 2, 3), ("d-1", "b-1", 3, 3), id="one more was counted: it left after"),
        pytest.param("d-1", "b-1", 2, D_JOINED, ("c-1", "b-1", 2, 2), ("d-1", "", 2, 3), id="it was not counted: it left before"),
        pytest.param("", "b-1", 3, B_LEFT, ("c-1", "", 2, 3), ("", "b-1", 3, 2), id="the one that is named left after the end"),
        pytest.param("", "c-1", 3, (LEFT.format("c-1"), "c-1"), ("c-1", "", 2, 3), ("", "c-1", 3, 2), id="it had just come"),
        pytest.param("d-1", "b-1", 3, B_LEFT, ("c-1", "", 2, 3), ("d-1", "b-1", 3, 3), id="it was counted, and one that came was not"),
        pytest.param("d-1", "b-1", 3, NOBODY_NAMED, ("c-1", "", 2, 3), ("d-1", "b-1", 3, 3), id="only one can have left"),
        pytest.param("d-1", "b-1", 4, B_LEFT, ("c-1 d-1", "", 2, 4), ("", "b-1", 4, 3), id="it was counted, and so was one that came"),
    ],
)
def test_who_came_and_went_before_the_end_of_the_phase_and_who_after(
    came: str, went: str, count: int, began: tuple[str, str], second: tuple[object, ...], third: tuple[object, ...], *, assigned: bool
) -> None:
    assert told(came, went, count, began, assigned=assigned) == [second, third]


def test_a_member_that_began_the_next_rebalance_and_is_said_to_have_left_a_moment_later_is_not_mistaken_for_another() -> None:
    """Scala writes that a member left after what followed from it. b-1 had left before it, and so ended the join phase."""
    c_left = (LEFT.format("c-1"), "c-1")
    assert told("", "b-1", 2, c_left, late="c-1") == [("c-1", "b-1", 2, 2), ("", "c-1", 2, 1)]
