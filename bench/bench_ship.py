"""`rebalance ship` of a backlog to a real broker on this machine, with heartbeats in bundles and as lines (--raw).

    python -m bench.bench_ship [--lines 400000]

Says processor time, memory and bytes in the topic for the recording of 4.2.0, repeated, and for lines of 50,000 members (M). The bytes of
the lines are compared with those of the segments of the topic. bench/bench_live.py says the same of a live shipper, and how late it is.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import tempfile
import time
from pathlib import Path

from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from bench.bench import made, python
from bench.measured import disk_mb
from jobs.common.places import PROJECT
from jobs.demo.local_broker import LocalBroker
from schemas.names import CLOCK
from tests.kafka.topic_reader import each_line, topic_records

PARTITIONS = 6
FORMS = {"bundles": (), "lines": ("--raw",)}


def main() -> None:
    """Prints the figures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--lines", type=int, default=400_000, help="of each backlog")
    parser.add_argument("--folder", type=Path, default=PROJECT / ".bench", help="to work in")
    wanted = parser.parse_args()
    wanted.folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="rebalance-bench-") as name, LocalBroker(Path(name) / "broker") as broker:
        for size in ("recording", "M"):
            logs = made(wanted.folder.resolve(), size, wanted.lines, seed=1)
            for form, more in FORMS.items():
                create_topic(broker, topic := f"{size}-{form}")
                place = ("--input", logs, "--cluster", "c", "--broker", "b", "--state", Path(name) / f"{topic}.json")
                command = python("-m", "jobs.cli", "ship", *place, "--bootstrap", broker.bootstrap, "--topic", topic, "--once", *more)
                began = time.monotonic()
                _, status, usage = os.wait4(subprocess.Popen(command, cwd=PROJECT).pid, 0)
                if status:
                    raise SystemExit(f"the shipper ended with {os.waitstatus_to_exitcode(status)}")
                text = described(broker, topic, logs, usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024)
                print(f"{text}; {time.monotonic() - began:.1f} s", flush=True)


def create_topic(broker: LocalBroker, topic: str) -> None:
    """A topic that says when it got each record."""
    admin = AdminClient({"bootstrap.servers": broker.bootstrap, "log_level": 0})  # it has to live until the answer is there
    settings = {"message.timestamp.type": "LogAppendTime"}
    admin.create_topics([NewTopic(topic, PARTITIONS, config=settings)])[topic].result(30)


def described(broker: LocalBroker, topic: str, logs: Path, core_seconds: float, memory_mb: float) -> str:
    """What a shipper did and used."""
    size, lines = disk_mb(logs) * 1e6, len(delays_of(broker, topic))
    stored = sum(path.stat().st_size for path in broker.folder.rglob(f"{topic}-*/*.log"))
    return (
        f"shipper to {topic}: {lines:,} lines of {size / lines:.0f} bytes, {core_seconds / lines * 1e6:.1f} µs of a core for each, "
        f"{memory_mb:.0f} MB; in the topic {stored / lines:.1f} bytes a line, one of {size / stored:.1f}"
    )


def delays_of(broker: LocalBroker, topic: str) -> list[int]:
    """Milliseconds from each line's time to its record's, sorted."""
    return sorted(
        message.timestamp()[1] - (line.at_ms or 0)
        for message, record in topic_records(broker.bootstrap, topic)
        if record.record != CLOCK
        for line in each_line(record)
    )


if __name__ == "__main__":
    main()
