"""`rebalance ship` to a real broker on this machine, with heartbeats in bundles and as lines (--raw): processor time, bytes, latency.

    python bench/bench_ship.py [--copies 50] [--lines 400000] [--rate 5000] [--seconds 30]

The backlogs are the request log of the bundled recording, repeated with later times, and lines of 50,000 members (`rebalance generate`, M).
The live part is the fleet of bench/live_load.py; timestamps of the topic (LogAppendTime) say when its lines came. The bytes of the lines
are compared with those of the segments of the topic.
"""

from __future__ import annotations

import argparse
import gzip
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

PROJECT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(PROJECT))

from confluent_kafka.admin import AdminClient  # noqa: E402 - a script: the project is not on the path before
from confluent_kafka.cimpl import NewTopic  # noqa: E402

from jobs.demo.local_broker import LocalBroker  # noqa: E402
from schemas.names import CLOCK  # noqa: E402
from tests.kafka.topic_reader import each_line, topic_records  # noqa: E402

RECORDING = PROJECT / "tests" / "data" / "recordings" / "kafka-4.2.0" / "broker-1" / "kafka-request.log.gz"
PARTITIONS = 6
FORMS = {"folded": (), "raw": ("--raw",)}


def main() -> None:
    """Prints the figures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--copies", type=int, default=50, help="of the recording in the first backlog")
    parser.add_argument("--lines", type=int, default=400_000, help="of the second backlog")
    parser.add_argument("--rate", type=int, default=5_000, help="lines a second, live")
    parser.add_argument("--seconds", type=int, default=30, help="how long, live")
    wanted = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="rebalance-bench-") as name, LocalBroker(Path(name) / "broker") as broker:
        folder = Path(name)
        write_backlog(folder / "recording", wanted.copies)
        generate = ("generate", str(folder / "m"), "--size", "M", "--lines", str(wanted.lines))
        subprocess.run([sys.executable, "-m", "jobs.cli", *generate], cwd=PROJECT, check=True, stderr=subprocess.DEVNULL)
        done = []  # reported at the end: what a process inherits counts as its memory
        for logs in ("recording", "m"):
            for form in FORMS:
                began = time.monotonic()
                usage = ended(shipper(broker, folder, logs, form, "--once"))
                done.append((logs, form, usage, time.monotonic() - began))
        (folder / "live").mkdir()
        shippers = {form: shipper(broker, folder, "live", form) for form in FORMS}
        load = (str(folder / "live"), "--rate", str(wanted.rate), "--seconds", str(wanted.seconds))
        subprocess.run([sys.executable, "bench/live_load.py", *load], cwd=PROJECT, check=True, stdout=subprocess.DEVNULL)
        time.sleep(5)
        for form, process in shippers.items():
            process.terminate()
            done.append(("live", form, ended(process), wanted.seconds))
        for logs, form, usage, seconds in done:
            report(broker, folder, logs, form, usage, seconds)


def report(broker: LocalBroker, folder: Path, logs: str, form: str, usage: Any, seconds: float) -> None:
    """Prints what one shipper did."""
    size = sum(path.stat().st_size for path in (folder / logs).rglob("*.log*"))
    stored = sum(path.stat().st_size for path in broker.folder.rglob(f"{logs}-{form}-*/*.log"))
    delays = sorted(delays_of(broker, f"{logs}-{form}"))
    lines, processor = len(delays), usage.ru_utime + usage.ru_stime
    latency = f"; line to topic p50 {statistics.median(delays):.0f} ms, p95 {delays[lines * 95 // 100]} ms" if logs == "live" else ""
    print(
        f"{logs:9} {form:6}: {lines:,} lines, {size / lines:.0f} bytes each, in {seconds:.1f} s, {lines / seconds:,.0f} lines/s; "
        f"processor {processor / lines * 1e6:.1f} µs a line, memory {usage.ru_maxrss / 1024:.0f} MB; "
        f"topic {stored / lines:.1f} bytes a line, one of {size / stored:.1f}{latency}",
        flush=True,
    )


def shipper(broker: LocalBroker, folder: Path, logs: str, form: str, *more: str) -> subprocess.Popen[bytes]:
    """A shipper of one folder to a topic of its own."""
    topic = f"{logs}-{form}"
    admin = AdminClient({"bootstrap.servers": broker.bootstrap, "log_level": 0})  # it has to live until the answer is there
    settings = {"message.timestamp.type": "LogAppendTime"}
    admin.create_topics([NewTopic(topic, PARTITIONS, config=settings)])[topic].result(30)
    place = ["--input", str(folder / logs), "--state", str(folder / f"{topic}.json"), "--bootstrap", broker.bootstrap, "--topic", topic]
    command = [sys.executable, "-m", "jobs.cli", "ship", *place, "--cluster", "c", "--broker", "b", *FORMS[form], *more]
    return subprocess.Popen(command, cwd=PROJECT)


def ended(process: subprocess.Popen[bytes]) -> Any:
    """Waits for a process; what it used."""
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise SystemExit(f"the shipper ended with {process.returncode}")
    return usage


def write_backlog(folder: Path, copies: int) -> None:
    """Writes the recording's request log so many times, one after the other."""
    folder.mkdir()
    lines = gzip.decompress(RECORDING.read_bytes()).split(b"\n")[:-1]
    times = [datetime.strptime(line[1:24].decode(), "%Y-%m-%d %H:%M:%S,%f").replace(tzinfo=timezone.utc) for line in lines]
    span = times[-1] - times[0] + timedelta(seconds=1)
    with (folder / "kafka-request.log").open("wb") as file:
        for copy in range(copies):
            file.writelines(stamp(at + span * copy) + line[25:] + b"\n" for at, line in zip(times, lines, strict=True))


def stamp(at: datetime) -> bytes:
    """As log4j writes it, with its brackets."""
    return f"[{at:%Y-%m-%d %H:%M:%S},{at.microsecond // 1000:03d}]".encode()


def delays_of(broker: LocalBroker, topic: str) -> Iterator[int]:
    """Milliseconds from each line's time to its record's."""
    for message, record in topic_records(broker.bootstrap, topic):
        if record.record != CLOCK:
            yield from (message.timestamp()[1] - (line.at_ms or 0) for line in each_line(record))


if __name__ == "__main__":
    main()
