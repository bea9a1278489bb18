"""Kept lines as rows of schemas/raw_lines.md, and the Parquet files that hold them.

Parts of a slice (jobs/logs/stretches) have shares: each task parses one of them, a row group of every part. All heartbeats of a member have
the same share, whichever stretches they lie in. So they become rows together: a row costs as much as a few lines. The other lines are
divided evenly. A part whose lines did not fit into memory at once has several times as many row groups.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from jobs.common.files import written
from jobs.common.stores import Place, readable
from jobs.logs.blocks import Block, Numbers
from jobs.logs.heartbeats.beat_numbers import BeatNumbers, counts_of, every_of, packed
from jobs.logs.mark import KeptLines
from schemas.names import LINE, RAW_LINES
from schemas.tables import arrow_schema_of

ARROW_SCHEMA: Final = arrow_schema_of(RAW_LINES)
_REPEATING_COLUMNS: Final = ["cluster", "broker", "record", "origin", "fault", "context"]
_ROW_GROUP: Final = 16_384  # rows: several to a slice, so that several tasks can share it
_LOG: Final = ("cluster", "broker", "origin")


def line_rows(kept: KeptLines, cluster: pa.Array, broker: pa.Array, origin: pa.Array) -> pa.Table:
    """A LINE for every kept line. The three columns say whose it is."""
    rows = len(kept)
    assert isinstance(kept.beats, BeatNumbers)
    repeated = kept.beats.by_row(kept.positions)
    columns = [
        cluster,
        broker,
        pa.repeat(pa.scalar(LINE), rows),
        origin,
        pa.array(kept.positions, pa.int64()),
        pa.array(kept.ats, pa.timestamp("ms", tz="UTC")).cast(ARROW_SCHEMA.field("at").type),
        pa.array(kept.texts, pa.binary()).view(pa.string()),  # known to be UTF-8
        pa.array([kept.faults.get(row) for row in range(rows)], pa.string()),
        pc.add(counts_of(repeated), 1),
        pa.array([kept.contexts.get(row) for row in range(rows)], pa.string()),
        repeated,
        pa.array([kept.around.get(row) for row in range(rows)], pa.binary()).view(pa.string()),
    ]
    return pa.table(columns, schema=ARROW_SCHEMA)


def write_rows(tables: Iterable[pa.Table], path: Place, most_rows: int = _ROW_GROUP) -> None:
    """Writes tables one after the other, each as row groups of at most so many rows; the file is whole on disk when this returns."""
    with written(path) as file:
        columns = {"use_dictionary": _REPEATING_COLUMNS, "write_statistics": _REPEATING_COLUMNS}
        with pq.ParquetWriter(file, ARROW_SCHEMA, compression="zstd", compression_level=1, **columns) as writer:
            for rows in tables:
                writer.write_table(rows, row_group_size=most_rows)


def shared(kept: KeptLines, rows: pa.Table, count: int) -> Iterator[pa.Table]:
    """So many shares of the rows of lines (`line_rows`), one after the other."""
    share_of = np.full(len(rows), -1)
    share_of[kept.beats.firsts] = np.array(kept.beats.names, np.int64) % count
    others = np.flatnonzero(share_of < 0)
    share_of[others] = np.arange(len(others)) * count // max(1, len(others))
    for share in range(count):
        yield rows.take(np.flatnonzero(share_of == share))


def shares_in(path: Place) -> int:
    """The number of shares of a part. A part that the driver wrote may have any number of them."""
    return int(pq.read_metadata(readable(path)).num_row_groups)


def read_share(path: Place, share: int, before: int) -> Iterator[pa.Table]:
    """The rows of a share, if the part has it. `before`: lines of the log before those from which its positions count."""
    with pq.ParquetFile(readable(path)) as part:
        if share < part.num_row_groups:
            yield _placed(part.read_row_group(share), before)


def folded(beats: pa.Table) -> pa.Table:
    """Rows of recognised heartbeats of several stretches: those that repeat a line of another stretch become numbers of that line."""
    again, kept, before = BeatNumbers(), list[int](), 0
    logs = pc.binary_join_element_wise(*(beats[name] for name in _LOG), "\0").combine_chunks().dictionary_encode().indices
    ats = beats["at"].cast(pa.timestamp("ms", "UTC")).cast(pa.int64()).to_numpy()
    for lines in beats["text"].chunks:
        of = logs[before : before + len(lines)].to_numpy()
        for log in np.unique(of).tolist():
            rows, seen = np.flatnonzero(of == log), again.log(log, kept.__len__)
            _, offsets, text = (taken := lines.take(rows)).buffers()
            places = np.frombuffer(offsets, np.int32)[: len(taken) + 1].astype(np.int64)
            block = Block(text.to_pybytes() if text is not None else b"", places[:-1], places[1:])
            rows += before
            for index in again.take_lines(seen, block, ats[rows], rows):
                if not seen.take(block.line(index), row := int(rows[index]), int(ats[row]), is_beat=True):
                    kept.append(row)
        before += len(lines)
    if not again.count:
        return beats
    of, own = again.every()  # `own` has the row of each such line in the place of its position
    row_of: Numbers = np.empty(len(beats), np.int64)
    row_of[kept], row_of[own[:, 0]] = np.arange(len(kept)), of
    positions, (rows, numbers) = beats["position"].to_numpy(), every_of(beats)
    own[:, 0] = positions[own[:, 0]]
    row_of, numbers = np.concatenate([row_of[rows], of]), np.concatenate([numbers, own])
    order = np.lexsort((numbers[:, 0], row_of))
    repeated = packed(row_of[order], numbers[order], positions[kept], np.ones(len(kept), np.bool_))
    return _with(beats.take(np.array(kept)), lines=pc.add(counts_of(repeated), 1), repeated=repeated)


def _placed(lines: pa.Table, before: int) -> pa.Table:
    """RAW rows whose positions count from the start of the log."""
    return _with(lines, position=pc.add(lines["position"], before)) if before else lines


def _with(table: pa.Table, **columns: pa.Array) -> pa.Table:
    for name, values in columns.items():
        table = table.set_column(table.schema.get_field_index(name), ARROW_SCHEMA.field(name), values)
    return table
