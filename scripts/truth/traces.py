"""Compares the specification with every recorded trace of Kafka's own coordinators, step by step.

Prints traces, steps and differing steps by Kafka release, of consumer groups by file, and with --show N the first difference of N traces of
each.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, NamedTuple

from coordinator_model.specification.consumer.traces.trace import FORMAT as CONSUMER_FORMAT
from coordinator_model.specification.consumer.traces.trace import episodes_of_trace
from coordinator_model.specification.trace import run_trace
from scripts.truth.trace_files import load_consumer_traces, load_traces, read_consumer_lines

CLASSIC_FIELDS: Final = ("response", "group_after", "exception", "duplicate_response")
CONSUMER_FIELDS: Final = ("response", "group_after", "records", "records_advance")
"""What the specification says of a step. The recordings of consumer groups have log lines too."""

Json = dict[str, Any]
Recorded = tuple[str | None, Json]
"""A trace, and the release on which it was run if that is another one than it says itself."""


class Difference(NamedTuple):
    """A step whose outcome is not the recorded one."""

    trace: str
    step: int
    field: str
    recorded: Any
    specified: Any


def differences_of(trace: Json, release: str | None = None) -> list[Difference]:
    """The differences between the recorded outcome and that of the specification."""
    of_consumers = trace.get("format") == CONSUMER_FORMAT
    differences = []
    for index, (step, own) in enumerate(zip(trace["steps"], run_trace(trace, release)["steps"], strict=True)):
        recorded, specified = (_comparable(trace, expect) for expect in (_as_named(trace, index, step), own["expect"]))
        for field in CONSUMER_FIELDS if of_consumers else CLASSIC_FIELDS:
            values = recorded.get(field), specified.get(field)
            if not (values[0] == values[1] if of_consumers else matches(*values, field)):
                differences.append(Difference(trace["name"], index, field, *values))
    return differences


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


def episode_differences() -> list[str]:
    """The traces whose rebalances are not the recorded ones."""
    traces = {trace["name"]: trace for some in load_consumer_traces().values() for trace in some}
    recorded = [*read_consumer_lines("episodes-cases"), *read_consumer_lines("episodes-random")]
    return [one["name"] for one in recorded if episodes_of_trace(traces[one["name"]]) != one]


def _as_named(trace: Json, index: int, step: Json) -> Json:
    """What was recorded of a step. An id that no answer told, and that each run drew anew, has the name that the trace gives it."""
    expect: Json = step["expect"]
    if step.get("bind", "") in trace.get("ids", {}) or "response" in expect:
        return expect
    text = json.dumps(expect)
    for drawn in (value for values in trace.get("any_of", {}).get(str(index), {}).values() for value in values):
        text = text.replace(json.dumps(drawn), json.dumps(step.get("bind")))
    named: Json = json.loads(text)
    return named


def _comparable(trace: Json, expect: Json) -> Json:
    if trace.get("ignore_what_0_10_lacks"):
        return _known_to_0_10(expect)
    response = expect.get("response")
    if trace.get("format") == CONSUMER_FORMAT and isinstance(response, dict) and response.get("error", "NONE") != "NONE":
        return {**expect, "response": {"error": response["error"], "message": response.get("message")}}
    return expect


def _known_to_0_10(expect: Json) -> Json:
    """The outcome without protocol types, the protocol of SyncGroup, pending_sync, and the generation of refused JoinGroups."""
    response = dict(expect.get("response") or {})
    response.pop("protocol_type", None)
    if "member_id" not in response:
        response.pop("protocol", None)
    if response.get("error") != "NONE":
        response.pop("generation", None)
    group = {key: value for key, value in expect["group_after"].items() if key not in ("pending_sync", "protocol_type")}
    return {**expect, "response": response, "group_after": group}


def _by_kind() -> dict[str, list[Recorded]]:
    """All recorded traces, by what the table calls them."""
    kinds: dict[str, list[Recorded]] = {}
    for release, trace in load_traces():
        kinds.setdefault(f"classic {release}", []).append((release, trace))
    consumers = load_consumer_traces().items()
    return dict(sorted(kinds.items())) | {f"consumer {name}": [(None, trace) for trace in some] for name, some in consumers}


def _row(columns: Iterable[Any]) -> str:
    return "{:>21} {:>7} {:>7} {:>10} {:>9}".format(*columns)


def main(arguments: Sequence[str] | None = None, kinds: Mapping[str, Sequence[Recorded]] | None = None) -> int:
    """Print the table; 1 if anything differs."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--show", type=int, default=0, metavar="N")
    options = parser.parse_args(arguments)
    table = [_row(("groups", "traces", "steps", "different", "in traces"))]
    failed = False
    for name, recorded in (kinds or _by_kind()).items():
        different = [found for release, trace in recorded if (found := differences_of(trace, release))]
        for first, *_ in different[: options.show]:
            print(*first[:3], json.dumps(first.recorded), json.dumps(first.specified), sep="\n  ")
        in_steps = sum(len({one.step for one in found}) for found in different)
        table.append(_row((name, len(recorded), sum(len(trace["steps"]) for _, trace in recorded), in_steps, len(different))))
        failed = failed or bool(different)
    print(*table, sep="\n")
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
