"""What a log that says nothing proves, and what it does not: of sessions that ran out unseen, and of lines that come too late."""

import pytest

from coordinator_model import events as kinds
from coordinator_model.errors import Error
from coordinator_model.events import Event
from coordinator_model.tracker.shard import Shard
from coordinator_model.view.clock import BrokerClock
from coordinator_model.view.rows import Ref
from tests.tracker.batching import clocks
from tests.tracker.story import START_MS, Story, play, table


def alone(stop: int = 20_000) -> Story:
    """One member, with a session of 10 s, that falls silent."""
    story = Story().at(50).id_issued("a-1").at(3_000).join("a-1", 1, "a-1", ["a-1"], waited=2_900)
    return story.at(3_010).sync("a-1", 1, {"a-1": ("t-0",)}).beats(["a-1"], 1, 4_000, stop)


def heard(story: Story, *stretches: tuple[int, int]) -> list[Event]:
    """The broker wrote lines in these seconds of the story."""
    clock = story.heard(until=stretches[-1][1] * 1_000)[0]
    return [clock._replace(received_ms=START_MS, beats=tuple(second for stretch in stretches for second in stretch))]


def codes(rows: list) -> list[str]:
    return [row["code"] for row in table(rows, "findings")]


@pytest.mark.parametrize(("stretches", "told"), [
    ([(0, 19), (24, 40)], ["SESSION_TIMEOUT"]),  # silent for 5 s before the session is over, heard when it is
    ([(0, 19), (35, 50), (80, 90)], []),  # silent for 16 s around it: it may have been down, whatever it did later
    ([(0, 19), (33, 50), (80, 90)], ["SESSION_TIMEOUT"]),  # 14 s are not long enough to be down
])  # fmt: skip
def test_a_session_is_over_if_its_broker_was_heard_shortly_before_and_after(stretches: list[tuple[int, int]], told: list[str]) -> None:
    """The session ends at 29 s."""
    story = alone()
    assert codes(play([[*story.events, *heard(story, *stretches)]])) == told


def test_a_broker_whose_log_is_no_longer_read_expires_nobody() -> None:
    """Another broker goes on, and is asked about the group by a client that does not know better."""
    story = alone()
    read = story.heard()
    story.on("broker-2").at(90_000).heartbeat("a-1", 1, Error.NOT_COORDINATOR)
    rows = Shard().observe(
        [
            *story.events,
            *read,
            *story.at(100_000).heard()[1:],
            *clocks([Event("broker-2", "clock", "", 0, START_MS + 100_000, 0, kinds.CLOCK)]),
        ]
    )
    assert table(rows, "member_sessions") == []


def test_a_member_whose_client_asks_for_a_new_id_and_dies_is_no_silent_one() -> None:
    """librdkafka gives its id up after it has heard nothing for long. The old id's session ends: nobody is to be told of it."""
    story = alone(30_000)
    story.events = [event._replace(connection="c-1") for event in story.events]
    story.at(30_500).id_issued("a-2", connection="c-1")
    rows = story.rows(until=90_000)
    assert [(s["member_id"], s["end_kind"]) for s in table(rows, "member_sessions")] == [("a-1", "SESSION_TIMEOUT")]
    assert codes(rows) == []
    assert [(r["outcome"], r["cause"]) for r in table(rows, "rebalances")][1:] == [("EMPTIED", "UNKNOWN")]


def test_lines_that_come_when_their_time_was_written_are_counted_and_change_nothing() -> None:
    story = alone()
    late = story.events.pop()
    shard = Shard()
    rows = shard.observe([*story.events, *story.heard(60_000)])
    assert codes(rows) == ["SESSION_TIMEOUT"]
    assert (shard.summary()[2], shard.observe([late]), shard.summary()[2]) == (0, [], 1)


def test_a_broker_that_takes_hundreds_of_partitions_over_at_once_took_over_once() -> None:
    """Elections are remembered by their time, the latest 64: one for each partition of a broker would push all others out."""
    clock = BrokerClock()
    for number, ms in enumerate((25_000, *[80_000] * 200)):
        clock.take_over(ms, Ref("coordinator", "f", number))
    assert (clock.took_over_between(0, 30_000), clock.took_over_between(30_000, 90_000)) == (25_000, 80_000)
    assert clock.elections[80_000].position == 1


def test_who_answers_for_the_coordinator_without_naming_one_says_nothing() -> None:
    """FIND_COORDINATOR is answered COORDINATOR_NOT_AVAILABLE between two answers that name node 1: node 2 is accused all the same."""
    found = Event("broker-2", "request", "broker-2/request.log", 1, START_MS, START_MS - 1, kinds.FIND_COORDINATOR, "orders")
    named = found._replace(coordinator_id=1, coordinator_address="10.0.0.1:9092")
    none = found._replace(
        position=2, at_ms=START_MS + 20_000, received_ms=START_MS + 20_000, error_code=int(Error.COORDINATOR_NOT_AVAILABLE)
    )
    again = named._replace(position=3, at_ms=START_MS + 30_000, received_ms=START_MS + 30_000)
    story = Story(broker="broker-2").at(5_000).log(kinds.MEMBER_ADDED, member_id="a-1", coordinator_id=2)
    story.beats(["a-1"], 1, 10_000, 40_000)
    told = [*story.events, named, none, again]
    assert codes(play([[*told, *clocks(told)]])) == ["MODEL_DIVERGENCE"]
