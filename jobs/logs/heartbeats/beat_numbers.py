"""The repeated heartbeats of a slice (beats.py) as columns of numbers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pa_csv

from jobs.logs.blocks import Block, Numbers, block_of
from jobs.logs.heartbeats.beat_blocks import repeats_in
from jobs.logs.heartbeats.beats import LONGEST_MS, NAMES, PENDING, TIMES_TOLERANCE_MS, Beats, LogBeats

WIDTH: Final = 4
"""Numbers of one beat, 8 bytes each, little-endian: lines since the one that it repeats, time (ms), arrival (µs), correlation id."""


class BeatNumbers(Beats):
    """Keeps 40 bytes of each, and finds those of a whole block at once."""

    block_of = staticmethod(block_of)

    def __init__(self) -> None:
        super().__init__()
        self._rows: list[Numbers] = []
        self._beats: list[Numbers] = []  # WIDTH numbers of each; the newest have no arrival yet
        self._texts: list[bytes] = []  # the durations of those without
        self._settled = 0  # of `_beats`

    def settle(self) -> None:
        """Turns the texts of the newest beats into numbers."""
        self._gather()
        if not self._texts:
            return
        us, begin = durations_us(self._texts), 0
        for beats in self._beats[self._settled :]:
            beats[:, 2] = beats[:, 1] * 1_000 - us[begin : begin + len(beats)]
            begin += len(beats)
        self._settled = len(self._beats)
        self._texts.clear()

    def take_block(self, log: LogBeats, block: Block, ats: Numbers, first_position: int) -> Sequence[int]:
        """As said there: with numbers of all lines at once."""
        return self.take_lines(log, block, ats, first_position + np.arange(len(ats)))

    def take_lines(self, log: LogBeats, block: Block, ats: Numbers, positions: Numbers) -> Sequence[int]:
        """The same for lines that need not follow each other. `positions`: theirs."""
        found = repeats_in(block, len(ats), log)
        if not len(found.lines):
            return range(len(ats))
        self._gather()
        self._append(found.rows, positions[found.lines], ats[found.lines], found.correlation_ids, found.times)
        self.count += len(found.lines)
        if len(self._texts) >= PENDING:
            self.settle()
        is_other = np.ones(len(ats), np.bool_)
        is_other[found.lines] = False
        others: list[int] = np.flatnonzero(is_other).tolist()
        return others

    def _gather(self) -> None:
        """Moves the beats that came one by one to the others."""
        rows, positions, ats, numbers, times = self.taken
        if times:
            self._append(np.array(rows), np.array(positions), np.array(ats), np.array(numbers).astype(np.int64), times)
            for values in self.taken:
                values.clear()

    def _append(self, rows: Numbers, positions: Numbers, ats: Numbers, correlation_ids: Numbers, times: list[bytes]) -> None:
        beats = np.zeros((len(rows), WIDTH), np.int64)
        beats[:, 0], beats[:, 1], beats[:, 3] = positions, ats, correlation_ids
        self._rows.append(rows)
        self._beats.append(beats)
        self._texts += times

    def every(self) -> tuple[Numbers, Numbers]:
        """The row that each beat repeats, and its numbers with its own position, in the order in which they were taken."""
        self.settle()
        return np.concatenate([np.zeros(0, np.int64), *self._rows]), np.concatenate([np.zeros((0, WIDTH), np.int64), *self._beats])

    def by_row(self, positions: Sequence[int]) -> pa.Array:
        """A value for each kept line, of these positions: the lines that repeat it, in order, WIDTH numbers each; null without SHAPE."""
        is_first = np.zeros(len(positions), np.bool_)
        is_first[self.firsts] = True
        return packed(*self.every(), np.array(positions, np.int64), is_first)


def packed(row_of: Numbers, beats: Numbers, positions: Numbers, is_first: npt.NDArray[np.bool_]) -> pa.Array:
    """Values of `BeatNumbers.by_row`. `row_of`, `beats`: as of `every`. Of each row: its position, and whether it has SHAPE."""
    rows, order = len(is_first), np.argsort(row_of, kind="stable")
    offsets = np.zeros(rows + 1, np.int32)
    np.cumsum(np.bincount(row_of, minlength=rows) * (WIDTH * 8), out=offsets[1:])
    in_order = beats[order]
    in_order[:, 0] -= positions[row_of[order]]
    buffers = (np.packbits(is_first, bitorder="little"), offsets, np.ascontiguousarray(in_order))
    return pa.Array.from_buffers(pa.binary(), rows, list(map(pa.py_buffer, buffers)))


def durations_us(times: list[bytes]) -> npt.NDArray[np.int64]:
    """How long the broker had each request; 0 where the numbers contradict each other (request_checks.duration_ms of jobs/parsing)."""
    text = b"\n".join(times).translate(None, NAMES)  # leaves digits, dots and commas
    names = ["total", "request_queue", "local", "remote", "throttle", "response_queue", "send"]
    read = pa_csv.ReadOptions(column_names=names, use_threads=False, block_size=max(1, len(text)) + 1)
    types = dict.fromkeys(names, pa.float64())
    table = pa_csv.read_csv(pa.BufferReader(text), read_options=read, convert_options=pa_csv.ConvertOptions(column_types=types))
    column = {name: table[name].to_numpy() for name in names}
    parts = column["request_queue"] + column["local"] + column["remote"] + column["response_queue"] + column["send"]
    overlap = np.where(column["remote"] == 0, column["local"], 0.0)
    total = column["total"]
    believed = (total <= LONGEST_MS) & (parts <= total + overlap + TIMES_TOLERANCE_MS)
    return np.where(believed, np.rint(total * 1_000), 0).astype(np.int64)


def counts_of(repeated: pa.Array) -> pa.Array:
    """The number of lines in each value of `BeatNumbers.by_row`."""
    return pc.fill_null(pc.divide(pc.binary_length(repeated), WIDTH * 8), 0).cast(pa.int64())


def every_of(rows: pa.Table) -> tuple[Numbers, Numbers]:
    """What `BeatNumbers.every` gave, of RAW lines or of their rows of PARSED."""
    counts, beats = counts_of(rows["repeated"]).to_numpy(), numbers_of(rows["repeated"])
    beats[:, 0] += np.repeat(rows["position"].to_numpy(), counts)
    return np.repeat(np.arange(len(rows)), counts), beats


def numbers_of(repeated: pa.ChunkedArray) -> Numbers:
    """All numbers of values of `BeatNumbers.by_row`, WIDTH of each line."""
    return np.frombuffer(bytearray().join(filter(None, repeated.to_pylist())), np.int64).reshape(-1, WIDTH)
