"""Data files that several processes write for one commit of a Delta table.

A file counts from the commit on that names it. One that no commit names, because its writer or its batch did not come to an end, is deleted
by `rebalance maintain` with the files that no version needs. Executors have no deltalake: tables.py commits.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final
from uuid import uuid4

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

INDEXED_COLUMNS: Final = 9
"""Columns with statistics, by which readers skip files: the first ones."""


@dataclass(frozen=True)
class AddedFile:
    """A data file. `stats`: as in Delta's log, JSON."""

    name: str
    size: int
    stats: str


class AddedFileWriter:
    """Writes one data file of a table, piece by piece."""

    def __init__(self, folder: Path) -> None:
        self._path = folder / f"{uuid4()}.parquet"
        self._writer: pq.ParquetWriter | None = None
        self._records = 0
        self._least: dict[str, Any] = {}
        self._most: dict[str, Any] = {}
        self._nulls: dict[str, int] = {}

    def write(self, rows: pa.Table) -> None:
        """Appends rows."""
        if not len(rows):
            return
        if self._writer is None:
            self._writer = pq.ParquetWriter(self._path, rows.schema, compression="zstd", compression_level=1)
        self._writer.write_table(rows)
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
        if self._writer is None:
            return None
        self._writer.close()
        stats = {"numRecords": self._records, "minValues": self._least, "maxValues": self._most, "nullCount": self._nulls}
        return AddedFile(self._path.name, self._path.stat().st_size, json.dumps(stats))


def _known(value: pa.Scalar, *, up: bool) -> Any:
    """A bound as Delta's log has it: times in milliseconds, rounded outwards."""
    if not pa.types.is_timestamp(value.type):
        return value.as_py()
    us = value.cast(pa.timestamp("us", "UTC")).value
    ms = -(-us // 1_000) if up else us // 1_000
    return pa.scalar(ms, pa.timestamp("ms", "UTC")).as_py().strftime("%Y-%m-%dT%H:%M:%S.%f")[:-3] + "Z"
