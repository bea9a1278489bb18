"""What is told about rebalances of the consumer protocol (KIP-848), by protocol transcripts."""

import json

import pytest

from coordinator_model import events as kinds
from coordinator_model.errors import Error
from tests.tracker.consumer.consumer_story import ALL, HALF, OTHER, TOPICS, ConsumerStory, told
from tests.tracker.story import START_MS

WHAT = ("first_epoch", "generation", "started_at", "ended_at", "end_seen", "outcome", "cause", "member_id")
ROUND = ("epoch", "started_at", "cause", "member_id", "superseded", "reconciled_at")


def alone(*, logged: bool = True) -> ConsumerStory:
    """One member has both partitions."""
    story = ConsumerStory().at(0)
    story = story.joins("a-1", 1) if logged else story
    return story.at(5).beat("a-1", 0, 1, ALL, TOPICS).at(3_000).beat("a-1", 1, 1)


def two(*, logged: bool = True) -> ConsumerStory:
    """A second member has joined: the first one was told at 12,000 to give a partition up, and did at 12,100."""
    story = alone(logged=logged).at(10_000)
    story = story.joins("b-1", 2) if logged else story
    story.at(10_005).beat("b-1", 0, 2, (), TOPICS)
    story.at(12_000).beat("a-1", 1, 1, HALF)
    story.at(12_100).beat("a-1", 1, 2)
    return story.at(13_005).beat("b-1", 2, 2, OTHER).at(15_000).beat("a-1", 2, 2).at(16_000).beat("b-1", 2, 2)


@pytest.mark.parametrize(("logged", "began"), [(True, 10_000), (False, 10_005)])
def test_a_member_that_joins_gets_what_another_gives_up(logged, began):
    rows = two(logged=logged).rows()
    assert told(rows, "rebalances", *WHAT)[1] == (2, 2, began, 13_005, True, "COMPLETED", "MEMBER_JOINED", "b-1")
    cost = ("members_before", "members_after", "joined", "partitions", "partitions_moved", "unavailable_partition_ms", "slowest_member_id")
    assert told(rows, "rebalances", *cost)[1] == (1, 2, ["b-1"], 2, 1, 906, "a-1")


def test_an_acknowledgement_counts_when_it_arrives_though_its_answer_waits_for_replicas():
    story = alone().at(10_000).joins("b-1", 2).at(10_005).beat("b-1", 0, 2, (), TOPICS).at(12_000).beat("a-1", 1, 1, HALF)
    rows = story.at(15_300).beat("a-1", 1, 2, took=3_000, owned=HALF).at(15_302).beat("b-1", 2, 2, OTHER, took=1_800).rows()
    told_of = json.loads(told(rows, "rebalance_rounds", "revocations")[1][0])
    assert [(one["told_at"] - START_MS, one["ended_at"] - START_MS, one["end"]) for one in told_of] == [(12_000, 12_300, "ACKNOWLEDGED")]
    assert told(rows, "rebalances", "ended_at", "unavailable_partition_ms", "slowest_member_id")[1] == (15_302, 3_002, "a-1")


def test_a_row_says_which_protocol_it_is_of_and_who_assigned():
    rows = two().rows()
    columns = ("group_protocol", "protocol", "rounds", "joined_at", "leader_id", "client_id", "start_seen")
    assert told(rows, "rebalances", *columns)[1] == ("consumer", "uniform", 1, None, None, "b", True)


def test_states_follow_each_other():
    rows = two().rows()
    states = told(rows, "group_transitions", "occurred_at", "from_state", "to_state", "trigger", "generation")
    assert states == [
        (0, "Empty", "Reconciling", "MEMBER_JOINED", 1),
        (0, "Reconciling", "Stable", "ALL_MEMBERS_RECONCILED", 1),
        (10_000, "Stable", "Reconciling", "MEMBER_JOINED", 2),
        (13_005, "Reconciling", "Stable", "ALL_MEMBERS_RECONCILED", 2),
    ]


