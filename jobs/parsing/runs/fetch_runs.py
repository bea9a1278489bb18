"""FETCH and others that the log reader took as numbers (jobs/logs/fetches), as rows of group_events.

A row has what one connection read, or the ends that it asked for, by spans of some seconds. Of a span and a partition stay the first and
the last position, and the end of the log that was told last; where the client goes back, or pauses, it is told apart. Whichever slices and
batches lines come in, together their rows say the same.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from coordinator_model.events import REQUEST_SOURCE, TOPIC_NAMED
from coordinator_model.offsets.reads import NOT_TOLD, OUT_OF_RANGE, PAUSE_MS, SPAN_MS
from jobs.logs.blocks import Numbers
from jobs.logs.fetches.lines import WIDTH, Fetched, Sender, decoded
from jobs.parsing.request_checks import client_host
from jobs.parsing.rows import EVENTS, SOFTWARE_UNKNOWN

_READS: Final = EVENTS.field("reads").type
_US: Final = 1_000  # in a millisecond


def fetch_rows(rows: pa.Table) -> Iterator[pa.Table]:
    """Rows of PARSED with such requests as rows of group_events: one for each connection of a log, and for each topic that is named."""
    logs: dict[tuple[str, str, str], list[tuple[int, Fetched]]] = {}
    for row in rows.select(["cluster", "broker", "origin", "position", "repeated"]).to_pylist():
        fetched = decoded(row["repeated"])
        shift = row["position"] - fetched.position  # positions of a stretch count from its first line
        logs.setdefault((row["cluster"], row["broker"], row["origin"]), []).append((shift, fetched))
    for (cluster, broker, origin), pieces in sorted(logs.items()):
        log = {"cluster": cluster, "broker": broker, "origin": origin, "source": REQUEST_SOURCE}
        yield _connections(log, _Cells.of(pieces))
        yield pa.Table.from_pylist(_topics(log, pieces), schema=EVENTS)


class _Cells(NamedTuple):
    """Positions of a log."""

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
    """A row for each connection and API."""
    if not len(cells.numbers):
        return pa.table({})
    connection, partition, at, position, end, line, transactions, asked, stable = cells.numbers.T
    kind = np.where(end == OUT_OF_RANGE, 0, np.where(position == NOT_TOLD, 1, 2))
    order = np.lexsort((line, at, partition, kind, connection))
    kind, (connection, partition, at, position, end, line, transactions, asked, stable) = kind[order], cells.numbers[order].T
    is_new = _changes(connection) | _changes(partition) | _changes(kind)
    step, pause = np.diff(position, prepend=position[:1]), np.diff(at, prepend=at[:1])
    starts = np.flatnonzero(is_new | _changes(at // SPAN_MS) | (step < 0) | ((step > 0) & (pause > PAUSE_MS)))
    last = np.append(starts[1:], len(at)) - 1
    told = np.maximum.reduceat(np.where((end == NOT_TOLD) & (stable == NOT_TOLD), -1, np.arange(len(at))), starts)
    of, begins = connection[starts], np.flatnonzero(_changes(connection))
    rows = np.flatnonzero(_changes(of))
    first_ms = np.minimum.reduceat(at, begins)
    since = np.repeat(first_ms, np.diff(rows, append=len(of)))
    fields = {
        "partition": pa.array(cells.partitions, pa.string()).take(pa.array(partition[starts])),
        "first_ms": pa.array(at[starts] - since, pa.int32()),
        "last_ms": pa.array(at[last] - since, pa.int32()),
        "end_ms": pa.array(at[told] - since, pa.int32(), mask=told < 0),
        "position": pa.array(position[starts], pa.int64(), mask=position[starts] == NOT_TOLD),
        "reached": pa.array(position[last], pa.int64(), mask=position[last] == NOT_TOLD),
        "end": pa.array(end[told], pa.int64(), mask=(told < 0) | (end[told] == NOT_TOLD)),
        "transactions": pa.array(np.maximum.reduceat(transactions, starts) > 0),
        "asked_ms": pa.array(asked[last] - since, pa.int32()),
        "previous": pa.array(position[last - 1], pa.int64(), mask=(last == starts) | (position[last - 1] == NOT_TOLD)),
        "stable": pa.array(stable[told], pa.int64(), mask=(told < 0) | (stable[told] == NOT_TOLD)),
    }
    values = pa.StructArray.from_arrays([fields[field.name] for field in _READS.value_type], fields=list(_READS.value_type))
    senders = [cells.connections[number] for number in of[rows].tolist()]
    columns = {
        **{name: pa.repeat(pa.scalar(value), len(rows)) for name, value in log.items()},
        "kind": pa.array([sender.api for sender in senders], pa.string()),
        "position": pa.array(np.maximum.reduceat(line, begins)),
        "received_at": _times(first_ms),
        "occurred_at": _times(np.maximum.reduceat(at, begins)),
        "connection": pa.array([sender.connection for sender in senders], pa.string()),
        "client_id": pa.array([sender.client_id for sender in senders], pa.string()),
        "client_host": pa.array([client_host(sender.connection) for sender in senders], pa.string()),
        "software": pa.array([None if s.software in SOFTWARE_UNKNOWN else s.software for s in senders], pa.string()),
        "reads": pa.ListArray.from_arrays(pa.array(np.append(rows, len(of)), pa.int32()), values).cast(_READS),
        "lines": pa.array(_distinct(connection, line, begins), pa.int32()),
    }
    return pa.table(columns)


def _distinct(connection: Numbers, line: Numbers, begins: Numbers) -> Numbers:
    """How many lines each connection has."""
    order = np.lexsort((line, connection))
    is_other = _changes(connection[order]) | _changes(line[order])
    return np.add.reduceat(is_other.astype(np.int64), begins)


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


def _changes(values: npt.NDArray[Any]) -> npt.NDArray[np.bool_]:
    """Whether each value differs from the one before."""
    return np.append(True, values[1:] != values[:-1])[: len(values)]


def _times(ms: Numbers) -> pa.Array:
    return pa.array(ms * _US).cast(pa.timestamp("us", "UTC"))
