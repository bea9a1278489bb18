"""Where the time of a rebalance goes: who was waited for, how long the leader took, and when members began with what they got."""

from typing import Any

import pytest

from coordinator_model import events as kinds
from coordinator_model.errors import Error
from coordinator_model.tracker.shard import Shard
from coordinator_model.view.rows import Row
from tests.diagnosis.narrated import BOTH, LOG, REQUESTS, STALLED, Group, findings, where_requests_are_seen
from tests.tracker.batching import batches
from tests.tracker.story import Story, play, table


def last(rows: list[Row]) -> dict[str, Any]:
    """The last rebalance of the group."""
    return table(rows, "rebalances")[-1]


def start(rows: list[Row]) -> tuple[int | None, str | None]:
    """How long the slowest took to begin after the last rebalance, and who it was."""
    return last(rows)["first_fetch_ms"], last(rows)["first_fetch_member_id"]


def healthy(*clients: str, **how: Any) -> Group:
    """Members that have begun with what they got."""
    group = Group(*(clients or ("a", "b", "c")), **{"session_ms": 45_000, **how})
    for client in group.consumers:
        group.begins(client)
    return group.live(60_000)


def written_while_it_runs(group: Group, evidence: str) -> int:
    """How many rebalances are told by now, the log not being over."""
    return len(table(Shard().observe(group.evidence(evidence)), "rebalances"))


# who was slow


@where_requests_are_seen
def test_the_only_one_that_is_left_was_waited_for(evidence: str) -> None:
    group = healthy("a", "b").leaves("b", "the consumer is being closed")
    assert last(group.live(90_000).seen(evidence))["slowest_member_id"] == group["a"].member


@where_requests_are_seen
def test_nobody_waits_for_a_lone_member_that_rejoins_by_itself_nor_in_an_empty_group(evidence: str) -> None:
    rows = healthy("a").rejoins("a", "rebalance enforced by user").live(90_000).seen(evidence)
    assert [row["slowest_member_id"] for row in table(rows, "rebalances")] == [None, None]


@pytest.mark.parametrize("evidence", [LOG, REQUESTS, BOTH])
def test_a_member_that_was_dropped_was_waited_for_longest(evidence: str) -> None:
    """It kept its session, and did not rejoin: a rejoined later than b, but c was what all waited for."""
    group = healthy()
    late = group["c"].member
    assert last(group.comes("d", absent=["c"], asks={"a": 4_000}).live(120_000).seen(evidence))["slowest_member_id"] == late


@where_requests_are_seen
def test_a_member_that_gave_up_while_all_waited_for_it_was_waited_for_longest(evidence: str) -> None:
    """Its poll loop stalled until max.poll.interval.ms: then it left, and the phase was over."""
    group = healthy()
    late = group.consumers.pop("c")
    for ms in range(60_100, 68_000, 3_000):
        group.at(ms).heartbeat(late.member, 1, Error.REBALANCE_IN_PROGRESS, **late.who())
    group.at(68_000).leave(late.member, STALLED, took=0, **late.who())
    group.log(kinds.MEMBER_LEFT, member_id=late.member, reason=STALLED)
    assert last(group.is_at(60_000).comes("d", ends=8_000).live(120_000).seen(evidence))["slowest_member_id"] == late.member


@where_requests_are_seen
def test_a_dead_member_was_not_slow(evidence: str) -> None:
    group = healthy(session_ms=10_000).session_ends("c")
    assert last(group.live(120_000).seen(evidence))["slowest_member_id"] == group["b"].member


# how long the leader took


@where_requests_are_seen
def test_the_leaders_time_runs_from_its_answer_to_its_assignment(evidence: str) -> None:
    group = healthy().comes("d", syncs=False)
    joined = group.now
    group.is_at(joined + 2_500).assigns()
    row = last(group.live(90_000).seen(evidence))
    assert (row["assignment_ms"], row["leader_id"]) == (2_504, group.leader)  # it arrives 1 ms before it is answered


def test_without_requests_the_leaders_time_is_not_known() -> None:
    row = last(healthy().comes("d").live(90_000).seen(LOG))
    assert (row["assignment_ms"], row["first_fetch_ms"], row["first_fetch_member_id"]) == (None, None, None)


@where_requests_are_seen
def test_a_leader_that_comes_too_late_is_told_so_and_its_time_is_known(evidence: str) -> None:
    """Another join phase began while it computed: REBALANCE_IN_PROGRESS."""
    group = healthy().comes("d", syncs=False)
    leader = next(client for client, consumer in group.consumers.items() if consumer.member == group.leader)
    generation, joined = group.generation, group.now
    group.is_at(joined + 900).comes("e", asks={leader: 2_000}, syncs=False)
    group.at(joined + 1_500).sync(group[leader].member, generation, {}, error_code=Error.REBALANCE_IN_PROGRESS, **group[leader].who())
    rows = group.is_at(group.now).assigns().live(90_000).seen(evidence)
    late = next(row for row in table(rows, "rebalances") if row["generation"] == generation)
    assert (late["outcome"], late["assignment_ms"]) == ("SUPERSEDED", 1_499)


# when members begin


@where_requests_are_seen
def test_the_slowest_to_begin_is_named(evidence: str) -> None:
    """c's application sleeps before it takes its partitions; heartbeats go on, so nobody else would tell."""
    group = healthy().comes("d").begins("a").begins("b").begins("d")
    assigned = group.now - 5
    group.live(assigned + 14_000).begins("c")
    rows = group.live(120_000).seen(evidence)
    assert start(rows) == (14_000, group["c"].member)
    assert findings(rows) == []


