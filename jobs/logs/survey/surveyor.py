"""Looks through new files once, before they are read: which logs are in them, and whose they are."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from itertools import groupby
from typing import Final

from coordinator_model.events import CLIENTS
from jobs.common.text import some
from jobs.logs.bytes import Fingerprint, PlainBytes, open_log
from jobs.logs.clients.envelopes import client_line
from jobs.logs.envelopes.documents import PAGES
from jobs.logs.files import DEFAULT_BROKER, LogFile
from jobs.logs.record_judge import RecordTimes, holds_records
from jobs.logs.slices import DEFAULT_ZONE, SlicerSettings
from jobs.logs.streams import Stream, stream_in
from jobs.logs.survey.block_times import blocks_of
from jobs.logs.survey.clock_steps import known, may_step, steps_of, told
from jobs.logs.survey.containers import Containers, own_lines
from jobs.logs.survey.falls import Fall, fall_at
from jobs.logs.survey.ordered_times import OrderedTimes, TimeRange, blocks_within, ordered_times_of, ranges_of
from jobs.logs.survey.owners import KnownNodes, Owners, UnnamedLog, clashing, owners_of
from jobs.logs.survey.section_search import SectionSearch
from jobs.logs.survey.sections import WHOLE, Part, Section
from jobs.logs.survey.signs import Signs, signs_of
from jobs.logs.survey.views import AS_IT_IS, View, Wraps, told_of_undated, viewed
from jobs.logs.survey.zones import Dated, Moments, find_zones, zone_notes
from jobs.logs.times import LocalTimes
from jobs.logs.workers import Workers

_NAMED: Final = 5  # containers of a file
_OF_LOGCLI: Final = 30  # lines, the newest first, unless --limit says more
_OWN_RANGES: Final = 64
"""Of logs that workers look at, while there are none: the cores have nothing else to do, but the driver is to take little time in all."""


@dataclass(frozen=True)
class _Found:
    """A log in a new file."""

    file: LogFile
    fingerprint: Fingerprint
    signs: Signs
    moments: Moments
    folder: str  # that names its broker, if its lines do not
    is_client: bool
    section: Section = WHOLE[0]
    end: int | None = None
    view: View = AS_IT_IS
    falls: tuple[int, ...] = ()  # bytes: where the clock was set back


@dataclass
class _Look:
    """What was seen of a log, as it is viewed."""

    log: _Found
    search: SectionSearch
    wraps: Wraps = field(default_factory=Wraps)
    containers: Containers = field(default_factory=Containers)
    line_end: int | None = None  # behind which workers look; None: all that matters was seen
    falls: list[int] = field(default_factory=list)  # bytes: where the clock was set back
    left_out: Mapping[str, int] = field(default_factory=dict)  # as in LogBytes


@dataclass
class Surveyor:
    """Finds the logs in files that were not read before."""

    _streams: Sequence[Stream]  # the logs that are known
    _owners: Mapping[tuple[str, str, str], Owners]  # of the logs by the place they had
    _known: dict[str, KnownNodes]
    _settings: SlicerSettings
    _workers: Callable[[bool], Workers | None]  # those that there are by then, or waits for them
    _has_workers: bool  # now or soon
    notes: list[str] = field(default_factory=list)
    zones: list[str] = field(default_factory=list)  # that lines show, as a user would name them
    signs: dict[str, list[Signs]] = field(default_factory=dict)  # by cluster

    def survey(self, files: Sequence[tuple[LogFile, Fingerprint]]) -> list[tuple[Stream, LogFile]]:
        """The logs of these files, each with its file."""
        found: dict[str, list[_Found]] = {file.cluster: [] for file, _ in files}
        streams: list[tuple[Stream, LogFile]] = []
        whole = [
            self._found(*one, one[0].broker, is_client=one[0].broker == CLIENTS, view=self._first_view(one[0], alone=len(files) == 1))
            for one in files
            if not _is_record(one[0])
        ]
        looks = self._look(whole)
        self._find_falls(looks)
        for log, look in zip(whole, looks, strict=True):
            found[log.file.cluster] += self._logs_in(log, look)
        for folder, every in sorted(found.items()):
            logs = [log for log in every if not log.is_client]
            cluster = self._cluster_of(folder, logs)
            self.signs.setdefault(cluster, []).extend(log.signs for log in logs)
            unnamed = [self._unnamed(log) for log in logs]
            for node, folders in clashing(unnamed).items():
                self.notes.append(
                    f"{', '.join(folders)} have lines of node {node} at the same time, so they are different clusters:"
                    " lay them out as <cluster>/<broker>/"
                )
            named = iter(owners_of(unnamed, self._known.setdefault(cluster, KnownNodes())))
            owned = [(log, Owners(CLIENTS) if log.is_client else next(named)) for log in every]
            new = [
                stream_in(log.file, log.fingerprint, owners=own, section=log.section, end=log.end, view=log.view, cluster=cluster)
                for log, own in owned
            ]
            streams += [(stream, log.file) for stream, log in zip(new, every, strict=True)]
            streams += [(stream_in(*one, cluster=cluster), one[0]) for one in files if one[0].cluster == folder and _is_record(one[0])]
            for _, ones in groupby(owned, key=lambda pair: pair[0].file):
                self._note(list(ones))
            records = [self._found(*one, folder, is_client=True) for one in files if one[0].cluster == folder and _is_record(one[0])]
            self._look(records)
            self._find_zones(cluster, new, every, [Dated(False, one.moments, DEFAULT_ZONE, is_named=False) for one in records])
            self._take_steps(new, every)
        return streams

    def _logs_in(self, found: _Found, look: _Look | None) -> Iterator[_Found]:
        file, is_client = found.file, found.is_client
        if look is None:  # the slicer says why where it reads the file
            yield found
            return
        starts, containers = look.search.end(), look.containers
        for said, number in look.left_out.items():
            which = "" if number == 1 else f", so that {number:,} of its documents are not whole"
            self.notes.append(f"{file.origin} does not have all that its store has: {said}{which} (docs/capture.md, Log stores)")
        view = found.view if is_client else self._view(found, look, newest_first=not starts)
        shares = [(share, containers.is_client(share)) for share in containers.shares()]
        brokers = [share.container for share, is_clients in shares if share.container and not is_clients]
        if not shares:
            yield from self._sections(replace(found, view=view, falls=tuple(look.falls)), starts)
        for share, is_clients in shares:
            folder = share.container if share.container in brokers else min(brokers, default=DEFAULT_BROKER if is_client else file.broker)
            if len(brokers) == 1 and "/" in file.origin and not is_client:
                folder = file.broker
            one = self._found(file, found.fingerprint, folder, is_client=is_clients, view=view._replace(share=share))
            (inner,) = self._look([one])
            yield from self._sections(one, inner.search.end() if inner is not None else WHOLE)

    def _found(self, file: LogFile, fingerprint: Fingerprint, folder: str, *, is_client: bool, view: View = AS_IT_IS) -> _Found:
        signs = Signs()
        is_record = _is_record(file)
        bare = bytes if is_record else client_line if is_client else self._settings.unwrap
        moments = Moments(signs.joins, bare, RecordTimes if is_record else LocalTimes)
        return _Found(file, fingerprint, signs, moments, folder, is_client, view=view)

    def _look(self, logs: Sequence[_Found]) -> list[_Look | None]:
        """Looks through logs, and takes their signs; None: a log cannot be opened."""
        looks = [self._head(one) for one in logs]
        ranges = [(look, one) for look in looks if look is not None and look.line_end is not None for one in self._rest(look)]
        for number, (look, one) in enumerate(ranges):
            if (workers := self._workers(number >= _OWN_RANGES)) is not None:
                rest = ranges[number:]
                for (behind, other), times in zip(rest, workers.map(ordered_times_of, [one for _, one in rest]), strict=True):
                    _take(behind.search, other, times)
                break
            _take(look.search, one, ordered_times_of(one))
        return looks

    def _head(self, one: _Found) -> _Look | None:
        """Looks through a log; if it is large and there are workers, through its beginning."""
        try:
            log = viewed(open_log(one.file.path), one.view)
        except OSError:
            return None
        look, most_bytes = _Look(one, SectionSearch(self._settings.zone(one.file.cluster))), self._settings.survey_bytes
        with log:
            for offset, block in blocks_of(log):
                line = look.search.lines
                if not one.is_client:
                    look.search.take(offset, block)
                if offset < most_bytes:
                    requests = 0 if one.is_client else one.signs.look_at(block)
                    only_requests = requests > 0 and requests >= look.search.lines - line
                    one.moments.look_at(block if one.view.share is None else own_lines(block), only_requests=only_requests)
                    if one.view.share is None:
                        look.containers.look_at(block, only_requests=only_requests)
                        if not one.is_client:
                            look.wraps.look_at(block)
                line_end = offset + len(block) - 1
                if look.search.has_ended or (one.is_client and line_end > most_bytes):
                    break
                if line_end > most_bytes and self._has_workers and isinstance(log, PlainBytes):
                    look.line_end = line_end
                    break
            look.left_out = log.left_out
        return look

    def _rest(self, look: _Look) -> list[TimeRange]:
        """What is behind the beginning of a large log, as whole lines for several workers."""
        path, fingerprint = look.log.file.path, look.log.fingerprint
        log = fingerprint.opened(path)
        if log is None or look.line_end is None:
            return []
        with log:
            assert isinstance(log, PlainBytes)
            return ranges_of(path, fingerprint, log, look.line_end, self._settings.stretch_bytes, own_times=look.search.own_times)

    def _find_falls(self, looks: Sequence[_Look | None]) -> None:
        """Finds where the time of files goes back as the clock of their broker was set back: there no other log begins."""
        shown: dict[tuple[str, str], list[Fall]] = {}
        returns = []
        for look in looks:
            if look is not None and not look.log.is_client:
                file, local = look.log.file, LocalTimes(self._settings.zone(look.log.file.cluster))
                for place in sorted({*look.search.returns, *(start.offset for start in look.search.end()[1:])}):
                    if (fall := self._fall(look.log, place, local)) is not None:
                        returns.append((look, place, fall))
                        shown.setdefault((file.cluster, file.broker), []).extend([fall] if fall.proven else [])
        for look, place, fall in returns:
            if any(map(fall.meets, shown[look.log.file.cluster, look.log.file.broker])):
                look.search.leave_out(place)
                look.log.moments.set_back(fall.last_ms - fall.first_ms)
            if fall.proven:
                look.falls.append(place)

    def _fall(self, log: _Found, place: int, local: LocalTimes) -> Fall | None:
        with suppress(OSError), viewed(open_log(log.file.path), log.view) as seen:
            return fall_at(seen, place, self._settings.unwrap, local)
        return None

    def _take_steps(self, streams: Sequence[Stream], logs: Sequence[_Found]) -> None:
        """Gives new logs the steps of their broker's clock, and tells of them."""
        before, falls = known(self._streams), dict[Stream, list[Fall]]()
        own = [(stream, log) for stream, log in zip(streams, logs, strict=True) if may_step(stream)]
        for stream, log in own:
            local = LocalTimes(self._settings.zone_of(stream))
            shown = [fall for place in log.falls if (fall := self._fall(log, place, local)) is not None and fall.proven]
            if shown and (stream.cluster, stream.broker) not in before:
                falls[stream] = shown
        steps = steps_of(falls)
        for stream, _ in own:
            stream.mark.steps = steps.get((stream.cluster, stream.broker), ())
        self.notes += [told(broker, step) for (_, broker), every in sorted(steps.items()) for step in every]

    def _sections(self, one: _Found, starts: tuple[Section, ...]) -> Iterator[_Found]:
        """The logs in a view of a file, one after the other."""
        if len(starts) < 2 or one.view.width:
            yield one if starts else replace(one, view=one.view._replace(newest_first=True))
            return
        for number, start in enumerate(starts):
            end = starts[number + 1].offset if number + 1 < len(starts) else None
            falls = tuple(place for place in one.falls if start.offset < place and (end is None or place < end))
            yield replace(one, section=start, end=end, falls=falls, signs=_signs(one, start, end, self._settings.survey_bytes))

    def _find_zones(self, cluster: str, streams: Sequence[Stream], logs: Sequence[_Found], records: Sequence[Dated]) -> None:
        """Gives new logs the zones that their lines show, and clients without a word of it that of the clients before."""
        settings, zone = self._settings, self._settings.zone(cluster)
        before = {stream.found for stream in self._streams if stream.cluster == cluster and stream.broker == CLIENTS}
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
        several = len({log.cluster for log in (*self._streams, *streams)}) > 1
        for said, option in zone_notes(
            zone, cluster if several else "", [(stream.view.container, one) for stream, one in zip(streams, dated, strict=True)]
        ):
            self.notes.insert(0, said)  # they matter most
            self.zones += [option] if option else []

    def _cluster_of(self, folder: str, logs: Sequence[_Found]) -> str:
        """The name of a cluster by its folder: that on which its envelopes agree, unless a folder below the input bears its name."""
        known = {stream.cluster for stream in self._streams if stream.folder[0] == folder}
        if known:
            return min(known)
        named = sorted(set().union(*(log.signs.clusters for log in logs)))
        if not named or any(log.file.origin.startswith(f"{folder}/") for log in logs):
            return folder
        if len(named) > 1:
            self.notes.append(f"the lines name several clusters, {', '.join(named)}: lay them out as <cluster>/<broker>/")
            return folder
        self.notes.append(f"the cluster is called {named[0]}, as what stands around its lines says")
        return named[0]

    def _first_view(self, file: LogFile, *, alone: bool) -> View:
        """How a file is looked through. What is unusual is noted. `alone`: no other file is new."""
        if not self._settings.half_lines:
            return AS_IT_IS
        told = ""
        with suppress(OSError), open_log(file.path) as log:
            told = told_of_undated(log, alone=alone)
        if told:
            self.notes.append(f"{file.origin}: {told}")
        return View(undated=True) if told else AS_IT_IS

    def _view(self, found: _Found, look: _Look, *, newest_first: bool) -> View:
        """How a file is to be read. What is unusual is noted."""
        origin = found.file.origin
        width, sure = (0, False) if newest_first else look.wraps.width()
        if newest_first:
            self.notes.append(f"{origin} lists the newest line first: it is read from its end, and its lines are numbered from there")
            if (lines := look.search.lines) in PAGES or lines == _OF_LOGCLI:
                self.notes.append(
                    f"{origin} may be cut: it has exactly {lines:,} lines, as stores hand them out (docs/capture.md, Log stores)"
                )
        elif sure:
            self.notes.append(f"a terminal of {width} columns has wrapped the lines of {origin}: they are joined again")
        elif width:
            said = f"a terminal of {width} columns may have wrapped the lines of {origin}"
            self.notes.append(f"{said}: it is read as it is, since they cannot be joined for sure")
        return found.view._replace(newest_first=newest_first, width=width if sure else 0)

    def _unnamed(self, log: _Found) -> UnnamedLog:
        file = log.file
        is_flat = "/" not in file.origin or log.folder != file.broker
        folder = file.cluster, file.broker
        names = {stream.broker for stream in self._streams if stream.folder == folder} - {CLIENTS}
        sticks = len(names) == 1 and not is_flat
        return UnnamedLog(
            log.folder,
            is_flat=is_flat,
            signs=log.signs,
            named=min(names) if sticks else "",
            before=self._owners.get((*folder, file.origin)) if log.view.share is None else None,
        )

    def _note(self, logs: Sequence[tuple[_Found, Owners]]) -> None:
        """Notes whose logs are in a file, where its path does not say the same."""
        origin, folder = logs[0][0].file.origin, logs[0][0].file.broker
        brokers = sorted({broker for log, own in logs for broker in own.brokers if not log.is_client})
        containers = sorted({log.view.container for log, _ in logs if log.is_client} - {""})
        if containers or any(log.is_client and log.moments.has_lines for log, _ in logs):
            brokers.append(f"{CLIENTS} ({some(containers, _NAMED)})" if containers else CLIENTS)
        if len(logs) > 1 and not any(log.view.share for log, _ in logs):
            self.notes.append(f"{origin} holds {len(logs)} logs, one after the other, of {', '.join(brokers)}")
        elif len(brokers) > 1:
            self.notes.append(f"{origin} has lines of {', '.join(brokers)}, which are told apart")
        elif brokers and brokers != [folder]:
            self.notes.append(f"{origin} is a log of {brokers[0]}, by its lines")
        for log, own in logs:
            if len(log.signs.addresses) > 1 and not own.shared and not log.signs.nodes:
                self.notes.append(
                    f"{origin} has requests at {len(log.signs.addresses)} addresses. It does not say whether one broker has"
                    f" them all: they count as {own.broker}'s. Add the server.log of each broker"
                )


def _take(search: SectionSearch, one: TimeRange, times: OrderedTimes | None) -> None:
    """Takes the times of a range. None: it is not in order, or a worker did not see it."""
    if not search.has_ended and not search.take_ordered(times):
        for offset, block in blocks_within(one) or ():
            search.take(offset, block)


def _is_record(file: LogFile) -> bool:
    return holds_records(file.broker, file.path.name)


def _signs(one: _Found, start: Section, end: int | None, most_bytes: int) -> Signs:
    try:
        log = open_log(one.file.path)
    except OSError:  # it went away a moment ago; the slicer says so where it reads the file
        return Signs()
    seen = viewed(log, one.view)
    with seen if end is None else Part(seen, end) as seen:
        return signs_of(seen, most_bytes) if seen.skip(start.offset) else Signs()
