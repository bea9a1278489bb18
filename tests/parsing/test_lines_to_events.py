"""Lines in, rows of group_events out: lines as brokers write them."""

import gzip
import itertools
import json
from collections import Counter
from datetime import datetime, timedelta, timezone
from pathlib import Path

import pytest

from coordinator_model import events as e
from jobs.parsing import batch
from schemas.names import GROUP_EVENTS
from schemas.tables import arrow_schema_of
from tests.parsing.reading import read_lines
from tests.parsing.test_requests import line

RECORDINGS = Path(__file__).parents[1] / "data" / "recordings"
PREFIX = "[2026-11-21 05:10:07,099] INFO [GroupCoordinator id=1 topic=__consumer_offsets partition=3]"
START = datetime(2026, 11, 21, 5, 10, 7, 99_000, tzinfo=timezone.utc)


def records(lines):
    return [("c", "b", "line", "f.log", n, START + timedelta(milliseconds=n), text, None, 1, None, None) for n, text in enumerate(lines, 1)]


def read_one(text):
    """The event of a request line."""
    (event,) = batch.events(read_lines(records([text])), 7).to_pylist()
    return event


def parsed(*lines):
    """Events of lines, as dicts, and the verdicts by position."""
    told = read_lines(records(lines))
    return batch.events(told, 7).to_pylist(), {row["position"]: (row["verdict"], row["refusal"]) for row in told.to_pylist()}


JOIN = {"groupId": "g", "sessionTimeoutMs": 9000, "rebalanceTimeoutMs": 12000, "memberId": "", "groupInstanceId": None,
        "protocolType": "consumer", "protocols": [{"name": "range", "metadata": "AAMAAAABAAZvcmRlcnMAAAAAAAAAAP////8AAA=="}]}  # fmt: skip
JOINED = {"throttleTimeMs": 0, "errorCode": 0, "generationId": 1, "protocolName": "range", "leader": "m-1", "memberId": "m-1",
          "members": [{"memberId": "m-1", "groupInstanceId": None, "metadata": "AAMAAAABAAZvcmRlcnMAAAAAAAAAAP////8AAA=="}]}  # fmt: skip


def test_join_group_with_its_subscription_decoded():
    event = read_one(line(e.JOIN_GROUP, 5, JOIN, JOINED))
    assert (event["kind"], event["group_id"], event["member_id"], event["answer_member_id"]) == ("JOIN_GROUP", "g", "", "m-1")
    assert (event["answer_generation"], event["leader_id"], event["protocol"], event["session_timeout_ms"]) == (1, "m-1", "range", 9000)
    assert (event["client_id"], event["client_host"], event["software"]) == ("b1", "10.0.0.9", "apache-kafka-java 3.6.0")
    assert event["protocols"][0]["topics"] == ["orders"]
    assert event["members"][0]["topics"] == ["orders"]
    assert event["occurred_at"] - event["received_at"] == timedelta(milliseconds=5.305)
    assert event["batch_id"] == 7


@pytest.mark.parametrize(
    ("version", "body", "answer", "members"),
    [
        (1, {"groupId": "g", "memberId": "m-1"}, {"throttleTimeMs": 0, "errorCode": 0}, None),
        (
            4,
            {"groupId": "g", "members": [{"memberId": "m-1", "groupInstanceId": None}, {"memberId": "", "groupInstanceId": "i"}]},
            {"throttleTimeMs": 0, "errorCode": 0, "members": [
                {"memberId": "m-1", "groupInstanceId": None, "errorCode": 0}, {"memberId": "", "groupInstanceId": "i", "errorCode": 25},
            ]},
            [("m-1", 0), ("", 25)],
        ),
    ],
)  # fmt: skip
def test_both_shapes_of_leave_group(version, body, answer, members):
    event = read_one(line(e.LEAVE_GROUP, version, body, answer))
    if members is None:
        assert event["member_id"] == "m-1"
    else:
        assert [(m["member_id"] or "", m["error_code"]) for m in event["members"]] == members


def test_what_is_wrong_with_a_line():
    good = line(e.JOIN_GROUP, 5, JOIN, JOINED)
    damaged = {
        "cut": good[:400],
        "nested wrong": good.replace('"members":[', '"members":[[', 1),
        "another type": good.replace('"groupId":"g"', '"groupId":["g"]', 1),
        "another type of text": good.replace('"groupId":"g"', '"groupId":true', 1),
        "a version of the future": good.replace('"requestApiVersion":5', '"requestApiVersion":42', 1),
        "no body": good.replace('"request":' + json.dumps(JOIN, separators=(",", ":")), '"request":""', 1),
        "another api": good.replace('"requestApiKey":11', '"requestApiKey":14', 1),
        "no group": good.replace('"groupId":"g",', "", 1),
        "no such error": good.replace('"errorCode":0', '"errorCode":7777', 1),
        "a coordinator line cut": f"{PREFIX} Preparing to reb",
        "a coordinator line nobody writes": f"{PREFIX} Stabilised grüp x. (org.apache.kafka.coordinator.group.GroupMetadataManager)",
    }
    assert len(set(damaged.values()) | {good}) == len(damaged) + 1
    events, verdicts = parsed(good, *damaged.values())
    assert [event["position"] for event in events] == [1]
    assert {name: verdicts[n][0] for n, name in enumerate(damaged, 2)} == dict.fromkeys(damaged, "quarantine")


