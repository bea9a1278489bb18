"""What is told of a group that changes its protocol while it has members (KIP-848), by transcripts as in tests/data/staged."""

import json

import pytest

from coordinator_model import events as kinds
from coordinator_model.errors import Error
from tests.tracker.consumer.consumer_story import ConsumerStory, told

WHAT = ("group_protocol", "generation", "started_at", "outcome", "cause", "member_id", "members_before", "members_after")
STATES = ("occurred_at", "from_state", "to_state", "generation", "trigger")
DOWNGRADE = "Downgrade group orders from consumer to classic for member leaving."
ALL, HALF = ("t-0", "t-1"), ("t-0",)
TOPICS = ("orders",)


def classic():
    """A classic group with one member."""
    story = ConsumerStory().at(0)
    story.join("a-1", 1, "a-1", ("a-1",), waited=3_000)
    story.at(5).sync("a-1", 1, {"a-1": ("orders-0", "orders-1")})
    return story.beats(["a-1"], 1, 3_000, 20_000)


def mixed(*, logged=True):
    """A member of the consumer protocol has joined it; the classic one has taken that in."""
    story = classic().at(20_000)
    story = story.log(kinds.GROUP_CONVERTED, state="consumer").joins("b-1", 2) if logged else story
    story.at(20_005).beat("b-1", 0, 2, (), TOPICS)
    story.at(21_000).join("a-1", 2, "", waited=1)
    return story.at(23_000).beat("b-1", 2, 2, HALF).at(26_000).beat("b-1", 2, 2)


def back(tells=kinds.DEPARTED, *, logged=True):
    """The member of the consumer protocol has gone again, and the classic one has rejoined."""
    story = mixed(logged=logged).at(30_000)
    if logged:
        story.line(tells, "b-1").at(30_002).log_preparing(2, DOWNGRADE).log(kinds.GROUP_CONVERTED, state="classic")
    if tells == kinds.DEPARTED:
        story.at(30_004).beat("b-1", -1, -1, took=5)
    story.at(31_000).heartbeat("a-1", 2, Error.REBALANCE_IN_PROGRESS)
    story.at(31_010).join("a-1", 3, "a-1", ("a-1",), waited=8)
    story = story.at(31_010).log_stabilized(3, 1) if logged else story
    story = story.at(31_020).log_assignment(3, "a-1", 1) if logged else story
    story.at(31_021).sync("a-1", 3, {"a-1": ("orders-0", "orders-1")})
    return story.beats(["a-1"], 3, 34_000, 60_000)


@pytest.mark.parametrize(("logged", "at_ms"), [(True, 20_000), (False, 20_005)])
def test_a_group_that_becomes_a_consumer_group_keeps_its_members(logged, at_ms):
    rows = mixed(logged=logged).rows()
    last = told(rows, "rebalances", *WHAT)[-1]
    assert last == ("consumer", 2, at_ms, "COMPLETED", "MEMBER_JOINED", "b-1", 1, 2)
    assert told(rows, "member_sessions", "member_id") == []


def test_the_change_of_protocol_is_a_change_of_state():
    rows = mixed().rows()
    assert told(rows, "group_transitions", *STATES)[-3:] == [
        (20_000, "Stable", "Stable", 1, "CONVERTED_TO_CONSUMER"),
        (20_000, "Stable", "Reconciling", 2, "MEMBER_JOINED"),
        (23_000, "Reconciling", "Stable", 2, "ALL_MEMBERS_RECONCILED"),  # b-1 has what a-1 gave up at 21 s
    ]


def test_a_classic_rebalance_that_is_cut_off_ends_without_a_result():
    story = classic().at(19_000).log_preparing(1, "explicit `LeaveGroup` request for (c-1) members.", "c-1").at(20_000)
    rows = story.log(kinds.GROUP_CONVERTED, state="consumer").joins("b-1", 2).at(20_005).beat("b-1", 0, 2, (), TOPICS).rows()
    assert [row[3] for row in told(rows, "rebalances", *WHAT)[1:]] == ["ABANDONED"]
    assert (20_000, "PreparingRebalance", "Stable", 1, "CONVERTED_TO_CONSUMER") in told(rows, "group_transitions", *STATES)


@pytest.mark.parametrize("tells", [kinds.DEPARTED, kinds.EXPIRED, kinds.STUCK])
def test_the_last_consumer_that_goes_begins_a_classic_rebalance(tells):
    cause, end = {
        kinds.DEPARTED: ("MEMBER_LEFT", "LEFT"),
        kinds.EXPIRED: ("SESSION_TIMEOUT", "SESSION_TIMEOUT"),
        kinds.STUCK: ("REBALANCE_TIMEOUT", "REBALANCE_TIMEOUT"),
    }[tells]
    rows = back(tells).rows()
    assert told(rows, "rebalances", *WHAT)[2:] == [("classic", 3, 30_002, "COMPLETED", cause, "b-1", 2, 1)]
    assert told(rows, "rebalances", "client_id", "joined", "left")[2] == ("b", [], ["b-1"])
    assert told(rows, "member_sessions", "member_id", "joined_at", "ended_at", "end_kind") == [("b-1", 20_000, 30_000, end)]
    assert told(rows, "group_transitions", *STATES)[-4:-2] == [
        (30_002, "Stable", "Stable", 2, "CONVERTED_TO_CLASSIC"),
        (30_002, "Stable", "PreparingRebalance", 2, cause),
    ]


