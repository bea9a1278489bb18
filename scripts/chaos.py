"""Kills the processes of a running pipeline again and again, and compares its tables with those of an undisturbed run over the same topic.

    python -m scripts.chaos [--kills 50] [--seed 1] [--keep FOLDER] [--store]

The bundled recordings are written as logs with present times, each line when it is due: two clusters, five brokers, a shipper beside each.
The shippers write to one topic of a real broker, which `rebalance run --kafka` reads. Meanwhile processes are killed with SIGKILL at
moments that the seed decides: the driver, its JVM, a Python worker, a shipper, the broker. Every process that ends is started again. At
the end all lines are processed, and a quiet run makes a second lakehouse from the topic. Then two things are compared: all rows of the two
lakehouses; and the lines of the topic with those of input_lines and group_events, in which each must be exactly once.

`--store`: the lakehouse lies in a real object store, the quiet one on disk. One request in twenty fails, and in turn all of them are slow.
What is killed is the driver, its JVM, a Python worker, the process that plans micro-batches, and the store. And a run is made to stand
still, as a machine does that sleeps: another one takes its place when its lease has run out, then the first one goes on, and has to end.

Exit code 0: nothing was lost, nothing was doubled, and the tables are equal.
"""

from __future__ import annotations

import argparse
import contextlib
import gzip
import json
import os
import random
import re
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Sequence
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Final

import psutil

from jobs.common.stores import Place, StorePath
from jobs.demo.children import RebalanceCommand
from jobs.demo.local_broker import LocalBroker, free_port
from jobs.lakehouse import leases
from jobs.lakehouse.reader import table_rows
from schemas import names
from schemas.tables import TRACK_TABLES
from tests.kafka.topic_reader import each_line, topic_records
from tests.lab.local_store import BUCKET, LocalStore
from tests.lab.store_proxy import StoreProxy

PROJECT: Final = Path(__file__).resolve().parents[1]
RECORDINGS: Final = PROJECT / "tests" / "data" / "recordings"
NAMES: Final = ("kafka-4.2.0", "kafka-3.9.1")
TOPIC: Final = "group-protocol-logs"
PARTITIONS: Final = 3
DRIVER: Final = "driver"
VICTIMS: Final = ("driver", "JVM", "Python worker", "shipper", "broker")
VICTIMS_ON_STORE: Final = ("driver", "JVM", "Python worker", "planner", "store", "lease holder")

_SIGNS: Final = {
    "JVM": "org.apache.spark.deploy.SparkSubmit",
    "Python worker": "pyspark.worker",
    "planner": "python_streaming_source_runner",
}
"""In the command lines of the driver's children."""
_REBALANCE: Final = (sys.executable, "-m", "jobs.cli")
_STAMP: Final = "%Y-%m-%d %H:%M:%S,%f"
_TIMED: Final = re.compile(rb"\[\d{4}-\d\d-\d\d \d\d:\d\d:\d\d,\d{3}\]")
_RESTART_SECONDS: Final = 0.5
_TARDY_SECONDS: Final = 0.2
_DRAIN_SECONDS: Final = 600
_AWAY_SECONDS: Final = 20.0  # at most, that the store is
_SLOW_SECONDS: Final = 0.2  # that each request takes while the store is slow
_FAIL_EVERY: Final = 20

LogLine = tuple[float, Path, bytes]
"""Seconds since the first line, the log to write it to, and the line."""
LinePlace = tuple[str, str, str, int]
"""Cluster, broker, origin and position."""


def recorded(folder: Path) -> list[LogLine]:
    """All lines of the recordings in the order of their times."""
    lines: list[LogLine] = []
    for name in NAMES:
        own: list[LogLine] = []
        for log in sorted((RECORDINGS / name).glob("broker-*/*.log.gz")):
            target = folder / name / log.parent.name / log.name.removesuffix(".gz")
            seconds = 0.0
            for line in gzip.decompress(log.read_bytes()).split(b"\n")[:-1]:
                if _TIMED.match(line):
                    seconds = datetime.strptime(line[1:24].decode(), _STAMP).replace(tzinfo=timezone.utc).timestamp()
                own.append((seconds, target, line))
        begin = min(seconds for seconds, _, _ in own if seconds)
        lines += [(max(seconds - begin, 0.0), target, line) for seconds, target, line in own]
    return sorted(lines, key=lambda line: line[0])


