"""Records and polls that repeat themselves, that miss what was between them, and that are of no consumers."""

import pytest

from coordinator_model import events as kinds
from tests.tracker.records.record_story import SIX, A, B, C, RecordStory, logged, rebalances, split
from tests.tracker.story import JOINED, table


def test_polls_that_find_a_group_as_it_was_tell_nothing():
    """Empty and Empty again; then one phase, that two polls see."""
    story = RecordStory()
    story.at(0).described("Empty").at(5_000).described("Empty")
    assert story.rows() == []
    story.at(10_000).described("PreparingRebalance", {A: ()}).at(15_000).described("CompletingRebalance", {A: ()})
    (only,) = rebalances(story.at(20_000).described("Stable", split(A)))
    assert (only["started_at"], only["ended_at"], only["cause"], only["member_id"]) == (10_000, 20_000, "MEMBER_JOINED", A)


@pytest.mark.parametrize("state", ["PreparingRebalance", "Stable"])
def test_a_group_that_was_deleted_between_two_polls_is_empty_before_it_has_members(state):
    story = RecordStory()
    story.at(0).described("Stable", split(A, B)).at(5_000).described("Dead").at(10_000).described(state, split(C))
    rows = story.at(15_000).described("Stable", split(C)).rows()
    (made,) = table(rows, "rebalances")
    assert (made["started_at"], made["cause"], made["member_id"], made["members_before"]) == (10_000, "MEMBER_JOINED", C, 0)
    steps = [(t["from_state"], t["to_state"]) for t in table(rows, "group_transitions")]
    assert steps[:2] == [("Stable", "Dead"), ("Empty", "PreparingRebalance")]


def test_a_poll_that_finds_a_consumer_protocol_group_ends_what_the_classic_one_had_begun():
    """KIP-848."""
    story = RecordStory()
    story.at(0).described("Stable", split(A)).at(5_000).described("PreparingRebalance", split(A, B))
    story.at(10_000).consumer_group("Stable", split(A, B))
    first = rebalances(story)[0]
    assert (first["outcome"], first["started_at"], first["ended_at"]) == ("ABANDONED", 5_000, 10_000)


def test_beside_a_broker_it_is_the_broker_that_says_so():
    """The poll may be of another time than the broker's lines."""
    story = logged()
    usual = rebalances(story)
    story.at(61_010).add("poll", kinds.CONSUMER_GROUP_DESCRIBED, state="Stable")
    assert rebalances(story) == usual


def test_a_record_that_is_deleted_beside_a_broker_leaves_the_end_to_its_log():
    """The group has members, so that it is converted: of that the broker writes a line, or none if it was never so."""
    story = logged()
    usual = story.rows(until=95_000)
    assert story.at(91_500).deleted().rows(until=95_000) == usual


def test_a_record_of_another_generation_than_the_brokers_log_is_at_adds_nothing():
    """The log has a hole where generation 2 was made: what was assigned in it belongs to no rebalance that is known."""
    story = RecordStory()
    story.at(0).log_preparing(0, JOINED.format(A), A).log(kinds.MEMBER_ADDED, member_id=A, state="Empty")
    story.at(3_000).log_stabilized(1, 1).at(3_010).log_assignment(1, A, 1)
    (row,) = table(story.at(3_500).stored(2, split(A, B), protocol="range").rows(until=10_000), "rebalances")
    assert (row["generation"], row["partitions"], row["protocol"]) == (1, None, None)


def test_the_members_of_a_connect_cluster_have_tasks_and_no_partitions():
    """Its members subscribe to nothing, and their assignment is no consumer's. That they rebalance is seen all the same."""
    story = RecordStory()
    for ms, generation, members in ((0, 1, (A,)), (60_000, 2, (A, B))):
        topics = dict.fromkeys(members)
        story.at(ms).stored(generation, dict.fromkeys(members, ()), topics=topics, protocol_type="connect", protocol="sessioned")
    story.events = [e._replace(assignments=tuple(a._replace(partitions=None) for a in e.assignments)) for e in story.events]
    _, second = rebalances(story)
    assert (second["cause"], second["member_id"], second["partitions"], second["protocol"]) == ("MEMBER_JOINED", B, None, "sessioned")


def test_what_a_member_has_after_its_record_is_what_the_next_rebalance_takes_from_it():
    story = RecordStory()
    story.at(0).stored(1, {A: SIX}).at(60_000).stored(2, {A: SIX[:2], B: SIX[2:]}).at(90_000).stored(3, {A: SIX[:4], B: SIX[4:]})
    assert [row["partitions_moved"] for row in rebalances(story)][1:] == [4, 2]
