"""Reads what the pipeline wrote about itself, without Spark."""

from __future__ import annotations

import json
from dataclasses import asdict, fields
from datetime import datetime, timezone
from pathlib import Path
from statistics import median
from typing import Final

import duckdb
from deltalake import DeltaTable
from deltalake.exceptions import DeltaError

from jobs.common.errors import LakehouseError
from jobs.common.text import printable
from jobs.common.times import duration, instant
from jobs.health import status
from jobs.health.batch_health import BatchHealth
from jobs.health.verdict import STATE_WINDOW_MS, Evidence, Limits, Problem
from jobs.lakehouse import locks
from jobs.lakehouse.folder import Lakehouse
from jobs.lakehouse.reader import table_rows
from schemas.names import PIPELINE_HEALTH

_COLUMNS: Final = tuple(field.name for field in fields(BatchHealth))
_TIMES: Final = ("at", "event_time")


def read(folder: Path, now_ms: int) -> Evidence:
    """The status file, the lock and the newest rows of pipeline_health. LakehouseError: there are none, or they cannot be read."""
    house = Lakehouse(folder)
    if not folder.is_dir():
        raise LakehouseError(f"no lakehouse at {folder}: no such folder")
    newest = status.read(house.status)
    if newest is None:
        raise LakehouseError(f"no `rebalance run` of this version has worked in {folder}: its health is unknown")
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


def read_rows(table: Path, since_ms: int = 0) -> list[BatchHealth]:
    """Rows of pipeline_health since then, in order of time. Empty if there is no table yet. LakehouseError: it is damaged."""
    try:
        if not DeltaTable.is_deltatable(str(table)):
            return []
        names = {field.name for field in DeltaTable(str(table)).schema().fields}
        since = datetime.fromtimestamp(since_ms / 1_000, tz=timezone.utc)
        rows = table_rows(table, [name for name in _COLUMNS if name in names], since=("at", since))
    except (DeltaError, OSError, duckdb.Error) as error:
        raise LakehouseError(f"cannot read {table}: {printable(str(error), 300)}") from None
    for row in rows:
        row.update({name: round(row[name].timestamp() * 1_000) for name in _TIMES if row.get(name) is not None})
    return sorted((BatchHealth(**row) for row in rows), key=lambda row: (row.at, row.query))


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
        parts += [f"at {instant(tracked[-1].event_time)[:19]}{behind}", f"{tracked[-1].groups:,} groups"]
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
