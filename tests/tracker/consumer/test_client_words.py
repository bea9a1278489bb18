"""What the log of a client tells of a member of the consumer protocol: that its application did not poll in time."""

import json

import pytest

from coordinator_model import events as kinds
from coordinator_model.errors import Error
from tests.tracker.consumer.consumer_story import ConsumerStory, told
from tests.tracker.consumer.test_episodes import ALL, two


def stalls(story: ConsumerStory, **fields: object) -> ConsumerStory:
    """consumer poll timeout has expired."""
    story.on("clients").add(kinds.CLIENT_SOURCE, kinds.CLIENT_POLL_TIMEOUT, **{"client_id": "b", **fields})
    story.on("broker-1")
    return story


@pytest.mark.parametrize("logged", [True, False])
@pytest.mark.parametrize("words", [{}, {"member_id": "b-1", "rebalance_timeout_ms": 8_000}])
def test_who_left_since_it_was_not_polled_did_not_just_leave(logged, words):
    story = stalls(two(logged=logged).at(20_000), **words).at(20_010)
    story = story.line(kinds.DEPARTED, "b-1").raised(3) if logged else story
    story.at(20_012).beat("b-1", -1, -1).at(21_000)
    rows = (story.computed(3) if logged else story).beat("a-1", 2, 3, ALL).rows()
    assert told(rows, "rebalances", "cause", "member_id")[-1] == ("POLL_TIMEOUT", "b-1")
    assert told(rows, "member_sessions", "member_id", "end_kind") == [("b-1", "POLL_TIMEOUT")]
    assert told(rows, "findings", "code", "member_id", "client_id") == [("POLL_TIMEOUT", "b-1", "b")]
    assert ("(8 s)" in told(rows, "findings", "message")[0][0]) == bool(words)


def test_words_that_come_late_or_long_before_explain_no_departure():
    story = two().at(20_000).line(kinds.DEPARTED, "b-1").raised(3).at(20_002).beat("b-1", -1, -1).at(20_100)
    rows = stalls(story).at(21_000).computed(3).beat("a-1", 2, 3, ALL).at(22_000).refused("b-1", 2, Error.UNKNOWN_MEMBER_ID).rows()
    assert told(rows, "rebalances", "cause")[-1] == ("MEMBER_LEFT",)
    assert told(rows, "findings", "code", "member_id") == [("POLL_TIMEOUT", "b-1")]
    story = stalls(two().at(20_000)).at(40_000).line(kinds.DEPARTED, "b-1").raised(3)
    assert told(story.rows(), "member_sessions", "end_kind") == [("LEFT",)]


def test_two_lines_about_one_stall_are_one_finding():
    story = stalls(two().at(20_000)).at(20_010).line(kinds.DEPARTED, "b-1").raised(3).at(21_000).computed(3).beat("a-1", 2, 3, ALL)
    rows = stalls(story.at(31_000)).at(40_000).beat("a-1", 3, 3).rows()
    assert told(rows, "findings", "code", "member_id") == [("POLL_TIMEOUT", "b-1")]


@pytest.mark.parametrize("who", [{}, {"client_id": ""}])
def test_a_client_that_says_so_once_more_polls_again(who):
    """librdkafka writes when the time is over; its application logs the error that the next poll returns, and names nobody."""
    story = stalls(two().at(20_000), rebalance_timeout_ms=10_000).at(20_010).line(kinds.DEPARTED, "b-1").raised(3).at(21_000).computed(3)
    rows = stalls(story.beat("a-1", 2, 3, ALL).at(26_773), **who).at(40_000).beat("a-1", 3, 3).rows()
    assert told(rows, "findings", "code", "member_id", "occurred_at") == [("POLL_TIMEOUT", "b-1", 20_000)]
    assert "did not call poll() for about 16.8 s (max.poll.interval.ms is 10 s)" in told(rows, "findings", "message")[0][0]


@pytest.mark.parametrize(
    ("again_ms", "over_ms", "gap_ms"),
    [
        (26_773, 246, 17_019),  # librdkafka: the error that the next poll returns repeats the words
        (31_000, 246, 21_246),  # also later than a new stall could be
        (26_773, 7_066, 17_066),  # Java: the second line says for how long in all
        (45_000, 25_066, 35_066),
    ],
)
def test_a_stall_began_as_long_before_as_the_line_says(again_ms, over_ms, gap_ms):
    story = stalls(two().at(20_000), rebalance_timeout_ms=10_000, took=246 if over_ms == 246 else 0)
    rows = stalls(story.at(again_ms), rebalance_timeout_ms=10_000, took=over_ms).at(60_000).beat("a-1", 2, 2).rows()
    assert [json.loads(one)["poll_gap_ms"] for (one,) in told(rows, "findings", "details")] == [gap_ms]


