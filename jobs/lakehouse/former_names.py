"""Columns that older versions called otherwise.

A lakehouse keeps the names that it was made with, and is continued with them, until `rebalance replay --swap` makes it anew. All that
reads a lakehouse here shows the present names.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    import pyarrow as pa
    from deltalake import DeltaTable

FORMER: Final = {"occurred_at": "at"}
"""The former name of a column. `at` is a keyword of DuckDB."""
PRESENT: Final = {former: present for present, former in FORMER.items()}


def present_name(stored: str) -> str:
    """What a column of a table is called now."""
    return PRESENT.get(stored, stored)


def stored_name(name: str, stored: Collection[str]) -> str:
    """What a column is called in a table that has the columns `stored`."""
    former = FORMER.get(name, name)
    return former if former in stored and name not in stored else name


def as_stored(rows: pa.Table, table: DeltaTable) -> pa.Table:
    """Rows with their columns called as in the table."""
    stored = column_names(table)
    return rows.rename_columns([stored_name(name, stored) for name in rows.column_names])


def time_column(table: DeltaTable) -> str:
    """What the column `occurred_at` is called in a table."""
    return stored_name("occurred_at", column_names(table))


def column_names(table: DeltaTable) -> list[str]:
    """The columns of a table, as it calls them."""
    return [field.name for field in table.schema().fields]