def test_requests_alone_show_that_the_group_is_classic_again():
    rows = back(logged=False).rows()
    assert told(rows, "rebalances", *WHAT)[2:] == [("classic", 3, 30_004, "COMPLETED", "MEMBER_LEFT", "b-1", 2, 1)]
    assert told(rows, "member_sessions", "member_id", "end_kind") == [("b-1", "LEFT")]
    assert (30_004, "Stable", "Stable", 2, "CONVERTED_TO_CLASSIC") in told(rows, "group_transitions", *STATES)


def test_requests_alone_show_that_the_last_consumer_fell_silent():
    story = mixed(logged=False).at(29_000).beat("b-1", 2, 2).at(45_000).join("a-1", 3, "a-1", ("a-1",), waited=8)
    rows = story.at(45_010).sync("a-1", 3, {"a-1": ("orders-0", "orders-1")}).rows()
    assert told(rows, "rebalances", *WHAT)[2][3:] == ("COMPLETED", "SESSION_TIMEOUT", "b-1", 2, 1)


def test_what_moved_as_the_names_of_partitions_changed_is_not_known():
    rows = back().rows()
    assert told(rows, "rebalances", "partitions", "partitions_moved", "unavailable_partition_ms")[2] == (2, None, None)
    story = back().at(70_000).log_preparing(3, "Adding new member c-1 with group instance id null", "c-1").join("c-1", 4, "a-1", waited=1)
    story.at(70_010).join("a-1", 4, "a-1", ("a-1", "c-1"), waited=5).log_stabilized(4, 2).at(70_020).log_assignment(4, "a-1", 2)
    story.at(70_021).sync("a-1", 4, {"a-1": ("orders-0",), "c-1": ("orders-1",)})
    assert told(story.rows(), "rebalances", "partitions", "partitions_moved")[3] == (2, 1)


def test_an_answer_to_a_classic_member_of_before_proves_nothing():
    """It was on its way when the group became a consumer group."""
    story = classic().at(20_000).log(kinds.GROUP_CONVERTED, state="consumer").joins("b-1", 2)
    story.at(20_001).join("a-1", 1, "a-1", ("a-1",), waited=10).at(20_005).beat("b-1", 0, 2, (), TOPICS)
    rows = story.at(21_000).join("a-1", 2, "", waited=1).at(25_000).beat("b-1", 2, 2).rows()
    assert [row[0] for row in told(rows, "rebalances", *WHAT)] == ["classic", "consumer"]


def test_an_episode_that_is_cut_off_ends_without_a_result():
    """Both leave at once: the first departure raised the epoch, the second one made the group classic."""
    story = mixed().at(27_000).joins("c-1", 3).at(27_005).beat("c-1", 0, 3, (), TOPICS).at(29_000).line(kinds.DEPARTED, "c-1").raised(4)
    story.at(29_500).line(kinds.DEPARTED, "b-1").at(29_502).log_preparing(4, DOWNGRADE).log(kinds.GROUP_CONVERTED, state="classic")
    rows = story.at(31_010).log_stabilized(5, 1).at(31_020).log_assignment(5, "a-1", 1).rows()
    assert told(rows, "rebalances", *WHAT)[2:] == [
        ("consumer", 4, 27_000, "ABANDONED", "MEMBER_JOINED", "c-1", 2, 2),
        ("classic", 5, 29_502, "COMPLETED", "MEMBER_LEFT", "b-1", 2, 1),
    ]
    assert (29_502, "Reconciling", "Stable", 4, "CONVERTED_TO_CLASSIC") in told(rows, "group_transitions", *STATES)


def test_an_empty_group_changes_its_protocol_too():
    story = ConsumerStory().at(0).joins("a-1", 1).at(5).beat("a-1", 0, 1, ALL, TOPICS).at(9_000).line(kinds.DEPARTED, "a-1").raised(2)
    joins = "Adding new member b-1 with group instance id null"
    story.at(20_000).log(kinds.GROUP_CONVERTED, state="classic").log_preparing(0, joins, "b-1")
    rows = story.at(21_000).log_stabilized(1, 1).at(21_010).log_assignment(1, "b-1", 1).rows()
    assert told(rows, "rebalances", *WHAT)[2:] == [("classic", 1, 20_000, "COMPLETED", "MEMBER_JOINED", "b-1", 0, 1)]
    assert (20_000, "Empty", "Empty", 2, "CONVERTED_TO_CLASSIC") in told(rows, "group_transitions", *STATES)


