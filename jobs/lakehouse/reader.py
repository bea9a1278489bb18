"""Reads the tables of a lakehouse without Spark, in under a second: Delta's log through delta-rs, the data through DuckDB.

Nothing else in this project reads a whole table. delta-rs's own `to_pyarrow_table` leaves threads behind that abort a process which ends
soon afterwards (signal 6: "terminate called without an active exception").
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from datetime import datetime, timezone
from functools import cache
from typing import Any, Final

import duckdb
from deltalake import DeltaTable, QueryBuilder
from deltalake.exceptions import TableNotFoundError

from jobs.common.errors import LakehouseError
from jobs.common.imports import without_pandas
from jobs.common.stores import Place, for_duckdb, is_store
from jobs.lakehouse import opening
from jobs.lakehouse.folder import Lakehouse
from jobs.lakehouse.parquet import is_plain, quoted, rows_of_files, schema_fields, sizes_of
from schemas.names import GROUP_EVENTS, READABLE, TABLES, TIME

_SMALL_BYTES: Final = 1 << 19
"""Of events whose lakehouse is read once, not by each query: some 10,000. With 60,000 a report takes as long either way."""
_KEPT_BYTES: Final = 1 << 30
"""The same where each read is a request to a store."""


def check_events(folder: Place) -> int:
    """The bytes of the events. LakehouseError: the folder is no lakehouse, or its events have a form that is not read any more."""
    events = folder / GROUP_EVENTS
    if not opening.is_table(events):
        raise LakehouseError(f"no lakehouse at {folder}: no table {GROUP_EVENTS} in it")
    with opening.current(events) as table:
        if TIME not in dict(schema_fields(table)):
            raise LakehouseError(f"the events of {folder} have a form that this version does not read: read the logs into a new lakehouse")
        return sum(sizes_of(table, events).values())


class TableReader:
    """A DuckDB view of each table of a lakehouse. A view keeps the version that the table had when the view was made.

    Views show times as UTC without a zone. `alone`: settings of its connection hold for no other reader of this process.
    Where there is little to read, one thread reads each table once: most of a query's time went into opening files and waking a second one.
    `keeps`: there are many queries to come, so a table that lies in a store is read once, too.
    """

    def __init__(self, folder: Place, tables: Collection[str] = TABLES, *, alone: bool = False, keeps: bool = False) -> None:
        self.house = Lakehouse(folder)
        self.folder = folder
        self.small = (size := check_events(folder)) <= _SMALL_BYTES
        self._keeps_tables = self.small or (keeps and is_store(folder) and size <= _KEPT_BYTES)
        self.connection = _connect(folder, alone=alone, threads=1 if self.small else 2)
        self.tables = tuple(name for name in READABLE if name in tables and self.add_view(name))

    def add_view(self, name: str) -> bool:
        """Makes the view of one table. False: the lakehouse has no such table."""
        try:
            create_view(self.connection, self.folder / name, keeps=self._keeps_tables)
        except TableNotFoundError:
            return False
        return True

    def execute(self, query: str, parameters: Sequence[Any] | Mapping[str, Any] = ()) -> duckdb.DuckDBPyConnection:
        """Runs a query. Its rows are fetched from the result."""
        with without_pandas():
            return self.connection.execute(query, parameters)

    def first_of(self, files: Sequence[str]) -> dict[tuple[str, str], datetime]:
        """When the first event of each group in some files of the events happened, by cluster and group."""
        if not files:
            return {}
        events = self.folder / GROUP_EVENTS
        with opening.current(events) as table:
            rows = rows_of_files(table, events, files)
        first_at = "make_timestamp(epoch_us(min(occurred_at)))"
        found = self.execute(f"SELECT cluster, group_id, {first_at} FROM ({rows}) WHERE group_id <> '' GROUP BY ALL")  # noqa: S608 - quoted
        return {(cluster, group): with_zone(at) for cluster, group, at in found.fetchall()}

    def rows(self, query: str, *parameters: Any) -> list[dict[str, Any]]:
        """Result rows of a query, by column name."""
        return _by_name(self.execute(query, parameters))


def table_rows(
    folder: Place, columns: Sequence[str] = (), *, since: tuple[str, datetime] | None = None, files: Sequence[str] | None = None
) -> list[dict[str, Any]]:
    """Rows of one Delta table, in no particular order, with aware times in UTC.

    `columns`: only these. `since`: (column, earliest time). `files`: only rows of these files, as the log names them.
    """
    connection = _connect(folder)
    create_view(connection, folder, files=files)
    selected = ", ".join(map(quoted, columns)) or "*"
    where, parameters = (f" WHERE {quoted(since[0])} >= ?", [without_zone(since[1])]) if since else ("", [])
    with without_pandas():
        cursor = connection.execute(f"SELECT {selected} FROM {quoted(folder.name)}{where}", parameters)  # noqa: S608 - quoted
    return [{name: with_zone(value) for name, value in row.items()} for row in _by_name(cursor)]


def create_view(
    connection: duckdb.DuckDBPyConnection,
    folder: Place,
    table: DeltaTable | None = None,
    files: Sequence[str] | None = None,
    *,
    keeps: bool = False,
) -> None:
    """Makes a view named like the folder of a Delta table. TableNotFoundError: the folder has no table.

    `table`: the version to show, by default the newest. `files`: only rows of these files, as the log names them. `keeps`: reads it now.
    """
    if table is None:
        with opening.current(folder) as now:
            if is_plain(now):
                return create_view(connection, folder, now, files, keeps=keeps)
        table = opening.opened(folder)  # delta-rs reads it whenever DuckDB asks, and what is kept goes on to newer versions
    for_duckdb(connection, folder, sizes_of(table, folder) if is_store(folder) else {})
    if files is not None:
        source = rows_of_files(table, folder, files)
    elif is_plain(table):
        # Only the names of the files: delta-rs gives the path of the folder as a URL.
        source = rows_of_files(table, folder, [uri.rpartition("/")[2] for uri in table.file_uris()])
    else:
        data = f"{folder.name} as delta-rs reads it"
        connection.register(data, _Scan(table))
        source = f"{rows_of_files(table, folder, [])} UNION ALL BY NAME SELECT * FROM {quoted(data)}"  # noqa: S608 - quoted
    # DuckDB needs pytz to return times with a zone. A cast to a time without one asks the calendar for each value: 50 times as slow.
    columns = ", ".join(
        f"make_timestamp(epoch_us({quoted(name)})) AS {quoted(name)}" if kind == "timestamp" else quoted(name)
        for name, kind in schema_fields(table)
    )
    kind = "TABLE" if keeps else "VIEW"
    connection.execute(f"CREATE OR REPLACE TEMP {kind} {quoted(folder.name)} AS SELECT {columns} FROM ({source})")  # noqa: S608 - quoted
    return None


class _Scan:
    """A table whose rows are more than what lies in its files. DuckDB asks for a new stream each time it reads the table."""

    def __init__(self, table: DeltaTable) -> None:
        self._table = table

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        rows = QueryBuilder().register("t", self._table).execute("SELECT * FROM t")
        return rows.__arrow_c_stream__(requested_schema)


@cache
def _database(threads: int) -> duckdb.DuckDBPyConnection:
    """A database of this process, which takes 8 ms to make. It stays empty: each connection has its own temporary views."""
    return _new_database(threads)


def _new_database(threads: int) -> duckdb.DuckDBPyConnection:
    return duckdb.connect(config={"threads": threads})


def _connect(folder: Place, *, alone: bool = False, threads: int = 2) -> duckdb.DuckDBPyConnection:
    # A database keeps how the files of a store are read: each reader of a store has its own.
    connection = _new_database(threads) if alone or is_store(folder) else _database(threads).cursor()
    connection.execute("SET TimeZone = 'UTC'")
    return connection


def _by_name(cursor: duckdb.DuckDBPyConnection) -> list[dict[str, Any]]:
    names = [column[0] for column in cursor.description or ()]
    return [dict(zip(names, row, strict=True)) for row in cursor.fetchall()]


def without_zone(value: Any) -> Any:
    """A time in the form of the views; any other value unchanged."""
    return value.astimezone(timezone.utc).replace(tzinfo=None) if isinstance(value, datetime) else value


def with_zone(value: Any) -> Any:
    """A view's time as an aware one; any other value unchanged."""
    return value.replace(tzinfo=timezone.utc) if isinstance(value, datetime) else value


def account(folder: Place) -> dict[str, int]:
    """Totals over the whole lakehouse: lines, rebalances and findings. Zeros where there is no table yet."""
    totals = dict.fromkeys(("lines_read", "skipped", "events", "quarantined", "rebalances", "findings"), 0)
    try:
        reader = TableReader(folder, ("input_lines", "rebalances", "findings"))
    except LakehouseError:
        return totals
    if "input_lines" in reader.tables:
        sums = ", ".join(f"coalesce(sum({name}), 0)::BIGINT {name}" for name in list(totals)[:4])
        totals.update(reader.rows(f"SELECT {sums} FROM input_lines")[0])  # noqa: S608 - names from above
    for name in ("rebalances", "findings"):
        if name in reader.tables:
            totals[name] = reader.rows(f"SELECT count(*) n FROM {name}")[0]["n"]  # noqa: S608 - a name from above
    return totals
