"""Answers from a lakehouse that may grow: each is computed once per version of the tables, and kept as the bytes that are sent."""

from __future__ import annotations

import ctypes
import hashlib
import os
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from tempfile import TemporaryDirectory
from typing import Any, Final, TypeVar

import duckdb
from deltalake.exceptions import DeltaError

from jobs.answers import ask, questions
from jobs.answers.duckdb_views import QuestionReader
from jobs.answers.formats import as_csv, as_json, for_browser
from jobs.common.errors import LakehouseError
from jobs.common.stores import Place
from jobs.common.text import printable
from jobs.lakehouse import opening
from schemas.names import PIPELINE_HEALTH, READABLE

_KEPT_BYTES: Final = 24 << 20
_MEMORY: Final = "110MB"  # of DuckDB: what does not fit goes to a temporary folder
_MORE_MEMORY: Final = "1GB"  # for an answer that does not do with that
_FRESH_S: Final = 0.5  # browsers that ask within this time share a look at the folders
_TRIES: Final = 2  # `rebalance maintain` may delete a file that was about to be read

_C: Final = ctypes.CDLL(None) if os.name == "posix" else None
_M_ARENA_MAX: Final = -8  # of malloc.h

_Made = TypeVar("_Made")


class BusyError(LakehouseError):
    """The tables changed while they were read, again and again. Asking once more may help."""


@dataclass(frozen=True)
class Reply:
    """What is sent: JSON, or a file of this name."""

    body: bytes
    file: str = ""

    @cached_property
    def etag(self) -> str:
        """A tag that changes only with the body."""
        return f'"{hashlib.blake2b(self.body, digest_size=12).hexdigest()}"'


class Store:
    """Reads one lakehouse for many requests. Threads may share it."""

    def __init__(self, folder: Place) -> None:
        _few_arenas()
        self.folder = folder
        self._lock = threading.Lock()
        self._reader: QuestionReader | None = None
        self._reader_version = ""
        self._spill = TemporaryDirectory(prefix="rebalance-dashboard-")
        self._replies: OrderedDict[tuple[Any, ...], Reply] = OrderedDict()
        self._kept = 0
        self._seen: tuple[float, dict[str, tuple[str, int]]] = (-1.0, {})

    def versions(self) -> dict[str, tuple[str, int]]:
        """The newest version of each table that is there."""
        seen_at, found = self._seen
        if time.monotonic() - seen_at > _FRESH_S:
            versions = ((name, opening.version_of(self.folder / name)) for name in (*READABLE, PIPELINE_HEALTH))
            found = {name: version for name, version in versions if version is not None}
            self._seen = (time.monotonic(), found)
        return found

    def version(self) -> str:
        """A short text that changes when a table that questions read does."""
        versions = self.versions()
        return hashlib.blake2b(repr([(name, versions.get(name)) for name in READABLE]).encode(), digest_size=8).hexdigest()

    def reply(self, key: tuple[Any, ...], compute: Callable[[QuestionReader], Any]) -> Reply:
        """What `compute` makes of the tables, encoded; the same bytes as long as no table changes. `key`: what is asked, with its values.

        LakehouseError: there is no lakehouse, or a table is missing. BusyError: files vanish as they are read.
        """
        with self._lock:
            self._opened()
            if (reply := self._replies.get(key)) is not None:
                self._replies.move_to_end(key)
                return reply
            reply = self._replies[key] = self._tried(lambda reader: Reply(for_browser(compute(reader))))
            self._kept += len(reply.body)
            while self._kept > _KEPT_BYTES and len(self._replies) > 1:
                _, dropped = self._replies.popitem(last=False)
                self._kept -= len(dropped.body)
            return reply

    def _tried(self, compute: Callable[[QuestionReader], _Made]) -> _Made:
        for _ in range(_TRIES):
            reader = self._opened()
            try:
                return _computed(reader, compute)
            except (duckdb.IOException, duckdb.HTTPException, DeltaError, OSError) as error:
                self._forget()
                problem = printable(str(error).splitlines()[0], 300)
        raise BusyError(f"the tables change while they are read ({problem}): this page tries again in a moment")

    def _opened(self) -> QuestionReader:
        """The reader of the present version."""
        version = self.version()
        if self._reader is None or version != self._reader_version:
            self._forget()
            self._reader = QuestionReader(self.folder, alone=True)
            self._reader.connection.execute(f"SET memory_limit = '{_MEMORY}'")
            self._reader.execute("SET temp_directory = ?", [self._spill.name])
            self._reader_version = version
        return self._reader

    def _forget(self) -> None:
        if self._reader is not None:
            self._reader.connection.close()
        self._reader = None
        self._replies.clear()
        self._kept = 0
        self._seen = (-1.0, {})

    def export(self, name: str, given: Mapping[str, str], form: str) -> str:
        """The same answer as CSV or as JSON, as `rebalance ask --format` prints it. `form`: csv or json."""
        question = questions.load(name)
        with self._lock:
            answer = self._tried(lambda reader: ask.BoundQuestion(reader, question, given).answer())
        return as_csv(answer) if form == "csv" else as_json(answer.by_name()) + "\n"


def _computed(reader: QuestionReader, compute: Callable[[QuestionReader], _Made]) -> _Made:
    try:
        return compute(reader)
    except duckdb.OutOfMemoryException:
        reader.connection.execute(f"SET memory_limit = '{_MORE_MEMORY}'")
        try:
            return compute(reader)
        finally:
            reader.connection.execute(f"SET memory_limit = '{_MEMORY}'")
    finally:
        _give_back()


def _few_arenas() -> None:
    """Lets threads share their free memory, where the C library is glibc: each would keep its own."""
    mallopt = getattr(_C, "mallopt", None)
    if mallopt is not None:
        mallopt(_M_ARENA_MAX, 1)


def _give_back() -> None:
    """Hands free memory back to the system, where its C library can: an answer needs it for a moment, the process runs for days."""
    trim = getattr(_C, "malloc_trim", None)
    if trim is not None:
        trim(0)
