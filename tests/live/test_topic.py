"""`rebalance run --kafka`: a topic of log lines gives the tables that the logs themselves give."""

import gzip
import json
import subprocess
import sys
from collections import Counter
from datetime import datetime, timedelta
from pathlib import Path

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient

from jobs.cli.entry import main
from jobs.common.errors import QueryFailedError, UserError
from jobs.common.settings import Settings
from jobs.health import reading
from jobs.kafka.topic_records import line_headers, log_headers
from jobs.lakehouse.folder import opened
from jobs.lakehouse.reader import account, table_rows
from jobs.pipeline import at_once
from jobs.pipeline import run as pipeline
from jobs.pipeline.topic_input import TopicInput, records_at_once
from schemas.tables import TRACK_TABLES
from tests.health.test_watch import judge
from tests.laws.kept import assert_laws_are_kept
from tests.live.shipping import PROJECT
from tests.logs.log_makers import coordinator
from tests.waiting import PATIENCE_SECONDS, wait_until

pytestmark = [pytest.mark.spark, pytest.mark.slow, pytest.mark.usefixtures("unreachable")]

RECORDING = Path(__file__).parents[1] / "data" / "recordings" / "kafka-3.9.1"
ZONE = "America/New_York"
PARTITIONS = 3
SHARDS = 8


def make_topic(broker, name, partitions=PARTITIONS):
    broker.create_topic(name, partitions)
    return name


def ship(broker, folder, cluster, name, topic, state, *more):
    place = ["--input", str(folder), "--cluster", cluster, "--broker", name, "--timezone", ZONE, "--state", str(state)]
    assert main(["ship", *place, "--topic", topic, "--bootstrap", broker.bootstrap, "--once", *more]) == 0


def run(spark, lakehouse, topic):
    return pipeline.run(None, lakehouse, settings=Settings(shards=SHARDS), once=True, spark=spark, topic=topic)


def tables(lakehouse, cluster):
    """All rows of a cluster as a multiset, but for what names batches and files."""
    found = Counter()
    for table in TRACK_TABLES:
        for row in table_rows(lakehouse / table):
            if row.pop("cluster") == cluster:
                found[json.dumps([table, {k: v for k, v in row.items() if k not in {"batch_id", "evidence"}}], default=str)] += 1
    return found


@pytest.fixture(scope="module")
def unreachable(tmp_path_factory):
    """A run that reads from a cluster that is not there. It begins with the first test of the file: it takes 15 s to give up."""
    command = ["run", "--once", "--lakehouse", str(tmp_path_factory.mktemp("unreachable") / "lake"), "--kafka", "127.0.0.1:1"]
    process = subprocess.Popen([sys.executable, "-m", "jobs.cli", *command], cwd=PROJECT, stderr=subprocess.PIPE, text=True)
    yield process
    process.kill()
    process.wait()


def without_fetch(log):
    """A log without the requests that a shipper does not send."""
    left_out = (b'"requestApiKeyName":"FETCH"', b'"requestApiKeyName":"METADATA"')
    return b"".join(line for line in log.splitlines(keepends=True) if not any(sign in line for sign in left_out))


@pytest.fixture(scope="module")
def logs(tmp_path_factory):
    """The recording, and ten minutes later a line of each log: a topic does not say that it ends. A shipper sends no FETCH."""
    folder = tmp_path_factory.mktemp("logs")
    for log in sorted(RECORDING.glob("broker-*/*.log.gz")):
        lines = without_fetch(gzip.decompress(log.read_bytes()))
        last = next(line for line in reversed(lines.splitlines()) if line.startswith(b"["))
        later = datetime.strptime(last[1:20].decode(), "%Y-%m-%d %H:%M:%S") + timedelta(minutes=10)  # noqa: DTZ007 - local, as logged
        path = folder / "one" / log.parent.name / log.name.removesuffix(".gz")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(lines + f"[{later:%Y-%m-%d %H:%M:%S},000] INFO Still here (kafka.server.KafkaServer)\n".encode())
    return folder


@pytest.fixture(scope="module")
def reference(logs, tmp_path_factory):
    """What the files give."""
    lakehouse = tmp_path_factory.mktemp("reference") / "lake"
    outcome = at_once.process(logs, lakehouse, settings=Settings(shards=SHARDS, timezone=ZONE), most_lines=1 << 30)
    return tables(lakehouse, "one"), outcome.added


