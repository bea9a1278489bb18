"""Reads a folder of logs whose brokers are known by what the lines say, not by the names of folders alone."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from typing import Final

from coordinator_model.events import CLIENTS
from jobs.common.errors import UserError
from jobs.logs.bytes import Fingerprint
from jobs.logs.files import LogFile
from jobs.logs.slicer import Slicer
from jobs.logs.slices import SlicerSettings
from jobs.logs.streams import Stream
from jobs.logs.survey.owners import KnownNodes, Owners
from jobs.logs.survey.signs import Signs
from jobs.logs.survey.surveyor import Surveyor
from jobs.logs.workers import Workers

_POLL_SECONDS: Final = 0.1


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

    def _streams_in(
        self, files: Sequence[tuple[LogFile, Fingerprint]], owners: Mapping[tuple[str, str, str], Owners]
    ) -> list[tuple[Stream, LogFile]]:
        """The logs in new files, with their brokers."""
        has_workers = self.workers is not None or self.expects_workers
        surveyor = Surveyor(self.streams, owners, self.known, self.settings, self._workers_for, has_workers)
        streams = surveyor.survey(files)
        self.notes += surveyor.notes
        self.zones += surveyor.zones
        self.signs = surveyor.signs
        return streams

    def _workers_for(self, waits: bool) -> Workers | None:  # noqa: FBT001
        return self.awaited_workers() if waits else self.workers

    def awaited_workers(self) -> Workers | None:
        """The workers, when they are there; None if none are expected, or it was stopped before.

        What this process could do meanwhile costs more than it brings: each slice has a row of every member.
        """
        self.waits_for_workers = True
        while self.workers is None and self.expects_workers and not self.is_stopped():
            time.sleep(_POLL_SECONDS)
        self.waits_for_workers = False
        return self.workers
