"""The folder of a lakehouse: what is in it, whose it is, and that one process at a time works in it.

group_events/, rebalances/, ...   the Delta tables
_checkpoints/ingest, track        how far each query is; belongs to the tables: neither is of use without the other
_checkpoints/layout.json          what the checkpoints were made with
_checkpoints/inputs.json          where the logs were read from
_captured/                        what was read from clusters itself (--offsets-from)
_spool/                           slices of the input that wait for ingest
_logs/                            Spark's log
_lock                             held by the process that works here
"""

from __future__ import annotations

import fcntl
import json
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from jobs.errors import LakehouseError, UserError
from jobs.files import write_whole
from jobs.settings import Settings

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

LAYOUT_VERSION: Final = 1
"""Of the folder and the checkpoints. Raised when an older one can no longer be continued."""

_JVM_LOCK_SECONDS: Final = 60
_INPUTS_KEPT: Final = 16


@dataclass(frozen=True)
class Lakehouse:
    """Where things are in a lakehouse."""

    folder: Path

    @property
    def ingest_checkpoint(self) -> Path:
        """How far ingest is."""
        return self.folder / "_checkpoints" / "ingest"

    @property
    def topic_checkpoint(self) -> Path:
        """How far ingest is in a topic."""
        return self.folder / "_checkpoints" / "ingest-topic"

    @property
    def topic(self) -> Path:
        """Which topic that is."""
        return self.folder / "_checkpoints" / "topic.json"

    @property
    def track_checkpoint(self) -> Path:
        """How far track is, and the state of every group."""
        return self.folder / "_checkpoints" / "track"

    @property
    def layout(self) -> Path:
        """What the checkpoints were made with."""
        return self.folder / "_checkpoints" / "layout.json"

    @property
    def inputs(self) -> Path:
        """Where the logs were read from."""
        return self.folder / "_checkpoints" / "inputs.json"

    @property
    def captured(self) -> Path:
        """What was read from clusters."""
        return self.folder / "_captured"

    @property
    def spool(self) -> Path:
        """Slices of the input."""
        return self.folder / "_spool"

    @property
    def log(self) -> Path:
        """Spark's log, warnings and errors."""
        return self.folder / "_logs" / "spark.log"

    @property
    def lock(self) -> Path:
        """Held by the process that works here."""
        return self.folder / "_lock"


def check_path(folder: Path) -> None:
    """LakehouseError: Delta cannot have tables there."""
    try:
        str(folder).encode()
    except UnicodeEncodeError:
        raise LakehouseError(f"{folder}: the path of a lakehouse has to be UTF-8") from None


@contextmanager
def opened(folder: Path, settings: Settings) -> Iterator[Lakehouse]:
    """The lakehouse, new or continued, for this process alone."""
    lakehouse = Lakehouse(folder)
    check_path(folder)
    try:
        for path in (folder, lakehouse.layout.parent, lakehouse.log.parent):
            path.mkdir(parents=True, exist_ok=True)
        descriptor = os.open(lakehouse.lock, os.O_RDWR | os.O_CREAT, 0o644)
    except OSError as error:
        raise UserError(f"cannot write to the lakehouse {folder}: {error.strerror}") from None
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise UserError(f"another process is working in the lakehouse {folder}: wait for it or stop it") from None
        if any(folder.glob("*/_delta_log")) and not any(lakehouse.layout.parent.iterdir()):
            raise UserError(f"{folder} has tables but not the checkpoints that say how far they go: give a new folder")
        check_layout(lakehouse, settings)
        yield lakehouse
    finally:
        os.close(descriptor)


def check_layout(lakehouse: Lakehouse, settings: Settings) -> None:
    """Continues only what this program and these settings can continue; remembers what a new lakehouse is made with."""
    ours = {"layout": LAYOUT_VERSION, "shards": settings.shards}
    folder = lakehouse.folder
    try:
        theirs: Any = json.loads(lakehouse.layout.read_text(encoding="utf-8"))
    except FileNotFoundError:
        lakehouse.layout.parent.mkdir(parents=True, exist_ok=True)
        write_whole(lakehouse.layout, json.dumps(ours).encode())
        return
    except ValueError:
        raise UserError(f"{lakehouse.layout} is damaged: give a new folder") from None
    if not isinstance(theirs, dict) or theirs.get("layout") != LAYOUT_VERSION:
        raise UserError(f"{folder} was made by another version of this program: give a new folder")
    if theirs.get("shards") != settings.shards:
        raise UserError(
            f"{folder} was made with shards = {theirs.get('shards')}, not {settings.shards}: use the same settings or a new folder"
        )


def remember_input(lakehouse: Lakehouse, source: Path) -> None:
    """Keeps where logs were read from, the last place first: evidence names files relative to it."""
    here = str(source.resolve())
    known = [here, *(str(path) for path in known_inputs(lakehouse.folder) if str(path) != here)]
    write_whole(lakehouse.inputs, json.dumps(known[:_INPUTS_KEPT]).encode())


def known_inputs(folder: Path) -> list[Path]:
    """Where the logs of a lakehouse were read from, as far as it is known."""
    try:
        paths = json.loads(Lakehouse(folder).inputs.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return []
    return [Path(path) for path in paths] if isinstance(paths, list) and all(isinstance(path, str) for path in paths) else []


def hold_in_jvm(spark: SparkSession, lakehouse: Lakehouse) -> object:
    """Lets the JVM hold a lock as well, for as long as the result is kept.

    After a kill -9 of this process its JVM lives on for a moment and may still be writing, while our own lock is gone.
    A Java lock and flock do not see each other, so both can be had on one file.
    """
    jvm: Any = spark._jvm  # noqa: SLF001 - the way to Java that PySpark has
    file = jvm.java.io.RandomAccessFile(str(lakehouse.lock.resolve()), "rw")
    channel = file.getChannel()
    deadline = time.monotonic() + _JVM_LOCK_SECONDS
    while channel.tryLock() is None:
        if time.monotonic() > deadline:
            raise UserError(f"the Spark of an earlier run is still working in the lakehouse {lakehouse.folder}")
        time.sleep(0.1)
    return file
