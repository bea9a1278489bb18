"""Where the specification and the broker may differ, and where one answer more decides who is right."""

import json
from typing import Any

import pytest

from coordinator_model import events as kinds
from coordinator_model.errors import Error
from coordinator_model.events import Protocol
from coordinator_model.tracker.shard import Shard
from coordinator_model.view.settings import TrackerSettings
from tests.tracker.story import Story, table

OFFERS = {"a": ("range", "roundrobin"), "b": ("roundrobin", "range")}


def pair() -> Story:
    """a-1 (leader) and b-1, generation 1, with heartbeats to 15 s."""
    story = Story().at(50).id_issued("a-1").at(60).id_issued("b-1")
    story.at(3_060).join("a-1", 1, "a-1", ["a-1", "b-1"], waited=3_005).join("b-1", 1, "a-1", waited=2_995)
    story.at(3_070).sync("a-1", 1, {"a-1": ("t-0",), "b-1": ("t-1",)}).sync("b-1", 1, {"b-1": ("t-1",)})
    return story.beats(["a-1", "b-1"], 1, 6_000, 16_000)


def rejoin(story: Story, ms: int, generation: int) -> Story:
    """b-1 changes its subscription: both join again."""
    story.at(ms).heartbeat("a-1", generation - 1, Error.REBALANCE_IN_PROGRESS)
    story.at(ms + 20).join("a-1", generation, "a-1", ["a-1", "b-1"], waited=10).join("b-1", generation, "a-1", waited=30, topics=("audit",))
    story.at(ms + 30).sync("a-1", generation, {"a-1": ("t-0",), "b-1": ("t-1",)}).sync("b-1", generation, {"b-1": ("t-1",)})
    return story.beats(["a-1", "b-1"], generation, ms + 3_000, ms + 15_000)


def divergences(story: Story, release: str = "") -> list[dict[str, Any]]:
    """`release`: of the brokers, by the settings."""
    rows = [
        row for row in table(story.rows(settings=TrackerSettings(kafka_version=release)), "findings") if row["code"] == "MODEL_DIVERGENCE"
    ]
    return sorted(rows, key=lambda row: row["occurred_at"])


def test_another_protocol_than_all_members_offer_is_told() -> None:
    story = pair()
    for number, event in enumerate(story.events):
        if event.kind == kinds.JOIN_GROUP and event.answer_generation == 1:
            story.events[number] = event._replace(protocol="sticky")
    (told, *_) = divergences(story, "4.2.0")
    assert divergences(story) == []  # as long as the release is not known
    details = json.loads(told["details"])
    assert (details["observed"]["protocol"], details["predicted"]["protocol"]) == ("sticky", "range")


def tied(*chosen: str) -> Story:
    """a-1 prefers range, b-1 roundrobin: one vote each. `chosen`: what the broker makes of it, in one generation after the other."""
    story = pair()
    for generation in range(2, len(chosen) + 1):
        rejoin(story, 16_000 * (generation - 1), generation)
    for number, event in enumerate(story.events):
        if event.kind == kinds.JOIN_GROUP:
            topics = event.protocols[0].topics or ()
            protocols = tuple(Protocol(name, topics, (), f"{name}-{topics}") for name in OFFERS[event.answer_member_id[0]])
            protocol = chosen[event.answer_generation - 1] if event.answer_generation > 0 else ""
            story.events[number] = event._replace(protocols=protocols, protocol=protocol)
    return story


@pytest.mark.parametrize(("chosen", "releases"), [
    (("range", "range", "range"), []),  # a tie in Java's hash map, 4.x
    (("roundrobin", "roundrobin", "roundrobin"), []),  # and in Scala's, up to 3.9
    (("roundrobin", "roundrobin", "range"), ["3.9.1"]),  # a broker does not change its release
])  # fmt: skip
def test_where_no_setting_names_the_release_the_answers_tell_it(chosen: tuple[str, ...], releases: list[str]) -> None:
    assert [json.loads(told["details"])["release"] for told in divergences(tied(*chosen))] == releases


@pytest.mark.parametrize(("releases", "told"), [({0: "4.2.0"}, 1), ({0: "4.2.0", 16_001: "3.9.1"}, 0)])
def test_a_broker_that_starts_with_another_release_follows_its_rules_from_then_on(releases: dict[int, str], told: int) -> None:
    """A tie between two assignors goes to range in 4.x, and to roundrobin up to 3.9."""
    story = tied("range", "range", "roundrobin")
    for ms, release in releases.items():
        story.at(ms).add("broker", kinds.BROKER_RELEASE, software=release, group_id="")
    assert len(divergences(story)) == told


