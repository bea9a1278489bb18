"""Reads the lakehouse without Spark, in under a second: Delta's log through delta-rs, the data through DuckDB."""

from __future__ import annotations

import json
import sys
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime, timezone
from pathlib import Path
from typing import Any, Final

import duckdb
from deltalake import DeltaTable
from deltalake.exceptions import TableNotFoundError

from jobs.answers import questions
from jobs.common.errors import LakehouseError
from jobs.lakehouse.folder import check_path

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
    """A view for each of the tables of a lakehouse, as it is when this is made.

    In `rows`, times are read as numbers: epoch_ms("at").
    """

    def __init__(self, folder: Path, tables: Collection[str] = TABLES) -> None:
        self._folder = folder
        self._connection = duckdb.connect()
        self._connection.execute("SET threads = 2; SET TimeZone = 'UTC'")
        check_path(folder)
        if not DeltaTable.is_deltatable(str(folder / "group_events")):
            raise LakehouseError(f"no lakehouse at {folder}: no table group_events in it")
        self._connection.execute(questions.duckdb_macros())
        self.tables = tuple(name for name in TABLES if name in tables and self._register(name))

    def _register(self, name: str) -> bool:
        try:
            table = DeltaTable(str(self._folder / name))
        except TableNotFoundError:
            return False
        fields = json.loads(table.schema().to_json())["fields"]
        if is_plain(table):
            # By their names: delta-rs gives the path of the folder as a URL.
            source = rows_of_files(table, [self._folder / name / uri.rpartition("/")[2] for uri in table.file_uris()])
        else:
            data = _quoted(f"{name} as pyarrow reads it")
            self._connection.register(f"{name} as pyarrow reads it", table.to_pyarrow_dataset())
            source = f"{rows_of_files(table, [])} UNION ALL BY NAME SELECT * FROM {data}"  # noqa: S608 - quoted
        # Without a zone, they come out as plain datetimes: DuckDB wants pytz for others.
        columns = ", ".join(
            f"CAST({_quoted(field['name'])} AS TIMESTAMP) AS {_quoted(field['name'])}"
            if field["type"] == "timestamp"
            else _quoted(field["name"])
            for field in fields
        )
        self._connection.execute(f"CREATE OR REPLACE TEMP VIEW {name} AS SELECT {columns} FROM ({source})")  # noqa: S608
        return True

    def rows(self, query: str, *parameters: Any) -> list[dict[str, Any]]:
        """Result rows of a query, by column name."""
        with _without_pandas():
            cursor = self._connection.execute(query, parameters)
        names = [column[0] for column in cursor.description or ()]
        return [dict(zip(names, row, strict=True)) for row in cursor.fetchall()]

    def ask(self, text: str, values: Mapping[str, Any]) -> Answer:
        """Result rows of a query in the words of sql/, with its parameters as $name."""
        self.prepare(text)
        try:
            with _without_pandas():
                cursor = self._connection.execute(text, {name: _without_zone(value) for name, value in values.items()})
        except duckdb.BinderException as error:
            reason = str(error).splitlines()[0]
            raise LakehouseError(
                f"the tables of {self._folder} are not those of this version; `rebalance run` adds what is missing ({reason})"
            ) from None
        columns = tuple(column[0] for column in cursor.description or ())
        return Answer(columns, [tuple(map(_with_zone, row)) for row in cursor.fetchall()])

    def prepare(self, text: str) -> None:
        """Makes the views of sql/ and the tables that a query names. LakehouseError: a table is not there."""
        views = questions.views()
        named = questions.tables_of(text, views)
        for table in sorted(questions.tables_of(" ".join([text, *(views[name] for name in named)]), TABLES) - set(self.tables)):
            if not self._register(table):
                raise LakehouseError(f"no table {table} in {self._folder}: what was ingested there has not been tracked yet")
            self.tables += (table,)
        for name in sorted(named):
            self._connection.execute(f"CREATE OR REPLACE TEMP VIEW {name} AS {views[name]}")


@contextmanager
def _without_pandas() -> Iterator[None]:
    """DuckDB imports pandas with the first value that is bound, to know its types: half a second for nothing."""
    if "pandas" in sys.modules:
        yield
        return
    sys.modules["pandas"] = None  # type: ignore[assignment]  # Python's own way to say that there is none
    try:
        yield
    finally:
        del sys.modules["pandas"]


def rows_of_files(table: DeltaTable, paths: Sequence[Path]) -> str:
    """The query for the rows of some files of a table, in DuckDB's words: all columns of the table, times with a zone.

    Its time zone must be set to UTC: Spark's files have times without one.
    """
    fields = json.loads(table.schema().to_json())["fields"]
    nothing = ", ".join(f"CAST(NULL AS {_duckdb_type(field['type'])}) AS {_quoted(field['name'])}" for field in fields)
    source = f"SELECT {nothing} WHERE false"
    if paths:
        files = ", ".join(_text(_unglobbed(str(path))) for path in paths)
        source += f" UNION ALL BY NAME SELECT * FROM read_parquet([{files}], union_by_name = true)"  # noqa: S608 - quoted
    return source


def is_plain(table: DeltaTable) -> bool:
    """Whether the table is what lies in its files: all columns, and no row deleted."""
    return table.protocol().min_reader_version == 1 and not table.metadata().partition_columns


_DUCKDB_TYPES: Final = {
    "string": "VARCHAR",
    "integer": "INTEGER",
    "long": "BIGINT",
    "boolean": "BOOLEAN",
    "binary": "BLOB",
    "timestamp": "TIMESTAMPTZ",
}


def _duckdb_type(delta: Any) -> str:
    """DuckDB's name of a type in a Delta schema; most are the same."""
    if isinstance(delta, str):
        return _DUCKDB_TYPES.get(delta, delta)
    if delta["type"] == "array":
        return f"{_duckdb_type(delta['elementType'])}[]"
    fields = ", ".join(f"{_quoted(field['name'])} {_duckdb_type(field['type'])}" for field in delta["fields"])
    return f"STRUCT({fields})"


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _text(value: str) -> str:
    return "'" + value.replace("'", "''") + "'"


def _unglobbed(path: str) -> str:
    """A path in which nothing stands for something else."""
    return "".join(f"[{c}]" if c in "*?[" else c for c in path)


def _without_zone(value: Any) -> Any:
    return value.astimezone(timezone.utc).replace(tzinfo=None) if isinstance(value, datetime) else value


def _with_zone(value: Any) -> Any:
    return value.replace(tzinfo=timezone.utc) if isinstance(value, datetime) else value


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
