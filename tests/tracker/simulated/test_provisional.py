"""Provisional rows: what is told of a rebalance that has ended while lines that are still to come may correct it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from coordinator_model import events as kinds
from coordinator_model.errors import Error
from coordinator_model.events import Event
from coordinator_model.tracker.closing import NEXT_REBALANCE, WAITS
from coordinator_model.tracker.shard import Shard
from coordinator_model.view.outcomes import ENDED, OPEN
from coordinator_model.view.settings import TrackerSettings
from jobs.laws.laws import breaches
from jobs.laws.rebalance_laws import rebalance_key
from tests.tracker.batching import batches, clocks, followed
from tests.tracker.simulated.test_simulated import BOTH, COORDINATOR_LOG, END_MS, REQUEST_LOG, act_out
from tests.tracker.story import EXPIRED, JOINED, START_MS, Story
from tests.tracker.test_prediction import orders, third_member
from tests.tracker.test_properties import mixed_streams

WHO = ("member_id", "instance_id", "client_id", "client_host", "reason")


class Told(NamedTuple):
    """Rows of rebalances in the order in which they were told, times as ms of the story, each with the number of its batch."""

    provisional: list[tuple[int, dict[str, Any]]]
    final: list[tuple[int, dict[str, Any]]]
    of_open: list[tuple[int, dict[str, Any]]]
    """Rows of rebalances that have not ended, and those that take them back."""


def told(cut: Iterable[Sequence[Event]], settings: TrackerSettings | None = None) -> Told:
    """What a shard tells of these batches, with its state written and read back after each, and then of the end of the input."""
    shard = Shard(settings)
    found = Told([], [], [])
    newest: dict[str, int] = {}
    number = 0
    for number, batch in enumerate(cut):
        newest.update({e.broker: max(newest.get(e.broker, 0), e.at_ms) for e in batch})
        found.final.extend((number, in_story(row.values)) for row in shard.observe(batch) if row.table == "rebalances")
        take_provisional(found, number, shard)
        shard = Shard.decode(shard.encode(), settings)
    end = [Event(broker, "clock", "", 0, at, at, kinds.END) for broker, at in sorted(newest.items())]
    found.final.extend((number + 1, in_story(row.values)) for row in shard.observe(end) if row.table == "rebalances")
    ended = {row.values["waits_for"] for row in shard.provisional if row.values["outcome"] not in (OPEN, ENDED)}
    assert ended <= {NEXT_REBALANCE}, "nothing but the rebalance that runs is waited for"
    take_provisional(found._replace(provisional=[]), number + 1, shard)
    return found


def take_provisional(found: Told, number: int, shard: Shard) -> None:
    """Takes what a batch shows of rebalances that have no final row."""
    for row in shard.provisional:
        values = in_story(row.values)
        (found.of_open if values["outcome"] in (OPEN, ENDED) else found.provisional).append((number, values))


def as_final(row: dict[str, Any]) -> dict[str, Any]:
    """A provisional row without the columns that final ones lack, which say something of open ones alone."""
    of_open = ("awaited", "awaited_unnamed", "limit_ms", "broker", "alarm")
    assert {row[name] for name in of_open} == {None}
    return {name: value for name, value in row.items() if name not in ("waits_for", *of_open)}


def in_story(values: dict[str, Any]) -> dict[str, Any]:
    return {name: value - START_MS if name.endswith("_at") and value is not None else value for name, value in values.items()}


def by_second(story: Story, until: int) -> Told:
    """A story of a broker that is followed, second by second, with a lateness of a second."""
    return told(followed(story.events, 1_000, START_MS + until, {}), TrackerSettings(lateness_ms=1_000))


def two_members(story: Story, at: int = 0, **fields: Any) -> Story:
    """a-1 and b-1 join; the coordinator's log and the requests show it. The first generation is 1."""
    story.at(at).log_preparing(0, JOINED.format("a-1"), "a-1")
    story.at(at + 3_000).log_stabilized(1, members=2)
    story.join("a-1", 1, "a-1", ["a-1", "b-1"], waited=3_000, connection="ca", client_id="a", **fields)
    story.join("b-1", 1, "a-1", waited=2_900, connection="cb", client_id="b", **fields)
    story.at(at + 3_010).log_assignment(1, leader="a-1", members=2)
    story.sync("a-1", 1, {"a-1": ("t-0",), "b-1": ("t-1",)}, connection="ca").sync("b-1", 1, connection="cb")
    return story


def of_generation(rows: list[tuple[int, dict[str, Any]]], generation: int) -> list[dict[str, Any]]:
    return [row for _, row in rows if row["generation"] == generation]


