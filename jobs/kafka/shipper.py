"""Follows the logs beside a broker and sends the lines that matter to a topic (docs/shipping.md).

A slice of lines goes out, is acknowledged, then come ticks to all partitions: how far each log was read. When these are acknowledged,
the state is replaced. So what a crash makes the shipper send again was sent after the last tick that a reader has seen as a
whole, and a line at or before a tick's position that comes behind it is a line that came before.
"""

from __future__ import annotations

import hashlib
import json
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Final

from jobs.common.errors import UserError
from jobs.kafka.outbox import DeliveryError, Outbox, StoppedError
from jobs.kafka.ship_state import ShipState
from jobs.kafka.topic_records import Header, clock_headers, key_of, line_headers, log_headers
from jobs.kafka.topic_records import source_of as kind_of
from jobs.logs.bytes import HEAD_BYTES
from jobs.logs.files import LogFile
from jobs.logs.reader import DAMAGED_FILE, TOO_LONG, shown
from jobs.logs.record_reader import is_record_file
from jobs.logs.slicer import Slice, Slicer, SlicerSettings, Stream, stem
from jobs.logs.times import NEVER, looks_like_time
from schemas.names import CLOCK, LINE

TICK_SECONDS: Final = 2.0
FRESH_MS: Final = 3_600_000
"""A log is being written if its newest line is not older."""
ABSENT_KEPT: Final = 100
"""Logs that are gone, remembered in case they come back."""
SETTINGS: Final = SlicerSettings(slice_lines=10_000, slice_bytes=8 << 20, poll_seconds=0.5, patience_seconds=3.0)

_RETRY_SECONDS: Final = 2.0
_REFRESH_SECONDS: Final = 60.0
_STEP_SECONDS: Final = 0.1


@dataclass
class Shipped:
    """What a shipper did since it was started."""

    read: int = 0  # lines
    delivered: int = 0  # lines, acknowledged


