"""The tables of docs/exit-codes.md, from jobs/common/exit_codes.py."""

from __future__ import annotations

from jobs.common import exit_codes


def part() -> str:
    """What the codes mean, and what some mean to one command."""
    lines = ["| code | meaning |", "|---|---|"]
    lines += [f"| {_number(code)} | {meaning} |" for code, meaning in exit_codes.MEANINGS.items()]
    lines += ["", "To some commands a code has a meaning of its own:", "", "| command | code | meaning |", "|---|---|---|"]
    lines += [f"| `{name}` | {code} | {meaning} |" for name, codes in exit_codes.SPECIAL.items() for code, meaning in codes.items()]
    return "\n".join(lines) + "\n"


def _number(code: int) -> str:
    return "128 + N" if code == exit_codes.ENDED_BY_SIGNAL else str(code)
