"""Reads a folder of logs whose brokers are known by what the lines say, not by the names of folders alone."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from jobs.logs.bytes import Fingerprint
from jobs.logs.files import LogFile
from jobs.logs.slicer import Slicer
from jobs.logs.slices import SlicerSettings
from jobs.logs.streams import Stream
from jobs.logs.survey.owners import KnownNodes, Owners
from jobs.logs.survey.signs import Signs
from jobs.logs.survey.surveyor import Surveyor
from jobs.logs.workers import Workers


class SurveyedSlicer(Slicer):
    """A slicer that looks through new files before it reads them."""

    def __init__(self, find: Callable[[], list[LogFile]], settings: SlicerSettings) -> None:
        super().__init__(find, settings)
        self.workers: Workers | None = None  # may come at any time
        self.known: dict[str, KnownNodes] = {}  # by cluster
        self.notes: list[str] = []  # what a reader should know about whose logs these are
        self.signs: dict[str, list[Signs]] = {}  # of the logs found in the last scan, by cluster

    def _streams_in(
        self, files: Sequence[tuple[LogFile, Fingerprint]], owners: Mapping[tuple[str, str, str], Owners]
    ) -> list[tuple[Stream, LogFile]]:
        """The logs in new files, with their brokers."""
        surveyor = Surveyor(self.streams, owners, self.known, self.settings, lambda: self.workers)
        streams = surveyor.survey(files)
        self.notes += surveyor.notes
        self.signs = surveyor.signs
        return streams
