"""Logs that begin while a group of the consumer protocol has members: what was before is not known, so it is no evidence."""

import pytest

from coordinator_model import events as kinds
from coordinator_model.errors import Error
from tests.tracker.consumer.consumer_story import ALL, HALF, TOPICS, ConsumerStory, told

ROUND = ("epoch", "cause", "member_id")
TOPIC_ID = "ZiIvh65vQPOxTeW80lTaIA"


def rounds(story: ConsumerStory):
    return told(story.rows(), "rebalance_rounds", *ROUND)


@pytest.mark.parametrize("instance", ["", "i-1"])
@pytest.mark.parametrize("refused", [True, False])
@pytest.mark.parametrize("line", [True, False])
def test_a_member_that_joins_as_a_log_begins_may_have_been_one_before(instance, refused, line):
    """A fenced member joins again, and a static one comes back. Neither raises the epoch."""
    story = ConsumerStory().at(0)
    story = story.refused("a-1", 6, Error.FENCED_MEMBER_EPOCH).at(100) if refused else story
    story = story.line(kinds.JOINED, "a-1", instance_id=instance) if line else story
    story.at(102).beat("a-1", 0, 7, ALL, TOPICS, instance_id=instance).at(3_000).beat("a-1", 7, 7).at(4_000).beat("b-1", 7, 7)
    assert rounds(story) == []


def test_the_coordinators_log_shows_that_such_a_join_raised_the_epoch():
    story = ConsumerStory().at(0).joins("a-1", 7).at(2).beat("a-1", 0, 7, ALL, TOPICS).at(3_000).beat("a-1", 7, 7)
    assert rounds(story) == [(7, "MEMBER_JOINED", "a-1")]


def test_the_first_epoch_of_a_group_is_that_of_its_first_member():
    story = ConsumerStory().at(0).beat("a-1", 0, 1, ALL, TOPICS).at(3_000).beat("a-1", 1, 1)
    assert rounds(story) == [(1, "MEMBER_JOINED", "a-1")]


@pytest.mark.parametrize("heard_before", [True, False])
def test_a_member_whose_subscription_was_not_known_may_have_changed_it(heard_before):
    """It names its topics as the epoch is raised. Both may be due to another topic of that name, or to another subscription."""
    story = ConsumerStory().at(0)
    story = story.beat("a-1", 6, 6) if heard_before else story
    story.at(4_000).raised(7, 8).computed(7).at(4_002).beat("a-1", 6, 7, ALL, TOPICS, took=5).at(8_000).beat("a-1", 7, 7)
    assert rounds(story.at(9_000).raised(8, 9).computed(8).at(9_002).beat("a-1", 7, 8, HALF, took=5)) == [
        (7, "UNKNOWN", None),
        (8, "METADATA_CHANGED", None),
    ]


def test_two_members_may_seem_to_own_a_partition_where_a_line_is_missing():
    """a-1 was told to give up the second half, and did so. The line of the answer that told it is missing."""
    first, second = tuple(f"{TOPIC_ID}-{number}" for number in range(3)), tuple(f"{TOPIC_ID}-{number}" for number in range(3, 6))
    story = ConsumerStory().at(0).beat("a-1", 0, 1, first + second, TOPICS, rebalance_timeout_ms=12_000)
    story.at(100).beat("a-1", 1, 2, owned=first)
    story.at(2_000).beat("b-1", 2, 2, second, TOPICS, rebalance_timeout_ms=12_000)
    assert rounds(story) == [(1, "MEMBER_JOINED", "a-1"), (2, "UNKNOWN", None)]


# What the coordinator logs of stored assignments (KIP-848, KIP-932).


def stored(story: ConsumerStory, member: str, epoch: int, state: str, *partitions: str, revoked: tuple[str, ...] = ()) -> ConsumerStory:
    text = f"state={state}, assignedPartitions=[{', '.join(partitions)}] and revokedPartitions=[{', '.join(revoked)}]."
    return story.line(kinds.ASSIGNMENT_STORED, member, generation=epoch, reason=text)


def test_a_log_that_begins_late_shows_the_epochs_of_members():
    story = stored(ConsumerStory().at(0), "a-1", 7, "STABLE", "t-0", "t-1")
    stored(stored(story.at(10_000), "b-1", 8, "UNRELEASED_PARTITIONS"), "a-1", 7, "UNREVOKED_PARTITIONS", "t-0", revoked=("t-1",))
    stored(stored(story.at(11_000), "a-1", 8, "STABLE", "t-0").at(12_000), "b-1", 8, "STABLE", "t-1")
    rows = story.rows(until=60_000)
    columns = ("generation", "started_at", "ended_at", "end_seen", "partitions_moved", "unavailable_partition_ms", "slowest_member_id")
    assert told(rows, "rebalances", *columns)[-1] == (8, 10_000, 12_000, True, None, None, "a-1")


def test_a_line_that_is_worded_in_another_way_changes_nothing():
    story = ConsumerStory().at(0).joins("a-1", 1).line(kinds.ASSIGNMENT_STORED, "a-1", generation=9, reason="something else")
    assert told(story.rows(until=60_000), "rebalances", "generation") == [(1,)]


def test_an_epoch_that_is_not_known_is_not_counted_on():
    """The log of a share group begins with a departure."""
    story = ConsumerStory().at(0).line(kinds.DEPARTED, "a-1", protocol_type=kinds.SHARE).at(5_000).raised(9).computed(9)
    rows = story.rows(until=60_000)
    assert told(rows, "rebalances", "first_epoch", "group_protocol", "cause") == [(9, "share", "UNKNOWN")]
    assert told(rows, "member_sessions", "member_id", "end_kind") == [("a-1", "LEFT")]


def test_a_static_member_that_is_not_known_returns():
    story = ConsumerStory().at(0).joins("a-1", 5).at(10_000)
    story.line(kinds.RETURNED, "s-1", instance_id="i-1", answer_member_id="s-2").at(20_000).line(kinds.DEPARTED, "s-2", instance_id="i-1")
    rows = story.raised(6).rows(until=60_000)
    assert told(rows, "member_sessions", "member_id", "instance_id", "end_kind") == [("s-1", "i-1", "REPLACED"), ("s-2", "i-1", "LEFT")]
