"""From event to visible row, live: a fleet's logs at a rate, `rebalance ship`, a real broker, `rebalance run --kafka`, Delta tables.

    python bench/bench_live.py [--rate 5000] [--seconds 120] [--lateness-ms 0] [--raw] [--page] [--store-ms 50]
    python bench/bench_live.py --seconds 1800       the soak: are memory, state and lag bounded?

The fleet is bench/live_load.py. A row is visible when the table's log has the commit with it: the log's folder is looked at every
50 ms. The time of an event is its line's; of a rebalance, the end that its row states. `rebalances_now` is the view: the first row of a
rebalance counts, provisional or final. What happens in the first two minutes, while the JVM still compiles, is not
counted. `--page`: a dashboard reads the tables meanwhile, and its first page is open in Chromium, which is as unimportant to
the machine as can be: readers have machines of their own. `--store-ms`: the lakehouse lies in an object store that takes so long for each
request of the pipeline; the log is looked at four times a second.

Exit code 1 if the 95th percentile of one of them, but for the final rows of rebalances, is above 10 s, or 15 s with a store.
"""

from __future__ import annotations

import argparse
import contextlib
import itertools
import json
import os
import re
import signal
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Final

PROJECT: Final = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(PROJECT))

import psutil  # noqa: E402 - a script: the project is not on the path before
import pyarrow as pa  # noqa: E402 - a script: the project is not on the path before
import pyarrow.parquet as pq  # noqa: E402
from memory import Sample, sample, slope  # noqa: E402

from coordinator_model.events import CLOCK, FOLLOWED  # noqa: E402
from jobs.common.stores import Place, StorePath, readable  # noqa: E402
from jobs.demo.local_broker import LocalBroker  # noqa: E402
from jobs.lakehouse.reader import table_rows  # noqa: E402
from tests.dashboard.browsing import browsing  # noqa: E402
from tests.lab.local_store import BUCKET, LocalStore  # noqa: E402
from tests.lab.store_proxy import StoreProxy  # noqa: E402

TOPIC: Final = "group-protocol-logs"
PARTITIONS: Final = 6
TIMES: Final = {"group_events": "occurred_at", "group_transitions": "occurred_at", "rebalances": "ended_at", "rebalances_now": "ended_at"}
"""Of which tables, and since when a row of them was due."""
TABLES_OF_VIEW: Final = {"rebalances_now": ("rebalances_provisional", "rebalances")}
KEY: Final = ("cluster", "group_id", "generation", "joined_at", "ended_at")
WAITS: Final = "rebalances"
"""Final rows, which wait for later lines."""
WARM_SECONDS: Final = 120.0
TARGET_SECONDS: Final = 10.0
TARGET_ON_STORE: Final = 15.0


class Watcher(threading.Thread):
    """Sees every commit of a table as soon as it is there."""

    def __init__(self, lakehouse: Place, table: str, counted_from: float) -> None:
        super().__init__(daemon=True)
        self._folders = [lakehouse / name for name in TABLES_OF_VIEW.get(table, (table,))]
        self._column = TIMES[table]
        self._columns = [self._column, *(["kind"] if table == "group_events" else (*KEY, "outcome") if table in TABLES_OF_VIEW else ())]
        self._known: set[tuple[object, ...]] = set()  # rebalances that a view has shown
        self._from = counted_from
        self.table = table
        self.delays: list[float] = []  # seconds
        self.commits: list[float] = []  # when each was seen
        self._pause = 0.25 if isinstance(lakehouse, StorePath) else 0.05
        self.ended = False

    def run(self) -> None:
        """Until the process ends."""
        versions = dict.fromkeys(self._folders, 0)
        while not self.ended:
            before = dict(versions)
            for folder, version in before.items():
                entry = folder / "_delta_log" / f"{version:020d}.json"
                if entry.is_file():
                    seen = time.time()
                    with contextlib.suppress(OSError):  # maintained meanwhile
                        self._take(folder, entry, seen)
                    versions[folder] += 1
            if versions == before:
                time.sleep(self._pause)

    def _take(self, folder: Place, entry: Place, seen: float) -> None:
        for line in entry.read_text(encoding="utf-8").splitlines():
            added = json.loads(line).get("add")
            if added is None:
                continue
            table = pq.read_table(readable(folder / added["path"]), columns=list(dict.fromkeys(self._columns)))
            times = table[self._column].cast(pa.timestamp("us", "UTC")).cast("int64").to_pylist()
            found = [at / 1e6 for at, counts in zip(times, self._counts(table), strict=True) if counts and at is not None]
            self.delays += [seen - at for at in found if at >= self._from]
            self.commits.append(seen)

    def _counts(self, table: pa.Table) -> list[bool]:
        """Which rows count: events that are no clocks, and of a view the first row of each rebalance."""
        if self.table == "group_events":
            return [kind not in {CLOCK, FOLLOWED} for kind in table["kind"].to_pylist()]
        if self.table not in TABLES_OF_VIEW:
            return [True] * len(table)
        counts = []
        for *group, joined_at, ended_at, outcome in zip(*(table[name].to_pylist() for name in (*KEY, "outcome")), strict=True):
            rebalance = (*group, joined_at or ended_at)
            counts.append(rebalance not in self._known and outcome not in ("OPEN", "ENDED"))
            self._known |= {rebalance} if counts[-1] else set()
        return counts

    def line(self) -> str:
        """For a person."""
        if not self.delays:
            return f"{self.table:18} no row"
        ordered = sorted(self.delays)
        return (
            f"{self.table:18} {len(ordered):8,} rows   p50 {statistics.median(ordered):5.1f} s   p95 {percentile(ordered, 95):5.1f} s   "
            f"p99 {percentile(ordered, 99):5.1f} s   most {ordered[-1]:5.1f} s   a commit every {self.pace():.1f} s"
        )

    def pace(self) -> float:
        """Seconds from commit to commit, in the middle."""
        commits = [seen for seen in self.commits if seen >= self._from]
        return statistics.median(after - before for before, after in itertools.pairwise(commits)) if len(commits) > 1 else 0.0


