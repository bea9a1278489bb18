"""What stored records of a group of the consumer protocol tell, by stories: dumps that begin late, other evidence beside them, corners."""

from __future__ import annotations

from typing import Any

import pytest

from coordinator_model import events as kinds
from coordinator_model.errors import Error
from coordinator_model.events import Assignment, Protocol
from tests.tracker.batching import batches
from tests.tracker.consumer.consumer_story import ALL, HALF, OTHER, ConsumerStory, told
from tests.tracker.consumer.test_episodes import WHAT
from tests.tracker.story import play

SESSION = ("member_id", "end_kind", "joined_at", "ended_at")


class Records(ConsumerStory):
    """Verbs of a coordinator that writes. The fields of a record are as jobs/parsing/stored_records.py has them."""

    def write(self, kind: str, member: str = "", **fields: Any) -> Records:
        """One record."""
        broker, self.broker = self.broker, "offsets"
        self.add("offsets", kind, member_id=member, **fields)
        self.broker = broker
        return self

    def subscribes(self, member: str, *topics: str, regex: str = "", **fields: Any) -> Records:
        """A member says what it wants."""
        protocols = (Protocol("consumer", topics, (), ""),)
        client = {"client_id": member.rpartition("-")[0], "rebalance_timeout_ms": 60_000}
        return self.write(kinds.MEMBER_STORED, member, protocols=protocols, subscribed_regex=regex, **{**client, **fields})

    def epoch(self, number: int) -> Records:
        """The epoch is raised."""
        return self.write(kinds.EPOCH_STORED, generation=number)

    def has(
        self, member: str, before: int, now: int, partitions: tuple[str, ...], give: tuple[str, ...] = (), state: str = "STABLE"
    ) -> Records:
        """What a member has now, and has to give up."""
        both = (Assignment(member, partitions, ""), Assignment(member, give, ""))
        return self.write(kinds.CURRENT_STORED, member, generation=before, answer_generation=now, state=state, assignments=both)

    def removed(self, member: str) -> Records:
        """The tombstones of a member."""
        for kind in (kinds.CURRENT_STORED, kinds.TARGET_MEMBER_STORED, kinds.MEMBER_STORED):
            self.write(kind, member, state=kinds.REMOVED)
        return self

    def joins_stored(self, member: str, epoch: int, partitions: tuple[str, ...], state: str = "STABLE", **fields: Any) -> Records:
        """A member joins: all records of this operation."""
        self.subscribes(member, "orders", **fields).epoch(epoch).write(kinds.TARGET_STORED, generation=epoch)
        return self.has(member, 0, epoch, partitions, state=state)

    def at(self, ms: int) -> Records:
        """Moves the story's clock."""
        super().at(ms)
        return self


def two() -> Records:
    """a-1 has both partitions; b-1 joins at 10,000; a-1 is told at 12,000 to give one up, and did at 12,100."""
    story = Records().at(0).joins_stored("a-1", 1, ALL)
    story.at(10_000).joins_stored("b-1", 2, (), "UNRELEASED_PARTITIONS")
    story.at(12_000).has("a-1", 1, 1, HALF, OTHER, "UNREVOKED_PARTITIONS").at(12_100).has("a-1", 1, 2, HALF)
    return story.at(13_005).has("b-1", 2, 2, OTHER)


def test_the_first_epoch_of_a_group_may_be_known_without_the_records_of_its_first_member():
    story = Records().at(0).epoch(2).write(kinds.TARGET_STORED, generation=2, state=kinds.TIMED)
    assert [row[:2] for row in told(story.rows(), "rebalances", *WHAT)] == [(2, 2)]


def test_records_alone_show_a_rebalance_from_its_first_to_its_last_moment():
    rows = two().rows()
    assert told(rows, "rebalances", *WHAT)[1] == (2, 2, 10_000, 13_005, True, "COMPLETED", "MEMBER_JOINED", "b-1")
    cost = ("members_before", "members_after", "joined", "partitions", "partitions_moved", "unavailable_partition_ms", "slowest_member_id")
    assert told(rows, "rebalances", *cost)[1] == (1, 2, ["b-1"], 2, 1, 905, "a-1")
    assert told(rows, "rebalances", "start_seen", "client_id", "total_ms", "rounds")[1] == (True, "b", 3_005, 1)
    states = told(rows, "group_transitions", "from_state", "to_state", "trigger")
    assert states[-2:] == [("Stable", "Reconciling", "MEMBER_JOINED"), ("Reconciling", "Stable", "ALL_MEMBERS_RECONCILED")]
    assert told(rows, "rebalance_rounds", "computed_at", "reconciled_at", "start_exact")[1] == (10_000, 13_005, True)


