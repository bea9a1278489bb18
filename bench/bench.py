"""`make bench`: how fast the pipeline is, beside rivals over the same files in the same run.

    python -m bench.bench [--size M] [--lines 1000000] [--runs 5] [--quick] [--json FILE]
    python -m bench.bench --size recording --lines 1000000      the recording of 4.2.0, repeated: a rebalance in every second

Each contender is a process of its own. They take turns, and the table has medians. The start of Spark is measured apart, by a run over
a few lines, and does not count in lines/s. Processor time is that of the whole process tree.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

from bench.measured import Usage, disk_mb, machine, run
from bench.repeat_recording import repeat
from jobs.common.places import PROJECT
from jobs.generate.sizes import SIZES

RECORDING: Final = PROJECT / "tests" / "data" / "recordings" / "kafka-4.2.0"
FEW_LINES: Final = 2_000
_LEAST: Final = 0.1
"""Of a run's time that must be work and not start: with less, the input is too small to tell lines/s."""
END_TO_END, TRACK, DUCKDB_FETCH = "end to end", "track", "DuckDB, parse FETCH too"
RIVALS: Final = {
    "DuckDB, parse only": "-m bench.rivals.duckdb_parse {input}",
    DUCKDB_FETCH: "-m bench.rivals.duckdb_parse {input} --fetch",
    "PySpark, sessions only": "-m bench.rivals.naive_spark {input} {output}",
}
CONTENDERS: Final = {
    END_TO_END: "-m jobs.cli run --input {input} --lakehouse {output} --once",
    "ingest": "jobs/ingest.py --input {input} --lakehouse {output} --once",
    TRACK: "jobs/track.py --events-from {events} --lakehouse {output} --once",
    **RIVALS,
}
"""The pipeline as a whole and in its parts, and the rivals: what Python runs. `events`: the lakehouse that ingest has made of the input."""
WITH_FETCH: Final = "F"
"""The size whose request logs have FETCH."""


def python(*words: str | Path) -> list[str]:
    """A command of this Python."""
    return [sys.executable, *map(str, words)]


def made(folder: Path, size: str, lines: int, seed: int) -> Path:
    """An input."""
    source = folder / f"input-{size}-{lines}-{seed}"
    shutil.rmtree(source, ignore_errors=True)
    if size == "recording":
        repeat(RECORDING, source, lines)
    else:
        command = python("-m", "jobs.cli", "generate", source, "--size", size, "--lines", str(lines), "--seed", str(seed))
        subprocess.run(command, cwd=PROJECT, check=True)
    os.sync()  # who reads first would else wait while the input is still written to disk
    return source


def count(source: Path) -> int:
    """Lines of an input."""
    total = 0
    for path in source.rglob("*.log"):
        with path.open("rb") as file:
            while block := file.read(1 << 24):
                total += block.count(b"\n")
    return total


def measure(wanted: Sequence[str], source: Path, few: Path, folder: Path, runs: int) -> dict[str, dict[str, Any]]:
    """Lets the contenders take turns; the figures of each."""
    log, out = folder / "output.txt", folder / "out"
    log.unlink(missing_ok=True)

    def once(name: str, of: Path, out: Path = out) -> tuple[Usage, float]:
        events = folder / f"events-of-{of.name}"
        if name == TRACK and not events.exists():
            once("ingest", of, events)
        shutil.rmtree(out, ignore_errors=True)
        usage = run(python(*(word.format(input=of, output=out, events=events) for word in CONTENDERS[name].split())), PROJECT, log)
        print(f"  {name}: {usage.seconds:.1f} s, {usage.core_seconds:.1f} core seconds", file=sys.stderr, flush=True)
        return usage, disk_mb(out)

    for kept in folder.glob("events-of-*"):
        shutil.rmtree(kept)
    print("over a few lines", file=sys.stderr)
    starts = {name: min((once(name, few)[0] for _ in range(min(runs, 3))), key=lambda usage: usage.seconds) for name in wanted}
    found: dict[str, list[tuple[Usage, float]]] = {name: [] for name in wanted}
    for number in range(runs):
        print(f"run {number + 1} of {runs}", file=sys.stderr, flush=True)
        for name in wanted:
            found[name].append(once(name, source))
    lines = count(source)
    return {name: figures(of_one, starts[name], lines) for name, of_one in found.items()}


