"""A real broker and real consumers: what they did stands in the tables, by records, by polls, and by both beside the broker's log."""

import base64
import json
import multiprocessing
import shutil
import signal
import subprocess
import sys
import time
from collections import Counter

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient

from jobs.cli.entry import main
from jobs.common.settings import Settings
from jobs.demo.consumers import CLASSIC, CONSUMER, LIBRDKAFKA
from jobs.kafka.clients import Cluster
from jobs.kafka.dump_offsets import dump_to_file
from jobs.kafka.offsets_capture import OffsetsFrom
from jobs.kafka.poll import Poller
from jobs.lakehouse.reader import table_rows
from jobs.pipeline import run as pipeline
from jobs.pipeline.at_once import process
from tests.lab.further_consumers import FurtherConsumers
from tests.live.shipping import PROJECT
from tests.waiting import PATIENCE_SECONDS, wait_until

pytestmark = [pytest.mark.spark, pytest.mark.slow]

GROUP, NEW_GROUP, SIMPLE = "orders-app", "parcels-app", "bookkeeper"
SESSION_MS = 20_000  # on a busy machine, too, a consumer is heard in time


def produce(broker, topic, records):
    """Writes records into the first partition of a topic."""
    producer = Producer({"bootstrap.servers": broker.bootstrap})
    for _ in range(records):
        producer.produce(topic, b"", partition=0)
    producer.flush()


def commit(broker, offset):
    """Of the first partition, by a group without members."""
    simple = Consumer({"bootstrap.servers": broker.bootstrap, "group.id": SIMPLE})
    simple.commit(offsets=[TopicPartition("orders", 0, offset)], asynchronous=False)
    simple.close()


def commit_simply(broker, folder):
    """Eight records, of which a group without members commits five, and then all; a poll sees both."""
    produce(broker, "orders", 8)
    commit(broker, 5)
    wait_until(lambda: offsets_polled(folder, SIMPLE), [("orders-0", 5, 8)])
    commit(broker, 8)
    wait_until(lambda: offsets_polled(folder, SIMPLE)[1:], [("orders-0", 8, 8)])


def start(name, *options):
    """A command of `rebalance`."""
    return subprocess.Popen([sys.executable, "-m", "jobs.cli", name, *options], cwd=PROJECT)


def end(process):
    process.send_signal(signal.SIGTERM)
    assert process.wait(PATIENCE_SECONDS) == 0


def lines_of(folder, group):
    """What the poller wrote of a group."""
    lines = [json.loads(line) for path in sorted(folder.rglob("poll-*.jsonl")) for line in path.read_text().splitlines()]
    return [line for line in lines if line.get("group") == group]


def offsets_polled(folder, group):
    """The partitions with the committed offsets and ends that polls tell of a group, one after the other."""
    return [(name, *pair) for offsets in told(folder, group, "offsets") for name, pair in offsets.items()]


def told(folder, group, name):
    """A field of those lines of a group that have it."""
    return [line[name] for line in lines_of(folder, group) if name in line]


def last_poll(folder, group):
    """What the poller last wrote of a group: its state, and its clients once all of them have partitions."""
    polled = [line for line in lines_of(folder, group) if "members" in line]
    members = polled[-1]["members"] if polled else []
    return (polled[-1]["state"], sorted(m["client_id"] for m in members)) if all(m["partitions"] for m in members) and polled else None


