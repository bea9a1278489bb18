"""`rebalance ship` to a real broker: whole recordings, rotation under load, kill -9, a broker that is away."""

from __future__ import annotations

import gzip
import json
import os
import random
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from jobs.cli.entry import main
from jobs.demo.local_broker import LocalBroker
from jobs.logs.bytes import open_log
from jobs.logs.mark import KeptLines
from jobs.logs.reader import LogReader
from jobs.logs.times import LocalTimes
from schemas.names import CLOCK, LINE
from tests.kafka.topic_reader import topic_records
from tests.logs.log_makers import coordinator, other, request

pytestmark = [pytest.mark.spark, pytest.mark.slow]

PROJECT = Path(__file__).parents[2]
KILLS = int(os.environ.get("REBALANCE_KILLS", "10"))
AWAY_SECONDS = float(os.environ.get("REBALANCE_AWAY_SECONDS", "8"))
RECORDING = PROJECT / "tests" / "data" / "recordings" / "kafka-4.2.0" / "broker-1"


def arguments(bootstrap, topic, folder, *more):
    place = ["--input", str(folder / "logs"), "--state", str(folder / "state.json")]
    return ["ship", *place, "--cluster", "live", "--broker", "b1", "--bootstrap", bootstrap, "--topic", topic, *more]


def start(bootstrap, topic, folder):
    return subprocess.Popen([sys.executable, "-m", "jobs.cli", *arguments(bootstrap, topic, folder)], cwd=PROJECT, stderr=subprocess.PIPE)


def end(shipper):
    """As systemd does; returns what it said."""
    shipper.send_signal(signal.SIGTERM)
    _, said = shipper.communicate(timeout=30)
    assert shipper.returncode == 0, said
    return said.decode()


def read_back(bootstrap, topic):
    """All records, as (partition, offset, record), each partition in its order."""
    found = [(message.partition(), message.offset(), record) for message, record in topic_records(bootstrap, topic)]
    return sorted(found, key=lambda row: row[:2])


def distinct(records):
    """What a reader makes of it: of one position of one log, one line."""
    lines = {}
    for _, _, record in records:
        if record.record == LINE:
            key = record.cluster, record.broker, record.origin, record.position
            assert lines.setdefault(key, record.text) == record.text
    return lines


def check_ticks(records):
    """Behind a tick no line at or before its position comes that was not there before it; in all partitions, `lines` are there."""
    seen: dict[tuple[int, str], set[int]] = {}
    told: dict[tuple[int, str], int] = {}
    positions: dict[str, set[int]] = {}
    ticks: dict[str, tuple[int, int]] = {}
    for partition, _, record in records:
        place = partition, record.origin
        if record.record == CLOCK:
            told[place] = max(told.get(place, 0), record.position)
            ticks[record.origin] = max(ticks.get(record.origin, (0, 0)), (record.position, record.lines))
        elif record.position:
            assert record.position > told.get(place, 0) or record.position in seen[place]
            seen.setdefault(place, set()).add(record.position)
            positions.setdefault(record.origin, set()).add(record.position)
    for origin, (position, lines) in ticks.items():
        assert sum(p <= position for p in positions.get(origin, ())) == lines
    return ticks


