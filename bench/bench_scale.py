"""`make bench-scale`: how long a run takes on machines with more cores than this one.

    python -m bench.bench_scale [--size M] [--lines 10000000] [--cores 1,2,4,8,16,32,64] [--json FILE]

For each number of cores a run is planned for it, and done in as many slots as this machine has cores, at most. Spark's event log tells of
each task when it began and ended. On so many cores a stage takes as long as its tasks need of all cores, or as its longest task. Stages of
one query follow each other, and queries run side by side. The time in which no task ran stays as it is: start, plans, commits.

What it leaves out: that the driver works beside tasks, which shows when there are more cores; disks that are slower than the tasks, caches
and memory that cores share. Where this machine has the cores, the table shows how long the run took itself.
"""

from __future__ import annotations

import argparse
import json
import os
import runpy
import shutil
import sys
from collections import defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from bench.bench import count, made, python
from bench.measured import machine, run
from jobs.common.places import PROJECT

READING: Final = "read"
"""What runs for no query: the reading of logs."""
CORES: Final = "cores"
HERE: Final = len(os.sched_getaffinity(0))

Span = tuple[float, float]


def planned(folder: Path, cores: int, words: Sequence[str]) -> None:
    """Runs a command of `rebalance` that is planned for so many cores, with an event log in a folder."""
    from jobs.pipeline import session

    usual = session.local_defaults

    def defaults(**options: bool) -> dict[str, str]:
        return usual(**options) | {
            "spark.master": f"local[{min(cores, HERE)}, 3]",
            "spark.default.parallelism": str(cores),
            "spark.eventLog.enabled": "true",
            "spark.eventLog.dir": folder.as_uri(),
            "spark.eventLog.compress": "false",
            "spark.eventLog.rolling.enabled": "false",
        }

    session.local_defaults = defaults
    sys.argv = ["rebalance", *words]
    runpy.run_module("jobs.cli", run_name="__main__")


def tasks_of(path: Path) -> dict[str, list[list[Span]]]:
    """When the tasks of each stage began and ended, in seconds, by the query that they ran for."""
    names: dict[str, str] = {}
    of_stage: dict[int, str] = {}
    spans = defaultdict[int, list[Span]](list)
    with path.open(encoding="utf-8") as file:
        for event in map(json.loads, file):
            kind = event["Event"].rpartition(".")[2]
            if kind == "StreamingQueryListener$QueryStartedEvent":
                names[event["id"]] = event["name"]
            elif kind == "SparkListenerJobStart":
                query = event["Properties"].get("sql.streaming.queryId", "")
                of_stage |= dict.fromkeys(event["Stage IDs"], names.get(query, READING))
            elif kind == "SparkListenerTaskEnd":
                spans[event["Stage ID"]].append((event["Task Info"]["Launch Time"] / 1e3, event["Task Info"]["Finish Time"] / 1e3))
    found = defaultdict[str, list[list[Span]]](list)
    for stage, of_one in sorted(spans.items()):
        found[of_stage[stage]].append(of_one)
    return found


def busy(spans: Sequence[Span]) -> float:
    """Seconds in which there was a task."""
    total, until = 0.0, 0.0
    for begin, end in sorted(spans):
        total += max(0.0, end - max(begin, until))
        until = max(until, end)
    return total


def figures(tasks: Mapping[str, Sequence[Sequence[Span]]], seconds: float, cores: int) -> dict[str, Any]:
    """What a run that took so long takes on so many cores."""
    took = {name: [[end - begin for begin, end in stage] for stage in stages] for name, stages in tasks.items()}
    alone = {name: sum(max(sum(stage) / cores, *stage) for stage in stages) for name, stages in took.items()}
    work = {name: sum(map(sum, stages)) for name, stages in took.items()}
    bounds = {CORES: sum(work.values()) / cores, **alone}
    between = seconds - busy([span for stages in tasks.values() for stage in stages for span in stage])
    return {
        "tasks": max(bounds.values()),
        "between": between,
        "seconds": between + max(bounds.values()),
        "bounded_by": max(bounds, key=lambda name: bounds[name]),
        "task_seconds": work,
        "count": {name: sum(map(len, stages)) for name, stages in took.items()},
        "real": seconds if cores <= HERE else None,
    }


def table(found: Mapping[int, Mapping[str, Any]], what: str, lines: int) -> str:
    """The figures for a person."""
    first, kinds = found[min(found)], sorted({name for of_one in found.values() for name in of_one["count"]})
    rows = [what, "", f"{'cores':>5} {'tasks, s':>9} {'times':>6} {'run, s':>8} {'times':>6} {'lines/s':>10} {'real, s':>8}  bounded by"]
    for cores, it in found.items():
        real = f"{it['real']:8.1f}" if it["real"] else f"{'':8}"
        tasks, whole = (f"{it[name]:8.1f} {first[name] / it[name]:6.1f}" for name in ("tasks", "seconds"))
        rows.append(f"{cores:5} {tasks:>16} {whole} {lines / it['seconds']:10,.0f} {real}  {it['bounded_by']}")
    rows += ["", f"{'cores':>5} {'between, s':>10} " + " ".join(f"{f'{name}: tasks, s':>20}" for name in kinds)]
    for cores, it in found.items():
        each = (f"{it['count'].get(name, 0):10,} {it['task_seconds'].get(name, 0.0):9.1f}" for name in kinds)
        rows.append(f"{cores:5} {it['between']:10.1f} {' '.join(each)}")
    return "\n".join([*rows, "", "Between: no task ran. Times: beside what is planned for the fewest cores."])


def parsed() -> argparse.Namespace:
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--size", default="M", help="as of `rebalance generate`")
    parser.add_argument("--lines", type=int, default=10_000_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--cores", default="1,2,4,8,16,32,64")
    parser.add_argument("--folder", type=Path, default=PROJECT / ".bench", help="to work in")
    parser.add_argument("--json", type=Path, help="write the figures here [default: FOLDER/bench-scale.json]")
    return parser.parse_args()


def main() -> None:
    """Prints the tables."""
    options = parsed()
    folder = options.folder.resolve()
    events, lake = folder / "events", folder / "lake"
    on, source = machine(), made(folder, options.size, options.lines, options.seed)
    lines, found = count(source), {}
    for cores in sorted(map(int, options.cores.split(","))):
        for path in (events, lake):
            shutil.rmtree(path, ignore_errors=True)
        events.mkdir(parents=True)
        words = ("run", "--input", source, "--lakehouse", lake, "--once")
        usage = run(python("-m", "bench.bench_scale", "planned", events, str(cores), *words), PROJECT, folder / "output.txt")
        found[cores] = figures(tasks_of(next(events.glob("local-*"))), usage.seconds, cores)
        print(f"  planned for {cores}: {usage.seconds:.1f} s, {usage.core_seconds:.1f} core seconds", file=sys.stderr, flush=True)
    report = {"machine": on, "input": {"size": options.size, "lines": lines}, "cores": found}
    (options.json or folder / "bench-scale.json").write_text(json.dumps(report, indent=2) + "\n", encoding="utf-8")
    print(table(found, f"{lines:,} lines of {options.size}, {on['cores']} cores of {on['processor']}", lines))


if __name__ == "__main__":
    if sys.argv[1:2] == ["planned"]:
        planned(Path(sys.argv[2]), int(sys.argv[3]), sys.argv[4:])
    else:
        main()
