"""Stories in which one line of the coordinator is missing: what other lines show in its place, and what is not known then."""

import pytest

from coordinator_model import events as kinds
from coordinator_model.errors import Error
from coordinator_model.events import Protocol
from coordinator_model.view.settings import TrackerSettings
from tests.tracker.consumer.consumer_story import ConsumerStory, told
from tests.tracker.consumer.test_episodes import ALL, HALF, OTHER, TOPICS

REBALANCE = ("first_epoch", "generation", "started_at", "ended_at", "cause", "member_id", "members_before", "members_after")
SESSION = ("member_id", "end_kind", "ended_at")
SAME, OTHERS, NONE = 7, 8, 0


def last(story: ConsumerStory) -> tuple[object, ...]:
    return told(story.rows(), "rebalances", *REBALANCE)[-1]


def one() -> ConsumerStory:
    """a-1 has both partitions."""
    story = ConsumerStory().at(0).joins("a-1", 1, SAME).at(5).beat("a-1", 0, 1, ALL, TOPICS)
    for ms in (3_000, 6_000, 9_000):
        story.at(ms).beat("a-1", 1, 1)
    return story


def both() -> ConsumerStory:
    """a-1 and b-1, as the coordinator's log alone shows them."""
    return ConsumerStory().at(0).joins("a-1", 1, SAME).at(10_000).joins("b-1", 2, SAME)


def heard(until: int = 30_000) -> ConsumerStory:
    """a-1 and b-1 send heartbeats, each with half of the partitions."""
    story = one().at(10_000).joins("b-1", 2, SAME).at(10_005).beat("b-1", 0, 2, (), TOPICS).at(12_000).beat("a-1", 1, 1, HALF)
    story.at(12_100).beat("a-1", 1, 2).at(13_005).beat("b-1", 2, 2, OTHER).at(15_000).beat("a-1", 2, 2).at(15_500).beat("b-1", 2, 2)
    for ms in range(18_000, until, 3_000):
        story.at(ms).beat("a-1", 2, 2).at(ms + 500).beat("b-1", 2, 2)
    return story


# The line about a member is missing.


def test_who_is_not_in_the_target_has_gone_and_is_waited_for_no_more():
    story = heard(30_000).at(30_000).computed(3, "a-1").at(33_000).beat("a-1", 2, 3, ALL)
    rows = story.at(33_100).beat("a-1", 3, 3).rows()
    assert told(rows, "rebalances", *REBALANCE)[-1] == (3, 3, 30_000, 33_000, "UNKNOWN", None, None, 1)
    assert told(rows, "rebalances", "left")[-1] == (["b-1"],)
    assert ("b-1", "UNKNOWN", 30_000) in told(rows, "member_sessions", *SESSION)


def test_a_target_with_all_members_takes_nobody_out():
    rows = heard(30_000).at(30_000).computed(2, "a-1", "b-1").rows()
    assert told(rows, "member_sessions", *SESSION) == told(heard(30_000).rows(), "member_sessions", *SESSION)


def test_who_was_removed_is_the_only_one_that_was_not_heard_since():
    story = heard(30_000).at(33_000).beat("a-1", 2, 2).at(36_000).beat("a-1", 2, 2).at(38_000).raised(3, SAME)
    story.at(39_000).computed(3).beat("a-1", 2, 3, ALL).at(50_000).joins("c-1", 4, SAME).at(50_005).beat("c-1", 0, 4, (), TOPICS)
    rows = story.at(51_000).beat("a-1", 3, 3, HALF).at(51_100).beat("a-1", 3, 4).at(52_000).beat("c-1", 4, 4, OTHER).rows()
    assert told(rows, "rebalances", *REBALANCE)[2:] == [
        (3, 3, 38_000, 39_000, "SESSION_TIMEOUT", "b-1", 2, 1),
        (4, 4, 50_000, 52_000, "MEMBER_JOINED", "c-1", 1, 2),
    ]
    assert ("b-1", "SESSION_TIMEOUT", 38_000) in told(rows, "member_sessions", *SESSION)


def test_also_if_it_had_no_partitions_that_others_could_get():
    story = one().at(10_000).joins("b-1", 2, SAME).at(10_005).beat("b-1", 0, 2, (), TOPICS).at(12_000).beat("a-1", 1, 2).at(13_000)
    story.beat("b-1", 2, 2).at(15_000).beat("a-1", 2, 2).at(18_000).raised(3, SAME).at(19_000).computed(3).beat("a-1", 2, 3)
    assert last(story) == (3, 3, 18_000, 19_000, "UNKNOWN", None, 2, 1)
    expressions = one().at(10_000).joins("b-1", 2, SAME).at(10_005).beat("b-1", 0, 2, (), None, subscribed_regex="x.*")
    expressions.at(12_000).beat("a-1", 1, 2).at(13_000).beat("b-1", 2, 2).at(18_000).raised(3, SAME).at(19_000).computed(3)
    assert told(expressions.beat("a-1", 2, 3).rows(), "rebalances", "generation")[-1] == (2,)  # it may have been a search for topics