def test_lines_of_other_matters_are_skipped():
    _, verdicts = parsed(
        line("FETCH", 18, {"replicaId": -1}, {"errorCode": 0}),
        "[2026-11-21 05:10:07,099] INFO [UnifiedLog partition=orders-0, dir=/data] Deleting segments (kafka.log.UnifiedLog)",
        "\tat kafka.coordinator.group.GroupCoordinator.onCompleteJoin(GroupCoordinator.scala:1)",
        "\tgroup.coordinator.threads = 1",
        "",
    )
    assert {verdict for verdict, _ in verdicts.values()} == {"skipped"}


def time_of(line):
    return datetime.strptime(line[1:24], "%Y-%m-%d %H:%M:%S,%f").replace(tzinfo=timezone.utc)


def test_runs_of_any_batching_hold_the_same_heartbeats():
    path = RECORDINGS / "kafka-3.9.1" / "broker-1" / "kafka-request.log.gz"
    with gzip.open(path, "rt", encoding="utf-8") as file:
        lines = [line.rstrip("\n") for line in file if '"HEARTBEAT"' in line][:1500]

    def beats(*cuts):
        found = Counter()
        made = 0
        for start, end in itertools.pairwise(cuts):
            rows = [
                ("c", "b", "line", "f", n, time_of(line), line, None, 1, None, None) for n, line in enumerate(lines[start:end], start + 1)
            ]
            for row in batch.events(read_lines(rows), 0).to_pylist():
                made += 1
                assert row["lines"] == row["beat_count"] == len(row["beats"]) == len(row["positions"])
                first = row["received_at"].timestamp() * 1000 // 1
                for beat, position in zip(row["beats"], row["positions"], strict=True):
                    found[row["member_id"], row["generation"], row["error_code"], round(first + beat), position] += 1
        return found, made

    whole, rows = beats(0, len(lines))
    assert sum(whole.values()) == len(lines)
    assert rows < len(lines) / 4
    assert beats(0, 11, 400, 401, 1100, len(lines))[0] == whole


def test_rows_are_what_the_schema_says():
    rows = [("c", "b", "line", "f.log", 1, START, line(e.JOIN_GROUP, 5, JOIN, JOINED), None, 1, None, None)]
    assert batch.events(read_lines(rows), 1).schema == arrow_schema_of(GROUP_EVENTS)


def test_lines_about_brokers_name_the_nodes_and_no_group():
    def logged(text):
        return f"[2026-11-21 05:10:07,099] INFO {text}"

    lost = "[ReplicaFetcher replicaId=1, leaderId=3, fetcherId=0] Error sending fetch request (sessionId=14, epoch=1891) to node 3:"
    events, verdicts = parsed(
        logged("[BrokerServer id=2] Transition from STARTING to STARTED (kafka.server.BrokerServer)"),
        logged(f"{lost} (org.apache.kafka.clients.FetchSessionHandler)"),
        logged("[Controller id=1] Newly added brokers: , deleted brokers: 3,4, all live brokers: 1,2 (kafka.controller.KafkaController)"),
        logged("Recovering 71 logs from /data since no clean shutdown file was found (kafka.log.LogManager)"),
        logged("[BrokerServer id=2] Something new (kafka.server.BrokerServer)"),
    )
    assert [(event["position"], event["kind"], event["coordinator_id"], event["lines"]) for event in events] == [
        (1, "BROKER_STARTED", 2, 1),
        (2, "BROKER_UNREACHABLE", 3, 1),
        (4, "BROKER_UNCLEAN", None, 1),
        (3, "BROKER_FENCED", 3, 1),
        (3, "BROKER_FENCED", 4, 0),
    ]
    assert {(event["source"], event["group_id"], event["coordinator_partition"]) for event in events} == {("broker", None, None)}
    assert verdicts[5] == ("skipped", None)


@pytest.mark.parametrize(
    ("sentence", "release"),
    [
        ("Kafka version: 4.4.0", "4.4.0"),
        ("Kafka version : 0.10.2.2", "0.10.2.2"),
        ("Kafka version : 1.1.0-cp1", "1.1.0"),
        ("Kafka version: 3.6.0.redhat-00005", "3.6.0"),
        ("Kafka version: 4.4.0-SNAPSHOT", "4.4.0"),
        ("Kafka version: 7.6.0-ccs", None),  # Confluent's number: it is Kafka 3.6
        ("Kafka version: 7.6.10-ce", None),
        ("Kafka version: unknown", None),
        ("Kafka commitId: a18251bae0b825c6", None),
    ],
)
def test_a_broker_that_starts_says_which_release_it_runs(sentence, release):
    """As AppInfoParser.AppInfo writes it, in the recordings of 0.9 to 4.4."""
    package = "org.apache.kafka.common.utils" + ".internals" * ("4.4" in sentence)
    events, verdicts = parsed(f"[2026-11-21 05:10:07,099] INFO {sentence} ({package}.AppInfoParser)")
    assert verdicts[1] == ("skipped" if release is None else "event", None)
    assert [(event["kind"], event["source"], event["broker"], event["software"], event["reason"]) for event in events] == (
        [] if release is None else [("BROKER_RELEASE", "broker", "b", release, sentence)]
    )
