"""What is told of changed subscriptions and regular expressions, and of partitions that members say they own (KIP-848)."""

import pytest

from coordinator_model import events as kinds
from tests.tracker.consumer.consumer_story import ALL, HALF, OTHER, TOPICS, ConsumerStory, told

WHY = ("epoch", "cause", "member_id")


def two(*, logged: bool = True, regex: str = "", topics: tuple[str, ...] = TOPICS) -> ConsumerStory:
    """Two members share both partitions. The metadata hash is 7."""
    story = ConsumerStory().at(0)
    story = story.joins("a-1", 1, 7) if logged else story
    story.at(5).beat("a-1", 0, 1, ALL, topics, subscribed_regex=regex, owned=())
    story = story.at(10_000).joins("b-1", 2, 7) if logged else story
    story.at(10_005).beat("b-1", 0, 2, (), topics, subscribed_regex=regex, owned=())
    story.at(12_000).beat("a-1", 1, 1, HALF).at(12_100).beat("a-1", 1, 2, owned=HALF)
    return story.at(13_005).beat("b-1", 2, 2, OTHER).at(16_000).beat("a-1", 2, 2).beat("b-1", 2, 2)


def last_round(story: ConsumerStory) -> tuple[object, ...]:
    return told(story.rows(), "rebalance_rounds", *WHY)[-1]


def settled(story: ConsumerStory, epoch: int) -> ConsumerStory:
    """Both members have the epoch."""
    return story.at(21_500).beat("a-1", epoch - 1, epoch).at(22_500).beat("b-1", epoch - 1, epoch).at(40_000).beat("a-1", epoch, epoch)


def test_a_regular_expression_that_is_dropped_is_a_changed_subscription():
    story = two(regex="orders.*", topics=()).at(20_000).raised(3, 8).computed(3)
    story.at(20_002).beat("b-1", 2, 3, None, TOPICS, subscribed_regex="", took=5)
    assert last_round(settled(story, 3)) == (3, "SUBSCRIPTION_CHANGED", "b-1")


def test_a_regular_expression_that_another_member_has_counts_at_once():
    story = ConsumerStory().at(0).joins("a-1", 1, 7).at(5).beat("a-1", 0, 1, ALL, TOPICS, subscribed_regex="")
    story.at(10_000).joins("b-1", 2, 7).at(10_005).beat("b-1", 0, 2, (), (), subscribed_regex="orders.*")
    story.at(12_000).beat("a-1", 1, 1, HALF).at(12_100).beat("a-1", 1, 2).at(13_005).beat("b-1", 2, 2, OTHER)
    story.at(20_000).raised(3, 8).computed(3).at(20_002).beat("a-1", 2, 3, None, None, subscribed_regex="orders.*", took=5)
    assert last_round(settled(story, 3)) == (3, "SUBSCRIPTION_CHANGED", "a-1")


def test_a_regular_expression_that_is_new_to_the_group_is_resolved_first():
    story = two().at(20_002).beat("b-1", 2, 2, None, None, subscribed_regex="pay.*", took=5)
    story.at(20_010).line(kinds.REGEX_RESOLVED).raised(3, 8).at(21_000).computed(3)
    assert last_round(settled(story, 3)) == (3, "REGEX_RESOLVED", None)


def test_a_new_regular_expression_alone_blames_nobody_without_the_coordinators_log():
    story = two(logged=False).at(20_002).beat("b-1", 2, 2, None, None, subscribed_regex="pay.*", took=5)
    assert last_round(settled(story, 3)) == (3, "UNKNOWN", None)


def test_who_joins_with_a_new_regular_expression_raises_no_epoch_by_itself():
    story = two(logged=False).at(20_000).beat("c-1", 0, 2, (), None, subscribed_regex="pay.*", owned=())
    story.at(21_000).beat("a-1", 2, 3).at(21_500).beat("b-1", 2, 3).at(22_000).beat("c-1", 2, 3, ("p-0",)).at(40_000).beat("a-1", 3, 3)
    rows = story.rows()
    assert told(rows, "rebalance_rounds", *WHY)[-1] == (3, "UNKNOWN", None)
    assert told(rows, "rebalances", "members_after")[-1] == (3,)


