"""The specification beside the broker: what it predicts, what it lets pass, and what it tells."""

from __future__ import annotations

import json
import random
from collections import Counter
from dataclasses import replace
from typing import Any

import pytest

from coordinator_model import events as kinds
from coordinator_model.clients.client import ClientConfig
from coordinator_model.clients.simulation import Application
from coordinator_model.errors import Error
from coordinator_model.events import MemberEntry
from coordinator_model.tracker import prediction
from coordinator_model.tracker.hindsight import CAPACITY
from coordinator_model.view.settings import TrackerSettings
from tests.effort import long
from tests.tracker.batching import batches
from tests.tracker.logged import LoggedSimulation
from tests.tracker.story import Story, play, table

pytestmark = pytest.mark.slow


def orders(story: Story | None = None) -> Story:
    """a-1 (leader) and b-1 make generation 1 after the initial delay and are stable from 3.02 s; heartbeats to 15 s."""
    story = story or Story()
    story.at(50).id_issued("a-1")
    story.at(60).id_issued("b-1")
    story.at(3_060).join("a-1", 1, "a-1", ["a-1", "b-1"], waited=3_005)
    story.at(3_060).join("b-1", 1, "a-1", waited=2_995)
    story.at(3_070).sync("a-1", 1, {"a-1": ("t-0",), "b-1": ("t-1",)}, took=5)
    story.at(3_070).sync("b-1", 1, {"b-1": ("t-1",)}, took=6)
    return story.beats(["a-1", "b-1"], 1, 6_000, 16_000)


def third_member(story: Story, **leader: Any) -> Story:
    """c-1 comes at 16 s: generation 2. `leader`: what the answer to the leader says otherwise."""
    story.at(16_000).id_issued("c-1")
    story.at(18_000).heartbeat("a-1", 1, Error.REBALANCE_IN_PROGRESS)
    story.at(18_500).heartbeat("b-1", 1, Error.REBALANCE_IN_PROGRESS)
    story.at(18_510).join("c-1", 2, "a-1", waited=2_505)
    story.at(18_510).join("a-1", 2, "a-1", **{"members": ["a-1", "b-1", "c-1"], "waited": 500, **leader})
    story.at(18_510).join("b-1", 2, "a-1", waited=3)
    story.at(18_520).sync("a-1", 2, {"a-1": ("t-0",), "b-1": ("t-1",), "c-1": ()})
    story.at(18_520).sync("b-1", 2, {"b-1": ("t-1",)})
    story.at(18_520).sync("c-1", 2, {"c-1": ()})
    return story.beats(["a-1", "b-1", "c-1"], 2, 21_000, 30_000)


KNOWN = TrackerSettings(kafka_version="4.2.0")
"""An answer is called wrong only where the broker's release is known."""


def divergences(story: Story, settings: TrackerSettings = KNOWN) -> list[dict[str, Any]]:
    """What is told of differing answers, in order of time."""
    rows = [row for row in table(story.rows(settings=settings), "findings") if row["code"] == "MODEL_DIVERGENCE"]
    return sorted(rows, key=lambda row: row["occurred_at"])


def test_what_kafka_does_is_no_finding() -> None:
    story = third_member(orders())
    story.at(30_500).commit("b-1", 2)
    story.at(31_000).leave("b-1")
    story.at(33_000).heartbeat("a-1", 2, Error.REBALANCE_IN_PROGRESS)
    assert divergences(story) == []


@pytest.mark.parametrize(
    "error", [Error.ILLEGAL_GENERATION, Error.UNKNOWN_MEMBER_ID, Error.REBALANCE_IN_PROGRESS, Error.FENCED_INSTANCE_ID]
)
@pytest.mark.parametrize("api", [kinds.HEARTBEAT, kinds.OFFSET_COMMIT])
def test_an_answer_against_the_rules_is_told_with_both_answers(api: str, error: Error) -> None:
    story = orders()
    story.at(16_000).request(api, "a-1", took=0, generation=1, error_code=error, beats=(0,))
    story.beats(["a-1", "b-1"], 1, 18_000, 30_000)
    (told,) = divergences(story)
    assert (told["occurred_at"], told["member_id"], told["severity"], told["generation"]) == (16_000, "a-1", "WARNING", 1)
    details = json.loads(told["details"])
    assert (details["api"], details["observed"]) == (api, {"error": error.name})
    assert json.loads(told["evidence"])[0]["position"] == story.events.index(next(e for e in story.events if e.error_code == error)) + 1
    assert f"answered {api} with {error.name}" in told["message"]


