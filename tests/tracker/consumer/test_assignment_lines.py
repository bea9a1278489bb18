"""What the coordinator logs of stored assignments, where the log is not whole (KIP-848, KIP-932)."""

from __future__ import annotations

from coordinator_model import events as kinds
from tests.tracker.consumer.consumer_story import ConsumerStory, told


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
