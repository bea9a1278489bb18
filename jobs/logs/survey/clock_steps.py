"""The steps of brokers' clocks: from the places where the times of their logs go back (falls.py) to how later lines are read."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from datetime import datetime, timezone
from typing import Final

from coordinator_model.events import CLIENTS
from jobs.logs.mark import ClockStep
from jobs.logs.record_judge import holds_records
from jobs.logs.streams import Stream
from jobs.logs.survey.falls import Fall

_SECOND_MS: Final = 1_000
Broker = tuple[str, str]
"""Its cluster and its name."""


def may_step(stream: Stream) -> bool:
    """Whether a log has one clock, and its lines in their order: one of a single broker, as it was written."""
    no_broker = stream.broker == CLIENTS or holds_records(stream.broker, stream.origin)
    return not (no_broker or stream.shared_by is not None or stream.view.share is not None or stream.view.newest_first)


def known(streams: Iterable[Stream]) -> dict[Broker, tuple[ClockStep, ...]]:
    """The steps that are known of the clocks of brokers."""
    steps: dict[Broker, tuple[ClockStep, ...]] = {}
    for stream in streams:
        if own := stream.reached.steps:
            steps[stream.cluster, stream.broker] = max(own, steps.get((stream.cluster, stream.broker), ()), key=len)
    return steps


def steps_of(shown: Sequence[Sequence[Fall]]) -> Iterator[ClockStep]:
    """The steps of a broker's clock, by those that each of its logs shows, in its order."""
    ahead = 0
    for fall in max(shown, key=len):
        step = _step([fall, *(one for falls in shown for one in falls if one.meets(fall))])
        yield step._replace(last_ms=step.last_ms + ahead)
        ahead += step.back_ms


def _step(falls: Sequence[Fall]) -> ClockStep:
    """The step that logs show. Between two lines some time went by: it was a little more than what they show."""
    last = max(fall.last_ms for fall in falls)
    return ClockStep(last, -((min(fall.first_ms for fall in falls) - last) // _SECOND_MS) * _SECOND_MS)


def decide(stream: Stream, streams: Sequence[Stream], *, waits: bool, tell: Callable[[str], None]) -> list[Stream]:
    """Decides about a log that waits where its time goes back: all logs of its broker take a step, or this one passes over it.

    Returns the logs of which something else comes next now. `waits`: more lines may come that decide.
    """
    reader = stream.reader
    assert reader is not None
    others = [one for one in streams if one is not stream and (one.cluster, one.broker) == (stream.cluster, stream.broker)]
    others = [one for one in others if one.reader is not None and may_step(one)]
    fall = None
    with suppress(OSError):
        fall = reader.fall()
    if fall is None or not fall.proven:
        if waits:
            return []
        reader.pass_over()
        return [stream]
    step = _step([fall])
    for one in (stream, *others):
        assert one.reader is not None
        one.reader.take_step(step)
    tell(told(stream.broker, step))
    return [stream, *others]


def told(broker: str, step: ClockStep) -> str:
    """What is told of a step."""
    at = datetime.fromtimestamp(step.last_ms // _SECOND_MS, timezone.utc)
    by = f"{step.back_ms // _SECOND_MS:,} s"
    return (
        f"the clock of {broker} stepped back by {by} at {at:%Y-%m-%d %H:%M:%S} UTC: what it wrote from there on is told {by} later than"
        " written, so that it stands in its order"
    )
