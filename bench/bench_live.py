"""From event to visible row, live: a fleet's logs at a rate, `rebalance ship`, a real broker, `rebalance run --kafka`, Delta tables.

    python -m bench.bench_live [--rate 5000] [--seconds 120] [--lateness-ms 0] [--raw] [--store-ms 50]
    python -m bench.bench_live --seconds 1800       the soak: are memory, state and lag bounded?

The fleet is bench/live_load.py. A row is visible at the time that its commit states. The time of an event is its line's; of a rebalance,
the end that its row states. `rebalances_now` is the view: the first row of a rebalance counts, provisional or final. What happens in the
first two minutes, while the JVM still compiles, is not counted. `--store-ms`: the lakehouse lies in an object store that takes so long for
each request of the pipeline. Of the shipper it says what it uses of the machine, and how long a line takes to the topic.

Exit code 1 if the 95th percentile of one of them, but for the final rows of rebalances, is above 10 s, or 15 s with a store.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import operator
import os
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from multiprocessing import get_context
from multiprocessing.context import SpawnProcess
from pathlib import Path
from typing import Final, NamedTuple

import psutil
import pyarrow as pa
import pyarrow.parquet as pq

from bench.bench_ship import create_topic, delays_of, described
from bench.live_load import write
from bench.measured import disk_mb
from coordinator_model.events import CLOCK, FOLLOWED
from jobs.common.places import PROJECT
from jobs.common.stores import Place, StorePath, readable
from jobs.demo.local_broker import LocalBroker
from jobs.lakehouse.reader import table_rows
from tests.lab.local_store import BUCKET, LocalStore
from tests.lab.store_proxy import StoreProxy

TOPIC: Final = "group-protocol-logs"
TIMES: Final = {"group_events": "occurred_at", "group_transitions": "occurred_at", "rebalances": "ended_at", "rebalances_now": "ended_at"}
"""Of which tables, and since when a row of them was due."""
TABLES_OF_VIEW: Final = {"rebalances_now": ("rebalances_provisional", "rebalances")}
KEY: Final = ("cluster", "group_id", "generation", "joined_at", "ended_at")
WAITS: Final = "rebalances"
"""Final rows, which wait for later lines."""
JVM, PYTHON = "JVM", "Python"
WARM_SECONDS: Final = 120.0
TARGET_SECONDS: Final = 10.0
TARGET_ON_STORE: Final = 15.0


class Sample(NamedTuple):
    """Of the processes of the JVM and of Python at one moment: resident memory in MB, and processor time so far in seconds."""

    at: float
    mb: dict[str, float]
    cpu: dict[str, float]


def sample(pid: int) -> Sample:
    """A process and its children. Those that end meanwhile count as nothing."""
    found = Sample(time.time(), {JVM: 0.0, PYTHON: 0.0}, {JVM: 0.0, PYTHON: 0.0})
    for process in [root := psutil.Process(pid), *root.children(recursive=True)]:
        with contextlib.suppress(psutil.Error):
            size, times = process.memory_info().rss / 2**20, process.cpu_times()
            kind, together = (JVM, max) if process.exe().endswith("/java") else (PYTHON, operator.add)
            found.mb[kind] = together(found.mb[kind], size)  # a child that the JVM has forked looks like a second JVM at first
            found.cpu[kind] = together(found.cpu[kind], times.user + times.system)
    return found


class Delays(NamedTuple):
    """How late the rows of a table were visible, in seconds, and when it had commits."""

    table: str
    seconds: list[float]
    commits: list[float]

    def __str__(self) -> str:
        if not self.seconds:
            return f"{self.table:18} no row"
        pace = (self.commits[-1] - self.commits[0]) / max(len(self.commits) - 1, 1)
        shares = "   ".join(f"p{percent} {percentile(self.seconds, percent):5.1f} s" for percent in (50, 95, 99))
        late = percentile(self.seconds[-len(self.seconds) // 4 :], 95)
        return (
            f"{self.table:18} {len(self.seconds):8,} rows   {shares}   most {max(self.seconds):5.1f} s   "
            f"p95 of the last quarter {late:5.1f} s   a commit every {pace:.1f} s"
        )


def delays(lakehouse: Place, table: str, since: float) -> Delays:
    """Of the rows that were due since a time. Nothing has been compacted meanwhile."""
    found, known = Delays(table, [], []), set[tuple[object, ...]]()
    is_view, is_events = table in TABLES_OF_VIEW, table == "group_events"
    columns = [TIMES[table], *(("kind",) if is_events else (*KEY, "outcome") if is_view else ())]
    for at, files in sorted(commit for name in TABLES_OF_VIEW.get(table, (table,)) for commit in commits(lakehouse / name)):
        for file in files:
            rows = pq.read_table(readable(file), columns=list(dict.fromkeys(columns)))
            times = rows[TIMES[table]].cast(pa.timestamp("us", "UTC")).cast("int64").to_pylist()
            for due, row in zip(times, rows.to_pylist(), strict=True):
                rebalance = (*map(row.get, KEY[:3]), row.get("joined_at") or row.get("ended_at"))
                if due is None or (is_events and row["kind"] in {CLOCK, FOLLOWED}):
                    continue
                if is_view and (rebalance in known or row["outcome"] in ("OPEN", "ENDED")):
                    continue
                known.add(rebalance)
                if due / 1e6 >= since:
                    found.seconds.append(at - due / 1e6)
        if at >= since:
            found.commits.append(at)
    return found


def commits(table: Place) -> Iterator[tuple[float, list[Place]]]:
    """When each commit of a table was written, and the files that it added."""
    for entry in table.glob("_delta_log/*.json"):
        actions = [json.loads(line) for line in entry.read_text(encoding="utf-8").splitlines()]
        (at,) = (action["commitInfo"]["timestamp"] / 1e3 for action in actions if "commitInfo" in action)
        yield at, [table / action["add"]["path"] for action in actions if "add" in action]


def percentile(values: Sequence[float], percent: int) -> float:
    """The least value that so many percent do not exceed."""
    return sorted(values)[min(len(values) * percent // 100, len(values) - 1)]


def options() -> argparse.Namespace:
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rate", type=int, default=5_000, help="lines a second")
    parser.add_argument("--seconds", type=float, default=120.0, help="how long, after the first ones")
    parser.add_argument("--warm", type=float, default=WARM_SECONDS, help="how many first seconds do not count: the JVM still compiles")
    parser.add_argument("--raw", action="store_true", help="heartbeats as lines, not in bundles")
    parser.add_argument("--lateness-ms", type=int, default=0, help="what lines may be out of order by, which is waited for")
    parser.add_argument("--rebalances", type=float, default=4.0, help="that begin in a second, about")
    parser.add_argument("--store-ms", type=float, help="let the lakehouse lie in an object store that takes so long for each request")
    parser.add_argument("--keep", type=Path, help="folder to work in, and to keep; default: a temporary one")
    return parser.parse_args()


def main() -> int:
    """Prints the figures."""
    wanted = options()
    with contextlib.ExitStack() as stack:
        folder = wanted.keep or Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="rebalance-bench-")))
        broker = stack.enter_context(LocalBroker(folder / "kafka"))
        create_topic(broker, TOPIC)
        (folder / "logs").mkdir()
        lakehouse, target, env = stack.enter_context(placed(folder, wanted.store_ms))

        def start(name: str, *command: str) -> subprocess.Popen[bytes]:
            out = stack.enter_context((folder / f"{name}.txt").open("ab"))
            process = subprocess.Popen([sys.executable, *command], cwd=PROJECT, stdout=out, stderr=out, env=env)
            stack.callback(process.kill)
            return process

        ship = ("--input", str(folder / "logs"), "--cluster", "fleet", "--broker", "broker-1", "--state", str(folder / "ship.json"))
        shipper = start("ship", "-m", "jobs.cli", "ship", *ship, "--bootstrap", broker.bootstrap, *(["--raw"] if wanted.raw else []))
        run = ("--kafka", broker.bootstrap, "--lakehouse", str(lakehouse), "--lateness-ms", str(wanted.lateness_ms))
        pipeline = start("run", "-m", "jobs.cli", "run", *run)
        until = time.monotonic() + 240
        while not (lakehouse / "group_events" / "_delta_log").exists() and time.monotonic() < until:
            time.sleep(0.2)
        counted_from = time.time() + wanted.warm
        load = (folder / "logs", wanted.rate, wanted.warm + wanted.seconds, wanted.rebalances)
        samples = watched(get_context("spawn").Process(target=write, args=load, daemon=True), pipeline, folder)
        time.sleep(target)
        shipping = sample(shipper.pid)
        for process in (pipeline, shipper):
            process.send_signal(signal.SIGTERM)
            process.wait(120)
        late = [delays(lakehouse, table, counted_from) for table in TIMES]
        print(f"at {wanted.rate:,} lines a second, lateness {wanted.lateness_ms} ms")
        print(described(broker, TOPIC, folder / "logs", shipping.cpu[PYTHON], shipping.mb[PYTHON]))
        print(f"  line to topic p50 {(ms := delays_of(broker, TOPIC))[len(ms) // 2]} ms, p95 {ms[len(ms) * 95 // 100]} ms")
        print(used([one for one in samples if one.at >= counted_from] or samples, wanted.rate))
        print(f"{sum(row['lines_read'] for row in table_rows(lakehouse / 'input_lines', ['lines_read'])):,} lines read; to visible row:")
        print(*late, sep="\n")
        print(f"in the pipeline's own words: {(folder / 'run.txt').read_text(encoding='utf-8').splitlines()[-1]}")
        return 0 if all(one.seconds and percentile(one.seconds, 95) <= target for one in late if one.table != WAITS) else 1


def watched(load: SpawnProcess, pipeline: subprocess.Popen[bytes], folder: Path) -> list[Sample]:
    """Samples of the pipeline as long as lines are written; a line a minute. SystemExit: it has ended."""
    samples: list[Sample] = []
    load.start()
    while load.is_alive():
        if pipeline.poll() is not None:
            raise SystemExit((folder / "run.txt").read_text(encoding="utf-8"))
        samples.append(last := sample(pipeline.pid))
        if len(samples) % 60 == 0:
            memory = f"JVM {last.mb[JVM]:,.0f} MB, Python {last.mb[PYTHON]:,.0f} MB"
            with contextlib.suppress(FileNotFoundError):  # Spark deletes old versions of the state
                state = disk_mb(folder / "lakehouse" / "_checkpoints" / "track" / "state")
                print(f"{last.at - samples[0].at:5.0f} s  {memory}, state on disk {state:.0f} MB", flush=True)
        time.sleep(1.0)
    return samples


@contextlib.contextmanager
def placed(folder: Path, store_ms: float | None) -> Iterator[tuple[Place, float, dict[str, str]]]:
    """The lakehouse, how late its rows may be, and the environment of processes. To this one, which measures, a store is not slow."""
    env = {**os.environ, "PYTHONUNBUFFERED": "1"}
    if store_ms is None:
        yield folder / "lakehouse", TARGET_SECONDS, env
        return
    with LocalStore(folder / "store") as store, StoreProxy(store.endpoint, delay=store_ms / 1_000) as proxy:
        os.environ.update(store.environment())
        yield StorePath(BUCKET, "live"), TARGET_ON_STORE, env | store.environment(proxy.endpoint)
        print(f"requests: {', '.join(f'{kind} {count:,}' for kind, count in proxy.counts().items())}")


def used(samples: Sequence[Sample], rate: int) -> str:
    """What the pipeline used of the machine, and how its memory grew in the second half: the first holds start-up and the heap's growth."""
    first, last, half = samples[0], samples[-1], samples[len(samples) // 2 :]
    cores = {kind: (last.cpu[kind] - first.cpu[kind]) / (last.at - first.at) for kind in (JVM, PYTHON)}
    slopes = {kind: statistics.linear_regression([one.at / 60 for one in half], [one.mb[kind] for one in half]).slope for kind in cores}
    each = (f"{kind} {cores[kind]:.2f} cores, {last.mb[kind]:,.0f} MB ({slopes[kind]:+.1f} a minute)" for kind in cores)
    return f"pipeline: {sum(cores.values()):.2f} cores, {sum(cores.values()) / rate * 1e6:.0f} µs a line; {'; '.join(each)}"


if __name__ == "__main__":
    sys.exit(main())
