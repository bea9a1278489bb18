"""What is told of a rebalance that has not ended: since when, who began it, whom it waits for, and that it is over."""

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from coordinator_model import events as kinds
from coordinator_model.errors import Error
from coordinator_model.events import Event
from coordinator_model.tracker.shard import Shard
from tests.tracker.batching import batches, clocks
from tests.tracker.consumer.consumer_story import ConsumerStory
from tests.tracker.consumer.test_open_episodes import HALF, joined_by_another
from tests.tracker.records.record_story import RecordStory
from tests.tracker.simulated.test_provisional import Told, by_second, in_story, joining, take_provisional, told, two_members
from tests.tracker.story import JOINED, START_MS, Story
from tests.tracker.test_properties import mixed_streams

CALLED = Error.REBALANCE_IN_PROGRESS
LIMIT_MS = 30_000


def read_at_once(story: Story, until: int) -> Told:
    """The whole log in one batch; its broker writes other lines up to a time."""
    end = Event(story.events[0].broker, "clock", "", 0, START_MS + until, START_MS + until, kinds.CLOCK)
    shard, found = Shard(), Told([], [], [])
    found.final.extend((0, row.values) for row in shard.observe([*story.events, *clocks(story.events), end, end._replace(kind=kinds.END)]))
    take_provisional(found, 0, shard)
    return found


def says(found: Told, *names: str) -> list[tuple[Any, ...]]:
    """Columns of all rows of rebalances that have not ended, and of those that take them back."""
    return [tuple(row[name] for name in names) for _, row in found.of_open]


def coordinator_alone() -> Story:
    """Of the members before only the leader is named; a third one comes."""
    story = Story().at(0).log_stabilized(3, members=2).at(10).log_assignment(3, leader="b-1", members=2)
    return story.at(600_000).log_preparing(3, JOINED.format("c-1"), "c-1")


def test_a_join_phase_that_the_coordinators_log_alone_shows_waits_for_all_members_before() -> None:
    found = read_at_once(coordinator_alone(), 4_200_000)
    ((_, row),) = found.of_open
    expected = {
        "outcome": "OPEN", "waits_for": "JOIN", "started_at": 600_000, "ended_at": 4_200_000, "total_ms": 3_600_000, "start_seen": True,
        "cause": "MEMBER_JOINED", "member_id": "c-1", "awaited": ["b-1"], "awaited_unnamed": 1, "limit_ms": None, "broker": "broker-1",
        "generation": None, "joined_at": None, "members_before": 2, "members_after": None, "joined": ["c-1"], "group_protocol": "classic",
    }  # fmt: skip
    assert {name: row[name] for name in expected} == expected


def test_who_rejoined_and_so_began_it_is_not_waited_for() -> None:
    story = Story().at(0).log_stabilized(3, members=2).at(10).log_assignment(3, leader="b-1", members=2)
    story.at(60_000).log_preparing(3, "Leader b-1 re-joining group during Stable; client reason: not provided", "b-1")
    assert says(read_at_once(story, 90_000), "cause", "member_id", "awaited", "awaited_unnamed") == [("LEADER_REJOINED", "b-1", [], 1)]


def test_a_leader_that_has_left_is_not_waited_for() -> None:
    story = two_members(Story()).beats(["a-1", "b-1"], 1, 4_000, 20_000)
    story.at(20_000).log(kinds.MEMBER_LEFT, member_id="a-1", client_id="a")
    story.log_preparing(1, "explicit `LeaveGroup` request for (a-1) members.", "a-1")
    assert says(read_at_once(story, 28_000), "cause", "member_id", "left", "awaited", "awaited_unnamed") == [
        ("MEMBER_LEFT", "a-1", ["a-1"], ["b-1"], 0)
    ]


def test_a_group_that_was_empty_waits_for_none_of_its_members() -> None:
    story = Story().at(0).log_preparing(0, JOINED.format("a-1"), "a-1")
    assert says(read_at_once(story, 90_000), "waits_for", "members_before", "awaited", "awaited_unnamed") == [("JOIN", 0, [], 0)]


def test_members_whose_heartbeats_go_on_have_not_rejoined() -> None:
    story = two_members(Story()).beats(["a-1", "b-1"], 1, 4_000, 20_000)
    story.at(20_000).log_preparing(1, JOINED.format("c-1"), "c-1")
    story.at(21_000).heartbeat("a-1", 1, CALLED).heartbeat("b-1", 1, CALLED)
    for at in range(24_000, 40_000, 3_000):
        story.at(at).heartbeat("b-1", 1, CALLED)
    assert says(read_at_once(story, 40_000), "awaited", "awaited_unnamed", "limit_ms") == [(["b-1"], 0, LIMIT_MS)]


