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
from jobs.parsing import batch, heartbeat_lines, request_log
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


def write_requests(target: Target, part: Part) -> str:
    """Parses and writes the request lines of a part, which need no Spark; returns a text for `Written.add`."""

    def pieces() -> Iterator[pa.Table]:
        beats = pq.read_table(part.path, filters=pc.field("repeated").is_valid())
        if len(beats):
            yield heartbeat_lines.parsed(_named(_placed(beats, part.before)))
        for rows in _others(part):
            requests = _named(rows.filter(_are_requests(rows))).combine_chunks()
            for lines in requests.to_batches():
                yield pa.Table.from_batches([request_log.parsed(lines)])

    return _write(target, pieces())


def other_lines(parts: Sequence[Part], batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """The other lines of parts, as RAW rows. The rows that come in are numbers of parts."""
    for numbers in batches:
        for part in (parts[number] for number in numbers[0].to_pylist()):
            for rows in _others(part):
                yield from rows.filter(pc.invert(_are_requests(rows))).cast(ARROW_SCHEMA).to_batches()


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


def _others(part: Part) -> Iterator[pa.Table]:
    """The lines of a part but for heartbeats that the log reader recognised."""
    for found in pq.ParquetFile(part.path).iter_batches():
        yield _placed(pa.Table.from_batches([found]).filter(pc.is_null(found["repeated"])), part.before)


def _are_requests(rows: pa.Table) -> pa.ChunkedArray:
    """Whether the parser of requests reads each row: as of `kinds.with_source` and `kinds.source_or_faulty`. Parts are logs of brokers."""
    return pc.and_(pc.is_null(rows["fault"]), request_log.are_request_lines(rows["text"]))


def _placed(lines: pa.Table, before: int) -> pa.Table:
    """RAW rows whose positions count from the start of the log."""
    placed = lines.set_column(lines.schema.get_field_index("position"), "position", pc.add(lines["position"], before))
    return placed.set_column(lines.schema.get_field_index("repeated"), "repeated", moved(lines["repeated"], before))


def _named(lines: pa.Table) -> pa.Table:
    """RAW rows as parsers take them: lines of files, which have no place in a topic."""
    return lines.rename_columns(_PARSED_NAMES).append_column("place", pa.nulls(len(lines), pa.int64()))
