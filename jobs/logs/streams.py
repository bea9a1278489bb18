"""One log across the files that rotation moves it through, its stored form between two runs, and which of many logs comes next."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from heapq import heappop, heappush
from pathlib import Path
from typing import Any, Final

import msgspec
from msgspec.structs import replace

from coordinator_model.events import CLIENTS
from jobs.logs.bytes import HEAD_BYTES, NO_FINGERPRINT, NO_TAIL, Fingerprint, LogBytes, PlainBytes, Signature, Step, Tail, open_log
from jobs.logs.files import LogFile
from jobs.logs.formats.compression import first_bytes
from jobs.logs.jumps import Jump
from jobs.logs.mark import KeptLines, Mark
from jobs.logs.reader import FOREVER, LogReader
from jobs.logs.record_judge import holds_records
from jobs.logs.survey.block_times import WHOLE, Part, Section
from jobs.logs.survey.owners import Folder, Owners
from jobs.logs.survey.views import AS_IT_IS, View, viewed
from jobs.logs.times import NEVER

StreamKey = tuple[str, str, str, int, str]

SHORT_HEAD: Final = 256  # bytes; shorter logs that begin alike are the same only under the same name
TINY_HEAD: Final = 64  # bytes; still shorter logs are never the same: a timestamp alone has 25
_BANNER_BYTES: Final = 64 << 10  # that different logs may begin with
_UNSEEN: Final = Signature(0, 0)
ABSENT_KEPT: Final = 1_000  # logs that are gone, remembered in case they come back
_ALL: Final = None  # clusters


class StoredStream(msgspec.Struct, eq=False):
    """A log between two runs: what of it is not found again."""

    cluster: str
    folder: Folder
    origin: str
    fingerprint: Fingerprint
    mark: Mark = msgspec.field(name="reached")  # behind the last slice; the reader's runs ahead while a slice is made
    tail: Tail = NO_TAIL  # what stands before the place that was reached when the reader was last asked
    read_whole: Signature | None = None  # the file when everything in it had been read
    owners: Owners | None = None  # whose lines they are, if its folder does not decide that
    section: Section = WHOLE[0]  # from where on in the file they are this log ...
    end: int | None = None  # ... and up to where
    view: View = AS_IT_IS  # how they are read
    speaker: str = ""  # the broker that wrote the last line with its name, if several wrote the log
    zone: str = ""  # time zone in which its lines were read
    found: str = ""  # time zone that its lines showed when it was found; empty: none
    understood: bool = False  # whether some line of it is one of a broker, a client or a record
    label: str = ""  # the name that a shipper gives it for good, whatever its files are called
    shipped: int = 0  # lines of it that a shipper delivered


class Stream(StoredStream, eq=False):
    """One log that is being read."""

    file: LogFile | None = None  # None: missing at present
    signature: Signature = _UNSEEN
    reader: LogReader | None = None
    due_ms: int = NEVER  # time of the next line
    cut_off: bool = False  # the file was gone, or could not be opened, when its next lines were due
    gone: Path | None = None  # the file, if it was gone then and has not come back
    falls: bool = False  # ... which goes back in time, and is to be decided about
    fell_at: float = 0.0  # monotonic seconds: since when
    waiting: bool = False  # ... or a jump in time that is still open
    grown_at: float = 0.0  # monotonic seconds

    @property
    def broker(self) -> str:
        """Who wrote the lines that do not say it."""
        return self.owners.broker if self.owners is not None else self.folder[1]

    @property
    def key(self) -> StreamKey:
        """Cluster, broker and origin, as its rows have them, where in its file the log begins, and whose lines of the file it has."""
        return self.cluster, self.broker, self.origin, self.section.line, str(self.view.share or "")

    @property
    def names(self) -> list[str]:
        """By which a user may name its zone, the narrowest first: of its container, broker and folders below the cluster."""
        folders = self.origin.split("/")[-2::-1]
        names = [self.view.container, *self.view.container.split("/"), *self.brokers, *folders, self.folder[1]]
        return [name for name in dict.fromkeys(names) if name not in ("", self.cluster, self.folder[0])]

    @property
    def place(self) -> tuple[str, str, str]:
        """Cluster, folder and origin, as its file has them."""
        return *self.folder, self.origin

    @property
    def brokers(self) -> list[str]:
        """Everyone who wrote into it."""
        return self.owners.brokers if self.owners is not None else [self.broker]

    @property
    def shared_by(self) -> Owners | None:
        """Tells whose each line is, if several brokers wrote into it; None if one did."""
        return self.owners if self.owners is not None and self.owners.shared else None

    @property
    def reached(self) -> Mark:
        """How far the log was read."""
        return self.reader.mark if self.reader else self.mark

    @property
    def is_empty(self) -> bool:
        """Whether nothing was read of it but lines of other logs in its file, or of nobody."""
        return self.view.share is not None and self.newest_ms == NEVER

    @property
    def newest_ms(self) -> int:
        """Newest time read, epoch ms, or NEVER."""
        return self.reached.newest_ms

    @property
    def has_more(self) -> bool:
        """Whether there is more to read for now."""
        return self.reader is not None and self.due_ms != FOREVER

    def stop_reading(self) -> None:
        """Closes the file, and remembers how far it was read."""
        if self.reader is not None:
            self.note_tail()
            self.mark = self.reader.mark
            self.reader.close()
            self.reader = None

    def note_tail(self) -> None:
        """Remembers what stands before the place that was reached, if the file is open and lies there as it is."""
        if self.reader is None or self.tail.is_at(self.reader.mark.offset):
            return
        if isinstance(source := self.reader.buffer.source, PlainBytes):
            tail = self.tail.at(source, self.reader.mark.offset, self.reader.mark.line)
            if self.fingerprint.fits(source.head()):  # asked last: copytruncate may empty the file at any moment
                self.tail = tail

    def place_in(self, file: LogFile, signature: Signature, head: bytes) -> Step | None:
        """The last place known up to which a file that begins with `head`, as this log does, is what was read. None: it is another log."""
        reached = Step(self.reached.offset, self.reached.line, 0)
        if self.signature == signature or not self.tail.steps:
            return reached
        with suppress(OSError), open_log(file.path) as log:
            if isinstance(log, PlainBytes) and not self.tail.steps[0].fits(log):
                common = self.tail.common(log)
                if log.head().startswith(head):  # asked last: it may have been rotated since it was listed, or be emptied at any moment
                    return common
        return reached

    def ends_at(self, place: Step, file: LogFile) -> Stream:
        """Leaves the file, which has lost what was read behind a place. Returns the log of the lines that stand there instead."""
        self.stop_reading()
        own = {field: getattr(self, field) for field in ("owners", "end", "view", "cluster", "speaker", "found", "zone")}
        behind = stream_in(file, self.fingerprint, section=Section(place.offset, place.line), **own)
        behind.mark = replace(self.mark, offset=place.offset, line=place.line, elsewhere=place.line, inside_line=False, inside_pieces="")
        self.file, self.due_ms, self.fingerprint, self.tail = None, FOREVER, NO_FINGERPRINT, NO_TAIL
        return behind

    def open(self) -> LogBytes:
        """Opens the file if it still is this log: it may have been rotated a moment ago."""
        assert self.file is not None
        log = self.fingerprint.opened(self.file.path)
        if log is None:
            return LogBytes()
        seen = viewed(log, self.view)
        return seen if self.end is None else Part(seen, self.end)

    def look_ahead(self) -> None:
        """Finds out the time of the next line."""
        assert self.reader is not None
        self.due_ms, jump = self.reader.peek()
        if jump is Jump.BACK and not self.falls:
            self.fell_at = time.monotonic()
        self.falls = jump is Jump.BACK
        self.waiting = self.falls or jump is Jump.OPEN

    def is_understood(self, kept: KeptLines, first: int) -> bool:
        """Whether it has had a line that is known: a line of a broker's loggers, or one that was kept, from index `first` on."""
        mark = self.reached
        if holds_records(self.broker, self.origin):
            return mark.newest_ms != NEVER
        if self.broker != CLIENTS and (mark.requests or mark.other_loggers):
            return True
        return any(index not in kept.faults for index in range(first, len(kept)))

    def bytes_read(self) -> int:
        """Bytes of the file on disk that were read so far."""
        if self.file is None:
            return 0
        if not self.has_more:
            return self.signature.size
        reader = self.reader  # another thread may ask for progress
        source = reader.buffer.source if reader else None
        return min(source.file_position(), self.signature.size) if source else 0


