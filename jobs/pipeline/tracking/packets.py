"""Rows of group_events as the events of shards, many in one row: what passes between Spark and the tracker.

A row costs Spark 70 µs on its way to the tracker if it stays a row: it becomes JSON, is hashed, sorted, and laid out for pandas column by
column. So a task that reads the table packs all events of a shard at once, 10,000 rows at a time, and Spark moves some hundred packets.
Rows of plain heartbeats, which are most of them, pass column by column (plain_beats.py).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from itertools import chain, repeat
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc
from msgspec import msgpack

from coordinator_model.events import (
    BROKER_RELEASE,
    BROKER_SOURCE,
    CLOCK,
    COORDINATOR_ELECTED,
    END,
    FOLLOWED,
    GROUPS_CLEANED,
    INSTANCE_FENCED,
    TOPIC_COMPACTED,
    TOPIC_NAMED,
    Assignment,
    Event,
    MemberEntry,
    Offsets,
    Protocol,
)
from coordinator_model.group_beats import GroupBeats
from coordinator_model.specification.partition import coordinator_partition
from jobs.common.stores import Place
from jobs.pipeline.tracking import plain_beats
from jobs.pipeline.tracking.read_files import batches_of, have_reads
from jobs.pipeline.tracking.spread import Spread
from schemas.names import GROUP_EVENTS
from schemas.tables import arrow_schema_of

if TYPE_CHECKING:
    import pandas as pd

COLUMN_OF: Final = {"at_ms": "occurred_at", "received_ms": "received_at"}
"""Fields of Event with another name than their column: times, in milliseconds."""

COLUMNS: Final = ("cluster", *(COLUMN_OF.get(name, name) for name in Event._fields))
"""The columns of group_events that events are made of."""
_SCHEMA: Final = pa.schema([arrow_schema_of(GROUP_EVENTS).field(name) for name in COLUMNS])
_ROWS: Final = 10_000  # at a time

PACKETS: Final = "cluster string not null, key int not null, events binary not null"
"""The columns of packets. `key`: of the shard (spread.py)."""
_FOR_ALL_SHARDS: Final = frozenset(
    {BROKER_RELEASE, CLOCK, FOLLOWED, END, INSTANCE_FENCED, COORDINATOR_ELECTED, GROUPS_CLEANED, TOPIC_COMPACTED, TOPIC_NAMED}
)
"""Kinds of rows that every shard of their cluster gets."""
_EMPTY: Final[dict[str, Any]] = {
    "protocols": Protocol("", None, (), ""),
    "members": MemberEntry("", "", 0, "", None),
    "assignments": Assignment("", None, ""),
}
"""Entries of lists in which all fields are absent."""
_US: Final = 1_000  # in a millisecond
_ENCODER: Final = msgpack.Encoder()
_DECODER: Final = msgpack.Decoder(tuple[list[Event], list[GroupBeats], list[str], int])


class ShardInput(NamedTuple):
    """What packets of a shard hold. `rows`: of group_events, each counted with one of the shards that it goes to."""

    events: list[Event]
    beats: list[GroupBeats]
    files: tuple[str, ...]  # that have `reads`
    rows: int


def unpacked(frames: Iterable[pd.DataFrame]) -> ShardInput:
    """What PACKETS hold. A shard's packets may come in several frames, in any order."""
    return decoded(packet for frame in frames for packet in frame["events"].tolist())


def decoded(packets: Iterable[bytes]) -> ShardInput:
    """What the packets of a shard hold."""
    events, beats, files, rows = list[Event](), list[GroupBeats](), set[str](), 0
    for own_events, own_beats, own_files, own_rows in map(_DECODER.decode, packets):
        events += own_events
        beats += own_beats
        files.update(own_files)
        rows += own_rows
    return ShardInput(events, beats, tuple(sorted(files)), rows)


def packets_of(spread: Spread, files: Iterable[Place]) -> Iterator[pa.RecordBatch]:
    """The PACKETS of these files of `group_events`."""
    for path in files:
        yield from packed(spread, rows_of(path), str(path))


def rows_of(path: Place) -> Iterator[pa.RecordBatch]:
    """All rows of a file of `group_events`, with the columns that events have."""
    for rows in batches_of(path, _SCHEMA.names, _ROWS):
        yield pa.RecordBatch.from_arrays([rows[field.name].cast(field.type) for field in _SCHEMA], schema=_SCHEMA)


def packets_by_shard(shards: int, files: Iterable[Place]) -> dict[tuple[str, int], list[bytes]]:
    """The packets of files, by cluster and shard."""
    packets: dict[tuple[str, int], list[bytes]] = {}
    spread = Spread(shards, tasks=1)
    for batch in packets_of(spread, files):
        for cluster, key, events in zip(*(column.to_pylist() for column in batch.columns), strict=True):
            packets.setdefault((cluster, spread.shard(key)), []).append(events)
    return packets


