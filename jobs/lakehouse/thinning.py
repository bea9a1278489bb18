"""Thins the heartbeats of quiet times in group_events.

A member sends the same heartbeat every few seconds for weeks. Old rows of one member that follow each other become one row for each WINDOW.
Of its heartbeats it keeps how many there were, when the first and the last arrived, and the longest gap. Single heartbeats lose their time
and their line, but for those at the ends, those near anything unusual in the group, and those that are evidence.

restored_beats.py puts heartbeats back for `rebalance replay`: as many, with the same first, last and longest gap, evenly spaced where the
times are lost. Rows stay as they are if their gaps differ by a factor of two: then nothing says which gap lost how many heartbeats.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta, timezone
from operator import add
from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from coordinator_model.events import HEARTBEAT, OFFSET_COMMIT, PROMPT_MS, PSEUDO_BROKERS, REQUEST_SOURCE
from jobs.common.stores import Place
from jobs.lakehouse import delta_files, opening
from jobs.lakehouse.delta_files import DataFile
from jobs.lakehouse.folder import present
from jobs.lakehouse.parquet import quoted, rows_of_files, schema_fields
from jobs.lakehouse.tables import arrow_schema
from schemas.names import TIMES

WINDOW: Final = timedelta(minutes=10)
"""Rows are merged within this time. `--since` and `--until` of questions take or leave whole rows; a replay holds them in memory."""
MARGIN: Final = timedelta(seconds=10)
"""All heartbeats of a group are kept so long before and after anything else that happens to it."""

_OF_ROW: Final = frozenset({"position", "occurred_at", "received_at", "correlation_id", "batch_id"})
_OF_BEATS: Final = frozenset({"last_at", "beat_count", "longest_gap_ms", "beats", "positions", "lines"})
_ACCEPTED: Final = f"kind = '{HEARTBEAT}' AND error_code = 0 AND epoch_ms(occurred_at) - epoch_ms(received_at) <= {PROMPT_MS}"
_WHOLE: Final = "len(beats) = beat_count AND len(positions) = beat_count"
_UNUSUAL: Final = (
    f"NOT coalesce({_ACCEPTED} OR (kind = '{OFFSET_COMMIT}' AND error_code = 0) OR broker IN {tuple(sorted(PSEUDO_BROKERS))}, false)"
)
"""Rows around which heartbeats are kept: all but accepted heartbeats and commits, and what polls and stored records repeat."""
_GROUP: Final = "cluster, group_id"
_BATCH_ROWS: Final = 10_000
_LATER: Final = timedelta(days=1)
"""A row may be so much older than a line that it names: a finding has the time at which the trouble began."""
_EVER: Final = datetime(1, 1, 1, tzinfo=timezone.utc), datetime(9999, 12, 31, tzinfo=timezone.utc)

Numbers = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]


@dataclass(frozen=True)
class Surroundings:
    """What keeps heartbeats: times at which something unusual happened, by cluster and group, and lines that are evidence, by log."""

    unusual: dict[tuple[str, str], Numbers] = field(default_factory=dict)  # ms
    evidence: dict[str, Numbers] = field(default_factory=dict)


class Thinned(NamedTuple):
    """How much was thinned."""

    rows: int = 0  # fewer than before
    beats: int = 0  # that lost their time and line

    def __add__(self, other: object) -> Thinned:
        """Both together."""
        return Thinned(*map(add, self, other)) if isinstance(other, Thinned) else NotImplemented


def thin(folder: Place, files: Sequence[DataFile], before: datetime, spill: Path, *, row_group: int, dry_run: bool) -> Thinned:
    """Replaces some files of group_events by files in which heartbeats before a time are thinned; says how many.

    ChangedError: the files left the table meanwhile; nothing was changed.
    """
    around = _surroundings(folder, files, spill)
    counted = [Thinned()]

    def count(done: Thinned) -> None:
        counted[0] += done

    rows = _thinned(_sorted_rows(folder, files, before, spill), around, count)
    if dry_run:
        for _ in rows:
            pass
    else:
        delta_files.substitute(folder, files, rows, changed=lambda _: any(counted[0]) or None, row_group=row_group)
    return counted[0]


def _sorted_rows(
    folder: Place, files: Sequence[DataFile], before: datetime, spill: Path
) -> Iterator[tuple[pa.RecordBatch, pa.RecordBatch]]:
    """The rows of some files of group_events, by group and member: those that stay, and those whose heartbeats may be thinned."""
    table = opening.opened(folder)
    schema, source = arrow_schema(table), rows_of_files(table, folder, [file.path for file in files])
    candidate = (
        f"coalesce({_ACCEPTED} AND source = '{REQUEST_SOURCE}' AND {_WHOLE} AND beat_count > 0 AND group_id IS NOT NULL "
        f"AND last_at < TIMESTAMPTZ '{before.isoformat()}', false)"
    )
    query = (
        f"SELECT *, {candidate} AS candidate FROM ({source}) "  # noqa: S608 - nothing in it is typed by a user
        f"ORDER BY {_GROUP}, candidate, member_id, generation, connection, origin, received_at, position"
    )

    def batches() -> Iterator[tuple[pa.RecordBatch, pa.RecordBatch]]:
        for batch in delta_files.connection(spill, folder).execute(query).to_arrow_reader(_BATCH_ROWS):
            rows = pa.RecordBatch.from_arrays([batch[one.name].cast(one.type) for one in schema], schema=schema)
            yield rows.filter(pc.invert(batch["candidate"])), rows.filter(batch["candidate"])

    return batches()


def _thinned(
    batches: Iterable[tuple[pa.RecordBatch, pa.RecordBatch]], around: Surroundings, count: Callable[[Thinned], None]
) -> Iterator[pa.RecordBatch]:
    """The same rows, the second ones thinned."""
    held: list[pa.RecordBatch] = []
    for others, own in batches:
        yield others
        if len(own):
            block = _joined([*held, own])
            # The rows of the last member may go on in the next batch.
            last = int(np.flatnonzero(_begins_member(block))[-1])
            held = [block.slice(last)]
            if last:
                yield _thinned_rows(block.slice(0, last), around, count)
    if held:
        yield _thinned_rows(_joined(held), around, count)


def _thinned_rows(rows: pa.RecordBatch, around: Surroundings, count: Callable[[Thinned], None]) -> pa.RecordBatch:
    """Whole heartbeat rows of whole members, in order of time."""
    block = _Block.of(rows)
    begins, regular = block.begins_stretch()
    keep = block.kept(begins, regular, around)
    starts = np.flatnonzero(begins)
    ends = np.append(starts[1:], len(begins)) - 1
    stretch_of_beat = (np.cumsum(begins) - 1)[block.row]
    offsets = np.append(0, np.cumsum(np.bincount(stretch_of_beat[keep], minlength=len(starts))))
    first = block.received[starts][stretch_of_beat]
    columns = {
        "last_at": rows["last_at"].take(pa.array(ends)),
        "beat_count": np.add.reduceat(block.counts, starts),
        "longest_gap_ms": _or_null(np.maximum.reduceat(block.longest(begins), starts)),
        "beats": pa.ListArray.from_arrays(pa.array(offsets, pa.int32()), pa.array((block.times - first)[keep], pa.int32())),
        "positions": pa.ListArray.from_arrays(pa.array(offsets, pa.int32()), pa.array(block.positions[keep], pa.int64())),
        "lines": np.add.reduceat(rows["lines"].to_numpy().astype(np.int64), starts),
        "batch_id": np.minimum.reduceat(rows["batch_id"].to_numpy(), starts),
    }
    count(Thinned(len(rows) - len(starts), len(keep) - int(keep.sum())))
    own = rows.take(pa.array(starts))
    arrays = [own[one.name] if one.name not in columns else _array(columns[one.name]).cast(one.type) for one in rows.schema]
    return pa.RecordBatch.from_arrays(arrays, schema=rows.schema)


@dataclass(frozen=True)
class _Block:
    """Rows of heartbeats as numbers: of rows, then of heartbeats."""

    rows: pa.RecordBatch
    received: Numbers  # ms, of the first heartbeat of each row
    counts: Numbers
    same: Flags  # whether each row is of the same member, and begins in the same window, as the row before
    row: Numbers
    times: Numbers  # ms
    positions: Numbers
    gaps: Numbers  # ms since the heartbeat before in the same row or, for the first, in the row before; -1 if that is not the same

    @classmethod
    def of(cls, rows: pa.RecordBatch) -> _Block:
        received = _ms(rows["received_at"])
        counts = pc.list_value_length(rows["beats"]).to_numpy().astype(np.int64)
        row = np.repeat(np.arange(len(rows)), counts)
        times = received[row] + pc.list_flatten(rows["beats"]).to_numpy().astype(np.int64)
        window = received // (WINDOW // timedelta(milliseconds=1))
        same = ~_begins_member(rows)
        same[1:] &= window[1:] == window[:-1]
        apart = np.append(True, row[1:] != row[:-1]) & ~same[row]
        gaps = np.where(apart, -1, np.diff(times, prepend=0))
        return cls(rows, received, counts, same, row, times, pc.list_flatten(rows["positions"]).to_numpy(), gaps)

    def begins_stretch(self) -> tuple[Flags, Flags]:
        """Whether each row begins a stretch with one rhythm, and whether it has that rhythm itself. Rows without it stand alone."""
        segment = (np.cumsum(~self.same) - 1)[self.row]
        measured = np.flatnonzero(self.gaps > 0)
        order = measured[np.lexsort((self.gaps[measured], segment[measured]))]
        sizes = np.bincount(segment[order], minlength=int(segment[-1]) + 1)
        middle = np.minimum(np.cumsum(sizes) - sizes + sizes // 2, max(len(order) - 1, 0))
        median = np.where(sizes > 0, self.gaps[order][middle] if len(order) else 0, 0)[segment]
        # No two regular gaps together are as short as a third one: so what is as long as one gap is one.
        regular_gap = (3 * self.gaps > 2 * median) & (3 * self.gaps <= 4 * median)
        first = np.append(True, self.row[1:] != self.row[:-1])
        irregular = np.bincount(self.row[~regular_gap & ~first], minlength=len(self.counts))
        regular = irregular == 0
        joins = regular_gap[first] & regular & np.append(False, regular[:-1])
        return ~(self.same & joins), regular

    def longest(self, begins: Flags) -> Numbers:
        """The longest gap of each row, with that to the row before if both are of one stretch. -1: none."""
        gaps = self.gaps.copy()
        firsts = np.cumsum(self.counts) - self.counts
        gaps[firsts[begins]] = -1
        return np.maximum.reduceat(gaps, firsts)

    def kept(self, begins: Flags, regular: Flags, around: Surroundings) -> Flags:
        """Whether each heartbeat keeps its time and line."""
        stretch = (np.cumsum(begins) - 1)[self.row]
        starts = np.append(True, stretch[1:] != stretch[:-1])
        keep = starts | np.append(starts[1:], True) | ~regular[self.row]
        for groups, times in self._by("cluster", "group_id"):
            unusual = around.unusual.get(groups, _NOTHING)
            margin = MARGIN // timedelta(milliseconds=1)
            next_one = np.searchsorted(unusual, self.times[times] - margin)
            keep[times] |= np.append(unusual, np.iinfo(np.int64).max)[next_one] <= self.times[times] + margin
        for (origin,), places in self._by("origin"):
            keep[places] |= np.isin(self.positions[places], around.evidence.get(origin, _NOTHING))
        return np.asarray(keep)

    def _by(self, *names: str) -> Iterator[tuple[Any, slice]]:
        """Values of columns, and the heartbeats of the rows in succession that have them."""
        starts = np.flatnonzero(_differs(self.rows, names))
        first = np.append(np.cumsum(self.counts) - self.counts, len(self.row))
        for start, end in zip(starts, np.append(starts[1:], len(self.rows)), strict=True):
            yield tuple(self.rows[name][int(start)].as_py() for name in names), slice(int(first[start]), int(first[end]))


_NOTHING: Final[Numbers] = np.array([], np.int64)


def _begins_member(rows: pa.RecordBatch) -> Flags:
    """Whether each row differs from the one before in anything but time."""
    return _differs(rows, [one.name for one in rows.schema if one.name not in _OF_ROW | _OF_BEATS and not pa.types.is_nested(one.type)])


def _differs(rows: pa.RecordBatch, names: Iterable[str]) -> Flags:
    differs = np.zeros(len(rows), np.bool_)
    differs[:1] = True
    for name in names:
        column = rows[name]
        if column.null_count == len(column):
            continue
        codes = column.dictionary_encode().indices.fill_null(-1).to_numpy(zero_copy_only=False)
        differs[1:] |= codes[1:] != codes[:-1]
    return differs


def _surroundings(folder: Place, files: Sequence[DataFile], spill: Path) -> Surroundings:
    """What keeps heartbeats of some files of group_events, in all files of the lakehouse."""
    begins, ends = [file.oldest for file in files if file.oldest], [file.newest for file in files if file.newest]
    if len(begins) < len(files) or len(ends) < len(files):
        begins, ends = [_EVER[0] + _LATER], [_EVER[1] - MARGIN]
    since, until = min(begins), max(ends)
    return Surroundings(_unusual(folder, since - MARGIN, until + MARGIN, spill), _evidence(folder.parent, since - _LATER, spill))


def _unusual(folder: Place, since: datetime, until: datetime, spill: Path) -> dict[tuple[str, str], Numbers]:
    """When something unusual happened in each group, within a time."""
    table = opening.opened(folder)
    every = delta_files.data_files(table, "occurred_at")
    near = [file.path for file in every if (file.newest or until) >= since and (file.oldest or since) <= until]
    query = (
        f"SELECT {_GROUP}, list_sort(list_distinct(list(epoch_ms(occurred_at)))) FROM ({rows_of_files(table, folder, near)}) "  # noqa: S608
        f"WHERE group_id IS NOT NULL AND {_UNUSUAL} GROUP BY {_GROUP}"
    )
    rows: Iterable[tuple[str, str, list[int]]] = delta_files.connection(spill, folder).execute(query).fetchall()
    return {(cluster, group_id): np.array(times, np.int64) for cluster, group_id, times in rows}


def _evidence(lakehouse: Place, since: datetime, spill: Path) -> dict[str, Numbers]:
    """The lines that newer rows of other tables name, by log."""
    found: dict[str, list[int]] = {}
    for name in present(lakehouse):
        folder = lakehouse / name
        table = opening.opened(folder)
        columns = dict(schema_fields(table))
        time = next((name for name in TIMES if name in columns), None)
        if "evidence" not in columns or time is None:
            continue
        files = [file.path for file in delta_files.data_files(table, time) if file.newest is None or file.newest >= since]
        query = (
            f"SELECT DISTINCT evidence FROM ({rows_of_files(table, folder, files)}) "  # noqa: S608 - nothing in it is typed by a user
            f"WHERE {quoted(time)} >= TIMESTAMPTZ '{since.isoformat()}'"
        )
        rows: Iterable[tuple[str]] = delta_files.connection(spill, folder).execute(query).fetchall()
        for (evidence,) in rows:
            for ref in json.loads(evidence or "[]"):
                found.setdefault(ref["origin"], []).append(int(ref["position"]))
    return {origin: np.unique(np.array(positions, np.int64)) for origin, positions in found.items()}


def _joined(batches: Sequence[pa.RecordBatch]) -> pa.RecordBatch:
    return batches[0] if len(batches) == 1 else pa.concat_batches(list(batches))


def _array(values: Numbers | pa.Array) -> pa.Array:
    return pa.array(values) if isinstance(values, np.ndarray) else values


def _or_null(longest: Numbers) -> pa.Array:
    return pa.array(longest, pa.int64(), mask=longest < 0)


def _ms(times: pa.Array) -> Numbers:
    return np.asarray(times.cast(pa.int64()).to_numpy() // 1_000, np.int64)
