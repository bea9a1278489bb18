"""The JVM of Spark as a part of a command: its start, its log, its lock on the lakehouse, and how it ended."""

from __future__ import annotations

import io
import logging
import os
import signal
import subprocess
import sys
import time
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext, suppress
from pathlib import Path
from threading import Thread
from typing import TYPE_CHECKING, Any, Final, TextIO

from pyspark.logger import PySparkLogger

from jobs.common.errors import QueryFailedError, UserError
from jobs.common.failures import root_cause
from jobs.common.jars import of_s3, of_spark
from jobs.common.java import check_java
from jobs.common.stores import Place, StorePath
from jobs.lakehouse.folder import Lakehouse
from jobs.pipeline.session import local_defaults, spark_session

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_ENDING_SECONDS: Final = 1.0
"""From the first sign that a JVM has gone to its end as a process."""
_LOCK_SECONDS: Final = 60


def ensure_spark(folder: Place, say: Callable[[str], None]) -> None:
    """Downloads what Spark needs for a lakehouse, unless it is there. UserError: it cannot be had, or there is no Java."""
    check_java()
    of_spark().ensure(say)
    if isinstance(folder, StorePath):
        of_s3().ensure(say)


@contextmanager
def started_spark(house: Lakehouse, given: SparkSession | None, *, once: bool) -> Iterator[SparkSession]:
    """A session that works on this lakehouse alone. Stopped afterwards, unless it was given."""
    errors = house.log.with_name("spark.err")
    with nullcontext() if given is not None else _stderr_to(errors):
        yield from _session(house, given, errors, once=once)


def _session(house: Lakehouse, given: SparkSession | None, errors: Path, *, once: bool) -> Iterator[SparkSession]:
    if given is not None:
        session = given
    else:
        try:
            s3 = isinstance(house.folder, StorePath)
            session = spark_session("rebalance", conf=_log_to(house.log, once=once), once=once, s3=s3)
        except Exception as error:
            raise QueryFailedError("starting Spark", root_cause(error), errors) from error
        _tame(session, errors)
    # This logger prints each error as a page of JSON; the command prints the one line for the user.
    PySparkLogger.getLogger("DataFrameQueryContextLogger").disabled = True
    lock = hold_in_jvm(session, house)
    try:
        yield session
    finally:
        with suppress(Exception):  # the JVM may have gone
            lock.close()
        if given is None:
            with suppress(Exception):
                session.stop()


def _log_to(log: Path, *, once: bool) -> dict[str, str]:
    """Settings that write Spark's log into the lakehouse."""
    options = local_defaults(once=once)["spark.driver.extraJavaOptions"]
    return {"spark.driver.extraJavaOptions": f'{options} "-Drebalance.log={log.resolve()}"'}


@contextmanager
def _stderr_to(path: Path) -> Iterator[None]:
    """Inside, JVMs and native libraries write their stderr to this file, a JVM for as long as it lives. Python writes where it did."""
    python = sys.stderr
    python.flush()
    saved = os.dup(2)
    try:
        with path.open("ab") as file:
            os.dup2(file.fileno(), 2)
        if _descriptor(python) == 2:
            sys.stderr = os.fdopen(saved, "w", buffering=1, encoding=python.encoding, errors=python.errors, closefd=False)
        yield
    finally:
        sys.stderr.flush()
        sys.stderr = python
        os.dup2(saved, 2)
        os.close(saved)


def _descriptor(stream: TextIO) -> int:
    try:
        return stream.fileno()
    except (OSError, ValueError):
        return -1


def _tame(session: SparkSession, path: Path) -> None:
    """Lets PySpark end at once, and write the pages that it logs when the JVM goes to a file."""
    logging.getLogger().addHandler(_QuietFile(path, delay=True))
    server: Any = getattr(session.sparkContext, "_accumulatorServer", None)
    if server is not None:
        server.shutdown = Thread(target=server.shutdown, daemon=True).start  # it takes half a second: nobody has to wait for it
        server.handle_error = lambda *_: logging.getLogger(__name__).error("accumulators: %s", traceback.format_exc())


class _QuietFile(logging.FileHandler):
    """A log file that may be impossible to write: the disk may be full, which is what the command reports."""

    def handleError(self, record: logging.LogRecord) -> None:  # noqa: N802 - the name of the base class
        """Says nothing."""


def jvm_end(session: SparkSession) -> str:
    """How the JVM that this process started ended, and what to do; empty if it lives."""
    process: Any = getattr(session.sparkContext._gateway, "proc", None)  # noqa: SLF001 - PySpark has no public way to it
    try:
        code = process.wait(_ENDING_SECONDS) if process is not None else None
    except subprocess.TimeoutExpired:
        code = None
    if code is None:
        return ""
    if code != -signal.SIGKILL:
        return f"its JVM ended, {f'exit code {code}' if code >= 0 else f'signal {-code}'}; the next run resumes where this one stopped"
    return "its JVM was killed, perhaps because memory ran out; the next run resumes where this one stopped"


def hold_in_jvm(spark: SparkSession, lakehouse: Lakehouse) -> Any:
    """Lets the JVM hold a lock as well, until the result is closed.

    After a kill -9 of this process its JVM lives on for a moment and may still write, while the lock of this process is gone.
    A Java lock and flock do not see each other, so one file can have both.
    """
    if isinstance(lakehouse.lock, StorePath):
        return io.BytesIO()  # a lease outlives the JVM
    jvm: Any = spark._jvm  # noqa: SLF001 - the way to Java that PySpark has
    file = jvm.java.io.RandomAccessFile(str(lakehouse.lock.resolve()), "rw")
    channel = file.getChannel()
    deadline = time.monotonic() + _LOCK_SECONDS
    while channel.tryLock() is None:
        if time.monotonic() > deadline:
            raise UserError(f"the Spark of an earlier run is still working in the lakehouse {lakehouse.folder}")
        time.sleep(0.1)
    return file
