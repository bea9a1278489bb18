"""Heartbeats that the log reader recognised by their shape (jobs/logs/heartbeats/beats.py), as rows of PARSED.

They are most lines of a request log. One pattern reads all their fields, which costs a tenth of what JSON and its checks cost; the rows are
those that request_log.py makes of the same lines.
"""

from __future__ import annotations

from typing import Final

import pyarrow as pa
from pyspark.sql.pandas.types import to_arrow_schema

from coordinator_model.events import REQUEST_SOURCE
from jobs.kafka.bundles import Heartbeats
from jobs.kafka.folding import group_of
from jobs.logs.heartbeats.beat_numbers import durations_us
from jobs.logs.heartbeats.beats import SHAPE, fields_of
from jobs.logs.times import LENGTH
from jobs.parsing.heartbeat_bundles import beat_columns
from jobs.parsing.rows import COMMON, EVENT, PARSED

_ARROW: Final = to_arrow_schema(PARSED)
_MS: Final = 1_000  # microseconds


def parsed(lines: pa.RecordBatch) -> pa.RecordBatch:
    """RAW lines whose `repeated` is not null, with `occurred_at` for `at`, as rows of PARSED."""
    constant = {"verdict": EVENT, "source": REQUEST_SOURCE}
    columns = {
        **{name: lines[name] for name in (*COMMON, "repeated")},
        **{name: pa.repeat(pa.scalar(value), len(lines)) for name, value in constant.items()},
        **beat_columns(_beats(lines)),
    }
    arrays = [columns[field.name].cast(field.type) if field.name in columns else pa.nulls(len(lines), field.type) for field in _ARROW]
    return pa.RecordBatch.from_arrays(arrays, schema=_ARROW)


def _beats(lines: pa.RecordBatch) -> Heartbeats:
    """What the text decides: each line is of a group and a member of its own."""
    found = [match for text in lines["text"].to_pylist() if (match := SHAPE.fullmatch(text.encode(), LENGTH)) is not None]
    told, ones = [fields_of(match) for match in found], [1] * len(found)
    return Heartbeats(
        groups=[group_of(own) for own in told],
        members=ones,
        client_ids=[None if own.client_id is None else own.client_id.decode() for own in told],
        instance_ids=[None if own.instance_id is None else own.instance_id.decode() for own in told],
        member_ids=[own.member_id.decode() for own in told],
        connections=[own.connection.decode() for own in told],
        beats=ones,
        positions=lines["position"].to_pylist(),
        ats=(lines["occurred_at"].cast(pa.int64()).to_numpy() // _MS).tolist(),
        correlation_ids=[int(match["correlation_id"]) for match in found],
        durations=durations_us([match["times"] for match in found]).tolist() if found else [],
    )
