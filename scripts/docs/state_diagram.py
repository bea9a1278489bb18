"""Writes docs/state-diagram.md from the transition table."""

from __future__ import annotations

from pathlib import Path

from coordinator_model.specification.transitions import TRANSITIONS, Trigger
from coordinator_model.states import State

TARGET = Path(__file__).resolve().parents[2] / "docs" / "state-diagram.md"

TEXT = """# States of a classic group

Written by scripts/docs/state_diagram.py from coordinator_model/specification/transitions.py: change the table, not this file.

```mermaid
stateDiagram-v2
    [*] --> Empty
{edges}
    Dead --> [*]
```

Before 0.10.1 there is no Empty: a fresh group is Stable, and `last_member_gone` makes it Dead.

| cause | {states} |
|---|{rules}|
{rows}

A hyphen: the cause cannot happen in that state.
"""


def edges() -> list[str]:
    """One edge for each pair of states, with its causes."""
    lines = []
    for state, row in TRANSITIONS.items():
        for target in State:
            causes = [trigger.value for trigger, to_state in row.items() if to_state is target]
            if causes:
                lines.append(f"    {state.value} --> {target.value}: " + "<br/>".join(causes))
    return lines


def rows() -> list[str]:
    """One row of the table for each cause."""
    lines = []
    for trigger in Trigger:
        targets = [TRANSITIONS[state].get(trigger) for state in State]
        lines.append(f"| {trigger.value} | " + " | ".join(target.value if target else "-" for target in targets) + " |")
    return lines


def diagram() -> str:
    """The whole page."""
    states = " | ".join(state.value for state in State)
    rules = "|".join("---" for _ in State)
    return TEXT.format(edges="\n".join(edges()), states=states, rules=rules, rows="\n".join(rows()))


if __name__ == "__main__":
    TARGET.write_text(diagram(), encoding="utf-8")
