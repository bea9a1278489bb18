"""Cuts one stream of events into batches as sources do, with a clock row for every broker read."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence

from coordinator_model import events as kinds
from coordinator_model.events import Event


def batches(
    events: Sequence[Event],
    count: int,
    *,
    delays: Mapping[str, int] | None = None,
    shuffle_ms: int = 0,
    seed: int = 0,
) -> list[list[Event]]:
    """`count` batches of equal spans of arrival time.

    An event arrives at its own time, plus its broker's delay, plus up to `shuffle_ms`. What `clock` rows say is what was
    read by then: the newest time of each broker in the batch, and the seconds in which it was heard.
    """
    chance = random.Random(seed)
    late = delays or {}
    arrivals = sorted(
        (e.at_ms + late.get(e.broker, 0) + (chance.randrange(shuffle_ms) if shuffle_ms else 0), number) for number, e in enumerate(events)
    )
    if not arrivals:
        return []
    first, last = arrivals[0][0], arrivals[-1][0]
    cut: list[list[Event]] = [[] for _ in range(count)]
    for arrival, number in arrivals:
        slot = min((arrival - first) * count // max(last - first, 1), count - 1)
        cut[slot].append(events[number])
    for batch in cut:
        batch.extend(clocks(batch))
        chance.shuffle(batch)
    return cut


def clocks(batch: Sequence[Event]) -> list[Event]:
    """The clock rows of a batch: what was heard of each broker."""
    rows = []
    for broker in sorted({e.broker for e in batch}):
        times = [e.at_ms for e in batch if e.broker == broker]
        base = min(times) // 1_000
        seconds = sorted({at // 1_000 - base for at in times})
        stretches = tuple(second for s in seconds for second in (s, s))
        rows.append(Event(broker, "clock", "", 0, max(times), base * 1_000, kinds.CLOCK, beats=stretches))
    return rows
