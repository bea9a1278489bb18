"""Checks the executors of a cluster with a small job before a query starts.

A defect of an executor would show late, and as a page of Java. A lakehouse that the executor does not share would show as a missing file in
the first batch, or not at all, if there is another folder of that name. A missing package would show in the first batch that needs it.
"""

from __future__ import annotations

import hashlib
import re
import shutil
import socket
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack
from functools import partial
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final
from uuid import uuid4

from jobs.common.errors import StoreError, UserError
from jobs.common.stores import Place, place_of
from jobs.pipeline.session import is_local

if TYPE_CHECKING:
    from importlib.abc import Traversable

    from pyspark.sql import SparkSession

PACKAGES: Final = ("coordinator_model", "jobs", "schemas")
_NO_PYTHON: Final = re.compile(r'Cannot run program "[^"]*"')
_ROUNDS: Final = 5
"""Executors start one by one, and the first may have done all tasks before the second is there."""


def check_executors(spark: SparkSession, folders: Sequence[Place]) -> None:
    """UserError unless all present executors see these folders, may write to them, and can import this very project.

    Executors that start later are not checked. Without a cluster there is nothing to check.
    """
    context = spark.sparkContext
    if is_local(context.master):
        return
    if shutil.which(context.pythonExec) is None:
        raise UserError(
            f"the driver's machine has no {context.pythonExec}, in which Spark plans: spark.pyspark.python must be right there, too "
            "(docs/cluster.md)"
        )
    marker = f".seen-by-all-{uuid4().hex}"
    with ExitStack() as markers:
        for folder in folders:
            markers.callback(_mark(folder / marker).unlink, missing_ok=True)
        look = partial(look_around, markers=[str(folder / marker) for folder in folders], expected=fingerprint())
        seen: set[str] = set()
        for _ in range(_ROUNDS):
            tasks = 2 * context.defaultParallelism
            try:
                answers = context.parallelize(range(tasks), tasks).mapPartitions(look).collect()
            except Exception as error:
                raise UserError(f"the executors cannot run this project: {_cause(error)} (what to ship: docs/cluster.md)") from error
            for _, problem in answers:
                if problem:
                    raise UserError(problem)
            seen.update(place for place, _ in answers)
            if len(seen) >= _executors(spark):
                break


def _mark(path: Place) -> Place:
    try:
        return _make(path)
    except OSError as error:
        raise UserError(f"cannot write to {path.parent}: {error.strerror}") from None


def _cause(error: Exception) -> str:
    """The innermost reason, which does not name a Python that cannot be started."""
    from jobs.common.failures import root_cause  # the driver's: an executor has not all of its imports

    started = _NO_PYTHON.search(str(error))
    return started.group() if started else root_cause(error)


def look_around(numbers: Iterable[int], *, markers: Sequence[str], expected: str) -> Iterator[tuple[str, str]]:
    """Runs on an executor; yields its place, and the problem there, if any."""
    host = socket.gethostname()
    place = f"{host}:{Path.cwd()}"
    for number in numbers:
        yield place, _problem(host, number, markers, expected)


def _problem(host: str, number: int, markers: Sequence[str], expected: str) -> str:
    # The functions that Spark runs in Python import these packages. An ImportError ends the job, and is its message.
    import msgspec  # noqa: F401
    import pandas as pd  # noqa: F401
    import pyarrow as pa  # noqa: F401

    for marker in map(place_of, markers):
        if problem := _problem_with(marker, host, number):
            return problem
    if fingerprint() != expected:
        return f"the executor on {host} has another version of this project than the driver: ship what `make package` builds now"
    return ""


def _problem_with(marker: Place, host: str, number: int) -> str:
    try:
        if not marker.exists():
            return (
                f"the executor on {host} does not see {marker.parent}: the lakehouse must lie in a folder that the driver and all "
                "executors share under the same path, or in an object store (docs/cluster.md)"
            )
        _make(marker.with_name(f"{marker.name}-{number}")).unlink(missing_ok=True)
    except StoreError as error:
        return f"the executor on {host} {error}"
    except OSError as error:
        return f"the executor on {host} cannot write to {marker.parent}: {error.strerror}"
    return ""


def fingerprint() -> str:
    """A digest of the project's Python sources and pages of tables, as this process reads them: from a folder or out of a zip."""
    digest = hashlib.sha256()
    for package in PACKAGES:
        for name, content in sorted(_sources(files(package), package)):
            digest.update(f"{name}\0{len(content)}\0".encode())
            digest.update(content)
    return digest.hexdigest()


def _sources(folder: Traversable, name: str) -> Iterator[tuple[str, bytes]]:
    for entry in folder.iterdir():
        path = f"{name}/{entry.name}"
        if entry.is_dir():
            yield from _sources(entry, path)
        elif entry.name.endswith((".py", ".md")):
            yield path, entry.read_bytes()


def _make(path: Place) -> Place:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.touch()
    return path


def _executors(spark: SparkSession) -> int:
    """The number of executors now. The driver stores blocks as they do, and is counted with them."""
    java: Any = spark.sparkContext._jsc  # noqa: SLF001 - the way to Java that PySpark has
    return int(java.sc().getExecutorMemoryStatus().size()) - 1
