"""`make bench`: how fast the pipeline is, beside rivals over the same files in the same run.

    python -m bench.bench [--size M] [--lines 1000000] [--runs 5] [--quick] [--json FILE]
    python -m bench.bench --size recording --lines 1000000      the recording of 4.2.0, repeated: a rebalance in every second

Each contender is a process of its own. They take turns, and the table has medians. The start of Spark is measured apart, by a run over
a few lines, and does not count in lines/s. Processor time is that of the whole process tree.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import shutil
import statistics
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

from bench.measured import Usage, disk_mb, machine, run
from bench.repeat_recording import repeat
from jobs.common.places import PROJECT
from jobs.generate.sizes import SIZES

RECORDING: Final = PROJECT / "tests" / "data" / "recordings" / "kafka-4.2.0"
FEW_LINES: Final = 2_000
_LEAST: Final = 0.1
"""Of a run's time that must be work and not start: with less, the input is too small to tell lines/s."""
END_TO_END, INGEST, TRACK = "end to end", "ingest", "track"
DUCKDB, DUCKDB_FETCH = "DuckDB, parse only", "DuckDB, parse FETCH too"
NAIVE: Final = "PySpark, sessions only"
RIVAL_NAMES: Final = (DUCKDB, DUCKDB_FETCH, NAIVE)
NAMES: Final = (END_TO_END, INGEST, TRACK, *RIVAL_NAMES)
WITH_FETCH: Final = "F"
"""The size whose request logs have FETCH."""

Command = Callable[[Path, Path], list[str]]


class Contender(NamedTuple):
    """What is measured."""

    name: str
    command: Command
    """Of an input and a folder for its output."""


class Result(NamedTuple):
    """The runs of a contender."""

    name: str
    runs: list[Usage]
    start: Usage
    """A run over a few lines, the fastest of three."""
    disk_mb: float

    def figures(self, lines: int) -> dict[str, Any]:
        """Medians, and all runs."""
        seconds = statistics.median(one.seconds for one in self.runs)
        working = seconds - self.start.seconds
        core_seconds = statistics.median(one.core_seconds for one in self.runs)
        return {
            "seconds": round(seconds, 2),
            "seconds_of_runs": [round(one.seconds, 2) for one in self.runs],
            "start_seconds": round(self.start.seconds, 2),
            "lines_per_second": round(lines / working) if working > _LEAST * seconds else None,
            "core_seconds_per_million_lines": round((core_seconds - self.start.core_seconds) / lines * 1e6, 2),
            "start_core_seconds": round(self.start.core_seconds, 2),
            "peak_mb": round(max(one.peak_mb for one in self.runs)),
            "disk_mb_per_million_lines": round(self.disk_mb / lines * 1e6, 1),
        }


def python(*words: str | Path) -> list[str]:
    """A command of this Python."""
    return [sys.executable, *map(str, words)]


def contenders(ingested: Callable[[Path], Path]) -> list[Contender]:
    """The pipeline as a whole and in its parts, and the rivals. `ingested`: where an input's group_events are."""
    return [
        Contender(END_TO_END, lambda source, out: python("-m", "jobs.cli", "run", "--input", source, "--lakehouse", out, "--once")),
        Contender(INGEST, lambda source, out: python("jobs/ingest.py", "--input", source, "--lakehouse", out, "--once")),
        Contender(TRACK, lambda source, out: python("jobs/track.py", "--events-from", ingested(source), "--lakehouse", out, "--once")),
        Contender(DUCKDB, lambda source, _: python("-m", "bench.rivals.duckdb_parse", source)),
        Contender(DUCKDB_FETCH, lambda source, _: python("-m", "bench.rivals.duckdb_parse", source, "--fetch")),
        Contender(NAIVE, lambda source, out: python("-m", "bench.rivals.naive_spark", source, out)),
    ]


def made(folder: Path, size: str, lines: int, seed: int) -> Path:
    """An input; one that the same code has made before is used again."""
    source = folder / f"input-{size}-{lines}-{seed}"
    done, code = source.with_suffix(".complete"), fingerprint()
    if done.exists() and done.read_text(encoding="ascii") == code:
        return source
    shutil.rmtree(source, ignore_errors=True)
    if size == "recording":
        repeat(RECORDING, source, lines)
    else:
        command = python("-m", "jobs.cli", "generate", source, "--size", size, "--lines", str(lines), "--seed", str(seed))
        subprocess.run(command, cwd=PROJECT, check=True)
    os.sync()  # who reads first would else wait while the input is still written to disk
    done.write_text(code, encoding="ascii")
    return source