def test_an_expression_that_finds_new_topics_is_nobodys_doing():
    story = two(regex="orders.*", topics=()).at(20_000).line(kinds.REGEX_RESOLVED).raised(3, 8).at(21_000).computed(3)
    assert last_round(settled(story, 3)) == (3, "REGEX_RESOLVED", None)


def test_a_first_member_raises_the_epoch_though_its_expression_is_resolved_in_the_same_moment():
    """Up to Kafka 4.2. Another thread looks for topics: its line came between the two of the join at a broker of 4.2.0."""
    story = ConsumerStory().at(0).line(kinds.JOINED, "a-1").at(15).line(kinds.REGEX_RESOLVED).raised(1, 0).computed(1)
    rows = story.at(17).raised(2, 7).at(200).computed(2).rows()
    assert told(rows, "rebalance_rounds", *WHY) == [(1, "MEMBER_JOINED", "a-1"), (2, "REGEX_RESOLVED", None)]
    assert told(rows, "rebalances", "members_before", "members_after")[0] == (0, 1)


def test_who_leaves_raises_the_epoch_though_an_expression_is_resolved_in_the_same_moment():
    story = ConsumerStory().at(0).joins("a-1", 1, 7).at(10_000).joins("b-1", 2, 7).at(30_000).line(kinds.DEPARTED, "b-1")
    rows = story.line(kinds.REGEX_RESOLVED).raised(3, 7).computed(3).at(30_002).raised(4, 8).rows()
    assert told(rows, "rebalance_rounds", *WHY)[2:] == [(3, "MEMBER_LEFT", "b-1"), (4, "REGEX_RESOLVED", None)]


def test_a_search_that_finds_nothing_new_explains_no_later_epoch():
    story = ConsumerStory().at(0).joins("a-1", 1, 7).at(10_000).line(kinds.REGEX_RESOLVED).at(10_100).joins("b-1", 2, 7)
    rows = story.at(10_200).raised(3, 8).rows()
    assert told(rows, "rebalance_rounds", *WHY)[1:] == [(2, "MEMBER_JOINED", "b-1"), (3, "UNKNOWN", None)]


def test_topics_that_stay_as_they_are_leave_only_a_changed_subscription():
    story = ConsumerStory().at(0).joins("a-1", 1, 7).at(10_000).joins("b-1", 2, 7).at(30_000).raised(3, 7).computed(3)
    assert last_round(story) == (3, "SUBSCRIPTION_CHANGED", None)


def test_topics_that_change_may_have_two_causes():
    story = ConsumerStory().at(0).joins("a-1", 1, 7).at(10_000).joins("b-1", 2, 7).at(30_000).raised(3, 8).computed(3)
    assert last_round(story) == (3, "UNKNOWN", None)


@pytest.mark.parametrize(("metadata_hash", "cause"), [(7, ("SUBSCRIPTION_CHANGED", "b-1")), (8, ("UNKNOWN", None))])
def test_a_member_that_joins_again_is_blamed_only_if_the_topics_are_the_same(metadata_hash, cause):
    story = ConsumerStory().at(0).joins("a-1", 1, 7).at(10_000).joins("b-1", 2, 7).at(30_000).joins("b-1", 3, metadata_hash)
    assert last_round(story)[1:] == cause


def test_a_member_that_joins_again_as_it_was_does_not_explain_a_grown_topic():
    story = two().at(20_000).joins("b-1", 3, 8).at(20_002).beat("b-1", 0, 3, OTHER, TOPICS, subscribed_regex="", owned=(), took=5)
    assert last_round(settled(story, 3)) == (3, "METADATA_CHANGED", None)


def test_a_join_that_raised_no_epoch_does_not_explain_the_next_one():
    story = two().at(20_000).line(kinds.JOINED, "b-1").at(20_002).beat("b-1", 0, 2, OTHER, TOPICS, subscribed_regex="", owned=(), took=5)
    story.at(20_050).raised(3, 7).computed(3).at(20_052).beat("a-1", 2, 3, None, ("orders", "x"), took=5)
    assert last_round(settled(story, 3)) == (3, "SUBSCRIPTION_CHANGED", "a-1")


