"""Reads, parses and writes large slices in tasks: the driver plans and commits.

    stretches of logs ──► parts (RAW rows) ─┬─ heartbeats ─────────────────────────► a file of group_events
                                            └─ other lines ──► Spark's parsers ────► files of group_events and quarantine

Each task writes its own files. They count when the driver commits them with the batch (jobs/lakehouse/added_files.py).
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from deltalake import DeltaTable

from jobs.lakehouse import tables
from jobs.lakehouse.added_files import AddedFile, AddedFileWriter
from jobs.lakehouse.former_names import column_names
from jobs.logs.beat_numbers import moved
from jobs.logs.slice_rows import ARROW_SCHEMA
from jobs.logs.stretches.reading import StretchReaders, read_stretch
from jobs.parsing import batch, heartbeat_lines
from schemas import names, raw_lines

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_RESULT: Final = "result string"
_TABLES: Final = (names.GROUP_EVENTS, names.QUARANTINE)


@dataclass(frozen=True)
class Part:
    """A file of RAW rows. `before`: lines of the log before those from which its positions count."""

    path: str
    before: int


@dataclass
class Written:
    """What tasks wrote: files by table, and the account of their lines as rows of input_lines."""

    files: dict[str, list[AddedFile]] = field(default_factory=dict)
    accounts: list[pa.Table] = field(default_factory=list)

    def add(self, result: str) -> None:
        """Adds the result of a task."""
        found = json.loads(result)
        for name, files in found["files"].items():
            self.files.setdefault(name, []).extend(AddedFile(**file) for file in files)
        self.accounts.append(pa.Table.from_pylist(found["account"], schema=batch.ACCOUNT))


@dataclass(frozen=True)
class Target:
    """Where a batch goes: the folders of the tables, and what the tables call their columns."""

    batch_id: int
    folders: Mapping[str, Path]
    columns: Mapping[str, Sequence[str]]

    @classmethod
    def of(cls, lakehouse: Path, batch_id: int) -> Target:
        """The tables of a lakehouse."""
        folders = {name: tables.table_path(lakehouse, name) for name in _TABLES}
        return cls(batch_id, folders, {name: column_names(DeltaTable(str(path))) for name, path in folders.items()})


def stretch_readers(spark: SparkSession) -> StretchReaders:
    """Lets tasks read stretches, one each."""
    context = spark.sparkContext

    def read(stretches: Sequence[Any]) -> Sequence[Any]:
        return context.parallelize(stretches, max(1, len(stretches))).map(read_stretch).collect()

    return StretchReaders(context.defaultParallelism, read)


def write_parts(spark: SparkSession, parts: Sequence[Part], target: Target, parse: Callable[[DataFrame], DataFrame]) -> Written:
    """Parses and writes the lines of parts. `parse`: makes rows of PARSED of RAW lines."""
    written = Written()
    beats = spark.sparkContext.parallelize(parts, len(parts)).map(partial(_write_beats, target)).collect()
    lines = spark.createDataFrame([asdict(part) for part in parts], "path string, before long").repartition(len(parts))
    others = lines.mapInArrow(_other_lines, raw_lines.SCHEMA).persist()
    try:
        results = parse(others).mapInArrow(partial(_write_parsed, target), _RESULT).collect()
    finally:
        others.unpersist()
    for result in [*beats, *(row["result"] for row in results)]:
        written.add(result)
    return written


def _write_beats(target: Target, part: Part) -> str:
    """Parses and writes the heartbeats that the log reader recognised."""

    def pieces() -> Iterator[pa.Table]:
        lines = pq.read_table(part.path, filters=pc.field("repeated").is_valid()).rename_columns(_PARSED_NAMES)
        if len(lines):
            yield heartbeat_lines.parsed(_placed(lines, part.before))

    return _write(target, pieces())


def _other_lines(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """The other lines of parts, as RAW rows."""
    for given in batches:
        for part in (Part(**row) for row in given.to_pylist()):
            file = pq.ParquetFile(part.path)
            for found in file.iter_batches():
                rows = pa.Table.from_batches([found]).filter(pc.is_null(found["repeated"]))
                yield from _placed(rows, part.before).cast(ARROW_SCHEMA).to_batches()


def _write_parsed(target: Target, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    result = _write(target, (pa.Table.from_batches([found]) for found in batches))
    yield pa.RecordBatch.from_pydict({"result": [result]})


def _write(target: Target, pieces: Iterable[pa.Table]) -> str:
    """Writes rows of PARSED to one file of each table; returns what `Written.add` takes."""
    writers = {name: AddedFileWriter(target.folders[name], target.columns[name]) for name in _TABLES}
    accounts = []
    for piece in pieces:
        for name, rows in batch.rows_by_table(piece, target.batch_id).items():
            if name == names.INPUT_LINES:
                accounts.append(rows)
            else:
                writers[name].write(rows)
    files = {name: [asdict(file)] for name, writer in writers.items() if (file := writer.close()) is not None}
    return json.dumps({"files": files, "account": batch.summed(accounts).to_pylist()})


def _placed(lines: pa.Table, before: int) -> pa.Table:
    """RAW rows whose positions count from the start of the log."""
    placed = lines.set_column(lines.schema.get_field_index("position"), "position", pc.add(lines["position"], before))
    return placed.set_column(lines.schema.get_field_index("repeated"), "repeated", moved(lines["repeated"], before))


_PARSED_NAMES: Final = ["occurred_at" if name == "at" else name for name in ARROW_SCHEMA.names]
