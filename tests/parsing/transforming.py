"""The parsers of all sources, with their expressions built once in a test process, as ingest builds them once in a run."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from jobs.parsing import kinds
from jobs.pipeline.prepared import PreparedTransform

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

# Building takes 3 s. They serve the one SparkSession of the tests, and DataFrames of raw_lines.SCHEMA.
_PARSERS: Final = [PreparedTransform(parser) for parser in kinds.PARSERS.values()]


def transform(raw: DataFrame) -> DataFrame:
    """Turns raw records into rows of PARSED, one each."""
    return kinds.parse_with(kinds.with_source(raw), _PARSERS)
