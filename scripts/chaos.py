"""Kill -9 while it works, again and again, and compare the tables with those of an undisturbed run over the same topic.

    python -m scripts.chaos [--kills 50] [--seed 1] [--seconds N] [--keep FOLDER]

The bundled recordings are written as logs of now, line by line as their time comes: two clusters, five brokers, a shipper beside each.
They write to one topic of a real broker, `rebalance run --kafka` reads it. Meanwhile one of them is killed again and again, at a moment
that the seed decides: the driver, its JVM, a Python worker, a shipper, the broker. Whatever ends is started again. At last everything
is worked off, a second lakehouse is made from the same topic in one quiet run, and compared are: all rows of the tables; the lines of
the topic with those of the account and of group_events, each exactly once.

Exit code 0: nothing lost, nothing doubled, equal tables.
"""

from __future__ import annotations

import argparse
import contextlib
import gzip
import json
import os
import random
import re
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any, Final

from jobs.demo.local_broker import LocalBroker
from jobs.health.memory import descendants
from jobs.lakehouse.reader import table_rows
from schemas import names
from schemas.names import LINE
from schemas.tables import TRACK_TABLES
from tests.kafka.topic_reader import topic_records

PROJECT: Final = Path(__file__).resolve().parents[1]
RECORDINGS: Final = PROJECT / "tests" / "data" / "recordings"
TOPIC: Final = "group-protocol-logs"
PARTITIONS: Final = 3
VICTIMS: Final = ("driver", "JVM", "Python worker", "shipper", "broker")

_SIGNS: Final = {"JVM": "org.apache.spark.deploy.SparkSubmit", "Python worker": "pyspark.daemon"}
"""In the command lines of the driver's children."""
_STAMP: Final = "%Y-%m-%d %H:%M:%S,%f"
_TIMED: Final = re.compile(rb"\[\d{4}-\d\d-\d\d \d\d:\d\d:\d\d,\d{3}\]")
_RESTART_SECONDS: Final = 0.5
_TARDY_SECONDS: Final = 0.2
_DRAIN_SECONDS: Final = 600

LogLine = tuple[float, Path, bytes]


def recorded(names: Sequence[str], folder: Path) -> list[LogLine]:
    """All lines of the recordings: seconds since the first one, the log to write to, the line without its time."""
    lines: list[LogLine] = []
    for name in names:
        found: list[LogLine] = []
        for log in sorted((RECORDINGS / name).glob("broker-*/*.log.gz")):
            target = folder / name / log.parent.name / log.name.removesuffix(".gz")
            seconds = 0.0
            for line in gzip.decompress(log.read_bytes()).split(b"\n")[:-1]:
                if _TIMED.match(line):
                    seconds = datetime.strptime(line[1:24].decode(), _STAMP).replace(tzinfo=timezone.utc).timestamp()
                found.append((seconds, target, line))
        begin = min(seconds for seconds, _, _ in found if seconds)
        lines += [(max(seconds - begin, 0.0), target, line) for seconds, target, line in found]
    return sorted(lines, key=lambda line: line[0])


class Writer(threading.Thread):
    """Writes recorded lines as logs of now."""

    def __init__(self, lines: Sequence[LogLine], seconds: float) -> None:
        super().__init__(daemon=True)
        self._lines = [line for line in lines if line[0] <= seconds]
        self.count = len(self._lines)
        for path in {path for _, path, _ in self._lines}:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.touch()

    def run(self) -> None:
        """Until all is written."""
        begin = time.time()
        with contextlib.ExitStack() as stack:
            files = {path: stack.enter_context(path.open("ab", buffering=0)) for path in {path for _, path, _ in self._lines}}
            for seconds, path, line in self._lines:
                while time.time() < begin + seconds:
                    time.sleep(min(0.05, max(begin + seconds - time.time(), 0.0)))
                # A broker stamps a line when it writes it: where this machine is too busy to be in time, all that follows is later.
                begin = max(begin, time.time() - seconds - _TARDY_SECONDS)
                if _TIMED.match(line):
                    at = datetime.fromtimestamp(begin, timezone.utc) + timedelta(seconds=seconds)
                    line = f"[{at:%Y-%m-%d %H:%M:%S},{at.microsecond // 1000:03d}]".encode() + line[25:]  # noqa: PLW2901
                files[path].write(line + b"\n")


@dataclass
class Kept:
    """A process that is started again whenever it ends."""

    name: str
    command: Sequence[str]
    log: Path
    process: subprocess.Popen[bytes] | None = None
    starts: int = 0
    said: list[int] = field(default_factory=list)  # exit codes

    def tend(self) -> None:
        """Starts it unless it runs."""
        if self.process is not None and self.process.poll() is not None:
            self.said.append(self.process.returncode)
            self.process = None
        if self.process is None:
            with self.log.open("ab") as out:
                self.process = subprocess.Popen(self.command, cwd=PROJECT, stdout=out, stderr=out)
            self.starts += 1

    def end(self, number: int) -> None:
        """Ends it for good."""
        if self.process is not None:
            self.process.send_signal(number)
            self.process.wait()
            self.process = None


