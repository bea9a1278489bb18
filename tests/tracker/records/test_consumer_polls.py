"""Polls of groups of the consumer protocol (KIP-848): what happened between two polls that found a group at rest."""

import pytest

from coordinator_model import events as kinds
from tests.tracker.records.record_story import SIX, A, B, C, RecordStory, split
from tests.tracker.story import table

WHAT = ("started_at", "ended_at", "outcome", "cause", "member_id", "joined", "left", "members_before", "members_after")
STEP = ("occurred_at", "from_state", "to_state", "trigger")


def told(rows, name, columns):
    return [tuple(row[column] for column in columns) for row in table(rows, name)]


def one_then_two():
    story = RecordStory()
    story.at(0).consumer_group("Stable", split(A)).at(5_000).consumer_group("Reconciling", {A: SIX, B: ()})
    return story.at(10_000).consumer_group("Stable", split(A, B))


def test_a_group_that_stays_as_it_was_found_tells_nothing():
    story = RecordStory().at(0).consumer_group("Stable", split(A, B))
    assert story.at(5_000).consumer_group("Stable", split(A, B)).rows() == []
    assert RecordStory().at(0).consumer_group("Empty").at(5_000).consumer_group("Empty").rows() == []


def test_a_rebalance_lasts_from_the_first_poll_that_shows_it_until_the_group_is_stable():
    rows = one_then_two().rows()
    assert told(rows, "rebalances", WHAT) == [(5_000, 10_000, "COMPLETED", "MEMBER_JOINED", B, [B], [], 1, 2)]
    (row,) = table(rows, "rebalances")
    assert (row["group_protocol"], row["client_id"], row["total_ms"], row["start_seen"]) == ("consumer", "app", 5_000, False)
    assert (row["partitions"], row["partitions_moved"], row["unavailable_partition_ms"]) == (6, 3, None)
    assert told(rows, "group_transitions", STEP) == [
        (5_000, "Stable", "Reconciling", "MEMBER_JOINED"),
        (10_000, "Reconciling", "Stable", "ALL_MEMBERS_RECONCILED"),
    ]


def test_no_epoch_is_told():
    """The answer has none."""
    rows = one_then_two().rows()
    (row,) = table(rows, "rebalances")
    assert (row["generation"], row["first_epoch"], row["rounds"]) == (None, None, None)
    assert table(rows, "rebalance_rounds") == []


def test_a_rebalance_between_two_polls_shows_by_other_members_or_other_partitions():
    story = RecordStory()
    story.at(0).consumer_group("Stable", split(A, B)).at(5_000).consumer_group("Stable", split(A, C))
    story.at(10_000).consumer_group("Stable", {A: SIX[:1], C: SIX[1:]})
    assert told(story.rows(), "rebalances", WHAT) == [
        (5_000, 5_000, "COMPLETED", "UNKNOWN", None, [C], [B], 2, 2),  # which of the two began it does not show
        (10_000, 10_000, "COMPLETED", "UNKNOWN", None, [], [], 2, 2),  # partitions were added, or moved
    ]


def test_why_a_member_is_gone_does_not_show():
    story = RecordStory()
    story.at(0).consumer_group("Stable", split(A)).at(5_000).consumer_group("Stable", split(A, B))
    rows = story.at(60_000).consumer_group("Stable", split(A)).rows()
    assert told(rows, "rebalances", WHAT)[1:] == [(60_000, 60_000, "COMPLETED", "UNKNOWN", None, [], [B], 2, 1)]
    assert told(rows, "member_sessions", ("member_id", "client_id", "joined_at", "ended_at", "end_kind")) == [
        (B, "app", 5_000, 60_000, "UNKNOWN")
    ]
    assert table(rows, "findings") == []


def test_a_group_that_becomes_empty_and_is_deleted():
    story = RecordStory()
    story.at(0).consumer_group("Stable", split(A, B)).at(5_000).consumer_group("Empty").at(10_000).consumer_group("Dead")
    rows = story.at(15_000).consumer_group("Stable", split(C)).rows()
    assert told(rows, "rebalances", WHAT) == [
        (5_000, 5_000, "EMPTIED", "UNKNOWN", None, [], [A, B], 2, 0),
        (15_000, 15_000, "COMPLETED", "MEMBER_JOINED", C, [C], [], 0, 1),
    ]
    assert told(rows, "group_transitions", STEP[:3]) == [
        (5_000, "Stable", "Reconciling"),
        (5_000, "Reconciling", "Empty"),
        (10_000, "Empty", "Dead"),
        (15_000, "Empty", "Reconciling"),
        (15_000, "Reconciling", "Stable"),
    ]


