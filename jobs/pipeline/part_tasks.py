"""What tasks do with slices and with their parts (parts.py), on executors that have msgspec, pandas and PyArrow, and no Delta."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import chain
from pathlib import Path
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from jobs.lakehouse.added_files import AddedFileWriter
from jobs.logs.beat_numbers import moved
from jobs.parsing import batch, kinds
from schemas import names

WRITTEN: Final = (names.GROUP_EVENTS, names.QUARANTINE)
"""The tables that tasks write."""


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


def parsed_packets(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Parses the lines of a small slice. The rows that come out are Arrow streams of PARSED rows, without columns that have no values."""
    for lines in batches:
        rows = kinds.parsed(lines)
        rows = rows.select([name for name in rows.column_names if rows[name].null_count < len(rows)])
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, rows.schema) as packet:
            packet.write_table(rows)
        yield pa.RecordBatch.from_pydict({"packet": [sink.getvalue().to_pybytes()]})


def write_part(target: Target, part: Part) -> str:
    """Parses and writes the lines of a part; returns a text for `Written.add`."""
    return _write(target, _parsed(part))


def _parsed(part: Part) -> Iterator[pa.Table]:
    """Rows of PARSED. Those of all heartbeats that the log reader recognised come together, so that runs of them share rows."""
    beats = pq.read_table(part.path, filters=pc.field("repeated").is_valid())
    pieces = (pa.Table.from_batches([found]) for found in pq.ParquetFile(part.path).iter_batches())
    for lines in chain([beats], (piece.filter(pc.is_null(piece["repeated"])) for piece in pieces)):
        for found in _placed(lines, part.before).combine_chunks().to_batches():
            yield kinds.parsed(found)


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