def test_a_departure_amid_a_rebalance_is_another_round_of_it():
    story = two().at(20_000).joins("c-1", 3)
    story.at(20_005).beat("c-1", 0, 3, (), TOPICS)
    story.at(21_000).line(kinds.DEPARTED, "b-1").raised(4)
    story.at(21_002).beat("b-1", -1, -1)
    story.at(22_000).computed(4).beat("a-1", 2, 4)
    story.at(23_000).beat("c-1", 3, 4, OTHER).at(25_000).beat("a-1", 4, 4)
    rows = story.rows()
    assert told(rows, "rebalances", *WHAT)[2] == (3, 4, 20_000, 23_000, True, "COMPLETED", "MEMBER_JOINED", "c-1")
    assert told(rows, "rebalances", "joined", "left", "rounds")[2] == (["c-1"], ["b-1"], 2)
    assert told(rows, "rebalance_rounds", *ROUND)[2:] == [
        (3, 20_000, "MEMBER_JOINED", "c-1", True, None),
        (4, 21_000, "MEMBER_LEFT", "b-1", False, 23_000),
    ]
    assert told(rows, "member_sessions", "member_id", "end_kind", "joined_at", "ended_at") == [("b-1", "LEFT", 10_000, 21_000)]


@pytest.mark.parametrize(
    ("tells", "cause"), [(kinds.EXPIRED, "SESSION_TIMEOUT"), (kinds.STUCK, "REBALANCE_TIMEOUT"), (kinds.DEPARTED, "MEMBER_LEFT")]
)
def test_the_line_before_the_epoch_names_the_cause(tells, cause):
    story = two().at(61_000).line(tells, "b-1", rebalance_timeout_ms=30_000).raised(3)
    story.at(63_000).computed(3).beat("a-1", 2, 3, ALL)
    rows = story.rows()
    assert told(rows, "rebalances", *WHAT)[2] == (3, 3, 61_000, 63_000, True, "COMPLETED", cause, "b-1")
    assert told(rows, "rebalances", "unavailable_partition_ms")[2] == (2_000,)


@pytest.mark.parametrize(("tells", "cost"), [(kinds.EXPIRED, 2 * 40), (kinds.DEPARTED, 0)])
def test_who_comes_into_a_group_that_a_failure_emptied_ends_the_time_in_which_nobody_had_its_partitions(tells, cost):
    """As in a classic group, the part of it counts in which the rebalance ran."""
    story = alone().at(20_000).line(tells, "a-1").raised(2).at(30_000).joins("b-1", 3).computed(3)
    rows = story.at(30_040).beat("b-1", 0, 3, ALL, TOPICS).rows()
    assert told(rows, "rebalances", "outcome", "unavailable_partition_ms")[1:] == [("EMPTIED", None), ("COMPLETED", cost)]


def test_the_last_departure_leaves_an_empty_group():
    story = alone().at(20_000).line(kinds.EXPIRED, "a-1").raised(2)
    rows = story.rows()
    assert told(rows, "rebalances", *WHAT)[1] == (2, 2, 20_000, 20_000, True, "EMPTIED", "SESSION_TIMEOUT", "a-1")
    assert told(rows, "group_transitions", "to_state")[-1] == ("Empty",)


def test_requests_alone_show_that_the_last_member_left():
    rows = two(logged=False).at(20_000).beat("b-1", -1, -1).at(20_500).beat("a-1", -1, -1).rows()
    assert told(rows, "rebalances", *WHAT)[2] == (3, 4, 20_000, 20_500, True, "EMPTIED", "MEMBER_LEFT", "b-1")
    assert told(rows, "rebalance_rounds", *ROUND)[2:] == [
        (3, 20_000, "MEMBER_LEFT", "b-1", True, None),
        (4, 20_500, "MEMBER_LEFT", "a-1", False, 20_500),
    ]
    assert told(rows, "member_sessions", "member_id", "end_kind") == [("b-1", "LEFT"), ("a-1", "LEFT")]
    assert told(two(logged=False).at(20_000).beat("b-1", -1, -1).rows(), "member_sessions", "member_id") == []


