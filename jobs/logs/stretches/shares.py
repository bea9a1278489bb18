"""Shares of a slice: each task parses one of them, a row group of every part.

All heartbeats of a member have the same share, whichever stretches they lie in. So they become rows together: a row costs as much as a few
lines. The other lines are divided evenly. A part whose lines did not fit into memory at once has several times as many row groups.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from jobs.common.stores import Place, readable
from jobs.logs.heartbeats.beat_numbers import BeatNumbers, counts_of, every_of, packed
from jobs.logs.mark import KeptLines
from jobs.logs.slice_rows import ARROW_SCHEMA

_LOG: Final = ("cluster", "broker", "origin")


def shared(kept: KeptLines, rows: pa.Table, count: int) -> Iterator[pa.Table]:
    """So many shares of the rows of lines (`slice_rows.line_rows`), one after the other."""
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
    """Rows of recognised heartbeats of several stretches: those that repeat a line of an earlier stretch become numbers of that line."""
    again, kept = BeatNumbers(), list[int]()
    logs = pc.binary_join_element_wise(*(beats[name] for name in _LOG), "\0").to_pylist()
    takes = {log: again.log(log, kept.__len__).take for log in set(logs)}
    lines, positions = beats["text"].cast(pa.binary()).to_pylist(), beats["position"].to_pylist()
    ats = beats["at"].cast(pa.timestamp("ms", "UTC")).cast(pa.int64()).to_pylist()
    for row, (line, log, position, at_ms) in enumerate(zip(lines, logs, positions, ats, strict=True)):
        if not takes[log](line, position, at_ms, is_beat=True):
            kept.append(row)
    if not again.count:
        return beats
    is_kept = np.zeros(len(beats), np.bool_)
    is_kept[kept] = True
    row_of = np.empty(len(beats), np.int64)
    row_of[kept] = np.arange(len(kept))
    row_of[~is_kept], own = again.every()
    before, repeating = every_of(beats)
    rows, every = np.concatenate([row_of[~is_kept], row_of[before]]), np.concatenate([own, repeating])
    in_order = np.argsort(every[:, 0], kind="stable")
    taken = beats.take(np.array(kept))
    repeated = packed(rows[in_order], every[in_order], taken["position"].to_numpy(), np.ones(len(kept), np.bool_))
    return _with(taken, lines=pc.add(counts_of(repeated), 1), repeated=repeated)


def _placed(lines: pa.Table, before: int) -> pa.Table:
    """RAW rows whose positions count from the start of the log."""
    return _with(lines, position=pc.add(lines["position"], before)) if before else lines


def _with(table: pa.Table, **columns: pa.Array) -> pa.Table:
    for name, values in columns.items():
        table = table.set_column(table.schema.get_field_index(name), ARROW_SCHEMA.field(name), values)
    return table
