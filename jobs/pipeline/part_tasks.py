"""What tasks do with slices and with their parts, on executors that have msgspec, pandas and PyArrow, and no Delta."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final

import msgspec
import pyarrow as pa
import pyarrow.compute as pc

from jobs.common.stores import Place, place_of
from jobs.lakehouse.added_files import AddedFile, AddedFileWriter, BatchFile
from jobs.logs.slice_rows import folded, read_share
from jobs.parsing import batch, kinds
from jobs.pipeline import topic_records
from schemas import names

WRITTEN: Final = (names.GROUP_EVENTS, names.QUARANTINE)
"""The tables that tasks write."""
PACKETS: Final = "packet binary"
"""Rows of PARSED as Spark moves them: one binary value holds many, where a row would cost Spark 60 columns."""
_ROWS: Final = 65_536  # parsed at a time
_HELD_BYTES: Final = 256 << 20  # of heartbeats that wait for those of other parts


class Part(msgspec.Struct, frozen=True):
    """A file of RAW rows. `before`: lines of the log before those from which its positions count."""

    path: str
    before: int


class Written(msgspec.Struct, frozen=True):
    """What a task wrote: its file of each table, and the account of its lines as rows of input_lines."""

    files: Mapping[str, AddedFile]
    account: pa.Table


def parsed_packets(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Parses the lines of a small slice. The rows that come out are Arrow streams of PARSED rows, without columns that have no values."""
    for lines in batches:
        rows = kinds.parsed(lines)
        rows = rows.select([name for name in rows.column_names if rows[name].null_count < len(rows)])
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, rows.schema) as packet:
            packet.write_table(rows)
        yield pa.RecordBatch.from_pydict({"packet": [sink.getvalue().to_pybytes()]})


def parsed_packets_of_topic(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """The same of records of a topic."""
    return parsed_packets(map(topic_records.as_lines, batches))


def write_share(lakehouse: Place, batch_id: int, parts: Sequence[Part], share: int) -> Written:
    """Parses and writes one share of the lines of all parts."""
    file = BatchFile(names.INGEST, batch_id, share)
    writers = {name: AddedFileWriter(lakehouse / name, file.new_name()) for name in WRITTEN}
    accounts = []
    for piece in _parsed(parts, share):
        for name, rows in batch.rows_by_table(piece, batch_id).items():
            if name == names.INPUT_LINES:
                accounts.append(rows)
            else:
                writers[name].write(rows)
    files = {name: added for name, writer in writers.items() if (added := writer.close()) is not None}
    return Written(files, batch.summed(accounts))


def _parsed(parts: Sequence[Part], share: int) -> Iterator[pa.Table]:
    """Rows of PARSED. Those of which the log reader took numbers come together, so that those of a member or of a connection share rows."""
    held: list[pa.Table] = []
    fetches: list[pa.Table] = []
    others: list[pa.Table] = []
    for part in parts:
        for lines in read_share(place_of(part.path), share, part.before):
            is_fetch = pc.equal(lines["record"], names.FETCHES)
            is_beat = pc.and_(pc.is_valid(lines["repeated"]), pc.and_(pc.is_null(lines["fault"]), pc.invert(is_fetch)))
            held.append(lines.filter(is_beat))
            fetches.append(lines.filter(is_fetch))
            others.append(lines.filter(pc.invert(pc.or_(is_beat, is_fetch))))
        if sum(map(len, others)) >= _ROWS:
            yield from _rows_of(others)
            others = []
        if sum(beats.nbytes for beats in held) > _HELD_BYTES:
            held = [folded(pa.concat_tables(held))]
            if held[0].nbytes > _HELD_BYTES // 2:
                yield from _rows_of(held, len(held[0]))
                held = []
    last = [*others, *fetches, *([folded(pa.concat_tables(held))] if held else ())]
    yield from _rows_of(last, max(1, sum(map(len, last))))


def _rows_of(tables: Sequence[pa.Table], most_rows: int = _ROWS) -> Iterator[pa.Table]:
    for batch_of_lines in pa.concat_tables(tables).combine_chunks().to_batches(most_rows) if tables else ():
        yield kinds.parsed(batch_of_lines)
