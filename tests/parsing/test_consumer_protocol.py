"""Subscriptions and assignments of a line as entries of its row: of consumers, and of workers of Connect (tests/data/kinds)."""

import base64
import gzip
import json
from functools import cache
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from coordinator_model.kafka_bytes import UnreadableError
from coordinator_model.specification.consumer.consumer_protocol import EmbeddedSubscription, write_assignment, write_subscription
from jobs.parsing import connect_protocol
from jobs.parsing import consumer_protocol as protocol
from jobs.parsing.consumer_protocol import assignment_entry, protocol_entry

OWNED = (("orders", (0, 2)), ("b", ()), ("a", (5,)))
LOGS = sorted((Path(__file__).parents[1] / "data" / "kinds" / "kafka-4.2.0").glob("broker-*/kafka-request.log.gz"))


def test_partitions_are_named_by_topic_and_number():
    data = write_subscription(EmbeddedSubscription(("a", "orders"), OWNED))
    assert protocol.subscription(data, "consumer") == (["a", "orders"], ["orders-0", "orders-2", "a-5"])
    entry = protocol.assignment_entry("m", write_assignment(OWNED, 3), "consumer")
    assert (entry["partitions"], len(entry["digest"])) == (["orders-0", "orders-2", "a-5"], 16)


def test_a_member_that_the_leader_forgot_has_no_partitions():
    assert protocol.assignment_entry("m", b"", "consumer")["partitions"] == []


def test_of_bytes_that_are_unreadable_or_not_there_nothing_is_known():
    assert protocol.subscription(b"{", None) == protocol.subscription(None, "consumer") == (None, None)
    unreadable = protocol.assignment_entry("m", b"{", None)
    assert (unreadable["partitions"], len(unreadable["digest"])) == (None, 16)
    assert protocol.assignment_entry("m", None, "consumer") == {"member_id": "m", "partitions": None, "digest": None}


def test_other_protocol_types_keep_their_digest_alone():
    data = write_subscription(EmbeddedSubscription(("orders",), version=1))
    connect, consumer, unnamed = (protocol.protocol_entry("sessioned", data, kind) for kind in ("connect", "consumer", None))
    assert (connect["topics"], connect["owned"], len(connect["digest"])) == (None, None, 16)
    assert (consumer["topics"], consumer["owned"]) == (["orders"], [])
    assert unnamed == consumer
    assert protocol.assignment_entry("m", write_assignment((), 3), "connect")["partitions"] is None


@cache
def requests(api, group):
    """The requests of a group that were accepted, as they are logged."""
    found = []
    for path in LOGS:
        with gzip.open(path, "rt") as log:
            found += [json.loads(line[line.index("{") : line.rindex("}") + 1]) for line in log if api in line and group in line]
    return [one["request"] for one in found if not one["response"]["errorCode"]]


def assigned(group):
    """By generation and client, what the leader told."""
    told = {}
    for request in requests("SYNC_GROUP", group):
        for entry in request["assignments"]:
            work = connect_protocol.read_assignment(base64.b64decode(entry["assignment"]))
            told[request["generationId"], entry["memberId"][:-37]] = work
    return told


def test_an_incremental_assignment_names_what_changes_and_what_waits():
    told = assigned("connect-lakehouse")
    assert told[6, "connect-worker-a"] == ([], ["pg-orders-source-0", "pg-orders-source-2"], 17, 0)
    assert told[7, "connect-worker-c"].given == ["pg-orders-source-0", "pg-orders-source-2", "warehouse-sink-1", "warehouse-sink-3"]
    assert told[8, "connect-worker-a"] == ([], [], 17, 25_000)
    assert told[12, "connect-worker-c"].given == ["s3-archive-source (connector)"]


def test_an_eager_one_names_all_that_a_worker_has():
    told = assigned("connect-edge")
    assert {(work.revoked, work.delay_ms) for work in told.values()} == {(None, 0)}
    (first, second) = (work for (generation, _), work in told.items() if generation == 4)
    assert sorted(first.given + second.given) == ["mqtt-source (connector)", *(f"mqtt-source-{number}" for number in range(6))]


def test_a_worker_says_what_it_keeps_while_it_rejoins():
    states = [
        protocol_entry(offered["name"], base64.b64decode(offered["metadata"]), "connect")
        for request in requests("JOIN_GROUP", "connect-lakehouse")
        for offered in request["protocols"]
    ]
    assert {state["topics"] is None and state["owned"] is not None for state in states} == {True}
    kept = ["pg-orders-source (connector)", "pg-orders-source-4", "warehouse-sink-0", "warehouse-sink-2", "warehouse-sink-4"]
    assert kept in [state["owned"] for state in states if state["name"] == "sessioned"]
    assert all(state["owned"] == [] for state in states if state["name"] == "default")  # the eager one keeps nothing


def test_other_bytes_are_no_workers():
    assert assignment_entry("m", b"{", "connect")["partitions"] is None
    assert protocol_entry("sessioned", b"http://worker:8083", "connect")["owned"] is None
    assert connect_protocol.read_assignment(b"").given == []


@given(st.binary(max_size=64), st.sampled_from([connect_protocol.read_state, connect_protocol.read_assignment]))
def test_no_bytes_break_the_reader(data, read):
    try:
        read(data)
    except UnreadableError:
        return


@pytest.mark.parametrize(
    ("read", "begins"),
    [(connect_protocol.read_state, b"\0\2" + b"\0\0" + b"\0" * 8), (connect_protocol.read_assignment, b"\0\2" + b"\0\0" * 3 + b"\0" * 8)],
)
def test_a_wrong_count_costs_no_time(read, begins):
    with pytest.raises(UnreadableError):
        read(begins + b"\x7f\xff\xff\xff")
