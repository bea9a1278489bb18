"""Reads, parses and writes large slices in tasks: the driver plans and commits.

    stretches of logs ──► parts (RAW rows) ──► files of group_events and quarantine

part_tasks.py has the tasks. Each writes its own files, which count when the driver commits them with the batch.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Final

from jobs.common.stores import Place, place_of
from jobs.logs.stretches.shares import shares_in
from jobs.logs.workers import Result, Work, Workers
from jobs.pipeline.part_tasks import Part, Written, write_share

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def tasks_as_workers(spark: SparkSession) -> Workers:
    """Lets tasks work on logs, one for each piece of work."""
    context = spark.sparkContext

    def distribute(function: Callable[[Work], Result], work: Sequence[Work]) -> Sequence[Result]:
        return context.parallelize(work, len(work)).map(function).collect() if work else []

    return Workers(context.defaultParallelism, distribute)


def _here(function: Callable[[Work], Result], work: Sequence[Work]) -> Sequence[Result]:
    return [function(one) for one in work]


THIS_PROCESS: Final = Workers(1, _here)
"""Does the work itself."""


def write_parts(workers: Workers, parts: Sequence[Part], lakehouse: Place, batch_id: int) -> Sequence[Written]:
    """Parses and writes the lines of parts."""
    shares = max(shares_in(place_of(part.path)) for part in parts)
    return workers.map(partial(write_share, lakehouse, batch_id, parts), range(shares))