def stream_in(file: LogFile, fingerprint: Fingerprint, *, cluster: str = "", section: Section = WHOLE[0], **own: Any) -> Stream:
    """A log that begins in a file. `cluster`: its name, if that is not the folder's."""
    mark = Mark(*section, first_line=section.line)
    return Stream(cluster or file.cluster, (file.cluster, file.broker), file.origin, fingerprint, mark, section=section, **own)


def streams_state(streams: Sequence[Stream]) -> list[StoredStream]:
    """The stored form of logs: all that exist, and the newest of those that are gone."""
    present = [s for s in streams if s.file is not None]
    for stream in present:
        stream.note_tail()
    absent = sorted((s for s in streams if s.file is None), key=lambda s: s.newest_ms)
    return [StoredStream(**_stored(stream) | {"mark": stream.reached}) for stream in present + absent[-ABSENT_KEPT:]]


def stream_of(stored: StoredStream) -> Stream:
    """A log from its stored form."""
    return Stream(**_stored(stored))


def _stored(stream: StoredStream) -> dict[str, Any]:
    return {name: getattr(stream, name) for name in StoredStream.__struct_fields__}


def by_fingerprint(streams: Iterable[Stream]) -> dict[int, dict[Fingerprint, list[Stream]]]:
    """Logs by how they begin, and by the size of that."""
    found: dict[int, dict[Fingerprint, list[Stream]]] = {}
    for stream in streams:
        found.setdefault(stream.fingerprint.size, {}).setdefault(stream.fingerprint, []).append(stream)
    return found


