"""FindCoordinator is answered by any broker, about any id: it is no word of a group's coordinator."""

from __future__ import annotations

from coordinator_model import events as kinds
from coordinator_model.events import Event
from coordinator_model.tracker import codec
from coordinator_model.tracker.shard import Shard
from tests.tracker.batching import clocks
from tests.tracker.story import START_MS, Story, play

ADDED = ("coordinator_id", "coordinator_address")  # to Event, since state was first stored


def asked(broker: str, at_ms: int) -> Event:
    log = f"{broker}/kafka-request.log"
    return Event(broker, "request", log, 1, at_ms, at_ms - 1, kinds.FIND_COORDINATOR, "orders", connection="x", coordinator_id=1)


def test_an_id_that_was_only_asked_for_is_no_group() -> None:
    shard = Shard()
    events = [asked("broker-1", START_MS), asked("broker-2", START_MS + 60_000)]
    assert shard.observe([*events, *clocks(events)]) == []
    assert shard.summary() == (0, 0, 0)


def test_a_group_does_not_move_to_the_broker_that_was_asked() -> None:
    story = Story()
    story.at(0).log_preparing(0, "Adding new member a-1 with group instance id null; client reason: not provided.")
    story.at(3_000).log_stabilized(1, members=1)
    story.at(3_010).log_assignment(1, leader="a-1", members=1)
    told = [*story.events, *(asked("broker-2", START_MS + ms) for ms in (1_000, 3_005, 40_000))]
    ended = story.at(60_000).log_preparing(1, "removing member a-1 on heartbeat expiration.").events[-1]
    assert play([[*told, ended, *clocks([*told, ended])]]) == play([[*story.events, *clocks([*told, ended])]])


def test_an_event_that_was_stored_before_its_newest_fields_is_read() -> None:
    event = asked("broker-1", START_MS)
    assert Event._fields[-len(ADDED) :] == ADDED
    old = codec.unpack(codec.pack(tuple(event)))[: -len(ADDED)]
    assert codec.event(old) == event._replace(coordinator_id=-1, coordinator_address="")
