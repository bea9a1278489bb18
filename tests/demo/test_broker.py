"""`rebalance broker`. That a broker goes on with its data when it is started again: tests/live/test_ship_outage.py."""

import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from confluent_kafka import Consumer
from confluent_kafka.admin import AdminClient

from jobs.cli.entry import main
from jobs.common.places import KAFKA_VERSION, OTHER_KAFKA, kafka_jar_dir
from jobs.demo.local_broker import free_port
from tests.waiting import PATIENCE_SECONDS, wait_until

pytestmark = [pytest.mark.spark, pytest.mark.slow, pytest.mark.usefixtures("kafka_jars")]

PROJECT = Path(__file__).parents[2]


def command(*words):
    return subprocess.Popen([sys.executable, "-m", "jobs.cli", *words], cwd=PROJECT, stdout=subprocess.PIPE, text=True)


def start(*options):
    """Starts it; returns the process and its bootstrap addresses."""
    process = command("broker", *options)
    for line in process.stdout:
        if line.startswith("bootstrap: "):
            return process, line.split()[1]
    raise AssertionError(process.wait())


def end(process):
    """Stops it as systemd does; returns what it said."""
    process.send_signal(signal.SIGTERM)
    said, _ = process.communicate(timeout=PATIENCE_SECONDS)
    assert process.returncode == 0
    return said


def join_once(bootstrap):
    """A consumer joins and leaves."""
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": "orders-app"})
    consumer.subscribe(["orders"])
    wait_until(lambda: (consumer.poll(0.2), consumer.assignment()), lambda seen: seen[1])
    consumer.close()


def first_group_is_waited_for(bootstrap, out):
    """A cluster has no __consumer_offsets before its first group; `dump-offsets --follow` waits for it."""
    dump = ["dump-offsets", "--bootstrap", bootstrap, "--out", str(out)]
    assert main(dump) == 2
    follower = command(*dump, "--follow")
    try:
        join_once(bootstrap)
        wait_until(lambda: out.exists() and '"partition":' in out.read_text())
        end(follower)
    finally:
        follower.kill()


@pytest.mark.parametrize("version", [KAFKA_VERSION, *OTHER_KAFKA])
def test_one_broker_with_the_requests_of_groups(tmp_path, capsys, version):
    if not kafka_jar_dir(version).is_dir():
        pytest.skip(f"no JARs: python -m jobs.common.jars kafka {version}")
    folder, port = tmp_path / "kafka", str(free_port())
    process, bootstrap = start("--dir", str(folder), "--topic", "orders:2", "--version", version, "--port", port)
    try:
        assert bootstrap.endswith(f":{port}")
        first_group_is_waited_for(bootstrap, tmp_path / "offsets.jsonl")
        for options, said in ((["--dir", str(folder)], "folder of a broker that is running"), (["--port", port], f"port {port} of")):
            assert main(["broker", *options]) == 2
            assert said in capsys.readouterr().err
        assert end(process).endswith("stopped\n")
    finally:
        process.kill()
    log = (folder / "logs" / "broker-1" / "kafka-request.log").read_text()
    apis = set(re.findall(r'"requestApiKeyName":"(\w+)"', log))
    assert {"JOIN_GROUP", "SYNC_GROUP", "LEAVE_GROUP"} <= apis
    assert not {"FETCH", "METADATA"} & apis
    assert "Stabilized group orders-app generation 1" in (folder / "logs" / "broker-1" / "server.log").read_text()
    assert main(["broker", "--dir", str(folder), "--brokers", "3"]) == 2
    assert "holds a cluster of 1" in capsys.readouterr().err


@pytest.mark.long
def test_three_brokers(tmp_path):
    process, bootstrap = start("--dir", str(tmp_path), "--brokers", "3", "--topic", "orders:2")
    try:
        assert bootstrap.count(",") == 2
        join_once(bootstrap)
        found = AdminClient({"bootstrap.servers": bootstrap}).list_topics(timeout=PATIENCE_SECONDS)
        assert sorted(found.brokers) == [1, 2, 3]
        assert {len(p.replicas) for name in ("orders", "__consumer_offsets") for p in found.topics[name].partitions.values()} == {3}
        end(process)
    finally:
        process.kill()
    assert len(list(tmp_path.glob("logs/broker-*/server.log"))) == 3
