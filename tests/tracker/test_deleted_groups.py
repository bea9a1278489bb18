"""Groups that are deleted, that come again under their name, and ids that were no groups or members to begin with."""

import pytest

from coordinator_model import events as kinds
from coordinator_model.errors import Error
from coordinator_model.events import MemberEntry
from coordinator_model.tracker.shard import Shard
from coordinator_model.view.settings import TrackerSettings
from tests.tracker.batching import clocks
from tests.tracker.story import JOINED, Story, table
from tests.tracker.test_judgement import pair


def alone(story: Story, ms: int, member: str, generation: int = 1) -> Story:
    """One consumer makes the group, and heartbeats for a while."""
    story.at(ms + 50).id_issued(member)
    story.at(ms + 3_060).join(member, generation, member, [member], waited=3_005)
    story.at(ms + 3_070).sync(member, generation, {member: ("t-0",)})
    return story.beats([member], generation, ms + 6_000, ms + 12_000)


def deleted() -> Story:
    """a-1 leaves at 12.5 s, and half a second later the group is deleted."""
    story = alone(Story(), 0, "a-1").at(12_500).leave("a-1", "the consumer is being closed", took=0)
    return story.at(13_000).request(kinds.DELETE_GROUPS, "", took=1)


def test_only_an_empty_group_can_be_deleted_so_it_was_empty() -> None:
    rows = deleted().rows(until=40_000)
    row = table(rows, "rebalances")[1]
    assert (row["outcome"], row["generation"], row["ended_at"], row["cause"]) == ("EMPTIED", 2, 12_500, "MEMBER_LEFT")
    steps = [(t["occurred_at"], t["from_state"], t["to_state"], t["trigger"]) for t in table(rows, "group_transitions")]
    assert (13_000, "Empty", "Dead", "GROUP_REMOVED") in steps


def test_a_group_that_is_deleted_and_made_again_starts_at_generation_1_as_kafka_has_it() -> None:
    """Nothing of the old one counts for the new one."""
    rows = alone(deleted(), 20_000, "b-1").rows()
    made = table(rows, "rebalances")[2]
    assert (made["generation"], made["cause"], made["members_before"]) == (1, "MEMBER_JOINED", 0)
    assert table(rows, "findings") == []


def test_a_group_with_members_is_not_deleted() -> None:
    story = pair().at(16_000).request(kinds.DELETE_GROUPS, "", error_code=Error.NON_EMPTY_GROUP)
    story.beats(["a-1", "b-1"], 1, 16_500, 30_000)
    rows = story.rows()
    assert table(rows, "group_transitions")[-1]["to_state"] == "Stable"
    assert (table(rows, "member_sessions"), table(rows, "findings")) == ([], [])


def test_the_new_group_is_followed_as_the_old_one_was() -> None:
    story = alone(deleted(), 20_000, "b-1").beats(["b-1"], 1, 33_000, 45_000)
    story.at(45_000).heartbeat("b-1", 1, Error.ILLEGAL_GENERATION, took=0).beats(["b-1"], 1, 46_000, 60_000)
    told = [(row["code"], row["occurred_at"]) for row in table(story.rows(settings=TrackerSettings(kafka_version="4.2.0")), "findings")]
    assert ("MODEL_DIVERGENCE", 45_000) in told


def test_a_group_that_is_deleted_while_lines_of_its_members_are_missing_has_none_left() -> None:
    """GROUP_DEAD: the coordinator's word. Whoever was thought to be a member is none."""
    story = Story().at(0).log_preparing(0, JOINED.format("a-1"), "a-1").at(3_000).log_stabilized(1, 1).at(3_010).log_assignment(1, "a-1", 1)
    story.at(20_000).log(kinds.GROUP_DEAD)
    rows = story.rows(until=40_000)
    assert [(s["member_id"], s["end_kind"], s["ended_at"]) for s in table(rows, "member_sessions")] == [("a-1", "GROUP_GONE", 20_000)]
    assert [(t["from_state"], t["to_state"]) for t in table(rows, "group_transitions")][-1] == ("Stable", "Dead")


def test_a_group_that_is_first_heard_of_when_it_is_removed_was_in_no_known_state() -> None:
    assert Story().at(0).log(kinds.GROUP_DEAD).rows(until=40_000) == []


# ids that are no members