def test_requests_alone_show_a_join_phase_and_not_who_began_it() -> None:
    story = joining(Story()).at(20_010).sync("a-1", 2, {"a-1": ("t-0",)}).beats(["a-1"], 2, 21_000, 30_000)
    for at in range(30_000, 45_000, 3_000):
        story.at(at).heartbeat("a-1", 2, CALLED)
    found = read_at_once(story, 45_000)
    assert says(found, "waits_for", "started_at", "cause", "member_id", "awaited", "start_seen") == [
        ("JOIN", 29_999, "UNKNOWN", None, ["a-1"], False)
    ]


def test_a_generation_without_an_assignment_waits_for_its_leader() -> None:
    story = two_members(Story()).beats(["a-1", "b-1"], 1, 4_000, 20_000)
    story.at(20_000).log_preparing(1, JOINED.format("c-1"), "c-1").at(22_000).log_stabilized(2, members=3)
    assert says(read_at_once(story, 90_000), "waits_for", "generation", "joined_at", "join_ms", "awaited", "total_ms") == [
        ("SYNC", 2, 22_000, 2_000, [], 70_000)
    ]
    story.at(22_001).join("a-1", 2, "a-1", ["a-1", "b-1", "c-1"], waited=1_000)
    assert says(read_at_once(story, 90_000), "waits_for", "awaited", "leader_id") == [("SYNC", ["a-1"], "a-1")]


def test_a_generation_whose_beginning_no_line_shows_has_lasted_since_its_join_phase_ended() -> None:
    found = read_at_once(Story().at(0).log_stabilized(7, members=3), 90_000)
    assert says(found, "waits_for", "started_at", "generation", "start_seen", "cause") == [("SYNC", 0, 7, False, "UNKNOWN")]


def test_a_consumer_group_waits_for_members_that_have_not_reached_its_epoch() -> None:
    story = joined_by_another().at(13_000).beat("b-1", 2, 2, ()).at(60_000).beat("b-1", 2, 2).beat("a-1", 1, 1)
    ((_, row),) = read_at_once(story, 60_000).of_open
    expected = {
        "waits_for": "RECONCILE", "started_at": 10_000, "total_ms": 50_000, "cause": "MEMBER_JOINED", "member_id": "b-1",
        "awaited": ["a-1"], "generation": 2, "first_epoch": 2, "rounds": 1, "group_protocol": "consumer",
    }  # fmt: skip
    assert {name: row[name] for name in expected} == expected


def test_a_consumer_group_whose_acknowledgements_no_log_shows_is_not_called_open() -> None:
    story = ConsumerStory().at(0).joins("a-1", 1)
    for number, at in enumerate(range(1_000, 21_000, 2_000)):
        story.at(at).joins(f"b-{number}", 2 + number)
    assert read_at_once(story, 60_000).of_open == []
    assert by_second(story, 20_000).of_open == []


def test_what_began_a_rebalance_of_a_consumer_group_is_unknown_until_it_is_decided() -> None:
    story = joined_by_another()
    story.events = [event for event in story.events if event.kind != kinds.CONSUMER_GROUP_LOG or event.state != kinds.JOINED]
    found = by_second(story.at(30_000).beat("a-1", 1, 1, HALF).beat("b-1", 2, 2), 30_000)
    assert {(row["cause"], row["member_id"]) for _, row in found.of_open if row["outcome"] == "OPEN"} <= {
        ("UNKNOWN", None), ("MEMBER_JOINED", "b-1"),
    }  # fmt: skip


def test_a_group_that_only_polls_show_has_been_in_its_rebalance_since_they_show_it() -> None:
    story = RecordStory().at(0).described("Stable", {"a-1": ("t-0",)})
    story.at(30_000).described("PreparingRebalance").at(60_000).described("PreparingRebalance")
    ((_, row),) = read_at_once(story, 60_000).of_open
    assert (row["waits_for"], row["started_at"], row["total_ms"], row["start_seen"], row["broker"]) == (
        "JOIN", 30_000, 30_000, False, "poll",
    )  # fmt: skip


