"""Stories in which a cause or a culprit seems to be told, and is not; and members that go in ways that no line tells."""

import pytest

from coordinator_model import events as kinds
from coordinator_model.errors import Error
from tests.tracker.batching import batches
from tests.tracker.consumer.consumer_story import ALL, HALF, OTHER, TOPICS, ConsumerStory, told
from tests.tracker.consumer.test_episodes import alone, two
from tests.tracker.consumer.test_late_logs import ROUND, rounds
from tests.tracker.consumer.test_stored_records import two as stored
from tests.tracker.story import play

SESSION = ("member_id", "end_kind")


def idle() -> ConsumerStory:
    """One partition: a-1 has it, b-1 has none."""
    story = ConsumerStory().at(0).beat("a-1", 0, 1, HALF, TOPICS).at(3_000).beat("a-1", 1, 1)
    story.at(5_000).beat("b-1", 0, 2, (), TOPICS).at(6_000).beat("a-1", 1, 2).at(8_000).beat("b-1", 2, 2)
    return story.at(9_000).beat("a-1", 2, 2).at(11_000).beat("b-1", 2, 2)


def static() -> ConsumerStory:
    """b-1 and the static member a-1 have a partition each."""
    story = ConsumerStory().at(0).beat("b-1", 0, 1, ALL, TOPICS).at(3_000).beat("b-1", 1, 1)
    story.at(5_000).beat("a-1", 0, 2, (), TOPICS, instance_id="i-1").at(6_000).beat("b-1", 1, 1, HALF)
    story.at(6_100).beat("b-1", 1, 2).at(8_000).beat("a-1", 2, 2, OTHER)
    return story.at(11_000).beat("b-1", 2, 2).at(11_500).beat("a-1", 2, 2)


def test_a_member_that_paused_and_is_answered_was_not_removed():
    story = alone(logged=False).at(6_000).beat("a-1", 1, 1)
    story.at(20_000).beat("a-1", 1, 2, (*ALL, "t-2")).at(23_000).beat("a-1", 2, 2)
    assert rounds(story)[1] == (2, "UNKNOWN", None)
    assert told(story.rows(), "findings", "code") == []


@pytest.mark.parametrize("broker", ["broker-1", "broker-2"])
def test_after_a_gap_of_the_log_or_a_failover_nobody_is_taken_for_silent(broker):
    story = idle().on(broker).at(70_000).beat("a-1", 2, 3).at(71_000).beat("b-1", 2, 3, OTHER)
    assert rounds(story)[2:] == [(3, "UNKNOWN", None)]
    assert told(story.rows(), "member_sessions", *SESSION) == []


def test_a_silent_member_without_partitions_is_named_after_the_usual_timeout():
    story = idle()
    for ms in range(12_000, 57_000, 3_000):
        story.at(ms).beat("a-1", 2, 2)
    assert rounds(story.at(57_000).beat("a-1", 2, 3))[2:] == [(3, "SESSION_TIMEOUT", "b-1")]


def test_a_silent_member_that_had_to_give_partitions_up_may_have_run_out_of_either_time():
    """a-1 was told to give t-1 up at 15,000, within 20 s, and is never heard again. At 36,000 c-1 has both."""
    story = ConsumerStory().at(0).beat("a-1", 0, 1, (*ALL, "t-2"), TOPICS, rebalance_timeout_ms=20_000).at(3_000).beat("a-1", 1, 1)
    story.at(5_000).beat("b-1", 0, 2, (), TOPICS).at(6_000).beat("a-1", 1, 1, ALL).at(6_100).beat("a-1", 1, 2)
    story.at(8_000).beat("b-1", 2, 2, ("t-2",)).at(9_000).beat("a-1", 2, 2).at(12_000).beat("a-1", 2, 2)
    story.at(13_000).beat("c-1", 0, 3, (), TOPICS).at(14_000).beat("b-1", 2, 3).at(15_000).beat("a-1", 2, 2, HALF)
    for ms in range(16_000, 34_000, 3_000):
        story.at(ms).beat("c-1", 3, 3).at(ms + 500).beat("b-1", 3, 3)
    story.at(36_000).beat("c-1", 3, 4, ALL).at(36_500).beat("b-1", 3, 4)
    assert rounds(story)[2:] == [(3, "MEMBER_JOINED", "c-1"), (4, "UNKNOWN", None)]
    assert told(story.rows(), "member_sessions", *SESSION) == [("a-1", "UNKNOWN")]


