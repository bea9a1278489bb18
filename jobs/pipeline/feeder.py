"""Cuts the log files into slices, in a thread, while Spark works on the slices that are already there."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import pyarrow.compute as pc
import pyarrow.parquet as pq

from jobs.common.errors import UserError
from jobs.common.failures import failure
from jobs.common.settings import Settings
from jobs.common.stores import Place, StorePath, readable
from jobs.lakehouse.folder import Lakehouse
from jobs.logs.files import LogFile, discover, left_out_in
from jobs.logs.spool import SliceReport, Spool, SpoolSettings
from jobs.logs.troubles import Troubles
from jobs.logs.workers import Workers

_LEAST_TOLERANCE_MS: Final = 1_000
_NOTES_SHOWN: Final = 5
_PENDING: Final = 4
"""Slices that may wait for ingest: enough that it never waits, few enough that the disk holds them."""


def check_source(source: Path, *, once: bool) -> None:
    """UserError: there are no logs to read."""
    try:
        files = discover(source)
    except FileNotFoundError:
        raise UserError(f"no such file or folder: {source}") from None
    except OSError as error:
        raise UserError(f"cannot read {source}: {error.strerror}") from None
    if once and not files:
        left = left_out_in(source)
        raise UserError(f"no log files in {source}: no file has a line of a broker or a consumer{f' ({left})' if left else ''}")


class Feeder:
    """One pass of the spool over the input. `error`: the exception that ended it early, if any."""

    def __init__(
        self, source: Path, house: Lakehouse, settings: Settings, *, follow: bool, also: Path | None = None, tell: Callable[[str], None]
    ) -> None:
        """`also`: another folder that belongs to the input. `tell` gets a line about files that cannot be read."""
        own = _as_seen_from(source, house.folder)
        self._spool = Spool(
            source,
            house.spool,
            settings=SpoolSettings.of(
                settings,
                slice_lines=settings.slice_lines,
                stretch_bytes=settings.stretch_bytes,
                # A line this far ahead of its log would make those after it late: it must be confirmed by them first.
                tolerance_ms=max(settings.lateness_ms, _LEAST_TOLERANCE_MS),
                max_pending=_PENDING,
                fold=True,
                half_lines=settings.half_lines,
                client_group=settings.client_group,
            ),
            find=lambda root: sorted([*_outside(discover(root), own), *(discover(also) if also is not None else ())]),
        )
        self._spool.troubles.tell = tell
        self._spool.check_zones("give a new lakehouse (`rebalance replay` keeps the times)")
        self._follow = follow
        self._stop = threading.Event()
        # A daemon: it may wait for room that ingest makes no more. It can be cut off anywhere, as by kill -9.
        self._thread = threading.Thread(target=self._work, name="spool", daemon=True)
        self.files = self._spool.files
        self.slices = 0
        # Slices that wait already were read by a run before this one, of which this is the rest.
        waiting = (pq.read_table(readable(self.files.path(number)), columns=["lines"]) for number in self.files.present())
        self.lines: int = sum(pc.sum(table["lines"]).as_py() or 0 for table in waiting)
        self.newest: SliceReport | None = None
        self.ended = threading.Event()
        self.error: BaseException | None = None

    def start(self) -> None:
        """Starts the thread. Other processes that read come soon (`share_with`)."""
        self._spool.expects_workers = True
        self._thread.start()

    def cut(self, most_lines: int) -> list[Place] | None:
        """Cuts all slices now, in this thread. None: the input has more lines; the slices wait for a run of the pipeline."""
        paths = []
        for report in self._spool.slices(stop=lambda: True):
            self._take(report)
            paths.append(report.path)
            if self.lines > most_lines:
                return None
        return paths if self.newest is None or self.newest.last else None

    def share_with(self, workers: Workers) -> None:
        """Lets other processes read from now on, where enough of the logs is left."""
        self._spool.workers = workers

    def tidy(self) -> None:
        """Deletes what is left of the slices when all were taken: Spark says so of a slice when it begins the next one."""
        self.files.delete_up_to(self.files.newest())
        self.files.sweep()

    def stop(self) -> None:
        """Asks the thread to end; waits for it up to two seconds."""
        self._stop.set()
        self._thread.join(timeout=2)

    def has_input(self, interrupted: Callable[[], bool]) -> bool:
        """Whether the input has new lines, or cannot be read. Waits until that is clear."""
        while not (self.ended.is_set() or self.slices or self._spool.waits_for_workers or interrupted()):
            time.sleep(0.01)
        return self.slices > 0 or self._spool.waits_for_workers or self.error is not None

    def is_vain(self, interrupted: Callable[[], bool]) -> bool:
        """Whether no line of the whole input is understood, or it cannot be read.

        Waits until a first line is understood, all were read, or slices wait for Spark.
        """
        while not (self.ended.is_set() or interrupted() or any(stream.understood for stream in self._spool.streams)):
            if self._spool.waits_for_workers or len(self.files.present()) >= _PENDING:  # or waits for room, or is about to
                return False
            time.sleep(0.01)
        return self.ended.is_set() and (self.error is not None or not self.understood)

    def take_notes(self) -> list[str]:
        """What is worth saying about whose logs these are, since the last call, in a few lines."""
        notes = self._spool.notes
        taken, notes[:] = list(notes), []
        more = [f"… and {len(taken) - _NOTES_SHOWN} more such files: `rebalance inspect` lists them"]
        return taken if len(taken) <= _NOTES_SHOWN else taken[:_NOTES_SHOWN] + more

    @property
    def understood(self) -> bool:
        """Whether some line of the input, now or earlier, is one of a broker, a client or a record. An empty input is no problem."""
        return self._spool.understood

    @property
    def troubles(self) -> Troubles:
        """The files that were not read, or not to their ends."""
        return self._spool.troubles

    def unread_bytes(self) -> int | None:
        """Bytes of the log files that were not read yet when the newest slice was cut."""
        return self.newest.bytes_total - self.newest.bytes_read if self.newest else None

    def share_read(self) -> float | None:
        """Of the bytes of the log files: what was read so far, before a slice is cut, too. None: they were not looked at yet."""
        streams = [stream for stream in self._spool.streams if stream.file]
        return (
            sum(stream.bytes_read() for stream in streams) / max(sum(stream.signature.size for stream in streams), 1) if streams else None
        )

    def check(self, log: Path) -> None:
        """Raises the error that ended it. `log`: Spark's, which has more."""
        if self.error is not None:
            raise failure("reading the input", self.error, log)

    def _work(self) -> None:
        try:
            for report in self._spool.slices(follow=self._follow, stop=self._stop.is_set):
                self._take(report)
                if self._stop.is_set():
                    break
        except Exception as error:  # noqa: BLE001 - the main thread raises it
            self.error = error
        finally:
            self.ended.set()

    def _take(self, report: SliceReport) -> None:
        self.newest = report
        self.lines += report.lines_read
        self.slices += 1


def _as_seen_from(source: Path, lake: Place) -> Path | None:
    """The path of the lakehouse below the input; None: it does not lie there."""
    if isinstance(lake, StorePath):
        return None
    root, folder = source.resolve(), lake.resolve()
    return source / folder.relative_to(root) if folder.is_relative_to(root) else None


def _outside(files: list[LogFile], own: Path | None) -> list[LogFile]:
    """The files that are not the lakehouse's own."""
    return files if own is None else [file for file in files if not file.path.is_relative_to(own)]


@contextmanager
def feeding(
    source: Path | None,
    house: Lakehouse,
    settings: Settings,
    *,
    follow: bool,
    also: Path | None = None,
    tell: Callable[[str], None] = lambda _: None,
) -> Iterator[Feeder | None]:
    """A feeder at work for as long as this lasts; None: there are no logs to read."""
    if source is None:
        yield None
        return
    try:
        feeder = Feeder(source, house, settings, follow=follow, also=also, tell=tell)
    except (OSError, ValueError) as error:  # a spool that another version wrote
        raise UserError(str(error)) from None
    feeder.start()
    try:
        yield feeder
    finally:
        feeder.stop()
