"""`rebalance run --kafka` while its broker is away, from its start on and later: it waits, says so, and reads on."""

import os
import signal

import pytest

from jobs.cli.entry import main
from jobs.common.settings import Settings
from jobs.pipeline import ingest_topic, topic_watch
from jobs.pipeline import run as pipeline
from jobs.pipeline.topic_input import TopicInput
from tests.health.test_watch import judge
from tests.logs.log_makers import request

pytestmark = [pytest.mark.spark, pytest.mark.slow]

TOPIC = "outage"
LINES = 40  # before the outage, and after it


def test_a_run_outlives_that_its_broker_is_away(spark, broker, tmp_path, monkeypatch):
    monkeypatch.setattr(topic_watch, "EVERY_SECONDS", 0.5)
    monkeypatch.setattr(topic_watch, "ANSWER_SECONDS", 1.0)
    # Else Spark's query would fail after minutes.
    monkeypatch.setattr(ingest_topic, "java_settings", lambda _: {"default.api.timeout.ms": "2000", "request.timeout.ms": "1000"})
    broker.create_topic(TOPIC, 1)
    lake, said, judged, log = tmp_path / "lake", [], [], tmp_path / "logs" / "kafka-request.log"
    log.parent.mkdir()

    def ship(first):
        with log.open("ab") as file:
            file.writelines(request(ms) + b"\n" for ms in range(first, first + LINES))
        place = ["--cluster", "c", "--broker", "b", "--bootstrap", broker.bootstrap, "--topic", TOPIC]
        assert main(["ship", "--input", str(log.parent), "--state", str(tmp_path / "ship.json"), *place, "--once"]) == 0

    def warn(line):
        said.append(line)
        if len(said) == 1:  # it waits from its start on
            broker.start()

    def show(reached):
        if reached.lines == LINES and broker.running and not judged:
            broker.stop()
        elif said and not broker.running and not any(query.name == "ingest-topic" for query in spark.streams.active):
            judged.extend(line for line in judge(lake)[1] if line.startswith("AWAY"))
            if judged:
                broker.start()
                ship(LINES)
        elif reached.lines == 2 * LINES:
            os.kill(os.getpid(), signal.SIGTERM)

    ship(0)
    broker.stop()
    source = TopicInput(broker.bootstrap, TOPIC)
    try:
        outcome = pipeline.run(None, lake, settings=Settings(shards=2), once=False, spark=spark, topic=source, show=show, warn=warn)
    finally:
        if not broker.running:
            broker.start()
    waits = f"cannot reach a cluster at {broker.bootstrap}: "
    assert [line.startswith(waits) and line.endswith("; waiting for it, nothing is lost") for line in said] == [True, False, True, False]
    assert all(line.startswith(f"{broker.bootstrap} answers again after ") for line in said[1::2])
    assert judged[0].startswith("AWAY: the topic's cluster does not answer: ")
    assert outcome.signal == signal.SIGTERM
    assert outcome.added["lines_read"] == outcome.added["events"] + outcome.added["quarantined"] == 2 * LINES
