"""Follows the logs beside a broker and sends the lines that matter to a topic (docs/shipping.md).

The shipper sends a slice of lines and waits until all are acknowledged. Then it sends ticks to all partitions, which say how far each log
was read. When these are acknowledged, it replaces its state. So after a crash it repeats only lines that it sent after the last complete
round of ticks, and a reader that finds a line behind a tick of the same or a later position knows that it is a repeated one.
"""

from __future__ import annotations

import hashlib
import json
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from jobs.common.errors import UserError
from jobs.kafka.folding import FoldedBeats, Senders
from jobs.kafka.outbox import DeliveryError, Outbox, StoppedError
from jobs.kafka.ship_state import ShipState
from jobs.kafka.topic_records import bundle_headers, clock_headers, line_headers, line_source, log_headers, record_key
from jobs.logs.bytes import HEAD_BYTES
from jobs.logs.envelopes import unwrapped
from jobs.logs.faults import DAMAGED_FILE, TOO_LONG, faulty_text
from jobs.logs.files import LogFile
from jobs.logs.mark import KeptLines
from jobs.logs.record_judge import is_record_file
from jobs.logs.slicer import Slicer
from jobs.logs.slices import Slice, SlicerSettings
from jobs.logs.streams import Stream, stem
from jobs.logs.times import NEVER, looks_like_time
from schemas.names import CLOCK, HEARTBEATS, LINE

_STEP_SECONDS: Final = 0.1


class ShipSettings(SlicerSettings, frozen=True):
    """How a shipper reads and sends. Times are in the unit of their name."""

    slice_lines: int = 10_000
    fold: bool = True  # heartbeats go into bundles
    half_lines: bool = False
    slice_bytes: int = 8 << 20
    poll_seconds: float = 0.5
    patience_seconds: float = 3.0
    tick_seconds: float = 2.0  # between two ticks of a log that says nothing
    retry_seconds: float = 2.0
    refresh_seconds: float = 60.0  # between two looks at the topic's partitions
    fresh_ms: int = 3_600_000  # a log is being written if its newest line is not older
    absent_kept: int = 100  # logs that are gone, remembered in case they come back


@dataclass
class ShippedCounts:
    """Lines that a shipper has handled since it was started."""

    read: int = 0
    delivered: int = 0  # and acknowledged