def crossed() -> ConsumerStory:
    """The last heartbeat of b-1 crosses its own leave, and is refused before any answer shows the epoch that the leave raised."""
    return two(logged=False).at(20_000).beat("b-1", -1, -1).at(20_100).refused("b-1", 2, Error.UNKNOWN_MEMBER_ID)


def test_a_heartbeat_that_crosses_the_leave_of_its_member_is_no_second_departure():
    story = crossed().at(21_000).beat("a-1", 2, 3, ALL).at(30_000).beat("c-1", 0, 4, (), TOPICS).at(31_000).beat("a-1", 3, 3, HALF)
    story.at(31_100).beat("a-1", 3, 4).at(32_000).beat("c-1", 4, 4, OTHER).at(40_000).beat("c-1", -1, -1).at(41_000).beat("a-1", 4, 5, ALL)
    assert rounds(story)[2:] == [(3, "MEMBER_LEFT", "b-1"), (4, "MEMBER_JOINED", "c-1"), (5, "MEMBER_LEFT", "c-1")]
    assert told(story.rows(), "member_sessions", *SESSION) == [("b-1", "LEFT"), ("c-1", "LEFT")]
    assert told(story.rows(), "findings", "code") == []


def test_nor_does_it_raise_the_epoch_when_the_last_member_leaves():
    story = crossed().at(20_500).beat("a-1", -1, -1).at(30_000).beat("c-1", 0, 5, ALL, TOPICS)
    assert rounds(story)[2:] == [(3, "MEMBER_LEFT", "b-1"), (4, "MEMBER_LEFT", "a-1"), (5, "MEMBER_JOINED", "c-1")]


def test_a_commit_that_crosses_the_leave_is_no_zombie():
    story = two(logged=False).at(20_000).beat("b-1", -1, -1).at(20_100)
    story.request(kinds.OFFSET_COMMIT, "b-1", generation=2, error_code=Error.UNKNOWN_MEMBER_ID).at(21_000).beat("a-1", 2, 3, ALL)
    assert told(story.rows(), "findings", "code") == []


def test_a_member_that_is_refused_twice_is_removed_once():
    story = two(logged=False)
    for ms in range(18_000, 63_000, 3_000):
        story.at(ms).beat("a-1", 2, 2)
    story.at(70_000).refused("b-1", 2, Error.UNKNOWN_MEMBER_ID).at(70_100).refused("b-1", 2, Error.UNKNOWN_MEMBER_ID)
    story.at(71_000).beat("a-1", 2, 4, (*ALL, "t-2"))
    assert rounds(story)[2:] == [(3, "SESSION_TIMEOUT", "b-1"), (4, "UNKNOWN", None)]


def test_a_refusal_after_the_epoch_that_it_explains_blames_nobody_for_the_next_one():
    """b-1 was removed before 58,000, and topics changed too. It learns so at 70,000. At 90,000 topics change again."""
    story = idle()
    for ms in range(12_000, 57_000, 3_000):
        story.at(ms).beat("a-1", 2, 2)
    story.at(58_000).beat("a-1", 2, 4).at(61_000).beat("a-1", 4, 4).at(70_000).refused("b-1", 2, Error.UNKNOWN_MEMBER_ID)
    story.at(90_000).beat("a-1", 4, 5).at(93_000).beat("a-1", 5, 5)
    assert rounds(story)[2:] == [(3, "UNKNOWN", None), (4, "UNKNOWN", None), (5, "UNKNOWN", None)]
    assert told(story.rows(), "rebalances", "left", "members_after")[2:] == [(["b-1"], 1), ([], 1)]


def test_an_instance_id_that_nobody_has_is_refused_and_its_sender_stays():
    story = two(logged=False).at(17_000)
    story.request(kinds.CONSUMER_GROUP_HEARTBEAT, "b-1", generation=2, error_code=Error.UNKNOWN_MEMBER_ID, instance_id="i-9")
    story.at(18_000).beat("a-1", 2, 3, (*HALF, "t-2")).at(19_000).beat("b-1", 2, 3)
    assert rounds(story)[2:] == [(3, "UNKNOWN", None)]
    assert told(story.rows(), "member_sessions", *SESSION) == []