@where_requests_are_seen
def test_who_never_begins_is_not_waited_for_forever(evidence: str) -> None:
    """An application that keeps its offsets elsewhere never asks. 30 s later what was seen is told."""
    group = healthy().comes("d").begins("a").begins("b").begins("d")
    ended = group.now
    assert written_while_it_runs(group.live(ended + 34_000), evidence) == 1  # the first one alone
    assert written_while_it_runs(group.live(ended + 40_000), evidence) == 2  # 30 s, and the lateness of 5 s
    assert start(group.begins("c").seen(evidence)) == (5, max(group[client].member for client in "abd"))


@where_requests_are_seen
def test_a_group_that_never_asks_for_offsets_is_told_at_once(evidence: str) -> None:
    group = Group("a", "b", session_ms=45_000).live(60_000).comes("c")
    assert written_while_it_runs(group.live(group.now + 14_000), evidence) == 2


@where_requests_are_seen
def test_what_a_cooperative_member_keeps_it_does_not_begin_with(evidence: str) -> None:
    group = healthy("a", "b")
    for client, owned in (("a", ("orders-0", "orders-2", "orders-4")), ("b", ("orders-1", "orders-3", "orders-5"))):
        group[client].owned = owned
    group.comes("c", gives={"a": ("orders-0", "orders-2"), "b": ("orders-1", "orders-3"), "c": ("orders-4", "orders-5")})
    group.is_at(group.now + 1_000).begins("a").is_at(group.now + 1_000).begins("c")
    assert start(group.live(120_000).seen(evidence)) == (2_005, group["c"].member)


@where_requests_are_seen
def test_the_next_rebalance_ends_the_wait(evidence: str) -> None:
    group = healthy().comes("d").begins("a").begins("b")
    group.live(65_000).leaves("d", "the consumer is being closed").begins("c")
    rows = group.live(120_000).seen(evidence)
    assert [row["first_fetch_ms"] for row in table(rows, "rebalances")] == [5, 5, 5]


@where_requests_are_seen
def test_offsets_that_were_not_told_are_no_beginning(evidence: str) -> None:
    """A client that is told COORDINATOR_LOAD_IN_PROGRESS asks again."""
    group = healthy("a").comes("b").begins("a").begins("b", Error.COORDINATOR_LOAD_IN_PROGRESS)
    group.is_at(group.now + 400).begins("b")
    assert start(group.live(120_000).seen(evidence)) == (405, group["b"].member)


def test_a_tool_that_asks_for_offsets_is_no_member_and_makes_no_group() -> None:
    group = healthy("a")
    for ms in range(61_000, 70_000, 1_000):
        group.at(ms).request(kinds.OFFSET_FETCH, "", client_id="exporter", connection="10.0.0.1:9092-10.0.0.99:40000", member_count=6)
    rows = group.live(120_000).seen()
    assert (findings(rows), len(table(rows, "rebalances")), table(rows, "member_sessions")) == ([], 1, [])
    alone = Group()
    alone.at(100).request(kinds.OFFSET_FETCH, "", client_id="exporter", connection="10.0.0.1:9092-10.0.0.99:40000", member_count=6)
    assert alone.is_at(60_000).seen() == []


def test_the_same_rows_however_it_was_batched() -> None:
    group = healthy().comes("d").begins("a").begins("b").is_at(66_000).begins("d").live(80_000).begins("c").live(150_000)
    whole = group.seen()
    assert start(whole) == (19_864, group["c"].member)
    for count in (2, 9, 60):
        assert play(batches(group.events, count, shuffle_ms=4_000), snapshot=True) == whole


# the order of lines


def test_a_join_answer_that_is_logged_after_the_assignment_counts() -> None:
    """Kafka 3.9 and later: phase, assignment and the JoinGroup answers of one millisecond. The coordinator's lines go first."""
    group = healthy("a", "b").leaves("b", "the consumer is being closed")
    request = last(group.live(120_000).seen(REQUESTS))
    first = next(e for e in group.events if e.kind == kinds.ASSIGNMENT_RECEIVED and e.generation == 2)
    joined = next(e for e in group.events if e.kind == kinds.STABILIZED and e.generation == 2)
    group.events[group.events.index(first)] = first._replace(at_ms=joined.at_ms, received_ms=joined.at_ms)
    both = last(group.seen(BOTH))
    for column in ("slowest_member_id", "leader_id", "protocol", "partitions_moved"):
        assert both[column] == request[column]
    assert abs(both["unavailable_partition_ms"] - request["unavailable_partition_ms"]) <= 6 * 5


def test_no_phase_is_negative_where_answers_are_logged_a_millisecond_late() -> None:
    """One member alone: its SyncGroup arrives before the answer to its JoinGroup is logged."""
    story = Story()
    story.at(3_000).join("a-1", 1, "a-1", ("a-1",), waited=3_000)
    story.at(3_000).sync("a-1", 1, {"a-1": ("orders-0",)}, took=1)
    rows = story.rows()
    (rebalance,) = table(rows, "rebalances")
    assert (rebalance["sync_ms"], rebalance["assignment_ms"]) == (0, 0)
    times = [row["occurred_at"] for row in table(rows, "group_transitions")]
    assert times == sorted(times)
