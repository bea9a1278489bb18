"""Puts heartbeats back that were thinned (thinning.py), on executors that have no Delta."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc


def restored(rows: pa.RecordBatch) -> pa.RecordBatch:
    """Rows with as many `beats` and `positions` as `beat_count` says. A heartbeat that was thinned gets the line of the one before it."""
    counts = pc.fill_null(rows["beat_count"], 0).to_numpy(zero_copy_only=False)
    kept = pc.fill_null(pc.list_value_length(rows["beats"]), 0).to_numpy(zero_copy_only=False)
    lacking = np.flatnonzero((kept > 1) & (counts > kept))
    if not len(lacking):
        return rows
    beats, positions = rows["beats"].to_pylist(), rows["positions"].to_pylist()
    longest = rows["longest_gap_ms"].to_pylist()
    for row in lacking.tolist():
        beats[row], positions[row] = _filled(beats[row], positions[row], int(counts[row]), int(longest[row]))
    for name, values in (("beats", beats), ("positions", positions)):
        index = rows.schema.get_field_index(name)
        rows = rows.set_column(index, rows.schema.field(index), pa.array(values, rows.schema.field(index).type))
    return rows


def _filled(beats: list[int], positions: list[int], count: int, longest: int) -> tuple[list[int], list[int]]:
    """So many heartbeats of a row, one gap of them the longest."""
    gaps = gap_counts(np.diff(beats), count - 1, longest)
    if longest not in np.diff(beats):  # it is among those that are lost
        at = int(np.argmax(gaps))
        beats = [*beats[: at + 1], beats[at] + longest, *beats[at + 1 :]]
        positions = [*positions[: at + 1], *positions[at:]]
        gaps = np.insert(gaps, at, 1)
        gaps[at + 1] -= 1
    begins, spans, of = np.repeat(beats[:-1], gaps), np.repeat(np.diff(beats), gaps), np.repeat(gaps, gaps)
    within = np.arange(len(begins)) - np.repeat(np.cumsum(gaps) - gaps, gaps)
    return [*(begins + within * spans // of).tolist(), beats[-1]], np.repeat(positions, [*gaps.tolist(), 1]).tolist()


def gap_counts(spans: npt.NDArray[np.int64], total: int, longest: int) -> npt.NDArray[np.int64]:
    """How many gaps, none longer than `longest`, are in each time between two heartbeats that were kept. They are `total`."""
    least = -(-spans // max(longest, 1))
    counts = np.where(spans <= longest, 1, np.maximum(least, spans * total // max(int(spans.sum()), 1)))
    free = np.flatnonzero(spans > longest)
    while len(free) and counts.sum() != total:
        mean = spans[free] / counts[free]
        if counts.sum() < total:
            counts[free[np.argmax(mean)]] += 1
            continue
        spare = counts[free] > least[free]
        if not spare.any():
            break
        counts[free[np.argmin(np.where(spare, mean, np.inf))]] -= 1
    return counts
