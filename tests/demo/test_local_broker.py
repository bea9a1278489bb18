"""jobs/demo/local_broker.py."""

from __future__ import annotations

import contextlib

import pytest
from confluent_kafka import Consumer, KafkaException, TopicPartition
from confluent_kafka.admin import AdminClient

from jobs.common.errors import UserError
from jobs.demo.local_broker import LocalBroker
from tests.demo.processes import wait_until

pytestmark = [pytest.mark.spark, pytest.mark.slow, pytest.mark.usefixtures("kafka_jars")]


def commit(broker):
    """Until there is a coordinator, which is made for it."""
    consumer = Consumer({"bootstrap.servers": broker.bootstrap, "group.id": "bookkeeper"})

    def committed():
        with contextlib.suppress(KafkaException):
            return consumer.commit(offsets=[TopicPartition("orders", 0, 0)], asynchronous=False)

    wait_until(committed)
    consumer.get_watermark_offsets(TopicPartition("orders", 0), timeout=30)
    consumer.close()


def test_it_keeps_its_topics_over_a_restart_and_a_kill(tmp_path):
    broker = LocalBroker(tmp_path / "b", request_log=True, also_logged=["LIST_OFFSETS"])
    with broker:
        broker.create_topic("orders", 3)
        commit(broker)
        assert broker.running
    assert not broker.running
    broker.start()
    broker.kill()
    with broker:
        topics = AdminClient({"bootstrap.servers": broker.bootstrap}).list_topics(timeout=10).topics
        assert len(topics["orders"].partitions) == 3
    requests = (broker.logs / "kafka-request.log").read_text()
    assert "(kafka.request.logger)" in requests
    assert '"requestApiKeyName":"OFFSET_COMMIT"' in requests
    assert '"requestApiKeyName":"LIST_OFFSETS"' in requests
    assert '"requestApiKeyName":"METADATA"' not in requests
    assert "Kafka Server started" in (broker.logs / "server.log").read_text()


def test_what_kafka_does_not_accept_is_told_in_its_own_words(tmp_path):
    with pytest.raises(UserError, match=r"storage of the broker cannot be formatted: .*log\.segment\.bytes"):
        LocalBroker(tmp_path / "b", settings={"log.segment.bytes": "nine"}).start()


def test_without_jars_it_says_how_to_get_them(tmp_path, monkeypatch):
    monkeypatch.setenv("REBALANCE_KAFKA_JARS", str(tmp_path / "none"))
    with pytest.raises(UserError, match=r"run `python -m jobs\.common\.jars kafka"):
        LocalBroker(tmp_path / "b").start()
