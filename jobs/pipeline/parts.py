"""Reads, parses and writes large slices in tasks: the driver plans and commits.

    stretches of logs ──► parts (RAW rows) ─┬─ requests ──────────────────────► files of group_events and quarantine
                                            └─ other lines ──► Spark's parsers ──► files of group_events and quarantine

part_tasks.py has the tasks. Each writes its own files, which count when the driver commits them with the batch.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
from deltalake import DeltaTable

from jobs.lakehouse import tables
from jobs.lakehouse.added_files import AddedFile
from jobs.lakehouse.former_names import column_names
from jobs.logs.stretches.reading import StretchReaders, read_stretch
from jobs.parsing import batch
from jobs.pipeline.part_tasks import WRITTEN, Part, Target, other_lines, write_parsed, write_requests
from schemas import raw_lines

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_RESULT: Final = "result string"


@dataclass
class Written:
    """What tasks wrote: files by table, and the account of their lines as rows of input_lines."""

    files: dict[str, list[AddedFile]] = field(default_factory=dict)
    accounts: list[pa.Table] = field(default_factory=list)

    def add(self, result: str) -> None:
        """Adds the result of a task."""
        found = json.loads(result)
        for name, files in found["files"].items():
            self.files.setdefault(name, []).extend(AddedFile(**file) for file in files)
        self.accounts.append(pa.Table.from_pylist(found["account"], schema=batch.ACCOUNT))


def target_of(lakehouse: Path, batch_id: int) -> Target:
    """Where a batch goes."""
    folders = {name: tables.table_path(lakehouse, name) for name in WRITTEN}
    return Target(batch_id, folders, {name: column_names(DeltaTable(str(path))) for name, path in folders.items()})


def stretch_readers(spark: SparkSession) -> StretchReaders:
    """Lets tasks read stretches, one each."""
    context = spark.sparkContext

    def read(stretches: Sequence[Any]) -> Sequence[Any]:
        return context.parallelize(stretches, len(stretches)).map(read_stretch).collect()

    return StretchReaders(context.defaultParallelism, read)


def write_parts(spark: SparkSession, parts: Sequence[Part], target: Target, parse: Callable[[DataFrame], DataFrame]) -> Written:
    """Parses and writes the lines of parts. `parse`: makes rows of PARSED of RAW lines."""
    written = Written()
    requests = spark.sparkContext.parallelize(parts, len(parts)).map(partial(write_requests, target)).collect()
    numbers = spark.range(0, len(parts), 1, len(parts))
    others = numbers.mapInArrow(partial(other_lines, parts), raw_lines.SCHEMA).persist()
    try:
        results = parse(others).mapInArrow(partial(write_parsed, target), _RESULT).collect()
    finally:
        others.unpersist()
    for result in [*requests, *(row["result"] for row in results)]:
        written.add(result)
    return written