def test_of_two_epochs_without_a_reason_each_is_explained_by_its_own_request():
    story = heard().at(31_000).joins("c-1", 3, SAME).at(31_005).beat("c-1", 0, 3, (), TOPICS).at(31_500).raised(4, SAME)
    story.at(32_000).raised(5, SAME).at(32_002).beat("b-1", -1, -1, took=4).at(32_004).beat("c-1", 3, 5, HALF, ("orders", "x"), took=600)
    rows = story.at(33_000).computed(5).beat("a-1", 2, 5, OTHER).at(34_000).beat("c-1", 5, 5).rows()
    assert told(rows, "rebalance_rounds", "epoch", "cause", "member_id")[2:] == [
        (3, "MEMBER_JOINED", "c-1"),
        (4, "SUBSCRIPTION_CHANGED", "c-1"),
        (5, "MEMBER_LEFT", "b-1"),
    ]
    assert told(rows, "rebalances", "members_after")[-1] == (2,)


def test_nobody_departed_where_a_target_was_computed_at_once_for_other_topics():
    story = heard().at(31_000).raised(3, OTHERS).computed(3).beat("a-1", 2, 3, took=2).at(32_000).beat("b-1", 2, 3)
    assert last(story) == (3, 3, 31_000, 32_000, "METADATA_CHANGED", None, 2, 2)
    assert last(both().at(20_000).raised(3, OTHERS).computed(3))[4:] == ("UNKNOWN", None, 2, 2)


def test_an_epoch_without_a_reason_leaves_the_number_of_members_open():
    story = both().at(20_000).raised(3, SAME).at(21_000).computed(3).at(40_000).joins("c-1", 4, SAME)
    assert [row[4:] for row in told(story.rows(), "rebalances", *REBALANCE)[2:]] == [
        ("UNKNOWN", None, 2, None),
        ("MEMBER_JOINED", "c-1", None, None),
    ]


def test_the_answer_to_a_join_names_who_raised_the_epoch():
    story = heard().at(31_000).raised(3, SAME).computed(3).at(31_004).beat("c-1", 0, 3, (), TOPICS, took=5)
    story.at(32_000).beat("a-1", 2, 3).at(32_500).beat("b-1", 2, 3)
    assert last(story) == (3, 3, 31_000, 32_500, "MEMBER_JOINED", "c-1", 2, 3)


def test_nor_is_a_group_empty_whose_first_member_no_line_names():
    story = ConsumerStory().at(0).raised(1, SAME).computed(1).at(5).beat("a-1", 0, 1, ALL, TOPICS, took=6)
    assert last(story)[4:] == ("MEMBER_JOINED", "a-1", 0, 1)
    assert last(ConsumerStory().at(0).raised(1, SAME).computed(1))[4:] == ("UNKNOWN", None, 0, None)


def test_since_4_3_an_answer_to_a_join_may_have_an_older_epoch():
    story = ConsumerStory().at(0).joins("a-1", 2, SAME).at(5).beat("a-1", 0, 2, ALL, TOPICS).at(3_000).beat("a-1", 2, 2)
    story.at(10_000).raised(3, SAME).at(10_002).beat("b-1", 0, 2, (), TOPICS, took=4).at(12_000).computed(3).beat("a-1", 2, 2, HALF)
    story.at(12_100).beat("a-1", 2, 3).at(13_000).beat("b-1", 2, 3, OTHER)
    rows = story.rows(settings=TrackerSettings(kafka_version="4.4.0"))
    assert told(rows, "rebalances", *REBALANCE)[-1][4:] == ("MEMBER_JOINED", "b-1", 1, 2)


def test_the_answer_to_a_leave_names_who_raised_the_epoch():
    story = heard().at(31_000).raised(3, SAME).at(31_002).beat("b-1", -1, -1, took=4).at(32_000).computed(3).beat("a-1", 2, 3, ALL)
    assert last(story) == (3, 3, 31_000, 32_000, "MEMBER_LEFT", "b-1", 2, 1)


def test_a_heartbeat_that_is_refused_shows_whose_removal_raised_the_epoch():
    story = heard().at(42_000).raised(3, SAME).at(43_000).computed(3).at(44_000).refused("b-1", 2, Error.UNKNOWN_MEMBER_ID)
    story.at(45_000).beat("a-1", 2, 3, ALL)
    assert last(story)[4:] == ("SESSION_TIMEOUT", "b-1", 2, 1)


