"""Reads what the pipeline wrote about itself, without Spark."""

from __future__ import annotations

import json
from dataclasses import asdict, fields
from datetime import datetime, timezone
from pathlib import Path
from statistics import median
from typing import Any, Final

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
    """What is known of the pipeline of a lakehouse. LakehouseError: nothing."""
    house = Lakehouse(folder)
    if not folder.is_dir():
        raise LakehouseError(f"no lakehouse at {folder}: no such folder")
    said = status.read(house.status)
    if said is None:
        raise LakehouseError(f"no `rebalance run` of this version has worked in {folder}: it cannot be told")
    # The lock before the status: a process that ends between the two is not taken for one that was killed.
    held = locks.is_held(house.lock)
    said = status.read(house.status) or said
    if held and said.state != status.RUNNING:
        held = locks.is_held(house.lock)
    try:
        rows = _rows(folder / PIPELINE_HEALTH, min(now_ms, said.at_ms) - STATE_WINDOW_MS)
    except LakehouseError:
        if said.unwritten is None:
            raise
        rows = []  # what cannot be written need not be readable
    return Evidence(now_ms, held, said, rows, log=str(house.log))


def _rows(table: Path, since_ms: int) -> list[BatchHealth]:
    """Rows since then, in order. None where the table could not be written yet, or ever."""
    try:
        if not DeltaTable.is_deltatable(str(table)):
            return []
        delta = DeltaTable(str(table))
        known = [name for name in _COLUMNS if name in {field.name for field in delta.schema().fields}]
        since = datetime.fromtimestamp(since_ms / 1_000, tz=timezone.utc)
        found = table_rows(table, known, since=("at", since))
    except (DeltaError, OSError, duckdb.Error) as error:
        raise LakehouseError(f"cannot read {table}: {printable(str(error), 300)}") from None
    for row in found:
        row.update({name: round(row[name].timestamp() * 1_000) for name in _TIMES if row.get(name) is not None})
    return sorted((BatchHealth(**row) for row in found), key=lambda row: (row.at, row.query))


def well(evidence: Evidence, limits: Limits) -> str:
    """What is known of a pipeline that is well."""
    said = evidence.status
    parts = [f"running since {instant(said.started_ms)[:19]} UTC" if evidence.held else f"finished at {instant(said.at_ms)[:19]} UTC"]
    rows = evidence.recent(limits)
    tracked = [row for row in rows if row.event_time is not None]
    if tracked:
        behind = f", {duration(tracked[-1].lag_ms)} behind" if evidence.live and (tracked[-1].lag_ms or 0) >= 0 else ""
        parts += [f"at {instant(tracked[-1].event_time)[:19]}{behind}", f"{tracked[-1].groups:,} groups"]
    if evidence.held:
        parts.append(f"{sum(query.lag_events or 0 for query in said.queries):,} rows wait")
    if rows:
        parts.append(f"{len(rows):,} micro-batches in the last {duration(limits.window_ms)}, {duration(_median(rows))} each")
    return ", ".join(parts)


def _median(rows: list[BatchHealth]) -> int:
    return round(median(row.duration_ms for row in rows))


def to_json(evidence: Evidence, limits: Limits, found: list[Problem]) -> str:
    """For programs: the verdict, what it rests on, and the newest row of each query."""
    newest: dict[str, dict[str, Any]] = {row.query: asdict(row) for row in evidence.recent(limits)}
    said = {
        "ok": not found,
        "at_ms": evidence.now_ms,
        "running": evidence.held,
        "problems": [asdict(problem) for problem in found],
        "status": asdict(evidence.status),
        "newest": newest,
        "limits": asdict(limits),
    }
    return json.dumps(said, indent=2)