class Writer(threading.Thread):
    """Writes numbered lines as a broker does, some of which matter, and rotates as log4j, gzip or copytruncate do."""

    def __init__(self, folder, *, rotate_every=0.0, pause=0.02):
        super().__init__(daemon=True)
        self.folder, self.rotate_every, self.pause = folder, rotate_every, pause
        self.path = folder / "server.log"
        self.written, self.rotations = 0, 0
        self._ended = threading.Event()
        folder.mkdir()

    def backlog(self, count):
        """What was written before anybody shipped it."""
        with (self.folder / "server.log.0").open("wb") as file:
            for _ in range(count):
                file.write(
                    coordinator(self.written // 100 - 10_000, f"Stabilized group g generation {self.written} with 3 members.") + b"\n"
                )
                self.written += 1

    def run(self):
        began, rotated = time.time(), time.monotonic()
        file = self.path.open("ab")
        while not self._ended.is_set():
            at = int((time.time() - began) * 1000)
            batch = []
            for _ in range(20):
                group = f"g{self.written % 7}"
                if self.written % 2:
                    batch.append(coordinator(at, f"Stabilized group {group} generation {self.written} with 3 members."))
                else:
                    batch.append(request(at, group=group).replace(b'"errorCode":0', b'"n":%d' % self.written))
                self.written += 1
            file.write(b"\n".join([other(at), *batch]) + b"\n")
            file.flush()
            if self.rotate_every and time.monotonic() - rotated > self.rotate_every:
                file.close()
                self._rotate()
                rotated = time.monotonic()
                file = self.path.open("ab")
            self._ended.wait(self.pause)
        file.close()

    def _rotate(self):
        self.rotations += 1
        for number in range(self.rotations - 1, 0, -1):
            for end_ in (".gz", ""):
                old = self.folder / f"server.log.{number}{end_}"
                if old.exists():
                    old.rename(self.folder / f"server.log.{number + 1}{end_}")
        if self.rotations % 3 == 0:  # copytruncate
            shutil.copyfile(self.path, self.folder / "server.log.1")
            time.sleep(0.05)
            self.path.write_bytes(b"")
        else:
            self.path.rename(self.folder / "server.log.1")
        plain = self.folder / "server.log.2"
        if plain.exists():
            with plain.open("rb") as source, gzip.open(self.folder / "server.log.2.gz", "wb") as target:
                shutil.copyfileobj(source, target)
            plain.unlink()

    def stop(self):
        self._ended.set()
        self.join(10)


def numbers(lines):
    """The numbers of the lines that arrived, one for each, sorted."""
    found = []
    for text in lines.values():
        mark = '"n":' if '"n":' in text else "generation "
        found.append(int(text.partition(mark)[2].partition("}")[0].split()[0]))
    return sorted(found)


def shipped(folder):
    """Lines that the shipper knows to have arrived."""
    path = folder / "state.json"
    return sum(log["shipped"] for log in json.loads(path.read_text())["streams"]) if path.exists() else 0


def wait_until(condition, seconds=60):
    until = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < until
        time.sleep(0.1)


def test_a_recording_arrives_as_log_reader_keeps_it(broker, tmp_path):
    broker.create_topic("recording", 3)
    shutil.copytree(RECORDING, tmp_path / "logs")
    assert main([*arguments(broker.bootstrap, "recording", tmp_path), "--once"]) == 0
    records = read_back(broker.bootstrap, "recording")
    found = {}
    for partition, _, record in records:
        if record.record == LINE:
            assert (record.cluster, record.broker) == ("live", "b1")
            rows = found.setdefault(record.origin.partition("@")[0], {})
            assert record.position not in rows
            rows[record.position] = (record.at_ms, record.text, record.fault, record.source, partition)
    for path in RECORDING.iterdir():
        kept = KeptLines()
        reader = LogReader(lambda path=path: open_log(path), LocalTimes("UTC"))
        while reader.read(kept):
            pass
        rows = found.pop(path.name.removesuffix(".log.gz"))
        expected = {
            p: (a, t.decode(), kept.faults.get(i)) for i, (p, a, t) in enumerate(zip(kept.positions, kept.ats, kept.texts, strict=True))
        }
        assert {position: row[:3] for position, row in rows.items()} == expected
        assert len(expected) > 100
        assert {row[3] for row in rows.values()} == {"request" if "request" in path.name else "coordinator"}
        where = {}
        for row in rows.values():
            for group in ("order-intake", "refund-processor"):
                if f'"groupId":"{group}"' in row[1] or f"group {group} " in row[1]:
                    where.setdefault(group, set()).add(row[4])
        assert all(len(partitions) == 1 for partitions in where.values())
        assert where
    assert found == {}
    ticks = check_ticks(records)
    assert len(ticks) == 2
    assert main([*arguments(broker.bootstrap, "recording", tmp_path), "--once"]) == 0
    assert len(read_back(broker.bootstrap, "recording")) == len(records)


def test_rotation_under_load(broker, tmp_path):
    broker.create_topic("rotated", 3)
    writer = Writer(tmp_path / "logs", rotate_every=0.7)
    writer.start()
    shipper = start(broker.bootstrap, "rotated", tmp_path)
    try:
        time.sleep(15)
        writer.stop()
        wait_until(lambda: shipped(tmp_path) == writer.written)
        said = end(shipper)
    finally:
        shipper.kill()
    records = read_back(broker.bootstrap, "rotated")
    lines = distinct(records)
    assert writer.rotations >= 10
    assert numbers(lines) == list(range(writer.written))
    assert sum(r.record == LINE for _, _, r in records) == len(lines), said  # nothing was killed: nothing came twice
    check_ticks(records)


def test_kill_9_at_any_moment(broker, tmp_path):
    broker.create_topic("killed", 3)
    moments = random.Random(6)
    writer = Writer(tmp_path / "logs", rotate_every=1.5, pause=0.005)
    writer.backlog(20_000 * KILLS)  # so that it is always at work when it is killed
    writer.start()
    for _ in range(KILLS):
        shipper = start(broker.bootstrap, "killed", tmp_path)
        wait_until(lambda: shipper.stderr.readline().startswith(b"rebalance: shipping"))  # noqa: B023 - called at once
        time.sleep(moments.uniform(0.0, 0.6))
        shipper.kill()
        shipper.communicate()
    writer.stop()
    assert main([*arguments(broker.bootstrap, "killed", tmp_path), "--once"]) == 0
    records = read_back(broker.bootstrap, "killed")
    lines = distinct(records)
    assert numbers(lines) == list(range(writer.written))
    assert not any(record.fault for _, _, record in records)
    check_ticks(records)
    sys.stdout.write(
        f"{writer.written} lines, {sum(r.record == LINE for _, _, r in records) - len(lines)} sent twice, {writer.rotations} rotations\n"
    )


def test_a_broker_that_is_away_for_a_while(kafka_jars, tmp_path):  # noqa: ARG001
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    away = LocalBroker(tmp_path / "broker", port=port)
    writer = Writer(tmp_path / "logs", rotate_every=2.0, pause=0.005)
    shipper = None
    try:
        away.start()
        away.create_topic("away", 2)
        writer.start()
        shipper = start(away.bootstrap, "away", tmp_path)
        wait_until(lambda: shipped(tmp_path))
        away.kill()
        time.sleep(AWAY_SECONDS)
        away.start()
        time.sleep(3)
        away.stop()
        time.sleep(3)
        said = end(shipper)  # with lines that nobody acknowledged
        assert said.count("acknowledges nothing") in {1, 2}
        assert "waiting, nothing is lost" in said
        assert "the next start sends it again" in said
        shipper = start(away.bootstrap, "away", tmp_path)
        time.sleep(3)
        away.start()
        time.sleep(3)
        writer.stop()
        wait_until(lambda: shipped(tmp_path) == writer.written, 120)
        end(shipper)
        records = read_back(away.bootstrap, "away")
        assert numbers(distinct(records)) == list(range(writer.written))
        check_ticks(records)
    finally:
        writer.stop()
        if shipper is not None:
            shipper.kill()
        away.stop()


def test_what_cannot_be_shipped_to(broker, tmp_path, capsys, monkeypatch):
    (tmp_path / "logs").mkdir()
    assert main([*arguments(broker.bootstrap, "no-such-topic", tmp_path), "--once"]) == 2
    assert "cannot write to topic no-such-topic" in capsys.readouterr().err
    monkeypatch.setattr("jobs.kafka.outbox._METADATA_SECONDS", 1.0)
    assert main([*arguments("127.0.0.1:1", "t", tmp_path), "--once"]) == 2
    assert "cannot reach a cluster at 127.0.0.1:1" in capsys.readouterr().err


def test_a_cluster_that_is_away_at_the_start_is_waited_for(tmp_path):
    (tmp_path / "logs").mkdir()
    shipper = start("127.0.0.1:1", "t", tmp_path)
    time.sleep(3)
    assert shipper.poll() is None
    end(shipper)