@pytest.fixture(scope="module")
def recorded(broker, tmp_path_factory):
    """c1 joins and commits, c2 joins, c2 leaves, c3 joins, c3 is killed, c1 leaves, the group is deleted. Polled and dumped.

    In a group of the consumer protocol: n1 joins and commits, n2 joins, n2 leaves, n1 leaves. A group without members commits twice.
    """
    folder = tmp_path_factory.mktemp("recorded")
    broker.create_topic("orders", 6)
    admin = AdminClient({"bootstrap.servers": broker.bootstrap})
    poller = start("poll", "--bootstrap", broker.bootstrap, "--out", str(folder / "poll"), "--every", "200ms", "--cluster", "live")

    def polled(state, *clients, group=GROUP):
        wait_until(lambda: last_poll(folder / "poll", group), (state, list(clients)))

    try:
        with FurtherConsumers(broker.bootstrap) as consumers:

            def joins(name, group=GROUP, protocol=CLASSIC):
                return consumers.start(LIBRDKAFKA, group, name, "orders", protocol=protocol, session_ms=SESSION_MS)

            new_one = joins("n1", NEW_GROUP, CONSUMER)
            one = joins("c1")
            polled("Stable", "c1")
            polled("Stable", "n1", group=NEW_GROUP)
            for consumer, group in ((one, GROUP), (new_one, NEW_GROUP)):
                consumer.command("commit")  # the first record of each partition
                wait_until(lambda group=group: ("orders-0", 0, 0) in offsets_polled(folder / "poll", group))
            two = joins("c2")
            new_two = joins("n2", NEW_GROUP, CONSUMER)
            polled("Stable", "c1", "c2")
            commit_simply(broker, folder / "poll")
            two.leave()
            polled("Stable", "c1")
            polled("Stable", "n1", "n2", group=NEW_GROUP)
            new_two.leave()
            three = joins("c3")
            polled("Stable", "c1", "c3")
            three.kill()
            polled("Stable", "c1")
            polled("Stable", "n1", group=NEW_GROUP)
            new_one.leave()
            one.leave()
            polled("Empty")
            polled("Empty", group=NEW_GROUP)
        admin.delete_consumer_groups([GROUP])[GROUP].result(60)
        polled("Dead")
        end(poller)
    finally:
        poller.kill()
        poller.wait()
    assert main(["dump-offsets", "--bootstrap", broker.bootstrap, "--out", str(folder / "offsets/live/offsets/all.jsonl"), "--all"]) == 0
    both = folder / "both" / "live"
    shutil.copytree(folder / "offsets" / "live", both)
    shutil.copytree(folder / "poll" / "live", both, dirs_exist_ok=True)
    (both / "broker-1").mkdir()
    shutil.copy(broker.logs / "server.log", both / "broker-1")
    (folder / "log" / "live").mkdir(parents=True)
    shutil.copytree(both / "broker-1", folder / "log" / "live" / "broker-1")
    return folder


@pytest.fixture(scope="module")
def by_records(recorded, tmp_path_factory):
    return tables(recorded / "offsets", tmp_path_factory.mktemp("by-records") / "lake")


@pytest.fixture(scope="module")
def polled(recorded, tmp_path_factory):
    """The lakehouse of what was polled."""
    lakehouse = tmp_path_factory.mktemp("by-polls") / "lake"
    assert process(recorded / "poll", lakehouse, settings=Settings(shards=8), most_lines=50_000)
    return lakehouse


def tables(source, lakehouse, group=GROUP):
    assert process(source, lakehouse, settings=Settings(shards=8), most_lines=50_000)
    return of_group(lakehouse, group)


def of_group(lakehouse, group=GROUP):
    names = ("rebalances", "group_transitions", "member_sessions", "findings", "quarantine", "input_lines")
    found = {name: table_rows(lakehouse / name) for name in names}
    assert found["quarantine"] == []
    return {
        name: sorted((row for row in rows if row.get("group_id") == group), key=lambda r: r.get("ended_at") or r["occurred_at"])
        if name not in {"quarantine", "input_lines"}
        else rows
        for name, rows in found.items()
    }


WHAT_WAS_DONE = [
    ("MEMBER_JOINED", "c1", 0, 1),
    ("MEMBER_JOINED", "c2", 1, 2),
    ("UNKNOWN", None, 2, 1),
    ("MEMBER_JOINED", "c3", 1, 2),
    ("UNKNOWN", None, 2, 1),
    ("UNKNOWN", None, 1, 0),
]


def summary(rows):
    return [(r["cause"], r["client_id"], r["members_before"], r["members_after"]) for r in rows["rebalances"]]


def test_records_alone(recorded, by_records):
    rows = by_records
    assert summary(rows) == WHAT_WAS_DONE
    assert [r["generation"] for r in rows["rebalances"]] == [1, 2, 3, 4, 5, 6]
    assert [len(r["left"]) for r in rows["rebalances"]] == [0, 0, 1, 0, 1, 1]
    assert [(r["partitions"], r["partitions_moved"]) for r in rows["rebalances"][:5]] == [(6, 0), (6, 3), (6, 3), (6, 3), (6, 3)]
    assert [r["outcome"] for r in rows["rebalances"]] == [*["COMPLETED"] * 5, "EMPTIED"]
    assert {(s["client_id"], s["client_host"], s["end_kind"], s["session_timeout_ms"]) for s in rows["member_sessions"]} == {
        (name, "127.0.0.1", "UNKNOWN", SESSION_MS) for name in ("c1", "c2", "c3")
    }
    assert rows["group_transitions"][-1]["to_state"] == "Dead"
    (counted,) = rows["input_lines"]
    lines = (recorded / "offsets" / "live" / "offsets" / "all.jsonl").read_text().count("\n")
    assert counted["lines_read"] == lines == counted["skipped"] + counted["events"]
    assert counted["skipped"] == 1  # its first line