def fingerprint() -> str:
    """Of the code that makes inputs."""
    files = [*(PROJECT / "jobs" / "generate").glob("*.py"), PROJECT / "bench" / "repeat_recording.py"]
    return hashlib.sha256(b"".join(path.read_bytes() for path in sorted(files))).hexdigest()


def count(source: Path) -> int:
    """Lines of an input."""
    total = 0
    for path in source.rglob("*.log"):
        with path.open("rb") as file:
            while block := file.read(1 << 24):
                total += block.count(b"\n")
    return total


def measure(wanted: Sequence[Contender], source: Path, few: Path, folder: Path, runs: int) -> list[Result]:
    """Lets the contenders take turns."""
    log, out = folder / "output.txt", folder / "out"
    log.unlink(missing_ok=True)

    def once(contender: Contender, of: Path) -> tuple[Usage, float]:
        shutil.rmtree(out, ignore_errors=True)
        usage = run(contender.command(of, out), PROJECT, log)
        size = disk_mb(out) if out.exists() else 0.0
        print(f"  {contender.name}: {usage.seconds:.1f} s, {usage.core_seconds:.1f} core seconds", file=sys.stderr, flush=True)
        return usage, size

    print("over a few lines", file=sys.stderr)
    starts = {contender.name: min((once(contender, few)[0] for _ in range(min(runs, 3))), key=_seconds) for contender in wanted}
    found: dict[str, list[tuple[Usage, float]]] = {contender.name: [] for contender in wanted}
    for number in range(runs):
        print(f"run {number + 1} of {runs}", file=sys.stderr, flush=True)
        for contender in wanted:
            found[contender.name].append(once(contender, source))
    return [
        Result(name, [usage for usage, _ in of_one], starts[name], statistics.median(size for _, size in of_one))
        for name, of_one in found.items()
    ]


def _seconds(usage: Usage) -> float:
    return usage.seconds


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


def ratios(figures: dict[str, dict[str, Any]]) -> dict[str, float]:
    """The pipeline's lines/s beside those of its rivals."""
    own = figures.get(END_TO_END, {}).get("lines_per_second")
    rivals = {name: of_one["lines_per_second"] for name, of_one in figures.items() if name in RIVAL_NAMES}
    return {f"end to end / {name}": round(own / pace, 3) for name, pace in rivals.items() if own and pace}


def parsed(argv: Sequence[str] | None) -> argparse.Namespace:
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--size", choices=[*SIZES, "recording"], default="M", help="as of `rebalance generate`")
    parser.add_argument("--lines", type=int, default=1_000_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--runs", type=int, default=5, help="of each contender")
    parser.add_argument("--quick", action="store_true", help="one run over 100,000 lines")
    parser.add_argument("--only", action="append", metavar="NAME", choices=NAMES, help=f"repeatable: {'; '.join(NAMES)}")
    parser.add_argument("--folder", type=Path, default=PROJECT / ".bench", help="inputs are kept there")
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

    lakes: dict[Path, Path] = {}

    def ingested(of: Path) -> Path:
        if of not in lakes:
            lakes[of] = folder / f"events-of-{of.name}"
            shutil.rmtree(lakes[of], ignore_errors=True)
            run(python("jobs/ingest.py", "--input", of, "--lakehouse", lakes[of], "--once"), PROJECT, folder / "output.txt")
        return lakes[of]

    without = set() if options.size == WITH_FETCH else {DUCKDB_FETCH}
    wanted = [one for one in contenders(ingested) if one.name in (options.only or {*NAMES} - without)]
    results = measure(wanted, source, few, folder, options.runs)
    lines = count(source)
    figures = {result.name: result.figures(lines) for result in results}
    report = {
        "machine": on,
        "input": {"size": options.size, "seed": options.seed, "lines": lines, "mb": disk_mb(source)},
        "runs": options.runs,
        "contenders": figures,
        "ratios": ratios(figures),
    }
    target = options.json or folder / "bench.json"
    target.write_text(json.dumps(report, indent=2) + "\n", encoding="utf-8")
    print(table(report))
    return 0


if __name__ == "__main__":
    sys.exit(main())
