"""Signs of life that are taken at once: the same rows as one by one, whatever happens to the group between them."""

import random
from itertools import groupby
from typing import Any

import pytest

from coordinator_model import events as kinds
from coordinator_model.events import Event
from coordinator_model.tracker import hindsight
from coordinator_model.tracker.quiet import runs, steady
from tests.effort import every
from tests.tracker.batching import batches
from tests.tracker.simulated.acted_out import BROKER, OTHER
from tests.tracker.simulated.test_simulated import BOTH, END_MS, REQUEST_LOG, act_out
from tests.tracker.story import START_MS, Story, play
from tests.tracker.test_large_groups import requested

pytestmark = pytest.mark.slow


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


def with_commits(events: list[Event], seed: int) -> list[Event]:
    """The events, and commits of members near their heartbeats: answered at once, soon or late, and now and then on another connection."""
    chance = random.Random(seed)
    commits = []
    for number, event in enumerate(events):
        if event.kind == kinds.HEARTBEAT and event.error_code == 0 and chance.random() < 0.4:
            received_ms, took_ms = event.received_ms + chance.randrange(-3, 900), chance.choice((0, 1, 5, 40, 700))
            other = f"{event.connection}-other" if chance.random() < 0.1 else event.connection
            line = {"position": 1_000_000 + number, "correlation_id": 1_000_000 + number, "connection": other, "beats": (), "positions": ()}
            commits.append(event._replace(kind=kinds.OFFSET_COMMIT, received_ms=received_ms, at_ms=received_ms + took_ms, **line))
    return [*events, *commits]


def rows_of(events: list[Event], sources: tuple[str, ...], slice_ms: int, count: int) -> list[str]:
    told = in_runs([event for event in events if event.source in sources], slice_ms)
    heard = [Event(b, "clock", "", 0, START_MS + END_MS, START_MS, kinds.CLOCK, beats=(0, END_MS // 1_000)) for b in (BROKER, OTHER)]
    *before, last = batches(told, count)
    return sorted(repr(row) for row in play([*before, [*last, *heard]], snapshot=True))


@pytest.mark.parametrize("seed", every(15, range(60)))
def test_signs_taken_at_once_give_the_rows_of_each(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    events = with_commits(act_out(seed).events, seed)
    sources, slice_ms, count = (REQUEST_LOG, BOTH)[seed % 2], (10_000, 60_000)[seed // 2 % 2], (1, 7)[seed // 4 % 2]
    at_once = rows_of(events, sources, slice_ms, count)
    monkeypatch.setattr(steady, "take", lambda _, runs, __: (runs, None))
    assert at_once == rows_of(events, sources, slice_ms, count)


def test_many_signs_of_these_scripts_are_taken_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    taken, offered = [], 0
    renew = steady._renew
    monkeypatch.setattr(steady, "_renew", lambda member, series: (taken.append(len(series.times)), renew(member, series)))
    for seed in range(6):
        events = with_commits(act_out(seed).events, seed)
        offered += sum(event.kind in (kinds.HEARTBEAT, kinds.OFFSET_COMMIT) and event.error_code == 0 for event in events)
        rows_of(events, REQUEST_LOG, 60_000, 1)
    assert sum(taken) > offered / 10


def test_heartbeats_of_one_millisecond_are_no_run() -> None:
    (event,) = Story().heartbeat("a-1", 1).events
    row = event._replace(beats=(0, 0, 5), positions=(1, 2, 3))
    assert [(one.position, one.beats) for one in runs.as_runs(row)] == [(1, (0,)), (2, (0,)), (3, (0,))]


def test_more_signs_than_may_wait_for_the_specification_are_taken_one_by_one(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = requested(5).rows()
    took = []
    renew = steady._renew
    monkeypatch.setattr(steady, "_renew", lambda member, series: (took.append(series), renew(member, series)))
    assert requested(5).rows() == rows
    assert took
    took.clear()
    monkeypatch.setattr(hindsight, "CAPACITY", 0)
    requested(5).rows()
    assert not took
