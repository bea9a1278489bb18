"""What docs/tables.md says of each table: what its page in schemas/ says, and all columns with their comments."""

from __future__ import annotations

from pyspark.sql.types import StructField, StructType

from coordinator_model.tracker import unended
from coordinator_model.tracker.closing import WAITS
from schemas.tables import FOLDED_TABLES, HEALTH_TABLES, INGEST_TABLES, PROVISIONAL_TABLES, TRACK_TABLES, about
from scripts.docs.findings import RULES


def part() -> str:
    """All tables, and the values of some columns."""
    parts = ["## Written by track\n"]
    parts += [section(name, schema) for name, schema in (TRACK_TABLES | PROVISIONAL_TABLES | FOLDED_TABLES).items()]
    parts += ["## Written by ingest\n"]
    parts += [section(name, schema) for name, schema in INGEST_TABLES.items()]
    parts += ["## About the pipeline itself\n"]
    parts += [section(name, schema) for name, schema in HEALTH_TABLES.items()]
    parts += [
        "## Values\n",
        values("rebalances_provisional.waits_for", WAITS | unended.WAITS),
        values("findings.code", {code: rule.row.partition(". ")[0] for code, rule in RULES.items()}),
    ]
    return "\n".join(parts)


def section(name: str, schema: StructType) -> str:
    """One table."""
    lines = [f"### {name}\n", f"{about(name)}\n", "| column | type | null | meaning |", "|---|---|---|---|"]
    lines += [f"| {field.name} | {kind(field)} | {'yes' if field.nullable else 'no'} | {cell(comment(field))} |" for field in schema]
    return "\n".join(lines) + "\n"


def kind(field: StructField) -> str:
    """The column's type as SQL writes it."""
    return f"`{field.dataType.simpleString()}`"


def comment(field: StructField) -> str:
    """The column's comment, which every column has."""
    return str(field.metadata["comment"])


def cell(text: str) -> str:
    """`text` escaped for a cell of a table."""
    return text.replace("|", "\\|")


def values(name: str, meanings: dict[str, str]) -> str:
    """The values of one column."""
    lines = [f"### {name}\n", "| value | meaning |", "|---|---|"]
    lines += [f"| {value} | {cell(meaning)} |" for value, meaning in meanings.items()]
    return "\n".join(lines) + "\n"