def test_whoever_gives_back_an_id_that_it_never_used_was_no_member() -> None:
    """A consumer that is closed between its two JoinGroups (KIP-394). Up to 3.9 the group does not take notice."""
    story = pair().at(16_000).id_issued("x-1").at(16_500).leave("x-1", "the consumer is being closed")
    story.beats(["a-1", "b-1"], 1, 18_000, 40_000)
    rows = story.rows(settings=TrackerSettings(kafka_version="3.9.1"))
    assert (len(table(rows, "rebalances")), table(rows, "member_sessions"), table(rows, "findings")) == (1, [], [])


def test_in_kafka_4_it_starts_a_rebalance_all_the_same() -> None:
    """GroupMetadataManager.classicGroupLeaveToClassicGroup updates the group once for the whole request, whoever left."""
    story = pair().at(16_000).id_issued("x-1").at(16_500).leave("x-1", "the consumer is being closed", took=0)
    story.at(18_000).heartbeat("a-1", 1, Error.REBALANCE_IN_PROGRESS).at(18_500).heartbeat("b-1", 1, Error.REBALANCE_IN_PROGRESS)
    story.at(18_510).join("a-1", 2, "a-1", ["a-1", "b-1"], waited=500).join("b-1", 2, "a-1", waited=3)
    story.at(18_520).sync("a-1", 2, {"a-1": ("t-0",), "b-1": ("t-1",)}).sync("b-1", 2, {"b-1": ("t-1",)})
    story.beats(["a-1", "b-1"], 2, 21_000, 40_000)
    rows = story.rows()
    row = table(rows, "rebalances")[1]
    assert (row["started_at"], row["cause"], row["member_id"], row["left"]) == (16_500, "MEMBER_LEFT", "x-1", [])
    assert (table(rows, "member_sessions"), table(rows, "findings")) == ([], [])


def test_an_entry_of_a_leave_group_that_names_nobody_is_told_of_its_client() -> None:
    """Two static members are removed; one of the ids is out of date: the entry has an error, the request has none."""
    story = pair()
    entries = (MemberEntry("b-1", "", 0, "", None), MemberEntry("x-9", "", int(Error.UNKNOWN_MEMBER_ID), "", None))
    story.at(16_000).request(kinds.LEAVE_GROUP, "", members=entries, client_id="admin")
    rows = story.rows()
    assert [(row["code"], row["member_id"], row["client_id"]) for row in table(rows, "findings")] == [("UNKNOWN_MEMBER", "x-9", "admin")]
    assert [session["member_id"] for session in table(rows, "member_sessions")] == ["b-1"]


def test_an_instance_that_is_not_in_the_group_is_nobody_to_tell_of() -> None:
    """An administrator mistyped group.instance.id."""
    entry = MemberEntry("", "i-9", int(Error.UNKNOWN_MEMBER_ID), "", None)
    rows = pair().at(16_000).request(kinds.LEAVE_GROUP, "", members=(entry,)).rows()
    assert (table(rows, "findings"), table(rows, "member_sessions")) == ([], [])


def test_a_sync_of_a_member_that_was_removed_is_told() -> None:
    story = pair().at(16_000).request(kinds.SYNC_GROUP, "x-9", generation=1, error_code=Error.UNKNOWN_MEMBER_ID, client_id="x")
    (told,) = table(story.rows(), "findings")
    assert (told["code"], told["member_id"]) == ("UNKNOWN_MEMBER", "x-9")
    assert "SYNC_GROUP" in told["message"]


@pytest.mark.parametrize("kind", [kinds.OFFSET_COMMIT, kinds.TXN_OFFSET_COMMIT])
def test_commits_that_no_member_makes_keep_no_session_alive(kind: str) -> None:
    """A producer's transaction names the consumer, and does not restart its session; a simple consumer is nobody."""
    story = pair()
    for ms in range(16_500, 40_000, 1_000):
        if kind == kinds.TXN_OFFSET_COMMIT:
            story.at(ms).request(kind, "b-1", generation=1)
        else:
            story.at(ms).commit("", -1)
    (first, *_) = [row for row in table(story.rows(), "findings") if row["code"] == "SESSION_TIMEOUT" and row["member_id"] == "b-1"]
    assert first["occurred_at"] == 24_999


def test_a_simple_consumer_makes_no_group() -> None:
    """It commits under a group id that has no members. Batches without a line of it pass it over."""
    story = Story()
    story.at(0).commit("", -1).at(1_000).commit("", -1)
    other = Story(group="payments").at(1_000).commit("", -1).at(90_000).commit("", -1)
    shard, first, second = Shard(), [*story.events, *other.events[:1]], other.events[1:]
    rows = shard.observe([*first, *clocks(first)]) + shard.observe([*second, *clocks(second)])
    rows += shard.observe(clocks([other.at(180_000).commit("", -1).events[-1]]))
    assert rows == []
