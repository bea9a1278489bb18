"""Heartbeats that the log reader recognised by their shape (jobs/logs/beats.py), as rows of PARSED.

They are most lines of a request log. One pattern reads all their fields, which costs a tenth of what JSON and its checks cost; the rows are
those that request_log.py makes of the same lines.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Any, Final

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql.pandas.types import to_arrow_schema

from coordinator_model.events import HEARTBEAT, REQUEST_SOURCE
from jobs.logs.beat_numbers import durations_us
from jobs.logs.beats import SHAPE
from jobs.logs.times import LENGTH
from jobs.parsing.request_checks import CONNECTION, MAX_CONNECTION
from jobs.parsing.rows import COMMON, EVENT, PARSED

_host_of: Final = re.compile(CONNECTION, re.ASCII).fullmatch
_NUMBERS: Final = ("api_version", "correlation_id", "generation", "error_code")
_TEXTS: Final = ("client_id", "group_id", "member_id", "instance_id")
_MS: Final = 1_000  # microseconds


def parse(lines: DataFrame) -> DataFrame:
    """RAW lines whose `repeated` is not null, as rows of PARSED."""
    return lines.select(*COMMON, "text", "repeated").mapInArrow(_parse_batches, PARSED)


def _parse_batches(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    schema = to_arrow_schema(PARSED)
    nullable = pa.schema([field.with_nullable(True) for field in schema])
    for batch in batches:
        present = [name for name in (*COMMON, "repeated") if name in batch.schema.names]
        columns = {name: batch[name] for name in present} | event_columns(batch)
        arrays = [_typed(columns.get(field.name), field.type, len(batch)) for field in nullable]
        yield pa.RecordBatch.from_arrays(arrays, schema=schema)


def parsed(lines: pa.Table) -> pa.Table:
    """The same without Spark. `lines`: RAW lines whose `repeated` is not null, with `occurred_at` for `at`."""
    return pa.Table.from_batches(_parse_batches(lines.to_batches()), to_arrow_schema(PARSED))


def event_columns(lines: pa.RecordBatch) -> dict[str, pa.Array]:
    """The columns of PARSED that the text decides."""
    found = [match for text in lines["text"].to_pylist() if (match := SHAPE.fullmatch(text.encode(), LENGTH)) is not None]
    fields: dict[str, list[Any]] = {name: [int(match[name]) for match in found] for name in _NUMBERS}
    for name in _TEXTS:
        fields[name] = [None if match[name] is None else match[name].decode() for match in found]
    connections = [match["connection"].decode() for match in found]
    hosts = [_host(connection) for connection in connections]
    versions = [(match["software_name"] + b" " + match["software_version"]).decode() for match in found]
    durations = durations_us([match["times"] for match in found]) if found else np.zeros(0, np.int64)
    at_us = lines["occurred_at"].cast(pa.int64()).to_numpy(zero_copy_only=False)
    constant = {"verdict": EVENT, "source": REQUEST_SOURCE, "kind": HEARTBEAT}
    return {
        **{name: pa.array(values) for name, values in fields.items()},
        **{name: pa.repeat(pa.scalar(value), len(lines)) for name, value in constant.items()},
        "received_at": pa.array(at_us - durations).cast(pa.timestamp("us", "UTC")),
        "connection": pa.array([connection if host else None for connection, host in zip(connections, hosts, strict=True)], pa.string()),
        "client_host": pa.array(hosts, pa.string()),
        "software": pa.array([None if version == "unknown unknown" else version for version in versions], pa.string()),
    }


def _host(connection: str) -> str | None:
    match = _host_of(connection) if len(connection) <= MAX_CONNECTION else None
    return match[1] if match is not None else None


def _typed(values: pa.Array | None, wanted: pa.DataType, count: int) -> pa.Array:
    return pa.nulls(count, wanted) if values is None else values.cast(wanted)