def test_a_rebalance_is_told_as_soon_as_its_end_was_read_and_its_final_row_has_the_same_columns() -> None:
    found = by_second(two_members(Story()).beats(["a-1", "b-1"], 1, 4_000, 20_000), 20_000)
    ((number, row),) = found.provisional
    ((final_number, final),) = found.final
    assert (number, row["ended_at"]) == (5, 3_010)  # a second and the lateness after it
    assert final_number > number
    assert row["waits_for"] == "ANSWERS"
    assert as_final(row) == final


def test_a_member_that_left_without_a_reason_is_named_but_not_why_until_its_client_shows_it() -> None:
    story = two_members(Story()).beats(["a-1", "b-1"], 1, 4_000, 20_000)
    story.at(20_000).log(kinds.MEMBER_LEFT, member_id="b-1", client_id="b")
    story.log_preparing(1, "explicit `LeaveGroup` request for (b-1) members.", "b-1").leave("b-1", connection="cb")
    story.at(20_500).log_stabilized(2, members=1).join("a-1", 2, "a-1", ["a-1"], waited=400, connection="ca", client_id="a")
    story.at(20_510).log_assignment(2, leader="a-1", members=1).sync("a-1", 2, {"a-1": ("t-0", "t-1")}, connection="ca")
    story.beats(["a-1"], 2, 21_000, 40_000)
    story.at(35_000).id_issued("b-2", connection="cb", client_id="b")
    found = by_second(story, 40_000)
    first, *later = of_generation(found.provisional, 2)
    assert (first["cause"], first["member_id"], first["waits_for"]) == ("UNKNOWN", "b-1", "ANSWERS, DEPARTURE")
    assert [(row["cause"], row["waits_for"]) for row in later] == [("UNKNOWN", "DEPARTURE")]
    assert [(row["cause"], row["member_id"]) for row in of_generation(found.final, 2)] == [("POLL_TIMEOUT", "b-1")]


def test_a_rebalance_that_only_requests_show_names_nobody_before_their_order_is_known() -> None:
    found = by_second(third_member(orders()), 60_000)
    waits = [row["waits_for"] for row in of_generation(found.provisional, 2)]
    assert waits == ["ANSWERS, REQUESTS", "REQUESTS"]
    for row in of_generation(found.provisional, 2):
        assert {row[name] for name in WHO} == {None}
        assert row["cause"] == "UNKNOWN"
    (final,) = of_generation(found.final, 2)
    assert (final["cause"], final["member_id"], final["client_id"]) == ("MEMBER_JOINED", "c-1", "c")


def test_a_static_member_that_fell_silent_may_have_a_stalled_poll_loop() -> None:
    story = two_members(Story(), instance_id="")
    story.at(3_500).heartbeat("b-1", 1, connection="cb", instance_id="i")
    story.beats(["a-1", "b-1"], 1, 4_000, 8_000)
    story.at(20_000).log(kinds.MEMBER_FAILED, member_id="b-1").log_preparing(1, EXPIRED.format("b-1"), "b-1")
    story.at(20_500).log_stabilized(2, members=1).join("a-1", 2, "a-1", ["a-1"], waited=400, connection="ca", client_id="a")
    story.at(20_510).log_assignment(2, leader="a-1", members=1).sync("a-1", 2, {"a-1": ("t-0", "t-1")}, connection="ca")
    found = by_second(story.beats(["a-1"], 2, 21_000, 40_000), 40_000)
    assert {(row["cause"], row["member_id"]) for row in of_generation(found.provisional, 2)} == {("UNKNOWN", "b-1")}
    assert [(row["cause"], row["member_id"]) for row in of_generation(found.final, 2)] == [("SESSION_TIMEOUT", "b-1")]


def test_why_a_leader_joined_again_may_stand_in_its_assignment() -> None:
    story = two_members(Story()).beats(["a-1", "b-1"], 1, 4_000, 20_000)
    reason = "Leader a-1 re-joining group during Stable; client reason: not provided"
    story.at(20_000).log_preparing(1, reason, "a-1")
    story.at(20_500).log_stabilized(2, members=2)
    story.join("a-1", 2, "a-1", ["a-1", "b-1"], waited=500, connection="ca").join("b-1", 2, "a-1", waited=100, connection="cb")
    story.at(20_510).log_assignment(2, leader="a-1", members=2)
    story.sync("a-1", 2, {"a-1": ("t-0", "t-2"), "b-1": ("t-1",)}, connection="ca").sync("b-1", 2, connection="cb")
    found = by_second(story.beats(["a-1", "b-1"], 2, 21_000, 40_000), 40_000)
    first, *_ = of_generation(found.provisional, 2)
    assert (first["cause"], first["member_id"], first["reason"]) == ("UNKNOWN", "a-1", reason)
    assert [row["cause"] for row in of_generation(found.final, 2)] == ["METADATA_CHANGED"]


