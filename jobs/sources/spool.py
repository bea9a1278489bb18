"""Cuts a folder of logs into slices of event time and hands them to Spark, one Parquet file each.

Files overlap in time: one per broker and logger, and rotated ones. The spool reads them side by side, the one that is
furthest behind first, so that a slice holds the same span of time of every broker and memory is needed for a slice,
not for the folder. Rows have the schema of schemas/raw_lines.py: LINE for every line kept, then a CLOCK for every log
read from, and an END for every broker in the last slice of an input that ends.

Exactly once. A slice is written as `_pending/slice-N.parquet`; then `state.json`, which holds how far each log was
read, is replaced and names N as pending; then the file is moved to `slices/`. A start finishes the move that the state
names and deletes what it does not. Whatever is in `slices/` never changes; what is missing there was consumed.

A log is told by how it begins, not by its name: one that was rotated or compressed since is read on, not again. If the
last line of a log had no end when the input ended, it was counted as a line; what is appended to it later is the rest
of a line already counted, and is passed over up to the next line end.
"""

from __future__ import annotations

import json
import os
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql.types import DataType, LongType, StringType, TimestampType

from coordinator_model.events import CLIENTS
from jobs.sources.client_lines import ClientLogReader, ClientTimes
from jobs.sources.log_bytes import Fingerprint, LogBytes, Signature, open_log
from jobs.sources.log_files import LogFile, discover
from jobs.sources.log_lines import FOREVER, Kept, LogReader, Mark, Settle, Verdict
from jobs.sources.log_times import NEVER, LocalTimes
from jobs.sources.record_lines import RecordReader, RecordTimes, is_record_file
from schemas.raw_lines import CLOCK, END, LINE, SCHEMA

SLICES: Final = "slices"  # the folder that Spark watches
PENDING: Final = "_pending"
STATE: Final = "state.json"
STATE_VERSION: Final = 1

_ARROW: Final[dict[type[DataType], pa.DataType]] = {
    StringType: pa.string(),
    LongType: pa.int64(),
    TimestampType: pa.timestamp("us", tz="UTC"),
}
ARROW_SCHEMA: Final = pa.schema([pa.field(f.name, _ARROW[type(f.dataType)], nullable=f.nullable) for f in SCHEMA.fields])
_REPEATING_COLUMNS: Final = ["cluster", "broker", "record", "origin", "fault", "context"]
_ROW_GROUP: Final = 16_384  # rows: several to a slice, so that several tasks can share it
_FIRST_MTIME: Final = 1_600_000_000  # slice N is dated this + N seconds: Spark takes files in order of their dates
_OVERFULL: Final = 2  # times its size that a slice may grow to, so that all logs end at the same time in it
_SHORT_HEAD: Final = 256  # bytes; logs that begin alike up to here, and end, are the same only under the same name
_TINY_HEAD: Final = 64  # bytes; below, nothing can be said: a timestamp alone is 25
_ABSENT_KEPT: Final = 1_000  # logs that are gone, remembered in case they come back
_ROOM_POLL_SECONDS: Final = 0.1


@dataclass(frozen=True)
class SpoolSettings:
    """How to read and to cut. Times are in the unit of their name."""

    timezone: str = "UTC"  # of brokers' timestamps
    timezones: Mapping[str, str] = field(default_factory=dict)  # by cluster, where it differs
    slice_lines: int = 100_000  # lines read for a slice, about
    slice_bytes: int = 64 << 20  # of text in a slice, about
    slices: int | None = None  # cut the whole input into about so many instead
    tolerance_ms: int = 60_000  # a line further ahead of its log than this must be confirmed by those after it
    believable_ms: int = 3_600_000  # a jump up to this is believed where no line is left to confirm it
    delays: Mapping[str, int] = field(default_factory=dict)  # ms by broker: its lines come so much later than others'
    max_pending: int | None = None  # wait while more files than this lie in slices/ (Spark keeps the last one or two)
    poll_seconds: float = 1.0  # following: how often to look for more
    patience_seconds: float = 10.0  # following: how long to wait for lines that confirm a jump

    def __post_init__(self) -> None:
        if self.slice_lines < 1 or (self.slices is not None and self.slices < 1):
            raise ValueError("a slice has at least one line, an input at least one slice")
        if self.max_pending is not None and self.max_pending < 2:
            raise ValueError("max_pending must be 2 or more: Spark deletes a slice only after it has read the next")


