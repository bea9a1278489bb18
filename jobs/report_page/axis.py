"""The parts of a picture of time: an axis, and lanes with spans and marks at percentages of its width.

Percentages let the browser fit a picture to any screen while its text keeps its size. Templates draw the parts; nothing here knows of HTML.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Final

from jobs.common.times import epoch_ms, instant

_STEPS_MS: Final = tuple(
    1_000 * seconds
    for seconds in (1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1_800, 3_600, 7_200, 10_800, 21_600, 43_200, 86_400, 172_800, 604_800)
)
_MINUTE_MS: Final = 60_000
_HOURS_MS: Final = 10_800_000
_DAY_MS: Final = 86_400_000
_MOST_TICKS: Final = 10


@dataclass(frozen=True)
class Tick:
    """A time on the axis."""

    x: float
    label: str


@dataclass(frozen=True)
class Span:
    """Something that lasts. `look`: the class that gives it colour and pattern; `letter`: what it shows where it has the room."""

    x: float
    width: float
    look: str
    title: str
    letter: str = ""
    href: str = ""


@dataclass(frozen=True)
class Mark:
    """Something that happened at a time. `look`: the name of its symbol."""

    x: float
    look: str
    title: str
    href: str = ""


@dataclass
class Lane:
    """A line of a picture."""

    name: str
    note: str = ""
    spans: list[Span] = field(default_factory=list)
    marks: list[Mark] = field(default_factory=list)
    href: str = ""
    severity: str = ""  # of the gravest incident that it is about

    @property
    def spoken(self) -> str:
        """What a screen reader says in the place of the lane."""
        said = [mark.title for mark in self.marks] + [span.title for span in self.spans]
        return f"{self.name}: " + (
            "; ".join(said[:6]) + (f"; and {len(said) - 6} more" if len(said) > 6 else "") if said else "nothing here"
        )


@dataclass(frozen=True)
class Picture:
    """Lanes over one axis. `bands` go through all lanes."""

    caption: str
    ticks: tuple[Tick, ...]
    lanes: tuple[Lane, ...]
    bands: tuple[Span, ...] = ()
    more: str = ""  # what was left out

    @property
    def looks(self) -> set[str]:
        """All that the legend has to explain."""
        marks = {mark.look for lane in self.lanes for mark in lane.marks}
        return marks | {span.look for spans in (self.bands, *(lane.spans for lane in self.lanes)) for span in spans}


@dataclass(frozen=True)
class Axis:
    """A time span in epoch ms."""

    first_ms: int
    last_ms: int

    def __contains__(self, at: datetime) -> bool:
        return self.first_ms <= epoch_ms(at) <= self.last_ms

    def x(self, at_ms: int) -> float:
        """How far along the axis a time is, in percent; times outside are at its ends."""
        share = (at_ms - self.first_ms) / max(self.last_ms - self.first_ms, 1)
        return round(100 * min(max(share, 0.0), 1.0), 3)

    def span(self, first_ms: int, last_ms: int, look: str, title: str, *, letter: str = "", href: str = "") -> Span | None:
        """A span from one time to another; None if it lies outside."""
        if last_ms < self.first_ms or first_ms > self.last_ms:
            return None
        x = self.x(first_ms)
        width = round(self.x(last_ms) - x, 3)
        return Span(x, width, look, title, letter if width >= _LETTER_WIDTH else "", href)

    def ticks(self) -> tuple[Tick, ...]:
        """Round times along the axis, UTC."""
        length = self.last_ms - self.first_ms
        step = next((step for step in _STEPS_MS if length / step <= _MOST_TICKS), -(-length // (_MOST_TICKS * _DAY_MS)) * _DAY_MS)
        times = range(-(-self.first_ms // step) * step, self.last_ms + 1, step)
        return tuple(Tick(self.x(at_ms), _label(at_ms, step)) for at_ms in times)


_LETTER_WIDTH: Final = 2.2  # percent


def covering(first_ms: int, last_ms: int, within: Axis | None = None, room: int = 8) -> Axis:
    """An axis with some room on both sides, inside of another one. `room`: which part of the time, a fourth for 4."""
    room = max((last_ms - first_ms) // room, 2_000)
    first_ms, last_ms = first_ms - room, last_ms + room
    if within is not None:
        first_ms, last_ms = max(first_ms, within.first_ms), min(last_ms, within.last_ms)
    return Axis(first_ms, max(last_ms, first_ms + 1_000))


def _label(at_ms: int, step: int) -> str:
    text = instant(at_ms)
    if step >= _DAY_MS:
        return text[:10]
    if step >= _HOURS_MS:
        return text[5:16]
    return text[11:16] if step >= _MINUTE_MS else text[11:19]


def present(spans: Sequence[Span | None]) -> list[Span]:
    """Those that lie on the axis."""
    return [span for span in spans if span is not None]