def percentile(ordered: Sequence[float], percent: int) -> float:
    """Of sorted values."""
    return ordered[min(len(ordered) * percent // 100, len(ordered) - 1)]


def state_bytes(checkpoint: Place) -> int:
    """What the state of all groups takes up on disk, all versions that are kept included."""
    if isinstance(checkpoint, StorePath):
        return 0
    return sum(path.stat().st_size for path in (checkpoint / "state").rglob("*") if path.is_file())


def options() -> argparse.Namespace:
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rate", type=int, default=5_000, help="lines a second")
    parser.add_argument("--seconds", type=float, default=120.0, help="how long, after the first ones")
    parser.add_argument("--warm", type=float, default=WARM_SECONDS, help="how many first seconds do not count: the JVM still compiles")
    parser.add_argument("--raw", action="store_true", help="heartbeats as lines, not in bundles")
    parser.add_argument("--lateness-ms", type=int, default=0, help="what lines may be out of order by, which is waited for")
    parser.add_argument("--rebalances", type=float, default=4.0, help="that begin in a second, about")
    parser.add_argument("--page", action="store_true", help="with a dashboard, and its first page open in Chromium")
    parser.add_argument("--store-ms", type=float, help="let the lakehouse lie in an object store that takes so long for each request")
    parser.add_argument("--keep", type=Path, help="folder to work in, and to keep; default: a temporary one")
    return parser.parse_args()


def main() -> int:
    """Prints the figures."""
    wanted = options()
    with contextlib.ExitStack() as stack:
        folder = wanted.keep or Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="rebalance-bench-")))
        broker = stack.enter_context(LocalBroker(folder / "kafka"))
        broker.create_topic(TOPIC, PARTITIONS)
        logs = folder / "logs"
        logs.mkdir()
        lakehouse, target, env = stack.enter_context(placed(folder, wanted.store_ms))

        def start(name: str, *command: str) -> subprocess.Popen[bytes]:
            out = stack.enter_context((folder / f"{name}.txt").open("ab"))
            process = subprocess.Popen([sys.executable, *command], cwd=PROJECT, stdout=out, stderr=out, env=env)
            stack.callback(process.kill)
            return process

        ship = ("ship", "--input", str(logs), "--cluster", "fleet", "--broker", "broker-1", "--state", str(folder / "ship.json"))
        run = ("run", "--kafka", broker.bootstrap, "--lakehouse", str(lakehouse), "--lateness-ms", str(wanted.lateness_ms))
        shipper = start("ship", "-m", "jobs.cli", *ship, "--bootstrap", broker.bootstrap, *(["--raw"] if wanted.raw else []))
        pipeline = start("run", "-m", "jobs.cli", *run)
        until = time.monotonic() + 240
        while not (lakehouse / "group_events" / "_delta_log").exists() and time.monotonic() < until:
            time.sleep(0.2)
        counted_from = time.time() + wanted.warm
        dashboard = stack.enter_context(page_is_open(start, lakehouse, folder)) if wanted.page else None
        watchers = [Watcher(lakehouse, table, counted_from) for table in TIMES]
        for watcher in watchers:
            watcher.start()
        length = wanted.warm + wanted.seconds
        pace = ("--rate", str(wanted.rate), "--seconds", str(length), "--rebalances", str(wanted.rebalances))
        load = start("load", "bench/live_load.py", str(logs), *pace)
        begin = time.monotonic()
        samples: list[Sample] = []
        while load.poll() is None:
            if pipeline.poll() is not None:
                raise SystemExit((folder / "run.txt").read_text(encoding="utf-8"))
            samples.append(sample(pipeline.pid, begin))
            if len(samples) % 60 == 0:
                told(watchers, samples[-1], state_bytes(lakehouse / "_checkpoints" / "track"))
            time.sleep(1.0)
        time.sleep(target)
        pipeline.send_signal(signal.SIGTERM)
        pipeline.wait(120)
        for watcher in watchers:
            watcher.ended = True
            watcher.join()
        if dashboard is not None:
            print(f"the dashboard: {sum(dashboard.cpu_times()[:2]):.1f} s of processor time, {dashboard.memory_info().rss / 2**20:.0f} MB")
        print(cores([sample for sample in samples if sample.seconds >= wanted.warm], wanted.rate))
        summary(watchers, samples, lakehouse, f"at {wanted.rate:,} a second, lateness {wanted.lateness_ms} ms")
        print(f"in the pipeline's own words: {(folder / 'run.txt').read_text(encoding='utf-8').splitlines()[-1]}")
        shipper.send_signal(signal.SIGTERM)
        shipper.wait(30)
        return 0 if all(w.delays and percentile(sorted(w.delays), 95) <= target for w in watchers if w.table != WAITS) else 1


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


