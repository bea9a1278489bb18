"""Steady heartbeats of consumer groups that are taken at once: the same rows as one by one, whatever happens to the group between them."""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from itertools import groupby
from typing import Any

import pytest

from coordinator_model import events as kinds
from coordinator_model.events import Event
from coordinator_model.tracker.consumer import calm
from coordinator_model.tracker.group import GroupTracker
from coordinator_model.view.consumer_view import ConsumerMember, ConsumerView
from coordinator_model.view.rows import Ref
from coordinator_model.view.settings import TrackerSettings
from coordinator_model.view.view import View
from tests.effort import every
from tests.tracker.batching import batches
from tests.tracker.consumer.consumer_story import ConsumerStory
from tests.tracker.story import START_MS, play

END_MS = 400_000
INTERVAL_MS = 5_000
PARTITIONS = [f"T-{number}" for number in range(12)]


@dataclass
class _Client:
    member: str
    connection: str
    epoch: int = 0
    owned: set[str] = field(default_factory=set)
    next_ms: int = 0


def script(seed: int, *, logged: bool) -> list[Event]:
    """Some minutes of a group whose members come, go, fall silent, are refused, and send copies of what they sent."""
    chance, story = random.Random(seed), ConsumerStory()
    clients: list[_Client] = []
    epoch, free, numbers = 0, set(PARTITIONS), iter(range(1_000_000))

    def answered(client: _Client, asked: int, **fields: Any) -> None:
        story.beat(client.member, asked, client.epoch, client_id=client.member, connection=client.connection, **fields)
        story.events[-1] = story.events[-1]._replace(correlation_id=next(numbers))

    for ms in range(0, END_MS, 100):
        story.at(ms + chance.randrange(100))
        if chance.random() < 0.004 and len(clients) < 5:
            epoch += 1
            joined = _Client(f"m{epoch}", f"c{epoch}", epoch, set(sorted(free)[:4]), ms + INTERVAL_MS)
            free -= joined.owned
            clients.append(joined)
            if logged:
                story.joins(joined.member, epoch)
            answered(joined, 0, partitions=tuple(sorted(joined.owned)), topics=("orders",))
        elif chance.random() < 0.002 and clients:
            gone = clients.pop(chance.randrange(len(clients)))
            free |= gone.owned
            epoch += 1
            if chance.random() < 0.5:
                story.beat(gone.member, -1, -1, client_id=gone.member, connection=gone.connection)
            if logged:
                story.line(kinds.DEPARTED, gone.member).raised(epoch)
        for client in clients:
            if ms < client.next_ms:
                continue
            client.next_ms = ms + INTERVAL_MS + chance.randrange(-500, 500) + (20_000 if chance.random() < 0.02 else 0)
            before, client.epoch = client.epoch, epoch
            answered(client, before, took=chance.choice((0, 0, 3, 40, 300)))
            if chance.random() < 0.1:
                story.request(kinds.OFFSET_COMMIT, client.member, generation=client.epoch, connection=client.connection)
            if chance.random() < 0.02:
                story.events.append(story.events[-1]._replace(origin="copy", position=next(numbers)))
            if chance.random() < 0.02:
                story.refused(client.member, 0, 110)
    return story.events


def in_runs(events: list[Event], slice_ms: int) -> list[Event]:
    """The events as ingest writes them: steady heartbeats of a member share a row in each slice of time."""

    def member(event: Event) -> tuple[Any, ...]:
        late = event.position if event.at_ms - event.received_ms > kinds.PROMPT_MS else -1
        return event.at_ms // slice_ms, event.connection, event.member_id, event.generation, event.origin, late

    def is_steady(event: Event) -> bool:
        same = event.kind == kinds.CONSUMER_GROUP_HEARTBEAT and event.error_code == 0 and event.generation == event.answer_generation > 0
        return same and not event.protocols and not event.assignments

    rows = [event for event in events if not is_steady(event)]
    for _, own in groupby(sorted(filter(is_steady, events), key=lambda e: (member(e), e.received_ms)), key=member):
        beats = list(own)
        since = tuple(event.received_ms - beats[0].received_ms for event in beats)
        rows.append(beats[0]._replace(beats=since, positions=tuple(event.position for event in beats)))
    return sorted(rows, key=lambda event: event.at_ms)


def rows_of(events: list[Event], slice_ms: int, count: int) -> list[str]:
    heard = Event("broker-1", "clock", "", 0, START_MS + END_MS, START_MS, kinds.CLOCK, beats=(0, END_MS // 1_000))
    *before, last = batches(in_runs(events, slice_ms), count)
    return sorted(repr(row) for row in play([*before, [*last, heard]], snapshot=True))


@pytest.mark.parametrize("seed", every(4, range(24)))
def test_heartbeats_taken_at_once_give_the_rows_of_each(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    events = script(seed, logged=bool(seed % 2))
    slice_ms, count = (12_000, 100_000)[seed // 2 % 2], (1, 7)[seed // 4 % 2]
    at_once = rows_of(events, slice_ms, count)
    assert any("rebalances" in row for row in at_once)
    with monkeypatch.context() as one_by_one:
        one_by_one.setattr(calm, "take", lambda _, runs, __: (runs, None))
        assert at_once == rows_of(events, slice_ms, count)
    assert at_once == rows_of(events, 1, 3)  # no two heartbeats share a row


def test_most_heartbeats_of_these_scripts_are_taken_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    taken, offered = [], 0
    note = calm._note_heard
    monkeypatch.setattr(calm, "_note_heard", lambda *given: (taken.append(len(given[-1])), note(*given)))
    for seed in range(4):
        events = script(seed, logged=True)
        offered += sum(event.generation == event.answer_generation > 0 for event in events)
        rows_of(events, 100_000, 1)
    assert sum(taken) > offered / 3


def test_a_group_is_not_calm_while_a_heartbeat_may_show_why_a_member_departed() -> None:
    tracker = GroupTracker(View("orders", consumer_protocol=True), TrackerSettings())
    view = tracker.view.consumer = ConsumerView(epoch=3, members={"m1": ConsumerMember("m1", epoch=3)}, heard=True)
    assert calm.is_calm(tracker)
    view.gone.append(ConsumerMember("m2", gone_signs=[Ref("offsets", "__consumer_offsets-0", 7)]))
    assert not calm.is_calm(tracker)