@pytest.mark.parametrize("new", ["a-1", "a-2"])
def test_a_static_member_that_leaves_for_good_comes_anew(new):
    story = static().at(20_000).beat("a-1", -1, -1, instance_id="i-1").at(20_500).beat(new, 0, 4, OTHER, TOPICS, instance_id="i-1")
    story.at(21_000).beat("b-1", 2, 4).at(25_000).beat(new, 4, 4).at(30_000).beat(new, -1, -1, instance_id="i-1").at(31_000)
    assert rounds(story.beat("b-1", 4, 5, ALL))[2:] == [(3, "MEMBER_LEFT", "a-1"), (4, "MEMBER_JOINED", new), (5, "MEMBER_LEFT", new)]
    assert told(story.rows(), "member_sessions", *SESSION) == [("a-1", "LEFT"), (new, "LEFT")]
    assert told(story.rows(), "rebalances", "members_after")[2:] == [(2,), (1,)]


def test_a_killed_static_member_that_comes_after_its_session_ended_replaces_nobody():
    story = static()
    for ms in range(14_000, 60_000, 3_000):
        story.at(ms).beat("b-1", 2, 2)
    story.at(60_000).beat("a-2", 0, 4, OTHER, TOPICS, instance_id="i-1").at(61_000).beat("b-1", 2, 4)
    assert rounds(story)[2:] == [(3, "SESSION_TIMEOUT", "a-1"), (4, "MEMBER_JOINED", "a-2")]
    assert told(story.rows(), "member_sessions", *SESSION) == [("a-1", "SESSION_TIMEOUT")]


def test_a_static_member_that_the_log_says_joins_is_not_back():
    """The line about the end of a session is lost."""
    story = ConsumerStory().at(0).joins("a-1", 1, instance_id="i-1").at(5).beat("a-1", 0, 1, ALL, TOPICS, instance_id="i-1")
    story.at(20_000).line(kinds.AWAY, "a-1", instance_id="i-1").at(20_001).beat("a-1", -2, -2, instance_id="i-1")
    story.at(90_000).joins("a-2", 3, instance_id="i-1").at(90_003).beat("a-2", 0, 3, ALL, TOPICS, instance_id="i-1")
    assert told(story.rows(), "member_sessions", *SESSION) == [("a-1", "UNKNOWN")]
    assert told(story.rows(), "findings", "code") == []


def test_a_leave_that_is_logged_after_its_epoch_explains_that_one_and_no_later_one():
    story = two(logged=False).at(20_002).beat("a-1", 2, 3, ALL).at(20_003).beat("b-1", -1, -1, took=3).at(23_000).beat("a-1", 3, 3)
    story.at(40_000).beat("c-1", 0, 4, (), TOPICS).at(41_000).beat("a-1", 3, 3, HALF).at(41_100).beat("a-1", 3, 4)
    story.at(42_000).beat("c-1", 4, 4, OTHER).at(60_000).beat("a-1", 4, 5, HALF).at(61_000).beat("c-1", 4, 5)
    assert rounds(story)[2:] == [(3, "MEMBER_LEFT", "b-1"), (4, "MEMBER_JOINED", "c-1"), (5, "UNKNOWN", None)]
    assert told(story.rows(), "member_sessions", *SESSION) == [("b-1", "LEFT")]


def test_where_the_epoch_may_have_another_cause_the_leave_explains_none():
    story = idle().at(20_002).beat("a-1", 2, 3, ALL).at(20_003).beat("b-1", -1, -1, took=3).at(23_000).beat("a-1", 3, 3)
    assert rounds(story.at(40_000).beat("a-1", 3, 4))[2:] == [(3, "UNKNOWN", None), (4, "UNKNOWN", None)]
    assert told(story.rows(), "member_sessions", *SESSION) == [("b-1", "LEFT")]


def test_a_rebalance_does_not_wait_for_ever_for_a_member_that_vanished():
    """The session of b-1 ends as a topic grows, so its silence explains neither epoch."""
    story = idle()
    for ms in range(12_000, 54_000, 3_000):
        story.at(ms).beat("a-1", 2, 2)
    story.at(54_000).beat("a-1", 2, 4, ALL)
    for ms in range(57_000, 200_000, 3_000):
        story.at(ms).beat("a-1", 4, 4)
    rows = story.at(200_000).beat("c-1", 0, 5, (), TOPICS).at(201_000).beat("a-1", 4, 5).at(203_000).beat("c-1", 5, 5).rows()
    what = ("first_epoch", "generation", "ended_at", "cause", "left", "members_after")
    assert told(rows, "rebalances", *what)[2:] == [(3, 4, 54_000, "UNKNOWN", ["b-1"], 1), (5, 5, 201_000, "MEMBER_JOINED", [], 2)]
    assert told(rows, "member_sessions", *SESSION) == [("b-1", "UNKNOWN")]