def test_offsets_that_groups_committed(recorded, polled, tmp_path):
    """By records and by polls, of a classic group, of one of the consumer protocol, and of one without members."""
    assert process(recorded / "offsets", tmp_path / "offsets", settings=Settings(shards=8), most_lines=50_000)
    events = {name: table_rows(lake / "group_events") for name, lake in (("offsets", tmp_path / "offsets"), ("poll", polled))}
    (topic_id,) = {ids["orders"] for group in (GROUP, NEW_GROUP, SIMPLE) for ids in told(recorded / "poll", group, "ids")}
    for group, committed in ((SIMPLE, {5, 8}), (GROUP, {0, -1}), (NEW_GROUP, {0})):
        stored = offsets_in(events["offsets"], "OFFSETS_STORED", group)
        assert {row["offset"] for row in stored if row["partition"] == "orders-0"} >= committed, group
        assert {row["topic_id"] for row in stored if row["offset"] >= 0} <= {topic_id, None}, group
        seen = offsets_in(events["poll"], "OFFSETS_POLLED", group)
        assert {row["offset"] for row in seen if row["partition"] == "orders-0"} >= committed - {-1}, group
        assert all(row["offset"] <= row["end"] <= 8 for row in seen), group
        assert 8 in {row["end"] for row in seen if row["partition"] == "orders-0"}, group
        assert {row["topic_id"] for row in seen} - {None} == {topic_id}, group


def offsets_in(rows, kind, group):
    return [offset for row in rows if (row["kind"], row["group_id"]) == (kind, group) for offset in row["offsets"]]


@pytest.mark.long
def test_small_slices_of_records_give_the_same_tables(spark, recorded, by_records, tmp_path):
    settings = Settings(shards=8, slice_lines=100)
    assert pipeline.run(recorded / "offsets", tmp_path / "many", settings=settings, once=True, spark=spark).late_events == 0
    cut = of_group(tmp_path / "many")
    for name in ("rebalances", "group_transitions", "member_sessions"):
        assert [r | {"batch_id": 0} for r in cut[name]] == [r | {"batch_id": 0} for r in by_records[name]]


def test_polls_alone(polled):
    rows = of_group(polled)
    # What was the first that a poll saw may be the first rebalance already under way.
    assert summary(rows)[-5:] == WHAT_WAS_DONE[-5:]
    assert len(rows["rebalances"]) in {5, 6}
    assert {r["generation"] for r in rows["rebalances"]} == {None}
    assert rows["group_transitions"][-1]["to_state"] == "Dead"
    assert main(["check", "--lakehouse", str(polled)]) == 0


def test_polls_of_a_group_of_the_consumer_protocol(polled):
    """Each rebalance with who came or went, and no epoch."""
    rows = of_group(polled, NEW_GROUP)
    told = [("MEMBER_JOINED", "n2", 1, 2), ("UNKNOWN", None, 2, 1), ("UNKNOWN", None, 1, 0)]
    assert summary(rows)[-3:] == told
    assert len(rows["rebalances"]) in {3, 4}  # the first poll may have seen the first rebalance under way
    assert [(r["partitions"], r["partitions_moved"]) for r in rows["rebalances"]][-3:-1] == [(6, 3), (6, 3)]
    assert {(r["group_protocol"], r["generation"], r["rounds"]) for r in rows["rebalances"]} == {("consumer", None, None)}
    assert {(s["client_id"], s["client_host"], s["end_kind"]) for s in rows["member_sessions"]} == {
        (name, "127.0.0.1", "UNKNOWN") for name in ("n1", "n2")
    }
    assert rows["group_transitions"][-1]["to_state"] == "Empty"


def test_beside_the_brokers_log_nothing_is_told_twice(recorded, tmp_path):
    log = tables(recorded / "log", tmp_path / "log")
    both = tables(recorded / "both", tmp_path / "both")
    told = ("generation", "started_at", "joined_at", "ended_at", "outcome", "cause", "reason", "client_id", "joined", "left")
    assert [[r[c] for c in told] for r in both["rebalances"]] == [[r[c] for c in told] for r in log["rebalances"]]
    causes = [r["cause"] for r in both["rebalances"]]
    assert causes == ["MEMBER_JOINED", "MEMBER_JOINED", "MEMBER_LEFT", "MEMBER_JOINED", "SESSION_TIMEOUT", "MEMBER_LEFT"]
    assert [f["code"] for f in both["findings"]] == [f["code"] for f in log["findings"]]
    assert [r["partitions_moved"] for r in log["rebalances"]] == [None] * 6
    assert [r["partitions_moved"] for r in both["rebalances"]][1:5] == [3, 3, 3, 3]