def test_a_leader_that_stays_is_not_replaced() -> None:
    story = orders()
    story.at(16_000).id_issued("c-1")
    story.at(18_000).heartbeat("a-1", 1, Error.REBALANCE_IN_PROGRESS)
    story.at(18_500).heartbeat("b-1", 1, Error.REBALANCE_IN_PROGRESS)
    story.at(18_510).join("c-1", 2, "b-1", waited=2_505)
    story.at(18_510).join("a-1", 2, "b-1", waited=500)
    story.at(18_510).join("b-1", 2, "b-1", ["a-1", "b-1", "c-1"], waited=3)
    story.beats(["a-1"], 2, 21_000, 30_000)
    (told,) = divergences(story)
    details = json.loads(told["details"])
    assert (details["observed"]["leader"], details["predicted"]["leader"]) == ("b-1", "a-1")


def test_a_join_phase_does_not_end_before_all_have_rejoined() -> None:
    """b-1 is alive, has not rejoined, and its 30 s are not over: generation 2 without it is against the rules."""
    story = orders()
    story.at(16_000).id_issued("c-1")
    story.at(18_000).heartbeat("a-1", 1, Error.REBALANCE_IN_PROGRESS)
    story.at(18_100).heartbeat("b-1", 1, Error.REBALANCE_IN_PROGRESS)
    story.at(18_510).join("c-1", 2, "a-1", waited=2_505)
    story.at(18_510).join("a-1", 2, "a-1", ["a-1", "c-1"], waited=500)
    story.at(18_520).sync("a-1", 2, {"a-1": ("t-0",), "c-1": ()})
    story.at(18_520).sync("c-1", 2, {"c-1": ()})
    story.beats(["a-1", "c-1"], 2, 21_000, 30_000)
    assert [told["occurred_at"] for told in divergences(story)] == [18_520]


def test_a_timer_may_be_late_but_not_early() -> None:
    """b-1 falls silent at 15 s, so its session ends at 25 s. Told to rejoin at 25.3 s: fine. At 24 s: not Kafka."""
    for at_ms, expected in ((25_300, 0), (24_000, 1)):
        story = orders().beats(["a-1"], 1, 18_000, 24_000)
        story.at(at_ms).heartbeat("a-1", 1, Error.REBALANCE_IN_PROGRESS)
        story.at(at_ms + 10).join("a-1", 2, "a-1", ["a-1"])
        story.at(at_ms + 20).sync("a-1", 2, {"a-1": ("t-0", "t-1")})
        story.beats(["a-1"], 2, at_ms + 3_000, 36_000)
        assert len(divergences(story)) == expected, at_ms


@pytest.mark.parametrize(("answered_ms", "expected"), [(25_080, 0), (24_980, 1)])
def test_a_heartbeat_may_be_handled_after_a_timer_that_fires_while_it_waits(answered_ms: int, expected: int) -> None:
    """b-1's session ends at 25 s, while a-1's heartbeat waits on a busy broker for 100 ms. Answered before 25 s, it cannot know that."""
    story = orders().beats(["a-1"], 1, 18_000, 24_000)
    story.at(answered_ms).request(kinds.HEARTBEAT, "a-1", took=100, generation=1, error_code=Error.REBALANCE_IN_PROGRESS, beats=(0,))
    story.at(25_084).join("a-1", 2, "a-1", ["a-1"], waited=2)
    story.at(25_100).sync("a-1", 2, {"a-1": ("t-0", "t-1")}, took=5)
    story.beats(["a-1"], 2, 28_000, 36_000)
    assert len(divergences(story)) == expected


def test_answers_that_cross_are_no_finding() -> None:
    """b-1's JoinGroup, the last, and its commit reach the broker in one millisecond: either may be handled first."""
    story = orders()
    story.at(16_000).id_issued("c-1")
    story.at(18_000).heartbeat("a-1", 1, Error.REBALANCE_IN_PROGRESS)
    story.at(18_500).heartbeat("b-1", 1, Error.REBALANCE_IN_PROGRESS)
    story.at(18_508).commit("b-1", 1)
    story.at(18_509).join("c-1", 2, "a-1", waited=2_504)
    story.at(18_509).join("a-1", 2, "a-1", ["a-1", "b-1", "c-1"], waited=500)
    story.at(18_509).join("b-1", 2, "a-1", waited=2)
    story.at(18_520).sync("a-1", 2, {"a-1": ("t-0",), "b-1": ("t-1",), "c-1": ()})
    assert divergences(story) == []


