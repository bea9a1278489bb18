"""jobs/demo: real consumers do what they are told, and none of them outlives the process that started it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from confluent_kafka.admin import AdminClient

from jobs.demo.consumers import Consumers
from jobs.demo.real_consumer import JAVA, LIBRDKAFKA
from tests.demo.processes import running_with, wait_until

pytestmark = [pytest.mark.spark, pytest.mark.slow]

PROJECT = Path(__file__).parents[2]
PARENT = """
import sys, time
from jobs.demo.consumers import Consumers
from jobs.demo.real_consumer import JAVA, LIBRDKAFKA
consumers = Consumers(sys.argv[1])
one, two = consumers.start(LIBRDKAFKA, "left", "l", "lent"), consumers.start(JAVA, "left", "j", "lent")
while not (one.partitions and two.partitions):
    time.sleep(0.1)
two.freeze()
print("both", flush=True)
time.sleep(1000)
"""


@pytest.fixture(scope="module")
def bootstrap(broker):
    broker.create_topic("lent", 4)
    return broker.bootstrap


def described(admin, group):
    """State and clients of a group."""
    found = admin.describe_consumer_groups([group])[group].result(30)
    return found.state.name, [member.client_id for member in found.members]


@pytest.mark.parametrize("kind", [LIBRDKAFKA, JAVA])
def test_it_joins_commits_and_leaves(bootstrap, kind):
    group, admin = f"lent-{kind}", AdminClient({"bootstrap.servers": bootstrap})
    with Consumers(bootstrap) as consumers:
        consumer = consumers.start(kind, group, "c", "lent", session_ms=20_000)
        wait_until(lambda: consumer.partitions == 4)
        consumer.commit()
        wait_until(lambda: "committed" in consumer.lines)
        assert described(admin, group) == ("STABLE", ["c"])
        consumer.leave()
        wait_until(lambda: not consumer.running and "left" in consumer.lines)  # its last line may be read after its end
        assert consumer.lines == ["assigned 4", "committed", "left"]
        assert described(admin, group) == ("EMPTY", [])


@pytest.mark.parametrize("kind", [LIBRDKAFKA, JAVA])
def test_without_a_topic_it_joins_when_it_is_told_to_subscribe_to_an_expression(bootstrap, kind):
    with Consumers(bootstrap) as consumers:
        consumer = consumers.start(kind, f"told-{kind}", "c", "")
        wait_until(lambda: consumer.ready)
        consumer.subscribe("^le.t$")
        wait_until(lambda: consumer.partitions == 4)
        assert consumer.lines == ["ready", "assigned 4"]


@pytest.mark.parametrize("kind", [LIBRDKAFKA, JAVA])
def test_one_that_is_fenced_says_so_and_ends(bootstrap, kind):
    with Consumers(bootstrap) as consumers:
        first = consumers.start(kind, f"fenced-{kind}", "c", "lent", instance_id="i")
        wait_until(lambda: first.partitions == 4)
        second = consumers.start(kind, f"fenced-{kind}", "d", "lent", instance_id="i")
        wait_until(lambda: not first.running and first.failure is not None)  # its last line may be read after its end is seen
        assert "enced" in (first.failure or "")
        assert second.failure is None


@pytest.mark.skipif(sys.platform != "linux", reason="asks /proc what is left")
def test_none_is_left_when_the_process_that_started_them_is_killed(bootstrap, tmp_path):
    """Not even one that is frozen."""
    mark = {"REBALANCE_TEST": str(tmp_path)}
    command = [sys.executable, "-c", PARENT, bootstrap]
    parent = subprocess.Popen(command, cwd=PROJECT, env={**os.environ, **mark}, stdout=subprocess.PIPE, text=True)
    try:
        assert parent.stdout.readline() == "both\n"
        wait_until(lambda: len(running_with(mark)) == 4)  # itself, two workers, a JVM
    finally:
        parent.kill()
        parent.wait()
    wait_until(lambda: not running_with(mark))