class LogWriter(threading.Thread):
    """Writes recorded lines as logs with present times."""

    def __init__(self, lines: Sequence[LogLine]) -> None:
        super().__init__(daemon=True)
        self._lines = lines
        for path in {path for _, path, _ in self._lines}:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.touch()

    def run(self) -> None:
        """Writes all lines."""
        begin = time.time()
        with contextlib.ExitStack() as stack:
            files = {path: stack.enter_context(path.open("ab", buffering=0)) for path in {path for _, path, _ in self._lines}}
            for seconds, path, line in self._lines:
                while (early := begin + seconds - time.time()) > 0:
                    time.sleep(min(0.05, early))
                # A broker stamps a line when it writes it: if this machine is too busy to be in time, all later lines are later, too.
                begin = max(begin, time.time() - seconds - _TARDY_SECONDS)
                if _TIMED.match(line):
                    at = datetime.fromtimestamp(begin, timezone.utc) + timedelta(seconds=seconds)
                    line = f"[{at:%Y-%m-%d %H:%M:%S},{at.microsecond // 1000:03d}]".encode() + line[25:]  # noqa: PLW2901
                files[path].write(line + b"\n")


class ChaosRun:
    """The processes of the pipeline, and how often each kind of them was killed."""

    def __init__(self, folder: Path, seed: int, store: tuple[LocalStore, StoreProxy] | None) -> None:
        """`store`: where the lakehouse lies, and the proxy through which all processes use it."""
        self.random = random.Random(seed)  # noqa: S311 - decides what is killed, and when
        self._store, self._proxy = store or (None, None)
        self._store_is_back = 0.0
        self.lakehouse: Place = StorePath(BUCKET, "chaos") if store is not None else folder / "chaos"
        self.victims = VICTIMS_ON_STORE if store is not None else VICTIMS
        self._still: list[tuple[object, psutil.Process, list[psutil.Process]]] = []  # runs that stand still: lease, driver, its processes
        self.kills: Counter[str] = Counter()
        self.broker = LocalBroker(folder / "kafka", port=free_port())
        self.sources = [(name, path.name) for name in NAMES for path in sorted((RECORDINGS / name).glob("broker-*"))]
        self._folder = folder
        self._due: list[str] = []  # kinds of processes that this round has not killed yet
        self._wanted = {f"shipper-{cluster}-{broker}": self._ship(cluster, broker) for cluster, broker in self.sources}
        self._wanted[DRIVER] = self._run(self.lakehouse)
        self._running: dict[str, RebalanceCommand] = {}

    def start(self) -> None:
        """Starts the broker, the shippers and the pipeline."""
        self.broker.start()
        self.broker.create_topic(TOPIC, PARTITIONS)
        self.restart()

    def restart(self) -> None:
        """Starts the processes that have ended."""
        if not self.broker.running:
            self.broker.start()
        if self._store is not None and not self._store.running and time.monotonic() >= self._store_is_back:
            self._store.start()
        for name, arguments in self._wanted.items():
            if not self._runs(name):
                self._running[name] = RebalanceCommand(*arguments, log=self._folder / f"{name}.txt")

    def _runs(self, name: str) -> bool:
        return name in self._running and self._running[name].running

    def disturb(self, writer: LogWriter, kills: int, seconds: float) -> None:
        """Kills and restarts until the logs are written and enough was killed."""
        begin, pause = time.monotonic(), seconds / max(kills, 1)
        due = begin + self.random.uniform(0.2, 1.8) * pause
        while writer.is_alive() or self.kills.total() < kills:
            time.sleep(_RESTART_SECONDS)
            self.restart()
            self._move_on(wait=False)
            if time.monotonic() >= due and self.kills.total() < kills:
                victim = self._kill_one()
                due = time.monotonic() + (self.random.uniform(0.2, 1.8) * pause if victim else _RESTART_SECONDS)
                if victim:
                    if self._proxy is not None:
                        self._proxy.delay = 0.0 if self.kills.total() % 4 else _SLOW_SECONDS
                    print(f"{time.monotonic() - begin:5.0f} s  kill {self.kills.total()}: {victim}", flush=True)

    def work_off(self) -> None:
        """Ships all lines, reads the topic to its end, and makes the second lakehouse."""
        self._store_is_back = 0.0
        if self._proxy is not None:
            self._proxy.delay, self._proxy.fail_every = 0.0, 0
        self.restart()
        self._move_on(wait=True)
        for command in reversed(self._running.values()):
            command.stop()
        last = [self._ship(*source) for source in self.sources] + [self._run(place) for place in (self.lakehouse, self._folder / "quiet")]
        with (self._folder / "last.txt").open("ab") as out:
            for arguments in last:
                command_line = [*_REBALANCE, *arguments, "--once"]
                subprocess.run(command_line, cwd=PROJECT, check=True, stdout=out, stderr=out, timeout=_DRAIN_SECONDS)

    def stop(self) -> None:
        """Kills the processes that are left."""
        for _, first, others in self._still:
            for process in (first, *others):
                with contextlib.suppress(psutil.NoSuchProcess):
                    process.kill()
        for command in self._running.values():
            command.kill()
        self.broker.stop()
        if self._proxy is not None:
            print(f"requests: {', '.join(f'{kind} {count:,}' for kind, count in self._proxy.counts().items())}")

    def _stand_still(self) -> bool:
        """Stops all processes of the run, and lets another one begin; False if none runs."""
        if not self._runs(DRIVER) or self._still:
            return False
        first = psutil.Process(self._running.pop(DRIVER).process.pid)
        every = [first, *first.children(recursive=True)]
        for process in every:
            with contextlib.suppress(psutil.NoSuchProcess):
                process.suspend()
        self._still.append((self._holder(), first, every[1:]))
        return True

    def _holder(self) -> object:
        """Who has the lease; None: nobody, or the store does not say it."""
        with contextlib.suppress(OSError):
            return leases.read(self.lakehouse / "_lock")[0].get("id") if isinstance(self.lakehouse, StorePath) else None
        return None

    def _move_on(self, *, wait: bool) -> None:
        """Lets a run that stood still go on when another has taken its place. SystemExit: it does not end."""
        while self._still and (wait or self._holder() not in {None, self._still[0][0]}):
            before, first, others = self._still.pop()
            while self._holder() in {None, before}:
                time.sleep(_RESTART_SECONDS)
                self.restart()
            for process in (*others, first):
                with contextlib.suppress(psutil.NoSuchProcess):
                    process.resume()
            try:
                first.wait(_DRAIN_SECONDS)
            except psutil.TimeoutExpired:
                raise SystemExit("a run that had stood still went on beside the one that took its place") from None

    def _kill_one(self) -> str | None:
        """Kills a process, each kind as often as the others; None if none that is due runs now."""
        self._due = self._due or self.random.sample(self.victims, len(self.victims))
        victim = next((victim for victim in self._due if self._kill(victim)), None)
        if victim is not None:
            self._due.remove(victim)
            self.kills[victim] += 1
        return victim

    def _kill(self, victim: str) -> bool:
        """Kills a process of this kind; False if none runs."""
        if victim == "broker":
            self.broker.kill()
            return True
        if victim == "store" and self._store is not None:
            self._store.kill()
            self._store_is_back = time.monotonic() + self.random.uniform(0.0, _AWAY_SECONDS)
            return True
        if victim == "lease holder":
            return self._stand_still()
        if victim in {"shipper", DRIVER}:
            name = DRIVER if victim == DRIVER else self.random.choice([name for name in self._wanted if name != DRIVER])
            was_running = self._runs(name)
            if was_running:
                self._running[name].kill()
            return was_running
        children = _children(self._running[DRIVER].process.pid, _SIGNS[victim]) if self._runs(DRIVER) else []
        if not children:
            return False
        with contextlib.suppress(psutil.NoSuchProcess):
            self.random.choice(children).kill()
        return True

    def _ship(self, cluster: str, broker: str) -> list[str]:
        place = ["--input", str(self._folder / "logs" / cluster / broker), "--state", str(self._folder / f"{cluster}-{broker}.json")]
        return ["ship", *place, "--cluster", cluster, "--broker", broker, "--bootstrap", self.broker.bootstrap]

    def _run(self, lakehouse: Place) -> list[str]:
        place = ["--kafka", self.broker.bootstrap, "--lakehouse", str(lakehouse)]
        return ["run", *place, "--max-offsets", "2000"]


