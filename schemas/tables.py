"""The schemas of all tables, read from the pages beside this module: a page for each table, the only place that defines its columns.

A page says what a row is, then lists the columns: name, type as SQL writes it, whether it may be null, and meaning, which Delta stores as
the column's comment. docs/tables.md shows the pages. A name alone stands for the column of that name in shared.md.
"""

from __future__ import annotations

import re
from functools import cache
from importlib.resources import files
from typing import Final

import pyarrow as pa

from schemas import names

_TYPES: Final = {
    "binary": pa.binary(),
    "boolean": pa.bool_(),
    "int": pa.int32(),
    "bigint": pa.int64(),
    "string": pa.string(),
    "timestamp": pa.timestamp("us", tz="UTC"),
}
_ENTRY: Final = re.compile(r"(\w+):(\w+(?:<\w+>)?)")
_HEADER: Final = "| column | type | null | meaning |\n|---|---|---|---|\n"
_SHARED: Final = "shared"


@cache
def columns_of(name: str) -> dict[str, tuple[str, str, str]]:
    """The columns of a table, or of the records of RAW_LINES, as its page has them: type, null, meaning."""
    rows = (row.removeprefix("| ").removesuffix(" |").split(" | ", 3) for row in _page(name)[1].splitlines())
    own = {row[0]: (row[1], row[2], row[3]) if len(row) > 1 else columns_of(_SHARED)[row[0]] for row in rows}
    # Those of `rebalances` come last, also where it gets new ones: a view needs the same order.
    return own | (columns_of(names.REBALANCES) if name == names.REBALANCES_PROVISIONAL else {})


@cache
def schema_of(name: str) -> pa.Schema:
    """The columns of a table, or of the records of RAW_LINES, with their meanings."""
    columns = columns_of(name).items()
    return pa.schema([pa.field(own, _type(kind.strip("`")), null == "yes", {"comment": text}) for own, (kind, null, text) in columns])


@cache
def arrow_schema_of(name: str) -> pa.Schema:
    """The columns of a table without their meanings, which no data file repeats."""
    return pa.schema([field.remove_metadata() for field in schema_of(name)])


def about(name: str) -> str:
    """What a page says of the rows of its table."""
    return _page(name)[0].partition("\n")[2].strip()


@cache
def _page(name: str) -> tuple[str, str]:
    before, _, rows = files(__package__).joinpath(f"{name}.md").read_text(encoding="utf-8").partition(_HEADER)
    return before, rows


def _type(text: str) -> pa.DataType:
    """A type by its name in SQL. Lists hold no nulls; those of structures might, as far as their tables say."""
    outer, _, inner = text.removesuffix(">").partition("<")
    if outer == "struct":
        return pa.struct([(name, _type(kind)) for name, kind in _ENTRY.findall(inner)])
    if outer == "array":
        return pa.list_(pa.field("element", element := _type(inner), pa.types.is_struct(element)))
    return _TYPES[text]


def _schemas(*tables: str) -> dict[str, pa.Schema]:
    return {name: schema_of(name) for name in tables}


INGEST_TABLES: Final = _schemas(*names.INGESTED)
TRACK_TABLES: Final = _schemas(*names.TRACKED)
PROVISIONAL_TABLES: Final = _schemas(names.REBALANCES_PROVISIONAL)
"""What track tells before it is certain: which rows there are depends on how the lines come in micro-batches."""
FOLDED_TABLES: Final = _schemas(names.INCIDENTS)
"""What follows from rows of all groups. Track writes such a table anew when they change."""
TABLES: Final = INGEST_TABLES | TRACK_TABLES
"""Tables that follow from the logs: the same lines make the same rows."""
HEALTH_TABLES: Final = _schemas(names.PIPELINE_HEALTH)
"""Tables about the pipeline itself."""
