"""Cuts a folder of logs into slices of event time and hands them to Spark, one Parquet file each.

slicer.py reads and cuts. Rows have the schema of schemas/raw_lines.md: a LINE for every kept line, then a CLOCK for every log
that was read, and an END for every broker in the last slice of an input that ends.

A slice of a large backlog consists of stretches (jobs/logs/stretches), which other processes read. Their lines lie in files of their
own, in `parts/`, and the slice has a PART for each.

Every line arrives exactly once. First a slice is written; then `state.json`, which holds how far each log was read, is replaced and names N
as the newest; then the slice is published (slice_files.py). A start publishes the slice that the state names and deletes what it does not.
A slice that is missing was taken. Its parts are deleted after it.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path
from typing import Any, Final
from uuid import uuid4

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from jobs.common.files import sync, write_whole
from jobs.common.stores import Place, is_store
from jobs.logs.fetches.rows import Fetches, fetch_rows
from jobs.logs.files import LogFile, discover
from jobs.logs.heartbeats.beat_numbers import BeatNumbers
from jobs.logs.mark import KeptLines
from jobs.logs.reader import FOREVER
from jobs.logs.slice_files import SliceFiles
from jobs.logs.slice_rows import ARROW_SCHEMA, line_rows, write_rows
from jobs.logs.slices import Slice, SlicerSettings
from jobs.logs.streams import StoredStream, stream_of, streams_state
from jobs.logs.stretches.plan import SlicePlan, planned
from jobs.logs.stretches.reading import log_read, read_stretches
from jobs.logs.survey.owners import KnownNodes
from jobs.logs.survey.surveyed import SurveyedSlicer
from jobs.logs.times import NEVER
from schemas.names import CLOCK, END, PART

STATE_VERSION: Final = 1

_FIRST_LINES: Final = 100_000  # of the first slice of a backlog
_GROWTH: Final = 4  # times the lines of a slice: those of the next
_BEGIN_LINES: Final = 10_000  # of a backlog, read in order: they show of which kind its logs are
_STRETCHED: Final = 8
"""Times the lines of a slice: those of one that is read in stretches, or once for each core if these are more. Long runs of heartbeats cost
least, and no process holds them all."""
_POLL_SECONDS: Final = 0.1
_STORE_POLL_SECONDS: Final = 0.5


class _State(msgspec.Struct):
    """Where the spool stands. `pending`: the newest slice. `nodes`: what is known of them, by cluster."""

    version: int
    pending: int = 0
    ended: bool = False
    streams: list[StoredStream] = []
    nodes: dict[str, KnownNodes] = {}


class SpoolSettings(SlicerSettings, frozen=True):
    """How logs are read, cut and handed over."""

    beats_apart: int = 5_000  # so many rows of heartbeats get a file of their own
    max_pending: int = FOREVER  # wait while more slices than this wait for ingest: 2 or more, since the last one or two are those at work


class SliceReport(msgspec.Struct, frozen=True):
    """A slice that was written, and how much of the whole input was read."""

    path: Place
    lines_read: int
    bytes_read: int  # of the input's files, as they lie on disk, up to now
    bytes_total: int
    last: bool  # holds END records: the input ends here


class Spool(SurveyedSlicer):
    """Turns a folder of logs into slices. Only one object at a time may work in `folder`."""

    def __init__(
        self, inputs: Path, folder: Place, *, settings: SpoolSettings | None = None, find: Callable[[Path], list[LogFile]] = discover
    ) -> None:
        super().__init__(lambda: find(inputs), settings or SpoolSettings())
        self.settings: SpoolSettings
        self.inputs = inputs
        self.files = SliceFiles(folder)
        self._in_order_until = NEVER  # up to where stretches were tried in vain
        self._writer = uuid4().hex[:8]  # tasks of a process that stood still must not write into the parts of another
        self._next_number = 1
        self._waiting = 0  # slices that ingest has not taken, at most
        self._ended = False
        self.files.make()
        self._recover()

    def slices(self, *, follow: bool = False, stop: Callable[[], bool] | None = None) -> Iterator[SliceReport]:
        """Writes slices and reports each, until the input ends; if `follow`, until `stop` returns True.

        Yields nothing if nothing was added to the input since it was read. The spool calls `stop` where it would
        otherwise wait: after each scan of the input when following, and while there is no room for a slice.
        """
        self.follows, self.stop = follow, stop
        self.scan()
        while True:
            yield from self._write_available()
            if self.moved and not self.is_stopped():
                self.scan()
                continue
            if not follow or self.is_stopped():
                break
            time.sleep(self.settings.poll_seconds)
            self.scan()
        self.close_logs()

    def _write_available(self) -> Iterator[SliceReport]:
        next_lines = _FIRST_LINES
        while True:
            if not self._wait_for_room():
                return
            slice_ = Slice(KeptLines(beats=BeatNumbers(), fetches=Fetches()))
            self.most_lines = min(next_lines, self.settings.slice_lines)
            if not self._fill_in_stretches(slice_):
                self.fill(slice_)
            # The first slices are small, so that Spark has work at once; later ones cost less for each line.
            next_lines *= _GROWTH
            ends = not self.follows and not self.moved and not any(s.has_more for s in self.streams)
            if slice_.parts or slice_.stretches:
                self._ended = False
            elif not ends or self._ended or not self.streams:
                return
            yield self._write(slice_, last=ends)
            if ends:
                return

    def _fill_in_stretches(self, slice_: Slice) -> bool:
        """Lets other processes read most of the next slice; False if the logs are not such, or too little of them is left."""
        plan = self._plan()
        if plan is None or (self.workers is None and (plan.lines < self.settings.slice_lines or self.awaited_workers() is None)):
            return False
        if not any(stream.reached.line for stream in self.streams):
            most, self.most_lines = self.most_lines, min(_BEGIN_LINES, self.most_lines)
            self.fill(slice_)
            self.most_lines = most
        workers, plan = self.workers, self._plan()
        if workers is None or plan is None:
            return False
        results = [read for reads in workers.map(read_stretches, plan.tasks) for read in reads]
        if not any(results):
            self.workers, self.expects_workers = None, False  # perhaps they do not see the logs: the next slice would be tried in vain, too
            return False
        found = iter(results)
        reads = [(stream, log_read(stream.reached, stretches, [next(found) for _ in stretches])) for stream, stretches in plan.stretches]
        if not all(read for _, read in reads):
            self._in_order_until = plan.until_ms
            return False
        for stream, read in reads:
            assert read is not None
            self.take_read(slice_, stream, read)
        self.read_up_to(slice_, plan.until_ms)
        return True

    def _plan(self) -> SlicePlan | None:
        if (self.workers is None and not self.expects_workers) or not self.settings.fold:
            return None
        if min((stream.due_ms for stream in self.streams if stream.has_more), default=FOREVER) <= self._in_order_until:
            return None
        cores = self.workers.cores if self.workers is not None else 1
        names = (self.files.part(self._next_number, f"{self._writer}-{part:04d}") for part in count())
        return planned(self.streams, self.settings, cores, self.settings.slice_lines * max(_STRETCHED, cores), names)

    def _wait_for_room(self) -> bool:
        """Waits until Spark has caught up; False if stopped before."""
        while self._waiting > self.settings.max_pending:
            self._waiting = len(self.files.present())
            if self._waiting > self.settings.max_pending:
                if self.is_stopped():
                    return False
                time.sleep(_STORE_POLL_SECONDS if is_store(self.files.folder) else _POLL_SECONDS)
        return True

    # Writing.

    def _write(self, slice_: Slice, *, last: bool) -> SliceReport:
        """Writes a slice and the state that goes with it, and makes the slice visible."""
        number = self._next_number
        table = self._table(slice_, last=last)
        write_rows([table], self.files.path(number))
        sync(self.files.slices)  # before the state names the slice: one that is missing counts as taken
        self._next_number = number + 1
        self._waiting += 1
        self._ended = last
        state = _State(STATE_VERSION, number, last, streams_state(self.streams), dict(sorted(self.known.items())))
        write_whole(self.files.state, msgspec.json.encode(state))
        self.files.publish(number)
        self.files.sweep()
        return SliceReport(
            path=self.files.path(number),
            lines_read=slice_.lines_read,
            bytes_read=sum(s.bytes_read() for s in self.streams),
            bytes_total=sum(s.signature.size for s in self.streams if s.file),
            last=last,
        )

    @property
    def understood(self) -> bool:
        """Whether some line of the logs at the last scan is known, or there was none to know."""
        present = [stream for stream in self.streams if stream.file is not None]
        is_empty = not self.troubles.unread and not any(stream.reached.line or stream.reached.damage_told for stream in present)
        return is_empty or any(stream.understood for stream in present)

    def _table(self, slice_: Slice, *, last: bool) -> pa.Table:
        """The rows of a slice: lines, clocks, ends."""
        row_of = pa.array(np.repeat(np.arange(len(slice_.parts)), [rows for *_, rows in slice_.parts]))
        whose = [(stream.cluster, broker, stream.origin) for stream, broker, _ in slice_.parts]
        lines = line_rows(slice_.kept, *(pa.array([names[place] for names in whose], pa.string()).take(row_of) for place in range(3)))
        lines, parts = self._without_beats(lines)
        marks = [*parts, *_parts(slice_), *_fetches(slice_), *self._clocks(slice_), *(self._ends() if last else ())]
        return pa.concat_tables([lines, pa.Table.from_pylist(marks, schema=ARROW_SCHEMA)])

    def _without_beats(self, lines: pa.Table) -> tuple[pa.Table, list[dict[str, Any]]]:
        """Moves many heartbeats to a part, whose lines pass no JVM; returns the other lines, and the PART."""
        is_beat = pc.is_valid(lines["repeated"])
        beats = lines.filter(is_beat)
        if len(beats) < self.settings.beats_apart:
            return lines, []
        path = self.files.part(self._next_number, f"{self._writer}-beats")
        write_rows([beats], path)
        row = {name: beats[name][0].as_py() for name in ("cluster", "broker", "origin")}
        part = row | {"record": PART, "position": 0, "text": path.name, "lines": pc.sum(beats["lines"]).as_py()}
        return lines.filter(pc.invert(is_beat)), [part]

    def _clocks(self, slice_: Slice) -> Iterator[dict[str, Any]]:
        """A CLOCK for each broker of every log that was read: how far, and how many of its lines have no LINE."""
        for stream, skipped in sorted(slice_.skipped.items(), key=lambda one: one[0].key):
            assert stream.reader is not None
            mark = stream.reader.mark
            seconds = json.dumps(stream.reader.take_seconds(), separators=(",", ":"))
            for broker in stream.brokers if skipped or not stream.is_empty else ():
                row = _mark_row(stream.cluster, broker, CLOCK, mark.newest_ms)
                lines = skipped if broker == stream.broker else 0
                yield row | {"origin": stream.origin, "position": mark.line, "text": seconds, "lines": lines}

    def _ends(self) -> Iterator[dict[str, Any]]:
        """One END for every broker: its logs end here."""
        newest: dict[tuple[str, str], int] = {}
        for stream in self.streams:
            for broker in stream.brokers if stream.file is not None and not stream.is_empty else ():
                key = stream.cluster, broker
                newest[key] = max(newest.get(key, NEVER), stream.newest_ms)
        for (cluster, broker), at_ms in sorted(newest.items()):
            yield _mark_row(cluster, broker, END, at_ms) | {"origin": "", "position": 0, "lines": 0}

    # State.

    def _recover(self) -> None:
        """Loads the state, publishes the slice that it names, and deletes later ones."""
        path = self.files.state
        if path.exists():
            state = msgspec.json.decode(path.read_bytes(), type=_State)
            if state.version != STATE_VERSION:
                raise ValueError(f"{path} is of version {state.version}; this program reads {STATE_VERSION}")
            self._ended = state.ended
            self._next_number = state.pending + 1
            self.streams = [stream_of(stored) for stored in state.streams]
            self.known = state.nodes
            if self.files.newest() < state.pending:
                self.files.publish(state.pending)
        present = self.files.present()
        for number in present:
            if number >= self._next_number:
                self.files.path(number).unlink()
        self._waiting = len(present)
        self.files.sweep()


def _fetches(slice_: Slice) -> Iterator[dict[str, Any]]:
    """FETCHES of each log that has any."""
    for stream in slice_.skipped:
        own = None if slice_.kept.fetches is None else slice_.kept.fetches.of(stream.reader)
        yield from fetch_rows(own, stream.cluster, stream.broker, stream.origin)[0]


def _parts(slice_: Slice) -> Iterator[dict[str, Any]]:
    """A PART for each stretch."""
    for stream, log in slice_.stretches:
        for before, stretch, read in log.places():
            row = _mark_row(stream.cluster, stream.broker, PART, read.mark.newest_ms)
            yield row | {"origin": stream.origin, "position": before, "text": stretch.part.name, "lines": read.kept}


def _mark_row(cluster: str, broker: str, record: str, at_ms: int) -> dict[str, Any]:
    """What clocks and ends have in common."""
    return {"cluster": cluster, "broker": broker, "record": record, "at": None if at_ms == NEVER else at_ms * 1_000}
