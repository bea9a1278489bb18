"""Rare turns of groups of the classic protocol: requests that cross a departure, two departures of one member, replacements."""

import pytest

from coordinator_model import events as kinds
from coordinator_model.diagnosis import causes, cost, incidents
from coordinator_model.errors import Error
from coordinator_model.states import State
from coordinator_model.tracker.group import GroupTracker
from coordinator_model.tracker.quiet import resting
from coordinator_model.view.outcomes import SUPERSEDED
from coordinator_model.view.rebalance import Rebalance
from coordinator_model.view.settings import TrackerSettings
from coordinator_model.view.view import View
from tests.tracker.quiet.test_forgetting import clock
from tests.tracker.story import JOINED, START_MS, Story, play, table
from tests.tracker.test_clean_up import cleaned, emptied, ends
from tests.tracker.test_static_members import Static, first, instance
from tests.tracker.transcripts.test_request_transcripts import stable_group

LEFT = "Removing member {} on LeaveGroup; client reason: the consumer is being closed"
UNAVAILABLE = Error.COORDINATOR_NOT_AVAILABLE


def rebalances(story: Story, *columns: str) -> list[tuple[object, ...]]:
    return [tuple(row[column] for column in columns) for row in table(story.rows(until=90_000), "rebalances")[1:]]


def sessions(story: Story) -> list[tuple[object, ...]]:
    return [(row["member_id"], row["end_kind"], row["ended_at"]) for row in table(story.rows(until=90_000), "member_sessions")]


# requests


@pytest.mark.parametrize("api", ["heartbeat", "sync"])
def test_a_request_that_is_logged_after_the_departure_of_its_member_does_not_bring_it_back(api: str) -> None:
    """It was received before, or in that millisecond."""
    story = stable_group().beats(["a-1", "b-1"], 1, 4_000, 20_000).at(20_004)
    story.log(kinds.MEMBER_LEFT, member_id="b-1", reason="the consumer is being closed")
    story.log_preparing(1, LEFT.format("b-1"), "b-1").leave("b-1", "the consumer is being closed", took=0)
    if api == "heartbeat":
        story.heartbeat("b-1", 1, took=0)
    else:
        story.at(20_006).sync("b-1", 1, took=5)
    story.at(22_000).heartbeat("a-1", 1, Error.REBALANCE_IN_PROGRESS).at(22_010).log_stabilized(2, 1).join("a-1", 2, "a-1", ["a-1"])
    story.at(22_015).log_assignment(2, "a-1", 1).sync("a-1", 2, {"a-1": ("t-0",)}).beats(["a-1"], 2, 24_000, 90_000)
    assert rebalances(story, "cause", "left", "members_after") == [("MEMBER_LEFT", ["b-1"], 1)]
    assert sessions(story) == [("b-1", "LEFT", 20_004)]


@pytest.mark.parametrize("request_of", ["nobody", "an old generation", "a join"])
def test_a_write_that_timed_out_renews_no_session_but_that_of_a_member(request_of: str) -> None:
    story = stable_group().beats(["a-1", "b-1"], 1, 4_000, 90_000)
    usual = story.rows(until=90_000)
    story.at(30_500)
    if request_of == "nobody":
        story.heartbeat("z-1", 1, UNAVAILABLE, took=5_001)
    elif request_of == "an old generation":
        story.heartbeat("b-1", 0, UNAVAILABLE, took=5_001)
    else:
        story.join("b-1", -1, "", waited=5_001, error_code=UNAVAILABLE)
    assert table(story.rows(until=90_000), "member_sessions") == table(usual, "member_sessions") == []


def test_a_generation_without_members_is_not_made_up_while_one_of_them_is_heard() -> None:
    """The log lacks generation 2. b-1 was silent for its session of 10 s, a-1 was not."""
    story = stable_group().beats(["a-1", "b-1"], 1, 4_000, 12_000).beats(["a-1"], 1, 13_000, 27_000)
    story.at(27_000).join("a-1", 3, "a-1", ["a-1"]).at(27_010).sync("a-1", 3, {"a-1": ("t-0",)}).beats(["a-1"], 3, 28_000, 90_000)
    assert all(outcome != "EMPTIED" for (outcome,) in rebalances(story, "outcome"))


def test_a_static_member_that_comes_back_after_its_session_replaces_nobody() -> None:
    """Only the request log tells. The session of b-1 has ended, and nobody has been told to rejoin."""
    story = Static()
    first(story, "a-1", "b-1").beat(("b-1",), 1, 4_000, 8_000).beat(("a-1",), 1, 4_000, 19_000)
    story.at(19_500).joins("b-2", 2, "a-1", asked_as="", waited=100).joins("a-1", 2, "a-1", ("a-1", "b-2"), waited=50)
    story.at(19_600).all_sync(2, {"a-1": ("t-0",), "b-2": ("t-1",)}).beat(("a-1", "b-2"), 2, 22_000, 90_000)
    assert [one[:2] for one in sessions(story)] == [("b-1", "SESSION_TIMEOUT")]


