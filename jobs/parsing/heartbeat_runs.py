"""Runs of heartbeats: beats of one member with one rhythm share a row, which keeps the arrival and the line of each.

A member sends the same heartbeat every few seconds for weeks. A run ends where something changes: the group, the generation, the
answer, the connection, or the rhythm (a gap differs by more than half from the one before it). A beat with a late answer is a run
by itself. The batches of lines decide where rows begin, but rows of any batches expand to the same beats.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

import pyarrow as pa

from coordinator_model.events import PROMPT_MS

_KEY: Final = (
    "cluster", "broker", "source", "origin", "kind", "group_id", "api_version", "connection", "client_id", "software", "member_id",
    "instance_id", "generation", "error_code",
)  # fmt: skip
KEPT: Final = frozenset({*_KEY, "client_host", "position", "occurred_at", "received_at", "correlation_id"})
"""Columns that a row has from its first beat."""
_MS: Final = 1_000  # microseconds


class _Beat(NamedTuple):
    received: int  # epoch µs
    position: int
    at: int  # epoch µs
    row: int  # of the line


def heartbeat_runs(beats: pa.Table) -> pa.Table:
    """HEARTBEAT rows of PARSED, one a line, as rows of runs: the columns KEPT and those of `rows.LATER`, and `lines`.

    `at` and `received_at` are those of the first beat, `last_at` is the arrival of the last. `beats` counts from `received_at`, both cut to
    the millisecond: their sum is the arrival of each beat, whichever beat is the first of its row.
    """
    members: dict[tuple[object, ...], list[_Beat]] = {}
    received, at = (beats[name].cast(pa.int64()).to_pylist() for name in ("received_at", "occurred_at"))
    positions = beats["position"].to_pylist()
    keys = zip(*(beats[name].to_pylist() for name in _KEY), strict=True)
    for index, key in enumerate(keys):
        beat = _Beat(received[index], positions[index], at[index], index)
        # A beat with a late answer gets its own row: the tracker must know when its line was logged.
        held_up = beat.at // _MS - beat.received // _MS > PROMPT_MS
        members.setdefault((*key, beat.position if held_up else -1), []).append(beat)
    runs = [run for of_member in members.values() for run in _runs(sorted(of_member))]
    first = beats.take(pa.array([run[0].row for run in runs], pa.int64())).select(sorted(KEPT))
    arrivals = [[beat.received // _MS for beat in run] for run in runs]
    last = pa.array([run[-1].received for run in runs], pa.int64()).cast(pa.timestamp("us", "UTC"))
    columns = {
        "last_at": last,
        "beat_count": pa.array([len(run) for run in runs], pa.int32()),
        "beats": pa.array([[ms - of_run[0] for ms in of_run] for of_run in arrivals], pa.list_(pa.int32())),
        "longest_gap_ms": pa.array([max(_gaps(of_run), default=None) for of_run in arrivals], pa.int64()),
        "positions": pa.array([[beat.position for beat in run] for run in runs], pa.list_(pa.int64())),
        "lines": pa.array([len(run) for run in runs], pa.int32()),
    }
    for name, values in columns.items():
        first = first.append_column(name, values)
    return first


def _runs(beats: Sequence[_Beat]) -> Iterator[Sequence[_Beat]]:
    """Cuts the beats of a member, in order of time, into runs."""
    gaps = _gaps([beat.received // _MS for beat in beats])
    start = 0
    for index in range(2, len(beats)):
        before, gap = gaps[index - 2], gaps[index - 1]
        if abs(gap - before) * 2 > before:
            yield beats[start:index]
            start = index
    yield beats[start:]


def _gaps(arrivals: Sequence[int]) -> list[int]:
    """Times between neighbours; none for one beat."""
    return [after - before for before, after in itertools.pairwise(arrivals)]
