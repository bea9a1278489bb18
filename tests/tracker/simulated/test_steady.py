"""Runs of heartbeats that are taken at once: the same rows as beat by beat, whatever happens to the group between them."""

from __future__ import annotations

from itertools import groupby
from typing import Any

import pytest

from coordinator_model import events as kinds
from coordinator_model.events import Event
from coordinator_model.tracker import steady
from tests.tracker.batching import batches
from tests.tracker.simulated.acted_out import BROKER, OTHER, Broker
from tests.tracker.simulated.test_simulated import BOTH, END_MS, REQUEST_LOG, act_out
from tests.tracker.story import START_MS, play


def in_runs(events: list[Event], slice_ms: int) -> list[Event]:
    """The events as ingest writes them: beats of one member, generation and answer share a row in each slice of time."""

    def member(event: Event) -> tuple[Any, ...]:
        return event.at_ms // slice_ms, event.broker, event.connection, event.member_id, event.generation, event.error_code

    def is_prompt(event: Event) -> bool:
        return event.kind == kinds.HEARTBEAT and event.at_ms - event.received_ms <= kinds.PROMPT_MS

    rows = [event for event in events if not is_prompt(event)]
    for _, same in groupby(sorted(filter(is_prompt, events), key=lambda e: (member(e), e.received_ms)), key=member):
        beats = list(same)
        first = beats[0]
        since = tuple(event.received_ms - first.received_ms for event in beats)
        rows.append(first._replace(beats=since, positions=tuple(event.position for event in beats)))
    return sorted(rows, key=lambda event: event.at_ms)


def rows_of(broker: Broker, sources: tuple[str, ...], slice_ms: int, count: int) -> list[str]:
    told = in_runs([event for event in broker.events if event.source in sources], slice_ms)
    heard = [Event(b, "clock", "", 0, START_MS + END_MS, START_MS, kinds.CLOCK, beats=(0, END_MS // 1_000)) for b in (BROKER, OTHER)]
    *before, last = batches(told, count)
    return sorted(repr(row) for row in play([*before, [*last, *heard]], snapshot=True))


@pytest.mark.parametrize("seed", range(60))
def test_runs_taken_at_once_give_the_rows_of_their_beats(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    broker = act_out(seed)
    sources, slice_ms, count = (REQUEST_LOG, BOTH)[seed % 2], (10_000, 60_000)[seed // 2 % 2], (1, 7)[seed // 4 % 2]
    at_once = rows_of(broker, sources, slice_ms, count)
    monkeypatch.setattr(steady, "take", lambda _, runs, __: (runs, None))
    assert at_once == rows_of(broker, sources, slice_ms, count)


def test_many_beats_of_these_scripts_are_taken_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    taken, offered = [], 0
    renew = steady._renew
    monkeypatch.setattr(steady, "_renew", lambda member, run, count: (taken.append(count), renew(member, run, count)))
    for seed in range(20):
        broker = act_out(seed)
        offered += sum(event.kind == kinds.HEARTBEAT and event.error_code == 0 for event in broker.events)
        rows_of(broker, REQUEST_LOG, 60_000, 1)
    assert sum(taken) > offered / 5