def test_a_member_that_lists_its_partitions_has_given_up_the_others():
    """It is told at once to give up more, so that its epoch stays."""
    story = two().at(20_000).joins("c-1", 3, 7).at(20_005).beat("c-1", 0, 3, (), TOPICS)
    story.at(21_000).beat("b-1", 2, 3).at(22_000).beat("a-1", 2, 2, ())
    story.at(22_500).joins("d-1", 4, 7).at(22_505).beat("d-1", 0, 4, (), TOPICS)
    story.at(24_000).beat("a-1", 2, 2, (), owned=())
    story.at(25_000).beat("c-1", 3, 4, HALF).at(26_000).beat("a-1", 2, 4).at(26_500).beat("b-1", 3, 4).at(27_000).beat("d-1", 4, 4)
    rows = story.at(40_000).beat("a-1", 4, 4).rows()
    assert told(rows, "rebalances", "first_epoch", "generation", "unavailable_partition_ms")[-1] == (3, 4, 1_001)


def test_what_a_member_says_it_owns_counts_where_its_answers_are_not_known():
    story = ConsumerStory().at(0).joins("a-1", 1).at(500).beat("a-1", 1, 1, owned=ALL).at(1_000).beat("a-1", 1, 1)
    story.at(10_000).joins("b-1", 2).at(10_005).beat("b-1", 0, 2, (), TOPICS)
    story.at(12_000).beat("a-1", 1, 1, HALF).at(12_100).beat("a-1", 1, 2).at(13_005).beat("b-1", 2, 2, OTHER)
    assert told(story.at(30_000).beat("a-1", 2, 2).rows(), "rebalances", "partitions_moved")[-1] == (1,)


def test_where_the_log_begins_late_nobody_knows_who_else_had_partitions():
    story = ConsumerStory().at(0).beat("a-1", 4, 4, owned=ALL).at(1_000).beat("a-1", 4, 4)
    story.at(10_000).joins("b-1", 5).at(10_005).beat("b-1", 0, 5, (), TOPICS)
    story.at(12_000).beat("a-1", 4, 4, HALF).at(12_100).beat("a-1", 4, 5).at(13_005).beat("b-1", 5, 5, OTHER)
    rows = story.at(30_000).beat("a-1", 5, 5).rows()
    assert told(rows, "rebalances", "members_before", "partitions_moved", "unavailable_partition_ms")[-1] == (None, None, None)


def test_what_a_member_owned_before_it_was_heard_counts_in_a_rebalance_that_has_begun():
    story = ConsumerStory().at(0).joins("a-1", 1).at(500).beat("a-1", 1, 1)
    story.at(10_000).joins("b-1", 2).at(10_005).beat("b-1", 0, 2, (), TOPICS)
    story.at(11_000).beat("a-1", 1, 1, owned=ALL).at(12_000).beat("a-1", 1, 1, HALF).at(12_100).beat("a-1", 1, 2)
    rows = story.at(13_005).beat("b-1", 2, 2, OTHER).at(30_000).beat("a-1", 2, 2).rows()
    assert told(rows, "rebalances", "partitions_moved", "unavailable_partition_ms")[-1] == (1, 906)


def test_answers_to_joins_of_one_instant_may_be_logged_in_any_order():
    story = ConsumerStory().at(0).beat("a-1", 0, 1, ALL, TOPICS)
    story.at(10).beat("c-1", 0, 3, (), TOPICS, took=2).beat("b-1", 0, 2, (), TOPICS, took=1)
    rounds = told(story.at(2_000).beat("a-1", 1, 3).at(2_100).beat("b-1", 2, 3).rows(), "rebalance_rounds", *WHY)
    assert rounds == [(epoch, "MEMBER_JOINED", member) for epoch, member in ((1, "a-1"), (2, "b-1"), (3, "c-1"))]


def test_a_static_member_that_comes_back_with_another_subscription_is_told_from_the_log_alone():
    story = ConsumerStory().at(0).joins("a-1", 1, 7, instance_id="i-1").at(10_000).line(kinds.AWAY, "a-1", instance_id="i-1")
    story.at(12_000).line(kinds.RETURNED, "a-1", instance_id="i-1", answer_member_id="a-2").raised(2, 8).computed(2)
    assert last_round(story) == (2, "SUBSCRIPTION_CHANGED", "a-2")
