"""Runs: events of heartbeats with many beats, each of which has its time and its position.

A commit is an event of its own. Both are signs of life: the broker accepted them, and answered soon.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from operator import sub
from typing import Final

from coordinator_model import events as kinds
from coordinator_model.errors import Error
from coordinator_model.events import Event
from coordinator_model.tracker import membership

WIDEST_MS: Final = 300_000
"""A run with a longer gap is no run."""

_POSITION: Final = Event._fields.index("position")
_AT: Final = Event._fields.index("at_ms")
_RECEIVED: Final = Event._fields.index("received_ms")
_CORRELATION: Final = Event._fields.index("correlation_id")
_BEATS: Final = Event._fields.index("beats")
_POSITIONS: Final = Event._fields.index("positions")


def as_runs(row: Event) -> list[Event]:
    """A row of heartbeats as runs whose beats may be taken at once; beat by beat where it has other heartbeats.

    A beat that was answered promptly counts at its arrival, which is the same in any row. One whose answer was late has its own row, and
    counts when it was answered, like any request. The correlation id is known of the first of a row only.
    """
    if row.at_ms - row.received_ms > kinds.PROMPT_MS:
        return [row]
    run, pauses = _changed(row, row.received_ms, row.position, row.beats, row.positions), [*gaps(row.beats)]
    return [run] if is_run(run) and (not pauses or (min(pauses) > 0 and max(pauses) <= WIDEST_MS)) else [*one_by_one([run])]


def is_run(event: Event) -> bool:
    """Whether an event is one of `as_runs` with accepted heartbeats."""
    is_beat = event.kind in kinds.HEARTBEATS and event.error_code == Error.NONE and event.at_ms == event.received_ms
    return is_beat and event.source == kinds.REQUEST_SOURCE and 0 < len(event.beats) == len(event.positions)


def is_sign(event: Event) -> bool:
    """Whether an event is a run, or an accepted commit of a member that was answered soon."""
    return is_run(event) or (
        event.kind == kinds.OFFSET_COMMIT
        and not event.beats
        and event.error_code == Error.NONE
        and event.source == kinds.REQUEST_SOURCE
        and event.generation >= 0
        and 0 <= event.at_ms - event.received_ms < membership.LONG_ANSWER_MS
    )


def last_ms(event: Event) -> int:
    """The time of the last beat of a run, or of any other event."""
    return event.at_ms + event.beats[-1] if event.beats else event.at_ms


def divided(events: Iterable[Event], at_ms: int) -> tuple[list[Event], list[Event]]:
    """The events before a time, and those since. Runs are cut."""
    before: list[Event] = []
    since: list[Event] = []
    for event in events:
        if event.at_ms >= at_ms:
            since.append(event)
        elif last_ms(event) < at_ms:
            before.append(event)
        else:
            count = bisect_left(event.beats, at_ms - event.received_ms)
            before.append(_changed(event, event.received_ms, event.position, event.beats[:count], event.positions[:count]))
            base = event.beats[count]
            later = tuple([beat - base for beat in event.beats[count:]])
            since.append(_changed(event, event.received_ms + base, event.positions[count], later, event.positions[count:]))
    return before, since


def one_by_one(events: Iterable[Event]) -> Iterator[Event]:
    """The events, each beat of a run by itself."""
    for event in events:
        if len(event.beats) > 1:
            for since, position in zip(event.beats, event.positions, strict=True):
                yield _changed(event, event.received_ms + since, position, (0,), (position,))
        else:
            yield event


def last_of(event: Event) -> Event:
    """The last beat of a run as an event of its own; any other event itself."""
    if len(event.beats) <= 1:
        return event
    return _changed(event, last_ms(event), event.positions[-1], (0,), (event.positions[-1],))


def _changed(run: Event, at_ms: int, position: int, beats: tuple[int, ...], positions: tuple[int, ...]) -> Event:
    """The run with other beats. As `_replace`, in a fifth of its time."""
    fields = list(run)
    fields[_POSITION], fields[_AT], fields[_RECEIVED], fields[_CORRELATION] = position, at_ms, at_ms, -1
    fields[_BEATS], fields[_POSITIONS] = beats, positions
    return Event._make(fields)


def gaps(times: Sequence[int]) -> Iterable[int]:
    """The time from each to the next."""
    return map(sub, times[1:], times)


def after_a_silence(ready: Iterable[Event], longer_than_ms: int) -> int | None:
    """The time of the first event that comes so much later than the one before it. None if there is none."""
    before_ms = None
    for event in ready:
        if before_ms is not None and event.at_ms > before_ms + longer_than_ms:
            return event.at_ms
        before_ms = max(last_ms(event), before_ms or 0)
    return None
