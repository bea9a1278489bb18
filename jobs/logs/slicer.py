"""Reads the logs of a folder side by side and cuts them into slices of event time: what the spool writes and the shipper ships.

Files overlap in time: there is one per broker and logger, and there are rotated ones. The slicer reads them side by side, the one
that is furthest behind first. So a slice holds the same span of time of every broker, and memory is needed for a slice, not for the folder.

The slicer recognises a log by how it begins, not by its name: it continues in a log that was rotated or compressed. What stands before
the place where it continues has to be what was read: where a machine lost power, the last lines may be gone, and others be there. If the
last line of a log had no end when the input ended, it counts as a line; bytes that are appended to it later are skipped up to the next
line end.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final

from coordinator_model.events import CLIENTS
from jobs.common.errors import UserError
from jobs.logs.broker_judge import BrokerJudge
from jobs.logs.bytes import NO_FILE, Fingerprint, Signature, Step, open_log, signature_of
from jobs.logs.clients.judge import ClientJudge, LeftOut, group_folder
from jobs.logs.files import LogFile
from jobs.logs.judge import LineJudge
from jobs.logs.jumps import LogEnd
from jobs.logs.mark import Mark
from jobs.logs.reader import FOREVER, LogReader
from jobs.logs.record_judge import RecordJudge, RecordTimes, holds_records
from jobs.logs.slices import DEFAULT_ZONE, UNCLEAR, Slice, SlicerSettings, parts_of
from jobs.logs.streams import SHORT_HEAD, TINY_HEAD, Due, Stream, by_fingerprint, same_log, stem, stream_in
from jobs.logs.survey import clock_steps
from jobs.logs.survey.owners import Owners
from jobs.logs.times import NEVER, LocalTimes
from jobs.logs.troubles import DEAD_LINK, GONE, Troubles

if TYPE_CHECKING:
    from jobs.logs.stretches.reading import LogRead  # with PyArrow, which a shipper has not

_OVERFULL: Final = 2  # times its size: how far a slice may grow so that all logs end in it at the same time
_MOST_OPEN: Final = 400  # logs that a scan leaves open, their first block read: to read that again takes as long


class Slicer:
    """Cuts the logs that `find` lists. Subclasses decide what becomes of a slice."""

    def __init__(self, find: Callable[[], list[LogFile]], settings: SlicerSettings) -> None:
        self.settings = settings
        self.most_lines = settings.slice_lines  # of the next slice
        self.troubles = Troubles()
        self.duplicates: list[LogFile] = []  # files that are skipped because another file has the same content
        self._find = find
        self._times: dict[tuple[type[LocalTimes], str], LocalTimes] = {}  # by kind and zone
        self.looks: dict[Path, tuple[Signature, bytes]] = {}
        self.stop: Callable[[], bool] | None = None
        self.streams: list[Stream] = []
        self.follows = False
        self.moved = False  # a file was moved since the last scan: scan again before reading anything later than its lines
        self._left_open = 0  # logs that the last scan left open
        self._due = Due(())
        self._steps = clock_steps.known(())

    def is_stopped(self) -> bool:
        """Whether the caller asked to stop."""
        return self.stop is not None and self.stop()

    def tell_step(self, text: str) -> None:
        """Says that a broker's clock was set back."""
        self.troubles.tell(text)

    def close_logs(self) -> None:
        """Closes all files."""
        for stream in self.streams:
            if stream.reader:
                stream.reader.close()

    # Which logs there are.

    def scan(self) -> None:
        """Finds logs that are new, grown or moved."""
        self.moved, self._left_open = False, 0
        self._steps = clock_steps.known(self.streams)
        found: dict[LogFile, tuple[Signature, bytes]] = {}
        unread: dict[Path, str] = {}
        for file in self._find():
            try:
                signature, head = self._look_at(file.path)
            except FileNotFoundError:
                if file.path.is_symlink():
                    unread[file.path] = DEAD_LINK
                continue  # rotated away since it was listed
            except OSError as error:
                unread[file.path] = error.strerror or str(error)
                continue
            if head:
                found[file] = signature, head
        self.looks = {file.path: look for file, look in found.items()}
        former = [(stream, stream.file.path) for stream in self.streams if stream.file is not None]
        for stream in self.streams:
            stream.file = None
        origins = {stream.origin for stream in self.streams}
        self.duplicates = []
        present: dict[tuple[str, str, bytes], list[tuple[LogFile, bytes]]] = {}
        arrived: list[LogFile] = []
        absent = by_fingerprint(self.streams)
        owners = {stream.place: stream.owners for stream in self.streams if stream.owners is not None and stream.broker != CLIENTS}
        # The longest beginnings come first, to tell a copy that was cut from its original; then files that kept their names.
        for file in sorted(found, key=lambda file: (-len(found[file][1]), file.origin not in origins, file)):
            signature, head = found[file]
            alike = present.setdefault((file.cluster, file.broker, head[:TINY_HEAD]), [])
            same = next((same for other in alike if (same := same_log(file, head, *other)) is not False), False)
            if same is not False:
                self.duplicates.append(file)
                self.moved |= same is None
                continue
            alike.append((file, head))
            streams = self._match(file, head, absent)
            places = {stream: place for stream in streams if (place := stream.place_in(file, signature, head)) is not None}
            if not places:
                arrived.append(file)
            for stream, place in places.items():
                self._attach(self._at(stream, place, file), file, signature, head)
        rests = set(self._without_ends(arrived, found))
        arrived = [file for file in arrived if file not in rests]
        for stream, file in self._streams_in([(file, Fingerprint.of(found[file][1])) for file in arrived], owners):
            self.streams.append(stream)
            self._attach(stream, file, *found[file])
        self._leave([(stream, path) for stream, path in former if stream.file is None], unread)
        self.streams.sort(key=lambda s: s.key)
        self.troubles.at_scan(unread)

    def _without_ends(self, arrived: Sequence[LogFile], found: Mapping[LogFile, tuple[Signature, bytes]]) -> Iterator[LogFile]:
        """The files that lost so much of their ends that less is left than what the log was recognised by. It goes on in them."""
        left = {stream.place: stream for stream in self.streams if stream.file is None and stream.tail.steps}
        for file in arrived:
            stream = left.get((file.cluster, file.broker, file.origin))
            place = stream.place_in(file, *found[file]) if stream is not None else None
            if stream is not None and place is not None and place.offset >= TINY_HEAD:
                self._attach(self._at(stream, place, file), file, *found[file])
                yield file

    def _at(self, stream: Stream, place: Step, file: LogFile) -> Stream:
        """The log that goes on in a file, which is what was read of a stream up to a place."""
        lost = stream.reached.line - place.line
        if place.offset == stream.reached.offset:
            return stream
        self.troubles.has_lost(file.path, lost, place.line)
        self.streams.append(stream.ends_at(place, file))
        return self.streams[-1]

    @staticmethod
    def _leave(gone: Sequence[tuple[Stream, Path]], unread: dict[Path, str]) -> None:
        """Stops reading logs whose files are gone, and tells which of them had more lines."""
        for stream, path in gone:
            if path not in unread and (stream.has_more or stream.cut_off):
                unread[path] = GONE
                stream.gone = path
            stream.stop_reading()
            stream.cut_off = False

    def _look_at(self, path: Path) -> tuple[Signature, bytes]:
        """Signature and beginning of a file; reads it only if it changed."""
        look = self.looks.get(path)
        if look is not None and look[0] == signature_of(path):
            return look
        with open_log(path) as log:
            return log.signature, log.head()

    def _streams_in(
        self, files: Sequence[tuple[LogFile, Fingerprint]], _owners: Mapping[tuple[str, str, str], Owners]
    ) -> list[tuple[Stream, LogFile]]:
        """The logs in new files, each with its file. `_owners`: of the logs that had the same place before."""
        return [(stream_in(file, fingerprint), file) for file, fingerprint in files]

    @staticmethod
    def _match(file: LogFile, head: bytes, absent: Mapping[int, Mapping[Fingerprint, Sequence[Stream]]]) -> list[Stream]:
        """The logs that a file continues: several if they were one file before. None if it is new."""
        begun = (s for size, logs in absent.items() if 0 < size <= len(head) for s in logs.get(Fingerprint.of(head[:size]), ()))
        candidates = [
            s
            for s in begun
            if s.file is None
            # Names are given once: that of a cluster may change when a folder comes to lie beside the file.
            and (s.folder == (file.cluster, file.broker) or s.origin == file.origin)
            and (s.fingerprint.size >= SHORT_HEAD or stem(s.origin) == stem(file.origin))
        ]
        if not candidates:
            return []
        best = max(candidates, key=lambda s: (s.fingerprint.size, s.origin == file.origin))
        return [s for s in candidates if (s.origin, s.fingerprint) == (best.origin, best.fingerprint)]

    def _attach(self, stream: Stream, file: LogFile, signature: Signature, head: bytes) -> None:
        """Makes a stream read from a file from now on."""
        unchanged = stream.reader is not None and stream.signature == signature
        stream.cut_off = False
        if stream.gone is not None:
            self.troubles.unread.pop(stream.gone, None)
            stream.gone = None
        stream.file, stream.origin, stream.signature = file, file.origin, signature
        stream.fingerprint = Fingerprint.of(head)
        if unchanged:
            return
        stream.stop_reading()
        stream.grown_at = time.monotonic()
        stream.reader = self._reader(stream, file)
        if stream.read_whole == signature and not stream.reached.damage_told:
            stream.due_ms = FOREVER  # no need to unpack a compressed archive that did not change, and is whole
            return
        stream.look_ahead()
        if stream.has_more:
            self._left_open += 1
            if self._left_open > _MOST_OPEN:
                stream.reader.close()  # its turn may come much later; a folder may hold thousands
        elif not self.follows and stream.reader.has_damage_to_tell:
            stream.due_ms = NEVER  # it still has to say why it ends, and comes next
        else:
            self._put_away(stream)

    def _put_away(self, stream: Stream) -> None:
        """Remembers that everything in the file was read."""
        assert stream.reader is not None
        stream.due_ms, stream.waiting = FOREVER, False
        source = stream.reader.buffer.source
        if source is None or not source.is_there():
            self.moved = True
            stream.signature = NO_FILE  # moved since it was found: the next scan has to take it up again, though its content is the same
            stream.cut_off = True
            if stream.file is not None:
                self.looks.pop(stream.file.path, None)
        elif stream.file is not None:
            if source.damage:
                self.troubles.damaged[stream.file.path] = source.damage
            elif stream.view.share is None and stream.end is None:  # a part of a file says nothing of what comes after it
                self.troubles.damaged.pop(stream.file.path, None)
            self.troubles.note_half(stream.file.path, waits=stream.reader.buffer.waits and not self.follows)
            if stream.reader.complete and not source.may_recover:
                stream.read_whole = source.signature
        stream.note_tail()
        stream.reader.close()

    def _reader(self, stream: Stream, file: LogFile) -> LogReader:
        """Reads a stream from its mark on."""
        may_step = clock_steps.may_step(stream)
        if may_step:
            stream.mark.steps = max(stream.mark.steps, self._steps.get((stream.cluster, stream.broker), ()), key=len)
        zone = stream.zone = self.settings.zone_of(stream)
        judge: Callable[[Mark], LineJudge] = partial(BrokerJudge, unwrap=self.settings.unwrap)
        times: type[LocalTimes] = LocalTimes
        if holds_records(stream.broker, file.path.name):
            judge, times = RecordJudge, RecordTimes
        elif stream.broker == CLIENTS:
            judge = partial(ClientJudge, group=group_folder(stream.origin) or self.settings.client_group)
        if zone == UNCLEAR:
            zone, judge = DEFAULT_ZONE, LeftOut
        return LogReader(
            stream.open,
            self._times.setdefault((times, zone), times(zone)),
            stream.mark,
            judge=judge,
            final=not self.follows or stream.end is not None,
            half_lines=self.settings.half_lines,
            tolerance_ms=self.settings.tolerance_ms,
            may_step=may_step,
            limits=self.settings.limits,
            is_elsewhere=stream.view.share.is_elsewhere if stream.view.share is not None else None,
        )

    def check_zones(self, instead: str) -> None:
        """UserError: lines were read in another time zone than the settings have now. They keep their times, and others would differ.

        `instead`: how to read all lines again.
        """
        for stream in self.streams:
            zone = self.settings.zone_of(stream)
            if stream.zone not in ("", zone) and stream.mark.line and not holds_records(stream.broker, stream.origin):
                raise UserError(
                    f"the logs of cluster {stream.cluster} were read with time zone {stream.zone}, not {zone}, and their lines keep their "
                    f"times: give --timezone {stream.zone} as before; to read all lines again with {zone}, {instead}"
                )

    # Cutting.

    def fill(self, slice_: Slice) -> None:
        """Reads the next slice: as many lines as fit.

        All logs end at the same time in a slice. Lines of a log that is left behind would come too late, because other
        logs of the broker would have moved its time past them.
        """
        settings, self._due = self.settings, Due(self.streams)
        while slice_.lines_read < self.most_lines and slice_.kept.size < settings.slice_bytes and not self.moved:
            next_until = self._next_until()
            if next_until is None or not self._round(slice_, next_until):
                return
            # Rounds end early only where thousands of lines bear the same time, or none: memory comes first then.
            while (
                slice_.lines_read < _OVERFULL * self.most_lines
                and slice_.kept.size < _OVERFULL * settings.slice_bytes
                and self._round(slice_, next_until)
            ):
                pass

    def read_up_to(self, slice_: Slice, until: int) -> None:
        """Reads all lines up to a time into a slice, however many they are."""
        self._due = Due(self.streams)
        while not self.moved and self._round(slice_, until):
            pass

    def take_read(self, slice_: Slice, stream: Stream, read: LogRead) -> None:
        """Takes the stretches of a log that others have read into a slice."""
        assert stream.reader is not None
        stream.reader.skip_to(read.mark, read.seconds)
        stream.look_ahead()
        stream.understood = stream.understood or bool(read.mark.requests or read.mark.other_loggers)
        slice_.stretches.append((stream, read))
        slice_.lines_read += read.mark.line - read.start
        slice_.skipped[stream] += read.mark.line - read.start - read.kept

    def _next_until(self) -> int | None:
        """The time to read up to next: as far as no log needs more than a block. None if nothing is left."""
        first = self._due.first_ms()
        if first == FOREVER:
            return None if (waits := self._due.first_waiting_ms()) == FOREVER else waits
        until = FOREVER
        for stream in self._due.in_order():
            if stream.due_ms > until:
                break
            assert stream.reader is not None
            horizon = stream.reader.horizon()
            if (source := stream.reader.buffer.source) is not None and not source.is_there():
                self._put_away(stream)
                self._due.note(stream)
                return None
            if horizon != FOREVER:
                until = min(until, max(horizon, first))
        return until

    def _round(self, slice_: Slice, until: int) -> bool:
        """Reads every log up to the same time; False if nothing is left up to there."""
        ready = self._due.up_to(until)
        for stream in ready:
            self._take(slice_, stream, until, log_end=LogEnd.HOLD)
        return any(self._settle(slice_, stream) for stream in self._unsettled(until)) or bool(ready)

    def _unsettled(self, until: int) -> Iterator[Stream]:
        """The logs that wait before a jump in time up to `until`, in the order in which to decide.

        Whether a jump is believed depends on how far the other logs of the cluster go. So that this does not depend
        on slices, the earliest jump is decided first, and none before every log that is certain has passed it.
        """
        due = set[str]()
        for stream in self._due.in_order(waiting=True):
            if stream.due_ms <= until:
                due.add(stream.cluster)
            elif not due:
                return
            if stream.cluster in due and stream.due_ms < self._due.first_ms(stream.cluster):
                yield stream

    def _settle(self, slice_: Slice, stream: Stream) -> bool:
        """Decides about a jump in time that the log itself leaves open, and reads up to it; False if it stays open."""
        idle = time.monotonic() - (stream.fell_at if stream.falls else stream.grown_at) > self.settings.patience_seconds
        if stream.falls:
            decided = clock_steps.decide(stream, self.streams, self.settings.unwrap, waits=self.follows and not idle, tell=self.tell_step)
            for one in decided:
                one.look_ahead()
                self._due.note(one)
            return bool(decided)
        log_end = LogEnd.END if not self.follows else LogEnd.IDLE if idle else LogEnd.HOLD
        return self._take(slice_, stream, stream.due_ms, log_end=log_end, witness=self._due.others_reached(stream))

    def _take(self, slice_: Slice, stream: Stream, limit: int, *, log_end: LogEnd, witness: int = NEVER) -> bool:
        """Reads from one log into the slice; False if it read nothing."""
        reader = stream.reader
        assert reader is not None
        kept = slice_.kept
        before, own_before, kept_before = len(kept), reader.mark.own_lines, len(kept) + kept.folded
        count = reader.read(
            kept,
            until_ms=limit,
            max_lines=self.most_lines,
            max_bytes=max(self.settings.slice_bytes, kept.size + 1),
            log_end=log_end,
            witness_ms=witness,
            fold=self.settings.fold and stream.shared_by is None,
        )
        own, taken = reader.mark.own_lines - own_before, len(kept) + kept.folded - kept_before
        stream.look_ahead()
        stream.understood = stream.understood or stream.is_understood(kept, before)
        if not stream.has_more:
            if not self.follows:
                reader.tell_damage(kept)
            self._put_away(stream)
        self._due.note(stream)
        if not count and len(kept) == before:
            return False
        slice_.parts += parts_of(stream, kept, before)
        slice_.lines_read += own
        slice_.skipped[stream] += own - taken
        return True
