"""Decides which stretches of which logs make the next slice, by looking at a few lines of each log only."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from math import ceil
from typing import Final

import msgspec
from msgspec.structs import replace

from coordinator_model.events import CLIENTS
from jobs.common.stores import Place
from jobs.logs.bytes import PlainBytes
from jobs.logs.files import LogFile
from jobs.logs.mark import Mark
from jobs.logs.reader import FOREVER
from jobs.logs.record_judge import holds_records
from jobs.logs.slices import SlicerSettings
from jobs.logs.streams import Stream
from jobs.logs.stretches.reading import LogPlace, Stretch, foretold
from jobs.logs.times import NEVER, LaterTimes, LocalTimes

_MOST_TASK_BYTES: Final = 1 << 30  # the numbers of its heartbeats must fit into the memory of a task
_LEAST_PART: Final = 16  # of what a task reads: less of another log is not worth a stretch of its own
_OVERFULL: Final = 1.25  # times the lines of a slice that one may have
_ORDERLY_PART: Final = 4  # logs that are read in order have at most one in this many bytes
_MOST_LOOK_BYTES: Final = 64 << 10
_LOOKS_IN_STRETCH: Final = 8  # a look is at most this part of the least stretch
_BLOCKS: Final = 4  # a task reads a single log: so many blocks of it at a time
_LOOKS: Final = 16  # blocks in a row that have no time
_LONGEST_MS: Final = 1 << 40  # of a log: 34 years


class SlicePlan(msgspec.Struct, frozen=True):
    """What to read for a slice: stretches, by log and in their order, and up to which time the other logs."""

    until_ms: int
    stretches: list[tuple[Stream, list[Stretch]]]
    tasks: list[list[Stretch]]  # the same, by the task that reads them: about as many bytes as each other task
    lines: float  # of the stretches, about


def planned(streams: Sequence[Stream], settings: SlicerSettings, cores: int, lines: int, parts: Iterator[Place]) -> SlicePlan | None:
    """The next slice, of about `lines` lines for `cores` tasks at a time; None if its logs had better be read in order.

    `parts`: names of files for the rows.
    """
    least, ready = settings.stretch_bytes, [stream for stream in streams if stream.has_more]
    if any(stream.due_ms == NEVER for stream in ready):
        return None
    # Whether a log's first lines, or those behind a jump, bear true times is decided once the others have come there.
    undecided = min((stream.due_ms for stream in ready if stream.waiting), default=FOREVER)
    logs = [log for stream in ready if (log := _log(stream, settings)) is not None]
    try:
        in_stretches = {id(log.stream) for log in logs}
        in_order = sum(stream.signature.size - stream.bytes_read() for stream in ready if id(stream) not in in_stretches)
        left = sum(log.size - log.start.offset for log in logs)
        if not logs or in_order * _ORDERLY_PART > left:
            return None
        until = min(undecided, _until(logs, _evenly(sum((log.size - log.start.offset) / log.bytes_a_line for log in logs), lines)))
        ends = [log.end_at(until) for log in logs]
        if any(end is None for end in ends):
            return None
        found = [(log, end) for log, end in zip(logs, ends, strict=True) if end is not None and end - log.start.offset >= least]
        total = sum(end - log.start.offset for log, end in found)
        if not found or in_order * total > settings.slice_bytes * left:
            return None  # this process would have to hold more lines of the other logs than of a slice
        tasks = _tasks(total, cores, least)
        cut, before, size, lines_read = [], 0, ceil(total / tasks), 0.0
        by_task: dict[int, list[Stretch]] = {}
        for log, end in found:
            length = end - log.start.offset
            cut.append((log.stream, log.cut(end, _places(before, length, size), parts, tasks)))
            for stretch in cut[-1][1]:
                middle = (stretch.mark.offset + stretch.end) // 2 - log.start.offset
                by_task.setdefault((before + middle) // size, []).append(stretch)
            before += length
            lines_read += length / log.bytes_a_line
    finally:
        for log in logs:
            log.close()
    return SlicePlan(until, cut, [*by_task.values()], lines_read) if all(stretches for _, stretches in cut) else None


def _tasks(total: int, cores: int, least: int) -> int:
    """How many tasks read a slice: as few as use all cores, since each has the first heartbeat of every member as text."""
    rounds = ceil(total / (cores * _MOST_TASK_BYTES))
    return max(1, min(rounds * cores, total // least))


def _log(stream: Stream, settings: SlicerSettings) -> _PlannedLog | None:
    """A log that may be read in stretches: a plain one of one broker, of which enough is left, and whose kind is known."""
    mark, least, limits = stream.reached, settings.stretch_bytes, settings.limits
    if stream.waiting or stream.file is None or stream.shared_by is not None:
        return None
    if stream.broker == CLIENTS or holds_records(stream.broker, stream.origin):
        return None
    is_unclear = mark.line == mark.first_line and bool(mark.requests) == bool(mark.others)  # its first lines do not tell what it is
    if stream.signature.size - mark.offset < least or mark.inside_line or is_unclear:
        return None
    settings = replace(settings, limits=replace(limits, block_bytes=_BLOCKS * limits.block_bytes))
    file = LogFile(stream.cluster, stream.broker, stream.origin, stream.file.path)
    place = LogPlace(file, stream.fingerprint, stream.zone, settings)
    source = stream.open()
    if isinstance(source, PlainBytes) and source.length() - mark.offset >= least:
        return _PlannedLog(stream, place, source, min(_MOST_LOOK_BYTES, least // _LOOKS_IN_STRETCH))
    source.close()
    return None


class _PlannedLog:
    """A log with an open file. `look`: bytes read at a time."""

    def __init__(self, stream: Stream, place: LogPlace, source: PlainBytes, look: int) -> None:
        self.stream = stream
        self.size = source.length()
        self.start = stream.reached
        self._look = look
        self._looks: dict[int, tuple[int, int] | None] = {}
        self._place = place
        self._source = source
        self._times = LaterTimes(LocalTimes(place.zone), self.start.ahead_ms)
        self.bytes_a_line = self._bytes_a_line()

    def close(self) -> None:
        """Closes the file."""
        self._source.close()

    def _bytes_a_line(self) -> float:
        if self.start.line > self.start.first_line:
            return self.start.offset / self.start.line
        first = self._source.at(self.start.offset, self._look)
        return len(first) / max(1, first.count(b"\n"))

    def end_at(self, until: int) -> int | None:
        """Where the first line later than `until` begins, about, if times go up; None if that cannot be told."""
        if until < self.stream.due_ms:
            return self.start.offset
        low, high = self.start.offset, self.size
        while high - low > self._look:
            middle = (low + high) // 2
            if middle not in self._looks:
                self._looks[middle] = self._timed_from(middle)
            found = self._looks[middle]
            if found is None or found[0] >= high:
                if found is None and high != self.size:
                    return None
                high = middle
            elif found[1] > until:
                high = middle
            else:
                low = found[0]
        return low if self._begins_line(low) else None

    def cut(self, end: int, wanted: Sequence[int], parts: Iterator[Place], shares: int) -> list[Stretch]:
        """The lines up to `end` in stretches, each with so many shares. `wanted`: where others than the first begin, about, from here."""
        start = self.start.offset
        places = [start]
        for length in wanted:
            place = self._line_from(start + length)
            if place is not None and places[-1] < place < end:
                places.append(place)
        first = replace(self.start, line=0, first_line=0, groups={})
        marks: list[Mark] = [first]
        for place in places[1:]:
            before = self._line_from(max(start, place - self._look))
            mark = foretold(self._place, first, before, place) if before is not None and before < place else None
            if mark is None:
                return []
            marks.append(mark)
        stops = [*(mark.offset for mark in marks[1:]), end]
        return [Stretch(self._place, mark, stop, next(parts), shares) for mark, stop in zip(marks, stops, strict=True)]

    def _begins_line(self, offset: int) -> bool:
        return offset == self.start.offset or self._source.at(offset - 1, 1) == b"\n"

    def _line_from(self, offset: int) -> int | None:
        """Where the first line at or after a place begins, if it begins soon."""
        if self._begins_line(offset):
            return offset
        for start in range(offset, offset + _LOOKS * self._look, self._look):
            end = self._source.at(start, self._look).find(b"\n")
            if end >= 0:
                return start + end + 1
        return None

    def _timed_from(self, offset: int) -> tuple[int, int] | None:
        """The first line with a time at or after a place, and its time."""
        start = self._line_from(offset)
        for _ in range(_LOOKS):
            if start is None:
                return None
            block = self._source.at(start, self._look)
            whole = block[: block.rfind(b"\n") + 1]
            if not whole:
                return None
            for line in whole.splitlines(keepends=True):
                at = self._times.read(self._place.settings.unwrap(line.rstrip(b"\r\n")), self.start.newest_ms)
                if at is not None:
                    return start, at
                start += len(line)
        return None


def _places(before: int, length: int, size: int) -> list[int]:
    """Where a log is cut that follows so many bytes of others, so that all tasks read `size` bytes."""
    least = size // _LEAST_PART
    first = -before % size
    return [place for place in range(first, length, size) if least < place < length - least]


def _evenly(left: float, lines: int) -> int:
    """The lines of a slice, so that the last one is not much smaller than the others: each has a row for most of the members."""
    return max(1, ceil(left / max(1, ceil(left / (lines * _OVERFULL)))))


def _until(logs: Sequence[_PlannedLog], lines: int) -> int:
    """The time up to which the logs have about so many lines."""
    low = min(log.stream.due_ms for log in logs)
    times = range(low, low + _LONGEST_MS)
    place = bisect_right(
        times, lines, key=lambda at: ceil(sum(((log.end_at(at) or log.start.offset) - log.start.offset) / log.bytes_a_line for log in logs))
    )
    return FOREVER if place == len(times) else low + max(0, place - 1)
