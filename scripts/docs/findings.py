"""What docs/findings.md says of each code: other pages repeat it, and tests hold rows to it."""

from __future__ import annotations

from typing import Final, NamedTuple

from jobs.common.places import PROJECT


class Rule(NamedTuple):
    """One code."""

    severity: str
    row: str
    """What one row is."""
    keys: frozenset[str]
    """Of `details`."""


def _rules() -> dict[str, Rule]:
    """The codes in the order of the page."""
    lines = (PROJECT / "docs" / "findings.md").read_text(encoding="utf-8").splitlines()
    tables = "\n".join(line for line in lines if line.startswith("| ")).split("| code |")[1:]
    codes, keys = ([[cell.strip() for cell in line.split("|")[1:-1]] for line in table.split("\n")[1:] if line] for table in tables[:2])
    keys_of = {code: frozenset(named.replace("`", "").split(", ")) - {""} for code, named in keys if code.isupper()}
    return {code: Rule(severity, row, keys_of[code]) for code, severity, row, _ in codes}


RULES: Final = _rules()