def figures(runs: Sequence[tuple[Usage, float]], start: Usage, lines: int) -> dict[str, Any]:
    """Medians, and all runs, each with the MB that it left. `start`: a run over a few lines, the fastest of three."""
    seconds = statistics.median(one.seconds for one, _ in runs)
    core_seconds = statistics.median(one.core_seconds for one, _ in runs)
    working = seconds - start.seconds
    return {
        "seconds": round(seconds, 2),
        "seconds_of_runs": [round(one.seconds, 2) for one, _ in runs],
        "start_seconds": round(start.seconds, 2),
        "lines_per_second": round(lines / working) if working > _LEAST * seconds else None,
        "core_seconds_per_million_lines": round((core_seconds - start.core_seconds) / lines * 1e6, 2),
        "start_core_seconds": round(start.core_seconds, 2),
        "peak_mb": round(max(one.peak_mb for one, _ in runs)),
        "disk_mb_per_million_lines": round(statistics.median(mb for _, mb in runs) / lines * 1e6, 1),
    }


def table(report: dict[str, Any]) -> str:
    """The figures for a person."""
    inputs, on = report["input"], report["machine"]
    what = f"{inputs['lines']:,} lines, {inputs['mb']:,.0f} MB ({inputs['size']}), medians of {report['runs']} runs"
    where = (
        f"{on['cores']} cores of {on['processor']}, {on['memory_gb']} GB; load before {on['load_before']}; "
        f"Spark {on['pyspark']}, DuckDB {on['duckdb']}, Python {on['python']}; commit {on['commit']}"
    )
    heads = f"{'':30} {'lines/s':>10} {'seconds':>9} {'start':>7} {'core s/M':>9} {'peak MB':>9} {'disk MB/M':>10}"
    rows = [what, where, "", heads]
    for name, of_one in report["contenders"].items():
        pace = f"{of_one['lines_per_second']:,}" if of_one["lines_per_second"] else "too few"
        rows.append(
            f"{name:30} {pace:>10} {of_one['seconds']:9.1f} {of_one['start_seconds']:7.1f} "
            f"{of_one['core_seconds_per_million_lines']:9.1f} {of_one['peak_mb']:9,} {of_one['disk_mb_per_million_lines']:10.1f}"
        )
    rows += ["", *(f"{name}: {ratio}" for name, ratio in report["ratios"].items())]
    return "\n".join(rows)


def ratios(found: dict[str, dict[str, Any]]) -> dict[str, float]:
    """The pipeline's lines/s beside those of its rivals."""
    own = found.get(END_TO_END, {}).get("lines_per_second")
    rivals = {name: of_one["lines_per_second"] for name, of_one in found.items() if name in RIVALS}
    return {f"end to end / {name}": round(own / pace, 3) for name, pace in rivals.items() if own and pace}


def parsed(argv: Sequence[str] | None) -> argparse.Namespace:
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--size", choices=[*SIZES, "recording"], default="M", help="as of `rebalance generate`")
    parser.add_argument("--lines", type=int, default=1_000_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--runs", type=int, default=5, help="of each contender")
    parser.add_argument("--quick", action="store_true", help="one run over 100,000 lines")
    parser.add_argument("--only", action="append", metavar="NAME", choices=CONTENDERS, help=f"repeatable: {'; '.join(CONTENDERS)}")
    parser.add_argument("--folder", type=Path, default=PROJECT / ".bench", help="to work in")
    parser.add_argument("--json", type=Path, help="write the figures here [default: FOLDER/bench.json]")
    options = parser.parse_args(argv)
    if options.quick:
        options.lines, options.runs = 100_000, 1
    return options


def main(argv: Sequence[str] | None = None) -> int:
    """Prints the table."""
    options = parsed(argv)
    folder = options.folder.resolve()
    folder.mkdir(parents=True, exist_ok=True)
    on = machine()
    source = made(folder, options.size, options.lines, options.seed)
    few = made(folder, "S", FEW_LINES, options.seed)

    without = set() if options.size == WITH_FETCH else {DUCKDB_FETCH}
    wanted = [name for name in CONTENDERS if name in (options.only or CONTENDERS.keys() - without)]
    found = measure(wanted, source, few, folder, options.runs)
    report = {
        "machine": on,
        "input": {"size": options.size, "seed": options.seed, "lines": count(source), "mb": disk_mb(source)},
        "runs": options.runs,
        "contenders": found,
        "ratios": ratios(found),
    }
    target = options.json or folder / "bench.json"
    target.write_text(json.dumps(report, indent=2) + "\n", encoding="utf-8")
    print(table(report))
    return 0


if __name__ == "__main__":
    sys.exit(main())