class Shipper(Slicer):
    """Ships until it is stopped, or once."""

    def __init__(
        self,
        find: Callable[[], list[LogFile]],
        state: ShipState,
        outbox: Outbox,
        *,
        settings: SlicerSettings = SETTINGS,
        tick_seconds: float = TICK_SECONDS,
    ) -> None:
        super().__init__(find, settings)
        self.done = Shipped()
        self._state = state
        self._outbox = outbox
        self._tick_seconds = tick_seconds
        self._scanned_ms = 0
        self._ticked: dict[tuple[str, str], float] = {}  # monotonic seconds, by broker and label
        self._streams = state.load()

    def ship(self, *, once: bool, stopped: Callable[[], bool], complain: Callable[[str], None]) -> None:
        """Ships what is there; unless `once`, then what comes. UserError: it cannot go on.

        What could not be delivered when it is stopped is sent by the next start.
        """
        self._follow, self._stop = not once, stopped
        refreshed = time.monotonic()
        failing = ""
        while True:
            try:
                self._look_around()
                while not self._is_stopped() and self._ship_slice():
                    pass
                if self._moved and not self._is_stopped():
                    continue
                if once or self._is_stopped():
                    break
                self._tick_idle()
                failing = ""
            except StoppedError:
                complain("stopped before everything that was sent was acknowledged; the next start sends it again")
                break
            except (DeliveryError, OSError) as error:
                said = f"shipping to {self._outbox.topic} failed: {error}"
                if once:
                    raise UserError(said) from None
                if said != failing:
                    complain(f"{said}; trying on")
                failing = said
                self._begin_again()
                self._pause(_RETRY_SECONDS)
            if time.monotonic() - refreshed > _REFRESH_SECONDS:
                self._outbox.refresh()
                refreshed = time.monotonic()
            self._pause(self.settings.poll_seconds)
            if self._is_stopped():
                break
        self._let_go()

    def _pause(self, seconds: float) -> None:
        until = time.monotonic() + seconds
        while not self._is_stopped() and time.monotonic() < until:
            time.sleep(min(_STEP_SECONDS, seconds))

    def _let_go(self) -> None:
        for stream in self._streams:
            if stream.reader:
                stream.reader.close()

    def _begin_again(self) -> None:
        """Back to what is known to have arrived."""
        self._let_go()
        self._outbox.renew()
        self._streams = self._state.load()
        self._looks.clear()

    def _look_around(self) -> None:
        """Finds what is new; writes down what new logs are called before any of their lines goes out."""
        self._scanned_ms = time.time_ns() // 1_000_000
        self._scan()
        self._forget()
        unnamed = [stream for stream in self._streams if not stream.label]
        if unnamed:
            taken = {(stream.broker, stream.label) for stream in self._streams}
            for stream in unnamed:
                stream.label = _unused(label_of(stream), stream.broker, taken)
                taken.add((stream.broker, stream.label))
            self._state.save(self._streams)

    def _forget(self) -> None:
        """Forgets logs that have long been gone: the state is written often, for as long as the broker lives."""
        absent = sorted((s for s in self._streams if s.file is None), key=lambda s: s.newest_ms)
        for stream in absent[:-ABSENT_KEPT]:
            self._streams.remove(stream)
            self._ticked.pop((stream.broker, stream.label), None)

    def _ship_slice(self) -> bool:
        """Ships what fits into a slice; False if there is nothing more for now."""
        slice_ = Slice()
        self._fill(slice_, None)
        if not slice_.parts:
            return False
        counts = self._send_lines(slice_)
        self._outbox.settle()
        for stream, count in counts.items():
            stream.shipped += count
            self._send_tick(stream)
        self._outbox.settle()
        self._state.save(self._streams)
        self.done.read += slice_.lines_read
        self.done.delivered += sum(counts.values())
        return True

    def _send_lines(self, slice_: Slice) -> Counter[Stream]:
        """Sends the lines of a slice; returns how many of each log, be it none."""
        kept, send, most = slice_.kept, self._outbox.send, self._outbox.max_bytes
        counts: Counter[Stream] = Counter()
        index = 0
        for stream, rows in slice_.parts:
            counts[stream] += 0
            shared = self._shared(stream, LINE)
            for row in range(index, index + rows):
                text, fault, context = kept.texts[row], kept.faults.get(row, ""), kept.contexts.get(row, "")
                source = kind_of(stream.broker, text)
                key = key_of(source, text, context, stream.label)
                if len(text) + 4 * len(context) > most:
                    text, fault = shown(text), fault or TOO_LONG
                position = 0 if fault == DAMAGED_FILE else kept.positions[row]  # it tells of the file, not of a line
                counts[stream] += position > 0
                send(text, key, line_headers(shared, source, position, kept.ats[row], fault, context))
            index += rows
        return counts

    def _send_tick(self, stream: Stream) -> None:
        """Tells all partitions how far a log was read. All of its lines up to there have arrived."""
        mark = stream.reader.mark if stream.reader else stream.mark
        heard = stream.reader.take_heard() if stream.reader else []
        headers = clock_headers(
            self._shared(stream, CLOCK),
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
        """Ticks for logs that say nothing: that they were looked at is the news. Of rotated ones only the newest."""
        newest: dict[tuple[str, str], Stream] = {}
        for stream in self._streams:
            name = stream.broker, f"{stream.origin.rpartition('/')[0]}/{stem(stream.origin)}"
            if _at_end(stream) and stream.newest_ms >= (newest[name].newest_ms if name in newest else NEVER):
                newest[name] = stream
        now = time.monotonic()
        due = [s for s in newest.values() if now - self._ticked.get((s.broker, s.label), 0.0) >= self._tick_seconds]
        for stream in due:
            self._send_tick(stream)
        if due:
            self._outbox.settle()

    def _read_ms(self, broker: Stream) -> int | None:
        """When the last look found nothing of this broker's logs that was not read: then even their silence is known up to it.

        Only of logs that are being written. What lies in an archive may be followed by the next archive, of a time that is past too.
        """
        logs = [s for s in self._streams if s.file is not None and (s.cluster, s.broker) == (broker.cluster, broker.broker)]
        fresh = self._scanned_ms - max((s.newest_ms for s in logs), default=NEVER) <= FRESH_MS
        return self._scanned_ms if self._follow and fresh and all(map(_at_end, logs)) else None

    @staticmethod
    def _shared(stream: Stream, record: str) -> list[Header]:
        return log_headers(stream.cluster, stream.broker, record, stream.label)


def label_of(stream: Stream) -> str:
    """What a log is called in the topic, however it is rotated: its folder and name, and a digest of how it begins.

    Two logs that were written under one name differ from the first line that bears a time.
    """
    head = b""
    if stream.file is not None:
        log = stream.open()
        head = log.head()[:HEAD_BYTES]
        log.close()
    begin, start = head, 0
    while (end := head.find(b"\n", start)) >= 0:
        if looks_like_time(head[start:end]):
            begin = head[: end + 1]
            break
        start = end + 1
    folder, slash, _ = stream.origin.rpartition("/")
    kind = "jsonl" if is_record_file(stream.origin.rpartition("/")[2]) else "log"
    name = stem(stream.origin).partition(".jsonl")[0]
    return f"{folder}{slash}{name}@{hashlib.sha256(begin).hexdigest()[:12]}.{kind}"


def _at_end(stream: Stream) -> bool:
    """Whether the last look found nothing of a log that was not read, not even half a line."""
    return stream.file is not None and stream.seen == stream.signature


def _unused(label: str, broker: str, taken: set[tuple[str, str]]) -> str:
    """A label that no other log of the broker has: with a number, where one begins as another did."""
    name, _, kind = label.rpartition(".")
    number, free = 1, label
    while (broker, free) in taken:
        number += 1
        free = f"{name}-{number}.{kind}"
    return free


def with_zone(zone: str) -> SlicerSettings:
    """The settings of a broker whose log timestamps are of this time zone."""
    from zoneinfo import ZoneInfo

    try:
        ZoneInfo(zone)
    except (OSError, ValueError, KeyError):
        raise UserError(f"--timezone {zone}: no such time zone; write one as Europe/Berlin") from None
    return replace(SETTINGS, timezone=zone)
