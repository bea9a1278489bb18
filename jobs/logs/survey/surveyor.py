"""Looks through new files once, before they are read: which logs are in them, and whose they are."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path

from coordinator_model.events import CLIENTS
from jobs.logs.bytes import Fingerprint, LogBytes, PlainBytes, open_log
from jobs.logs.files import LogFile
from jobs.logs.record_judge import holds_records
from jobs.logs.slices import SlicerSettings
from jobs.logs.streams import Stream
from jobs.logs.survey.block_times import blocks_of
from jobs.logs.survey.owners import KnownNodes, Owners, UnnamedLog, clashing, owners_of
from jobs.logs.survey.ranges import blocks_within, ordered_times_of, ranges_of
from jobs.logs.survey.section_search import SectionSearch
from jobs.logs.survey.sections import WHOLE, Part, Section
from jobs.logs.survey.signs import Signs, signs_of
from jobs.logs.survey.views import AS_IT_IS, View, Wraps
from jobs.logs.workers import Workers


@dataclass(frozen=True)
class _Found:
    """A log in a new file."""

    file: LogFile
    fingerprint: Fingerprint
    section: Section
    end: int | None
    signs: Signs
    view: View = AS_IT_IS


class Surveyor:
    """Finds the logs in files that were not read before."""

    def __init__(
        self,
        streams: Sequence[Stream],
        owners: Mapping[tuple[str, str, str], Owners],
        known: dict[str, KnownNodes],
        settings: SlicerSettings,
        workers: Callable[[], Workers | None],
    ) -> None:
        """`streams`: the logs that are known. `owners`: of the logs by the place they had. `workers`: those that there are by then."""
        self.notes: list[str] = []
        self.signs: dict[str, list[Signs]] = {}  # by cluster
        self._streams = streams
        self._owners = owners
        self._known = known
        self._settings = settings
        self._workers = workers

    def survey(self, files: Sequence[tuple[LogFile, Fingerprint]]) -> list[tuple[Stream, LogFile]]:
        """The logs of these files, each with its file."""
        found: dict[str, list[_Found]] = {}
        others = []
        for file, fingerprint in files:
            if file.broker == CLIENTS or holds_records(file.broker, file.path.name):
                others.append((file, fingerprint))
            else:
                found.setdefault(file.cluster, []).extend(self._logs_in(file, fingerprint))
        names = {folder: self._cluster_of(folder, found.get(folder, ())) for folder in sorted({file.cluster for file, _ in files})}
        streams = [(Stream(file, fingerprint, cluster=names[file.cluster]), file) for file, fingerprint in others]
        for folder, logs in sorted(found.items()):
            cluster = names[folder]
            self.signs.setdefault(cluster, []).extend(log.signs for log in logs)
            unnamed = [self._unnamed(log) for log in logs]
            for node, folders in clashing(unnamed).items():
                self.notes.append(
                    f"{', '.join(folders)} have lines of node {node} at the same time, so they are different clusters:"
                    " lay them out as <cluster>/<broker>/"
                )
            owners = owners_of(unnamed, self._known.setdefault(cluster, KnownNodes()))
            for log, own in zip(logs, owners, strict=True):
                stream = Stream(log.file, log.fingerprint, owners=own, section=log.section, end=log.end, view=log.view, cluster=cluster)
                streams.append((stream, log.file))
            for _, ones in groupby(zip(logs, owners, strict=True), key=lambda pair: pair[0].file):
                self._note(list(ones))
        return streams

    def _logs_in(self, file: LogFile, fingerprint: Fingerprint) -> Iterator[_Found]:
        try:
            log = open_log(file.path)
        except OSError:  # the slicer says so where it reads the file
            yield _Found(file, fingerprint, WHOLE[0], None, Signs())
            return
        signs, wraps = Signs(), Wraps()
        most_bytes = self._settings.survey_bytes
        search = SectionSearch(self._settings.zone(file.cluster))
        try:
            for offset, block in wraps.watch(signs.watch(blocks_of(log), most_bytes)):
                search.take(offset, block)
                line_end = offset + len(block) - 1
                if search.has_ended or (line_end > most_bytes and self._look_over(file.path, fingerprint, log, line_end, search)):
                    break
        finally:
            log.close()
        starts = search.end()
        view = self._view(file.origin, wraps, newest_first=not starts)
        if len(starts) < 2 or view.width:
            yield _Found(file, fingerprint, WHOLE[0], None, signs, view)
            return
        for number, start in enumerate(starts):
            end = starts[number + 1].offset if number + 1 < len(starts) else None
            yield _Found(file, fingerprint, start, end, _signs(file, start, end, most_bytes))

    def _look_over(self, path: Path, fingerprint: Fingerprint, log: LogBytes, line_end: int, search: SectionSearch) -> bool:
        """Looks at the times of a log from a line end on, with the help of the workers; False if they cannot help.

        Where a range is not in order, or not seen by a worker, this process looks at its blocks.
        """
        workers = self._workers()
        if workers is None or not isinstance(log, PlainBytes):
            return False
        ranges = ranges_of(path, fingerprint, log, line_end, self._settings.stretch_bytes, own_times=search.own_times)
        for one, ordered in zip(ranges, workers.map(ordered_times_of, ranges) if ranges else (), strict=True):
            if search.has_ended:
                break
            if not search.take_ordered(ordered):
                for offset, block in blocks_within(one) or ():
                    search.take(offset, block)
        return True

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

    def _view(self, origin: str, wraps: Wraps, *, newest_first: bool) -> View:
        """How a file is to be read. What is unusual is noted."""
        width, sure = (0, False) if newest_first else wraps.width()
        if newest_first:
            self.notes.append(f"{origin} lists the newest line first: it is read from its end, and its lines are numbered from there")
        elif sure:
            self.notes.append(f"a terminal of {width} columns has wrapped the lines of {origin}: they are joined again")
        elif width:
            said = f"a terminal of {width} columns may have wrapped the lines of {origin}"
            self.notes.append(f"{said}: it is read as it is, since they cannot be joined for sure")
        return View(newest_first=newest_first, width=width if sure else 0)

    def _unnamed(self, log: _Found) -> UnnamedLog:
        file = log.file
        is_flat = "/" not in file.origin
        folder = file.cluster, file.broker
        names = {stream.broker for stream in self._streams if stream.folder == folder}
        sticks = len(names) == 1 and not is_flat
        return UnnamedLog(
            file.broker,
            is_flat=is_flat,
            signs=log.signs,
            named=min(names) if sticks else "",
            before=self._owners.get((*folder, file.origin)),
        )

    def _note(self, logs: Sequence[tuple[_Found, Owners]]) -> None:
        """Notes whose logs are in a file, where its path does not say the same."""
        origin, folder = logs[0][0].file.origin, logs[0][0].file.broker
        brokers = sorted({broker for _, own in logs for broker in own.brokers})
        if len(logs) > 1:
            self.notes.append(f"{origin} holds {len(logs)} logs, one after the other, of {', '.join(brokers)}")
        elif len(brokers) > 1:
            self.notes.append(f"{origin} has lines of {', '.join(brokers)}, which are told apart")
        elif brokers != [folder]:
            self.notes.append(f"{origin} is a log of {brokers[0]}, by its lines")
        for log, own in logs:
            if len(log.signs.addresses) > 1 and not own.shared and not log.signs.nodes:
                self.notes.append(
                    f"{origin} has requests at {len(log.signs.addresses)} addresses. It does not say whether one broker has"
                    f" them all: they count as {own.broker}'s. Add the server.log of each broker"
                )


def _signs(file: LogFile, start: Section, end: int | None, most_bytes: int) -> Signs:
    try:
        log: LogBytes = open_log(file.path)
    except OSError:  # it went away a moment ago; the slicer says so where it reads the file
        return Signs()
    try:
        if end is not None:
            log = Part(log, end)
        return signs_of(log, most_bytes) if log.skip(start.offset) else Signs()
    finally:
        log.close()
