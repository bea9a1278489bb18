"""Appends files to a Delta table by writing the commit itself, and remembers what the table was after it.

An append of delta-rs opens the table, plans the write and goes through all files of the table: 20 to 60 ms of processor time, more the
longer the table is. A pair of micro-batches has up to eight appends, however few their rows. This one takes 3 to 5 ms.

It writes what the Delta protocol asks of a blind append. Delta-rs makes the tables, changes them, writes their checkpoints, and commits
where another program gave a table features that ask for more.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any, Final
from uuid import uuid4

import pyarrow as pa
from deltalake import CommitProperties, DeltaTable, Transaction
from deltalake.transaction import AddAction

from jobs.common.places import version as own_version
from jobs.lakehouse import delta_log
from jobs.lakehouse.added_files import AddedFile, AddedFileWriter

_REMEMBERED_SECONDS: Final = 60.0
"""For so long after a commit its successors are surely there: `rebalance maintain` deletes old ones."""
_PROTOCOL: Final = (1, 2)
"""Versions for readers and writers of tables in which an append has to keep nothing but columns that must not be null."""
_TRIES: Final = 20
"""Other writers may come in between, such as `maintain`."""
_NO_FILE: Final = (0, 0)


@dataclass(frozen=True)
class _Seen:
    """A table as this process left it."""

    version: int
    commit: tuple[int, int]  # which file it is, and when it was written: another table may lie there since
    at: float  # monotonic seconds
    schema: pa.Schema
    plain: bool  # an append has to do no more than the protocol's first versions ask
    written: Mapping[str, int | None]  # the last version of each application that was asked for

    def is_newest(self, path: Path) -> bool:
        """Whether nobody has written to the table since, nor put another one in its place."""
        recent = time.monotonic() - self.at < _REMEMBERED_SECONDS
        return recent and _file(path, self.version) == self.commit and _file(path, self.version + 1) == _NO_FILE


_SEEN: Final[dict[Path, _Seen]] = {}


def append(path: Path, rows: pa.Table, app_id: str, version: int, files: Sequence[AddedFile], checkpoint_interval: int) -> int | None:
    """Appends files, and rows as one more, as the version of an application; returns the table's new version.

    None: that version or a later one is there. ValueError: the rows do not fit the table.
    """
    own: AddedFile | None = None
    for _ in range(_TRIES):
        seen = _seen(path, app_id)
        done = seen.written[app_id]
        if done is not None and done >= version:
            return None
        own = own or _written(path, rows, seen.schema)
        added = [*files, *([own] if own is not None else [])]
        if not seen.plain:
            _SEEN.pop(path, None)
            return _commit_by_library(path, added, app_id, version)
        number = seen.version + 1
        if _commit(path, number, _actions(added, app_id, version)):
            written = {**seen.written, app_id: version}
            _SEEN[path] = replace(seen, version=number, commit=_file(path, number), at=time.monotonic(), written=written)
            if (number + 1) % checkpoint_interval == 0:
                DeltaTable(str(path)).create_checkpoint()
            return number
        _SEEN.pop(path, None)  # another thread may have done so
    raise OSError(f"{path}: other writers came in between {_TRIES} times")


def _seen(path: Path, app_id: str) -> _Seen:
    """The table as it is: as it is remembered, unless somebody else may have changed it."""
    seen = _SEEN.get(path)
    if seen is not None and app_id in seen.written and seen.is_newest(path):
        return seen
    table = DeltaTable(str(path))
    number, protocol = table.version(), table.protocol()
    plain = (protocol.min_reader_version, protocol.min_writer_version) <= _PROTOCOL and not table.metadata().partition_columns
    schema = pa.schema(table.schema().to_arrow())
    written = {app_id: table.transaction_version(app_id)}
    seen = _SEEN[path] = _Seen(number, _file(path, number), time.monotonic(), schema, plain, written)
    return seen


def _file(path: Path, version: int) -> tuple[int, int]:
    """Which file a commit is; _NO_FILE if it is not there."""
    try:
        status = (path / delta_log.LOG / f"{version:020d}.json").stat()
    except FileNotFoundError:
        return _NO_FILE
    return status.st_ino, status.st_mtime_ns


def _written(path: Path, rows: pa.Table, schema: pa.Schema) -> AddedFile | None:
    writer = AddedFileWriter(path)
    writer.write(rows.cast(pa.schema([schema.field(name) for name in rows.column_names])))
    return writer.close()


def _commit_by_library(path: Path, files: Sequence[AddedFile], app_id: str, version: int) -> int:
    table, now = DeltaTable(str(path)), time.time_ns() // 1_000_000
    actions: list[Any] = [AddAction(file.name, file.size, {}, now, True, file.stats) for file in files]
    properties = CommitProperties(app_transactions=[Transaction(app_id, version)])
    table.create_write_transaction(actions, mode="append", schema=table.schema(), commit_properties=properties)
    table.update_incremental()
    return table.version()


@cache
def _engine() -> str:
    return f"rebalance {own_version()}"


def _actions(files: Sequence[AddedFile], app_id: str, version: int) -> list[dict[str, Any]]:
    now = time.time_ns() // 1_000_000  # says when the files were written
    info = {"timestamp": now, "operation": "WRITE", "operationParameters": {"mode": "Append"}, "engineInfo": _engine()}
    adds = [
        {"path": file.name, "partitionValues": {}, "size": file.size, "modificationTime": now, "dataChange": True, "stats": file.stats}
        for file in files
    ]
    return [{"commitInfo": info}, {"txn": {"appId": app_id, "version": version, "lastUpdated": now}}, *({"add": add} for add in adds)]


def _commit(path: Path, version: int, actions: Sequence[Mapping[str, Any]]) -> bool:
    """Makes a version, as a whole or not at all; False if somebody else has made it."""
    log = path / delta_log.LOG
    draft = log / f".{uuid4()}.json"
    draft.write_text("".join(json.dumps(action) + "\n" for action in actions), encoding="utf-8")
    try:
        os.link(draft, log / f"{version:020d}.json")
    except FileExistsError:
        return False
    finally:
        draft.unlink()
    return True
