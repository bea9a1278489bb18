"""The picture and the table of docs/state-diagram.md, from the table of transitions."""

from __future__ import annotations

from coordinator_model.specification.transitions import TRANSITIONS, Trigger
from coordinator_model.states import State


def part() -> str:
    """An arrow for each pair of states with its causes, and a row for each cause."""
    lines = ["```mermaid", "stateDiagram-v2", "    [*] --> Empty"]
    for state, row in TRANSITIONS.items():
        for target in State:
            causes = [trigger.value for trigger, to_state in row.items() if to_state is target]
            if causes:
                lines.append(f"    {state.value} --> {target.value}: " + "<br/>".join(causes))
    lines += ["    Dead --> [*]", "```", ""]
    lines += [f"| cause | {' | '.join(state.value for state in State)} |", "|---" * (len(State) + 1) + "|"]
    for trigger in Trigger:
        targets = [TRANSITIONS[state].get(trigger) for state in State]
        lines.append(f"| {trigger.value} | " + " | ".join(target.value if target else "-" for target in targets) + " |")
    return "\n".join(lines) + "\n"