def _children(pid: int, sign: str) -> list[psutil.Process]:
    """Descendants of a process with a sign in their command lines, by process id."""
    children = []
    with contextlib.suppress(psutil.NoSuchProcess):
        for child in psutil.Process(pid).children(recursive=True):
            with contextlib.suppress(psutil.NoSuchProcess):
                if any(sign in word for word in child.cmdline()):
                    children.append(child)
    return sorted(children, key=lambda child: child.pid)


def topic_lines(bootstrap: str) -> Counter[LinePlace]:
    """The lines of the topic, those in bundles among them, and how often each is there."""
    return Counter(
        (line.cluster, line.broker, line.origin, line.position)
        for _, record in topic_records(bootstrap, TOPIC)
        for line in each_line(record)
        if line.record == names.LINE
    )


def differences(one: Place, other: Place) -> int:
    """How many rows only one of two lakehouses has, doubled ones included."""

    def rows(lakehouse: Place) -> Counter[str]:
        return Counter(
            json.dumps([table, {name: value for name, value in row.items() if name != "batch_id"}], default=str)
            for table in TRACK_TABLES
            for row in table_rows(lakehouse / table)
        )

    first, second = rows(one), rows(other)
    return ((first - second) + (second - first)).total()


def lost_and_doubled(lakehouse: Place, lines: Counter[LinePlace]) -> tuple[int, int]:
    """How many lines of the topic the tables lack, and how many they have more than once."""
    read: Counter[tuple[str, str, str]] = Counter()
    for row in table_rows(lakehouse / names.INPUT_LINES):
        read[row["cluster"], row["broker"], row["origin"]] += row["lines_read"]
    expected = Counter((cluster, broker, origin) for cluster, broker, origin, _ in lines)
    stored: Counter[LinePlace] = Counter()
    for row in table_rows(lakehouse / names.GROUP_EVENTS):
        if row["lines"]:
            stored.update((row["cluster"], row["broker"], row["origin"], position) for position in row["positions"] or [row["position"]])
    stored.update((row["cluster"], row["broker"], row["origin"], row["position"]) for row in table_rows(lakehouse / names.QUARANTINE))
    lost = (expected - read).total() + len(stored.keys() - lines.keys())
    return lost, (read - expected).total() + stored.total() - len(stored)