class Shipper(Slicer):
    """Ships until it is stopped, or once."""

    settings: ShipSettings

    def __init__(self, find: Callable[[], list[LogFile]], state: ShipState, outbox: Outbox, settings: ShipSettings) -> None:
        super().__init__(find, settings)
        self.counts = ShippedCounts()
        self._state = state
        self._outbox = outbox
        self._scanned_ms = 0
        self._senders = Senders()
        self._ticked: dict[tuple[str, str], float] = {}  # monotonic seconds, by broker and label
        self.streams = state.load()
        self.check_zones("give another --state and another topic")

    def ship(self, *, once: bool, stopped: Callable[[], bool], complain: Callable[[str], None]) -> None:
        """Ships all existing lines and, unless `once`, new lines until it is stopped. UserError: it cannot continue.

        Lines that were not delivered then are sent after the next start.
        """
        self.follows, self.stop, self.troubles.tell = not once, stopped, complain
        refreshed = time.monotonic()
        failing = ""
        while True:
            try:
                self._look_around()
                while not self.is_stopped() and self._ship_slice():
                    pass
                if self.moved and not self.is_stopped():
                    continue
                if once or self.is_stopped():
                    break
                self._tick_idle()
                failing = ""
            except StoppedError:
                complain("stopped before everything that was sent was acknowledged; the next start sends it again")
                break
            except (DeliveryError, OSError) as error:
                problem = f"shipping to {self._outbox.topic} failed: {error}"
                if once:
                    raise UserError(problem) from None
                if problem != failing:
                    complain(f"{problem}; still trying")
                failing = problem
                self._begin_again()
                self._pause(self.settings.retry_seconds)
            if time.monotonic() - refreshed > self.settings.refresh_seconds:
                self._outbox.refresh()
                refreshed = time.monotonic()
            self._pause(self.settings.poll_seconds)
            if self.is_stopped():
                break
        self.close_logs()

    def _pause(self, seconds: float) -> None:
        until = time.monotonic() + seconds
        while not self.is_stopped() and (left := until - time.monotonic()) > 0:
            time.sleep(min(_STEP_SECONDS, left))

    def _begin_again(self) -> None:
        """Returns to the saved state, which holds what has arrived."""
        self.close_logs()
        self._outbox.renew()
        self.streams = self._state.load()
        self.looks.clear()

    def _look_around(self) -> None:
        """Finds new logs and lines; saves the labels of new logs before it sends any of their lines."""
        self._scanned_ms = time.time_ns() // 1_000_000
        self.scan()
        self._forget()
        unnamed = [stream for stream in self.streams if not stream.label]
        if unnamed:
            taken = {(stream.broker, stream.label) for stream in self.streams}
            for stream in unnamed:
                stream.label = _unused(label_of(stream), stream.broker, taken)
                taken.add((stream.broker, stream.label))
            self._state.save(self.streams)

    def _forget(self) -> None:
        """Forgets logs that have long been gone, so that the state stays small as long as the broker lives."""
        absent = sorted((s for s in self.streams if s.file is None), key=lambda s: s.newest_ms)
        for stream in absent[: -self.settings.absent_kept]:
            self.streams.remove(stream)
            self._ticked.pop((stream.broker, stream.label), None)

    def _ship_slice(self) -> bool:
        """Ships one slice; False if there is nothing more for now."""
        beats = FoldedBeats(self._senders)
        slice_ = Slice(KeptLines(beats=beats))
        self.fill(slice_)
        if not slice_.parts:
            return False
        counts = self._send_lines(slice_)
        for stream in counts:
            counts[stream] += self._send_bundles(stream, beats)
        self._outbox.settle()
        for stream, count in counts.items():
            stream.shipped += count
            self._send_tick(stream)
        self._outbox.settle()
        self._state.save(self.streams)
        self.counts.read += slice_.lines_read
        self.counts.delivered += sum(counts.values())
        return True

    def _send_lines(self, slice_: Slice) -> Counter[Stream]:
        """Sends the lines of a slice; returns how many of each log that was read, which may be none."""
        kept, send, most = slice_.kept, self._outbox.send, self._outbox.max_bytes
        counts: Counter[Stream] = Counter()
        index = 0
        for stream, _, rows in slice_.parts:
            counts[stream] += 0
            shared = log_headers(stream.cluster, stream.broker, LINE, stream.label)
            for row in range(index, index + rows):
                text, fault, context = kept.texts[row], kept.faults.get(row, ""), kept.contexts.get(row, "")
                source = line_source(stream.broker, text)
                key = record_key(source, text, context, stream.label)
                if len(text) + 4 * len(context) > most:
                    text, fault = faulty_text(text), fault or TOO_LONG
                position = 0 if fault == DAMAGED_FILE else kept.positions[row]  # the record is about the file, not about a line
                counts[stream] += position > 0
                around = kept.around.get(row, b"")
                around = around if len(text) + 4 * len(context) + len(around) <= most else b""
                send(text, key, line_headers(shared, source, position, kept.ats[row], fault, context, around))
            index += rows
        return counts

    def _send_bundles(self, stream: Stream, beats: FoldedBeats) -> int:
        """Sends the heartbeats of a log that were taken out of its lines; returns how many."""
        count = 0
        shared = log_headers(stream.cluster, stream.broker, HEARTBEATS, stream.label)
        for bundle in beats.bundles(stream.reader, self._outbox.max_bytes):
            self._outbox.send(bundle.value, stream.label.encode(), bundle_headers(shared, *bundle))
            count += bundle.lines
        return count

    def _send_tick(self, stream: Stream) -> None:
        """Sends to all partitions how far a log was read. All of its lines up to there have arrived."""
        mark = stream.reader.mark if stream.reader else stream.mark
        heard = stream.reader.take_seconds() if stream.reader else []
        headers = clock_headers(
            log_headers(stream.cluster, stream.broker, CLOCK, stream.label),
            mark.line,
            None if mark.newest_ms == NEVER else mark.newest_ms,
            stream.shipped,
            self._read_ms(stream),
        )
        value = json.dumps(heard, separators=(",", ":")).encode()
        for partition in range(self._outbox.partitions):
            self._outbox.send(value, stream.label.encode(), headers, partition)
        self._ticked[stream.broker, stream.label] = time.monotonic()

    def _tick_idle(self) -> None:
        """Sends ticks for logs without new lines, so that readers know they are silent. Of rotated logs only the newest gets one."""
        newest: dict[tuple[str, str], Stream] = {}
        for stream in self.streams:
            name = stream.broker, f"{stream.origin.rpartition('/')[0]}/{stem(stream.origin)}"
            if _at_end(stream) and stream.newest_ms >= (newest[name].newest_ms if name in newest else NEVER):
                newest[name] = stream
        now = time.monotonic()
        due = [s for s in newest.values() if now - self._ticked.get((s.broker, s.label), 0.0) >= self.settings.tick_seconds]
        for stream in due:
            self._send_tick(stream)
        if due:
            self._outbox.settle()

    def _read_ms(self, broker: Stream) -> int | None:
        """The time of the last scan if all logs of this broker are read to their ends: up to then the broker wrote no more lines.

        None for logs that are no longer written: after an archive the next one may come, whose lines are old as well.
        """
        logs = [s for s in self.streams if s.file is not None and (s.cluster, s.broker) == (broker.cluster, broker.broker)]
        fresh = self._scanned_ms - max((s.newest_ms for s in logs), default=NEVER) <= self.settings.fresh_ms
        return self._scanned_ms if self.follows and fresh and all(map(_at_end, logs)) else None


def label_of(stream: Stream) -> str:
    """A log's name in the topic, which rotation does not change: its folder and name, and a digest of its beginning.

    Two logs that were written under one name differ in their first line with a time.
    """
    head = b""
    if stream.file is not None:
        log = stream.open()
        head = log.head()[:HEAD_BYTES]
        log.close()
    begin, start = head, 0
    while (end := head.find(b"\n", start)) >= 0:
        if looks_like_time(unwrapped(head[start:end])):
            begin = head[: end + 1]
            break
        start = end + 1
    folder, slash, _ = stream.origin.rpartition("/")
    kind = "jsonl" if is_record_file(stream.origin.rpartition("/")[2]) else "log"
    name = stem(stream.origin).partition(".jsonl")[0]
    return f"{folder}{slash}{name}@{hashlib.sha256(begin).hexdigest()[:12]}.{kind}"


def _at_end(stream: Stream) -> bool:
    """Whether, at the last scan, a log was read to its end, without even half a line left."""
    return stream.file is not None and stream.read_whole == stream.signature


def _unused(label: str, broker: str, taken: set[tuple[str, str]]) -> str:
    """A label that no other log of the broker has: it gets a number where two logs begin alike."""
    name, _, kind = label.rpartition(".")
    number, free = 1, label
    while (broker, free) in taken:
        number += 1
        free = f"{name}-{number}.{kind}"
    return free