def test_a_rebalance_is_told_of_once_it_has_lasted_a_while_and_again_when_it_exceeds_its_limit_and_when_it_is_over() -> None:
    story = two_members(Story()).beats(["a-1", "b-1"], 1, 4_000, 20_000)
    story.at(20_000).log_preparing(1, JOINED.format("c-1"), "c-1").at(80_000).log_stabilized(2, members=3)
    found = by_second(story.at(80_010).log_assignment(2, leader="a-1", members=3), 90_000)
    second = 1_000
    assert [(number * second, row["outcome"], row["total_ms"], row["alarm"]) for number, row in found.of_open] == [
        (27_000, "OPEN", 5_999, None), (52_000, "OPEN", 30_999, "RAISED"), (82_000, "ENDED", 30_999, "CLEARED"),
    ]  # fmt: skip
    assert found.of_open[-1][1] == {**found.of_open[-2][1], "outcome": "ENDED", "alarm": "CLEARED"}


def test_nothing_is_told_of_a_short_rebalance_unless_the_input_ends_in_it() -> None:
    assert [row["outcome"] for _, row in by_second(two_members(Story()).beats(["a-1", "b-1"], 1, 4_000, 9_000), 9_000).of_open] == []
    story = two_members(Story()).beats(["a-1", "b-1"], 1, 4_000, 20_000)
    story.at(20_000).log_preparing(1, JOINED.format("c-1"), "c-1").at(21_000).heartbeat("a-1", 1, CALLED)
    assert says(by_second(story, 21_000), "outcome", "total_ms") == [("OPEN", 1_000)]


def test_the_next_rebalance_takes_the_place_of_one_that_it_superseded() -> None:
    story = two_members(Story()).beats(["a-1", "b-1"], 1, 4_000, 20_000)
    story.at(20_000).log_preparing(1, JOINED.format("c-1"), "c-1").at(22_000).log_stabilized(2, members=3)
    story.at(60_000).join("a-1", 2, "a-1", ["a-1", "b-1", "c-1"], waited=39_000)
    found = by_second(story.at(60_001).log_preparing(2, JOINED.format("d-1"), "d-1"), 80_000)
    rows = says(found, "outcome", "waits_for", "started_at", "member_id", "alarm")
    assert rows[-2:] == [("ENDED", "SYNC", 20_000, "c-1", "CLEARED"), ("OPEN", "JOIN", 60_001, "d-1", None)]
    assert found.of_open[-2][0] == found.of_open[-1][0], "both in one batch: it was not at rest in between"


def test_a_join_phase_whose_only_sign_was_a_damaged_line_is_taken_back() -> None:
    story = joining(Story()).at(20_010).sync("a-1", 2, {"a-1": ("t-0",)}).beats(["a-1"], 2, 21_000, 30_000)
    story.at(30_000).heartbeat("a-1", 2, CALLED).at(40_000).heartbeat("a-1", 2).at(43_000).heartbeat("a-1", 2)
    assert [outcome for (outcome,) in says(by_second(story, 60_000), "outcome")] == ["OPEN", "ENDED"]


def newest(found: Told) -> dict[str, Any]:
    """The last row of each group that says of an open rebalance, without what the time alone changes."""
    last = {row["group_id"]: row for _, row in found.of_open}
    return {group: row for group, row in last.items() if row["outcome"] == "OPEN"}


@given(mixed_streams, st.integers(1, 30), st.integers(0, 4_900), st.integers(0, 3))
def test_the_same_rebalances_are_open_at_the_end_in_any_batching(stream: list[Event], count: int, shuffle_ms: int, seed: int) -> None:
    in_batches = newest(told(batches(stream, count, shuffle_ms=shuffle_ms, seed=seed)))
    at_once = newest(told(batches(stream, 1)))
    assert in_batches.keys() == at_once.keys()
    for group, row in at_once.items():
        assert {**in_batches[group], "ended_at": None, "total_ms": None} == {**row, "ended_at": None, "total_ms": None}


def test_a_shard_tells_of_each_group_by_itself() -> None:
    events = []
    for number, group in enumerate(("orders", "payments", "refunds")):
        story = Story(group=group).at(number * 1_000).log_preparing(3, JOINED.format("c-1"), "c-1")
        events += [event._replace(position=100 * number + event.position) for event in story.events]
    end = Event("broker-1", "clock", "", 0, START_MS + 60_000, START_MS + 60_000, kinds.CLOCK)
    shard = Shard()
    shard.observe([*events, end, end._replace(kind=kinds.END)])
    rows = [in_story(row.values) for row in shard.provisional]
    assert [(row["group_id"], row["started_at"], row["total_ms"]) for row in rows] == [
        ("orders", 0, 60_000), ("payments", 1_000, 59_000), ("refunds", 2_000, 58_000),
    ]  # fmt: skip