@pytest.mark.parametrize("state", ["Stable", "Reconciling"])
def test_a_group_that_is_gone_at_the_next_poll_was_empty_between(state):
    story = RecordStory().at(0).consumer_group("Stable", split(A)).at(5_000).consumer_group(state, split(A))
    rows = story.at(10_000).consumer_group("Dead").rows()
    assert [(row["outcome"], row["left"]) for row in table(rows, "rebalances")] == [("EMPTIED", [A])]
    assert [row["to_state"] for row in table(rows, "group_transitions")] == ["Reconciling", "Empty", "Dead"]


def test_of_a_group_that_was_never_seen_a_removal_tells_nothing():
    assert RecordStory().at(0).consumer_group("Dead").at(5_000).consumer_group("Dead").rows() == []


def test_the_first_poll_may_find_a_rebalance():
    """Who was there before is not known, nor who began it."""
    story = RecordStory().at(0).consumer_group("Assigning", {A: SIX, B: ()}).at(5_000).consumer_group("Stable", split(A, B))
    rows = story.rows()
    assert told(rows, "rebalances", WHAT) == [(0, 5_000, "COMPLETED", "UNKNOWN", None, [], [], None, 2)]
    assert table(rows, "rebalances")[0]["partitions_moved"] is None


def test_several_members_of_a_group_that_was_empty():
    """One of them began it."""
    story = RecordStory().at(0).consumer_group("Empty").at(5_000).consumer_group("Stable", split(A, B))
    assert told(story.rows(), "rebalances", WHAT[3:6]) == [("MEMBER_JOINED", None, [A, B])]


def test_a_static_member_that_comes_back_under_a_new_id_is_no_rebalance():
    story = RecordStory()
    story.at(0).consumer_group("Stable", split(A, B), instances={A: "one"})
    rows = story.at(60_000).consumer_group("Stable", {C: SIX[::2], B: SIX[1::2]}, instances={C: "one"}).rows()
    assert table(rows, "rebalances") == []
    assert told(rows, "member_sessions", ("member_id", "end_kind", "ended_at")) == [(A, "REPLACED", 60_000)]


def test_a_rebalance_that_no_poll_ends_has_no_row():
    story = RecordStory().at(0).consumer_group("Stable", split(A)).at(5_000).consumer_group("Reconciling", split(A, B))
    assert story.rows(until=10_000_000) == []


def test_a_classic_group_that_changes_its_protocol_and_changes_it_back():
    story = RecordStory()
    story.at(0).described("Stable", split(A)).at(5_000).consumer_group("Stable", split(A, B))
    rows = story.at(10_000).described("Stable", split(A)).rows()
    assert [(row["group_protocol"], row["joined"], row["left"]) for row in table(rows, "rebalances")] == [
        ("consumer", [B], []),
        ("classic", [], [B]),
    ]
    assert "CONVERTED_TO_CONSUMER" in [row["trigger"] for row in table(rows, "group_transitions")]
    assert "CONVERTED_TO_CLASSIC" in [row["trigger"] for row in table(rows, "group_transitions")]


@pytest.mark.parametrize("state", ["Stable", "Reconciling"])
def test_where_a_broker_or_records_show_the_group_polls_no_longer_count(state):
    """They have other clocks, and other names of partitions."""
    story = RecordStory().at(0).consumer_group("Stable", split(A)).at(5_000).consumer_group(state, split(A, B))
    rows = story.at(60_000).log(kinds.CONSUMER_GROUP_LOG, state=kinds.EPOCH_RAISED, generation=3).at(90_000).rows()
    by_polls, by_broker = table(rows, "rebalances")
    assert (by_polls["ended_at"], by_polls["outcome"]) == (5_000, "COMPLETED" if state == "Stable" else "ABANDONED")
    assert (by_broker["first_epoch"], by_broker["members_before"]) == (3, None)
    assert story.at(95_000).consumer_group("Empty").rows() == rows


def test_records_come_before_polls():
    story = RecordStory().at(0).consumer_group("Stable", split(A))
    story.broker = "offsets"
    story.at(5_000).add("offsets", kinds.EPOCH_STORED, generation=2)
    story.broker = "poll"
    rows = story.at(10_000).consumer_group("Stable", split(A, B)).rows()
    assert [row["first_epoch"] for row in table(rows, "rebalances")] == [2]


def test_how_a_rebalance_ends_that_polls_began_does_not_show_where_a_broker_removes_the_group():
    story = RecordStory().at(0).consumer_group("Stable", split(A)).at(5_000).consumer_group("Reconciling", {A: SIX, B: ()})
    story.at(60_000).add("coordinator", kinds.GROUPS_DELETED)
    assert told(story.rows(), "group_transitions", STEP)[-1] == (60_000, "Empty", "Dead", "GROUP_REMOVED")
