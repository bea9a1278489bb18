"""A group changes hands: another broker loads it, the old one gives it up, and in which order the two logs say so."""

import pytest

from coordinator_model import events as kinds
from coordinator_model.errors import Error
from tests.tracker.story import EXPIRED, JOINED, Story, table


def stable() -> Story:
    """a-1 (leader) and b-1 at broker-1, generation 1."""
    story = Story()
    story.at(0).log_preparing(0, JOINED.format("a-1"), "a-1").log(kinds.MEMBER_ADDED, member_id="a-1", state="Empty")
    story.at(100).log(kinds.MEMBER_ADDED, member_id="b-1", state="PreparingRebalance")
    return story.at(3_000).log_stabilized(1, 2).at(3_010).log_assignment(1, "a-1", 2)


def states(story: Story) -> list[tuple[int, str, str]]:
    """Transitions from 10 s on."""
    rows = table(story.rows(until=90_000), "group_transitions")
    return [(row["occurred_at"], row["from_state"], row["to_state"]) for row in rows if row["occurred_at"] >= 10_000]


@pytest.mark.parametrize("late_ms", [0, 300, 9_000])
def test_the_old_coordinator_may_give_the_group_up_after_the_new_one_has_loaded_it(late_ms: int) -> None:
    """Its clock is ahead, or it was slow. What it gives up is no longer its own: the group stays Stable."""
    story = stable().on("broker-2").at(20_000).log(kinds.GROUP_LOADED, member_count=2)
    story.on("broker-1").at(20_000 + late_ms).log(kinds.GROUP_UNLOADED, generation=1)
    # Of two lines of one millisecond the unloading is told last.
    assert states(story) == [(20_000, "Stable", "Dead"), (20_000, "Dead", "Stable")]


def test_members_that_another_broker_reads_back_do_not_make_it_the_coordinator() -> None:
    """It reads its partition for a while before it answers for the group."""
    story = stable().on("broker-2").at(20_000).log(kinds.MEMBER_LOADED, member_id="a-1", generation=1, client_id="a")
    assert states(story) == []
    story.at(20_500).log(kinds.GROUP_LOADED, generation=1)
    assert states(story) == [(20_500, "Stable", "Dead"), (20_500, "Dead", "Stable")]


@pytest.mark.parametrize(("count", "state", "before"), [(-1, "Stable", 2), (2, "Stable", 2), (0, "Empty", 0)])
def test_a_group_is_loaded_with_the_members_that_the_line_counts(count: int, state: str, before: int) -> None:
    """Scala brokers log the generation and no count: the members are those that are known. Without members it is Empty."""
    story = stable().on("broker-2").at(20_000).log(kinds.GROUP_LOADED, generation=1 if count < 0 else -1, member_count=count)
    story.at(30_000).log_preparing(1, JOINED.format("c-1"), "c-1").log(kinds.MEMBER_ADDED, member_id="c-1", state=state)
    story.at(30_100).log_stabilized(2, before + 1).at(30_110).log_assignment(2, "a-1", before + 1)
    assert states(story)[1:3] == [(20_000, "Dead", state), (30_000, state, "PreparingRebalance")]
    row = table(story.rows(), "rebalances")[1]
    assert (row["members_before"], row["members_after"]) == (before, before + 1)


def test_a_log_that_begins_with_a_loading_knows_the_members_of_the_newest_generation() -> None:
    """Scala brokers log every member of every stored generation as they read the partition from its start."""
    who = {"client_id": "web", "client_host": "/10.0.0.7", "session_timeout_ms": 10_000, "rebalance_timeout_ms": 30_000}
    story = Story()
    for generation, members in ((3, ("old-1", "a-1")), (4, ("a-1", "b-1")), (2, ("older-1",))):
        for member in members:
            story.at(generation).log(kinds.MEMBER_LOADED, member_id=member, generation=generation, **who)
    story.at(10).log(kinds.GROUP_LOADED, generation=4)
    story.at(30_000).log(kinds.MEMBER_FAILED, member_id="b-1").log_preparing(4, EXPIRED.format("b-1"), "b-1")
    story.at(30_100).log_stabilized(5, 1).at(30_110).log_assignment(5, "a-1", 1)
    rows = story.rows()
    (row,) = table(rows, "rebalances")
    assert (row["generation"], row["members_after"], row["left"], row["client_id"]) == (5, 1, ["b-1"], "web")
    (session,) = table(rows, "member_sessions")
    assert (session["member_id"], session["client_host"], session["session_timeout_ms"]) == ("b-1", "/10.0.0.7", 10_000)
    assert (session["joined_at"], session["rebalance_timeout_ms"]) == (None, 30_000)