@contextlib.contextmanager
def page_is_open(start: Callable[..., subprocess.Popen[bytes]], lakehouse: Place, folder: Path) -> Iterator[psutil.Process]:
    """A dashboard of the lakehouse, as long as its first page is open."""
    process = psutil.Process(start("dashboard", "-m", "jobs.cli", "dashboard", "--lakehouse", str(lakehouse), "--port", "0").pid)
    while not (address := re.search(r"http://\S+", (folder / "dashboard.txt").read_text(encoding="utf-8"))):
        time.sleep(0.1)
    with browsing() as browser:
        browser.new_page().goto(address[0])
        for child in psutil.Process().children(recursive=True):
            if "chrom" in child.name():
                child.nice(19)
        yield process


def summary(watchers: Sequence[Watcher], samples: Sequence[Sample], lakehouse: Place, how: str) -> None:
    """The figures."""
    read = sum(row["lines_read"] for row in table_rows(lakehouse / "input_lines", ["lines_read"]))
    print(f"{read:,} lines read {how}; from event to visible row:")
    for watcher in watchers:
        print(watcher.line())
    print(
        f"memory: JVM {samples[-1].jvm:,.0f} MB ({slope(samples, 'jvm'):+.1f} MB a minute in the second half), "
        f"Python {samples[-1].python:,.0f} MB ({slope(samples, 'python'):+.1f}); "
        f"state on disk {state_bytes(lakehouse / '_checkpoints' / 'track') / 2**20:.0f} MB"
    )


def cores(samples: Sequence[Sample], rate: int) -> str:
    """What the pipeline used of the machine."""
    seconds = samples[-1].seconds - samples[0].seconds
    jvm, python = ((getattr(samples[-1], name) - getattr(samples[0], name)) / seconds for name in ("jvm_cpu", "python_cpu"))
    return f"{jvm + python:.2f} cores: JVM {jvm:.2f}, Python {python:.2f}; {(jvm + python) / rate * 1e6:.0f} µs a line"


def told(watchers: Sequence[Watcher], last: Sample, state: int) -> None:
    """A line a minute."""
    recent = [f"{w.table} {percentile(sorted(w.delays[-2_000:]), 95):.1f} s" for w in watchers if w.delays]
    memory = f"JVM {last.jvm:,.0f} MB, Python {last.python:,.0f} MB, state {state / 2**20:.0f} MB"
    print(f"{last.seconds:5.0f} s  {memory}; p95 of late: {', '.join(recent)}", flush=True)


if __name__ == "__main__":
    sys.exit(main())