def test_a_static_member_that_comes_back_with_the_other_protocol_is_the_same_member():
    story = ConsumerStory().at(0).joins("a-1", 1, instance_id="i").at(5).beat("a-1", 0, 1, ALL, TOPICS, instance_id="i")
    story.at(3_000).joins("b-1", 2).at(3_005).beat("b-1", 0, 2, (), TOPICS).at(5_000).beat("a-1", 1, 2, HALF, instance_id="i")
    story.at(6_000).beat("b-1", 2, 2, ("t-1",))
    story.at(20_000).beat("a-1", -2, -2, instance_id="i").at(22_000).join("a-2", 2, "", asked_as="", instance_id="i", waited=1)
    rows = story.at(30_000).beat("b-1", 2, 2).rows()
    assert told(rows, "member_sessions", "member_id", "end_kind", "ended_at") == [("a-1", "REPLACED", 21_999)]
    assert len(told(rows, "rebalances")) == 2


def test_a_classic_member_that_takes_what_the_others_gave_up_ends_the_rebalance():
    """It is told topics by name, the others by id: only how many it takes can be compared. Nobody waits for others."""
    story = ConsumerStory().at(0).joins("a-1", 1).at(5).beat("a-1", 0, 1, ("t-0", "t-1", "t-2"), TOPICS)
    story.at(1_000).joins("b-1", 2).at(1_005).beat("b-1", 0, 2, ("t-3", "t-4", "t-5"), TOPICS).at(2_000).beat("a-1", 1, 2)
    story.at(10_000).line(kinds.JOINED, "c-1", reason="Member c-1 joins the consumer group using the classic protocol.").raised(3).computed(
        3
    )
    story.at(10_002).join("c-1", 3, "", waited=1).sync("c-1", 3, {"c-1": ()})
    story.at(11_000).beat("a-1", 2, 2, ("t-0", "t-1")).at(11_010).beat("a-1", 2, 3)
    story.at(12_000).join("c-1", 3, "", waited=1).sync("c-1", 3, {"c-1": ("orders-2",)})
    story.at(12_500).beat("b-1", 2, 2, ("t-3", "t-4")).at(12_510).beat("b-1", 2, 3)
    story.at(13_000).join("c-1", 3, "", waited=1).sync("c-1", 3, {"c-1": ("orders-2", "orders-5")})
    rows = story.at(13_300).beat("b-1", -1, -1).at(14_000).beat("a-1", 3, 4).rows()
    assert told(rows, "rebalances", "first_epoch", "generation", "ended_at", "members_after")[2] == (3, 3, 13_000, 3)


def test_heartbeats_of_a_classic_member_count_in_a_consumer_group_as_before():
    """One that is told to join again counts as any other, and so does its session timeout, which it asked for."""
    before = len(range(3_000, 20_000, 3_000))
    story = mixed().at(22_000).heartbeat("a-1", 2).at(24_000).heartbeat("a-1", 2, Error.REBALANCE_IN_PROGRESS)
    story.at(24_500).heartbeat("a-1", 1, Error.ILLEGAL_GENERATION)
    sessions = ("member_id", "end_kind", "heartbeats", "session_timeout_ms", "longest_gap_ms")
    left = story.at(26_500).leave("a-1").at(27_000).beat("b-1", 2, 3).rows()
    assert told(left, "member_sessions", *sessions) == [("a-1", "LEFT", before + 2, 10_000, 3_000)]


def test_a_classic_member_that_fell_silent_in_a_consumer_group_has_its_own_session_timeout():
    story = mixed().at(22_000).heartbeat("a-1", 2).at(32_000).line(kinds.EXPIRED, "a-1").raised(3).computed(3).beat("b-1", 2, 3, HALF)
    code, advice, details = told(story.rows(), "findings", "code", "advice", "details")[0]
    assert (code, json.loads(details)["session_timeout_ms"]) == ("SESSION_TIMEOUT", 10_000)
    assert "Raise session.timeout.ms (now 10 s) above the longest pause to tolerate." in advice
    story.at(61_000).beat("b-1", 3, 3)  # a member of the consumer protocol may be silent for longer
    assert len(told(story.rows(), "findings", "code")) == 1


def test_a_classic_member_takes_its_heartbeats_along_when_the_group_is_classic_again():
    rows = back().at(61_000).leave("a-1").rows()
    before, mixed_in, after = len(range(3_000, 20_000, 3_000)), 1, len(range(34_000, 60_000, 3_000))
    assert told(rows, "member_sessions", "member_id", "heartbeats")[-1] == ("a-1", before + mixed_in + after)
