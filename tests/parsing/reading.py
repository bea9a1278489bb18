"""Request lines as rows, without a JVM."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa
from pyspark.sql.pandas.types import to_arrow_schema

from jobs.parsing import request_log
from schemas import raw_lines

if TYPE_CHECKING:
    from collections.abc import Sequence

_RAW = to_arrow_schema(raw_lines.SCHEMA)


def raw_batch(rows: Sequence[tuple[object, ...]]) -> pa.RecordBatch:
    """Records, as tuples of raw_lines.SCHEMA, as parsers get them."""
    columns = [pa.array(values, field.type) for values, field in zip(zip(*rows, strict=True), _RAW, strict=True)]
    names = ["occurred_at" if name == "at" else name for name in _RAW.names]
    return pa.RecordBatch.from_arrays([*columns, pa.nulls(len(rows), pa.int64())], [*names, "place"])


def read_requests(rows: Sequence[tuple[object, ...]]) -> pa.Table:
    """Rows of PARSED of records that are request lines."""
    return pa.Table.from_batches([request_log.parsed(raw_batch(rows))])
