"""Reads the lakehouse without Spark, in under a second: Delta's log through delta-rs, the data through DuckDB."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import duckdb
from deltalake import DeltaTable
from deltalake.exceptions import TableNotFoundError

from jobs import questions
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


@dataclass(frozen=True)
class Answer:
    """Result rows under column names. Times are aware datetimes in UTC."""

    columns: tuple[str, ...]
    rows: list[tuple[Any, ...]]

    def by_name(self) -> list[dict[str, Any]]:
        """Rows as dictionaries."""
        return [dict(zip(self.columns, row, strict=True)) for row in self.rows]


class Lake:
    """A view for every table of a lakehouse, as it is when this is made, or for some of them. In `rows`, times are read
    as numbers: epoch_ms("at").
    """

    def __init__(self, folder: Path, tables: Collection[str] = TABLES) -> None:
        self._folder = folder
        self._connection = duckdb.connect()
        self._connection.execute("SET threads = 2")
        if not DeltaTable.is_deltatable(str(folder / "group_events")):
            raise LakehouseError(f"no lakehouse at {folder}: no table group_events in it")
        self.tables = tuple(name for name in TABLES if name in tables and self._register(name))

    def _register(self, name: str) -> bool:
        try:
            table = DeltaTable(str(self._folder / name))
        except TableNotFoundError:
            return False
        self._connection.register(name, table.to_pyarrow_dataset())
        return True

    def rows(self, query: str, *parameters: Any) -> list[dict[str, Any]]:
        """Result rows of a query, by column name."""
        cursor = self._connection.execute(query, parameters)
        names = [column[0] for column in cursor.description or ()]
        return [dict(zip(names, row, strict=True)) for row in cursor.fetchall()]

    def ask(self, text: str, values: Mapping[str, Any]) -> Answer:
        """Result rows of a query in the words of sql/, with its parameters as $name."""
        self._prepare(text)
        try:
            found = self._connection.execute(text, dict(values)).to_arrow_table()
        except duckdb.BinderException as error:
            reason = str(error).splitlines()[0]
            raise LakehouseError(
                f"the tables of {self._folder} are not those of this version; `rebalance run` adds what is missing ({reason})"
            ) from None
        columns = [column.to_pylist() for column in found.columns]
        return Answer(tuple(found.column_names), list(zip(*columns, strict=True)))

    def _prepare(self, text: str) -> None:
        """The macros, and the views and tables that a query names."""
        self._connection.execute("SET TimeZone = 'UTC'")
        self._connection.execute(questions.duckdb_macros())
        views = questions.views()
        named = questions.tables_of(text, views)
        for table in sorted(questions.tables_of(" ".join([text, *(views[name] for name in named)]), TABLES) - set(self.tables)):
            if not self._register(table):
                raise LakehouseError(f"no table {table} in {self._folder}: what was ingested there has not been tracked yet")
            self.tables += (table,)
        for name in sorted(named):
            self._connection.execute(f"CREATE OR REPLACE TEMP VIEW {name} AS {views[name]}")


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