@pytest.mark.parametrize("logged", [True, False])
def test_a_group_that_begins_again_at_epoch_1_is_a_new_one(logged):
    """Nothing shows that it was removed with its last offsets."""
    story = alone(logged=logged).at(20_000)
    story = story.line(kinds.DEPARTED, "a-1").raised(2) if logged else story.beat("a-1", -1, -1)
    story = story.at(2_000_000).joins("b-1", 1) if logged else story.at(2_000_000)
    story.at(2_000_005).beat("b-1", 0, 1, ALL, TOPICS)
    assert rounds(story)[2:] == [(1, "MEMBER_JOINED", "b-1")]
    states = told(story.rows(), "group_transitions", "from_state", "to_state", "trigger")
    assert ("Empty", "Dead", "GROUP_REMOVED") in states


def test_records_do_not_show_a_silence_that_came_after_the_departure():
    """b-1 was heard a second before it was removed, and another heartbeat comes 13 s later. The answer to its leave is lost."""
    story = stored().at(14_000).beat("b-1", 2, 2).at(16_000).beat("b-1", 2, 2).at(18_500).joins_stored("c-1", 3, ())
    story.beat("c-1", 0, 3, (), TOPICS).at(18_600).has("a-1", 2, 3, HALF).at(19_000).beat("b-1", 2, 2)
    story.at(20_000).removed("b-1").epoch(4).at(20_600).has("c-1", 3, 4, ()).beat("c-1", 3, 4).at(32_000).beat("c-1", 4, 4)
    story.at(33_000).has("a-1", 3, 4, ALL).at(33_001).beat("a-1", 3, 4, ALL).at(35_000).beat("c-1", 4, 4)
    assert rounds(story)[3] == (4, "UNKNOWN", None)


@pytest.mark.parametrize("told_first", [True, False])
def test_a_changed_subscription_that_the_log_names_is_told_once(told_first):
    """With a line about it, or a line about a member that joins again while topics are as before."""
    story = two().at(20_000).joins("c-1", 3, metadata_hash=7).at(20_001).beat("c-1", 0, 3, (), TOPICS).at(20_500).beat("a-1", 2, 3)
    story.at(20_600).beat("b-1", 2, 3).at(30_000).line(kinds.TOPICS_UPDATED if told_first else kinds.JOINED, "b-1").raised(4, 7)
    story.at(30_002).beat("b-1", 3 if told_first else 0, 4, OTHER, ("orders", "payments"), took=5)
    story.at(31_000).beat("a-1", 3, 4).at(31_500).beat("c-1", 3, 4).at(40_000).beat("a-1", 4, 5)
    story.at(41_000).beat("c-1", 4, 5).at(42_000).beat("b-1", 4, 5)
    assert rounds(story)[3:] == [(4, "SUBSCRIPTION_CHANGED", "b-1"), (5, "UNKNOWN", None)]


def assigned(story, member, epoch, state, own, revoked=()):
    reason = f"state={state}, assignedPartitions=[{', '.join(own)}] and revokedPartitions=[{', '.join(revoked)}]."
    return story.line(kinds.ASSIGNMENT_STORED, member, generation=epoch, reason=reason)


def test_a_member_may_be_told_of_other_partitions_as_it_gives_some_up():
    """By lines of level DEBUG: a-1 gives t-2 up at 13,000, and is told at once to give t-1 up."""
    story = ConsumerStory().at(0).joins("a-1", 1)
    assigned(story, "a-1", 1, "STABLE", ("t-0", "t-1", "t-2"))
    assigned(story.at(10_000).joins("b-1", 2), "b-1", 2, "UNRELEASED_PARTITIONS", ())
    assigned(story.at(11_000), "a-1", 1, "UNREVOKED_PARTITIONS", ("t-0", "t-1"), ("t-2",))
    assigned(story.at(12_000).joins("c-1", 3), "c-1", 3, "UNRELEASED_PARTITIONS", ())
    assigned(story.at(13_000), "a-1", 1, "UNREVOKED_PARTITIONS", ("t-0",), ("t-1",))
    assigned(story.at(15_000), "b-1", 3, "STABLE", ("t-2",))
    assigned(story.at(16_000), "a-1", 3, "STABLE", ("t-0",))
    rows = assigned(story.at(17_000), "c-1", 3, "STABLE", ("t-1",)).rows()
    cost = ("first_epoch", "generation", "ended_at", "partitions_moved", "unavailable_partition_ms")
    assert told(rows, "rebalances", *cost)[1] == (2, 3, 17_000, 2, 3_000)


