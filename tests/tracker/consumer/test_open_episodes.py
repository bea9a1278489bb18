"""What is told of a rebalance of the consumer protocol that has just ended, or has not ended yet."""

from __future__ import annotations

from coordinator_model import events as kinds
from tests.tracker.consumer.consumer_story import ConsumerStory, told
from tests.tracker.simulated.test_provisional import as_final, by_second

ALL, HALF, OTHER = ("t-0", "t-1"), ("t-0",), ("t-1",)
ORDERS = ("orders",)


def joined_by_another() -> ConsumerStory:
    """The first member was told to give a partition up, and has not."""
    story = ConsumerStory().at(0).joins("a-1", 1).at(5).beat("a-1", 0, 1, ALL, ORDERS).at(5_000).beat("a-1", 1, 1)
    story.at(10_000).joins("b-1", 2).at(10_005).beat("b-1", 0, 2, (), ORDERS).at(12_000).beat("a-1", 1, 1, HALF)
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
