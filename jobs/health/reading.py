"""Reads what the pipeline wrote about itself, without Spark."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, fields
from datetime import datetime, timedelta
from statistics import median
from typing import Any, Final

import duckdb
from deltalake.exceptions import DeltaError, TableNotFoundError

from jobs.common.errors import LakehouseError
from jobs.common.stores import Place
from jobs.common.text import many, printable
from jobs.common.times import EPOCH, duration, epoch_ms, instant
from jobs.health import status
from jobs.health.batch_health import BatchHealth
from jobs.health.verdict import STATE_WINDOW_MS, Evidence, Limits, Problem
from jobs.lakehouse import locks
from jobs.lakehouse.folder import Lakehouse, is_lakehouse
from jobs.lakehouse.reader import table_rows
from schemas.names import PIPELINE_HEALTH

_COLUMNS: Final = frozenset(field.name for field in fields(BatchHealth))


def read(folder: Place, now_ms: int) -> Evidence:
    """The status file, the lock and the newest rows of pipeline_health. LakehouseError: there are none, or they cannot be read."""
    house = Lakehouse(folder)
    if not folder.is_dir():
        raise LakehouseError(f"no lakehouse at {folder}: no such folder")
    newest = status.read(house.status)
    if newest is None:
        others = "; jobs that spark-submit starts report to Spark's own metrics (docs/operations.md)" if is_lakehouse(folder) else ""
        raise LakehouseError(f"health unknown: no `rebalance run` has worked in {folder}{others}")
    # First the lock, then the status: a process that ends between the two is not taken for one that was killed.
    running = locks.is_held(house.lock)
    newest = status.read(house.status) or newest
    if running and newest.state != status.RUNNING:
        running = locks.is_held(house.lock)
    try:
        rows = read_rows(folder / PIPELINE_HEALTH, min(now_ms, newest.at_ms) - STATE_WINDOW_MS)
    except LakehouseError:
        if newest.unwritten is None:
            raise
        rows = []  # a table that cannot be written need not be readable
    return Evidence(now_ms, running, newest, rows, log=str(house.log))


def read_rows(table: Place, since_ms: int = 0) -> list[BatchHealth]:
    """Rows of pipeline_health since then, in order of time. Empty if there is no table yet. LakehouseError: it is damaged."""
    try:
        rows = table_rows(table, since=("occurred_at", EPOCH + timedelta(milliseconds=since_ms)))
    except TableNotFoundError:
        return []
    except (DeltaError, OSError, duckdb.Error) as error:
        raise LakehouseError(f"cannot read {table}: {printable(str(error), 300)}") from None
    return sorted((_batch_health(row) for row in rows), key=lambda row: (row.occurred_at, row.query))


def _batch_health(row: Mapping[str, Any]) -> BatchHealth:
    """A row of the table, whose columns may be fewer or more: another version may have written it."""
    values: dict[str, Any] = {name: row[name] for name in row if name in _COLUMNS}
    return BatchHealth(**values | {name: epoch_ms(value) for name, value in values.items() if isinstance(value, datetime)})


def summary(evidence: Evidence, limits: Limits) -> str:
    """One line about a pipeline without problems."""
    process = evidence.status
    parts = [
        f"running since {instant(process.started_ms)[:19]} UTC" if evidence.running else f"finished at {instant(process.at_ms)[:19]} UTC"
    ]
    rows = evidence.recent(limits)
    tracked = [row for row in rows if row.event_time is not None]
    if tracked:
        behind = f", {duration(tracked[-1].lag_ms)} behind" if evidence.live and (tracked[-1].lag_ms or 0) >= 0 else ""
        parts += [f"logs read up to {instant(tracked[-1].event_time)[:19]}{behind}", f"{many(tracked[-1].groups or 0, 'group')} tracked"]
    if evidence.running:
        parts.append(f"{sum(query.lag_events or 0 for query in process.queries):,} rows wait")
    if rows:
        each = round(median(row.duration_ms for row in rows))
        parts.append(f"{len(rows):,} micro-batches in the last {duration(limits.window_ms)}, {duration(each)} each")
    return ", ".join(parts)


def to_json(evidence: Evidence, limits: Limits, problems: list[Problem]) -> str:
    """The verdict for programs: with the status, the newest row of each query and the limits."""
    answer = {
        "ok": not problems,
        "at_ms": evidence.now_ms,
        "running": evidence.running,
        "problems": [asdict(problem) for problem in problems],
        "status": asdict(evidence.status),
        "newest": {row.query: asdict(row) for row in evidence.recent(limits)},
        "limits": asdict(limits),
    }
    return json.dumps(answer, indent=2)
