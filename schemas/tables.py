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
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    BooleanType,
    DataType,
    IntegerType,
    LongType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)

from schemas import names

_TYPES: Final = {
    kind.simpleString(): kind for kind in (BinaryType(), BooleanType(), IntegerType(), LongType(), StringType(), TimestampType())
}
_ENTRY: Final = re.compile(r"(\w+):(\w+(?:<\w+>)?)")
_HEADER: Final = "| column | type | null | meaning |\n|---|---|---|---|\n"
_SHARED: Final = "shared"


@cache
def schema_of(name: str) -> StructType:
    """The columns of a table, or of the records of RAW_LINES."""
    rows = (row.removeprefix("| ").removesuffix(" |").split(" | ", 3) for row in _page(name)[1].splitlines())
    own = [_column(*row) if len(row) > 1 else schema_of(_SHARED)[row[0]] for row in rows]
    # Those of `rebalances` come last, also where it gets new ones: a view needs the same order.
    return StructType([*own, *(schema_of(names.REBALANCES) if name == names.REBALANCES_PROVISIONAL else ())])


def arrow_schema_of(name: str) -> pa.Schema:
    """The columns of a table in Arrow's types."""
    return to_arrow_schema(schema_of(name))


def about(name: str) -> str:
    """What a page says of the rows of its table."""
    return _page(name)[0].partition("\n")[2].strip()


@cache
def _page(name: str) -> tuple[str, str]:
    before, _, rows = files(__package__).joinpath(f"{name}.md").read_text(encoding="utf-8").partition(_HEADER)
    return before, rows


def _column(name: str, kind: str, null: str, meaning: str) -> StructField:
    return StructField(name, _type(kind.strip("`")), null == "yes", {"comment": meaning})


def _type(text: str) -> DataType:
    """A type by its name in SQL. Lists hold no nulls; those of structures might, as far as their tables say."""
    outer, _, inner = text.removesuffix(">").partition("<")
    if outer == "struct":
        return StructType([StructField(name, _type(kind)) for name, kind in _ENTRY.findall(inner)])
    if outer == "array":
        return ArrayType(element := _type(inner), containsNull=isinstance(element, StructType))
    return _TYPES[text]


def _schemas(*tables: str) -> dict[str, StructType]:
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
