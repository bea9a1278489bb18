"""Shares of a slice: each task parses one of them, a row group of every part.

All heartbeats of a member have the same share, whichever stretches they lie in. So they become rows together: a row costs as much as a few
lines. The other lines are divided evenly. A part whose lines did not fit into memory at once has several times as many row groups.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from jobs.logs.heartbeats.beat_numbers import WIDTH, counts_of, durations_us, moved, numbers_of, packed
from jobs.logs.heartbeats.beats import around, numbers_in, places_in
from jobs.logs.mark import KeptLines
from jobs.logs.slice_rows import ARROW_SCHEMA

_LOG: Final = ("cluster", "broker", "origin")
_MS: Final = 1_000  # microseconds


def shared(kept: KeptLines, rows: pa.Table, count: int) -> Iterator[pa.Table]:
    """So many shares of the rows of lines (`slice_rows.line_rows`), one after the other."""
    share_of = np.full(len(rows), -1)
    share_of[kept.beats.firsts] = np.array(kept.beats.names, np.int64) % count
    others = np.flatnonzero(share_of < 0)
    share_of[others] = np.arange(len(others)) * count // max(1, len(others))
    for share in range(count):
        yield rows.take(np.flatnonzero(share_of == share))


def shares_in(path: Path) -> int:
    """The number of shares of a part. A part that the driver wrote may have any number of them."""
    return int(pq.read_metadata(path).num_row_groups)


def read_share(path: Path, share: int, before: int) -> Iterator[pa.Table]:
    """The rows of a share, if the part has it. `before`: lines of the log before those from which its positions count."""
    with pq.ParquetFile(path) as part:
        if share < part.num_row_groups:
            yield _placed(part.read_row_group(share), before)


def folded(beats: pa.Table) -> pa.Table:
    """Rows of recognised heartbeats of several stretches: those that repeat a line of an earlier stretch become numbers of that line."""
    texts = beats["text"].cast(pa.binary()).to_pylist()
    logs = zip(*(beats[name].to_pylist() for name in _LOG), strict=True)
    known: dict[tuple[object, bytes], tuple[int, bytes, bytes]] = {}  # by log and what names the member: row, and what is around
    kept: list[int] = []
    again: list[int] = []
    numbers: list[bytes] = []
    times: list[bytes] = []
    row_of = np.empty(len(beats), np.int64)
    for place, (line, log) in enumerate(zip(texts, logs, strict=True)):
        places = places_in(line)
        key = log, line[places[1] : places[2]]
        first = known.get(key)
        own = None if first is None else numbers_in(line, places, *first[1:])
        if first is None or own is None:
            row_of[place] = len(kept)
            if first is None:
                known[key] = len(kept), *around(line, places)
            kept.append(place)
        else:
            row_of[place] = first[0]
            again.append(place)
            numbers.append(own[0])
            times.append(own[1])
    if not again:
        return beats
    at_us = beats["at"].cast(pa.int64()).to_numpy()[again]
    own_numbers = np.empty((len(again), WIDTH), np.int64)
    own_numbers[:, 0] = beats["position"].to_numpy()[again]
    own_numbers[:, 1] = at_us // _MS
    own_numbers[:, 2] = at_us - durations_us(times)
    own_numbers[:, 3] = np.array(numbers).astype(np.int64)
    rows = np.concatenate([row_of[again], np.repeat(row_of, counts_of(beats["repeated"]).to_numpy())])
    every = np.concatenate([own_numbers, numbers_of(beats["repeated"])])
    in_order = np.argsort(every[:, 0], kind="stable")
    repeated = packed(rows[in_order], every[in_order], np.ones(len(kept), np.bool_))
    return _with(beats.take(np.array(kept)), lines=pc.add(counts_of(repeated), 1), repeated=repeated)


def _placed(lines: pa.Table, before: int) -> pa.Table:
    """RAW rows whose positions count from the start of the log."""
    return _with(lines, position=pc.add(lines["position"], before), repeated=moved(lines["repeated"], before)) if before else lines


def _with(table: pa.Table, **columns: pa.Array) -> pa.Table:
    for name, values in columns.items():
        table = table.set_column(table.schema.get_field_index(name), ARROW_SCHEMA.field(name), values)
    return table
