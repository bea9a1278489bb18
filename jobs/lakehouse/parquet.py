"""Writes the DuckDB queries that read the data files of a Delta table."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, Final
from urllib.parse import unquote

from deltalake import DeltaTable

from jobs.common.stores import Place, is_store


def schema_fields(table: DeltaTable) -> list[tuple[str, Any]]:
    """Name and type of each column: the type as in Delta's schema, a text or an object."""
    return [(field["name"], field["type"]) for field in json.loads(table.schema().to_json())["fields"]]


def rows_of_files(table: DeltaTable, folder: Place, paths: Sequence[str]) -> str:
    """The DuckDB query for the rows of some files of a table: all columns of the table, times with a zone. `paths`: as in the log.

    DuckDB's time zone must be UTC, since the times in Spark's files have no zone.
    """
    nothing = ", ".join(f"CAST(NULL AS {_duckdb_type(kind)}) AS {quoted(name)}" for name, kind in schema_fields(table))
    source = f"SELECT {nothing} WHERE false"
    if paths:
        files = ", ".join(_text(_unglobbed(str(folder / unquote(path)))) for path in paths)
        source += f" UNION ALL BY NAME SELECT * FROM read_parquet([{files}], union_by_name = true)"  # noqa: S608 - quoted
    return source


def sizes_of(table: DeltaTable, folder: Place) -> dict[str, int]:
    """The bytes of a table's files, by their names."""
    if not is_store(folder):
        return {name: (folder / name).stat().st_size for uri in table.file_uris() if (name := unquote(uri.rpartition("/")[2]))}
    import pyarrow as pa

    added = pa.table(table.get_add_actions())
    return dict(zip(map(unquote, added["path"].to_pylist()), added["size_bytes"].to_pylist(), strict=True))


def is_plain(table: DeltaTable) -> bool:
    """Whether the files alone hold the table: no partition columns, no deletion vectors, no renamed columns."""
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
    fields = ", ".join(f"{quoted(field['name'])} {_duckdb_type(field['type'])}" for field in delta["fields"])
    return f"STRUCT({fields})"


def quoted(name: str) -> str:
    """A name as an SQL identifier."""
    return '"' + name.replace('"', '""') + '"'


def _text(value: str) -> str:
    return "'" + value.replace("'", "''") + "'"


def _unglobbed(path: str) -> str:
    """A path with DuckDB's wildcards escaped."""
    return "".join(f"[{c}]" if c in "*?[" else c for c in path)
