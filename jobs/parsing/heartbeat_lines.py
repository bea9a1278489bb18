"""Heartbeats that the log reader recognised by their shape (jobs/logs/heartbeats/beats.py), as rows of PARSED.

They are most lines of a request log. One pattern reads all their fields, which costs a tenth of what JSON and its checks cost; the rows are
those that request_log.py makes of the same lines.
"""

from __future__ import annotations

import re
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql.pandas.types import to_arrow_schema

from coordinator_model.events import CONSUMER_GROUP_HEARTBEAT, HEARTBEAT, REQUEST_SOURCE
from jobs.logs.heartbeats.beat_numbers import durations_us
from jobs.logs.heartbeats.beats import SHAPE, fields_of
from jobs.logs.times import LENGTH
from jobs.parsing.request_checks import CONNECTION, MAX_CONNECTION
from jobs.parsing.rows import COMMON, EVENT, PARSED

_ARROW: Final = to_arrow_schema(PARSED)
_host_of: Final = re.compile(CONNECTION, re.ASCII).fullmatch
_NUMBERS: Final = ("api_version", "generation", "error_code")
_TEXTS: Final = ("client_id", "group_id", "member_id", "instance_id")
_MS: Final = 1_000  # microseconds
_Numbers = npt.NDArray[np.int32]


def parsed(lines: pa.RecordBatch) -> pa.RecordBatch:
    """RAW lines whose `repeated` is not null, with `occurred_at` for `at`, as rows of PARSED."""
    columns = {name: lines[name] for name in (*COMMON, "repeated")} | event_columns(lines)
    arrays = [_typed(columns.get(field.name), field.type, len(lines)) for field in _ARROW]
    return pa.RecordBatch.from_arrays(arrays, schema=_ARROW)


def event_columns(lines: pa.RecordBatch) -> dict[str, pa.Array]:
    """The columns of PARSED that the text decides."""
    found = [match for text in lines["text"].to_pylist() if (match := SHAPE.fullmatch(text.encode(), LENGTH)) is not None]
    told = [fields_of(match) for match in found]
    fields: dict[str, list[Any]] = {name: [int(getattr(own, name)) for own in told] for name in _NUMBERS}
    fields["correlation_id"] = [int(match["correlation_id"]) for match in found]
    for name in _TEXTS:
        fields[name] = [None if text is None else text.decode() for text in (getattr(own, name) for own in told)]
    kinds = pa.array([HEARTBEAT if own.interval_ms is None else CONSUMER_GROUP_HEARTBEAT for own in told], pa.string())
    intervals = np.array([-1 if own.interval_ms is None else int(own.interval_ms) for own in told], np.int32)
    connections = [own.connection.decode() for own in told]
    hosts = [_host(connection) for connection in connections]
    versions = [(own.software_name + b" " + own.software_version).decode() for own in told]
    durations = durations_us([match["times"] for match in found]) if found else np.zeros(0, np.int64)
    at_us = lines["occurred_at"].cast(pa.int64()).to_numpy(zero_copy_only=False)
    constant = {"verdict": EVENT, "source": REQUEST_SOURCE}
    return {
        **{name: pa.array(values) for name, values in fields.items()},
        **{name: pa.repeat(pa.scalar(value), len(lines)) for name, value in constant.items()},
        "kind": kinds,
        **steady_columns(kinds, pa.array(fields["member_id"], pa.string()), np.array(fields["generation"], np.int32), intervals),
        "received_at": pa.array(at_us - durations).cast(pa.timestamp("us", "UTC")),
        "connection": pa.array([connection if host else None for connection, host in zip(connections, hosts, strict=True)], pa.string()),
        "client_host": pa.array(hosts, pa.string()),
        "software": pa.array([None if version == "unknown unknown" else version for version in versions], pa.string()),
    }


def steady_columns(kinds: pa.Array, member_ids: pa.Array, epochs: _Numbers, intervals_ms: _Numbers) -> dict[str, pa.Array]:
    """The columns that only steady heartbeats of the consumer protocol have: their answers repeat the request."""
    consumer = pc.equal(kinds, CONSUMER_GROUP_HEARTBEAT)
    return {
        "answer_member_id": pc.if_else(consumer, member_ids, None),
        "answer_generation": pc.if_else(consumer, pa.array(epochs), None),
        "rebalance_timeout_ms": pc.if_else(consumer, pa.scalar(-1, pa.int32()), None),
        "heartbeat_interval_ms": pc.if_else(consumer, pa.array(intervals_ms), None),
    }


def _host(connection: str) -> str | None:
    match = _host_of(connection) if len(connection) <= MAX_CONNECTION else None
    return match[1] if match is not None else None


def _typed(values: pa.Array | None, wanted: pa.DataType, count: int) -> pa.Array:
    return pa.nulls(count, wanted) if values is None else values.cast(wanted)
