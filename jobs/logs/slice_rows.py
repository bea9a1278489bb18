"""Kept lines as rows of schemas/raw_lines.md, and the Parquet files that hold them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from jobs.common.files import written
from jobs.common.stores import Place
from jobs.logs.heartbeats.beat_numbers import BeatNumbers, counts_of
from jobs.logs.mark import KeptLines
from schemas.names import LINE, RAW_LINES
from schemas.tables import arrow_schema_of

ARROW_SCHEMA: Final = arrow_schema_of(RAW_LINES)
_REPEATING_COLUMNS: Final = ["cluster", "broker", "record", "origin", "fault", "context"]
_ROW_GROUP: Final = 16_384  # rows: several to a slice, so that several tasks can share it
_MOST_ROWS: Final = 1 << 30


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


def write_rows(rows: pa.Table, path: Place) -> None:
    """Writes a file that is whole on disk when this returns."""
    write_groups([rows], path, _ROW_GROUP)


def write_groups(groups: Iterable[pa.Table], path: Place, most_rows: int = _MOST_ROWS) -> None:
    """Writes tables one after the other, each as row groups of at most so many rows; the file is whole on disk when this returns."""
    with written(path) as file:
        columns = {"use_dictionary": _REPEATING_COLUMNS, "write_statistics": _REPEATING_COLUMNS}
        with pq.ParquetWriter(file, ARROW_SCHEMA, compression="zstd", compression_level=1, **columns) as writer:
            for rows in groups:
                writer.write_table(rows, row_group_size=most_rows)
