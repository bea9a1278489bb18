"""The steps of brokers' clocks: where the time of a log goes back since NTP set back a clock that was ahead, and how later lines are read.

A connection numbers its requests, and a group its generations, both upwards. So a line with a higher number and an earlier time than
another line of the same connection, or group, was written later by a clock that stood earlier. No damage, no other order of files and no
mixture of logs looks so. All logs of a broker have one clock: what the lines of one prove holds for the others.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from datetime import datetime, timezone
from typing import Final, NamedTuple

from coordinator_model.events import CLIENTS
from jobs.logs.bytes import LogBytes
from jobs.logs.formats.compression import first_bytes
from jobs.logs.jumps import LEAST_STEP_MS
from jobs.logs.mark import ClockStep
from jobs.logs.record_judge import holds_records
from jobs.logs.streams import Stream
from jobs.logs.times import NEVER, LaterTimes, LocalTimes

_LOOKED_AT: Final = 256 << 10  # bytes before a place, and behind it
_LEAST_WITNESSES: Final = 2  # on either side: a single line may be damaged
_FIRST_LINES: Final = 3
_NUMBERED: Final = (
    re.compile(rb'correlationId"?[:=](?P<number>\d{1,9})\b.*?\bconnection"?[: ]"?(?P<of>[^",;]{1,200})'),
    re.compile(rb"\bgroup (?P<of>\S{1,300}) .{0,300}?\bgeneration (?P<number>\d{1,9})\b"),
)
_SECOND_MS: Final = 1_000
Broker = tuple[str, str]
"""Its cluster and its name."""


class Fall(NamedTuple):
    """Where the time of a log goes back: from one to another, epoch ms. `proven`: by its lines, since its clock was set back."""

    last_ms: int
    first_ms: int
    proven: bool

    def meets(self, other: Fall) -> bool:
        """Whether both may be one moment."""
        return self.first_ms <= other.last_ms and other.first_ms <= self.last_ms


def fall_at(opened: Callable[[], LogBytes], offset: int, bare: Callable[[bytes], bytes], local: LocalTimes) -> Fall | None:
    """The times around a place, if time goes back there, and whether lines before and behind it prove that the clock was set back."""
    start, text = max(0, offset - _LOOKED_AT), b""
    with suppress(OSError), opened() as log:
        text = first_bytes(log, offset - start + _LOOKED_AT) if log.skip(start) else b""
    before = _timed(text[: offset - start], bare, local, NEVER)
    after = _timed(text[offset - start :], bare, local, before[-1][0] if before else NEVER)
    if not before or not after or before[-1][0] <= after[0][0]:
        return None
    earlier: dict[bytes, list[tuple[int, int]]] = {}
    for then, key, number in before:
        earlier.setdefault(key, []).append((then, number))
    # What was written before the first lines behind the place, though at a later time, of the same connections and groups.
    later = [(at, [then for then, less in earlier.get(key, ()) if less < number]) for at, key, number in after if key]
    first = [(at, thens) for at, thens in later if thens][:_FIRST_LINES]
    witnesses = [[then for then in thens if then > at + LEAST_STEP_MS] for at, thens in first]
    proven = sum(map(bool, witnesses)) >= _LEAST_WITNESSES and len(set().union(*witnesses)) >= _LEAST_WITNESSES
    return Fall(before[-1][0], after[0][0], proven)


def _timed(text: bytes, bare: Callable[[bytes], bytes], local: LocalTimes, near_ms: int) -> list[tuple[int, bytes, int]]:
    """Times of lines, each with the connection or group of the line and the number of that; empty, 0 if there is none."""
    timed = []
    for written in text.split(b"\n"):
        line = bare(written)
        at = local.read(line, near_ms)
        if at is not None:
            found = next((found for found in (pattern.search(line) for pattern in _NUMBERED) if found is not None), None)
            timed.append((at, found["of"], int(found["number"])) if found is not None else (at, b"", 0))
            near_ms = at
    return timed


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


def decide(
    stream: Stream, streams: Sequence[Stream], bare: Callable[[bytes], bytes], *, waits: bool, tell: Callable[[str], None]
) -> list[Stream]:
    """Decides about a log that waits where its time goes back: all logs of its broker take a step, or this one passes over it.

    Returns the logs of which something else comes next now. `waits`: more lines may come that decide.
    """
    reader = stream.reader
    assert reader is not None
    others = [one for one in streams if one is not stream and (one.cluster, one.broker) == (stream.cluster, stream.broker)]
    others = [one for one in others if one.reader is not None and may_step(one)]
    fall = fall_at(stream.open, reader.mark.offset, bare, LaterTimes(LocalTimes(stream.zone), reader.mark.ahead_ms))
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
