"""The tables of docs/findings.md: the codes, and the figures of each."""

from __future__ import annotations

from coordinator_model.diagnosis.figures import FIGURES, RULES


def part() -> str:
    """Both tables, from the catalogues of findings."""
    lines = ["| code | severity | one row is | evidence |", "|---|---|---|---|"]
    lines += [f"| {rule.code} | {rule.severity} | {rule.row} | {rule.evidence} |" for rule in RULES.values()]
    lines += ["", "The keys of `details`, by code:", "", "| code | keys |", "|---|---|"]
    lines += [f"| {rule.code} | {', '.join(f'`{name}`' for name in sorted(rule.figures))} |" for rule in RULES.values()]
    lines += ["", "| key | what it is |", "|---|---|", *(f"| `{name}` | {meaning} |" for name, meaning in sorted(FIGURES.items()))]
    return "\n".join(lines) + "\n"
