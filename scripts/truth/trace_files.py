"""Reads the recorded traces of Kafka's own coordinators: tests/data/traces and tests/data/traces-consumer.

It imports nothing of the specification: the mutants of its modules are imported after the traces are read.
"""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any

DATA = Path(__file__).resolve().parents[2] / "tests" / "data"
TRACES = DATA / "traces"
CONSUMER_TRACES = DATA / "traces-consumer"


@cache
def load_traces() -> tuple[tuple[str, dict[str, Any]], ...]:
    """Every recorded run, with the release on which it was recorded.

    A case was also run on a second release: the file has the outcome there, or how it differs. The cases of 0.10 were run on
    3.9.1 as well. Where the outcome was the same, the fields that 0.10 does not know were not compared. One of these cases is
    left out: 3.9.1 also expires the offsets of topics that no member of a Stable group subscribes to (KIP-496), but topics and
    subscriptions are opaque to the specification.
    """
    return tuple(_read_traces())


def _read_traces() -> Iterator[tuple[str, dict[str, Any]]]:
    for path in sorted(TRACES.glob("*.jsonl.gz")):
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


@cache
def load_consumer_traces() -> Mapping[str, tuple[dict[str, Any], ...]]:
    """The recorded traces of consumer groups by the name of their file, such as "cases" (of 4.2.0) and "random-4.4.0"."""
    names = (path.name.removesuffix(".jsonl.gz") for path in sorted(CONSUMER_TRACES.glob("*.jsonl.gz")))
    return {name: tuple(read_consumer_lines(name)) for name in names if not name.startswith("episodes-")}


def read_consumer_lines(name: str) -> Iterator[dict[str, Any]]:
    """The objects of a file in tests/data/traces-consumer."""
    with gzip.open(CONSUMER_TRACES / f"{name}.jsonl.gz", "rt", encoding="utf-8") as lines:
        yield from map(json.loads, lines)
