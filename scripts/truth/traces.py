"""Compares the specification with every recorded trace of Kafka's own coordinators, step by step.

Prints traces, steps and mismatches by Kafka release, and with --show N the first N mismatches of each.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from typing import Any, NamedTuple

from coordinator_model.specification.trace import run_trace
from scripts.truth.trace_files import load_traces


class Mismatch(NamedTuple):
    """A step whose outcome is not the recorded one."""

    trace: str
    step: int
    field: str
    recorded: Any
    specified: Any


def matches(recorded: Any, specified: Any, name: str = "") -> bool:
    """Whether a value is the recorded one. `any_of` lists several possible values; a missing protocol is null or ""."""
    if isinstance(recorded, dict) and "any_of" in recorded:
        return any(matches(value, specified, name) for value in recorded["any_of"])
    if isinstance(recorded, dict) and isinstance(specified, dict):
        return all(matches(recorded.get(key), specified.get(key), key) for key in recorded.keys() | specified.keys())
    if isinstance(recorded, list) and isinstance(specified, list):
        return len(recorded) == len(specified) and all(map(matches, recorded, specified))
    if name in ("protocol", "exception", "duplicate_response"):
        return (recorded or None) == (specified or None)
    return bool(recorded == specified)


def mismatches_of(trace: dict[str, Any], release: str) -> list[Mismatch]:
    """The differences between the recorded outcome and that of the specification."""
    result = run_trace(trace, release)
    mismatches = []
    for index, (step, own) in enumerate(zip(trace["steps"], result["steps"], strict=True)):
        recorded, specified = step["expect"], own["expect"]
        if trace.get("ignore_what_0_10_lacks"):
            recorded, specified = _known_to_0_10(recorded), _known_to_0_10(specified)
        for field in ("response", "group_after", "exception", "duplicate_response"):
            if not matches(recorded.get(field), specified.get(field), field):
                name = f"{trace['name']} on {release}"
                mismatches.append(Mismatch(name, index, field, recorded.get(field), specified.get(field)))
    return mismatches


def _known_to_0_10(expect: dict[str, Any]) -> dict[str, Any]:
    """The outcome without protocol types, the protocol of SyncGroup, pending_sync, and the generation of refused JoinGroups."""
    response = dict(expect.get("response") or {})
    response.pop("protocol_type", None)
    if "member_id" not in response:
        response.pop("protocol", None)
    if response.get("error") != "NONE":
        response.pop("generation", None)
    group = {key: value for key, value in expect["group_after"].items() if key not in ("pending_sync", "protocol_type")}
    return {**expect, "response": response, "group_after": group}


def main(arguments: Sequence[str] | None = None, traces: Sequence[tuple[str, dict[str, Any]]] | None = None) -> int:
    """Print the table; 1 if anything differs."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--show", type=int, default=0, metavar="N")
    options = parser.parse_args(arguments)
    runs: dict[str, list[tuple[int, list[Mismatch]]]] = {}
    for release, trace in traces or load_traces():
        runs.setdefault(release, []).append((len(trace["steps"]), mismatches_of(trace, release)))
    table = [f"{'kafka':>10} {'traces':>7} {'steps':>7} {'mismatches':>10} {'in traces':>9}"]
    for release, traces_of_it in sorted(runs.items()):
        different = [mismatches for _, mismatches in traces_of_it if mismatches]
        for mismatches in different[: options.show]:
            for mismatch in mismatches[:2]:
                print(*mismatch[:3], mismatch.recorded, mismatch.specified, sep="\n  ")
        steps = sum(count for count, _ in traces_of_it)
        table.append(f"{release:>10} {len(traces_of_it):>7} {steps:>7} {sum(map(len, different)):>10} {len(different):>9}")
    print(*table, sep="\n")
    return 1 if any(mismatches for traces_of_it in runs.values() for _, mismatches in traces_of_it) else 0


if __name__ == "__main__":
    sys.exit(main())
