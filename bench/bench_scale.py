"""`make bench-scale`: how long a run takes on machines with more cores than this one.

    python bench/bench_scale.py [--size M] [--lines 10000000] [--cores 1,2,4,8,16,32,64] [--runs 1] [--check] [--json FILE]

For each number of cores a run is planned for it and done in `--slots` slots on what is there. Each task's processor time and the driver's
are recorded (traced.py), and from them the time on so many cores is computed (list_scheduling.py): rounds of tasks, what waits for what,
and the driver's work in between. `--check` compares with real runs on 1 and 2 cores, which take turns with traced ones.

What it leaves out: disks that are slower than the tasks, caches and memory that cores share, and that a worker is slow in its first task.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import statistics
import sys
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

PROJECT: Final = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(PROJECT))

from list_scheduling import CORES, DRIVER, PAUSE, schedule, stages, tasks_only  # noqa: E402
from machine import machine  # noqa: E402
from measured import Usage, run  # noqa: E402
from traces import INGEST, SPOOL, START, TRACK, Trace, read_trace  # noqa: E402
from undisturbed import Undisturbed  # noqa: E402

from bench import FEW_LINES, count, made, python  # noqa: E402 - a script: the project is not on the path before

SPEEDS: Final = {"read": SPOOL, "parse": INGEST, "track": TRACK}
_SHOWN: Final = 0.05  # seconds
READING: Final = ("read", "parse")


def traced_run(source: Path, folder: Path, cores: int, slots: int) -> Trace:
    """A run planned for so many cores."""
    trace, lake = folder / f"trace-{cores}", folder / "lake"
    for path in (trace, lake):
        shutil.rmtree(path, ignore_errors=True)
    trace.mkdir(parents=True)
    words = ("run", "--input", source, "--lakehouse", lake, "--once")
    with Undisturbed(len(os.sched_getaffinity(0))) as clock:
        begun = time.time()
        usage = run(python("bench/traced.py", trace, str(cores), str(slots), *words), PROJECT, folder / "output.txt")
    return read_trace(trace, begun + usage.seconds, usage.core_seconds, clock.until)


def real_run(source: Path, folder: Path, cores: int) -> tuple[float, Usage]:
    """A plain run on the first cores of this machine; how long it would have taken, had they been free of other work."""
    lake = folder / "lake"
    shutil.rmtree(lake, ignore_errors=True)
    every = os.sched_getaffinity(0)
    os.sched_setaffinity(0, sorted(every)[:cores])
    try:
        words = ("run", "--input", source, "--lakehouse", lake, "--once")
        with Undisturbed(cores) as clock:
            begun = time.time()
            usage = run(python("-m", "jobs.cli", *words), PROJECT, folder / "output.txt")
        return clock.until(begun + usage.seconds) - clock.until(begun), usage
    finally:
        os.sched_setaffinity(0, every)


def computed(trace: Trace, few: Sequence[Trace], cores: int) -> dict[str, Any]:
    """The figures on so many cores. `few`: traces of runs over a few lines, which tell how long Spark takes to start and to end."""
    chains = trace.with_start([min(walls) for walls in zip(*(one.start_walls for one in few), strict=True)])
    end = max(min(one.end_wall for one in few), trace.end / cores)
    whole = schedule(chains, cores, trace.beside)
    spent = whole.spent + Counter({START: end})
    return {
        "seconds": whole.seconds + end,
        "tasks": schedule(tasks_only(chains), cores).seconds,
        "spent": {name: round(spent[name], 2) for name in (CORES, START, DRIVER, "read", "parse", "track", PAUSE)},
        "cost": {name: sum(trace.tasks(chain)) for name, chain in SPEEDS.items()},
        "largest": {name: max(trace.tasks(chain), default=0.0) for name, chain in SPEEDS.items()},
        "alone": {name: schedule({chain: stages(chains[chain])}, cores).seconds for name, chain in SPEEDS.items()},
        "count": {name: len(trace.tasks(chain)) for name, chain in SPEEDS.items()},
        "driver_python": trace.python - statistics.median(one.python for one in few),
        "driver_jvm": trace.jvm - statistics.median(one.jvm for one in few),
        "driver_between": trace.serial - statistics.median(one.serial for one in few),
        "start_core_seconds": sum(trace.starts),
        "core_seconds": trace.core_seconds,
        "beside": trace.beside,
    }


def table(figures: Mapping[int, Mapping[str, Any]], what: str, lines: int) -> str:
    """The figures for a person."""
    least = min(figures)
    one, names = figures[least], " ".join(f"{name:>6}" for name in SPEEDS)
    rows = [
        what,
        "",
        f"{'':5} {'tasks':>15} {'run':>15} {'':>10} {'times as fast':^20}",
        f"{'cores':>5} {'s':>8} {'times':>6} {'s':>8} {'times':>6} {'lines/s':>10} {names}  bounded by, s",
    ]
    for cores, it in figures.items():
        pairs = [(one["alone"][name], it["alone"][name]) for name in SPEEDS]  # a small input is not read by tasks
        alone = " ".join(f"{alone / seconds:6.1f}" if seconds else f"{'':6}" for alone, seconds in pairs)
        bounds = ", ".join(
            f"{name} {seconds:.1f}" for name, seconds in sorted(it["spent"].items(), key=lambda item: -item[1]) if seconds >= _SHOWN
        )
        tasks, run = (f"{it[name]:8.1f} {one[name] / it[name]:6.1f}" for name in ("tasks", "seconds"))
        rows.append(f"{cores:5} {tasks} {run} {lines / it['seconds']:10,.0f} {alone}  {bounds}")
    heads = f"{'tasks':^14} {'core seconds':^20} {'largest task, s':^17} {'read + parse':>13}   {'driver, s/M':^20}"
    rows += ["", f"{'':5} {heads}"]
    for cores, it in figures.items():
        forms = {"count": "4.0f", "cost": "6.1f", "largest": "5.2f"}
        counts, costs, largest = (" ".join(f"{it[what][name]:{form}}" for name in SPEEDS) for what, form in forms.items())
        cost = sum(it["cost"][name] for name in READING) / sum(one["cost"][name] for name in READING)
        driver = (f"{it[f'driver_{name}'] / lines * 1e6:6.2f}" for name in ("python", "jvm", "between"))
        rows.append(f"{cores:5} {counts} {costs} {largest} {cost:13.2f}   {' '.join(driver)}")
    rows += [
        "",
        f"Three columns are {', '.join(SPEEDS)}. Times, and read + parse: beside what is planned for {least} and done on it.",
        "Driver, beyond a run over a few lines: its Python, its JVM outside of tasks; what of both passes between tasks.",
    ]
    return "\n".join(rows)


def checked(source: Path, few: Sequence[Trace], folder: Path, runs: int) -> str:
    """Computed beside real times. They take turns, and medians count: the machine may have other work."""
    real: dict[int, list[tuple[float, Usage]]] = {1: [], 2: []}
    found: dict[tuple[int, int], list[float]] = {(cores, slots): [] for cores in real for slots in real}
    for number in range(runs):
        for cores, usages in real.items():
            usages.append(real_run(source, folder, cores))
            seconds, usage = usages[-1]
            times = f"{seconds:.1f} s of {usage.seconds:.1f} s, {usage.core_seconds:.1f} core seconds"
            tell(f"real on {cores}, run {number + 1} of {runs}: {times}")
        for (cores, slots), times_of_runs in found.items():
            trace = traced_run(source, folder, cores, slots)
            times_of_runs.append(computed(trace, few, cores)["seconds"])
            tell(f"computed for {cores} in {slots} slots: {times_of_runs[-1]:.1f} s, {trace.core_seconds:.1f} core seconds")
    rows = [f"{'cores':>5} {'real s':>8} {'core s':>8} {'computed from 1 slot':>21} {'from 2':>16}"]
    for cores, usages in real.items():
        wall, core = statistics.median(one[0] for one in usages), statistics.median(one[1].core_seconds for one in usages)
        by = [statistics.median(found[cores, slots]) for slots in real]
        rows.append(f"{cores:5} {wall:8.1f} {core:8.1f} {by[0]:14.1f} ({by[0] / wall:.2f}) {by[1]:9.1f} ({by[1] / wall:.2f})")
    return "\n".join(rows)


def started_run(short: Path, folder: Path, slots: int, number: int) -> Trace:
    """A run over a few lines."""
    trace = traced_run(short, folder, slots, slots)
    start, end = sum(trace.start_walls), trace.end_wall
    tell(f"few lines, run {number + 1}: start {start:.1f} s, end {end:.1f} s, {trace.core_seconds:.1f} core seconds")
    return trace


def tell(text: str) -> None:
    """Says how far the bench is."""
    print(f"  {text}", file=sys.stderr, flush=True)


def parsed(argv: Sequence[str] | None) -> argparse.Namespace:
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--size", default="M", help="as of `rebalance generate`")
    parser.add_argument("--lines", type=int, default=10_000_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--cores", default="1,2,4,8,16,32,64")
    parser.add_argument("--slots", type=int, default=len(os.sched_getaffinity(0)), help="in which tasks are done [default: %(default)s]")
    parser.add_argument("--runs", type=int, default=1, help="of each number of cores, which take turns")
    parser.add_argument("--starts", type=int, default=3, help="runs over a few lines, which tell how long Spark takes to start")
    parser.add_argument("--check", action="store_true", help="compare with real runs on 1 and 2 cores instead")
    parser.add_argument("--folder", type=Path, default=PROJECT / ".bench", help="inputs are kept there")
    parser.add_argument("--json", type=Path, help="write the figures here [default: FOLDER/bench-scale.json]")
    return parser.parse_args(argv)


def median(runs: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """The median of each figure; of what lies inside, of each of its figures."""
    first = runs[0]
    return {
        name: median([one[name] for one in runs])
        if isinstance(first[name], dict)
        else statistics.median(one.get(name, 0.0) for one in runs)
        for name in first
    }


def main(argv: Sequence[str] | None = None) -> int:
    """Prints the table."""
    options = parsed(argv)
    folder = options.folder.resolve()
    folder.mkdir(parents=True, exist_ok=True)
    os.environ["PYTHONPATH"] = os.pathsep.join([str(PROJECT), str(PROJECT / "bench"), os.environ.get("PYTHONPATH", "")])  # of workers
    on, target = machine(), options.json or folder / "bench-scale.json"
    source, short = made(folder, options.size, options.lines, options.seed), made(folder, "S", FEW_LINES, options.seed)
    lines = count(source)
    few = [started_run(short, folder, options.slots, number) for number in range(options.starts)]
    if options.check:
        print(checked(source, few, folder, options.runs))
        return 0
    found: dict[int, list[dict[str, Any]]] = {}
    for number in range(options.runs):
        for cores in map(int, options.cores.split(",")):
            trace = traced_run(source, folder, cores, options.slots)
            found.setdefault(cores, []).append(computed(trace, few, cores))
            seconds = f"{found[cores][-1]['seconds']:.1f} s, {trace.core_seconds:.1f} core seconds"
            tell(f"planned for {cores}, run {number + 1} of {options.runs}: {seconds}")
            figures = {cores: median(found[cores]) for cores in sorted(found)}
            inputs = {"size": options.size, "lines": lines, "runs": number + 1, "slots": options.slots}
            target.write_text(json.dumps({"machine": on, "input": inputs, "cores": figures}, indent=2) + "\n", encoding="utf-8")
    print(table(figures, f"{lines:,} lines of {options.size}, {on['cores']} cores of {on['processor']}", lines))
    return 0


if __name__ == "__main__":
    sys.exit(main())