@pytest.mark.parametrize(("after_ms", "expected"), [(478, 0), (1_500, 1)])
def test_a_busy_broker_handles_a_join_a_moment_after_its_arrival(after_ms: int, expected: int) -> None:
    """c-1's JoinGroup arrives at 16.005 s. A broker whose threads had to wait for a CPU held it for 478 ms before it was handled."""
    story = orders()
    story.at(16_005 + after_ms).heartbeat("a-1", 1)
    assert len(divergences(third_member(story))) == expected


def test_a_request_that_was_never_answered_explains_the_rest() -> None:
    """c-1 dies while its JoinGroup is parked: no line shows it, but the leader's list does."""
    story = orders()
    story.at(18_000).heartbeat("a-1", 1, Error.REBALANCE_IN_PROGRESS)
    story.at(18_500).heartbeat("b-1", 1, Error.REBALANCE_IN_PROGRESS)
    story.at(18_510).join("a-1", 2, "a-1", ["a-1", "b-1", "c-1"], waited=500)
    story.at(18_510).join("b-1", 2, "a-1", waited=3)
    story.at(18_520).sync("a-1", 2, {"a-1": ("t-0",), "b-1": ("t-1",), "c-1": ()})
    story.beats(["a-1", "b-1"], 2, 21_000, 30_000)
    assert divergences(story) == []


def test_a_broker_that_stalled_explains_the_rest() -> None:
    """Nobody is heard from 15 s to 33 s, and yet the sessions of 10 s go on: the broker itself stood still."""
    story = orders().beats(["a-1", "b-1"], 1, 33_000, 45_000)
    quiet = [e for e in story.heard() if e.kind == kinds.CLOCK]
    base = quiet[0].received_ms // 1_000
    first, last = quiet[0].beats
    heard = (first, first + 15, first + 33, last)
    stalled = [event._replace(beats=heard) for event in quiet]
    assert base * 1_000 == quiet[0].received_ms
    rows = play([[*story.events, *stalled]], KNOWN)
    assert [row for row in table(rows, "findings") if row["code"] == "MODEL_DIVERGENCE"] == []
    assert len(divergences(story)) == 1  # the same, but heard of all the time


def test_after_a_difference_the_group_is_followed_again_from_its_next_rebalance() -> None:
    story = orders()
    story.at(15_500).heartbeat("a-1", 1, Error.ILLEGAL_GENERATION, took=0)
    third_member(story)
    story.at(30_500).heartbeat("c-1", 2, Error.ILLEGAL_GENERATION, took=0)
    story.beats(["a-1", "b-1", "c-1"], 2, 31_000, 45_000)
    assert [told["occurred_at"] for told in divergences(story)] == [15_500, 30_500]


def test_a_log_that_begins_late_is_no_finding() -> None:
    """Whatever line comes first, the specification waits until it knows all members."""
    whole = third_member(orders()).events
    for begin in range(1, len(whole)):
        story = Story()
        story.events = whole[begin:]
        assert divergences(story) == [], begin


def test_a_group_that_is_too_large_tells_the_setting() -> None:
    """group.max.size is 2: c-1 is refused, now and later; to let d-1 in would be against the setting that was seen."""
    story = orders()
    refused = {"error_code": Error.GROUP_MAX_SIZE_REACHED, "session_timeout_ms": 10_000, "rebalance_timeout_ms": 30_000, "api_version": 9}
    for at_ms in (16_000, 17_000):
        story.at(at_ms).request(kinds.JOIN_GROUP, "", protocol_type="consumer", protocols=story.events[2].protocols, **refused)
    story.beats(["a-1", "b-1"], 1, 18_000, 24_000)
    assert divergences(story) == []
    story.at(24_500).id_issued("d-1")
    story.beats(["a-1", "b-1"], 1, 25_000, 40_000)
    assert [told["occurred_at"] for told in divergences(story)] == [24_500]


def test_a_move_of_the_coordinator_is_no_finding() -> None:
    """Another broker takes over and has every session start again: no rebalance, though nobody was heard for 14 s."""
    story = orders()
    story.at(16_000).heartbeat("a-1", 1, Error.NOT_COORDINATOR)
    story.on("broker-2").beats(["a-1", "b-1"], 1, 30_000, 45_000)
    assert divergences(story) == []


def test_the_release_decides_whom_a_group_elects() -> None:
    """The leader leaves with three others there. Unknown release: the broker's choice counts; known: its hash map's."""
    left = third_member(orders())
    left.at(30_000).leave("a-1")
    left.at(31_000).heartbeat("b-1", 2, Error.REBALANCE_IN_PROGRESS)
    left.at(31_100).heartbeat("c-1", 2, Error.REBALANCE_IN_PROGRESS)
    told = 0
    for leader, other in (("b-1", "c-1"), ("c-1", "b-1")):
        story = Story()
        story.events = list(left.events)
        story.at(31_200).join(leader, 3, leader, ["b-1", "c-1"], waited=50)
        story.at(31_200).join(other, 3, leader, waited=60)
        story.at(31_210).sync(leader, 3, {"b-1": ("t-0",), "c-1": ("t-1",)})
        story.at(31_210).sync(other, 3, {other: ("t-1",)})
        story.beats(["b-1", "c-1"], 3, 33_000, 45_000)
        assert divergences(story, TrackerSettings()) == []
        told += len(divergences(story))
    assert told == 1