@dataclass(frozen=True)
class SliceReport:
    """What went into one slice, and how far the whole input is."""

    number: int
    path: Path
    lines_read: int
    kept: int  # LINE records
    skipped: int
    faults: Mapping[str, int]  # kept lines that the source itself found unreadable, by fault
    newest_ms: int | None  # newest time read in the slice
    bytes_read: int  # of the input's files, as they lie on disk, up to now
    bytes_total: int
    last: bool  # holds END records: the input ends here


class Stream:
    """One log being read, whatever files it goes through."""

    def __init__(self, file: LogFile, fingerprint: Fingerprint, mark: Mark, seen: Signature | None) -> None:
        self.cluster = file.cluster
        self.broker = file.broker
        self.origin = file.origin
        self.fingerprint = fingerprint
        self.mark = mark  # as of the last slice; the reader's runs ahead while one is made
        self.seen = seen  # the file when everything in it had been read
        self.file: LogFile | None = None  # None: not there at present
        self.signature = Signature(0, 0)
        self.reader: LogReader | None = None
        self.due_ms = NEVER  # time of the next line
        self.waiting = False  # ... which is a jump not settled
        self.clock_line = mark.line  # lines that CLOCK and LINE records stand for so far
        self.grown_at = 0.0  # monotonic seconds

    @property
    def key(self) -> tuple[str, str, str]:
        """Cluster, broker, origin: what its rows bear."""
        return self.cluster, self.broker, self.origin

    @property
    def newest_ms(self) -> int:
        """Newest time read, epoch ms, or NEVER."""
        return self.reader.mark.newest_ms if self.reader else self.mark.newest_ms

    @property
    def has_more(self) -> bool:
        """Whether there is more to read for now."""
        return self.reader is not None and self.due_ms != FOREVER

    def open(self) -> LogBytes:
        """Opens the file; checks that it still is this log, for it may have been rotated a moment ago."""
        assert self.file is not None
        try:
            log = open_log(self.file.path)
        except FileNotFoundError:
            return LogBytes()
        if not self.fingerprint.fits(log.head()):
            log.close()
            return LogBytes()
        return log

    def look_ahead(self, settle: Settle = Settle.HOLD, witness_ms: int = NEVER) -> None:
        """Finds out what comes next."""
        assert self.reader is not None
        self.due_ms, verdict = self.reader.peek(settle, witness_ms)
        self.waiting = verdict is Verdict.OPEN

    def bytes_read(self) -> int:
        """Bytes of the file read so far, as it lies on disk."""
        if self.file is None:
            return 0
        if not self.has_more:
            return self.signature.size
        source = self.reader.source if self.reader else None
        return min(source.file_position(), self.signature.size) if source else 0


@dataclass
class _Slice:
    """A slice in the making."""

    kept: Kept = field(default_factory=Kept)
    parts: list[tuple[Stream, int]] = field(default_factory=list)  # whose rows, and how many
    lines_read: int = 0
    sources: dict[tuple[str, str, str], Stream] = field(default_factory=dict)  # that were read from
    damaged: Counter[tuple[str, str, str]] = field(default_factory=Counter)  # DAMAGED_FILE records: not lines


