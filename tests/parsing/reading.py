"""Records as rows of the parsers, without a JVM."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa
from pyspark.sql.pandas.types import to_arrow_schema

from jobs.parsing import kinds
from schemas import raw_lines

if TYPE_CHECKING:
    from collections.abc import Sequence

_RAW = to_arrow_schema(raw_lines.SCHEMA)


def read_lines(rows: Sequence[tuple[object, ...]], places: Sequence[int] | None = None) -> pa.Table:
    """Rows of PARSED of records, given as tuples of raw_lines.SCHEMA. `places`: of records of a topic."""
    rows = [row + (None,) * (len(_RAW) - len(row)) for row in rows]
    columns = [pa.array(values, field.type) for values, field in zip(zip(*rows, strict=True), _RAW, strict=True)]
    lines = pa.RecordBatch.from_arrays(columns, schema=_RAW)
    return kinds.parsed(lines if places is None else lines.append_column("place", pa.array(places, pa.int64())))