@pytest.mark.parametrize(("late_ms", "told"), [(400, 0), (1_400, 1)])
def test_who_joins_before_a_late_timer_fires_belongs_to_the_generation_that_it_makes(late_ms: int, told: int) -> None:
    """b-1 does not rejoin: the join phase that began at 16 s is due at 46 s. c-1's JoinGroup comes when it is, and is one of it."""
    story = pair().at(15_995).id_issued("d-1")
    story.at(16_500).heartbeat("a-1", 1, Error.REBALANCE_IN_PROGRESS).at(17_000).heartbeat("b-1", 1, Error.REBALANCE_IN_PROGRESS)
    for ms in range(18_000, 45_000, 3_000):
        story.at(ms).heartbeat("b-1", 1, Error.REBALANCE_IN_PROGRESS)
    end = 46_000 + late_ms
    story.at(45_500).id_issued("c-1")
    story.at(end).join("d-1", 2, "a-1", waited=end - 16_000).join("a-1", 2, "a-1", ["a-1", "c-1", "d-1"], waited=end - 16_600)
    story.join("c-1", 2, "a-1", waited=60)
    given: dict[str, tuple[str, ...]] = {"a-1": ("t-0",), "c-1": (), "d-1": ("t-1",)}
    for member, own in given.items():
        story.at(end + 10).sync(member, 2, given if member == "a-1" else {member: own})
    story.beats(["a-1", "c-1", "d-1"], 2, end + 2_000, end + 20_000)
    assert len(divergences(story, "4.2.0")) == told


def test_a_join_that_is_answered_although_the_phase_cannot_have_ended_is_told() -> None:
    """b-1 lives and has not rejoined. That all have their assignment shows in the coordinator's log, the SyncGroups are lost."""
    story = pair().at(16_000).id_issued("c-1")
    story.at(18_000).heartbeat("a-1", 1, Error.REBALANCE_IN_PROGRESS).at(18_100).heartbeat("b-1", 1, Error.REBALANCE_IN_PROGRESS)
    story.at(18_510).join("c-1", 2, "a-1", waited=2_505).join("a-1", 2, "a-1", ["a-1", "c-1"], waited=500)
    story.at(18_510).log_stabilized(2, 2).at(18_520).log_assignment(2, "a-1", 2)
    for ms in (21_100, 24_100):
        story.at(ms).heartbeat("b-1", 1, Error.REBALANCE_IN_PROGRESS)
    (told,) = divergences(story, "4.2.0")
    details = json.loads(told["details"])
    assert (told["occurred_at"], details["api"], details["predicted"]) == (18_510, kinds.JOIN_GROUP, None)
    assert "no answer at that time" in told["message"]


@pytest.mark.parametrize(("held_at", "told"), [(15_000, []), (None, [15_500])])
def test_what_a_broker_handled_late_is_not_compared(held_at: int | None, told: list[int]) -> None:
    """It may have renewed sessions at any time between the arrival of a heartbeat and its answer."""
    story = pair()
    if held_at is not None:
        story.at(held_at).heartbeat("b-1", 1, took=1_500)
    story.at(15_500).heartbeat("a-1", 1, Error.ILLEGAL_GENERATION, took=0).beats(["a-1", "b-1"], 1, 16_000, 30_000)
    assert [row["occurred_at"] for row in divergences(story, "4.2.0")] == told


def test_an_id_that_was_handed_out_before_the_group_is_followed_is_good_afterwards() -> None:
    """The broker gave a wrong answer at 15.5 s, so that the group is followed again from generation 2. c-1 got its id meanwhile."""
    story = pair().at(15_500).heartbeat("a-1", 1, Error.ILLEGAL_GENERATION, took=0)
    rejoin(story, 17_000, 2).at(24_500).id_issued("c-1")
    story.at(32_200).heartbeat("a-1", 2, Error.REBALANCE_IN_PROGRESS).heartbeat("b-1", 2, Error.REBALANCE_IN_PROGRESS)
    story.at(32_300).join("c-1", 3, "a-1", waited=250).join("a-1", 3, "a-1", ["a-1", "b-1", "c-1"], waited=60)
    story.join("b-1", 3, "a-1", waited=50, topics=("audit",))
    given: dict[str, tuple[str, ...]] = {"a-1": ("t-0",), "b-1": ("t-1",), "c-1": ()}
    for member, own in given.items():
        story.at(32_310).sync(member, 3, given if member == "a-1" else {member: own})
    story.beats(["a-1", "b-1", "c-1"], 3, 35_000, 50_000)
    assert [told["occurred_at"] for told in divergences(story, "4.2.0")] == [15_500]


def test_a_follower_that_asks_again_is_answered_at_once_and_takes_no_room() -> None:
    """Its SyncGroup was lost, say: Stable answers a JoinGroup that changes nothing with the generation that there is."""
    story = pair()
    sizes = []
    for count in (1, 100):
        for number in range(count):
            story.at(16_000 + number).join("b-1", 1, "a-1", waited=0)
        shard = Shard()
        rows = shard.observe([*story.events, *story.heard(30_000)])
        sizes.append(len(shard.encode()))
        assert len(table(rows, "rebalances")) == 1
        assert divergences(story) == []
    assert sizes[1] - sizes[0] < 100