def test_the_pipeline_reads_the_cluster_itself_and_goes_on_with_the_next_run(spark, broker, recorded, tmp_path):
    offsets = OffsetsFrom(broker.bootstrap, "live", commits=True)

    def run(source):
        return pipeline.run(source, tmp_path / "lake", settings=Settings(shards=8), once=True, spark=spark, offsets=offsets)

    def stored():
        return Counter(row["origin"] for row in table_rows(tmp_path / "lake" / "group_events") if row["kind"] == "OFFSETS_STORED")

    assert run(None).late_events == 0
    done = sorted((r for r in table_rows(tmp_path / "lake" / "rebalances") if r["group_id"] == GROUP), key=lambda row: row["ended_at"])
    assert summary({"rebalances": done}) == WHAT_WAS_DONE
    assert json.loads(done[0]["evidence"])[0]["origin"] == "live/offsets/captured.jsonl"
    before = stored()
    assert before
    assert run(recorded / "log").added["lines_read"] > 100  # of the log alone: the topic has nothing new
    assert stored() == before


def test_who_asks_for_offsets_may_be_killed(broker, recorded):  # noqa: ARG001 - groups were there
    poller = Poller(Cluster(broker.bootstrap), offsets_each=1)

    def polled():
        return [line for line in poller.poll() if "offsets" in line]

    first = polled()
    assert first
    assert polled() == [], "nothing has changed"
    (child,) = multiprocessing.active_children()
    child.kill()
    child.join()
    assert polled() == [], "it is gone"
    assert [line["offsets"] for line in polled()] == [line["offsets"] for line in first]


def test_a_dump_that_is_there_is_continued(broker, recorded, tmp_path):
    out = tmp_path / "again.jsonl"
    whole = (recorded / "offsets" / "live" / "offsets" / "all.jsonl").read_text().splitlines(keepends=True)
    out.write_text("".join(whole[:6]) + whole[6][:40])  # the writer was killed amid a line
    for _ in range(2):
        assert main(["dump-offsets", "--bootstrap", broker.bootstrap, "--out", str(out), "--all"]) == 0
        mine = [line for line in out.read_text().splitlines(keepends=True) if line in whole]
        assert mine == whole  # records of later tests may follow
    (tmp_path / "notes.jsonl").write_text("mine\n")
    assert main(["dump-offsets", "--bootstrap", broker.bootstrap, "--out", str(tmp_path / "notes.jsonl")]) == 2
    assert (tmp_path / "notes.jsonl").read_text() == "mine\n"


def test_a_dump_has_commits_only_on_request(broker, recorded, tmp_path):  # noqa: ARG001 - groups were there
    def dumped(*options):
        out = tmp_path / f"dump{len(options)}.jsonl"
        assert main(["dump-offsets", "--bootstrap", broker.bootstrap, "--out", str(out), *options]) == 0
        keys = (json.loads(line)["key"] for line in out.read_text().splitlines()[1:])
        return {int.from_bytes(base64.b64decode(key)[:2], "big") for key in keys}

    groups = dumped()
    assert groups >= {2, 3, 5, 8}
    assert groups.isdisjoint({0, 1})
    assert dumped("--commits") == {1, *groups}


def test_a_dump_goes_on_with_what_comes(broker, tmp_path):
    out = tmp_path / "live" / "offsets" / "follow.jsonl"
    broker.create_topic("refunds", 2)
    follower = start("dump-offsets", "--bootstrap", broker.bootstrap, "--follow", "--out", str(out))
    consumer = Consumer({"bootstrap.servers": broker.bootstrap, "group.id": "refunds-app"})
    try:
        wait_until(lambda: out.exists() and out.read_text())

        def signed():
            consumer.poll(0.1)
            return '"read":' in out.read_text()

        consumer.subscribe(["refunds"])
        wait_until(signed)
        end(follower)
    finally:
        consumer.close()
        follower.kill()
        follower.wait()
    times = [json.loads(line)["timestamp"] for line in out.read_text().splitlines()[1:]]
    assert times[-2:] == sorted(times[-2:])
    assert times[-1] <= time.time() * 1000


def test_time_goes_on_where_nothing_is_written_any_more(recorded, broker, tmp_path):  # noqa: ARG001 - groups were there
    """What was read before the silence is past some time: the sign of life says so, also after a restart that reads nothing."""
    out = tmp_path / "live" / "offsets" / "silent.jsonl"
    counts = []
    for signs in (2, 4):
        dump_to_file(
            Cluster(broker.bootstrap),
            out,
            stopped=lambda: len(signs_of_life(out)) >= signs,  # noqa: B023 - called at once
            follow=True,
            alive_seconds=0.2,
        )
        counts.append(len(out.read_text().splitlines()) - len(signs_of_life(out)))
    times = [json.loads(line)["timestamp"] for line in out.read_text().splitlines()[1:]]
    assert times == sorted(times)
    assert len(set(signs_of_life(out))) == len(signs_of_life(out))
    assert counts[0] == counts[1]  # the second found no record, and went on


def signs_of_life(path):
    """Their times."""
    lines = path.read_text().splitlines() if path.exists() else []
    return [json.loads(line)["timestamp"] for line in lines if '"read":' in line]
