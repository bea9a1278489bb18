"""Compares the specification of consumer groups with every recorded trace of Kafka's own coordinator, step by step.

Prints traces, steps and differing steps by file, and with --show N the first difference of N traces of each.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

from coordinator_model.specification.consumer.traces.trace import episodes_of_trace, run_consumer_trace
from scripts.truth.trace_files import load_consumer_traces, read_consumer_lines

COMPARED: Final = ("response", "group_after", "records", "records_advance")
"""What the specification says of a step. The recordings have log lines too."""

Json = dict[str, Any]


class StepDifference(NamedTuple):
    """A step whose outcome is not the recorded one."""

    trace: str
    step: int
    field: str
    recorded: Any
    specified: Any


def differences_of(trace: Json) -> list[StepDifference]:
    """The differences between the recorded outcome and that of the specification."""
    differences = []
    for index, (step, own) in enumerate(zip(trace["steps"], run_consumer_trace(trace)["steps"], strict=True)):
        for field in COMPARED:
            recorded, specified = _what_matters(step["expect"].get(field)), _what_matters(own["expect"].get(field))
            if recorded != specified:
                differences.append(StepDifference(trace["name"], index, field, recorded, specified))
    return differences


def episode_differences() -> list[str]:
    """The traces whose rebalances are not the recorded ones."""
    traces = {trace["name"]: trace for some in load_consumer_traces().values() for trace in some}
    recorded = [*read_consumer_lines("episodes-cases"), *read_consumer_lines("episodes-random")]
    return [one["name"] for one in recorded if episodes_of_trace(traces[one["name"]]) != one]


def _what_matters(value: Any) -> Any:
    """Of an answer with an error, only the error and its message matter."""
    if isinstance(value, dict) and value.get("error", "NONE") != "NONE":
        return {"error": value["error"], "message": value.get("message")}
    return value


def main(arguments: Sequence[str] | None = None, traces: Mapping[str, Sequence[Json]] | None = None) -> int:
    """Print the table; 1 if anything differs."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--show", type=int, default=0, metavar="N")
    options = parser.parse_args(arguments)
    table = [f"{'consumer groups':>16} {'traces':>7} {'steps':>7} {'different':>10} {'in traces':>9}"]
    failed = False
    for name, recorded in (traces or load_consumer_traces()).items():
        different = [found for found in map(differences_of, recorded) if found]
        for first, *_ in different[: options.show]:
            print(*first[:3], json.dumps(first.recorded), json.dumps(first.specified), sep="\n  ")
        in_steps = len({(one.trace, one.step) for found in different for one in found})
        steps = sum(len(trace["steps"]) for trace in recorded)
        table.append(f"{name:>16} {len(recorded):>7} {steps:>7} {in_steps:>10} {len(different):>9}")
        failed = failed or bool(different)
    print(*table, sep="\n")
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
