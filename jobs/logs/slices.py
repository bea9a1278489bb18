"""What a slicer makes: slices of lines, each with its log and its broker."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping
from itertools import groupby
from typing import TYPE_CHECKING, Any, Final

import msgspec

from jobs.common.settings import Settings
from jobs.logs.envelopes import Unwrapper, layouts_named, unwrapped
from jobs.logs.jumps import TOLERANCE_MS
from jobs.logs.lines import LINE_LIMITS, LineLimits
from jobs.logs.mark import KeptLines
from jobs.logs.streams import Stream

if TYPE_CHECKING:
    from typing_extensions import Self


DEFAULT_ZONE: Final = "UTC"
UNCLEAR: Final = "?"
"""In the place of a zone: the lines that tell it contradict each other, or are too few. The log is left out until a user names it."""


class SlicerSettings(msgspec.Struct, frozen=True):
    """How logs are read and cut. Each time is in the unit of its name."""

    timezone: str = DEFAULT_ZONE  # of timestamps
    timezones: Mapping[str, str] = {}  # where it differs: by cluster, broker, folder, container; `clients`
    zones_asked: Collection[str] = ()  # names in `timezones` that a log must have
    slice_lines: int = 100_000  # lines read for a slice, about; more than a block has, else its logs end at different times
    slice_bytes: int = 64 << 20  # of text in a slice, about
    tolerance_ms: int = TOLERANCE_MS  # lines must confirm one that is further ahead of its log than this
    stretch_bytes: int = 32 << 20  # least of a log that is worth a task of its own, and least of a stretch
    survey_bytes: int = 64 << 20  # of a new log: signs of whose it is are looked for in so much of it
    poll_seconds: float = 1.0  # following: how often to look for more
    patience_seconds: float = 10.0  # following: how long to wait for lines that confirm a jump
    limits: LineLimits = LINE_LIMITS
    half_lines: bool = True  # a last line without its end is a line, for the logs do not grow
    client_group: str = ""  # of clients' lines that no line and no folder names
    fold: bool = False  # heartbeats that repeat others become numbers (beats.py)
    unwrap: Unwrapper = unwrapped  # takes off what stands around brokers' lines

    def __post_init__(self) -> None:
        if self.slice_lines < 1:
            raise ValueError("a slice has at least one line")

    @classmethod
    def of(cls, settings: Settings, **more: Any) -> Self:
        """As a user set them. SettingsError: there is no such pattern."""
        layouts = layouts_named(settings.log_format, settings.log_formats)
        return cls(settings.timezone, dict(settings.timezones), settings.zones_asked, unwrap=Unwrapper(layouts), **more)

    def zone(self, cluster: str) -> str:
        """The time zone of a cluster's logs that have no other."""
        return self.timezones.get(cluster, self.timezone)

    def named_zone(self, stream: Stream) -> str:
        """The time zone that a user gave to a log by the name of its container, folder or broker; empty if none."""
        return next((self.timezones[name] for name in stream.names if name in self.timezones), "")

    def zone_of(self, stream: Stream) -> str:
        """The time zone of a log: as a user named it, else as its lines show, else that of its cluster."""
        return self.named_zone(stream) or stream.found or self.zone(stream.cluster)


class Slice(msgspec.Struct):
    """A slice in the making."""

    kept: KeptLines = msgspec.field(default_factory=KeptLines)
    parts: list[tuple[Stream, str, int]] = []  # each log with a broker and the number of its rows, in order
    lines_read: int = 0
    skipped: Counter[Stream] = msgspec.field(default_factory=Counter)  # of each log that was read from: lines of which nothing is kept
    stretches: list[tuple[Stream, Any]] = []  # logs that others have read (LogRead), whose rows lie in parts of their own


def parts_of(stream: Stream, kept: KeptLines, first: int) -> list[tuple[Stream, str, int]]:
    """The rows of a log from `first` on, with who wrote them."""
    owners = stream.shared_by
    if owners is None:
        return [(stream, stream.broker, len(kept) - first)]
    writers = []
    for text in kept.texts[first:]:
        writer, stream.speaker = owners.of(text, stream.speaker)
        writers.append(writer)
    return [(stream, broker, sum(1 for _ in rows)) for broker, rows in groupby(writers)] or [(stream, stream.broker, 0)]
