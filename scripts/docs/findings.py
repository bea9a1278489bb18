"""The tables of docs/findings.md: the codes, and the keys of `details` of each, which the page explains."""

from __future__ import annotations

from typing import Final

from coordinator_model.diagnosis import catalogue, client_catalogue, consumer_catalogue, offset_catalogue

RULES: Final = {
    text.code: text
    for module in (catalogue, consumer_catalogue, offset_catalogue, client_catalogue)
    for text in vars(module).values()
    if isinstance(text, catalogue.Text) and text.row
}
"""The text of each code that says what a row of it is, in the order of the catalogues."""


def part() -> str:
    """Both tables, from the catalogues of findings."""
    lines = ["| code | severity | one row is | evidence |", "|---|---|---|---|"]
    lines += [f"| {rule.code} | {rule.severity} | {rule.row} | {rule.evidence} |" for rule in RULES.values()]
    lines += ["", "The keys of `details`, by code:", "", "| code | keys |", "|---|---|"]
    lines += [f"| {rule.code} | {', '.join(f'`{name}`' for name in sorted(rule.figures))} |" for rule in RULES.values()]
    return "\n".join(lines) + "\n"