def test_a_group_of_one_member_is_empty_once_it_has_no_topics_and_nobody_computes():
    story = one().at(20_000).raised(2, NONE).at(40_000).joins("b-1", 3, SAME)
    rows = story.at(40_005).beat("b-1", 0, 3, ALL, TOPICS, took=6).rows()
    assert told(rows, "rebalances", *REBALANCE)[1:] == [
        (2, 2, 20_000, 20_000, "SESSION_TIMEOUT", "a-1", 1, 0),
        (3, 3, 40_000, 40_005, "MEMBER_JOINED", "b-1", 0, 1),
    ]


def test_it_is_empty_too_if_nothing_follows_but_the_end_of_the_log():
    assert last(one().at(12_000).raised(2, NONE))[4:] == ("UNKNOWN", None, 1, 0)
    assert last(both().at(20_000).raised(3, NONE))[4:] == ("UNKNOWN", None, 2, None)


def test_a_static_member_that_joins_as_a_new_one_was_removed_before():
    story = ConsumerStory().at(0).joins("a-1", 1, SAME).at(10_000).joins("b-1", 2, SAME, instance_id="i")
    story.at(30_000).raised(3, SAME).at(31_000).computed(3).at(33_000).joins("b-1", 4, SAME, instance_id="i")
    rows = story.rows()
    assert told(rows, "rebalance_rounds", "epoch", "cause", "member_id")[2:] == [(3, "UNKNOWN", None), (4, "MEMBER_JOINED", "b-1")]
    assert last(story)[6:] == (2, 2)
    early = ConsumerStory().at(0).joins("a-1", 1, SAME).at(10_000).joins("b-1", 2, SAME, instance_id="i").at(30_000)
    assert last(early.joins("b-2", 3, SAME, instance_id="i"))[4:6] == ("MEMBER_JOINED", "b-2")


@pytest.mark.parametrize("tells", [kinds.AWAY, kinds.DEPARTED])
def test_a_member_that_no_line_named_came_without_its_line(tells):
    story = both().at(20_000).line(tells, "c-1").raised(3, SAME).at(30_000).joins("d-1", 4, SAME)
    assert last(story)[5:] == ("d-1", None, None)


# The line about an epoch is missing.


def test_the_line_about_the_target_shows_the_epoch_too():
    story = both().at(20_000).line(kinds.JOINED, "c-1").computed(3)
    assert last(story) == (3, 3, 20_000, 20_000, "MEMBER_JOINED", "c-1", 2, 3)
    story = both().at(20_000).line(kinds.DEPARTED, "b-1").at(24_000).computed(3)
    assert last(story)[:6] == (3, 3, 20_000, 24_000, "MEMBER_LEFT", "b-1")
    assert last(both().at(20_000).computed(3))[4:6] == ("UNKNOWN", None)


def test_a_departure_raises_the_epoch_though_no_line_says_so():
    story = both().at(20_000).line(kinds.EXPIRED, "b-1").at(20_500).line(kinds.EXPIRED, "a-1").raised(4, NONE)
    assert told(story.rows(), "rebalances", *REBALANCE)[2] == (3, 4, 20_000, 20_500, "SESSION_TIMEOUT", "b-1", 2, 0)
    assert last(both().at(20_000).line(kinds.EXPIRED, "b-1"))[:6] == (3, 3, 20_000, 20_000, "SESSION_TIMEOUT", "b-1")


def test_its_answer_says_the_same_and_raises_no_second_epoch():
    story = heard().at(31_000).line(kinds.DEPARTED, "b-1").at(31_002).beat("b-1", -1, -1, took=4)
    story.at(32_000).computed(3).beat("a-1", 2, 3, ALL).at(40_000).joins("c-1", 4, SAME).at(40_005).beat("c-1", 0, 4, (), TOPICS)
    rows = story.at(41_000).beat("a-1", 3, 4).at(42_000).beat("c-1", 4, 4).rows()
    assert told(rows, "rebalance_rounds", "epoch", "cause", "member_id")[2:] == [(3, "MEMBER_LEFT", "b-1"), (4, "MEMBER_JOINED", "c-1")]


def test_a_classic_member_that_joins_without_its_line_is_named_by_its_answer():
    story = heard().at(31_000).raised(3, SAME).computed(3).at(31_004)
    protocols = (Protocol("range", TOPICS, (), ""),)
    story.request(
        kinds.JOIN_GROUP, "k-1", answer_member_id="k-1", answer_generation=3, protocol_type="consumer", protocols=protocols, took=5
    )
    assert last(story.at(32_000).beat("a-1", 2, 3).at(32_500).beat("b-1", 2, 3))[4:] == ("MEMBER_JOINED", "k-1", 2, 3)