def test_requests_alone_show_who_fell_silent():
    story = two(logged=False)
    for ms in (18_000, 21_000, 24_000, 27_000):
        story.at(ms).beat("a-1", 2, 2)
    story.at(30_000).beat("a-1", 2, 3, ALL)
    rows = story.rows()
    assert told(rows, "rebalances", *WHAT)[2] == (3, 3, 30_000, 30_000, True, "COMPLETED", "SESSION_TIMEOUT", "b-1")


def test_requests_alone_name_nobody_where_two_may_have_done_it():
    story = two(logged=False).at(20_000).beat("c-1", 0, 3, (), TOPICS)
    for member in ("a-1", "b-1"):
        story.at(21_000).beat(member, 2, 3)
    for ms in (22_000, 24_000, 26_000):
        story.at(ms).beat("c-1", 3, 3)
    story.at(40_000).beat("c-1", 3, 4, ALL)
    rows = story.rows()
    assert ("UNKNOWN", None) in told(rows, "rebalance_rounds", "cause", "member_id") or len(told(rows, "rebalances")) == 3


def test_the_log_alone_shows_rounds_and_no_end():
    story = ConsumerStory().at(0).joins("a-1", 1).at(10_000).joins("b-1", 2).at(12_000).joins("c-1", 3).at(30_000).joins("d-1", 4)
    rows = story.rows()
    assert told(rows, "rebalances", "first_epoch", "generation", "ended_at", "end_seen", "total_ms", "partitions_moved") == [
        (1, 1, 0, True, 0, None),
        (2, 3, 12_000, False, None, None),
        (4, 4, 30_000, False, None, None),
    ]


def test_a_changed_subscription_is_told_with_its_member():
    story = two().at(20_000).raised(3).computed(3).at(20_002).beat("b-1", 2, 3, None, ("orders", "payments"), took=5)
    story.at(21_000).beat("a-1", 2, 3)
    assert told(story.rows(), "rebalances", *WHAT)[2] == (3, 3, 20_000, 21_000, True, "COMPLETED", "SUBSCRIPTION_CHANGED", "b-1")


def test_a_grown_topic_blames_nobody():
    story = two().at(20_000).raised(3).computed(3).at(20_002).beat("b-1", 2, 3, ("t-1", "t-2")).at(21_000).beat("a-1", 2, 3)
    assert told(story.rows(), "rebalances", *WHAT)[2] == (3, 3, 20_000, 21_000, True, "COMPLETED", "METADATA_CHANGED", None)


def test_a_static_member_that_comes_back_is_no_rebalance():
    story = ConsumerStory().at(0).joins("a-1", 1, instance_id="i-1").at(5).beat("a-1", 0, 1, ALL, TOPICS, instance_id="i-1")
    story.at(20_000).line(kinds.AWAY, "a-1", instance_id="i-1").at(20_001).beat("a-1", -2, -2, instance_id="i-1")
    story.at(22_000).line(kinds.RETURNED, "a-1", instance_id="i-1", answer_member_id="a-2")
    story.at(22_002).beat("a-2", 0, 1, ALL, TOPICS, instance_id="i-1").at(30_000).beat("a-2", 1, 1)
    rows = story.rows()
    assert len(told(rows, "rebalances")) == 1
    assert told(rows, "member_sessions", "member_id", "end_kind", "ended_at") == [("a-1", "REPLACED", 22_000)]


def test_a_coordinator_that_reads_the_group_back_changes_nothing():
    story = two().on("broker-2").at(40_000).line(kinds.READ_BACK, member_count=2)
    story.at(41_000).beat("a-1", 2, 2, HALF, TOPICS).at(42_000).beat("b-1", 2, 2, OTHER, TOPICS)
    assert len(told(story.rows(), "rebalances")) == 2


STATES = ("occurred_at", "from_state", "to_state", "trigger")