def main(arguments: Sequence[str] | None = None) -> int:
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kills", type=int, default=50)
    parser.add_argument("--seed", type=int, default=1, help="decides what is killed, and when")
    parser.add_argument("--store", action="store_true", help="let the lakehouse lie in an object store that is slow and fails")
    parser.add_argument("--keep", type=Path, help="folder to work in, kept at the end; default: a temporary one")
    options = parser.parse_args(arguments)
    with contextlib.ExitStack() as stack:
        folder = options.keep or Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="rebalance-chaos-")))
        lines = recorded(folder / "logs")
        seconds = lines[-1][0]
        writer = LogWriter(lines)
        store = None
        if options.store:
            local = stack.enter_context(LocalStore(folder / "store"))
            proxy = stack.enter_context(StoreProxy(local.endpoint, fail_every=_FAIL_EVERY))
            os.environ.update(local.environment(proxy.endpoint))  # of this process and those that it starts
            store = local, proxy
        chaos = ChaosRun(folder, options.seed, store)
        print(f"{len(lines):,} lines of {len(chaos.sources)} brokers in {seconds:.0f} s, {options.kills} kills, seed {options.seed}")
        stack.callback(chaos.stop)
        chaos.start()
        writer.start()
        chaos.disturb(writer, options.kills, seconds)
        chaos.work_off()
        shipped = topic_lines(chaos.broker.bootstrap)
        lost, doubled = lost_and_doubled(chaos.lakehouse, shipped)
        different = differences(chaos.lakehouse, folder / "quiet")
        total = {table: len(table_rows(folder / "quiet" / table)) for table in TRACK_TABLES}
        print(f"killed: {', '.join(f'{name} {count}' for name, count in sorted(chaos.kills.items()))}")
        print(f"lines: {len(shipped):,} in the topic, {shipped.total() - len(shipped):,} of them once more; {lost} lost, {doubled} doubled")
        print(f"rows: {', '.join(f'{name} {count}' for name, count in total.items())}; different: {different}")
        return 0 if not lost and not doubled and not different and all(total.values()) else 1


if __name__ == "__main__":
    sys.exit(main())
