"""The spool as a thread: cuts the input into slices while Spark works on the earlier ones."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Final

from jobs.common.settings import Settings
from jobs.logs.files import discover
from jobs.logs.spool import SliceReport, Spool, SpoolSettings

_LEAST_TOLERANCE_MS: Final = 1_000
_PENDING: Final = 4
"""Slices that may wait for ingest: enough that it never waits, few enough that the disk holds them."""


class Feeder:
    """One pass of the spool over the input. `error` is what it failed with, if it did."""

    def __init__(self, source: Path, folder: Path, settings: Settings, *, follow: bool, also: Path | None = None) -> None:
        """`also`: another folder that belongs to the input."""
        self._spool = Spool(
            source,
            folder,
            settings=SpoolSettings(
                timezone=settings.timezone,
                timezones=dict(settings.timezones),
                slice_lines=settings.slice_lines,
                # A line this far ahead of its log would make those after it late: it must be confirmed by them first.
                tolerance_ms=max(settings.lateness_ms, _LEAST_TOLERANCE_MS),
                max_pending=_PENDING,
            ),
            find=lambda root: sorted([*discover(root), *(discover(also) if also is not None else ())]),
        )
        self._follow = follow
        self._stop = threading.Event()
        # A daemon: it may be waiting for room that nobody will make. It can be cut off anywhere, as by kill -9.
        self._thread = threading.Thread(target=self._work, name="spool", daemon=True)
        self.slices_folder = self._spool.slices_folder
        self.slices = 0
        self.lines = 0
        self.newest: SliceReport | None = None
        self.ended = threading.Event()
        self.error: BaseException | None = None

    @property
    def finished(self) -> bool:
        """Whether the input was read to its end, or could not be read on."""
        return self.ended.is_set()

    def start(self) -> None:
        """Begins to read."""
        self._thread.start()

    def stop(self) -> None:
        """Asks the thread to end; waits for it, but not for long."""
        self._stop.set()
        self._thread.join(timeout=2)

    def _work(self) -> None:
        try:
            for report in self._spool.slices(follow=self._follow, stop=self._stop.is_set):
                self.newest = report
                self.lines += report.lines_read
                self.slices += 1
                if self._stop.is_set():
                    break
        except Exception as error:  # noqa: BLE001 - told by the main thread
            self.error = error
        finally:
            self.ended.set()
