"""How ingest scales: a Spark standalone cluster of processes on this machine, with executors of one core.

    python bench/bench_cluster.py [--lines 2000000 6000000] [--executors 1 2]

Each number of executors reads a shorter and a longer log. The difference between both runs is free of all starts: it gives lines a second
and the processor time that the driver and the executors take for a million lines.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Final, NamedTuple

import psutil

PROJECT: Final = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(PROJECT))

from scripts.build import package  # noqa: E402 - after the path
from tests.cluster.standalone import Cluster  # noqa: E402

_SAMPLE_SECONDS: Final = 0.5


class Cost(NamedTuple):
    """What a run took: seconds, and those of processors."""

    wall: float
    driver: float
    executors: float

    def __sub__(self, other: Cost) -> Cost:
        return Cost(self.wall - other.wall, self.driver - other.driver, self.executors - other.executors)


def main() -> None:
    """Prints a line for each number of executors."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--lines", type=int, nargs=2, default=[2_000_000, 6_000_000], metavar="N", help="lines of the two logs")
    options.add_argument("--executors", type=int, nargs="+", default=[1, 2], metavar="N")
    options.add_argument("--size", default="M", help="the cluster, as of `rebalance generate`")
    chosen = options.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        logs = [_generated(folder / f"logs-{lines}", chosen.size, lines) for lines in chosen.lines]
        _, _, archive = package.main(folder / "dist")
        rates = []
        for executors in chosen.executors:
            costs = [_ingested(folder / f"{executors}-{path.name}", archive, path, executors) for path in logs]
            more, millions = costs[1] - costs[0], (chosen.lines[1] - chosen.lines[0]) / 1e6
            rates.append(millions * 1e6 / more.wall)
            print(
                f"{executors} executor(s): {rates[-1]:,.0f} lines/s ({rates[-1] / rates[0]:.2f} of the first line); for a million lines "
                f"the driver takes {more.driver / millions:.2f} s of a core, executors {more.executors / millions:.1f} s; start "
                f"{costs[0].wall - chosen.lines[0] / rates[-1]:.0f} s",
                flush=True,
            )


def _generated(folder: Path, size: str, lines: int) -> Path:
    command = [sys.executable, "-m", "jobs.cli", "generate", str(folder), "--size", size, "--lines", str(lines)]
    subprocess.run(command, check=True, cwd=PROJECT, stdout=subprocess.DEVNULL)
    return folder


def _ingested(folder: Path, archive: Path, logs: Path, executors: int) -> Cost:
    """Ingest of a folder of logs by so many executors."""
    folder.mkdir()
    with Cluster(folder, archive) as cluster:
        for number in range(executors):
            cluster.start_worker(f"worker-{number}")
        seen: dict[int, tuple[str, float]] = {}
        begun = time.monotonic()
        job = cluster.submit("ingest", "jobs/ingest.py", "--input", logs, "--lakehouse", folder / "lake", "--once")
        while job.poll() is None:
            _look(job.pid, seen)
            time.sleep(_SAMPLE_SECONDS)
        wall = time.monotonic() - begun
        if job.returncode:
            raise SystemExit(cluster.output("ingest")[-2_000:])
    costs = {role: sum(seconds for own, seconds in seen.values() if own == role) for role in ("driver", "executor")}
    return Cost(wall, costs["driver"], costs["executor"])


def _look(driver: int, seen: dict[int, tuple[str, float]]) -> None:
    """Notes the processor time so far of the driver's processes, and of all executors and their workers."""
    drivers = {driver, *(child.pid for child in psutil.Process(driver).children(recursive=True))}
    for process in psutil.process_iter():
        try:
            role = "driver" if process.pid in drivers else "executor" if _is_executors(process) else ""
            times = process.cpu_times()
        except psutil.Error:
            continue
        if role:
            seen[process.pid] = role, times.user + times.system


def _is_executors(process: psutil.Process) -> bool:
    parents = [process, *process.parents()]
    return any("CoarseGrainedExecutorBackend" in " ".join(parent.cmdline()) for parent in parents)


if __name__ == "__main__":
    main()
