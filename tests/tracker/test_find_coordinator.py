"""FindCoordinator is answered by any broker, about any id: it is no word of a group's coordinator."""

import pytest

from coordinator_model import events as kinds
from coordinator_model.events import Event
from coordinator_model.tracker.shard import Shard
from tests.tracker.batching import clocks
from tests.tracker.story import START_MS, Story, play, table

DIVERGED = "MODEL_DIVERGENCE"


def asked(broker: str, at_ms: int, node: int = 1) -> Event:
    """FIND_COORDINATOR, answered with a node at 10.0.0.<node>:9092."""
    return Event(
        broker, "request", f"{broker}/kafka-request.log", at_ms % 1_000_000, at_ms, at_ms - 1, kinds.FIND_COORDINATOR,
        "orders", connection="10.0.0.9:9092-10.0.0.7:50000-1", coordinator_id=node,
        coordinator_address=f"10.0.0.{node}:9092",
    )  # fmt: skip


def served_by(node: int, *answers: tuple[int, int], log: str = "") -> list[str]:
    """Codes of what is told: node 1 is found at 0 s, `node` answers heartbeats from 10 s on, `answers` are (when in s, node).

    `log`: the broker that was asked, else the one that answers.
    """
    story = Story(broker=f"broker-{node}")
    story.at(5_000).log(kinds.MEMBER_ADDED, member_id="a-1", coordinator_id=node)
    story.beats(["a-1"], 1, 10_000, 40_000)
    log = log or story.broker
    told = [asked(log, START_MS), *(asked(log, START_MS + s * 1_000, named) for s, named in answers), *story.events]
    told = [event._replace(origin="request.log") if event.broker == story.broker else event for event in told]
    return [row["code"] for row in table(play([[*told, *clocks(told)]]), "findings")]


@pytest.mark.parametrize(
    ("node", "answers", "expected"),
    [
        (2, [(30, 1)], [DIVERGED]),
        (2, [(30, 1), (35, 1)], [DIVERGED]),  # told once
        (2, [], []),  # it may have taken over since
        (2, [(30, 2)], []),  # it had
        (2, [(12, 1), (30, 2)], []),  # the metadata of the broker that was asked lagged behind
        (2, [(12, 1), (30, 1)], [DIVERGED]),
        (1, [(30, 1)], []),
    ],
)
def test_a_broker_that_answers_for_a_group_of_another_is_told(node: int, answers: list[tuple[int, int]], expected: list[str]) -> None:
    assert served_by(node, *answers) == expected


def test_what_another_broker_answers_is_compared_with_nothing() -> None:
    """Its clock may be seconds off: whether node 2 answered before or after that, or in between, is not known."""
    assert served_by(2, (30, 1), log="broker-1") == []


def test_of_several_logs_in_one_folder_each_has_a_clock_of_its_own() -> None:
    story = Story(broker="all").at(5_000).log(kinds.MEMBER_ADDED, member_id="a-1", coordinator_id=2).beats(["a-1"], 1, 10_000, 40_000)
    told = [asked("all", START_MS)._replace(origin="all/1.log"), asked("all", START_MS + 30_000)._replace(origin="all/1.log")]
    assert DIVERGED not in [row["code"] for row in table(play([[*told, *story.events, *clocks(told)]]), "findings")]
    first, last = told[0]._replace(origin=story.events[-1].origin), told[1]
    assert DIVERGED not in [row["code"] for row in table(play([[first, last, *story.events, *clocks(told)]]), "findings")]


def test_where_a_log_may_be_of_either_node_nobody_is_accused() -> None:
    """Two logs hold the same address, as behind a proxy: which of them is the node that was named cannot be told."""
    told = []
    for broker in ("broker-1", "broker-2"):
        story = Story(broker=broker)
        for ms in range(10_000, 40_000, 3_000):
            story.at(ms).heartbeat("a-1", 1, connection="10.0.0.1:9092-10.0.0.7:50001-1")
        told += story.events
    told += [asked("broker-1", START_MS), asked("broker-1", START_MS + 30_000)]
    assert DIVERGED not in [row["code"] for row in table(play([[*told, *clocks(told)]]), "findings")]


def test_an_id_that_was_only_asked_for_is_no_group() -> None:
    shard = Shard()
    events = [asked("broker-1", START_MS), asked("broker-2", START_MS + 60_000)]
    assert shard.observe([*events, *clocks(events)]) == []
    groups, held, late = shard.summary()
    assert (groups, held, late) == (0, 2, 0)  # the newest answers are kept, in case the id becomes a group


def test_a_group_does_not_move_to_the_broker_that_was_asked() -> None:
    story = Story()
    story.at(0).log_preparing(0, "Adding new member a-1 with group instance id null; client reason: not provided.")
    story.at(3_000).log_stabilized(1, members=1)
    story.at(3_010).log_assignment(1, leader="a-1", members=1)
    told = [*story.events, *(asked("broker-2", START_MS + ms) for ms in (1_000, 3_005, 40_000))]
    ended = story.at(60_000).log_preparing(1, "removing member a-1 on heartbeat expiration.").events[-1]
    assert play([[*told, ended, *clocks([*told, ended])]]) == play([[*story.events, *clocks([*told, ended])]])
