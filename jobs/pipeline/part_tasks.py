"""What tasks do with parts of a slice (parts.py), on executors that have msgspec, pandas and PyArrow, and no Delta."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from jobs.lakehouse.added_files import AddedFileWriter
from jobs.logs.beat_numbers import moved
from jobs.logs.slice_rows import ARROW_SCHEMA
from jobs.parsing import batch, heartbeat_lines
from schemas import names

WRITTEN: Final = (names.GROUP_EVENTS, names.QUARANTINE)
"""The tables that tasks write."""
_PARSED_NAMES: Final = ["occurred_at" if name == "at" else name for name in ARROW_SCHEMA.names]


@dataclass(frozen=True)
class Part:
    """A file of RAW rows. `before`: lines of the log before those from which its positions count."""

    path: str
    before: int


@dataclass(frozen=True)
class Target:
    """Where a batch goes: the folders of the tables, and what the tables call their columns."""

    batch_id: int
    folders: Mapping[str, Path]
    columns: Mapping[str, Sequence[str]]


def write_beats(target: Target, part: Part) -> str:
    """Parses and writes the heartbeats of a part that the log reader recognised; returns a text for `Written.add`."""

    def pieces() -> Iterator[pa.Table]:
        lines = pq.read_table(part.path, filters=pc.field("repeated").is_valid()).rename_columns(_PARSED_NAMES)
        if len(lines):
            yield heartbeat_lines.parsed(_placed(lines, part.before))

    return _write(target, pieces())


def other_lines(parts: Sequence[Part], batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """The other lines of parts, as RAW rows. The rows that come in are numbers of parts."""
    for numbers in batches:
        for part in (parts[number] for number in numbers[0].to_pylist()):
            file = pq.ParquetFile(part.path)
            for found in file.iter_batches():
                rows = pa.Table.from_batches([found]).filter(pc.is_null(found["repeated"]))
                yield from _placed(rows, part.before).cast(ARROW_SCHEMA).to_batches()


def write_parsed(target: Target, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Writes rows of PARSED; the row that comes out is a text for `Written.add`."""
    result = _write(target, (pa.Table.from_batches([found]) for found in batches))
    yield pa.RecordBatch.from_pydict({"result": [result]})


def _write(target: Target, pieces: Iterable[pa.Table]) -> str:
    """Writes rows of PARSED to one file of each table; returns the files and the account of the lines, as JSON."""
    writers = {name: AddedFileWriter(target.folders[name], target.columns[name]) for name in WRITTEN}
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