def test_why_a_member_is_gone_no_record_tells():
    story = two().at(20_000).removed("b-1").epoch(3).at(22_000).has("a-1", 2, 3, ALL)
    rows = story.rows()
    assert told(rows, "rebalances", *WHAT)[2] == (3, 3, 20_000, 22_000, True, "COMPLETED", "UNKNOWN", None)
    assert told(rows, "rebalances", "left", "unavailable_partition_ms")[2] == (["b-1"], 2_000)
    assert told(rows, "member_sessions", *SESSION) == [("b-1", "UNKNOWN", 10_000, 20_000)]
    assert told(rows, "findings", "code") == []


def test_the_answer_to_its_leave_tells_why():
    story = two().at(20_000).removed("b-1").epoch(3).at(20_003).beat("b-1", -1, -1).at(22_000).has("a-1", 2, 3, ALL)
    rows = story.at(22_001).beat("a-1", 2, 3, ALL).at(25_000).beat("a-1", 3, 3).rows()
    assert told(rows, "rebalances", *WHAT)[2] == (3, 3, 20_000, 22_000, True, "COMPLETED", "MEMBER_LEFT", "b-1")
    assert told(rows, "member_sessions", *SESSION) == [("b-1", "LEFT", 10_000, 20_000)]
    assert ("Stable", "Reconciling", "MEMBER_LEFT") in told(rows, "group_transitions", "from_state", "to_state", "trigger")


def test_the_next_heartbeat_of_another_one_shows_that_it_had_fallen_silent():
    story = two()
    for ms in range(14_000, 62_000, 3_000):
        story.at(ms).beat("a-1", 2, 2)
        if ms < 18_000:
            story.at(ms + 1).beat("b-1", 2, 2)
    story.at(62_001).removed("b-1").epoch(3).at(63_500).has("a-1", 2, 3, ALL).at(63_502).beat("a-1", 2, 3, ALL)
    rows = story.at(66_000).beat("a-1", 3, 3).rows()
    assert told(rows, "rebalances", *WHAT)[2] == (3, 3, 62_001, 63_500, True, "COMPLETED", "SESSION_TIMEOUT", "b-1")
    assert told(rows, "member_sessions", *SESSION) == [("b-1", "SESSION_TIMEOUT", 10_000, 62_001)]
    assert ("SESSION_TIMEOUT", "b-1") in told(rows, "findings", "code", "member_id")


@pytest.mark.parametrize(
    ("paused_ms", "cause", "member"),
    [(4_000, "UNKNOWN", None), (7_000, "SESSION_TIMEOUT", "b-1"), (60_500, "REBALANCE_TIMEOUT", "b-1"), (62_000, "UNKNOWN", None)],
)
def test_a_silent_member_that_had_time_left_to_give_a_partition_up_lost_its_session(paused_ms, cause, member):
    """b-1 is told to give t-1 up with its last heartbeat, at 20,000. It had paused for 5 s at most. c-1 goes on."""
    story = Records().at(0).joins_stored("b-1", 1, ALL).beat("b-1", 0, 1, ALL, ("orders",)).at(5_000).beat("b-1", 1, 1)
    story.at(10_000).beat("b-1", 1, 1).at(15_000).beat("b-1", 1, 1)
    story.at(16_000).joins_stored("c-1", 2, (), "UNRELEASED_PARTITIONS").beat("c-1", 0, 2, (), ("orders",))
    story.at(20_000).has("b-1", 1, 1, HALF, OTHER, "UNREVOKED_PARTITIONS").beat("b-1", 1, 1, HALF)
    story.at(20_000 + paused_ms).removed("b-1").epoch(3)
    for ms in range(20_000, 100_000, 4_000):
        story.at(ms).beat("c-1", 2, 2)
    rows = story.at(100_000).has("c-1", 2, 3, ALL).beat("c-1", 2, 3, ALL).rows()
    assert told(rows, "rebalance_rounds", "cause", "member_id")[2:] == [(cause, member)]
    assert told(rows, "member_sessions", *SESSION) == [("b-1", cause, 0, 20_000 + paused_ms)]


