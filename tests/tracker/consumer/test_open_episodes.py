"""What is told of a rebalance of the consumer protocol that has just ended, has not ended yet, or is held up by one member."""

import pytest

from coordinator_model import events as kinds
from coordinator_model.errors import Error
from tests.tracker.consumer.consumer_story import ALL, HALF, OTHER, TOPICS, ConsumerStory, told
from tests.tracker.consumer.test_consumer_findings import alone, codes
from tests.tracker.consumer.test_episodes import two
from tests.tracker.simulated.test_provisional import as_final, by_second


def joined_by_another() -> ConsumerStory:
    """The first member was told to give a partition up, and has not."""
    story = ConsumerStory().at(0).joins("a-1", 1).at(5).beat("a-1", 0, 1, ALL, TOPICS).at(5_000).beat("a-1", 1, 1)
    story.at(10_000).joins("b-1", 2).at(10_005).beat("b-1", 0, 2, (), TOPICS).at(12_000).beat("a-1", 1, 1, HALF)
    return story


def ended() -> ConsumerStory:
    return joined_by_another().at(12_100).beat("a-1", 1, 2).at(13_005).beat("b-1", 2, 2, OTHER)


def test_a_rebalance_that_has_ended_has_a_provisional_row_until_it_is_written():
    seen = by_second(ended().at(30_000).beat("a-1", 2, 2), 32_000)
    assert [row["waits_for"] for _, row in seen.provisional] == ["ANSWERS", "ANSWERS"]
    assert [as_final(row) for _, row in seen.provisional] == [row for _, row in seen.final]
    assert all(early < late for (early, _), (late, _) in zip(seen.provisional, seen.final, strict=True))


def test_a_rebalance_that_goes_on_at_the_end_is_a_state_of_the_group_and_no_row_yet():
    rows = joined_by_another().at(20_000).beat("b-1", 2, 2).rows()
    assert told(rows, "rebalances", "generation") == [(1,)]
    assert told(rows, "rebalance_rounds", "epoch") == [(1,)]
    assert told(rows, "group_transitions", "occurred_at", "to_state", "trigger")[-1] == (10_000, "Reconciling", "MEMBER_JOINED")


def test_a_rebalance_that_no_log_shows_any_longer_has_no_end_that_was_seen():
    """The request log was switched off amid the rebalance; the coordinator's goes on."""
    rows = joined_by_another().at(200_000).joins("c-1", 3).at(201_000).line(kinds.DEPARTED, "c-1").raised(4).rows(until=400_000)
    assert told(rows, "rebalances", "first_epoch", "generation", "ended_at", "end_seen") == [
        (1, 1, 0, True), (2, 2, 12_000, False), (3, 4, 201_000, False),
    ]  # fmt: skip


@pytest.mark.parametrize(("gives_up", "codes_told"), [(25_500, []), (27_000, [("STUCK_RECONCILING", "a-1")])])
def test_who_holds_partitions_back_for_longer_than_a_heartbeat_interval_is_told(gives_up, codes_told):
    story = alone().at(20_000).joins("c-1", 2).at(20_005).beat("c-1", 0, 2, (), TOPICS).at(21_000).beat("a-1", 1, 1, HALF)
    story.at(25_000).beat("c-1", 2, 2).at(gives_up).beat("a-1", 1, 2).at(gives_up + 100).beat("c-1", 2, 2, OTHER)
    assert codes(story) == codes_told


def test_where_topics_had_changed_one_that_was_deleted_may_be_why_a_member_did_not_give_partitions_up():
    story = two().at(15_000).raised(3, 7).computed(3).beat("a-1", 2, 3).beat("b-1", 2, 3).at(20_000).raised(4, 8).computed(4)
    story.at(20_002).beat("b-1", 3, 4).at(21_000).beat("a-1", 3, 3, ())
    for ms in range(24_000, 51_000, 3_000):
        story.at(ms).beat("a-1", 3, 3).beat("b-1", 4, 4)
    story.at(51_000).line(kinds.STUCK, "a-1", rebalance_timeout_ms=30_000).raised(5, 8)
    ((code, advice),) = told(story.rows(), "findings", "code", "advice")
    assert code == "REBALANCE_TIMEOUT"
    assert advice.startswith("The topics of the group had just changed.")


def test_requests_alone_show_that_who_was_told_to_give_partitions_up_and_went_on_ran_out_of_that_time():
    """Its heartbeats went on until it was refused: no session ended."""
    story = ConsumerStory().at(0).beat("a-1", 0, 1, ALL, TOPICS, rebalance_timeout_ms=20_000)
    for ms in range(5_000, 21_000, 5_000):
        story.at(ms).beat("a-1", 1, 1)
    story.at(20_005).beat("c-1", 0, 2, (), TOPICS, rebalance_timeout_ms=20_000).at(21_000).beat("a-1", 1, 1, HALF)
    for ms in range(24_000, 42_000, 4_000):
        story.at(ms).beat("c-1", 2, 2).at(ms + 1_000).beat("a-1", 1, 1)
    rows = story.at(42_000).refused("a-1", 1, Error.UNKNOWN_MEMBER_ID).at(45_000).beat("c-1", 2, 3, ALL).rows()
    assert ("REBALANCE_TIMEOUT", "a-1") in told(rows, "findings", "code", "member_id")


def test_a_group_that_is_deleted_amid_a_rebalance_was_empty_by_then_though_the_lines_about_its_last_members_are_missing():
    rows = joined_by_another().at(20_000).beat("b-1", 2, 2).at(90_000).log(kinds.GROUPS_DELETED).rows()
    last = told(rows, "rebalances", "outcome", "ended_at", "end_seen", "members_after", "left")[-1]
    assert last == ("EMPTIED", 90_000, False, 0, ["a-1"])  # the other one came in that rebalance
    assert [states for *states, _ in told(rows, "group_transitions", "from_state", "to_state", "occurred_at")][-2:] == [
        ["Reconciling", "Empty"], ["Empty", "Dead"],
    ]  # fmt: skip
    assert told(rows, "member_sessions", "member_id", "end_kind", "ended_at") == [
        ("a-1", "UNKNOWN", 90_000), ("b-1", "UNKNOWN", 90_000),
    ]  # fmt: skip
