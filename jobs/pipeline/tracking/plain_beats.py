"""Heartbeats that say no more than that a member lives, from rows of `group_events` to GroupBeats, column by column."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from coordinator_model.errors import Error
from coordinator_model.events import HEARTBEAT, PROMPT_MS, REQUEST_SOURCE, Event
from coordinator_model.group_beats import SENDER, SEPARATOR, GroupBeats, Shared
from coordinator_model.tracker.quiet.runs import WIDEST_MS
from jobs.parsing.runs.heartbeat_runs import numbered

_SHARED: Final = ("cluster", *Shared._fields)
"""Columns whose values all heartbeats of a GroupBeats have."""
_TAKEN: Final = (*_SHARED, "member_id", "received_at", "beats", "positions")
_OWN: Final = frozenset({*_TAKEN, *SENDER, "source", "kind", "error_code", "position", "at_ms", "received_ms", "correlation_id"})
_OTHERS: Final = tuple(name for name in Event._fields if name not in _OWN)
"""Columns that a plain heartbeat leaves null."""
_US: Final = 1_000  # in a millisecond


def are_plain(rows: pa.RecordBatch, senders: pa.StringArray) -> pa.BooleanArray:
    """Which rows are runs of heartbeats that were accepted and answered soon, and have no other column than theirs.

    `senders`: those of the rows.
    """
    mask = pc.and_(pc.equal(rows["kind"], HEARTBEAT), pc.equal(rows["source"], REQUEST_SOURCE))
    mask = pc.and_(mask, pc.equal(pc.fill_null(rows["error_code"], Error.NONE), Error.NONE))
    mask = pc.and_(mask, pa.array(_are_runs(rows)))
    mask = pc.and_(mask, pc.equal(pc.count_substring(senders, SEPARATOR), len(SENDER) - 1))
    for name in (*_SHARED, "member_id"):
        mask = pc.and_(mask, pc.is_valid(rows[name]))
    for name in _OTHERS:
        if rows[name].null_count < len(rows):
            mask = pc.and_(mask, pc.is_null(rows[name]))
    return pc.fill_null(mask, False)


def by_group(rows: pa.RecordBatch, senders: pa.StringArray, are_plain: pa.BooleanArray) -> Iterator[tuple[str, GroupBeats]]:
    """The plain heartbeats of each group, and its cluster."""
    rows, senders = rows.select(_TAKEN).filter(are_plain), senders.filter(are_plain)
    codes = numbered(pa.Table.from_batches([rows]), _SHARED)
    order = np.argsort(codes, kind="stable")
    rows, senders, codes = rows.take(pa.array(order)), senders.take(pa.array(order)).to_pylist(), codes[order]
    begins = np.flatnonzero(np.diff(codes, prepend=-1))
    counts = pc.list_value_length(rows["beats"]).to_numpy()
    ends = np.cumsum(counts)
    arrivals = (np.repeat(ms_of(rows["received_at"]), counts) + rows["beats"].flatten().to_numpy()).tolist()
    positions, lengths = rows["positions"].flatten().to_pylist(), counts.tolist()
    member_ids = rows["member_id"].to_pylist()
    shared = zip(*(rows[name].take(pa.array(begins)).to_pylist() for name in _SHARED), strict=True)
    for (cluster, *own), (begin, end) in zip(shared, pairwise([*begins.tolist(), len(codes)]), strict=True):
        beats = slice(int(ends[begin] - counts[begin]), int(ends[end - 1]))
        runs = member_ids[begin:end], senders[begin:end], lengths[begin:end]
        yield cluster, GroupBeats(Shared(*own), *runs, arrivals[beats], positions[beats])


def _are_runs(rows: pa.RecordBatch) -> npt.NDArray[np.bool_]:
    """Whether the beats of each row were answered soon, and follow each other as `runs.as_runs` demands it."""
    beats, positions = rows["beats"], rows["positions"]
    counts = pc.fill_null(pc.list_value_length(beats), 0).to_numpy(zero_copy_only=False)
    places = pc.fill_null(pc.list_value_length(positions), 0).to_numpy(zero_copy_only=False)
    delays = ms_of(rows["occurred_at"]) - ms_of(rows["received_at"])
    sound: npt.NDArray[np.bool_] = (counts > 0) & (counts == places) & (delays <= PROMPT_MS)
    if not sound.any():
        return sound
    begins = (np.cumsum(counts) - counts)[sound]
    offsets = beats.flatten().to_numpy()
    sound[sound] = (offsets[begins] == 0) & (
        positions.flatten().to_numpy()[(np.cumsum(places) - places)[sound]] == rows["position"].to_numpy()[sound]
    )
    gaps = np.diff(offsets, prepend=0)
    gaps[(np.cumsum(counts) - counts)[counts > 0]] = 1  # no gap: the first of its row
    broken = np.concatenate([[0], np.cumsum((gaps <= 0) | (gaps > WIDEST_MS))])
    ends = np.cumsum(counts)
    sound &= broken[ends] == broken[ends - counts]
    return sound


def senders_of(rows: pa.RecordBatch) -> pa.StringArray:
    """The text of each row's sender. What is null is what Event has by default."""
    values = [pc.fill_null(rows[name], -1).cast(pa.string()) if name == "api_version" else pc.fill_null(rows[name], "") for name in SENDER]
    return pc.binary_join_element_wise(*values, SEPARATOR)


def ms_of(times: pa.Array) -> npt.NDArray[np.int64]:
    """Times as epoch ms. None of them is null."""
    numbers: npt.NDArray[np.int64] = times.cast(pa.timestamp("us", "UTC")).cast(pa.int64()).to_numpy() // _US
    return numbers