def test_a_group_that_was_given_up_and_that_no_coordinator_has_taken_up_has_no_known_state():
    """Nor have members that the broker has yet to answer taken it up."""
    story = two().at(40_000).line(kinds.GIVEN_UP, generation=2).at(40_001).beat("a-1", 2, 2, took=5)
    assert told(story.rows(), "group_transitions", *STATES)[-1] == (40_000, "Stable", "Dead", "COORDINATOR_MOVED")
    assert told(story.rows(until=50_000), "group_transitions", *STATES)[-1][2] == "Dead"
    assert told(ConsumerStory().at(0).line(kinds.GIVEN_UP, generation=2).rows(), "group_transitions") == []
    read_back = ConsumerStory().at(0).line(kinds.READ_BACK, member_count=2).at(40_000).line(kinds.GIVEN_UP, generation=2)
    assert told(read_back.rows(), "group_transitions", *STATES) == [(40_000, "Stable", "Dead", "COORDINATOR_MOVED")]


def test_a_group_that_was_taken_up_soon_after_it_was_given_up_goes_on():
    story = two().at(40_000).line(kinds.GIVEN_UP, generation=2).on("broker-2").at(49_000).line(kinds.READ_BACK, member_count=2)
    assert told(story.rows(), "group_transitions") == told(two().rows(), "group_transitions")


@pytest.mark.parametrize("is_empty", [False, True])
def test_a_group_that_was_taken_up_late_is_as_it_was(is_empty):
    story = two()
    if is_empty:
        story.at(30_000).line(kinds.DEPARTED, "a-1").raised(3).line(kinds.DEPARTED, "b-1").raised(4)
    story.at(40_000).line(kinds.GIVEN_UP, generation=2).on("broker-2").at(60_000)
    rows = story.joins("c-1", 5).rows() if is_empty else story.beat("a-1", 2, 2, took=0).rows()
    state = "Empty" if is_empty else "Stable"
    both = [(40_000, state, "Dead", "COORDINATOR_MOVED"), (60_000, "Dead", state, "GROUP_LOADED")]
    assert [step for step in told(rows, "group_transitions", *STATES) if "Dead" in step] == both


def test_a_zombie_shows_that_it_was_removed():
    story = alone(logged=False).at(30_000).refused("a-1", 1, Error.UNKNOWN_MEMBER_ID).at(30_100).beat("a-1", 0, 3, ALL, TOPICS)
    rows = story.rows()
    found = [row[6:] for row in told(rows, "rebalances", *WHAT)]
    assert found == [("MEMBER_JOINED", "a-1"), ("SESSION_TIMEOUT", "a-1"), ("MEMBER_JOINED", "a-1")]


def test_a_deleted_group_begins_anew():
    story = alone().at(20_000).line(kinds.DEPARTED, "a-1").raised(2).at(30_000).log(kinds.GROUPS_DELETED)
    story.at(40_000).joins("b-1", 1).at(40_005).beat("b-1", 0, 1, ALL, TOPICS)
    assert told(story.rows(), "rebalances", "first_epoch", "outcome", "members_before")[2] == (1, "COMPLETED", 0)


def test_a_line_that_is_delivered_twice_counts_once():
    story = ConsumerStory().at(0).joins("a-1", 1).joins("a-1", 1).at(10_000).line(kinds.DEPARTED, "a-1").raised(2)
    story.line(kinds.DEPARTED, "a-1").raised(2)
    assert [row[:2] for row in told(story.rows(), "rebalances", *WHAT)] == [(1, 1), (2, 2)]


def codes(rows):
    return told(rows, "findings", "code", "member_id")


def test_a_member_that_is_removed_for_its_silence_is_reported_and_so_is_its_return():
    story = two().at(61_000).line(kinds.EXPIRED, "b-1").raised(3).at(63_000).computed(3).beat("a-1", 2, 3, ALL)
    story.at(90_000).refused("b-1", 2, Error.UNKNOWN_MEMBER_ID).at(90_100).refused("b-1", 2, Error.UNKNOWN_MEMBER_ID)
    rows = story.rows()
    assert codes(rows) == [("SESSION_TIMEOUT", "b-1"), ("UNKNOWN_MEMBER", "b-1")]
    assert "no heartbeat for 45 s (the group's session timeout)." in told(rows, "findings", "message")[0][0]
    assert "removed the member 29 s before" in told(rows, "findings", "message")[1][0]


