"""Records as rows of the parsers, without a JVM."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa

from jobs.parsing import kinds
from schemas.names import RAW_LINES
from schemas.tables import arrow_schema_of

if TYPE_CHECKING:
    from collections.abc import Sequence

_RAW = arrow_schema_of(RAW_LINES)


def read_lines(rows: Sequence[tuple[object, ...]], places: Sequence[int] | None = None) -> pa.Table:
    """Rows of PARSED of records, given as tuples of schemas/raw_lines.md. `places`: of records of a topic."""
    rows = [row + (None,) * (len(_RAW) - len(row)) for row in rows]
    columns = [pa.array(values, field.type) for values, field in zip(zip(*rows, strict=True), _RAW, strict=True)]
    lines = pa.RecordBatch.from_arrays(columns, schema=_RAW)
    return kinds.parsed(lines if places is None else lines.append_column("place", pa.array(places, pa.int64())))