def test_a_rebalance_that_another_one_cut_short_is_told_before_that_has_ended() -> None:
    story = two_members(Story()).beats(["a-1", "b-1"], 1, 4_000, 20_000)
    story.at(20_000).log_preparing(1, JOINED.format("c-1"), "c-1")
    story.at(21_000).log_stabilized(2, members=3)
    story.at(22_000).log_preparing(2, JOINED.format("d-1"), "d-1")
    story.at(60_000).heartbeat("a-1", 2)
    found = by_second(story, 60_000)
    assert [(row["outcome"], row["ended_at"]) for row in of_generation(found.provisional, 2)] == [("SUPERSEDED", 22_000)]


def joining(story: Story) -> Story:
    """Requests of a group whose second join phase has ended."""
    story.at(3_000).join("a-1", 1, "a-1", ["a-1"], waited=2_990)
    story.at(3_010).sync("a-1", 1, {"a-1": ("t-0",)})
    story.beats(["a-1"], 1, 4_000, 20_000)
    return story.at(20_000).join("a-1", 2, "a-1", ["a-1"])


def test_a_rebalance_that_is_superseded_ends_when_the_next_one_began_as_far_as_that_is_known() -> None:
    story = joining(Story()).at(22_000).heartbeat("a-1", 2, Error.REBALANCE_IN_PROGRESS)
    found = by_second(story.at(50_000).commit("a-1", 1, Error.ILLEGAL_GENERATION), 50_000)
    ((_, row),) = [(number, row) for number, row in found.provisional if row["generation"] == 2]
    assert (row["outcome"], row["ended_at"], row["waits_for"], row["cause"]) == ("SUPERSEDED", 21_999, NEXT_REBALANCE, "UNKNOWN")
    assert of_generation(found.final, 2) == []


def test_nothing_is_told_where_a_damaged_line_alone_superseded_a_rebalance() -> None:
    story = joining(Story()).at(22_100).heartbeat("a-1", 2, Error.REBALANCE_IN_PROGRESS).at(22_500).heartbeat("a-1", 2)
    found = by_second(story.at(40_000).heartbeat("a-1", 2), 40_000)
    assert of_generation(found.provisional, 2) == []


def test_a_backlog_tells_provisionally_only_what_waits_at_the_end_of_a_batch() -> None:
    story = two_members(Story()).beats(["a-1", "b-1"], 1, 4_000, 40_000)
    assert told([[*story.events, *clocks(story.events)]]).provisional == []


@given(mixed_streams, st.integers(1, 30), st.integers(0, 4_900), st.integers(0, 3))
def test_whatever_comes_each_provisional_row_gets_its_final_one(stream: list[Event], count: int, shuffle_ms: int, seed: int) -> None:
    found = told(batches(stream, count, shuffle_ms=shuffle_ms, seed=seed))
    for _, row in found.provisional:
        assert row["outcome"]
        assert row["evidence"] != "[]"
        assert set(row["waits_for"].split(", ")) <= WAITS.keys()
    provisional = [{**row, "batch_id": number, "at_end": False} for number, row in (*found.provisional, *found.of_open)]
    tables = {"rebalances": [row for _, row in found.final], "rebalances_provisional": provisional}
    assert [breach for breach in breaches(tables) if breach.law == "PROVISIONAL_HAS_FINAL"] == []


@pytest.mark.parametrize("sources", [COORDINATOR_LOG, REQUEST_LOG, BOTH])
@pytest.mark.parametrize(("seed", "step_ms", "lateness_ms"), [(6, 300, 1_000), (81, 20_000, 1_000), (128, 1_000, 0), (194, 300, 5_000)])
def test_nobody_is_blamed_whom_the_final_row_does_not_blame(sources: tuple[str, ...], seed: int, step_ms: int, lateness_ms: int) -> None:
    story = [event for event in act_out(seed).events if event.source in sources]
    found = told(followed(story, step_ms, START_MS + END_MS, {}), TrackerSettings(lateness_ms=lateness_ms))
    final = {rebalance_key(row): (number, row) for number, row in found.final}
    assert len(final) == len(found.final)
    for number, row in found.provisional:
        if row["waits_for"] == NEXT_REBALANCE and rebalance_key(row) not in final:
            continue  # the next one runs when the story ends
        final_number, proven = final[rebalance_key(row)]
        assert number < final_number
        assert row["cause"] in ("UNKNOWN", proven["cause"])
        for name in WHO:
            assert row[name] in (None, proven[name])