def test_an_entry_of_a_leave_group_is_judged_by_itself() -> None:
    story = orders()
    entries = (MemberEntry("b-1", "", 0, "", None), MemberEntry("x-9", "", 0, "", None))
    story.at(16_000).request(kinds.LEAVE_GROUP, "", members=entries)
    story.at(18_000).heartbeat("a-1", 1, Error.REBALANCE_IN_PROGRESS)
    story.at(18_010).join("a-1", 2, "a-1", ["a-1"])
    story.at(18_020).sync("a-1", 2, {"a-1": ("t-0", "t-1")})
    story.beats(["a-1"], 2, 20_000, 30_000)
    assert [told["occurred_at"] for told in divergences(story)] == [16_000]


def test_too_many_waiting_requests_end_the_comparison_and_nothing_else() -> None:
    story = orders()
    story.at(16_000).id_issued("c-1")
    story.at(16_500).heartbeat("a-1", 1, Error.REBALANCE_IN_PROGRESS)
    for number in range(CAPACITY + 1):
        story.at(16_501 + number).commit("b-1", 1)
    story.at(21_000).heartbeat("b-1", 1, Error.REBALANCE_IN_PROGRESS)
    assert divergences(story) == []


@pytest.mark.parametrize("count", [1, 2, 7, 40])
def test_the_same_is_told_in_any_batching_with_the_state_stored_after_each(count: int) -> None:
    story = third_member(orders())
    story.at(30_500).heartbeat("c-1", 2, Error.ILLEGAL_GENERATION, took=0)
    story.beats(["a-1", "b-1", "c-1"], 2, 31_000, 45_000)
    rows = play(batches(story.events, count, shuffle_ms=2_000), KNOWN, snapshot=True)
    assert [row["occurred_at"] for row in table(rows, "findings") if row["code"] == "MODEL_DIVERGENCE"] == [30_500]


def life(release: str, seed: int) -> LoggedSimulation:
    """Two minutes of up to five consumers, dynamic and static ones, that start, stall, die and close when `seed` says."""
    chance = random.Random(seed)
    applications = []
    for number in range(chance.randint(1, 5)):
        config = ClientConfig.of(release, f"c{number}")
        if chance.random() < 0.3:
            config = replace(config, group_instance_id=f"i{number}")
        if chance.random() < 0.5:
            config = replace(config, session_timeout_ms=chance.choice((6_000, 10_000)), max_poll_interval_ms=20_000)
        starts_ms = chance.choice((0, 0, chance.randint(0, 60_000)))
        end_ms = starts_ms + chance.randint(10, 90_000)
        fate = chance.choice(("stays", "dies_ms", "closes_ms"))
        stall_ms = starts_ms + chance.randint(0, 60_000)
        stalls = ((stall_ms, stall_ms + chance.randint(1_000, 40_000)),) if chance.random() < 0.3 else ()
        applications.append(Application(config, starts_ms, stalls=stalls, **{} if fate == "stays" else {fate: end_ms}))
    simulation = LoggedSimulation(release, applications, seed=seed)
    simulation.run_until(120_000)
    return simulation


@pytest.mark.parametrize("release", ["2.8.2", long("3.3.2"), long("3.9.1"), "4.2.0"])
def test_whatever_kafka_does_is_no_finding_when_seen_through_a_log(release: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Most answers are compared, whatever happens to the group, and none of them differs."""
    compared, differing = Counter[str](), []
    handle = prediction.handle
    monkeypatch.setattr(prediction, "handle", lambda *arguments: (compared.update(["handled"]), handle(*arguments)))
    at_once = prediction.take_signs_of_life
    monkeypatch.setattr(prediction, "take_signs_of_life", lambda *a: (compared.update(handled=a[-1]), at_once(*a)))
    for seed in range(60):
        story = Story()
        story.events = life(release, seed).log
        compared["logged"] += len(story.events)
        differing += [(seed, row["occurred_at"], row["message"]) for row in divergences(story, TrackerSettings(kafka_version=release))]
    assert differing == []
    assert compared["handled"] > 0.9 * compared["logged"]