@pytest.mark.parametrize("again_ms", [20_500, 30_000])
def test_a_line_of_the_same_moment_or_perhaps_of_another_stall_shows_no_gap(again_ms):
    story = stalls(two().at(20_000), rebalance_timeout_ms=10_000)
    rows = stalls(story.at(again_ms), rebalance_timeout_ms=10_000).at(40_000).beat("a-1", 2, 2).rows()
    assert told(rows, "findings", "code", "details") == [("POLL_TIMEOUT", '{"max_poll_interval_ms":10000}')]


def test_heartbeats_that_went_on_show_that_no_process_stood_still():
    story = two()
    for at_ms in (5_000, 10_000, 15_000, 20_000):
        story.at(at_ms).beat("b-1", 2, 2)
    for one, at_ms, words in ((story, 20_010, "polling thread), or raise"), (two(), 60_000, "Its heartbeats stopped too")):
        rows = stalls(one.at(at_ms), rebalance_timeout_ms=10_000).at(at_ms + 10_000).beat("a-1", 2, 2).rows()
        advice = dict(told(rows, "findings", "code", "advice"))["POLL_TIMEOUT"]
        assert words in advice
        assert ("its whole process" in advice) == (at_ms == 60_000)


def test_words_of_an_unknown_client_or_of_one_of_two_are_about_no_member():
    rows = stalls(two().at(20_000), client_id="c").at(30_000).beat("a-1", 2, 2).rows()
    assert told(rows, "findings", "code", "member_id", "client_id") == [("POLL_TIMEOUT", None, "c")]
    other = two().at(20_000)
    other.on("clients").add(kinds.CLIENT_SOURCE, kinds.CLIENT_JOINED, client_id="b", member_id="b-1")
    assert told(other.at(30_000).beat("a-1", 2, 2).rows(), "findings", "code") == []


def test_a_static_member_that_was_not_polled_leaves_for_a_while():
    story = ConsumerStory().at(0).joins("a-1", 1, instance_id="i").at(5).beat("a-1", 0, 1, ALL, ("orders",), instance_id="i").at(20_000)
    rows = stalls(story, client_id="", instance_id="i").at(20_005).line(kinds.AWAY, "a-1", instance_id="i").rows()
    assert told(rows, "findings", "code", "member_id") == [("POLL_TIMEOUT", "a-1")]


def test_who_was_removed_already_says_after_any_pause_that_it_was_not_polled():
    """A frozen process: its session ended, and what its client says when it goes on is no second trouble."""
    story = two().at(20_000).line(kinds.EXPIRED, "b-1").raised(3).at(21_000).computed(3).beat("a-1", 2, 3, ALL)
    rows = stalls(story.at(33_000)).at(40_000).beat("a-1", 3, 3).rows()
    assert told(rows, "findings", "code", "member_id") == [("SESSION_TIMEOUT", "b-1")]


def test_the_same_holds_where_only_the_clients_own_lines_name_it():
    """The coordinator of a Streams group logs member ids, and no client's name."""
    story = two().at(17_000).line(kinds.JOINED, "c-1", client_id="").on("clients")
    story.add(kinds.CLIENT_SOURCE, kinds.CLIENT_STATE, client_id="c", member_id="c-1", state="STABLE")
    story.on("broker-1").at(20_000).line(kinds.EXPIRED, "c-1")
    rows = stalls(story.at(30_000), client_id="c").at(80_000).beat("a-1", 2, 2).rows()
    assert told(rows, "findings", "code", "member_id") == [("SESSION_TIMEOUT", "c-1")]


@pytest.mark.parametrize(
    ("instance_id", "told_as"), [("", "The client left"), ("i-b", "The client, a static member, stopped sending heartbeats")]
)
def test_a_static_member_keeps_its_place(instance_id, told_as):
    """It leaves for a while (epoch -2), or falls silent, until it polls again."""
    story = stalls(two().at(20_000).beat("b-1", 2, 2, instance_id=instance_id).at(20_001), took=200)
    rows = stalls(story.at(26_800), took=200).at(60_000).beat("a-1", 2, 2).rows()
    assert told(rows, "findings", "message")[0][0].startswith(told_as)
