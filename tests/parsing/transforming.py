"""The parsers of all sources, with their expressions built once in a test process, as ingest builds them once in a run."""

from __future__ import annotations

from typing import TYPE_CHECKING

from jobs.parsing import kinds
from jobs.pipeline.ingest import prepared_parsers

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def transform(raw: DataFrame) -> DataFrame:
    """Turns raw records, of raw_lines.SCHEMA, into rows of PARSED, one each."""
    return kinds.parse_with(kinds.with_source(raw), prepared_parsers(raw.sparkSession.sparkContext.applicationId).values())