def _command_line(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/cmdline").read_text(errors="replace")
    except OSError:
        return ""  # it is gone


class Chaos:
    """The processes, and what was done to them."""

    def __init__(self, folder: Path, names: Sequence[str], seed: int) -> None:
        self.folder = folder
        self.random = random.Random(seed)  # noqa: S311 - decides what is killed, and when
        self.kills: Counter[str] = Counter()
        self._victims: list[str] = []  # that are due
        self.broker = LocalBroker(folder / "kafka", port=_free_port())
        self.brokers = [(name, path.name) for name in names for path in sorted((RECORDINGS / name).glob("broker-*"))]
        self.kept: dict[str, Kept] = {}

    def start(self) -> None:
        """Starts everything."""
        self.broker.start()
        self.broker.create_topic(TOPIC, PARTITIONS)
        for cluster, broker in self.brokers:
            self._keep(f"shipper of {cluster}/{broker}", self.shipper(cluster, broker))
        self._keep("driver", self.pipeline("chaos"))
        self.tend()

    def _keep(self, name: str, command: Sequence[str]) -> None:
        self.kept[name] = Kept(name, command, self.folder / f"{name.replace('/', '-').replace(' ', '-')}.txt")

    def shipper(self, cluster: str, broker: str, *more: str) -> list[str]:
        """The command of a shipper."""
        place = ["--input", str(self.folder / "logs" / cluster / broker), "--state", str(self.folder / f"{cluster}-{broker}.json")]
        return self._command("ship", *place, "--cluster", cluster, "--broker", broker, "--bootstrap", self.broker.bootstrap, *more)

    def pipeline(self, lakehouse: str, *more: str) -> list[str]:
        """The command of the pipeline."""
        return self._command(
            "run", "--kafka", self.broker.bootstrap, "--lakehouse", str(self.folder / lakehouse), "--max-offsets", "2000", *more
        )

    @staticmethod
    def _command(*arguments: str) -> list[str]:
        return [sys.executable, "-m", "jobs.cli", *arguments]

    def tend(self) -> None:
        """Starts again what has ended."""
        if not self.broker.running:
            self.broker.start()
        for process in self.kept.values():
            process.tend()

    def kill_one(self) -> str | None:
        """Kills something, each kind as often as the others; returns what, or None if nothing that is due runs just now."""
        if not self._victims:
            self._victims = self.random.sample(VICTIMS, len(VICTIMS))
        for victim in self._victims:
            if self._kill(victim):
                self._victims.remove(victim)
                self.kills[victim] += 1
                return victim
        return None

    def _kill(self, victim: str) -> bool:
        """Whether one of a kind was there to be killed."""
        if victim == "broker":
            self.broker.kill()
            return True
        if victim == "shipper":
            return _kill(self.kept[self.random.choice(sorted(name for name in self.kept if name != "driver"))].process)
        driver = self.kept["driver"].process
        if victim == "driver":
            return _kill(driver)
        found = [pid for pid in descendants(driver.pid) if _SIGNS[victim] in _command_line(pid)] if driver else []
        if not found:
            return False
        with contextlib.suppress(ProcessLookupError):
            os.kill(self.random.choice(sorted(found)), signal.SIGKILL)
        return True

    def stop(self) -> None:
        """Kills what is left."""
        for process in self.kept.values():
            process.end(signal.SIGKILL)
        if self.broker.running:
            self.broker.stop()


def _free_port() -> int:
    """A port that is free, and that no client is given for its own end of a connection while the broker is away."""
    for port in range(29_092, 32_768):
        with socket.socket() as probe:
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
            return port
    raise OSError("no port is free")


def _kill(process: subprocess.Popen[bytes] | None) -> bool:
    if process is None or process.poll() is not None:
        return False
    process.kill()
    process.wait()
    return True


def topic_lines(bootstrap: str) -> Counter[tuple[str, str, str, int]]:
    """The lines of the topic, and how often each is there."""
    found: Counter[tuple[str, str, str, int]] = Counter()
    for _, record in topic_records(bootstrap, TOPIC):
        if record.record == LINE:
            found[record.cluster, record.broker, record.origin, record.position] += 1
    return found


def rows(lakehouse: Path, table: str) -> list[dict[str, Any]]:
    """All rows of a table."""
    return table_rows(lakehouse / table)


def differences(one: Path, other: Path) -> dict[str, int]:
    """Rows of each table that only one of two lakehouses has, doubled ones included."""
    found = {}
    for table in TRACK_TABLES:
        counts = [
            Counter(json.dumps({k: v for k, v in row.items() if k != "batch_id"}, default=str) for row in rows(lakehouse, table))
            for lakehouse in (one, other)
        ]
        found[table] = sum(((counts[0] - counts[1]) + (counts[1] - counts[0])).values())
    return found


def lost_and_doubled(lakehouse: Path, lines: Counter[tuple[str, str, str, int]]) -> tuple[int, int]:
    """Lines of the topic that the account does not have, and events or account of lines that are there more than once."""
    read: Counter[tuple[str, str, str]] = Counter()
    for row in rows(lakehouse, names.INPUT_LINES):
        read[row["cluster"], row["broker"], row["origin"]] += row["lines_read"]
    expected = Counter(line[:3] for line in lines)
    lost, doubled = (expected - read).total(), (read - expected).total()
    told: Counter[tuple[str, str, str, int]] = Counter()
    for row in rows(lakehouse, names.GROUP_EVENTS):
        if row["lines"]:
            told.update((row["cluster"], row["broker"], row["origin"], position) for position in row["positions"] or [row["position"]])
    told.update((row["cluster"], row["broker"], row["origin"], row["position"]) for row in rows(lakehouse, names.QUARANTINE))
    return lost + len(told.keys() - lines.keys()), doubled + sum(count - 1 for count in told.values())


def disturb(chaos: Chaos, writer: Writer, kills: int, seconds: float, say: Callable[[str], None]) -> None:
    """Kills and restarts until the logs are written and enough was killed."""
    begin, pause = time.monotonic(), seconds / max(kills, 1)
    due = begin + chaos.random.uniform(0.2, 1.8) * pause
    while writer.is_alive() or chaos.kills.total() < kills:
        time.sleep(_RESTART_SECONDS)
        chaos.tend()
        if time.monotonic() >= due and chaos.kills.total() < kills:
            victim = chaos.kill_one()
            due = time.monotonic() + (chaos.random.uniform(0.2, 1.8) * pause if victim else _RESTART_SECONDS)
            if victim:
                say(f"{time.monotonic() - begin:5.0f} s  kill {chaos.kills.total()}: {victim}")


def work_off(chaos: Chaos) -> None:
    """Ships the rest and reads the topic to its end."""
    chaos.tend()
    chaos.kept.pop("driver").end(signal.SIGTERM)
    for process in chaos.kept.values():
        process.end(signal.SIGTERM)
    for cluster, broker in chaos.brokers:
        subprocess.run(chaos.shipper(cluster, broker, "--once"), cwd=PROJECT, check=True, capture_output=True, timeout=_DRAIN_SECONDS)
    for lakehouse in ("chaos", "quiet"):
        with (chaos.folder / f"{lakehouse}.txt").open("ab") as out:
            command = chaos.pipeline(lakehouse, "--once")
            subprocess.run(command, cwd=PROJECT, check=True, stdout=out, stderr=out, timeout=_DRAIN_SECONDS)


def main(arguments: Sequence[str] | None = None) -> int:
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kills", type=int, default=50)
    parser.add_argument("--seed", type=int, default=1, help="decides what is killed, and when")
    parser.add_argument("--seconds", type=float, default=900.0, help="of the recordings, at most")
    parser.add_argument("--recordings", nargs="+", default=["kafka-4.2.0", "kafka-3.9.1"], help="names of bundled recordings")
    parser.add_argument("--keep", type=Path, help="folder to work in, and to keep; default: a temporary one")
    wanted = parser.parse_args(arguments)
    with contextlib.ExitStack() as stack:
        folder = wanted.keep or Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="rebalance-chaos-")))
        lines = recorded(wanted.recordings, folder / "logs")
        seconds = min(wanted.seconds, lines[-1][0])
        writer = Writer(lines, seconds)
        chaos = Chaos(folder, wanted.recordings, wanted.seed)
        stack.callback(chaos.stop)
        print(
            f"{writer.count:,} lines of {len(chaos.brokers)} brokers in {seconds:.0f} s, {wanted.kills} kills, seed {wanted.seed}",
            flush=True,
        )
        chaos.start()
        writer.start()
        disturb(chaos, writer, wanted.kills, seconds, lambda text: print(text, flush=True))
        work_off(chaos)
        shipped = topic_lines(chaos.broker.bootstrap)
        lost, doubled = lost_and_doubled(folder / "chaos", shipped)
        different = differences(folder / "chaos", folder / "quiet")
        total = {table: len(rows(folder / "quiet", table)) for table in TRACK_TABLES}
        print(f"killed: {', '.join(f'{name} {count}' for name, count in sorted(chaos.kills.items()))}")
        print(f"lines: {len(shipped):,} in the topic, {shipped.total() - len(shipped):,} of them once more; {lost} lost, {doubled} doubled")
        print(f"rows: {', '.join(f'{name} {count}' for name, count in total.items())}; different: {sum(different.values())}")
        return 0 if not lost and not doubled and not any(different.values()) and all(total.values()) else 1


if __name__ == "__main__":
    sys.exit(main())