@pytest.fixture(scope="module")
def shipped(broker, logs, tmp_path_factory):
    """A topic with two clusters that have the same logs, one of which was shipped twice: with its heartbeats in bundles, then as lines."""
    topic = make_topic(broker, "shipped")
    states = tmp_path_factory.mktemp("states")
    for round_ in ("first", "again"):
        more = () if round_ == "first" else ("--raw",)
        for cluster in ("one", "two") if round_ == "first" else ("one",):
            for name in ("broker-1", "broker-2"):
                ship(broker, logs / "one" / name, cluster, name, topic, states / f"{round_}-{cluster}-{name}.json", *more)
    return topic


def test_a_topic_gives_the_tables_of_its_logs(spark, broker, shipped, reference, tmp_path):
    """Several clusters, every partition at a pace of its own, and half of the lines twice."""
    lakehouse = tmp_path / "lake"
    topic = TopicInput(broker.bootstrap, shipped, max_offsets=2_500)
    outcome = run(spark, lakehouse, topic=topic)
    batches = {row["batch_id"] for row in table_rows(lakehouse / "group_events")}
    assert len(batches) > 3
    expected, added_by_files = reference
    assert tables(lakehouse, "one") == tables(lakehouse, "two") == expected
    assert_laws_are_kept(lakehouse)
    assert outcome.late_events == 0
    added = outcome.added
    assert (added["events"], added["quarantined"]) == (2 * added_by_files["events"], 0)
    counted = [(row["cluster"], row["lines_read"], row["repeated"] or 0) for row in table_rows(lakehouse / "input_lines")]
    read = {cluster: sum(lines for name, lines, _ in counted if name == cluster) for cluster in ("one", "two")}
    assert read["one"] == read["two"] == sum(again for _, _, again in counted)
    before = account(lakehouse)
    assert not any(run(spark, lakehouse, topic=topic).added.values())
    assert account(lakehouse) == before


def write_what_no_shipper_writes(broker, topic):
    """And a line that could be of one. What else is refused, and how: tests/pipeline/test_topic_records.py."""
    producer = Producer({"bootstrap.servers": broker.bootstrap, "linger.ms": 0})
    good = line_headers(log_headers("c", "b", "line", "server@1.log"), "coordinator", 1, 1_795_240_800_000)
    for headers, value in (
        (None, b"no headers"),
        ([*good, ("cluster", b"\xff<script>"), ("position", b"")], b"\xff\x00\x1b[31m" + coordinator(0)),
        ([*good, ("record", b"heartbeats"), ("version", b"2")], b"\x90"),
        ([("record", None), *good], None),  # an absent value is an empty line
        (good, coordinator(0)),
    ):
        producer.produce(topic, value, b"k", 0, headers=headers)
    producer.flush(30)


def test_a_topic_that_cannot_be_read_is_refused_before_spark_starts(broker, unreachable, tmp_path, capsys):
    topic = make_topic(broker, "moved")
    place = ["--lakehouse", str(tmp_path / "lake"), "--once"]

    def refused(*options):
        assert main(["run", *place, *options]) == 2
        (line,) = capsys.readouterr().err.splitlines()
        return line

    assert "no topic absent at" in refused("--kafka", broker.bootstrap, "--topic", "absent")
    assert "no topic can have this name" in refused("--kafka", broker.bootstrap, "--topic", "a,b")
    with opened(tmp_path / "lake", Settings()):  # what was refused has left no folder
        pass
    (tmp_path / "lake" / "_checkpoints" / "topic.json").write_text(json.dumps({"topic": "other", "cluster_id": "x", "topic_id": "y"}))
    assert "is not the topic (other) that" in refused("--kafka", broker.bootstrap, "--topic", topic)
    (tmp_path / "lake" / "_checkpoints" / "topic.json").write_text("{")
    assert "is damaged" in refused("--kafka", broker.bootstrap, "--topic", topic)
    _, error = unreachable.communicate(timeout=PATIENCE_SECONDS)
    assert unreachable.returncode == 2
    (line,) = error.splitlines()
    assert "cannot reach a cluster at 127.0.0.1:1" in line


