"""What docs/tables.md says of each table: what its page in schemas/ says, and all columns with their comments."""

from __future__ import annotations

from coordinator_model.tracker import unended
from coordinator_model.tracker.closing import WAITS
from schemas.tables import FOLDED_TABLES, HEALTH_TABLES, INGEST_TABLES, PROVISIONAL_TABLES, TRACK_TABLES, about, columns_of
from scripts.docs.findings import RULES


def part() -> str:
    """All tables, and the values of some columns."""
    parts = ["## Written by track\n"]
    parts += [section(name) for name in TRACK_TABLES | PROVISIONAL_TABLES | FOLDED_TABLES]
    parts += ["## Written by ingest\n"]
    parts += [section(name) for name in INGEST_TABLES]
    parts += ["## About the pipeline itself\n"]
    parts += [section(name) for name in HEALTH_TABLES]
    parts += [
        "## Values\n",
        values("rebalances_provisional.waits_for", WAITS | unended.WAITS),
        values("findings.code", {code: rule.row.partition(". ")[0] for code, rule in RULES.items()}),
    ]
    return "\n".join(parts)


def section(name: str) -> str:
    """One table."""
    lines = [f"### {name}\n", f"{about(name)}\n", "| column | type | null | meaning |", "|---|---|---|---|"]
    lines += [f"| {column} | {kind} | {null} | {cell(meaning)} |" for column, (kind, null, meaning) in columns_of(name).items()]
    return "\n".join(lines) + "\n"


def cell(text: str) -> str:
    """`text` escaped for a cell of a table."""
    return text.replace("|", "\\|")


def values(name: str, meanings: dict[str, str]) -> str:
    """The values of one column."""
    lines = [f"### {name}\n", "| value | meaning |", "|---|---|"]
    lines += [f"| {value} | {cell(meaning)} |" for value, meaning in meanings.items()]
    return "\n".join(lines) + "\n"
