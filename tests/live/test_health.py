"""What `pipeline_health` says of a topic, on a real broker: how many records wait."""

from __future__ import annotations

from pathlib import Path

import pytest
from confluent_kafka import Consumer, TopicPartition

from jobs.cli.entry import main
from jobs.common.settings import Settings
from jobs.health import reading
from jobs.pipeline import run
from jobs.pipeline.topic_input import TopicInput
from tests.health.test_watch import judge
from tests.waiting import PATIENCE_SECONDS

pytestmark = [pytest.mark.spark, pytest.mark.slow]

LOGS = Path(__file__).parents[1] / "data" / "recordings" / "kafka-3.9.1" / "broker-2"
TOPIC = "watched"
MOST = 2_000  # records of a micro-batch


@pytest.fixture(scope="module")
def records(broker, tmp_path_factory):
    """The recording in a topic of one partition; how many records that is."""
    broker.create_topic(TOPIC, 1)
    state = tmp_path_factory.mktemp("ship") / "state.json"
    place = ["--cluster", "c", "--broker", "b2", "--bootstrap", broker.bootstrap, "--topic", TOPIC, "--state", str(state)]
    assert main(["ship", "--input", str(LOGS), *place, "--timezone", "America/New_York", "--raw", "--once"]) == 0
    reader = Consumer({"bootstrap.servers": broker.bootstrap, "group.id": "reader"})
    _, end = reader.get_watermark_offsets(TopicPartition(TOPIC, 0), timeout=PATIENCE_SECONDS)
    reader.close()
    return end


def test_a_row_says_how_many_records_wait_behind_its_batch(spark, broker, records, tmp_path):
    lake = tmp_path / "lake"
    outcome = run.run(
        None,
        lake,
        settings=Settings(shards=8),
        once=True,
        spark=spark,
        topic=TopicInput(broker.bootstrap, TOPIC, max_offsets=MOST),
    )
    rows = [row for row in reading.read_rows(lake / "pipeline_health") if row.query == "ingest-topic"]
    assert [row.lag_events for row in rows] == [max(records - MOST * (number + 1), 0) for number in range(-(-records // MOST))]
    assert len(rows) > 1
    assert sum(row.input_rows for row in rows) == outcome.added["lines_read"] > 0
    assert judge(lake)[0] == 0