def killed(last_heard: int, removed: int) -> Records:
    """The only member of a group falls silent, and is removed."""
    story = Records().at(0).joins_stored("a-1", 1, ALL).beat("a-1", 0, 1, ALL, ("orders",))
    for ms in range(3_000, last_heard + 1, 3_000):
        story.at(ms).beat("a-1", 1, 1)
    return story.at(removed).removed("a-1").epoch(2)


@pytest.mark.parametrize("cuts", [1, 9])
@pytest.mark.parametrize(("back_ms", "cause", "member"), [(90_000, "SESSION_TIMEOUT", "a-1"), (200_000, "UNKNOWN", None)])
def test_a_member_that_was_alone_may_show_itself_that_its_session_ended(back_ms, cause, member, cuts):
    """Nobody else sends a heartbeat. Its own, long after, is refused. The rows wait for it for two minutes."""
    story = killed(15_000, 60_000).at(back_ms).refused("a-1", 1, Error.UNKNOWN_MEMBER_ID).at(400_000)
    rows = play(batches([*story.events, *story.heard()], cuts), snapshot=True)
    assert told(rows, "rebalances", "cause", "member_id")[1:] == [(cause, member)]
    assert told(rows, "rebalance_rounds", "cause", "member_id")[1:] == [(cause, member)]
    assert ("Stable", "Reconciling", cause) in told(rows, "group_transitions", "from_state", "to_state", "trigger")
    assert told(rows, "member_sessions", "end_kind") == [(cause,)]


def test_a_rebalance_does_not_wait_for_departures_that_came_after_it():
    """a-1 has left the group, as a log may yet tell. b-1, which comes then, is silent when it is removed."""
    story = killed(15_000, 16_000).at(20_000).joins_stored("b-1", 3, ALL).beat("b-1", 0, 3, ALL, ("orders",))
    story.at(23_000).beat("b-1", 3, 3).at(26_000).beat("b-1", 3, 3).at(70_000).removed("b-1").epoch(4)
    assert told(story.rows(until=100_000), "rebalances", "first_epoch", "cause")[1:3] == [(2, "UNKNOWN"), (3, "MEMBER_JOINED")]


def test_the_coordinators_line_comes_first_and_nothing_is_told_twice():
    story = two().at(20_000).line(kinds.EXPIRED, "b-1").raised(3).removed("b-1").epoch(3)
    rows = story.at(22_000).computed(3).has("a-1", 2, 3, ALL).rows()
    assert told(rows, "rebalances", *WHAT)[2] == (3, 3, 20_000, 22_000, True, "COMPLETED", "SESSION_TIMEOUT", "b-1")
    assert told(rows, "member_sessions", *SESSION) == [("b-1", "SESSION_TIMEOUT", 10_000, 20_000)]
    assert told(rows, "rebalances", "protocol")[2] == ("uniform",)


def test_a_departure_that_the_line_told_before_is_the_same():
    story = two().at(20_000).line(kinds.DEPARTED, "b-1").at(20_001).removed("b-1").epoch(3).at(22_000).has("a-1", 2, 3, ALL)
    rows = story.rows(until=60_000)
    assert told(rows, "rebalances", *WHAT)[2] == (3, 3, 20_001, 22_000, True, "COMPLETED", "MEMBER_LEFT", "b-1")
    assert told(rows, "member_sessions", *SESSION) == [("b-1", "LEFT", 10_000, 20_001)]


def test_a_line_that_is_late_still_tells_why():
    story = two().at(20_000).removed("b-1").epoch(3).at(20_004).line(kinds.DEPARTED, "b-1").at(22_000).computed(3)
    assert told(story.has("a-1", 2, 3, ALL).rows(), "rebalances", *WHAT)[2][-2:] == ("MEMBER_LEFT", "b-1")