def packed(spread: Spread, batches: Iterable[pa.RecordBatch], file: str) -> Iterator[pa.RecordBatch]:
    """A batch of PACKETS for each batch of rows of a file, with the columns COLUMNS.

    A group's shard follows from its id alone: a cluster may have any number of offsets partitions. Every shard of a cluster gets its
    clocks, since silence is evidence only for a shard that knows the time, and its fencing lines, elections and clean-ups, which name no
    group. Other lines about brokers go to one shard, which counts them. Of rows with `reads` every shard gets the name of their file
    (read_files.py). The tracker has no use for other rows without a group.
    """
    with_reads = set[str]()  # clusters

    @cache
    def shard_of(group_id: str) -> int:
        return coordinator_partition(group_id, spread.shards)

    for batch in batches:
        packets: dict[tuple[str, int], tuple[list[tuple[Any, ...]], list[GroupBeats], list[str]]] = {}

        def packet(cluster: str, shard: int) -> tuple[list[tuple[Any, ...]], list[GroupBeats], list[str]]:
            return packets.setdefault((cluster, shard), ([], [], []))  # noqa: B023 - used before the next batch

        senders = plain_beats.senders_of(batch)
        is_plain = plain_beats.are_plain(batch, senders)
        for cluster, beats in plain_beats.by_group(batch, senders, is_plain):
            packet(cluster, shard_of(beats.shared.group_id))[1].append(beats)
        has_reads = have_reads(batch)
        for cluster in sorted({*batch["cluster"].filter(has_reads).unique().to_pylist()} - with_reads):
            with_reads.add(cluster)
            for shard in range(spread.shards):
                packet(cluster, shard)[2].append(file)
        others = batch.filter(pc.invert(pc.or_(is_plain, has_reads)))
        names = zip(*(others[name].to_pylist() for name in ("cluster", "group_id", "kind", "source")), strict=True)
        for (cluster, group_id, kind, source), event in zip(names, _fields(others), strict=True):
            if group_id is not None:
                packet(cluster, shard_of(group_id))[0].append(event)
            elif kind in _FOR_ALL_SHARDS:
                for shard in range(spread.shards):
                    packet(cluster, shard)[0].append(event)
            elif source == BROKER_SOURCE:
                packet(cluster, 0)[0].append(event)
        counts = chain([len(batch)], repeat(0))
        yield pa.RecordBatch.from_arrays(
            [
                pa.array([cluster for cluster, _ in packets], pa.string()),
                pa.array([spread.key(*packet) for packet in packets], pa.int32()),
                pa.array([_ENCODER.encode((*held, rows)) for held, rows in zip(packets.values(), counts, strict=False)], pa.binary()),
            ],
            names=["cluster", "key", "events"],
        )


def _fields(batch: pa.RecordBatch) -> Iterator[tuple[Any, ...]]:
    """The fields of the Event of each row. What is null gets the default."""
    return zip(*(_values(name, batch[COLUMN_OF.get(name, name)]) for name in Event._fields), strict=True)


def _values(name: str, column: pa.Array) -> list[Any]:
    default = Event._field_defaults.get(name)
    if column.null_count == len(column):
        return [default] * len(column)
    if pa.types.is_timestamp(column.type):
        return list(pc.divide(column.cast(pa.timestamp("us", "UTC")).cast(pa.int64()), _US).to_pylist())
    if name == "offsets":
        return _offsets(column)
    if name in _EMPTY:
        return [() if items is None else tuple(_entry(_EMPTY[name], item) for item in items) for items in column.to_pylist()]
    if column.null_count and default is not None and default != ():
        column = pc.fill_null(column, default)
    return [default if value is None else value for value in column.to_pylist()]


def _entry(empty: Any, item: Mapping[str, Any]) -> Any:
    return empty._replace(**{name: value for name, value in item.items() if value is not None})


def _offsets(column: pa.ListArray) -> list[Offsets | None]:
    """The offsets of each row. Commits are so many that a row of Python objects for each partition would take longer than all else."""
    flat = column.flatten()
    missing = {"partition": "", "offset": -1, "end": -1, "topic_id": ""}
    present = [name for name in missing if flat.field(name).null_count < len(flat)]
    values = {name: pc.fill_null(flat.field(name), missing[name]).to_pylist() for name in present}
    ends = pc.cumulative_sum(pc.fill_null(pc.list_value_length(column), 0)).to_pylist()
    found: list[Offsets | None] = []
    begin = 0
    for end in ends:
        own = {name: tuple(values[name][begin:end]) for name in present} if end > begin else {}
        found.append(Offsets(own.get("partition", ()), own.get("offset", ()), own.get("end", ()), own.get("topic_id", ())) if own else None)
        begin = end
    return found
