"""Compare the specification with every recorded trace of Kafka's own coordinator, step by step.

Prints traces, steps and mismatches by Kafka release; with --show N the first N mismatches of each.
"""

from __future__ import annotations

import argparse
import gzip
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from coordinator_model.specification.trace import run_trace

TRACES = Path(__file__).resolve().parents[2] / "tests" / "data" / "traces"


class Mismatch(NamedTuple):
    """A step whose outcome is not the recorded one."""

    trace: str
    step: int
    what: str
    recorded: Any
    specified: Any


def load_traces(folder: Path = TRACES) -> Iterator[tuple[str, dict[str, Any]]]:
    """Every recorded run, with the release it was recorded on.

    A case was run on a second release too: its whole outcome there is in the file, or how it differs. The cases of
    0.10 were run on 3.9.1 as well, where of those with the same outcome the fields that 0.10 does not know were not
    compared. One of them is left out: 3.9.1 also expires the offsets of topics that no member of a Stable group
    subscribes to (KIP-496), and to the specification topics and subscriptions are opaque.
    """
    for path in sorted(folder.glob("*.jsonl.gz")):
        with gzip.open(path, "rt", encoding="utf-8") as lines:
            for line in lines:
                trace = json.loads(line)
                yield trace["measured_on"], trace
                if "other_version" in trace:
                    yield _on_other_version(trace)
                needs_subscriptions = trace["name"] == "scripted010/offsets_expire_in_a_stable_group"
                if trace.get("flavour_S", {}).get("same_outcome") and not needs_subscriptions:
                    yield "3.9.1", {**trace, "ignore_what_0_10_lacks": True}


def _on_other_version(trace: dict[str, Any]) -> tuple[str, dict[str, Any]]:
    other = trace["other_version"]
    release = other["version"]
    expects = trace.get("expect_" + release.replace(".", "_"))
    if expects is None:
        expects = [json.loads(json.dumps(step["expect"])) for step in trace["steps"]]
        for difference in other["differences"]:
            _apply(expects[difference["step"]], difference["field"].split("/"), difference["other"])
    steps = [{**step, "expect": expect} for step, expect in zip(trace["steps"], expects, strict=True)]
    return release, {**trace, "steps": steps}


def _apply(expect: dict[str, Any], path: list[str], value: Any) -> None:
    for name in path[:-1]:
        expect = expect[name]
    expect[path[-1]] = value


def agrees(recorded: Any, specified: Any, name: str = "") -> bool:
    """Whether a value is the recorded one: `any_of` is one of those listed, and no protocol is null or ""."""
    if isinstance(recorded, dict) and "any_of" in recorded:
        return any(agrees(value, specified, name) for value in recorded["any_of"])
    if isinstance(recorded, dict) and isinstance(specified, dict):
        return all(agrees(recorded.get(key), specified.get(key), key) for key in recorded.keys() | specified.keys())
    if isinstance(recorded, list) and isinstance(specified, list):
        return len(recorded) == len(specified) and all(map(agrees, recorded, specified))
    if name in ("protocol", "exception", "duplicate_response"):
        return (recorded or None) == (specified or None)
    return bool(recorded == specified)


def compare(trace: dict[str, Any], release: str) -> list[Mismatch]:
    """What differs between the recorded outcome and the specified one."""
    result = run_trace(trace, release)
    mismatches = []
    for index, (step, own) in enumerate(zip(trace["steps"], result["steps"], strict=True)):
        recorded, specified = step["expect"], own["expect"]
        if trace.get("ignore_what_0_10_lacks"):
            recorded, specified = _known_to_0_10(recorded), _known_to_0_10(specified)
        for what in ("response", "group_after", "exception", "duplicate_response"):
            if not agrees(recorded.get(what), specified.get(what), what):
                name = f"{trace['name']} on {release}"
                mismatches.append(Mismatch(name, index, what, recorded.get(what), specified.get(what)))
    return mismatches


def _known_to_0_10(expect: dict[str, Any]) -> dict[str, Any]:
    """Without protocol types, the protocol of SyncGroup, pending_sync, and the generation of refused JoinGroups."""
    response = dict(expect.get("response") or {})
    response.pop("protocol_type", None)
    if "member_id" not in response:
        response.pop("protocol", None)
    if response.get("error") != "NONE":
        response.pop("generation", None)
    group = {key: value for key, value in expect["group_after"].items() if key not in ("pending_sync", "protocol_type")}
    return {**expect, "response": response, "group_after": group}


def main() -> int:
    """Print the table; fail if anything differs."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--show", type=int, default=0, metavar="N")
    options = parser.parse_args()
    totals: dict[str, list[int]] = {}
    shown: dict[str, int] = {}
    for release, trace in load_traces():
        mismatches = compare(trace, release)
        total = totals.setdefault(release, [0, 0, 0, 0])
        total[0] += 1
        total[1] += len(trace["steps"])
        total[2] += len(mismatches)
        total[3] += bool(mismatches)
        if mismatches and shown.setdefault(release, 0) < options.show:
            shown[release] += 1
            for mismatch in mismatches[:2]:
                print(*mismatch[:3], mismatch.recorded, mismatch.specified, sep="\n  ")
    print(f"{'kafka':>10} {'traces':>7} {'steps':>7} {'mismatches':>10} {'in traces':>9}")
    for release, total in sorted(totals.items()):
        print(f"{release:>10} {total[0]:>7} {total[1]:>7} {total[2]:>10} {total[3]:>9}")
    return 1 if any(total[2] for total in totals.values()) else 0


if __name__ == "__main__":
    sys.exit(main())
