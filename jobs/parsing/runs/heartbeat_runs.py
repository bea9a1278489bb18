"""Runs of heartbeats: beats of one member with one rhythm share a row, which keeps the arrival and the line of each.

A member sends the same heartbeat every few seconds for weeks. A run ends where something changes: the group, the generation, the
answer, the connection, or the rhythm (a gap differs by more than half from the one before it). A beat with a late answer is a run
by itself. The batches of lines decide where rows begin, but rows of any batches expand to the same beats.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import msgspec
import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from coordinator_model.events import CONSUMER_GROUP_HEARTBEAT, HEARTBEAT, PROMPT_MS
from jobs.logs.heartbeats.beat_numbers import every_of

_KEY: Final = (
    "cluster", "broker", "source", "origin", "kind", "group_id", "api_version", "connection", "client_id", "software", "member_id",
    "instance_id", "generation", "error_code", "answer_member_id", "answer_generation", "rebalance_timeout_ms", "heartbeat_interval_ms",
)  # fmt: skip
KEPT: Final = frozenset({*_KEY, "client_host", "position", "occurred_at", "received_at", "correlation_id"})
"""Columns that a row has from its first beat."""
_OF_BEAT: Final = {"position": "position", "occurred_at": "at", "received_at": "received", "correlation_id": "correlation"}
"""Columns whose values are those of the beat, not of the line that it repeats, and their names in _Beats."""
_SAYS_MORE: Final = ("protocols", "subscribed_regex", "owned", "protocol", "assignments")
"""Columns that are null in a steady heartbeat of the consumer protocol."""
_UNKNOWN: Final = -1 << 62
_MS: Final = 1_000  # microseconds
_MOST_NUMBERS: Final = 1 << 62
_SPAN_US: Final = _MS << 30
"""Twelve days. Beats of one row are in one such span, so that their times since its first one are 32-bit: one may have lost its time."""


def are_beats(events: pa.Table) -> pa.ChunkedArray:
    """A mask of the rows of PARSED that belong in runs: heartbeats, and steady ones of the consumer protocol.

    Those are accepted, and nothing changes: the member says nothing new, and the answer has the same epoch and no assignment.
    """
    steady = pc.equal(events["kind"], CONSUMER_GROUP_HEARTBEAT)
    for holds in (
        pc.equal(events["error_code"], 0),
        pc.greater(events["generation"], 0),
        pc.equal(events["answer_generation"], events["generation"]),
        pc.equal(events["answer_member_id"], events["member_id"]),
        pc.equal(events["rebalance_timeout_ms"], -1),
        *(pc.is_null(events[name]) for name in _SAYS_MORE),
    ):
        steady = pc.and_kleene(steady, holds)
    return pc.fill_null(pc.or_kleene(pc.equal(events["kind"], HEARTBEAT), steady), False)


def heartbeat_runs(beats: pa.Table) -> pa.Table:
    """Heartbeats (`are_beats`) of PARSED as rows of runs: the columns KEPT and those of `rows.LATER`, and `lines`.

    A row is a line with those that repeat it (jobs/logs/heartbeats/beats.py). `at` and `received_at` of a run are those of its first beat,
    `last_at` is the arrival of the last. `beats` counts from `received_at`, both cut to the millisecond: their sum is the arrival of each
    beat, whichever beat is the first of its row.
    """
    every = _Beats.of(beats)
    arrivals, gaps = every.received // _MS, every.gaps()
    starts = np.flatnonzero(every.begins_run(gaps))
    counts = np.diff(starts, append=len(every.row))
    offsets = pa.array(np.append(starts, len(every.row)), pa.int32())
    first = beats.take(pa.array(every.row[starts])).select(sorted(KEPT - _OF_BEAT.keys()))
    since_first = arrivals - np.repeat(arrivals[starts], counts)
    columns = {
        **{name: _known(getattr(every, own)[starts]).cast(beats.schema.field(name).type) for name, own in _OF_BEAT.items()},
        "last_at": pa.array(every.received[starts + counts - 1]).cast(pa.timestamp("us", "UTC")),
        "beat_count": pa.array(counts, pa.int32()),
        "beats": pa.ListArray.from_arrays(offsets, pa.array(since_first, pa.int32())),
        "longest_gap_ms": _longest(gaps, starts, counts),
        "positions": pa.ListArray.from_arrays(offsets, pa.array(every.position)),
        "lines": pa.array(counts, pa.int32()),
    }
    for name, values in columns.items():
        first = first.append_column(name, values)
    return first


class _Beats(msgspec.Struct, frozen=True):
    """All beats, those of a group together, of them those of a member, in order of time. Those of a run share a row."""

    member: npt.NDArray[np.int64]
    row: npt.NDArray[np.int64]  # of the line, or of the line that it repeats
    received: npt.NDArray[np.int64]  # epoch µs
    position: npt.NDArray[np.int64]
    at: npt.NDArray[np.int64]  # epoch µs
    correlation: npt.NDArray[np.int64]

    @classmethod
    def of(cls, beats: pa.Table) -> _Beats:
        repeating, repeats = every_of(beats)
        group = numbered(beats, ["cluster", "group_id"])
        member = numbered(beats, [name for name in _KEY if beats[name].null_count < len(beats)])
        rows = np.arange(len(beats))
        row = np.concatenate([rows, repeating])
        correlation = pc.fill_null(beats["correlation_id"].cast(pa.int64()), _UNKNOWN).to_numpy()
        columns = {
            "received": np.concatenate([_whole(beats["received_at"]), repeats[:, 2]]),
            "position": np.concatenate([beats["position"].to_numpy(), repeats[:, 0]]),
            "at": np.concatenate([_whole(beats["occurred_at"]), repeats[:, 1] * _MS]),
            "correlation": np.concatenate([correlation, repeats[:, 3]]),
        }
        made = cls(member=member[row], row=row, **columns)
        # A beat with a late answer gets its own row: the tracker must know when its line was logged.
        held_up = np.where(made.is_held_up(), made.position, -1)
        order = np.lexsort((made.row, made.at, made.position, made.received, held_up, made.member, group[row]))
        return cls(*(getattr(made, name)[order] for name in cls.__struct_fields__))

    def is_held_up(self) -> npt.NDArray[np.bool_]:
        """Whether the answer to each beat was late."""
        late: npt.NDArray[np.bool_] = self.at // _MS - self.received // _MS > PROMPT_MS
        return late

    def gaps(self) -> npt.NDArray[np.int64]:
        """Time since the beat before, ms; -1 for the first of a member or a span, and around beats with a late answer."""
        held_up = self.is_held_up()
        apart = (np.diff(self.member) != 0) | (np.diff(self.received // _SPAN_US) != 0) | held_up[1:] | held_up[:-1]
        gaps: npt.NDArray[np.int64] = np.concatenate([[-1], np.where(apart, -1, np.diff(self.received // _MS))])[: len(self.row)]
        return gaps

    def begins_run(self, gaps: npt.NDArray[np.int64]) -> npt.NDArray[np.bool_]:
        """Whether each beat begins a run: it is the first of its member, or its gap differs by more than half from the one before."""
        before = np.concatenate([[-1], gaps[:-1]])[: len(gaps)]
        begins: npt.NDArray[np.bool_] = (gaps < 0) | ((before >= 0) & (np.abs(gaps - before) * 2 > before))
        return begins


def numbered(beats: pa.Table, names: Sequence[str]) -> npt.NDArray[np.int64]:
    """A number for each row, the same for rows that have the same values in these columns; in the order in which they occur."""
    numbers: npt.NDArray[np.int64] = np.zeros(len(beats), np.int64)
    count = 1
    for name in names:
        values = pc.dictionary_encode(beats[name].combine_chunks(), null_encoding="encode")
        if count * len(values.dictionary) > _MOST_NUMBERS:
            numbers = np.unique(numbers, return_inverse=True)[1].astype(np.int64)
            count = len(beats)
        numbers = numbers * len(values.dictionary) + values.indices.to_numpy()
        count *= len(values.dictionary)
    _, first, rank = np.unique(numbers, return_index=True, return_inverse=True)
    place: npt.NDArray[np.int64] = np.empty(len(first), np.int64)
    place[np.argsort(first)] = np.arange(len(first))
    return place[rank]


def _longest(gaps: npt.NDArray[np.int64], starts: npt.NDArray[np.intp], counts: npt.NDArray[np.intp]) -> pa.Array:
    """The longest gap within each run; null for a run of one beat."""
    within = gaps.copy()
    within[starts] = -1
    longest = np.maximum.reduceat(within, starts) if len(starts) else within
    return pa.array(longest, pa.int64(), mask=counts == 1)


def _known(values: npt.NDArray[np.int64]) -> pa.Array:
    return pa.array(values, mask=values == _UNKNOWN)


def _whole(times: pa.ChunkedArray) -> npt.NDArray[np.int64]:
    numbers: npt.NDArray[np.int64] = times.cast(pa.int64()).to_numpy()
    return numbers
