"""Brokers log which topics are compacted, and controllers the ids of topics: lines of Kafka 4.4 and 3.9, and one as Kafka 1.0 prints it."""

import pytest

from jobs.logs.broker_judge import BrokerJudge
from jobs.logs.mark import Mark
from jobs.parsing.broker_log import is_broker_line, row

CREATED = "[2026-11-30 01:40:36,802] INFO Created log for partition {} in /data/{}-1 with properties {{{}}}{} ({}.LogManager)"
UPDATED = (
    "[2026-11-30 01:40:36,807] INFO [DynamicConfigPublisher broker id=1] Updating topic {} with new configuration : {} "
    "(kafka.server.metadata.DynamicConfigPublisher)"
)
NEW, OLD = "org.apache.kafka.storage.internals.log", "kafka.log"
TOLD = [
    (CREATED.format("cdc-eu-1", "cdc-eu", "cleanup.policy=compact, min.cleanable.dirty.ratio=0.01, segment.ms=1000", "", NEW), "cdc-eu"),
    (CREATED.format("cdc-eu-1", "cdc-eu", "retention.ms=9, cleanup.policy=compact,delete", "", OLD), "cdc-eu"),
    (CREATED.format("cdc-eu-1", "cdc-eu", "cleanup.policy=delete,compact", "", OLD), "cdc-eu"),
    (CREATED.format("cdc-1", "cdc", "compression.type -> producer, cleanup.policy -> compact, flush.ms -> 9", ".", OLD), "cdc"),
    (UPDATED.format("cdc-eu", "cleanup.policy -> compact,segment.ms -> 1000"), "cdc-eu"),
    (UPDATED.format("cdc-eu", "segment.ms -> 1000,cleanup.policy -> delete,compact"), "cdc-eu"),
    (CREATED.format("orders-1", "orders", "", "", NEW), None),
    (CREATED.format("orders-1", "orders", "cleanup.policy=delete, max.compaction.lag.ms=9", "", NEW), None),
    (CREATED.format("__consumer_offsets-1", "__consumer_offsets", "cleanup.policy=compact", "", NEW), None),
    (UPDATED.format("orders", "cleanup.policy -> delete"), None),
]


@pytest.mark.parametrize(("line", "topic"), TOLD)
def test_a_broker_tells_that_a_topic_is_compacted(line, topic):
    assert is_broker_line(line)
    assert row(line, 0).get("offsets") == (None if topic is None else [{"partition": topic, "topic_id": None}])
    assert BrokerJudge(Mark()).timed(line.encode(), "") == (None if topic is None else "")


def test_a_controller_tells_the_id_of_a_topic():
    """Requests by id alone would else name a topic that no other line names."""
    line = (
        "[2026-11-26 11:49:10,179] INFO [QuorumController id=1] Replayed TopicRecord for topic {} with topic ID YWhtkeymSrON9bUsGuTeIg. "
        "(org.apache.kafka.controller.ReplicationControlManager)"
    )
    told = row(line.format("orders-eu"), 0)
    assert (told["kind"], told["offsets"]) == ("TOPIC_NAMED", [{"partition": "orders-eu", "topic_id": "YWhtkeymSrON9bUsGuTeIg"}])
    assert BrokerJudge(Mark()).timed(line.format("orders-eu").encode(), "") == ""
    assert row(line.format("__consumer_offsets"), 0).get("offsets") is None