def test_the_end_of_the_rebalance_timeout_shows_itself():
    story = two().at(20_000).joins_stored("c-1", 3, (), "UNRELEASED_PARTITIONS")
    story.at(21_000).has("a-1", 2, 2, (), HALF, "UNREVOKED_PARTITIONS").at(22_000).has("b-1", 2, 3, OTHER)
    story.at(81_004).removed("a-1").epoch(4).at(82_000).has("b-1", 3, 4, OTHER).at(83_000).has("c-1", 3, 4, HALF)
    rows = story.rows()
    assert told(rows, "rebalance_rounds", "epoch", "cause", "member_id")[2:] == [
        (3, "MEMBER_JOINED", "c-1"),
        (4, "REBALANCE_TIMEOUT", "a-1"),
    ]
    assert ("REBALANCE_TIMEOUT", "a-1") in told(rows, "findings", "code", "member_id")


def test_a_bump_without_another_record_is_due_to_topics():
    rows = two().at(20_000).epoch(3).has("a-1", 2, 3, HALF).at(21_000).has("b-1", 2, 3, (*OTHER, "t-2")).rows()
    assert told(rows, "rebalances", *WHAT)[2] == (3, 3, 20_000, 21_000, True, "COMPLETED", "METADATA_CHANGED", None)


def test_a_changed_expression_counts_when_it_is_resolved():
    story = two().at(20_000).subscribes("b-1", "orders", regex="re.*").at(20_005).write(kinds.EXPRESSION_STORED, reason="re.*").epoch(3)
    rows = story.at(21_000).has("a-1", 2, 3, HALF).at(22_000).has("b-1", 2, 3, OTHER).rows()
    assert told(rows, "rebalances", *WHAT)[2] == (3, 3, 20_005, 22_000, True, "COMPLETED", "REGEX_RESOLVED", None)


def test_a_static_member_that_comes_back_is_no_rebalance():
    story = Records().at(0).joins_stored("a-1", 1, ALL, instance_id="i-1")
    story.at(20_000).has("a-1", 0, -2, ALL).at(22_000).removed("a-1").subscribes("a-2", "orders", instance_id="i-1")
    rows = story.has("a-2", 0, 0, ALL).has("a-2", 0, 1, ALL).rows()
    assert len(told(rows, "rebalances")) == 1
    assert told(rows, "member_sessions", *SESSION) == [("a-1", "REPLACED", 0, 22_000)]


def test_a_deleted_group_is_dead_and_begins_anew():
    story = Records().at(0).joins_stored("a-1", 1, ALL).at(10_000).removed("a-1").epoch(2)
    story.at(20_000).write(kinds.TARGET_STORED, state=kinds.REMOVED).write(kinds.EPOCH_STORED, state=kinds.REMOVED)
    story.at(20_001).on("broker-1").at(30_000).joins_stored("b-1", 1, ALL)
    rows = story.rows()
    assert told(rows, "rebalances", "first_epoch", "outcome", "members_before", "cause") == [
        (1, "COMPLETED", 0, "MEMBER_JOINED"),
        (2, "EMPTIED", 1, "UNKNOWN"),
        (1, "COMPLETED", 0, "MEMBER_JOINED"),
    ]
    states = told(rows, "group_transitions", "occurred_at", "from_state", "to_state", "trigger")
    assert (20_000, "Empty", "Dead", "GROUP_REMOVED") in states
    assert states[-2][1:] == ("Empty", "Reconciling", "MEMBER_JOINED")


def old() -> Records:
    """The topic was compacted: of each key only the newest record is there. The last epoch is 7; a-1 joined long ago."""
    return Records().at(0).subscribes("a-1", "orders").at(5_000).subscribes("b-1", "orders").epoch(7)


def test_a_compacted_beginning_proves_who_joined_and_no_more():
    rows = old().has("b-1", 0, 7, OTHER).at(6_000).has("a-1", 6, 7, HALF).rows()
    assert told(rows, "rebalances", *WHAT) == [(7, 7, 5_000, 6_000, False, "COMPLETED", "MEMBER_JOINED", "b-1")]
    assert told(rows, "rebalances", "members_before", "members_after", "joined") == [(None, None, ["b-1"])]
    rows = old().has("b-1", 6, 7, OTHER).at(6_000).has("a-1", 6, 7, HALF).rows()
    assert told(rows, "rebalances", "cause", "member_id", "joined") == [("UNKNOWN", None, [])]


