"""A row of `pipeline_health`: Spark's figures for a finished micro-batch, and the query's own counts."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from datetime import datetime
from typing import Any

import psutil

from jobs.common.times import epoch_ms


@dataclass(frozen=True)
class Memory:
    """Bytes; None: not known."""

    driver: int | None = None
    jvm: int | None = None
    workers: int | None = None  # all Python processes that the JVM started; a page that they share counts for each


@dataclass(frozen=True, kw_only=True)
class BatchCounts:
    """A query's own counts of a micro-batch. None: this query does not count that."""

    input_rows: int | None = None
    output_rows: int | None = None
    quarantined: int | None = None
    late_events: int | None = None
    divergences: int | None = None
    event_time: int | None = None
    groups: int | None = None
    held_events: int | None = None
    state_bytes: int | None = None


@dataclass(frozen=True, kw_only=True)
class BatchHealth(BatchCounts):
    """The row. Names are those of schemas/pipeline_health.md, times epoch ms."""

    occurred_at: int
    query: str
    run_id: str
    batch_id: int
    duration_ms: int
    input_rows: int = field()  # Spark always counts it
    latest_offset_ms: int | None = None
    planning_ms: int | None = None
    add_batch_ms: int | None = None
    commit_ms: int | None = None
    state_commit_ms: int | None = None
    lag_ms: int | None = None
    lag_events: int | None = None
    lag_bytes: int | None = None
    driver_memory_bytes: int | None = None
    jvm_memory_bytes: int | None = None
    worker_memory_bytes: int | None = None


def batch_health(
    query: str, progress: Mapping[str, Any], counts: BatchCounts, *, lag_events: int | None, lag_bytes: int | None, memory: Memory
) -> BatchHealth:
    """The row of a micro-batch. `progress`: StreamingQueryProgress as JSON.

    Spark's own count of input rows is taken only where the query has none: ingest reads a slice once for each kind of line, and Spark
    adds these up.
    """
    spent = progress["durationMs"]
    duration = int(spent.get("triggerExecution", progress["batchDuration"]))
    at = epoch_ms(datetime.fromisoformat(progress["timestamp"].replace("Z", "+00:00"))) + duration
    operators = progress.get("stateOperators") or ()
    return BatchHealth(
        **asdict(counts) | {"input_rows": progress["numInputRows"] if counts.input_rows is None else counts.input_rows},
        occurred_at=at,
        query=query,
        run_id=progress["runId"],
        batch_id=progress["batchId"],
        duration_ms=duration,
        latest_offset_ms=spent.get("latestOffset"),
        planning_ms=spent.get("queryPlanning"),
        add_batch_ms=spent.get("addBatch"),
        commit_ms=spent.get("walCommit", 0) + spent.get("commitOffsets", 0),
        state_commit_ms=sum(operator.get("commitTimeMs", 0) for operator in operators) if operators else None,
        lag_ms=None if counts.event_time is None else at - counts.event_time,
        lag_events=lag_events,
        lag_bytes=lag_bytes,
        driver_memory_bytes=memory.driver,
        jvm_memory_bytes=memory.jvm,
        worker_memory_bytes=memory.workers,
    )


def measured(jvm: int | None) -> Memory:
    """The memory of this process, of the JVM with that process id, and of the processes that the JVM started."""
    driver = resident(os.getpid())
    if jvm is None:
        return Memory(driver)
    try:
        started = psutil.Process(jvm).children(recursive=True)
    except psutil.Error:
        started = []
    return Memory(driver, resident(jvm), sum(resident(process.pid) or 0 for process in started))


def resident(pid: int) -> int | None:
    """Resident bytes of a process; None: it has ended, or this user may not read it."""
    try:
        return int(psutil.Process(pid).memory_info().rss)
    except psutil.Error:
        return None
