"""One log across the files that rotation moves it through, and its stored form between two runs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any, Final

from jobs.logs.bytes import Fingerprint, LogBytes, Signature, open_log
from jobs.logs.files import LogFile
from jobs.logs.jumps import Jump, LogEnd
from jobs.logs.mark import Mark
from jobs.logs.reader import FOREVER, LogReader
from jobs.logs.times import NEVER

ABSENT_KEPT: Final = 1_000  # logs that are gone, remembered in case they come back


class Stream:
    """One log that is being read."""

    def __init__(self, file: LogFile, fingerprint: Fingerprint, mark: Mark | None = None, read_whole: Signature | None = None) -> None:
        self.cluster = file.cluster
        self.broker = file.broker
        self.origin = file.origin
        self.fingerprint = fingerprint
        self.mark = mark or Mark()  # behind the last slice; the reader's runs ahead while a slice is made
        self.read_whole = read_whole  # the file when everything in it had been read
        self.file: LogFile | None = None  # None: missing at present
        self.signature = Signature(0, 0)
        self.reader: LogReader | None = None
        self.due_ms = NEVER  # time of the next line
        self.waiting = False  # ... which is a jump in time that is still open
        self.clock_line = self.mark.line  # lines that CLOCK and LINE records account for so far
        self.grown_at = 0.0  # monotonic seconds
        self.label = ""  # the name that a shipper gives it for good, whatever its files are called
        self.shipped = 0  # lines of it that a shipper delivered

    @property
    def key(self) -> tuple[str, str, str]:
        """Cluster, broker and origin, as its rows have them."""
        return self.cluster, self.broker, self.origin

    @property
    def reached(self) -> Mark:
        """How far the log was read."""
        return self.reader.mark if self.reader else self.mark

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
            self.mark = self.reader.mark
            self.reader.close()
            self.reader = None

    def open(self) -> LogBytes:
        """Opens the file if it still is this log: it may have been rotated a moment ago."""
        assert self.file is not None
        try:
            log = open_log(self.file.path)
        except FileNotFoundError:
            return LogBytes()
        if not self.fingerprint.fits(log.head()):
            log.close()
            return LogBytes()
        return log

    def look_ahead(self, log_end: LogEnd = LogEnd.HOLD, witness_ms: int = NEVER) -> None:
        """Finds out the time of the next line."""
        assert self.reader is not None
        self.due_ms, jump = self.reader.peek(log_end, witness_ms)
        self.waiting = jump is Jump.OPEN

    def bytes_read(self) -> int:
        """Bytes of the file on disk that were read so far."""
        if self.file is None:
            return 0
        if not self.has_more:
            return self.signature.size
        source = self.reader.source if self.reader else None
        return min(source.file_position(), self.signature.size) if source else 0


def streams_state(streams: Sequence[Stream]) -> list[dict[str, Any]]:
    """The stored form of logs: all that exist, and the newest of those that are gone."""
    present = [s for s in streams if s.file is not None]
    absent = sorted((s for s in streams if s.file is None), key=lambda s: s.newest_ms)
    return [_stream_state(s) for s in present + absent[-ABSENT_KEPT:]]


def _stream_state(stream: Stream) -> dict[str, Any]:
    state = {
        "cluster": stream.cluster,
        "broker": stream.broker,
        "origin": stream.origin,
        "fingerprint": stream.fingerprint,
        "mark": asdict(stream.reached),
        "seen": stream.read_whole,
    }
    return state | {"label": stream.label, "shipped": stream.shipped} if stream.label else state


def stream_of(entry: Mapping[str, Any]) -> Stream:
    """A log from its stored form."""
    file = LogFile(entry["cluster"], entry["broker"], entry["origin"], Path())
    read_whole = Signature(*entry["seen"]) if entry["seen"] else None
    stream = Stream(file, Fingerprint(*entry["fingerprint"]), Mark(**entry["mark"]), read_whole)
    stream.label, stream.shipped = entry.get("label", ""), entry.get("shipped", 0)
    return stream


def stem(origin: str) -> str:
    """A log's name without the suffix that rotation adds."""
    return origin.rpartition("/")[2].partition(".log")[0]
