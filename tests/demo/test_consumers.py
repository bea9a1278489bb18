"""jobs/demo: real consumers do what they are told, and none of them outlives the process that started it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from confluent_kafka import ConsumerGroupTopicPartitions
from confluent_kafka.admin import AdminClient

from jobs.demo.consumers import JAVA, LIBRDKAFKA
from tests.demo.processes import running_with
from tests.lab.reading_consumers import TRANSACTIONAL, ReadingConsumers
from tests.lab.steady_producer import SteadyProducer
from tests.waiting import wait_until

pytestmark = [pytest.mark.spark, pytest.mark.slow]

PROJECT = Path(__file__).parents[2]
SESSION_MS = 20_000  # on a busy machine, too, a consumer is heard in time
PARENT = """
import sys, time
from jobs.demo.consumers import Consumers
from jobs.demo.consumers import JAVA, LIBRDKAFKA
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
    with ReadingConsumers(bootstrap) as consumers:
        consumer = consumers.start(kind, f"told-{kind}", "c", "", session_ms=SESSION_MS)
        wait_until(lambda: consumer.ready)
        consumer.command("subscribe", "^le.t$")
        wait_until(lambda: consumer.partitions, 4)
        assert consumer.lines == ["ready", "assigned 4"]


def processed(consumer):
    """The offsets that a consumer processed, by partition."""
    return {part: [record["offset"] for record in list(consumer.records) if record["partition"] == part] for part in range(2)}


def committed(admin, group):
    """The committed offsets, by partition. The group has to have a coordinator: librdkafka crashes when it is told that there is none."""
    answer = admin.list_consumer_group_offsets([ConsumerGroupTopicPartitions(group)])[group].result(30)
    return {part.partition: part.offset for part in answer.topic_partitions}


@pytest.mark.parametrize("kind", [LIBRDKAFKA, JAVA, TRANSACTIONAL])
def test_it_notes_what_it_processes_and_commits_that(broker, kind):
    """A paused partition is neither read nor given up. What was processed when it is closed is committed."""
    topic, admin = f"read-{kind}", AdminClient({"bootstrap.servers": broker.bootstrap})
    broker.create_topic(topic, 2)
    broker.create_topic(f"{topic}-out", 2)
    manual = {"enable.auto.commit": "false", "auto.offset.reset": "earliest"}
    habits = {"commit_every": 10, "notes": True}
    with (
        ReadingConsumers(broker.bootstrap) as consumers,
        SteadyProducer(broker.bootstrap) as producer,
    ):
        producer.start(topic, 2)
        consumer = consumers.start(kind, topic, "c", topic, session_ms=SESSION_MS, habits=habits, settings=manual)
        wait_until(lambda: consumer.partitions, 2)
        wait_until(lambda: min(committed(admin, topic).values(), default=0) >= 5)
        consumer.command("pause", 1)
        wait_until(lambda: len(processed(consumer)[0]) >= len(processed(consumer)[1]) + 20)
        assert consumer.partitions == 2
        consumer.command("resume", 1)
        end = producer.ends(topic)[0]
        producer.burst(topic, 30)
        wait_until(lambda: producer.ends(topic)[0] > end + 30)
        producer.stop(topic)
        wait_until(lambda: all(len(processed(consumer)[part]) == end for part, end in producer.ends(topic).items()))
        consumer.leave()
        wait_until(lambda: not consumer.running)
        ends = producer.ends(topic)
    assert processed(consumer) == {part: list(range(end)) for part, end in ends.items()}
    assert committed(admin, topic) == ends
    assert {part: [offset for _, _, where, offset in producer.acknowledged if where == part] for part in ends} == processed(consumer)


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
