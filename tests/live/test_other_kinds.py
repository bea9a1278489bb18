"""A Connect cluster, Kafka Streams by both protocols and a share group on a real broker: what is done to them is what is told."""

import json
import shutil
import time
from collections import defaultdict

import pytest

from jobs.answers import ask, questions
from jobs.answers.duckdb_views import QuestionReader
from jobs.common import jars
from jobs.common.settings import Settings
from jobs.common.times import epoch_ms
from jobs.demo.local_broker import LocalBroker
from jobs.lakehouse.reader import table_rows
from jobs.pipeline import at_once
from schemas.names import FINDINGS, MEMBER_SESSIONS, QUARANTINE, REBALANCES
from tests.lab.other_kinds import DELAY_MS, SESSION_MS, Clients, Worker
from tests.waiting import wait_until

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("kafka_jars")]

CONNECT, SINK, COPIER, MERGER, QUEUE = "connect-live", "connect-copies", "copier", "merger", "queue"
SETTINGS = {"group.initial.rebalance.delay.ms": "500", "group.streams.initial.rebalance.delay.ms": "500"}


def played(folder):
    """What was done when, epoch ms. The broker's log is in `folder`."""
    at = {}
    assert jars.main(["clients"]) == 0
    with LocalBroker(folder / "broker", settings=SETTINGS) as broker:
        for topic in ("orders", "copied"):
            broker.create_topic(topic, 4)
        leader = Worker(broker.bootstrap, CONNECT, "worker-a", folder)
        stays, goes = Clients(broker.bootstrap, folder), Clients(broker.bootstrap, folder)
        instances = [
            jvm.streams(group, f"{group}-{number}", "orders", "copied", protocol=protocol)
            for group, protocol in ((COPIER, "classic"), (MERGER, "streams"))
            for number, jvm in enumerate((stays, goes))
        ]
        wait_until(lambda: leader.running("none") == {} and leader.create_sink("copies", "orders", 4))
        other = Worker(broker.bootstrap, CONNECT, "worker-b", folder)
        shares = [(stays, stays.share(QUEUE, f"{QUEUE}-0", "orders")), (goes, goes.share(QUEUE, f"{QUEUE}-1", "orders"))]

        def are_there():
            for jvm, consumer in shares:
                jvm.poll(consumer)
            return [instance.state().toString() for instance in instances]

        wait_until(are_there, ["RUNNING"] * 4)
        wait_until(lambda: sorted(leader.running("copies").values()) == [2, 2])
        at["left"] = time.time() * 1_000
        instances[3].close()
        shares[1][1].close()
        at["killed"] = time.time() * 1_000
        other.kill()
        goes.kill()
        wait_until(lambda: leader.running("copies"), {leader.address: 4})
        at["moved"] = time.time() * 1_000
        wait_until(lambda: "removing member copier-1-" in (broker.logs / "server.log").read_text(encoding="utf-8"))
        broker.stop()  # before the sessions of those that stay can end
        leader.kill()
        stays.kill()
    return at, broker.logs


@pytest.fixture(scope="module")
def scene(tmp_path_factory):
    folder = tmp_path_factory.mktemp("kinds")
    at, logs = played(folder)
    shutil.copytree(logs, folder / "input" / "c" / "broker-1")
    assert at_once.process(folder / "input", folder / "lake", settings=Settings(), most_lines=1 << 30)
    rows = defaultdict(list)
    assert not (folder / "lake" / QUARANTINE).exists() or not list(table_rows(folder / "lake" / QUARANTINE))
    for table in (REBALANCES, FINDINGS, MEMBER_SESSIONS):
        for row in sorted(table_rows(folder / "lake" / table), key=lambda row: str(row.get("started_at"))):
            rows[table, row["group_id"]].append(row)
    return at, rows, folder / "lake"


def test_tasks_of_a_killed_worker_wait_for_the_scheduled_delay(scene):
    at, rows, _ = scene
    (wait,) = [row for row in rows[FINDINGS, CONNECT] if row["code"] == "CONNECT_TASKS_WAIT"]
    told = json.loads(wait["details"])
    assert (wait["client_id"], told["tasks"], told["delay_ms"], told["worker_cause"]) == ("worker-b", 2, DELAY_MS, "SESSION_TIMEOUT")
    # It was last heard before it was killed, and its session had not ended by then.
    assert SESSION_MS + DELAY_MS - 100 <= told["waited_ms"] <= at["moved"] - at["killed"] + SESSION_MS
    (ended,) = [row for row in rows[REBALANCES, CONNECT] if row["cause"] == "DELAY_ENDED"]
    assert (ended["client_id"], ended["partitions_moved"]) == ("worker-b", 2)
    assert ended["unavailable_partition_ms"] > 2 * DELAY_MS


def test_the_connector_that_was_created_is_named(scene):
    _, rows, _ = scene
    changed = [row for row in rows[REBALANCES, CONNECT] if row["cause"] == "CONNECTOR_CHANGED"]
    assert changed
    assert {row["reason"] for row in changed} == {"copies"}
    assert {row["cause"] for row in rows[REBALANCES, CONNECT]} <= {
        *("MEMBER_JOINED", "CONNECTOR_CHANGED", "REVOCATION_FOLLOW_UP", "SESSION_TIMEOUT", "DELAY_ENDED")
    }


def test_who_goes_by_its_session_and_who_leaves(scene):
    at, rows, lake = scene
    ends = {row["client_id"]: row["end_kind"] for group in (COPIER, MERGER, QUEUE) for row in rows[MEMBER_SESSIONS, group]}
    assert ends["copier-1-StreamThread-1-consumer"] == "SESSION_TIMEOUT"
    assert ends["merger-1-StreamThread-1-consumer"] == ends["queue-1"] == "LEFT"
    (silent,) = [row for row in rows[FINDINGS, COPIER] if row["code"] == "SESSION_TIMEOUT"]
    assert "KafkaStreams.close() does not leave the group by itself" in silent["advice"]
    assert epoch_ms(silent["occurred_at"]) > at["killed"]
    groups = ask.BoundQuestion(QuestionReader(lake, keeps=True), questions.load("groups"), {}).answer()
    states = {row[groups.columns.index("group_id")]: row[groups.columns.index("group_protocol")] for row in groups.rows}
    assert {CONNECT: "classic", COPIER: "classic", MERGER: "streams", QUEUE: "share"}.items() <= states.items()