def test_a_slow_member_that_had_nothing_to_give_up_sent_no_heartbeat():
    story = two().at(20_000).joins("c-1", 3).at(20_005).beat("c-1", 0, 3, (), TOPICS).at(21_000).beat("b-1", 2, 3)
    rows = story.at(45_000).beat("a-1", 2, 3).at(46_000).beat("c-1", 3, 3).rows()
    assert told(rows, "findings", "code", "message") == [
        ("STUCK_RECONCILING", "The group waited 25 s for the member: it sent no heartbeat.")
    ]


@pytest.mark.parametrize("cuts", [1, 9])
def test_a_later_round_is_not_settled_when_the_first_one_is_written(cuts):
    """c-1 joins. A changed subscription raises the epoch just before the beginning is written; the answer to it comes just after."""
    story = two().at(20_000).joins("c-1", 3).at(20_005).beat("c-1", 0, 3, (), TOPICS).at(21_995).raised(4)
    story.at(22_010).beat("b-1", 2, 4, None, ("orders", "payments"), took=20).at(23_000).raised(5).at(24_000).beat("a-1", 2, 5)
    story.at(25_000).beat("c-1", 3, 5).at(26_000).beat("b-1", 4, 5)
    expected = [(3, "MEMBER_JOINED", "c-1"), (4, "SUBSCRIPTION_CHANGED", "b-1"), (5, "METADATA_CHANGED", None)]
    assert told(play(batches(story.events, cuts), snapshot=True), "rebalance_rounds", *ROUND)[2:] == expected


def test_a_classic_member_of_a_group_whose_log_begins_late_may_only_join_again():
    story = ConsumerStory().at(0).beat("a-1", 7, 7).at(2_000)
    story.request(kinds.JOIN_GROUP, "k-1", answer_member_id="k-1", answer_generation=8, protocol_type="consumer")
    assert rounds(story.at(3_000).beat("a-1", 7, 8)) == [(8, "UNKNOWN", None)]


def test_heartbeats_alone_are_not_at_their_end_with_each_batch():
    """The instance id of a member shows 1 s after its rebalance, in another batch."""
    story = ConsumerStory().at(1_000).beat("a-1", 0, 1, HALF).at(2_000).beat("a-1", 1, 1, instance_id="i-2").at(6_100).beat("a-1", 1, 1)
    story.at(26_000).beat("a-1", 1, 1)
    one, many = (play(cut, snapshot=True) for cut in ([[*story.events, *story.heard()]], batches(story.events, 7)))
    assert told(many, "rebalances", "member_id", "instance_id") == told(one, "rebalances", "member_id", "instance_id") == [("a-1", "i-2")]


def test_a_member_that_subscribes_to_nothing_raises_no_epoch():
    """a-1 has another subscription, and is told to give a partition up first. c-1, which has none, shows the epoch of that."""
    story = two(logged=False).at(20_000).beat("a-1", 2, 2, (), ("payments",)).at(20_500).beat("c-1", 0, 3, (), ())
    story.at(21_000).beat("a-1", 2, 3).at(21_500).beat("b-1", 2, 3, ALL).at(40_000).beat("a-1", 3, 4).at(41_000).beat("b-1", 3, 4)
    assert rounds(story.at(42_000).beat("c-1", 3, 4))[2:] == [(3, "SUBSCRIPTION_CHANGED", "a-1"), (4, "UNKNOWN", None)]


def test_a_join_does_not_explain_an_epoch_that_was_seen_before_it():
    """A topic changed before 20,000. c-1 joins with an expression, which is resolved after it."""
    story = two(logged=False).at(20_000).beat("a-1", 2, 3).at(22_000).beat("c-1", 0, 3, (), None, subscribed_regex="pay.*")
    story.at(23_000).beat("b-1", 2, 3).at(25_000).beat("a-1", 3, 3).at(26_000).beat("c-1", 3, 3)
    assert rounds(story)[2:] == [(3, "UNKNOWN", None)]