def test_what_no_shipper_wrote_and_what_the_topic_dropped_before_it_was_read(spark, broker, logs, tmp_path):
    """Nothing is passed over in silence: it goes to quarantine, or the run ends, unless the user knows."""
    topic = make_topic(broker, "short-lived")
    ship(broker, logs / "one" / "broker-1", "one", "broker-1", topic, tmp_path / "state.json")
    assert records_at_once(TopicInput(broker.bootstrap, topic), 10_000) < 5_000  # a bundle has many lines
    assert records_at_once(TopicInput(broker.bootstrap, topic, max_offsets=7), 10_000) == 7
    write_what_no_shipper_writes(broker, topic)
    added = run(spark, tmp_path / "lake", topic=TopicInput(broker.bootstrap, topic)).added
    assert (added["events"] > 1_000, added["quarantined"]) == (True, 3)
    found = {row["reason"]: row for row in table_rows(tmp_path / "lake" / "quarantine")}
    reasons = ["no header cluster", "no header position", "no heartbeats: its bytes are not those that were sent"]
    assert sorted(found) == [f"NOT_SHIPPED: {reason}" for reason in reasons]
    assert {(row["cluster"], row["broker"], row["origin"]) for row in found.values()} == {("", "", f"{topic}-0")}
    assert "\\x1b[31m" in found["NOT_SHIPPED: no header position"]["raw"]
    ship(broker, logs / "one" / "broker-2", "one", "broker-2", topic, tmp_path / "state-2.json")
    admin = AdminClient({"bootstrap.servers": broker.bootstrap})
    ends = [TopicPartition(topic, number, -1) for number in range(PARTITIONS)]
    lows = {partition.partition: deleted.result(30).low_watermark for partition, deleted in admin.delete_records(ends).items()}
    ship(broker, logs / "one" / "broker-2", "three", "broker-2", topic, tmp_path / "state-3.json")
    with pytest.raises(QueryFailedError, match="--accept-loss"):
        run(spark, tmp_path / "lake", topic=TopicInput(broker.bootstrap, topic))
    done = run(spark, tmp_path / "lake", topic=TopicInput(broker.bootstrap, topic, accept_loss=True))
    assert done.added["events"] > 500
    lost = [row for row in table_rows(tmp_path / "lake" / "quarantine") if row["reason"].startswith("RECORDS_DELETED")]
    deleted = {f"{topic}-{number}": low for number, low in lows.items()}
    assert {row["origin"]: row["position"] + int(row["reason"].split()[1].replace(",", "")) for row in lost} == deleted
    assert sum(int(row["reason"].split()[1].replace(",", "")) for row in lost) == done.added["quarantined"] > 0


def test_records_that_wait_are_counted_and_a_topic_that_was_made_again_is_another_one(spark, broker, logs, tmp_path):
    topic, most, lake = make_topic(broker, "made-again", 1), 2_000, tmp_path / "lake"
    ship(broker, logs / "one" / "broker-2", "one", "broker-2", topic, tmp_path / "state.json", "--raw")
    reader = Consumer({"bootstrap.servers": broker.bootstrap, "group.id": "reader"})
    _, records = reader.get_watermark_offsets(TopicPartition(topic, 0), timeout=PATIENCE_SECONDS)
    reader.close()
    outcome = run(spark, lake, topic=TopicInput(broker.bootstrap, topic, max_offsets=most))
    rows = [row for row in reading.read_rows(lake / "pipeline_health") if row.query == "ingest-topic"]
    assert [row.lag_events for row in rows] == [max(records - end, 0) for end in range(most, records + most, most)]
    assert len(rows) > 1
    assert sum(row.input_rows for row in rows) == outcome.added["lines_read"] > 0
    assert judge(lake)[0] == 0
    admin = AdminClient({"bootstrap.servers": broker.bootstrap})
    admin.delete_topics([topic])[topic].result(30)
    wait_until(lambda: topic not in admin.list_topics(timeout=PATIENCE_SECONDS).topics)
    make_topic(broker, topic)
    with pytest.raises(UserError, match="was deleted and made again"):
        run(spark, lake, topic=TopicInput(broker.bootstrap, topic))
