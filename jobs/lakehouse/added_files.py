"""Data files of Delta tables: their names, which say what micro-batch wrote them, and how they are written.

Who follows a table goes by these names, not by its commits: the log of Delta is the business of delta-rs alone. A file counts from the
commit on that names it. One that no commit names, because its writer or its batch did not come to an end, is deleted by
`rebalance maintain`. Executors have no deltalake: tables.py commits.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple
from uuid import uuid4

import msgspec
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from jobs.common.stores import Place

INDEXED_COLUMNS: Final = 9
"""Columns with statistics, by which readers skip files: the first ones."""
LAST: Final = 99_999
"""Number of the last file of a micro-batch, which has what must not overtake the rest of it: the clocks."""

_NAME: Final = re.compile(r"(.+)-(\d{12})-(\d{5})-[0-9a-f]{32}\.parquet")
_BUFFERED_ROWS: Final = 20_000


class BatchFile(NamedTuple):
    """Who wrote a file: an application, in which of its micro-batches, and the number of the file in that."""

    app_id: str
    batch_id: int
    number: int

    def new_name(self) -> str:
        """A name for such a file that no other has: a repeated micro-batch must not write into files that a commit names already."""
        return f"{self.app_id}-{self.batch_id:012d}-{self.number:05d}-{uuid4().hex}.parquet"


def batch_file(name: str) -> BatchFile | None:
    """What the name of a file says; None: it was written by no micro-batch, but by `rebalance maintain` or another program."""
    found = _NAME.fullmatch(name)
    return BatchFile(found[1], int(found[2]), int(found[3])) if found else None


class AddedFile(msgspec.Struct, frozen=True):
    """A data file. `stats`: as in Delta's log, JSON."""

    name: str
    size: int
    stats: str
    rows: int


@dataclass(frozen=True)
class Layout:
    """How a file is written: for files that are rewritten soon, and for those that are kept for months."""

    level: int = 1  # of compression
    row_group: int = _BUFFERED_ROWS
    encodings: Mapping[str, str] = field(default_factory=dict)  # of columns that have no dictionary


class AddedFileWriter:
    """Writes one data file of a table, piece by piece."""

    def __init__(self, folder: Place, name: str, layout: Layout = Layout()) -> None:
        self._path = folder / name
        self._layout = layout
        self._file: Any = None
        self._writer: pq.ParquetWriter | None = None
        self._waiting: list[pa.Table] = []
        self._records = 0
        self._least: dict[str, Any] = {}
        self._most: dict[str, Any] = {}
        self._nulls: dict[str, int] = {}

    @property
    def size(self) -> int:
        """Bytes that were written so far."""
        return self._file.tell() if self._file is not None else 0

    def write(self, rows: pa.Table) -> None:
        """Appends rows."""
        if not len(rows):
            return
        self._waiting.append(rows)
        if sum(map(len, self._waiting)) >= self._layout.row_group:
            self._flush()
        self._records += len(rows)
        for name in rows.column_names[:INDEXED_COLUMNS]:
            column = rows[name]
            self._nulls[name] = self._nulls.get(name, 0) + column.null_count
            if column.null_count < len(column) and not pa.types.is_nested(column.type) and not pa.types.is_boolean(column.type):
                bounds = pc.min_max(column)
                least, most = _known(bounds["min"], up=False), _known(bounds["max"], up=True)
                self._least[name] = min(self._least.get(name, least), least)
                self._most[name] = max(self._most.get(name, most), most)

    def close(self) -> AddedFile | None:
        """Ends the file; None if there was no row."""
        self._flush()
        if self._writer is None or self._file is None:
            return None
        self._writer.close()
        size = self.size
        self._file.close()
        stats = {"numRecords": self._records, "minValues": self._least, "maxValues": self._most, "nullCount": self._nulls}
        return AddedFile(self._path.name, size, json.dumps(stats), self._records)

    def _flush(self) -> None:
        if not self._waiting:
            return
        rows = pa.concat_tables(self._waiting)
        self._waiting = []
        if self._writer is None:
            layout = self._layout
            self._file = self._path.open("wb")
            others = [name for name in _leaves(rows.schema) if name not in layout.encodings] if layout.encodings else True
            self._writer = pq.ParquetWriter(
                self._file,
                rows.schema,
                compression="zstd",
                compression_level=layout.level,
                column_encoding=dict(layout.encodings) or None,
                use_dictionary=others,
            )
        self._writer.write_table(rows, row_group_size=self._layout.row_group)


def _leaves(schema: pa.Schema) -> list[str]:
    """The columns as Parquet names them: those in lists and structs one by one."""
    columns = pq.ParquetFile(_empty(schema)).schema
    return [columns.column(number).path for number in range(len(columns))]


def _empty(schema: pa.Schema) -> pa.BufferReader:
    sink = pa.BufferOutputStream()
    pq.write_table(schema.empty_table(), sink)
    return pa.BufferReader(sink.getvalue())


def _known(value: pa.Scalar, *, up: bool) -> Any:
    """A bound as Delta's log has it: times in milliseconds, rounded outwards."""
    if not pa.types.is_timestamp(value.type):
        return value.as_py()
    us = value.cast(pa.timestamp("us", "UTC")).value
    ms = -(-us // 1_000) if up else us // 1_000
    return pa.scalar(ms, pa.timestamp("ms", "UTC")).as_py().strftime("%Y-%m-%dT%H:%M:%S.%f")[:-3] + "Z"