def test_a_member_that_is_read_back_keeps_what_is_known_of_it_and_gains_the_rest() -> None:
    """The broker restarts and reads its partition: since when b-1 is a member is known, whose it is the line tells.

    The members of older generations are read too, and are none.
    """
    story = stable().at(20_000).log(kinds.GROUP_UNLOADED, generation=1)
    story.at(25_000).log(kinds.MEMBER_LOADED, member_id="old-1", generation=0, client_id="web")
    story.at(25_000).log(kinds.MEMBER_LOADED, member_id="b-1", generation=1, client_id="web", session_timeout_ms=10_000)
    story.at(25_001).log(kinds.GROUP_LOADED, generation=1)
    story.at(40_000).log(kinds.MEMBER_FAILED, member_id="b-1").log_preparing(1, EXPIRED.format("b-1"), "b-1")
    (session,) = table(story.rows(until=60_000), "member_sessions")
    story.at(41_000).log(kinds.GROUP_EMPTY, generation=2)
    assert [row["member_id"] for row in table(story.rows(until=60_000), "member_sessions")] == ["b-1", "a-1"]
    assert (session["joined_at"], session["client_id"], session["session_timeout_ms"]) == (100, "web", 10_000)


def test_a_group_of_which_nothing_was_known_does_not_move() -> None:
    """broker-1 only refused somebody: what state the group was in then, and that it left it, nobody has seen."""
    story = Story().at(0).heartbeat("a-1", 7, Error.UNKNOWN_MEMBER_ID)
    story.on("broker-2").at(20_000).heartbeat("a-2", 8)
    rows = story.rows(until=40_000)
    assert table(rows, "group_transitions") == []
    assert [row["code"] for row in table(rows, "findings")] == ["UNKNOWN_MEMBER", "COORDINATOR_MOVED"]


# the consumer protocol (KIP-848) has no such phases


def converted(story: Story, ms: int, how: str) -> Story:
    """The group follows the consumer protocol from here, as one kind of evidence shows."""
    if how == "line":
        return story.at(ms).log(kinds.GROUP_CONVERTED, state="consumer")
    if how == "words":
        return story.at(ms).log(kinds.CONSUMER_GROUP_LOG, reason="[GroupId orders] Computed a new target assignment")
    return story.at(ms).request(kinds.CONSUMER_GROUP_HEARTBEAT, "m-1", took=0)


@pytest.mark.parametrize("how", ["line", "words", "request"])
def test_a_group_of_the_consumer_protocol_has_no_rebalances_until_it_is_converted_back(how: str) -> None:
    story = stable().at(20_000).log_preparing(1, JOINED.format("c-1"), "c-1")
    converted(converted(story, 21_000, how), 24_000, how)  # said twice, it is still one fact
    story.at(25_000).log_stabilized(2, 3).at(25_010).log_assignment(2, "a-1", 3)
    assert [(r["generation"], r["outcome"], r["ended_at"]) for r in table(story.rows(), "rebalances")][1:] == [(None, "ABANDONED", 21_000)]
    story.at(50_000).log(kinds.GROUP_CONVERTED, state="classic")
    story.at(60_000).log_preparing(9, JOINED.format("d-1"), "d-1").at(60_100).log_stabilized(10, 4).at(60_110).log_assignment(10, "a-1", 4)
    assert [(r["generation"], r["started_at"]) for r in table(story.rows(), "rebalances")][2:] == [(10, 60_000)]


def test_a_consumer_group_heartbeat_that_is_refused_proves_nothing() -> None:
    """GROUP_ID_NOT_FOUND or UNSUPPORTED_VERSION: the group is classic as before."""
    story = stable().at(20_000).request(kinds.CONSUMER_GROUP_HEARTBEAT, "m-1", error_code=Error.GROUP_ID_NOT_FOUND)
    story.at(30_000).log_preparing(1, JOINED.format("c-1"), "c-1").at(30_100).log_stabilized(2, 3).at(30_110).log_assignment(2, "a-1", 3)
    assert [(r["generation"], r["outcome"]) for r in table(story.rows(), "rebalances")] == [(1, "COMPLETED"), (2, "COMPLETED")]