def test_where_requests_are_seen_they_tell_who_is_fenced() -> None:
    """The coordinator's line names no member in some releases."""
    story = stable_group().beats(["a-1", "b-1"], 1, 4_000, 20_000).at(20_000).log(kinds.INSTANCE_FENCED, instance_id="i-b")
    story.heartbeat("b-0", 1, Error.FENCED_INSTANCE_ID, instance_id="i-b")
    told = [row for row in table(story.rows(), "findings") if row["code"] == "FENCED_INSTANCE"]
    assert [(row["member_id"], row["client_id"]) for row in told] == [("b-0", "b")]


# who comes and who goes


def logged(count: int) -> Story:
    """a-1 and b-1. c-1 joins. The join phase ends at 12,000 with so many members."""
    story = Story().at(0).log_preparing(0, JOINED.format("a-1"), "a-1").log(kinds.MEMBER_ADDED, member_id="a-1", state="Empty")
    story.at(100).log(kinds.MEMBER_ADDED, member_id="b-1", state="PreparingRebalance")
    story.at(3_000).log_stabilized(1, 2).at(3_010).log_assignment(1, "a-1", 2)
    story.at(10_000).log_preparing(1, JOINED.format("c-1"), "c-1").log(kinds.MEMBER_ADDED, member_id="c-1", state="PreparingRebalance")
    return story.at(12_000).log_stabilized(2, count)


def test_a_departure_that_is_logged_after_the_phase_that_it_ended_belongs_to_that() -> None:
    story = logged(2).at(12_001).log(kinds.MEMBER_FAILED, member_id="b-1").at(12_020).log_assignment(2, "a-1", 2)
    assert rebalances(story, "joined", "left", "members_before", "members_after", "left_unnamed") == [(["c-1"], ["b-1"], 2, 2, 0)]


def test_a_member_that_comes_and_goes_between_two_rebalances_is_in_none() -> None:
    story = logged(3).at(12_010).log_assignment(2, "a-1", 3)
    story.at(20_000).log(kinds.MEMBER_ADDED, member_id="d-1", state="Stable").at(20_500).log(kinds.MEMBER_FAILED, member_id="d-1")
    story.at(21_000).log_preparing(2, LEFT.format("b-1"), "b-1").log(kinds.MEMBER_LEFT, member_id="b-1").at(22_000).log_stabilized(3, 2)
    story.at(22_010).log_assignment(3, "a-1", 2)
    assert rebalances(story, "joined", "left")[-1] == ([], ["b-1"])


@pytest.mark.parametrize("begun", [True, False])
def test_a_member_that_is_said_to_go_twice_goes_once(*, begun: bool) -> None:
    """The line that it came back is lost, but a heartbeat shows it."""
    story = logged(3).at(12_010).log_assignment(2, "a-1", 3).at(20_000)
    if begun:
        story.log_preparing(2, LEFT.format("b-1"), "b-1")
    story.log(kinds.MEMBER_LEFT, member_id="b-1").at(20_300).heartbeat("b-1", 2).at(20_500).log(kinds.MEMBER_LEFT, member_id="b-1")
    if not begun:
        story.log_preparing(2, LEFT.format("b-1"), "b-1")
    story.at(22_000).log_stabilized(3, 2).at(22_010).log_assignment(3, "a-1", 2)
    assert rebalances(story, "joined", "left", "members_after")[-1] == ([], ["b-1"], 2)


def test_a_member_that_comes_and_is_replaced_within_a_join_phase_came_under_its_new_id() -> None:
    story = logged(3).at(12_010).log_assignment(2, "a-1", 3).at(20_000).log_preparing(2, JOINED.format("d-1"), "d-1")
    story.log(kinds.MEMBER_ADDED, member_id="d-1", state="PreparingRebalance", **instance("d-1"))
    story.at(20_500).log(kinds.STATIC_MEMBER_REPLACED, member_id="d-1", answer_member_id="d-2", **instance("d-1"))
    story.at(22_000).log_stabilized(3, 4).at(22_010).log_assignment(3, "a-1", 4)
    assert rebalances(story, "joined", "left", "members_after")[-1] == (["d-2"], [], 4)


def test_a_replacement_that_has_its_partitions_already_keeps_them() -> None:
    """The answer to its JoinGroup is logged after that to its SyncGroup."""
    story = Static()
    first(story, "a-1", "b-1").beat(("a-1", "b-1"), 1, 4_000, 20_000)
    story.at(20_000).sync("b-2", 1, {"b-2": ("t-1",)}, **instance("b-2")).at(20_001).joins("b-2", 1, "a-1", waited=3)
    story.beat(("a-1", "b-2"), 1, 21_000, 90_000)
    assert [one[:2] for one in sessions(story)] == [("b-1", "REPLACED")]


def many_come_and_go(story: Story, since: int, state: str = "Stable") -> Story:
    """So many that who went before is forgotten."""
    for number in range(70):
        story.at(since + 1_000 * number).log(kinds.MEMBER_ADDED, member_id=f"d-{number}", state=state)
        story.at(since + 1_000 * number + 500).log(kinds.MEMBER_FAILED, member_id=f"d-{number}")
    return story.at(since + 70_000)