def same_log(file: LogFile, head: bytes, other: LogFile, other_head: bytes) -> bool | None:
    """Whether two files of a broker, which begin alike, are the same log, the first perhaps a copy that was cut.

    None: one of them is another log by now, so it was moved between the two looks and found under both names.
    """
    if not other_head.startswith(head):
        return False
    if len(head) == HEAD_BYTES:
        with suppress(OSError), open_log(file.path) as one, open_log(other.path) as another:
            ours, theirs = first_bytes(one, _BANNER_BYTES), first_bytes(another, _BANNER_BYTES)
            if not (ours.startswith(head) and theirs.startswith(head)):
                return None
            return theirs.startswith(ours) or ours.startswith(theirs)
    return len(head) >= SHORT_HEAD or (len(head) >= TINY_HEAD and stem(file.origin) == stem(other.origin))


def stem(origin: str) -> str:
    """A log's name without the suffix that rotation adds."""
    return origin.rpartition("/")[2].partition(".log")[0]


_Heap = list[tuple[int, int, Stream]]  # by time; of one time by the number of the log


class Due:
    """Logs by the time of their next line. Whoever reads from one calls `note` afterwards.

    A folder may hold a hundred thousand logs, so nothing here looks at all of them for one. Heaps keep what was true of a log when it was
    noted; what has become untrue is dropped when it comes up.
    """

    def __init__(self, streams: Iterable[Stream]) -> None:
        """`streams`: in the order in which those of one time are read."""
        self._numbers = {stream: number for number, stream in enumerate(streams)}
        self._certain: dict[str | None, _Heap] = {_ALL: []}  # by cluster: logs whose next line is no jump that is open
        self._waiting: _Heap = []  # the others
        self._reached: dict[str, _Heap] = {}  # by cluster: how far logs have got, the last one first
        for stream in self._numbers:
            self.note(stream)

    def note(self, stream: Stream) -> None:
        """Takes what is true of a log now."""
        number, cluster = self._numbers[stream], stream.cluster
        certain = self._certain[_ALL], self._certain.setdefault(cluster, [])
        for heap in ((self._waiting,) if stream.waiting else certain) if stream.has_more else ():
            heappush(heap, (stream.due_ms, number, stream))
        heappush(self._reached.setdefault(cluster, []), (-_reached(stream), number, stream))

    def first_ms(self, cluster: str | None = _ALL) -> int:
        """The time of the earliest line that is certain, of a cluster or of all; FOREVER if there is none."""
        return _first_ms(self._certain.get(cluster, []), waiting=False)

    def first_waiting_ms(self) -> int:
        """The time of the earliest jump that is open; FOREVER if there is none."""
        return _first_ms(self._waiting, waiting=True)

    def in_order(self, *, waiting: bool = False) -> Iterator[Stream]:
        """The logs whose next lines are certain, or those that wait before a jump, the earliest first."""
        heap, seen = self._waiting if waiting else self._certain[_ALL], dict[Stream, tuple[int, int, Stream]]()
        try:
            while _first_ms(heap, waiting=waiting) != FOREVER:
                entry = heappop(heap)
                if entry[2] not in seen:
                    seen[entry[2]] = entry
                    yield entry[2]
        finally:
            for entry in seen.values():
                heappush(heap, entry)

    def up_to(self, until_ms: int) -> list[Stream]:
        """The logs whose next lines are certain and not after a time, in the order in which they are read. They have to be noted again."""
        found: dict[Stream, None] = {}
        while self.first_ms() <= until_ms and self.first_ms() != FOREVER:
            found[heappop(self._certain[_ALL])[2]] = None
        return sorted(found, key=self._numbers.__getitem__)

    def others_reached(self, stream: Stream) -> int:
        """How far the other logs of a cluster have got; NEVER if there are none."""
        heap, own = self._reached[stream.cluster], False
        while heap and (heap[0][2] is stream or -heap[0][0] != _reached(heap[0][2])):
            own = heappop(heap)[2] is stream or own
        furthest = -heap[0][0] if heap else NEVER
        if own:
            heappush(heap, (-_reached(stream), self._numbers[stream], stream))
        return furthest


def _first_ms(heap: _Heap, *, waiting: bool) -> int:
    """The time of the first log that is still as it was noted; FOREVER if there is none."""
    while heap and not (heap[0][2].has_more and heap[0][2].waiting is waiting and heap[0][2].due_ms == heap[0][0]):
        heappop(heap)
    return heap[0][0] if heap else FOREVER


def _reached(stream: Stream) -> int:
    """The newest time that was read of a log, or that comes next."""
    return max(stream.newest_ms, stream.due_ms if stream.has_more and not stream.waiting else NEVER)