def test_the_move_of_a_group_of_the_consumer_protocol_is_told() -> None:
    story = Story().at(0).log(kinds.CONSUMER_GROUP_LOG, reason="words")
    story.on("broker-2").at(30_000).log(kinds.CONSUMER_GROUP_LOG, reason="words")
    assert [(row.table, row.values["code"]) for row in story.rows(until=200_000)] == [("findings", "COORDINATOR_MOVED")]


@pytest.mark.parametrize("kind", [kinds.HEARTBEAT, kinds.SYNC_GROUP])
def test_an_answer_to_a_request_that_was_there_before_the_group_was_given_up_says_nothing_of_it_since(kind: str) -> None:
    """It waited in the queue of answers. The group is Dead until its new coordinator has loaded it, and only once."""
    story = stable().at(20_000).log(kinds.GROUP_UNLOADED, generation=1)
    story.at(20_050).request(kind, "a-1", took=300, generation=1)
    story.on("broker-2").at(21_000).log(kinds.GROUP_LOADED, member_count=2)
    assert states(story) == [(20_000, "Stable", "Dead"), (21_000, "Dead", "Stable")]


def test_the_time_at_which_another_broker_gave_the_group_up_means_nothing_by_the_clock_of_the_new_one() -> None:
    """It is behind. Its log has no line about the group, only answers: one to a generation that began unseen."""
    story = stable().at(20_000).log(kinds.GROUP_UNLOADED, generation=1).on("broker-2")
    story.at(20_010).heartbeat("a-1", 1, took=20).at(25_000).heartbeat("a-1", 1)
    story.at(19_000).heartbeat("a-1", 1)
    assert [to for _, _, to in states(story)] == ["Dead", "Stable"]


@pytest.mark.parametrize(("ms", "loaded", "moves"), [(24_999, False, 1), (25_000, False, 2), (49_999, True, 1), (50_000, True, 2)])
def test_an_answer_of_the_old_coordinator_soon_after_the_move_is_one_from_before_by_a_fast_clock(
    ms: int, *, loaded: bool, moves: int
) -> None:
    """Where the new one wrote that it has loaded the group, a line of the old one that it has, too, is waited for."""
    story = stable().at(19_000).heartbeat("a-1", 1).on("broker-2").at(20_000)
    story = story.log(kinds.GROUP_LOADED, member_count=2) if loaded else story.heartbeat("a-1", 1, took=0)
    story.on("broker-1").at(ms).heartbeat("b-1", 1, took=0)
    codes = [row["code"] for row in table(story.rows(until=ms + 1_000), "findings")]
    assert codes == ["COORDINATOR_MOVED"] * moves


def test_what_the_old_coordinator_heard_it_heard_before_the_move_by_any_clock() -> None:
    """Its clock is 9 s ahead. The new one never hears b-1, whose session ends 10 s after it has loaded the group."""
    story = stable().at(100).join("b-1", 1, "a-1", waited=1).at(28_000).heartbeat("b-1", 1).heartbeat("a-1", 1)
    story.on("broker-2").at(28_500).log(kinds.GROUP_LOADED, member_count=2).at(29_000)
    for ms in range(30_000, 60_000, 3_000):
        story.at(ms).heartbeat("a-1", 1 if ms < 38_500 else 2)
    story.at(38_500).log(kinds.MEMBER_FAILED, member_id="b-1").log_preparing(1, EXPIRED.format("b-1"), "b-1")
    story.at(38_600).log_stabilized(2, 1).log_assignment(2, "a-1", 1)
    story.at(42_000).join("b-2", 3, "a-1", waited=1)
    for event in [e for e in story.events if e.broker == "broker-1"]:
        story.events[story.events.index(event)] = event._replace(at_ms=event.at_ms + 9_000, received_ms=event.received_ms + 9_000)
    rows = story.rows(until=150_000)
    assert [row["code"] for row in table(rows, "findings")] == ["COORDINATOR_MOVED"]
    assert [row["cause"] for row in table(rows, "rebalances")][-1:] == ["COORDINATOR_MOVED"]
