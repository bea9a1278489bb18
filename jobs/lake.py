"""Reads the lakehouse without Spark, in under a second: Delta's log through delta-rs, the data through DuckDB."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

import duckdb
from deltalake import DeltaTable
from deltalake.exceptions import TableNotFoundError

from jobs.errors import LakehouseError

TABLES: Final = (
    "group_events",
    "quarantine",
    "input_lines",
    "group_transitions",
    "rebalances",
    "member_sessions",
    "findings",
)
"""Names of the tables. Their schemas are in schemas/, which needs PySpark to be imported: a test compares the two."""


class Lake:
    """A view for every table of a lakehouse, as it is when this is made. Times are read as numbers: epoch_ms("at")."""

    def __init__(self, folder: Path) -> None:
        self._connection = duckdb.connect()
        self._connection.execute("SET threads = 2")
        found = [name for name in TABLES if self._register(folder, name)]
        if "group_events" not in found:
            raise LakehouseError(f"no lakehouse at {folder}: no table group_events in it")
        self.tables = tuple(found)

    def _register(self, folder: Path, name: str) -> bool:
        try:
            table = DeltaTable(str(folder / name))
        except TableNotFoundError:
            return False
        self._connection.register(name, table.to_pyarrow_dataset())
        return True

    def rows(self, query: str, *parameters: Any) -> list[dict[str, Any]]:
        """Result rows of a query, by column name."""
        cursor = self._connection.execute(query, parameters)
        names = [column[0] for column in cursor.description or ()]
        return [dict(zip(names, row, strict=True)) for row in cursor.fetchall()]


def account(folder: Path) -> dict[str, int]:
    """Totals over the whole lakehouse: lines, rebalances and findings. Zeros where there is no table yet."""
    totals = dict.fromkeys(("lines_read", "skipped", "events", "quarantined", "rebalances", "findings"), 0)
    try:
        lake = Lake(folder)
    except LakehouseError:
        return totals
    if "input_lines" in lake.tables:
        sums = ", ".join(f"coalesce(sum({name}), 0)::BIGINT {name}" for name in list(totals)[:4])
        totals.update(lake.rows(f"SELECT {sums} FROM input_lines")[0])  # noqa: S608 - names from above
    for name in ("rebalances", "findings"):
        if name in lake.tables:
            totals[name] = lake.rows(f"SELECT count(*) n FROM {name}")[0]["n"]  # noqa: S608
    return totals