def three_of_which_two_fall_silent() -> ConsumerStory:
    """a-1, b-1 and c-1 have a partition each. a-1 alone is heard after 20,000."""
    story = ConsumerStory().at(0).beat("a-1", 0, 1, (*ALL, "t-2"), TOPICS).at(3_000).beat("a-1", 1, 1)
    story.at(5_000).beat("b-1", 0, 2, (), TOPICS).at(6_000).beat("a-1", 1, 1, ALL).at(6_100).beat("a-1", 1, 2)
    story.at(7_000).beat("b-1", 2, 2, ("t-2",)).at(9_000).beat("a-1", 2, 2).at(10_000).beat("c-1", 0, 3, (), TOPICS)
    story.at(11_000).beat("a-1", 2, 2, HALF).at(11_100).beat("a-1", 2, 3).at(12_000).beat("b-1", 2, 3).at(13_000).beat("c-1", 3, 3, OTHER)
    for ms in range(15_000, 55_000, 3_000):
        story.at(ms).beat("a-1", 3, 3)
        if ms < 20_000:
            story.at(ms + 1).beat("b-1", 3, 3).at(ms + 2).beat("c-1", 3, 3)
    return story


def test_a_silent_member_whose_removal_may_have_been_an_earlier_epoch_is_not_blamed_for_the_next():
    """The first of both is removed at 62,000, the other one at 66,000; then a-1 gets what they had."""
    story = three_of_which_two_fall_silent().at(62_000).beat("a-1", 3, 4).at(66_000).beat("a-1", 4, 5, (*ALL, "t-2"))
    rows = story.at(69_000).beat("a-1", 5, 5).rows()
    assert told(rows, "rebalance_rounds", *ROUND)[3:] == [(4, "UNKNOWN", None), (5, "UNKNOWN", None)]
    assert told(rows, "rebalances", "left", "members_after")[-1] == (["b-1", "c-1"], 1)
    assert sorted(told(rows, "member_sessions", *SESSION)) == [("b-1", "SESSION_TIMEOUT"), ("c-1", "SESSION_TIMEOUT")]


def test_who_went_first_is_not_known_of_a_member_that_left_and_one_that_was_silent():
    story = three_of_which_two_fall_silent().at(62_000).beat("b-1", -1, -1).at(66_000).beat("a-1", 3, 5, (*ALL, "t-2"))
    rows = story.at(69_000).beat("a-1", 5, 5).rows()
    assert told(rows, "rebalance_rounds", *ROUND)[3:] == [(4, "UNKNOWN", None), (5, "UNKNOWN", None)]
    assert sorted(told(rows, "member_sessions", *SESSION)) == [("b-1", "LEFT"), ("c-1", "SESSION_TIMEOUT")]


def test_sessions_end_in_the_order_in_which_members_fell_silent():
    """They are refused in the other order."""
    story = three_of_which_two_fall_silent().at(70_000).refused("c-1", 3, Error.UNKNOWN_MEMBER_ID)
    story.at(70_500).refused("b-1", 3, Error.UNKNOWN_MEMBER_ID).at(71_000).beat("a-1", 3, 5, (*ALL, "t-2"))
    assert rounds(story.at(72_000).beat("a-1", 5, 5))[3:] == [(4, "SESSION_TIMEOUT", "b-1"), (5, "SESSION_TIMEOUT", "c-1")]


def stuck() -> ConsumerStory:
    """a-1 is told at 21,000 to give partitions up within 10 s, does not, and sends heartbeats until 31,500."""
    story = two(logged=False).at(20_000).beat("c-1", 0, 3, (), TOPICS).at(20_500).beat("b-1", 2, 3)
    story.at(21_000).beat("a-1", 2, 2, (), rebalance_timeout_ms=10_000)
    for ms in range(24_000, 32_000, 2_500):
        story.at(ms).beat("a-1", 2, 2).at(ms + 100).beat("b-1", 3, 3).at(ms + 200).beat("c-1", 3, 3)
    return story


def test_who_ran_out_of_its_rebalance_timeout_went_with_the_epoch_that_its_removal_raised_not_when_it_was_refused():
    story = stuck().at(32_000).beat("c-1", 3, 4, HALF).at(32_500).refused("a-1", 2, Error.UNKNOWN_MEMBER_ID)
    rows = story.at(32_600).beat("b-1", 3, 4).rows()
    assert told(rows, "member_sessions", *SESSION, "ended_at") == [("a-1", "REBALANCE_TIMEOUT", 32_000)]


def test_whether_a_member_left_before_another_one_ran_out_of_its_rebalance_timeout_is_not_known():
    story = stuck().at(32_000).beat("b-1", -1, -1).at(32_500).refused("a-1", 2, Error.UNKNOWN_MEMBER_ID).at(33_000).beat("c-1", 3, 5, ALL)
    assert rounds(story)[3:] == [(4, "UNKNOWN", None), (5, "UNKNOWN", None)]