class Spool:
    """Turns a folder of logs into slices. One object at a time may work in `folder`."""

    def __init__(
        self,
        inputs: Path,
        folder: Path,
        *,
        settings: SpoolSettings | None = None,
        find: Callable[[Path], list[LogFile]] = discover,
    ) -> None:
        self.inputs = inputs
        self.folder = folder
        self.settings = settings or SpoolSettings()
        self.slices_folder = folder / SLICES
        self.duplicates: list[LogFile] = []  # files passed over because their content was read under another name
        self._find = find
        self._pending = folder / PENDING
        self._times: dict[str, LocalTimes] = {}
        self._client_times: dict[str, ClientTimes] = {}
        self._looks: dict[Path, tuple[Signature, bytes]] = {}
        self._stop: Callable[[], bool] | None = None
        self._streams: list[Stream] = []
        self._next_number = 1
        self._ended = False
        self._follow = False
        self.slices_folder.mkdir(parents=True, exist_ok=True)
        self._pending.mkdir(exist_ok=True)
        self._recover()

    def slices(self, *, follow: bool = False, stop: Callable[[], bool] | None = None) -> Iterator[SliceReport]:
        """Writes slices and reports each, until the input ends; if `follow`, until `stop` says so.

        Yields nothing if the input was read before and nothing was added. `stop` is asked where the spool would
        otherwise wait: after each look at the input when following, and while there is no room for a slice.
        """
        if follow and self.settings.slices is not None:
            raise ValueError("an input that goes on cannot be cut into a number of slices")
        self._follow, self._stop = follow, stop
        self._scan()
        boundaries = self._boundaries()
        while True:
            yield from self._write_available(boundaries)
            if not follow or self._is_stopped():
                break
            time.sleep(self.settings.poll_seconds)
            self._scan()
        for stream in self._streams:
            if stream.reader:
                stream.reader.close()

    def _write_available(self, boundaries: Iterator[int] | None) -> Iterator[SliceReport]:
        while True:
            if not self._wait_for_room():
                return
            slice_ = _Slice()
            self._fill(slice_, boundaries)
            ends = not self._follow and not any(s.has_more for s in self._streams)
            if slice_.parts:
                self._ended = False
            elif not ends or self._ended or not self._streams:
                return
            yield self._write(slice_, last=ends)
            if ends:
                return

    def _wait_for_room(self) -> bool:
        """Waits until Spark has caught up; False if stopped before."""
        limit = self.settings.max_pending
        while limit is not None and sum(1 for _ in self.slices_folder.glob("slice-*.parquet")) > limit:
            if self._is_stopped():
                return False
            time.sleep(_ROOM_POLL_SECONDS)
        return True

    def _is_stopped(self) -> bool:
        return self._stop is not None and self._stop()

    # Which logs there are.

    def _scan(self) -> None:
        """Finds logs that are new, grown or moved."""
        heads: dict[Path, bytes] = {}
        candidates = []
        for file in self._find(self.inputs):
            try:
                signature, head = self._look_at(file.path)
            except FileNotFoundError:
                continue  # rotated away since it was listed
            if head:
                heads[file.path] = head
                candidates.append((file, signature))
        self._looks = {file.path: (signature, heads[file.path]) for file, signature in candidates}
        for stream in self._streams:
            stream.file = None
        # The longest beginnings first, so that a copy which was cut is told from its original; then those that kept
        # their names.
        origins = {stream.key for stream in self._streams}
        candidates.sort(key=lambda c: (-len(heads[c[0].path]), (c[0].cluster, c[0].broker, c[0].origin) not in origins, c[0]))
        self.duplicates = []
        for file, signature in candidates:
            head = heads[file.path]
            if any(_same_log(file, head, s.file, heads[s.file.path]) for s in self._streams if s.file):
                self.duplicates.append(file)
                continue
            stream = self._match(file, head)
            self._attach(stream, file, signature, head)
        for stream in self._streams:
            if stream.file is None and stream.reader is not None:
                stream.mark = stream.reader.mark
                stream.reader.close()
                stream.reader = None
        self._streams.sort(key=lambda s: s.key)

    def _look_at(self, path: Path) -> tuple[Signature, bytes]:
        """Signature and beginning of a file; reads it only if it changed."""
        stat = path.stat()
        look = self._looks.get(path)
        if look is not None and look[0] == (stat.st_size, stat.st_mtime_ns):
            return look
        log = open_log(path)
        try:
            return log.signature, log.head()
        finally:
            log.close()

    def _match(self, file: LogFile, head: bytes) -> Stream:
        """The log that a file continues, or a new one."""
        known = [
            s
            for s in self._streams
            if s.file is None
            and (s.cluster, s.broker) == (file.cluster, file.broker)
            and s.fingerprint.fits(head)
            and (s.fingerprint.size >= _SHORT_HEAD or _stem(s.origin) == _stem(file.origin))
        ]
        if known:
            return max(known, key=lambda s: (s.fingerprint.size, s.origin == file.origin))
        stream = Stream(file, Fingerprint.of(head), Mark(), None)
        self._streams.append(stream)
        return stream

    def _attach(self, stream: Stream, file: LogFile, signature: Signature, head: bytes) -> None:
        """Makes a stream read from a file from now on."""
        unchanged = stream.reader is not None and stream.signature == signature
        stream.file, stream.origin, stream.signature = file, file.origin, signature
        stream.fingerprint = Fingerprint.of(head)
        if unchanged:
            return
        if stream.reader is not None:
            stream.mark = stream.reader.mark
            stream.reader.close()
        stream.grown_at = time.monotonic()
        stream.reader = self._reader(stream, file)
        if stream.seen == signature:
            stream.due_ms = FOREVER  # a compressed archive need not be unpacked to know that nothing was added
            return
        stream.look_ahead()
        if stream.has_more:
            stream.reader.close()  # its turn may come much later; a folder may hold thousands
        elif not self._may_be_damaged(stream):
            self._put_away(stream)

    def _may_be_damaged(self, stream: Stream) -> bool:
        """Whether a log without lines left still has to say why it ends; it then comes next."""
        assert stream.reader is not None
        if not stream.reader.damage or stream.reader.mark.damage_told or not stream.reader.final:
            return False
        stream.due_ms = NEVER
        return True

    def _put_away(self, stream: Stream) -> None:
        """Remembers that everything in the file was read."""
        assert stream.reader is not None
        stream.due_ms, stream.waiting = FOREVER, False
        if stream.reader.complete and stream.reader.source is not None:
            stream.seen = stream.reader.source.signature
        stream.reader.close()

    def _reader(self, stream: Stream, file: LogFile) -> LogReader:
        """Reads a stream from its mark on."""
        settings = self.settings
        zone = settings.timezones.get(stream.cluster, settings.timezone)
        options = {"tolerance_ms": settings.tolerance_ms, "believable_ms": settings.believable_ms}
        final = not self._follow
        if is_record_file(file.path.name):
            return RecordReader(stream.open, RecordTimes(), stream.mark, final=final, **options)
        if stream.broker == CLIENTS:
            if zone not in self._client_times:
                self._client_times[zone] = ClientTimes(zone)
            group = _group_folder(stream.origin)
            return ClientLogReader(stream.open, self._client_times[zone], stream.mark, group=group, final=final, **options)
        if zone not in self._times:
            self._times[zone] = LocalTimes(zone)
        return LogReader(stream.open, self._times[zone], stream.mark, final=final, **options)

    # Cutting.

    def _fill(self, slice_: _Slice, boundaries: Iterator[int] | None) -> None:
        """Reads the next slice: up to the next boundary, or as many lines as fit.

        All logs end at the same time in a slice. A log that was left behind would come too late: the time of its
        broker, which other logs move too, would have passed its lines.
        """
        if boundaries is not None:
            until = NEVER
            while not slice_.parts and until != FOREVER:
                until = next(boundaries, FOREVER)
                while self._round(slice_, until, FOREVER):
                    pass
            return
        settings = self.settings
        while slice_.lines_read < settings.slice_lines and slice_.kept.size < settings.slice_bytes:
            next_until = self._next_until()
            if next_until is None or not self._round(slice_, next_until, settings.slice_lines):
                return
            # Rounds end early only where thousands of lines bear the same time, or none: memory comes first then.
            while (
                slice_.lines_read < _OVERFULL * settings.slice_lines
                and slice_.kept.size < _OVERFULL * settings.slice_bytes
                and self._round(slice_, next_until, settings.slice_lines)
            ):
                pass

    def _next_until(self) -> int | None:
        """The time to read up to next: as far as no log needs more than a block. None if nothing is left."""
        ready = [s for s in self._streams if s.has_more]
        certain = sorted((s for s in ready if not s.waiting), key=self._due)
        if not certain:
            return min((self._due(s) for s in ready), default=None)
        until = FOREVER
        for stream in certain:
            if self._due(stream) > until:
                break
            assert stream.reader is not None
            horizon = stream.reader.horizon()
            if horizon != FOREVER:
                until = min(until, max(horizon + self._delay(stream), self._due(certain[0])))
        return until

    def _round(self, slice_: _Slice, until: int, max_lines: int) -> bool:
        """Reads every log up to the same time; False if nothing is left up to there."""
        progress = False
        for stream in self._streams:
            if stream.has_more and not stream.waiting and self._due(stream) <= until:
                progress = True
                self._take(slice_, stream, self._limit(stream, until), max_lines, settle=Settle.HOLD)
        return any(self._settle(slice_, stream, max_lines) for stream in self._unsettled(until)) or progress

    def _unsettled(self, until: int) -> list[Stream]:
        """The logs that wait before a jump in time up to `until`, in the order in which to decide.

        Whether a jump is believed depends on how far the other logs of the cluster go. So that this does not depend
        on slices, the earliest jump is decided first, and none before every log that is certain has passed it.
        """
        waiting = [s for s in self._streams if s.has_more and s.waiting]
        if not waiting:
            return []
        due = {s.cluster for s in waiting if self._due(s) <= until}
        behind = {
            cluster: min((s.due_ms for s in self._streams if s.cluster == cluster and s.has_more and not s.waiting), default=FOREVER)
            for cluster in due
        }
        decidable = [s for s in waiting if s.cluster in due and s.due_ms < behind[s.cluster]]
        return sorted(decidable, key=lambda s: (s.due_ms, s.key))

    def _settle(self, slice_: _Slice, stream: Stream, max_lines: int) -> bool:
        """Decides about a jump in time that the log itself leaves open, and reads up to it; False if it stays open."""
        idle = time.monotonic() - stream.grown_at > self.settings.patience_seconds
        settle = Settle.END if not self._follow else Settle.IDLE if idle else Settle.HOLD
        witness = max(
            (
                max(s.newest_ms, s.due_ms if s.has_more and not s.waiting else NEVER)
                for s in self._streams
                if s is not stream and s.cluster == stream.cluster
            ),
            default=NEVER,
        )
        return self._take(slice_, stream, stream.due_ms, max_lines, settle=settle, witness=witness)

    def _take(
        self,
        slice_: _Slice,
        stream: Stream,
        limit: int,
        max_lines: int,
        *,
        settle: Settle,
        witness: int = NEVER,
    ) -> bool:
        """Reads from one log into the slice; False if nothing came of it."""
        reader = stream.reader
        assert reader is not None
        kept = slice_.kept
        before = len(kept)
        count = reader.read(
            kept,
            until_ms=limit,
            max_lines=max_lines,
            max_bytes=FOREVER if max_lines == FOREVER else max(self.settings.slice_bytes, kept.size + 1),
            settle=settle,
            witness_ms=witness,
        )
        stream.look_ahead()
        if not stream.has_more:
            if not self._follow and reader.tell_damage(kept):
                slice_.damaged[stream.key] += 1
            self._put_away(stream)
        if not count and len(kept) == before:
            return False
        slice_.parts.append((stream, len(kept) - before))
        slice_.sources[stream.key] = stream
        slice_.lines_read += count
        return True

    def _limit(self, stream: Stream, until: int) -> int:
        """The time, by a stream's own lines, that corresponds to `until`."""
        return until if until == FOREVER else until - self._delay(stream)

    def _delay(self, stream: Stream) -> int:
        return self.settings.delays.get(stream.broker, 0)

    def _due(self, stream: Stream) -> int:
        """When a stream's next line comes, its delay included."""
        return stream.due_ms if stream.due_ms == NEVER else stream.due_ms + self._delay(stream)

    def _boundaries(self) -> Iterator[int] | None:
        """Times that cut what is left of the input into the wanted number of slices; None if that is not wanted."""
        wanted = self.settings.slices
        if wanted is None:
            return None
        seconds: Counter[int] = Counter()
        for stream in self._streams:
            if stream.has_more and stream.file is not None:
                reader = self._reader(stream, stream.file)
                delay = self._delay(stream)
                while reader.read(kept := Kept(), max_lines=self.settings.slice_lines):
                    seconds.update((at + delay) // 1000 for at in kept.ats if at is not None)
                reader.close()
        total, passed = sum(seconds.values()), 0
        cuts: list[int] = []
        for second in sorted(seconds):
            passed += seconds[second]
            if len(cuts) < wanted - 1 and passed * wanted >= (len(cuts) + 1) * total:
                cuts.append(second * 1000 + 999)
        return iter(cuts)

    # Writing.

    def _write(self, slice_: _Slice, *, last: bool) -> SliceReport:
        """Writes a slice and the state that goes with it, and makes the slice visible."""
        number = self._next_number
        table = self._table(slice_, last=last)
        pending = self._pending / _file_name(number)
        with pending.open("wb") as file:
            pq.write_table(
                table,
                file,
                compression="zstd",
                compression_level=1,
                use_dictionary=_REPEATING_COLUMNS,
                write_statistics=_REPEATING_COLUMNS,
                row_group_size=_ROW_GROUP,
            )
            file.flush()
            os.fsync(file.fileno())
        os.utime(pending, (_FIRST_MTIME + number, _FIRST_MTIME + number))
        for stream in slice_.sources.values():
            assert stream.reader is not None
            stream.clock_line = stream.reader.mark.line
        self._next_number = number + 1
        self._ended = last
        self._save_state(number)
        self._publish(number)
        kept = len(slice_.kept)
        return SliceReport(
            number=number,
            path=self.slices_folder / _file_name(number),
            lines_read=slice_.lines_read,
            kept=kept,
            skipped=slice_.lines_read + sum(slice_.damaged.values()) - kept,
            faults=dict(Counter(slice_.kept.faults.values())),
            newest_ms=_known(max((s.newest_ms for s in slice_.sources.values()), default=NEVER)),
            bytes_read=sum(s.bytes_read() for s in self._streams),
            bytes_total=sum(s.signature.size for s in self._streams if s.file),
            last=last,
        )

    def _table(self, slice_: _Slice, *, last: bool) -> pa.Table:
        """The rows of a slice: lines, clocks, ends."""
        kept = slice_.kept
        rows = len(kept)
        texts = pa.array(kept.texts, pa.binary()).view(pa.string())  # known to be UTF-8
        faults: list[str | None] = [None] * rows
        for index, fault in kept.faults.items():
            faults[index] = fault
        contexts: list[str | None] = [None] * rows
        for index, context in kept.contexts.items():
            contexts[index] = context
        lines = pa.table(
            [
                _repeat(slice_.parts, lambda s: s.cluster),
                _repeat(slice_.parts, lambda s: s.broker),
                pa.repeat(pa.scalar(LINE), rows),
                _repeat(slice_.parts, lambda s: s.origin),
                pa.array(kept.positions, pa.int64()),
                _instants(kept.ats),
                texts,
                pa.array(faults, pa.string()),
                pa.repeat(pa.scalar(1, pa.int64()), rows),
                pa.array(contexts, pa.string()),
            ],
            schema=ARROW_SCHEMA,
        )
        records = self._clocks(slice_) + (self._ends() if last else [])
        cluster, broker, record, origin, position, at, heard, count = zip(*records, strict=True) if records else ((),) * 8
        marks = pa.table(
            [
                pa.array(cluster, pa.string()),
                pa.array(broker, pa.string()),
                pa.array(record, pa.string()),
                pa.array(origin, pa.string()),
                pa.array(position, pa.int64()),
                _instants(list(at)),
                pa.array(heard, pa.string()),
                pa.nulls(len(records), pa.string()),
                pa.array(count, pa.int64()),
                pa.nulls(len(records), pa.string()),
            ],
            schema=ARROW_SCHEMA,
        )
        return pa.concat_tables([lines, marks])

    def _clocks(self, slice_: _Slice) -> list[tuple[Any, ...]]:
        """One CLOCK for every log read from: how far, and the lines that no LINE stands for."""
        kept: Counter[tuple[str, str, str]] = Counter()
        for stream, rows in slice_.parts:
            kept[stream.key] += rows
        clocks = []
        for key, stream in sorted(slice_.sources.items()):
            assert stream.reader is not None
            mark = stream.reader.mark
            skipped = mark.line - stream.clock_line - kept[key] + slice_.damaged[key]
            heard = json.dumps(stream.reader.take_heard(), separators=(",", ":"))
            clocks.append((*key[:2], CLOCK, stream.origin, mark.line, _known(mark.newest_ms), heard, skipped))
        return clocks

    def _ends(self) -> list[tuple[Any, ...]]:
        """One END for every broker: its logs end here."""
        newest: dict[tuple[str, str], int] = {}
        for stream in self._streams:
            if stream.file is not None:
                broker = stream.cluster, stream.broker
                newest[broker] = max(newest.get(broker, NEVER), stream.newest_ms)
        return [(*broker, END, "", 0, _known(at), None, 0) for broker, at in sorted(newest.items())]

    # State.

    def _publish(self, number: int) -> None:
        (self._pending / _file_name(number)).replace(self.slices_folder / _file_name(number))
        _sync_folder(self.slices_folder)

    def _save_state(self, pending: int) -> None:
        present = [s for s in self._streams if s.file is not None]
        absent = sorted((s for s in self._streams if s.file is None), key=lambda s: s.newest_ms)
        state = {
            "version": STATE_VERSION,
            "pending": pending,
            "ended": self._ended,
            "streams": [_stream_state(s) for s in present + absent[-_ABSENT_KEPT:]],
        }
        temporary = self.folder / f"_{STATE}"
        with temporary.open("w", encoding="utf-8") as file:
            json.dump(state, file, separators=(",", ":"))
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(self.folder / STATE)
        _sync_folder(self.folder)

    def _recover(self) -> None:
        """Takes up the state, finishes the slice that it names, and deletes one that it does not."""
        path = self.folder / STATE
        if path.exists():
            state = json.loads(path.read_text(encoding="utf-8"))
            if state.get("version") != STATE_VERSION:
                raise ValueError(f"{path} is of version {state.get('version')}; this program reads {STATE_VERSION}")
            self._ended = state["ended"]
            self._next_number = state["pending"] + 1
            self._streams = [_stream_of(entry) for entry in state["streams"]]
            if (self._pending / _file_name(state["pending"])).exists():
                self._publish(state["pending"])
        for left in self._pending.iterdir():
            left.unlink()


def _stream_state(stream: Stream) -> dict[str, Any]:
    return {
        "cluster": stream.cluster,
        "broker": stream.broker,
        "origin": stream.origin,
        "fingerprint": stream.fingerprint,
        "mark": asdict(stream.reader.mark if stream.reader else stream.mark),
        "seen": stream.seen,
    }


def _stream_of(entry: Mapping[str, Any]) -> Stream:
    file = LogFile(entry["cluster"], entry["broker"], entry["origin"], Path())
    seen = Signature(*entry["seen"]) if entry["seen"] else None
    return Stream(file, Fingerprint(*entry["fingerprint"]), Mark(**entry["mark"]), seen)


def _same_log(file: LogFile, head: bytes, other: LogFile, other_head: bytes) -> bool:
    """Whether two files of a broker are the same log, the first perhaps a copy that was cut."""
    if (file.cluster, file.broker) != (other.cluster, other.broker) or not other_head.startswith(head):
        return False
    return len(head) >= _SHORT_HEAD or (len(head) >= _TINY_HEAD and _stem(file.origin) == _stem(other.origin))


def _group_folder(origin: str) -> str:
    """The group that a client log's folder is named after: the one below `clients`; empty if it lies in `clients` itself."""
    _, _, below = f"/{origin}".rpartition(f"/{CLIENTS}/")
    return below.rpartition("/")[0]


def _stem(origin: str) -> str:
    """A log's name without what rotation adds."""
    return origin.rpartition("/")[2].partition(".log")[0]


def _file_name(number: int) -> str:
    return f"slice-{number:09d}.parquet"


def _known(at_ms: int) -> int | None:
    return None if at_ms == NEVER else at_ms


def _instants(times_ms: list[int | None]) -> pa.Array:
    return pa.array(times_ms, pa.timestamp("ms", tz="UTC")).cast(_ARROW[TimestampType])


def _repeat(parts: list[tuple[Stream, int]], value: Callable[[Stream], str]) -> pa.Array:
    """A column that is the same for all rows of a part."""
    rows = np.repeat(np.arange(len(parts)), [count for _, count in parts])
    return pa.array([value(stream) for stream, _ in parts], pa.string()).take(pa.array(rows))


def _sync_folder(folder: Path) -> None:
    """Makes renames in a folder last."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
