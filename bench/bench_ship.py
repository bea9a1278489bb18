"""`rebalance ship` to a real broker on this machine: lines a second of a backlog, processor time, memory; then seconds from line to topic.

    python bench/bench_ship.py [--copies 50] [--rate 5000] [--seconds 30]

The backlog is the request log of the bundled recording, repeated with later times. The live part then writes lines at a rate, each with its
time; the topic's own timestamps (LogAppendTime) say when they came.
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
from schemas.names import LINE  # noqa: E402
from tests.kafka.topic_reader import topic_records  # noqa: E402

RECORDING = PROJECT / "tests" / "data" / "recordings" / "kafka-4.2.0" / "broker-1" / "kafka-request.log.gz"
PARTITIONS = 6


def main() -> None:
    """Prints the figures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--copies", type=int, default=50, help="of the recording in the backlog")
    parser.add_argument("--rate", type=int, default=5_000, help="lines a second, live")
    parser.add_argument("--seconds", type=int, default=30, help="how long, live")
    wanted = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="rebalance-bench-") as name, LocalBroker(Path(name) / "broker") as broker:
        folder = Path(name)
        admin = AdminClient({"bootstrap.servers": broker.bootstrap, "log_level": 0})
        topics = [NewTopic(topic, PARTITIONS, config={"message.timestamp.type": "LogAppendTime"}) for topic in ("backlog", "live")]
        for made in admin.create_topics(topics).values():
            made.result(30)
        lines, size = write_backlog(folder / "backlog", wanted.copies)
        began = time.monotonic()
        usage = ended(shipper(broker, folder, "backlog", "--once"))
        seconds = time.monotonic() - began
        print(
            f"backlog: {lines:,} lines, {size / 1e6:,.0f} MB in {seconds:.1f} s: {lines / seconds:,.0f} lines/s, "
            f"processor {usage.ru_utime + usage.ru_stime:.1f} s, memory {usage.ru_maxrss / 1024:.0f} MB"
        )
        (folder / "live").mkdir()
        process = shipper(broker, folder, "live")
        write_live(folder / "live" / "kafka-request.log", wanted.rate, wanted.seconds)
        time.sleep(5)
        process.terminate()
        usage = ended(process)
        delays = sorted(delays_of(broker, "live"))
        print(
            f"live: {len(delays):,} lines at {wanted.rate:,}/s: line to topic p50 {statistics.median(delays):.0f} ms, "
            f"p95 {delays[len(delays) * 95 // 100]} ms, most {delays[-1]} ms; "
            f"processor {(usage.ru_utime + usage.ru_stime) / wanted.seconds:.1%} of a core, memory {usage.ru_maxrss / 1024:.0f} MB"
        )


def shipper(broker: LocalBroker, folder: Path, topic: str, *more: str) -> subprocess.Popen[bytes]:
    """A shipper of one folder to the topic of its name."""
    place = ["--input", str(folder / topic), "--state", str(folder / f"{topic}.json"), "--bootstrap", broker.bootstrap, "--topic", topic]
    return subprocess.Popen([sys.executable, "-m", "jobs.cli", "ship", *place, "--cluster", "c", "--broker", "b", *more], cwd=PROJECT)


def ended(process: subprocess.Popen[bytes]) -> Any:
    """Waits for a process; what it used."""
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise SystemExit(f"the shipper ended with {process.returncode}")
    return usage


def write_backlog(folder: Path, copies: int) -> tuple[int, int]:
    """Returns lines and bytes."""
    folder.mkdir()
    lines = gzip.decompress(RECORDING.read_bytes()).split(b"\n")[:-1]
    times = [datetime.strptime(line[1:24].decode(), "%Y-%m-%d %H:%M:%S,%f").replace(tzinfo=timezone.utc) for line in lines]
    span = times[-1] - times[0] + timedelta(seconds=1)
    path = folder / "kafka-request.log"
    with path.open("wb") as file:
        for copy in range(copies):
            file.writelines(stamp(at + span * copy) + line[25:] + b"\n" for at, line in zip(times, lines, strict=True))
    return copies * len(lines), path.stat().st_size


def write_live(path: Path, rate: int, seconds: int) -> None:
    """Writes heartbeats at a rate, as a broker writes its request log: whenever there are some."""
    heartbeat = next(line for line in gzip.decompress(RECORDING.read_bytes()).split(b"\n") if b'"requestApiKeyName":"HEARTBEAT"' in line)
    began, written = time.monotonic(), 0
    with path.open("ab") as file:
        while (passed := time.monotonic() - began) < seconds:
            due = int(passed * rate) - written
            file.write((stamp(datetime.now(timezone.utc)) + heartbeat[25:] + b"\n") * due)
            file.flush()
            written += due
            time.sleep(0.01)


def stamp(at: datetime) -> bytes:
    """As log4j writes it, with its brackets."""
    return f"[{at:%Y-%m-%d %H:%M:%S},{at.microsecond // 1000:03d}]".encode()


def delays_of(broker: LocalBroker, topic: str) -> Iterator[int]:
    """Milliseconds from each line's time to its record's."""
    for message, record in topic_records(broker.bootstrap, topic):
        if record.record == LINE and record.at_ms is not None:
            yield message.timestamp()[1] - record.at_ms


if __name__ == "__main__":
    main()