def test_after_two_epochs_in_a_row_all_members_are_known():
    story = (
        old().has("b-1", 6, 7, OTHER).at(6_000).has("a-1", 6, 7, HALF).at(20_000).removed("b-1").epoch(8).at(21_000).has("a-1", 7, 8, ALL)
    )
    story.at(30_000).joins_stored("c-1", 9, (), "UNRELEASED_PARTITIONS").at(31_000).has("a-1", 8, 9, ALL).at(32_000).has("c-1", 9, 9, ())
    rows = story.rows()
    assert told(rows, "rebalances", "members_before", "members_after", "end_seen", "cause") == [
        (None, None, False, "UNKNOWN"),
        (None, 1, True, "UNKNOWN"),
        (1, 2, True, "MEMBER_JOINED"),
    ]


def test_a_member_that_no_record_introduced_shows_that_some_are_missing():
    story = two().at(20_000).has("z-1", 1, 2, ()).at(21_000).epoch(3).has("a-1", 2, 3, HALF)
    rows = story.at(22_000).has("b-1", 2, 3, OTHER).has("z-1", 2, 3, ()).rows()
    assert told(rows, "rebalances", "members_before")[2] == (None,)


def test_records_that_end_before_the_log_take_nothing_from_it():
    story = two().at(20_000).line(kinds.DEPARTED, "b-1").raised(3).at(21_000).computed(3)
    story.at(40_000).joins("c-1", 4).at(60_000).joins("d-1", 5)
    assert told(story.rows(), "rebalances", *WHAT)[2:] == [
        (3, 3, 20_000, 21_000, True, "COMPLETED", "MEMBER_LEFT", "b-1"),
        (4, 4, 40_000, 40_000, False, "COMPLETED", "MEMBER_JOINED", "c-1"),
        (5, 5, 60_000, 60_000, False, "COMPLETED", "MEMBER_JOINED", "d-1"),
    ]


def test_a_record_that_is_there_twice_counts_once():
    story = two()
    for event in list(story.events):
        story.events.append(event._replace(origin="c/offsets/copy.jsonl"))
    rows = story.rows()
    assert [row[:2] for row in told(rows, "rebalances", *WHAT)] == [(1, 1), (2, 2)]
    assert told(rows, "rebalances", "joined", "partitions_moved")[1] == (["b-1"], 1)


def test_several_members_may_go_with_one_epoch():
    story = two().at(20_000).removed("a-1").removed("b-1").epoch(3)
    rows = story.rows()
    assert told(rows, "rebalances", "outcome", "left", "members_before", "members_after")[2] == ("EMPTIED", ["a-1", "b-1"], 2, 0)
    assert {row[0] for row in told(rows, "member_sessions", "member_id")} == {"a-1", "b-1"}


def test_records_of_a_group_that_becomes_classic_are_no_departures():
    story = two().at(20_000).removed("a-1").removed("b-1").write(kinds.EPOCH_STORED, state=kinds.REMOVED)
    members = tuple(Assignment(name, ("orders-0",), "") for name in ("a-1",))
    story.write(kinds.GROUP_STORED, state="Stable", generation=2, assignments=members, member_count=1).at(30_000)
    rows = story.rows()
    assert len([row for row in told(rows, "rebalances", "group_protocol") if row == ("consumer",)]) == 2
    assert ("Stable", "Stable", "CONVERTED_TO_CLASSIC") in told(rows, "group_transitions", "from_state", "to_state", "trigger")


def test_a_tombstone_of_a_group_that_is_not_known_says_nothing():
    assert Records().at(0).write(kinds.EPOCH_STORED, state=kinds.REMOVED).removed("a-1").rows() == []


def test_a_tombstone_of_the_classic_group_that_it_was_says_nothing():
    story = two()
    usual = story.rows(until=60_000)
    assert story.at(20_000).write(kinds.GROUP_STORED, state="Dead").rows(until=60_000) == usual


def test_a_zombie_of_a_departure_that_records_show_is_reported():
    story = two().at(14_000).beat("a-1", 2, 2).at(20_000).removed("b-1").epoch(3).at(22_000).has("a-1", 2, 3, ALL)
    rows = story.at(50_000).refused("b-1", 2, Error.UNKNOWN_MEMBER_ID).rows()
    assert ("UNKNOWN_MEMBER", "b-1") in told(rows, "findings", "code", "member_id")
