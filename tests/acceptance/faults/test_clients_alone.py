"""Logs of clients alone: the group that a log names anywhere is that of its lines, and what the clients say of themselves is told."""

import json

import pytest

pytestmark = pytest.mark.slow


def found(told, cluster):
    rows = sorted(told.rows("findings", cluster), key=lambda row: row["occurred_at"])
    return [(row["group_id"], row["code"], row["client_id"]) for row in rows]


def test_a_storm_that_one_worker_of_connect_sees(told):
    (storm,) = told.rows("findings", "clients-only-in")
    assert (storm["group_id"], storm["code"], storm["client_id"], storm["occurred_at"]) == ("g1", "REBALANCE_STORM", "w1", 1740856008000)
    details = json.loads(storm["details"])
    assert (details["rebalances"], details["span_ms"], details["failed"]) == (20, 4_180, 20)
    assert "No broker's log shows who began these rebalances." in storm["message"]
    assert "max.poll" not in storm["advice"]
    assert told.rows("rebalances", "clients-only-in") == []


def test_the_group_that_librdkafka_names_before_and_after_its_poll_timeout(told):
    assert found(told, "group-in-unread-lines-in") == [("g1", "POLL_TIMEOUT", "rdkafka")]
    (stall,) = told.rows("findings", "group-in-unread-lines-in")
    assert (stall["occurred_at"], json.loads(stall["details"])) == (1740837834520, {"max_poll_interval_ms": 6_000})


def test_the_group_that_kafka_python_names_in_other_lines(told):
    assert found(told, "group-in-unread-lines-in2") == [("g1", "NO_HEARTBEAT_RESPONSE", None)]
    (silence,) = told.rows("findings", "group-in-unread-lines-in2")
    assert silence["message"].endswith("and then learned that the group had removed it.")


def test_a_member_of_the_consumer_protocol_that_reconciles_slowly(told):
    states = [
        (row["occurred_at"], row["generation"], row["state"])
        for row in told.rows("group_events", "java-consumer-protocol-client-in", client_id="c1")
    ]
    assert (1740848087217, 2, "STABLE") in states
    assert found(told, "java-consumer-protocol-client-in") == [("g1", "STUCK_RECONCILING", "c1")]
    (slow,) = told.rows("findings", "java-consumer-protocol-client-in")
    assert (slow["occurred_at"], slow["generation"], json.loads(slow["details"])) == (1740848460000, 2, {"waited_ms": 40_000})


def test_clients_of_many_kinds(told):
    assert found(told, "clients-of-many-kinds-in") == [
        ("billing", "UNKNOWN_MEMBER", "billing-api"),
        ("ingest", "POLL_TIMEOUT", "logstash-0"),
        ("ingest", "ZOMBIE_COMMIT", "logstash-0"),
        ("images", "POLL_TIMEOUT", None),
        ("totals", "NO_HEARTBEAT_RESPONSE", "totals-StreamThread-1-consumer"),
    ]
    (logstash,) = told.rows("findings", "clients-of-many-kinds-in", group_id="ingest", code="POLL_TIMEOUT")
    assert "max_poll_records of the kafka input" in logstash["advice"]
