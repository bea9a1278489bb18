"""Logs with holes: whatever is missing, batches of any length give the same rows.

The lines that are left contradict each other: members come back that had been removed, and sessions end that the broker renewed. So much
waits until something else is known, and is looked at again. That happens at times which the lines decide, not the batches.
"""

import random

import pytest

from coordinator_model import events as kinds
from coordinator_model.events import Event
from tests.effort import every, long
from tests.tracker.batching import batches
from tests.tracker.simulated.acted_out import BROKER, OTHER
from tests.tracker.simulated.test_simulated import BOTH, COORDINATOR_LOG, END_MS, REQUEST_LOG, act_out
from tests.tracker.story import START_MS, play

pytestmark = pytest.mark.slow

SOURCES = (REQUEST_LOG, BOTH, COORDINATOR_LOG, REQUEST_LOG)
ONCE_WRONG = (long(256), 531, 660, long(1068), 1355)
"""Seeds beyond the first hundred."""


def damaged(seed: int) -> list[Event]:
    """The script of a seed as its logs tell it, without single lines, a stretch of the log, a member for a while, or some requests."""
    chance = random.Random(seed)
    events = [event for event in act_out(seed).events if event.source in SOURCES[seed % len(SOURCES)]]
    how = chance.randrange(4) if events else -1
    if how == 0:
        return [event for event in events if chance.random() > 0.05]
    if how == 1:
        from_ms = chance.choice(events).at_ms
        return [event for event in events if not from_ms <= event.at_ms < from_ms + chance.choice((2_000, 10_000, 30_000))]
    if how == 2:
        member_id, from_ms = chance.choice(events).member_id, chance.choice(events).at_ms
        return [event for event in events if event.member_id != member_id or not from_ms <= event.at_ms < from_ms + 30_000]
    return [event for event in events if event.kind == kinds.HEARTBEAT or chance.random() > 0.2]


def rows(events: list[Event], seed: int, count: int, shuffle_ms: int, *, snapshot: bool) -> list[str]:
    end = [Event(broker, "clock", "", 0, START_MS + END_MS, START_MS + END_MS, kinds.END) for broker in (BROKER, OTHER)]
    *before, last = batches(events, count, shuffle_ms=shuffle_ms, seed=seed)
    return sorted(map(repr, play([*before, [*last, *end]], snapshot=snapshot)))


@pytest.mark.parametrize("seed", [*every(25, range(100)), *ONCE_WRONG])
def test_any_batches_give_the_same_rows(seed: int) -> None:
    events = damaged(seed)
    whole = rows(events, seed, 1, 0, snapshot=False) if events else []
    for count, shuffle_ms in ((3, 4_000), (13, 0), (80, 4_000), (250, 2_000)) if events else ():
        assert rows(events, seed, count, shuffle_ms, snapshot=count == 80) == whole, f"{count} batches"
