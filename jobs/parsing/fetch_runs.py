"""FETCH requests, which the log reader took as numbers (jobs/logs/fetches.py), as rows of group_events.

A row has what one connection read, second by second. Of a second and a partition stay the lowest and the highest position, and the end of
the log that was told last. Whichever slices and batches the lines of a second come in, together they say the same.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

import numpy as np
import pyarrow as pa
from pyspark.sql.pandas.types import to_arrow_schema

from coordinator_model.events import FETCH, REQUEST_SOURCE, TOPIC_NAMED
from jobs.logs.blocks import Numbers
from jobs.logs.fetches import NOT_TOLD, OUT_OF_RANGE, WIDTH, Fetched, Sender, decoded
from jobs.parsing.request_checks import client_host
from jobs.parsing.rows import SOFTWARE_UNKNOWN
from schemas import group_events

_READS: Final = to_arrow_schema(group_events.SCHEMA).field("reads").type
_SECOND: Final = 1_000  # ms
_US: Final = 1_000  # in a millisecond
_NO_POSITION: Final = 1 << 62


def fetch_rows(rows: pa.Table) -> pa.Table:
    """Rows of PARSED with FETCH requests as rows of group_events: one for each connection of a log, and for each topic that is named."""
    made: list[pa.Table] = []
    logs: dict[tuple[str, str, str], list[tuple[int, Fetched]]] = {}
    for row in rows.select(["cluster", "broker", "origin", "position", "repeated"]).to_pylist():
        fetched = decoded(row["repeated"])
        shift = row["position"] - fetched.position  # positions of a stretch count from its first line
        logs.setdefault((row["cluster"], row["broker"], row["origin"]), []).append((shift, fetched))
    for (cluster, broker, origin), pieces in sorted(logs.items()):
        log = {"cluster": cluster, "broker": broker, "origin": origin, "source": REQUEST_SOURCE}
        made += [_connections(log, _Cells.of(pieces)), pa.Table.from_pylist(_topics(log, pieces), schema=_NAMED)]
    return pa.concat_tables(made, promote_options="default") if made else _NAMED.empty_table()


class _Cells(NamedTuple):
    """Positions of a log, ordered by connection, partition and second."""

    connections: Sequence[Sender]
    partitions: Sequence[str]
    numbers: Numbers  # WIDTH of each

    @classmethod
    def of(cls, pieces: Sequence[tuple[int, Fetched]]) -> _Cells:
        connections: dict[Sender, int] = {}
        partitions: dict[str, int] = {}
        found = [np.zeros((0, WIDTH), np.int64)]
        for shift, fetched in pieces:
            numbers = np.frombuffer(fetched.cells, np.int64).reshape(-1, WIDTH).copy()
            if not len(numbers):
                continue
            own = [connections.setdefault(sender, len(connections)) for sender in fetched.senders]
            named = [partitions.setdefault(name, len(partitions)) for name in fetched.partitions]
            numbers[:, 0], numbers[:, 1] = np.array(own)[numbers[:, 0]], np.array(named)[numbers[:, 1]]
            numbers[:, 5] += shift
            found.append(numbers)
        return cls([*connections], [*partitions], np.concatenate(found))


def _connections(log: Mapping[str, str], cells: _Cells) -> pa.Table:
    """A row for each connection."""
    connection, partition, at, position, end, line = cells.numbers.T
    order = np.lexsort((line, at, end != OUT_OF_RANGE, partition, at // _SECOND, connection))
    connection, partition, at, position, end, line = cells.numbers[order].T
    second = at // _SECOND
    starts = np.flatnonzero(_changes(connection) | _changes(second) | _changes(partition) | _changes(end != OUT_OF_RANGE))
    if not len(starts):
        return pa.table({})
    ends_told = np.where(end == NOT_TOLD, -1, np.arange(len(end)))
    last_told = np.maximum.reduceat(ends_told, starts)
    lowest = np.minimum.reduceat(np.where(position < 0, _NO_POSITION, position), starts)
    highest = np.maximum.reduceat(position, starts)
    of = connection[starts]
    rows = np.flatnonzero(_changes(of))
    first_ms = second[starts][rows] * _SECOND
    since = np.repeat(first_ms, np.diff(rows, append=len(of)))
    is_told, is_placed = last_told >= 0, highest >= 0
    fields = {
        "partition": pa.array(cells.partitions, pa.string()).take(pa.array(partition[starts])),
        "since_ms": pa.array(second[starts] * _SECOND - since, pa.int32()),
        "position": pa.array(lowest, pa.int64(), mask=~is_placed),
        "reached": pa.array(highest, pa.int64(), mask=~is_placed),
        "end": pa.array(end[last_told], pa.int64(), mask=~is_told),
        "end_since_ms": pa.array(at[last_told] - since, pa.int32(), mask=~is_told),
    }
    values = pa.StructArray.from_arrays([fields[field.name] for field in _READS.value_type], fields=list(_READS.value_type))
    begins = np.flatnonzero(_changes(connection))
    counts = np.array([len(np.unique(part)) for part in np.split(line, begins[1:])])
    told = [cells.connections[number] for number in of[rows].tolist()]
    columns = {
        **{name: pa.repeat(pa.scalar(value), len(rows)) for name, value in {**log, "kind": FETCH}.items()},
        "position": pa.array(np.maximum.reduceat(line, begins)),
        "received_at": _times(first_ms),
        "occurred_at": _times(np.maximum.reduceat(at, begins)),
        "connection": pa.array([name for name, *_ in told], pa.string()),
        "client_id": pa.array([client_id for _, client_id, _ in told], pa.string()),
        "client_host": pa.array([client_host(name) for name, *_ in told], pa.string()),
        "software": pa.array([None if software in SOFTWARE_UNKNOWN else software for *_, software in told], pa.string()),
        "reads": pa.ListArray.from_arrays(pa.array(np.append(rows, len(of)), pa.int32()), values).cast(_READS),
        "lines": pa.array(counts, pa.int32()),
    }
    return pa.table(columns)


def _topics(log: Mapping[str, str], pieces: Sequence[tuple[int, Fetched]]) -> list[dict[str, Any]]:
    """A row for each topic whose id an answer to METADATA told, at the first of these."""
    first: dict[str, tuple[int, int, str]] = {}
    for shift, fetched in pieces:
        for topic_id, (name, at_ms, line) in fetched.topics.items():
            first[topic_id] = min(first.get(topic_id, (at_ms, line + shift, name)), (at_ms, line + shift, name))
    return [
        {
            **log, "kind": TOPIC_NAMED, "position": line, "received_at": at_ms * _US, "occurred_at": at_ms * _US, "lines": 0,
            "offsets": [{"partition": name, "topic_id": topic_id}],
        }
        for topic_id, (at_ms, line, name) in sorted(first.items())
    ]  # fmt: skip


def _changes(values: Numbers) -> Any:
    """Whether each value differs from the one before."""
    return np.append(True, values[1:] != values[:-1])[: len(values)]


def _times(ms: Numbers) -> pa.Array:
    return pa.array(ms * _US).cast(pa.timestamp("us", "UTC"))


_ALL: Final = to_arrow_schema(group_events.SCHEMA)
_NAMED: Final = pa.schema(
    [_ALL.field(name).with_nullable(True) for name in (
        "cluster", "broker", "source", "kind", "origin", "position", "received_at", "occurred_at", "lines", "offsets",
    )]
)  # fmt: skip
