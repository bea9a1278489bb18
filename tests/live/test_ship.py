"""`rebalance ship` to a real broker: whole recordings, rotation under load, kill -9."""

import os
import random
import shutil
import sys
import time

import pytest

from jobs.cli.entry import main
from jobs.kafka.clients import Cluster
from jobs.kafka.outbox import Outbox
from jobs.logs.bytes import open_log
from jobs.logs.mark import KeptLines
from jobs.logs.reader import LogReader
from jobs.logs.times import LocalTimes
from schemas.names import LINE
from tests.effort import long
from tests.live.shipping import PROJECT, LogWriter, ShipProcess, arguments, check_ticks, distinct, numbers, read_back
from tests.waiting import wait_until

pytestmark = [pytest.mark.spark, pytest.mark.slow]

KILLS = int(os.environ.get("REBALANCE_KILLS", "3"))
RECORDING = PROJECT / "tests" / "data" / "recordings" / "kafka-3.9.1" / "broker-2"


def test_a_recording_arrives_as_log_reader_keeps_it(broker, tmp_path):
    broker.create_topic("recording", 3)
    shutil.copytree(RECORDING, tmp_path / "logs")
    assert main([*arguments(broker.bootstrap, "recording", tmp_path), "--once", "--raw"]) == 0
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
            for group in ("payments-core", "loyalty-calc"):
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
    writer = LogWriter(tmp_path / "logs", rotate_every=0.7)
    with ShipProcess(broker.bootstrap, "rotated", tmp_path) as shipper, writer:
        wait_until(shipper.shipped)
        before = writer.rotations
        wait_until(lambda: writer.rotations >= before + 10)
        writer.stop()
        wait_until(lambda: shipper.shipped() >= writer.written)
        output = shipper.end()
    records = read_back(broker.bootstrap, "rotated")
    lines = distinct(records)
    assert numbers(lines) == list(range(writer.written))
    assert sum(r.record == LINE for _, _, r in records) == len(lines), output  # nothing was killed: nothing came twice
    check_ticks(records)


@pytest.mark.parametrize("kills", [KILLS, long(2 * KILLS)])
def test_kill_9_at_any_moment(broker, tmp_path, kills):
    topic = f"killed-{kills}"
    broker.create_topic(topic, 3)
    moments = random.Random(6)
    writer = LogWriter(tmp_path / "logs", rotate_every=1.5, pause=0.005)
    writer.backlog(20_000 * kills)  # so that it is always at work when it is killed
    with writer:
        for number in range(1, kills + 1):
            with ShipProcess(broker.bootstrap, topic, tmp_path) as shipper:
                wait_until(lambda: shipper.output().count("rebalance: shipping"), number)
                time.sleep(moments.uniform(0.0, 0.6))
    assert main([*arguments(broker.bootstrap, topic, tmp_path), "--once"]) == 0
    records = read_back(broker.bootstrap, topic)
    lines = distinct(records)
    assert numbers(lines) == list(range(writer.written))
    assert not any(record.fault for _, _, record in records)
    check_ticks(records)
    sys.stdout.write(
        f"{writer.written} lines, {sum(r.record == LINE for _, _, r in records) - len(lines)} sent twice, {writer.rotations} rotations\n"
    )


def test_a_topic_that_a_broker_does_not_know_yet_is_waited_for_unless_it_is_the_only_run(broker, tmp_path, capsys):
    (tmp_path / "logs").mkdir()
    assert main([*arguments(broker.bootstrap, "late", tmp_path), "--once"]) == 2
    assert "cannot write to topic late" in capsys.readouterr().err
    looks = []

    def stopped():
        looks.append(1)
        if len(looks) == 2:  # a broker has said that it knows no such topic
            broker.create_topic("late", 3)
        return False

    outbox = Outbox(Cluster(broker.bootstrap), "late", stopped=stopped, complain=print, once=True)
    assert outbox.connect()
    assert outbox.partitions == 3
    assert len(looks) >= 2
    outbox.close()