def test_the_last_heartbeat_of_a_member_that_leaves_is_no_finding():
    story = two().at(20_000).line(kinds.DEPARTED, "b-1").raised(3).at(20_100).refused("b-1", 2, Error.UNKNOWN_MEMBER_ID)
    assert codes(story.rows()) == []


def test_a_member_that_keeps_its_partitions_too_long_is_reported():
    story = two().at(20_000).joins("c-1", 3).at(20_005).beat("c-1", 0, 3, (), TOPICS)
    story.at(21_000).beat("a-1", 2, 2, ()).at(22_000).beat("b-1", 2, 3).at(50_000).beat("a-1", 2, 3).at(51_000).beat("c-1", 3, 3, HALF)
    rows = story.rows()
    assert codes(rows) == [("STUCK_RECONCILING", "a-1")]
    assert told(rows, "rebalances", "slowest_member_id", "ended_at")[-1] == ("a-1", 51_000)


def test_a_member_that_does_not_give_partitions_up_is_reported():
    story = two().at(20_000).joins("c-1", 3).at(21_000).beat("a-1", 2, 2, ())
    story.at(51_000).line(kinds.STUCK, "a-1", rebalance_timeout_ms=30_000).raised(4)
    assert codes(story.rows()) == [("REBALANCE_TIMEOUT", "a-1")]


def test_two_clients_with_one_instance_id_are_reported():
    story = ConsumerStory().at(0).joins("a-1", 1, instance_id="i-1").at(5).beat("a-1", 0, 1, ALL, TOPICS, instance_id="i-1")
    story.at(10_000).request(
        kinds.CONSUMER_GROUP_HEARTBEAT, "b-1", generation=0, error_code=Error.UNRELEASED_INSTANCE_ID, instance_id="i-1"
    )
    rows = story.rows()
    assert codes(rows) == [("UNRELEASED_INSTANCE_ID", "b-1")]
    assert told(rows, "findings", "message")[0][0] == "Another member (a) has group.instance.id i-1. The coordinator refused this one."


def test_a_stale_epoch_is_reported_once():
    story = two().at(20_000).refused("b-1", 1, Error.FENCED_MEMBER_EPOCH).at(20_100).refused("b-1", 1, Error.FENCED_MEMBER_EPOCH)
    assert codes(story.rows()) == [("FENCED_MEMBER_EPOCH", "b-1")]


def test_a_client_that_comes_and_goes_makes_a_storm():
    story = alone()
    for number, ms in enumerate(range(10_000, 60_000, 10_000)):
        story.at(ms).joins(f"b-{number}", 2 + 2 * number).at(ms + 5).beat(f"b-{number}", 0, 2 + 2 * number, (), TOPICS)
        story.at(ms + 2_000).beat("a-1", 1 + 2 * number, 1 + 2 * number, HALF).at(ms + 2_100).beat("a-1", 1 + 2 * number, 2 + 2 * number)
        story.at(ms + 3_000).beat(f"b-{number}", 2 + 2 * number, 2 + 2 * number, OTHER)
        story.at(ms + 5_000).line(kinds.DEPARTED, f"b-{number}").raised(3 + 2 * number)
        story.at(ms + 6_000).computed(3 + 2 * number).beat("a-1", 2 + 2 * number, 3 + 2 * number, ALL)
    rows = story.at(200_000).beat("a-1", 11, 11).rows()
    assert [code for code, _ in codes(rows)] == ["REBALANCE_STORM"]
    assert told(rows, "findings", "client_id") == [("b",)]
    assert told(rows, "findings", "message")[0][0].startswith("The epoch of the group rose 9 times in 40 s, in 9 rebalances; b began all")