@pytest.mark.parametrize(("begun", "again"), [(True, True), (False, True), (False, False)])
def test_a_departure_long_before_counts_once_though_it_may_be_told_again(*, begun: bool, again: bool) -> None:
    story = logged(3).at(12_010).log_assignment(2, "a-1", 3).at(20_000)
    if begun:
        story.log_preparing(2, LEFT.format("b-1"), "b-1")
    many_come_and_go(story.log(kinds.MEMBER_LEFT, member_id="b-1"), 21_000, "PreparingRebalance" if begun else "Stable")
    if again:
        story.log(kinds.MEMBER_LEFT, member_id="b-1")
    if not begun:
        story.log_preparing(2, LEFT.format("b-1"), "b-1")
    story.at(92_000).log_stabilized(3, 2).at(92_010).log_assignment(3, "a-1", 2)
    assert rebalances(story, "joined", "left")[-1] == ([], ["b-1"])


def test_a_member_that_one_heartbeat_alone_shows_is_not_in_a_group_that_is_read_back() -> None:
    """The heartbeat may be damaged. Of others a coordinator's loading would end the membership."""
    story = logged(3).at(12_010).log_assignment(2, "a-1", 3).at(20_000).heartbeat("z-1", 2)
    story.at(30_000).log(kinds.GROUP_UNLOADED, generation=2).on("broker-2").at(31_000).log(kinds.GROUP_LOADED, member_count=3)
    assert sessions(story) == []


# parts


def test_an_owner_that_keeps_a_partition_has_not_given_it_up_when_the_next_rebalance_begins() -> None:
    """It has rejoined, as members of a cooperative group do, and names what it keeps."""
    running = Rebalance(0, exact=True, from_state=State.STABLE, old_generation=1)
    running.outcome, running.ended_ms, running.joins = SUPERSEDED, 1_000, {"a-1": 400}
    running.owned_before, running.kept = {"t-0": "a-1", "t-1": "a-1"}, {"a-1": ("t-0",)}
    assert cost.of(running).unavailable_ms == 600


def test_trouble_long_after_other_trouble_is_another_one() -> None:
    g = GroupTracker(View("orders", broker="broker-1"), TrackerSettings())
    story = Story().at(10_000).heartbeat("a-1", 1, took=2_500).at(100_000).heartbeat("a-1", 1, took=2_500)
    began = []
    for event in story.events:
        incidents.watch(g, event)
        assert g.view.incident is not None
        began.append(g.view.incident.began_ms - START_MS)
    assert began == [10_000, 100_000]


def test_a_group_at_rest_may_be_the_one_whose_offsets_expired() -> None:
    """The line names its partition. Other groups rest beside it, and elsewhere, whose partition is another one."""
    group = cleaned(emptied(), 10_000_000)
    (line,) = [event for event in group.events if event.kind == kinds.GROUPS_CLEANED]
    before = [event for event in group.events if event is not line]
    beside, elsewhere = (
        next(name for name in map("other-{}".format, range(1_000)) if (resting._number(name) == resting._number(group.group)) is same)
        for same in (True, False)
    )
    others = [event._replace(group_id=name, coordinator_partition=6) for name in (beside, elsewhere) for event in before]
    rows = play([[*before, *others, *group.heard(100_000)], [clock(9_000_000)], [line, clock(10_060_000)]], snapshot=True)
    assert ends(rows) == [(10_000_000, "OFFSETS_EXPIRED")]


def test_a_start_that_the_specification_has_too_early_is_not_taken() -> None:
    """The broker handled requests that arrived together in another order: the generation was not there yet."""
    g = GroupTracker(View("orders"), TrackerSettings())
    g.view.prediction.starts, g.view.made = {1: (START_MS + 5, "NEW_MEMBER", "d-1")}, [(START_MS + 10, 1)]
    running = Rebalance(START_MS + 20, exact=False, from_state=State.STABLE, old_generation=1)
    assert causes.with_start(g, running) == running


def test_who_asked_before_the_last_member_was_gone_begins_the_next_rebalance_only_afterwards() -> None:
    """The coordinator handles its JoinGroup after the LeaveGroup that empties the group."""
    story = Story().at(3_000).join("a-1", 1, "a-1", ["a-1"], waited=2_990).sync("a-1", 1, {"a-1": ("t-0",)})
    story.beats(["a-1"], 1, 4_000, 20_000).at(20_000).leave("a-1")
    story.at(23_000).join("b-1", 3, "b-1", ["b-1"], waited=3_004).sync("b-1", 3, {"b-1": ("t-0",)}).beats(["b-1"], 3, 24_000, 60_000)
    emptied, begun = table(story.rows(), "rebalances")[-2:]
    assert (emptied["outcome"], emptied["ended_at"], begun["started_at"]) == ("EMPTIED", 19_999, 19_999)
