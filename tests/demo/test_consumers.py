"""jobs/demo: real consumers do what they are told, and none of them outlives the process that started it."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from jobs.demo.consumers import JAVA, LIBRDKAFKA
from tests.demo.processes import running_with
from tests.lab.further_consumers import FurtherConsumers
from tests.waiting import wait_until

pytestmark = [pytest.mark.spark, pytest.mark.slow]

PROJECT = Path(__file__).parents[2]
SESSION_MS = 20_000  # on a busy machine, too, a consumer is heard in time
PARENT = """
import sys, time
from jobs.demo.consumers import JAVA, LIBRDKAFKA, Consumers
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


@pytest.mark.parametrize("kind", [LIBRDKAFKA, JAVA])
def test_without_a_topic_it_joins_when_it_is_told_to_subscribe_to_an_expression(bootstrap, kind):
    with FurtherConsumers(bootstrap) as consumers:
        consumer = consumers.start(kind, f"told-{kind}", "c", "", session_ms=SESSION_MS)
        wait_until(lambda: "ready" in consumer.lines)
        consumer.command("subscribe", "^le.t$")
        wait_until(lambda: consumer.partitions, 4)
        assert consumer.lines == ["ready", "assigned 4"]


@pytest.mark.skipif(sys.platform != "linux", reason="asks /proc what is left")
def test_none_is_left_when_the_process_that_started_them_is_killed(bootstrap, tmp_path):
    """Not even one that is frozen."""
    mark = {"REBALANCE_TEST": str(tmp_path)}
    command = [sys.executable, "-c", PARENT, bootstrap]
    parent = subprocess.Popen(command, cwd=PROJECT, env={**os.environ, **mark}, stdout=subprocess.PIPE, text=True)
    try:
        assert parent.stdout.readline() == "both\n"
        wait_until(lambda: len(running_with(mark)), 4)  # itself, two workers, a JVM
    finally:
        parent.kill()
        parent.wait()
    wait_until(lambda: not running_with(mark))
