"""The JVM of Spark as a part of a command: is there a Java, where does its log go, what does it say if it fails."""

from __future__ import annotations

import logging
import os
import re
import shutil
import signal
import subprocess
import sys
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from jobs.errors import QueryFailedError, UserError
from jobs.lakehouse import Lakehouse, hold_in_jvm
from jobs.safe_text import printable

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_JAVA_VERSION: Final = re.compile(r'version "(?:1\.)?(\d+)')
_ENDING_SECONDS: Final = 1.0
"""From the first sign that a JVM is gone to its end as a process."""
_ADVICE: Final = "install a Java 17 or 21 runtime, or point JAVA_HOME at one"


def java_program() -> str:
    """The `java` to start: that of JAVA_HOME, else the one on the PATH."""
    home = os.environ.get("JAVA_HOME")
    return str(Path(home) / "bin" / "java") if home else "java"


def check_java() -> None:
    """Refuses a missing or wrong Java in one line; Spark would take a page."""
    home, java = os.environ.get("JAVA_HOME"), java_program()
    where = f"JAVA_HOME={home}" if home else "PATH"
    if shutil.which(java) is None:
        raise UserError(f"no Java found (looked in {where}); {_ADVICE}")
    said = subprocess.run([java, "-version"], capture_output=True, text=True, check=False)  # noqa: S603
    version = _JAVA_VERSION.search(said.stderr + said.stdout)
    if said.returncode or version is None or version.group(1) not in {"17", "21"}:
        found = f"Java {version.group(1)}" if version else "a java that does not start"
        raise UserError(f"found {found} (in {where}), which Spark 4.0 does not run on; {_ADVICE}")


@contextmanager
def started_spark(house: Lakehouse, given: SparkSession | None, *, short_run: bool) -> Iterator[SparkSession]:
    """A session that works on this lakehouse alone; ended afterwards unless it was given."""
    from pyspark.logger import PySparkLogger

    from jobs.session import spark_session

    if given is not None:
        session = given
    else:
        errors = house.log.with_name("spark.err")
        try:
            with _stderr_to(errors):
                session = spark_session("rebalance", conf=_log_to(house.log, short_run=short_run), short_run=short_run)
        except Exception as error:
            raise QueryFailedError("starting Spark", root_cause(error), errors) from error
        _keep_tracebacks(session, errors)
    # It prints errors, a page each and as JSON; the one line that is for the user comes from us.
    PySparkLogger.getLogger("DataFrameQueryContextLogger").disabled = True
    lock: Any = hold_in_jvm(session, house)
    try:
        yield session
    finally:
        _quietly(lock.close)
        if given is None:
            _quietly(session.stop)


def _log_to(log: Path, *, short_run: bool) -> dict[str, str]:
    """Spark's own log in the lakehouse, where whoever looks for the reason of a failure looks first."""
    from jobs.session import local_defaults

    options = local_defaults(short_run=short_run)["spark.driver.extraJavaOptions"]
    return {"spark.driver.extraJavaOptions": f'{options} "-Drebalance.log={log.resolve()}"'}


@contextmanager
def _stderr_to(path: Path) -> Iterator[None]:
    """What the JVM, started in here, writes to its stderr goes to a file for as long as it lives."""
    sys.stderr.flush()
    saved = os.dup(2)
    try:
        with path.open("ab") as file:
            os.dup2(file.fileno(), 2)
        yield
    finally:
        os.dup2(saved, 2)
        os.close(saved)


def _keep_tracebacks(session: SparkSession, path: Path) -> None:
    """What Python's side of Spark has to say when the JVM goes, pages of it, goes to a file too."""
    logging.getLogger().addHandler(logging.FileHandler(path, delay=True))
    server: Any = getattr(session.sparkContext, "_accumulatorServer", None)
    if server is not None:
        server.handle_error = lambda *_: logging.getLogger(__name__).error("accumulators: %s", traceback.format_exc())


def jvm_end(session: SparkSession) -> str:
    """How the JVM that we started ended, and what to do; empty if it lives."""
    process: Any = getattr(session.sparkContext._gateway, "proc", None)  # noqa: SLF001 - PySpark tells it nowhere else
    try:
        code = process.wait(_ENDING_SECONDS) if process is not None else None
    except subprocess.TimeoutExpired:
        code = None
    if code is None:
        return ""
    if code != -signal.SIGKILL:
        return f"its JVM ended, {f'exit code {code}' if code >= 0 else f'signal {-code}'}; started again, the run goes on where it was"
    return "its JVM was killed, which systems do that run out of memory; started again, the run goes on where it was"


def _quietly(close: Any) -> None:
    """Ends something in a JVM that may be gone."""
    try:
        close()
    except Exception:  # noqa: BLE001
        return


def root_cause(error: BaseException) -> str:
    """The innermost reason of an error, in one line: Java wraps Python's errors, Spark wraps Java's."""
    text = str(error)
    while (inner := error.__cause__) is not None:
        error, text = inner, f"{type(inner).__name__}: {inner}"
    java: Any = getattr(error, "_origin", None) or getattr(error, "java_exception", None)
    try:
        while java is not None:
            text = java.getMessage() or java.toString()
            java = java.getCause()
    except Exception:  # noqa: BLE001 - the JVM may be gone; what is known is in `text`
        java = None
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    if not lines:
        return type(error).__name__
    if "Traceback (most recent call last):" in text:
        return printable(_last_python_error(lines), 500)
    return printable(lines[0], 500)


_PYTHON_ERROR: Final = re.compile(r"^[\w.]+(Error|Exception|Interrupt|Exit)\b")


def _last_python_error(lines: list[str]) -> str:
    """The last line of the (last) traceback, which may be followed by Java's."""
    errors = [line for line in lines if _PYTHON_ERROR.match(line)]
    return errors[-1] if errors else lines[-1]