@pytest.mark.parametrize(("answered", "client"), [(3_700, "a"), (20_000, None)])
def test_a_member_is_named_by_the_first_answer_that_a_busy_broker_logs(answered, client):
    story = ConsumerStory().at(-100)
    story.request(kinds.FIND_COORDINATOR, "a-1", coordinator_id=1, coordinator_address="10.0.0.1:9092")
    story.at(0).joins("a-1", 1).at(answered).beat("a-1", 0, 1, ALL, TOPICS).at(25_000).beat("a-1", 1, 1)
    assert told(story.rows(), "rebalances", "cause", "member_id", "client_id") == [("MEMBER_JOINED", "a-1", client)]


@pytest.mark.parametrize("logged", [True, False])
def test_a_member_that_joins_amid_a_rebalance_and_raises_no_epoch_is_one_more_that_joined(logged):
    """d-1 subscribes to nothing yet. It leaves in the rebalance after."""
    story = two(logged=logged).at(20_000)
    story = story.joins("c-1", 3) if logged else story
    story.at(20_002).beat("c-1", 0, 3, (), TOPICS).at(20_500)
    story = story.line(kinds.JOINED, "d-1") if logged else story
    story.at(20_502).beat("d-1", 0, 3, (), ()).at(21_000).beat("a-1", 2, 3).at(22_000).beat("b-1", 2, 3)
    story.at(30_000)
    story = story.line(kinds.DEPARTED, "d-1").raised(4) if logged else story
    story.at(30_001).beat("d-1", -1, -1).at(31_000).beat("a-1", 3, 4).at(31_500).beat("b-1", 3, 4).at(32_000).beat("c-1", 3, 4)
    assert told(story.rows(), "rebalances", "members_before", "joined", "left", "members_after")[2:] == [
        (2, ["c-1", "d-1"], [], 4),
        (4, [], ["d-1"], 3),
    ]


def test_a_member_that_raised_no_epoch_and_leaves_at_once_came_before():
    story = two().at(20_000).joins("c-1", 3).at(20_500).line(kinds.JOINED, "d-1").at(20_900).line(kinds.DEPARTED, "d-1").raised(4)
    story.at(20_902).beat("d-1", -1, -1).at(21_000).beat("a-1", 2, 4).at(22_000).beat("b-1", 2, 4).at(23_000).beat("c-1", 3, 4)
    rows = story.rows()
    assert told(rows, "rebalances", "members_before", "joined", "left", "members_after")[2:] == [(2, ["c-1"], [], 3)]
    assert told(rows, "member_sessions", "member_id", "joined_at", "end_kind") == [("d-1", 20_500, "LEFT")]


def test_partitions_that_nobody_has_at_the_end_have_not_moved():
    """b-1 gets one of a-1, and both leave before it has told so."""
    story = two().at(20_000).joins("c-1", 3).at(20_002).beat("c-1", 0, 3, (), TOPICS).at(21_000).beat("a-1", 2, 2, ()).at(21_100)
    story.beat("a-1", 2, 3).at(22_000).beat("c-1", 3, 3, HALF)
    for member, epoch in (("a-1", 4), ("b-1", 5), ("c-1", 6)):
        story.at(22_000 + epoch).line(kinds.DEPARTED, member).raised(epoch).beat(member, -1, -1)
    assert told(story.rows(), "rebalances", "outcome", "partitions", "partitions_moved")[-1] == ("EMPTIED", 0, 0)


def test_a_rebalance_has_the_departure_that_it_waited_for():
    """b-1 is told only after its end that it is no member any more."""
    story = two(logged=False).at(20_000).beat("a-1", 2, 3, ALL).at(23_000).beat("a-1", 3, 3).refused("b-1", 2, Error.UNKNOWN_MEMBER_ID)
    rows = story.at(26_000).beat("a-1", 3, 3).rows()
    assert told(rows, "rebalances", "ended_at", "left")[-1] == (20_000, ["b-1"])
    assert told(rows, "member_sessions", "member_id", "ended_at") == [("b-1", 20_000)]
