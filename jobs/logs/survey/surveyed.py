"""Reads a folder of logs whose brokers are known by what the lines say, not by the names of folders alone.

New files are looked through once, before they are read: which logs are in them, and whose they are.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from itertools import groupby, takewhile
from typing import Final

from coordinator_model.events import CLIENTS
from jobs.common.errors import UserError
from jobs.common.text import some
from jobs.logs.bytes import Fingerprint, LogBytes, PlainBytes, open_log
from jobs.logs.clients.envelopes import client_line
from jobs.logs.envelopes.documents import PAGES
from jobs.logs.files import DEFAULT_BROKER, LogFile
from jobs.logs.record_judge import RecordTimes, holds_records
from jobs.logs.slicer import Slicer
from jobs.logs.slices import DEFAULT_ZONE, SlicerSettings
from jobs.logs.streams import Stream, stream_in
from jobs.logs.survey.block_times import WHOLE, Part, Section, blocks_of
from jobs.logs.survey.clock_steps import Broker, Fall, fall_at, known, may_step, steps_of, told
from jobs.logs.survey.containers import Containers, own_lines
from jobs.logs.survey.owners import KnownNodes, Owners, Signs, UnnamedLog, clashing, owners_of
from jobs.logs.survey.section_search import OrderedTimes, SectionSearch, TimeRange, blocks_within, ordered_times_of, ranges_of
from jobs.logs.survey.views import AS_IT_IS, View, Wraps, told_of_undated, viewed
from jobs.logs.survey.zones import Dated, Moments, find_zones, zone_notes
from jobs.logs.times import LocalTimes
from jobs.logs.workers import Workers

_POLL_SECONDS: Final = 0.1
_NAMED: Final = 5  # containers of a file
_OF_LOGCLI: Final = 30  # lines, the newest first, unless --limit says more
_OWN_RANGES: Final = 64
"""Of logs that workers look at, while there are none: the cores have nothing else to do, but the driver is to take little time in all."""


@dataclass(kw_only=True)
class _Found(UnnamedLog):
    """A log in a new file, with what was seen of it, as it is viewed."""

    file: LogFile
    fingerprint: Fingerprint
    moments: Moments
    search: SectionSearch
    is_client: bool
    section: Section = WHOLE[0]
    end: int | None = None
    view: View = AS_IT_IS
    wraps: Wraps = field(default_factory=Wraps)
    containers: Containers = field(default_factory=Containers)
    line_end: int | None = None  # behind which workers look; None: all that matters was seen
    falls: tuple[int, ...] = ()  # bytes: where the clock was set back
    left_out: Mapping[str, int] = field(default_factory=dict)  # as in LogBytes


class SurveyedSlicer(Slicer):
    """A slicer that looks through new files before it reads them."""

    def __init__(self, find: Callable[[], list[LogFile]], settings: SlicerSettings) -> None:
        super().__init__(find, settings)
        self.workers: Workers | None = None  # may come at any time
        self.expects_workers = False  # they come soon
        self.waits_for_workers = False
        self.known: dict[str, KnownNodes] = {}  # by cluster
        self.notes: list[str] = []  # what a reader should know about whose logs these are
        self.zones: list[str] = []  # that lines show, as `--timezone` would name them
        self.signs: dict[str, list[Signs]] = {}  # of the logs found in the last scan, by cluster
        self._new_notes: list[str] = []  # of the present survey
        self._former: Mapping[tuple[str, str, str], Owners] = {}  # of the logs by the place they had

    def tell_step(self, text: str) -> None:
        """Notes that a broker's clock was set back."""
        self.notes.append(text)

    def scan(self) -> None:
        """Finds logs. UserError: a zone was given to what no log is of, and its lines would get wrong times in silence."""
        super().scan()
        asked = set(self.settings.zones_asked) - {CLIENTS}
        names = {name for stream in self.streams for name in (*stream.names, stream.cluster, stream.folder[0])} if asked else set()
        if self.streams and (unknown := sorted(asked - names)):
            there = sorted({name for stream in self.streams for name in (stream.broker, stream.cluster)})
            raise UserError(f"--timezone {unknown[0]}=…: no log here is of {unknown[0]}, but of {', '.join(there)}")

    def awaited_workers(self) -> Workers | None:
        """The workers, when they are there; None if none are expected, or it was stopped before.

        What this process could do meanwhile costs more than it brings: each slice has a row of every member.
        """
        self.waits_for_workers = True
        while self.workers is None and self.expects_workers and not self.is_stopped():
            time.sleep(_POLL_SECONDS)
        self.waits_for_workers = False
        return self.workers

    def _streams_in(
        self, files: Sequence[tuple[LogFile, Fingerprint]], owners: Mapping[tuple[str, str, str], Owners]
    ) -> list[tuple[Stream, LogFile]]:
        """The logs in new files, each with its file."""
        self._former, self._new_notes, self.signs = owners, [], {}
        found: dict[str, list[_Found]] = {file.cluster: [] for file, _ in files}
        records: dict[str, list[_Found]] = {file.cluster: [] for file, _ in files}
        streams: list[tuple[Stream, LogFile]] = []
        whole = []
        for file, fingerprint in files:
            if _is_record(file):
                records[file.cluster].append(self._found(file, fingerprint, file.cluster, is_client=True))
            else:
                view = self._first_view(file, alone=len(files) == 1)
                whole.append(self._found(file, fingerprint, file.broker, is_client=file.broker == CLIENTS, view=view))
        self._look(whole)
        self._find_falls(whole)
        for log in whole:
            found[log.file.cluster] += self._logs_in(log)
        for folder, every in sorted(found.items()):
            logs = [log for log in every if not log.is_client]
            cluster = self._cluster_of(folder, logs)
            self.signs.setdefault(cluster, []).extend(log.signs for log in logs)
            for node, folders in clashing(logs).items():
                self._new_notes.append(
                    f"{', '.join(folders)} have lines of node {node} at the same time, so they are different clusters:"
                    " lay them out as <cluster>/<broker>/"
                )
            named = iter(owners_of(logs, self.known.setdefault(cluster, KnownNodes())))
            owned = [(log, Owners(CLIENTS) if log.is_client else next(named)) for log in every]
            new = [
                stream_in(log.file, log.fingerprint, owners=own, section=log.section, end=log.end, view=log.view, cluster=cluster)
                for log, own in owned
            ]
            streams += [(stream, log.file) for stream, log in zip(new, every, strict=True)]
            streams += [(stream_in(one.file, one.fingerprint, cluster=cluster), one.file) for one in records[folder]]
            for _, ones in groupby(owned, key=lambda pair: pair[0].file):
                self._note(list(ones))
            self._look(records[folder])
            self._find_zones(cluster, new, every, [Dated(False, one.moments, DEFAULT_ZONE, is_named=False) for one in records[folder]])
            self._take_steps(new, every)
        self.notes += self._new_notes
        return streams

    def _logs_in(self, found: _Found) -> Iterator[_Found]:
        """The logs in a file, each as it is to be read."""
        file, is_client = found.file, found.is_client
        starts = found.search.end()
        for said, number in found.left_out.items():
            which = "" if number == 1 else f", so that {number:,} of its documents are not whole"
            self._new_notes.append(f"{file.origin} does not have all that its store has: {said}{which} (docs/capture.md, Log stores)")
        view = found.view if is_client else self._view(found, newest_first=not starts)
        shares = found.containers.shares()
        brokers = [share.container for share, is_clients in shares if share.container and not is_clients]
        if not shares:
            yield from self._sections(replace(found, view=view), starts)
        for share, is_clients in shares:
            folder = share.container if share.container in brokers else min(brokers, default=DEFAULT_BROKER if is_client else file.broker)
            if len(brokers) == 1 and "/" in file.origin and not is_client:
                folder = file.broker
            one = self._found(file, found.fingerprint, folder, is_client=is_clients, view=view._replace(share=share))
            self._look([one])
            yield from self._sections(one, one.search.end())

    def _found(self, file: LogFile, fingerprint: Fingerprint, folder: str, *, is_client: bool, view: View = AS_IT_IS) -> _Found:
        is_record = _is_record(file)
        bare = bytes if is_record else client_line if is_client else self.settings.unwrap
        is_flat = "/" not in file.origin or folder != file.broker
        names = {stream.broker for stream in self.streams if stream.folder == (file.cluster, file.broker)} - {CLIENTS}
        return _Found(
            folder=folder,
            is_flat=is_flat,
            signs=Signs(),
            named=min(names) if len(names) == 1 and not is_flat else "",
            before=self._former.get((file.cluster, file.broker, file.origin)) if view.share is None else None,
            file=file,
            fingerprint=fingerprint,
            moments=Moments(bare, RecordTimes if is_record else LocalTimes),
            search=SectionSearch(self.settings.zone(file.cluster)),
            is_client=is_client,
            view=view,
        )

    def _look(self, logs: Sequence[_Found]) -> None:
        """Looks through logs, and takes their signs."""
        for one in logs:
            try:
                seen = viewed(open_log(one.file.path), one.view)
            except OSError:  # the slicer says why where it reads the file
                continue
            with seen:
                self._look_at_head(one, seen)
        size = self.settings.stretch_bytes
        ranges = [
            (one, part)
            for one in logs
            if one.line_end is not None
            for part in ranges_of(one.file.path, one.fingerprint, one.line_end, size, own_times=one.search.own_times)
        ]
        for number, (one, part) in enumerate(ranges):
            if (workers := self.awaited_workers() if number >= _OWN_RANGES else self.workers) is not None:
                rest = ranges[number:]
                for (behind, other), times in zip(rest, workers.map(ordered_times_of, [part for _, part in rest]), strict=True):
                    _take(behind.search, other, times)
                break
            _take(one.search, part, ordered_times_of(part))

    def _look_at_head(self, one: _Found, seen: LogBytes) -> None:
        """Looks through a log; if it is large and there are workers, through its beginning."""
        most_bytes, has_workers = self.settings.survey_bytes, self.workers is not None or self.expects_workers
        for offset, block in blocks_of(seen):
            line = one.search.lines
            if not one.is_client:
                one.search.take(offset, block)
            if offset < most_bytes:
                requests = 0 if one.is_client else one.signs.look_at(block)
                only_requests = requests > 0 and requests >= one.search.lines - line
                one.moments.look_at(block if one.view.share is None else own_lines(block), only_requests=only_requests)
                if one.view.share is None:
                    one.containers.look_at(block, only_requests=only_requests)
                    if not one.is_client:
                        one.wraps.look_at(block)
            line_end = offset + len(block) - 1
            if one.search.has_ended or (one.is_client and line_end > most_bytes):
                break
            if line_end > most_bytes and has_workers and isinstance(seen, PlainBytes):
                one.line_end = line_end
                break
        one.left_out = seen.left_out

    def _find_falls(self, logs: Sequence[_Found]) -> None:
        """Finds where the time of files goes back as the clock of their broker was set back: there no other log begins."""
        shown: dict[Broker, list[Fall]] = {}
        returns = []
        for log in logs:
            broker, local = (log.file.cluster, log.file.broker), LocalTimes(self.settings.zone(log.file.cluster))
            for place in () if log.is_client else sorted({*log.search.returns, *(start.offset for start in log.search.end()[1:])}):
                if (fall := self._fall(log, place, local)) is not None:
                    returns.append((log, broker, place, fall))
                    shown.setdefault(broker, []).extend([fall] if fall.proven else [])
        for log, broker, place, fall in returns:
            if any(map(fall.meets, shown[broker])):
                log.search.leave_out(place)
                log.moments.set_back(fall.last_ms - fall.first_ms)
            log.falls += (place,) if fall.proven else ()

    def _fall(self, log: _Found, place: int, local: LocalTimes) -> Fall | None:
        return fall_at(lambda: viewed(open_log(log.file.path), log.view), place, self.settings.unwrap, local)

    def _take_steps(self, streams: Sequence[Stream], logs: Sequence[_Found]) -> None:
        """Gives new logs the steps of their broker's clock, and tells of them."""
        falls, steps = dict[Broker, list[list[Fall]]](), known(self.streams)
        own = [(stream, log, (stream.cluster, stream.broker)) for stream, log in zip(streams, logs, strict=True) if may_step(stream)]
        for stream, log, broker in own:
            local = LocalTimes(self.settings.zone_of(stream))
            shown = [fall for place in log.falls if (fall := self._fall(log, place, local)) is not None and fall.proven]
            if shown and broker not in steps:
                falls.setdefault(broker, []).append(shown)
        new = {broker: tuple(steps_of(every)) for broker, every in sorted(falls.items())}
        for stream, _, broker in own:
            stream.mark.steps = new.get(broker, ())
        self._new_notes += [told(broker, step) for (_, broker), every in new.items() for step in every]

    def _sections(self, one: _Found, starts: tuple[Section, ...]) -> Iterator[_Found]:
        """The logs in a view of a file, one after the other."""
        if len(starts) < 2 or one.view.width:
            yield one if starts else replace(one, view=one.view._replace(newest_first=True))
            return
        for number, start in enumerate(starts):
            end = starts[number + 1].offset if number + 1 < len(starts) else None
            falls = tuple(place for place in one.falls if start.offset < place and (end is None or place < end))
            yield replace(one, section=start, end=end, falls=falls, signs=_signs(one, start, end, self.settings.survey_bytes))

    def _find_zones(self, cluster: str, streams: Sequence[Stream], logs: Sequence[_Found], records: Sequence[Dated]) -> None:
        """Gives new logs the zones that their lines show, and clients without a word of it that of the clients before."""
        settings, zone = self.settings, self.settings.zone(cluster)
        before = {stream.found for stream in self.streams if stream.cluster == cluster and stream.broker == CLIENTS}
        dated = []
        for stream, log in zip(streams, logs, strict=True):
            named = settings.named_zone(stream)
            is_named = bool(named) or (not log.is_client and zone != DEFAULT_ZONE)
            dated.append(Dated(log.is_client, log.moments, named or zone, is_named=is_named))
        find_zones([*dated, *records])
        for stream, one in zip(streams, dated, strict=True):
            if one.is_client and not one.is_told and not one.is_named and one.zone == zone and len(before) == 1:
                one.zone = min(before) or zone
            stream.found = one.zone if one.zone != zone and not one.is_named else ""
        several = len({log.cluster for log in (*self.streams, *streams)}) > 1
        for said, option in zone_notes(
            zone, cluster if several else "", [(stream.view.container, one) for stream, one in zip(streams, dated, strict=True)]
        ):
            self._new_notes.insert(0, said)  # they matter most
            self.zones += [option] if option else []

    def _cluster_of(self, folder: str, logs: Sequence[_Found]) -> str:
        """The name of a cluster by its folder: that on which its envelopes agree, unless a folder below the input bears its name."""
        known = {stream.cluster for stream in self.streams if stream.folder[0] == folder}
        if known:
            return min(known)
        named = sorted(set().union(*(log.signs.clusters for log in logs)))
        if not named or any(log.file.origin.startswith(f"{folder}/") for log in logs):
            return folder
        if len(named) > 1:
            self._new_notes.append(f"the lines name several clusters, {', '.join(named)}: lay them out as <cluster>/<broker>/")
            return folder
        self._new_notes.append(f"the cluster is called {named[0]}, as what stands around its lines says")
        return named[0]

    def _first_view(self, file: LogFile, *, alone: bool) -> View:
        """How a file is looked through. What is unusual is noted. `alone`: no other file is new."""
        if not self.settings.half_lines:
            return AS_IT_IS
        told = ""
        with suppress(OSError), open_log(file.path) as log:
            told = told_of_undated(log, alone=alone)
        if told:
            self._new_notes.append(f"{file.origin}: {told}")
        return View(undated=True) if told else AS_IT_IS

    def _view(self, found: _Found, *, newest_first: bool) -> View:
        """How a file is to be read. What is unusual is noted."""
        origin = found.file.origin
        width, sure = (0, False) if newest_first else found.wraps.width()
        if newest_first:
            self._new_notes.append(f"{origin} lists the newest line first: it is read from its end, and its lines are numbered from there")
            if (lines := found.search.lines) in PAGES or lines == _OF_LOGCLI:
                self._new_notes.append(
                    f"{origin} may be cut: it has exactly {lines:,} lines, as stores hand them out (docs/capture.md, Log stores)"
                )
        elif sure:
            self._new_notes.append(f"a terminal of {width} columns has wrapped the lines of {origin}: they are joined again")
        elif width:
            said = f"a terminal of {width} columns may have wrapped the lines of {origin}"
            self._new_notes.append(f"{said}: it is read as it is, since they cannot be joined for sure")
        return found.view._replace(newest_first=newest_first, width=width if sure else 0)

    def _note(self, logs: Sequence[tuple[_Found, Owners]]) -> None:
        """Notes whose logs are in a file, where its path does not say the same."""
        origin, folder = logs[0][0].file.origin, logs[0][0].file.broker
        brokers = sorted({broker for log, own in logs for broker in own.brokers if not log.is_client})
        containers = sorted({log.view.container for log, _ in logs if log.is_client} - {""})
        if containers or any(log.is_client and log.moments.has_lines for log, _ in logs):
            brokers.append(f"{CLIENTS} ({some(containers, _NAMED)})" if containers else CLIENTS)
        if len(logs) > 1 and not any(log.view.share for log, _ in logs):
            self._new_notes.append(f"{origin} holds {len(logs)} logs, one after the other, of {', '.join(brokers)}")
        elif len(brokers) > 1:
            self._new_notes.append(f"{origin} has lines of {', '.join(brokers)}, which are told apart")
        elif brokers and brokers != [folder]:
            self._new_notes.append(f"{origin} is a log of {brokers[0]}, by its lines")
        for log, own in logs:
            if len(log.signs.addresses) > 1 and not own.shared and not log.signs.nodes:
                self._new_notes.append(
                    f"{origin} has requests at {len(log.signs.addresses)} addresses. It does not say whether one broker has"
                    f" them all: they count as {own.broker}'s. Add the server.log of each broker"
                )


def _take(search: SectionSearch, one: TimeRange, times: OrderedTimes | None) -> None:
    """Takes the times of a range. None: it is not in order, or a worker did not see it."""
    if not search.has_ended and not search.take_ordered(times):
        for offset, block in blocks_within(one):
            search.take(offset, block)


def _is_record(file: LogFile) -> bool:
    return holds_records(file.broker, file.path.name)


def _signs(one: _Found, start: Section, end: int | None, most_bytes: int) -> Signs:
    """The signs in the first bytes of a section."""
    signs = Signs()
    with suppress(OSError), viewed(open_log(one.file.path), one.view) as log:  # the slicer says why where it reads the file
        seen = log if end is None else Part(log, end)
        for _, block in takewhile(lambda block: block[0] < most_bytes, blocks_of(seen) if seen.skip(start.offset) else ()):
            signs.look_at(block)
    return signs
