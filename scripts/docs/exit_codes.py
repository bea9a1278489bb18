"""The table of docs/exit-codes.md of what codes mean to one command, from jobs/common/exit_codes.py."""

from __future__ import annotations

from jobs.common import exit_codes


def part() -> str:
    """A row for each code of a command that has a meaning of its own."""
    rows = [f"| `{name}` | {code} | {meaning} |" for name, codes in exit_codes.SPECIAL.items() for code, meaning in codes.items()]
    return "\n".join(["| command | code | meaning |", "|---|---|---|", *rows]) + "\n"
