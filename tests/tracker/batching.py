"""Cuts one stream of events into batches as sources do, with a clock row for every broker read."""

import random
from collections.abc import Mapping, Sequence

from coordinator_model import events as kinds
from coordinator_model.events import Event


def batches(
    events: Sequence[Event], count: int, *, delays: Mapping[str, int] | None = None, shuffle_ms: int = 0, seed: int = 0
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


def followed(events: Sequence[Event], step_ms: int, until_ms: int, absences: Mapping[str, tuple[int, int]]) -> list[list[Event]]:
    """Batches as from shippers, the last one at `until_ms`: each broker's lines of `step_ms`, and how far its log was read, be it silent.

    `absences`: by broker, from when to when its shipper is away. What the broker writes meanwhile comes afterwards.
    """
    times = [event.at_ms for event in events]
    if not times:
        return []
    read = dict.fromkeys(sorted({event.broker for event in events}), min(times) - 1)
    made = []
    for now in [*range(min(times), until_ms, step_ms), until_ms]:
        batch = []
        for broker, before in read.items():
            away_from, away_to = absences.get(broker, (0, 0))
            if away_from <= now < away_to:
                continue
            lines = [event for event in events if event.broker == broker and before < event.at_ms <= now]
            seconds = sorted({event.at_ms // 1_000 for event in lines})
            heard = tuple(second - now // 1_000 for s in seconds for second in (s, s))
            batch += [*lines, Event(broker, "clock", "", 0, now, now // 1_000 * 1_000, kinds.FOLLOWED, beats=heard)]
            read[broker] = now
        made.append(batch)
    return made


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
