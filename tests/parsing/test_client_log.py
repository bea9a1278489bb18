# ruff: noqa: E501 - lines are as long as clients write them
"""Lines of client logs as Spark reads them: what becomes an event, what is passed over, what is refused."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone

import pytest

from schemas import raw_lines
from tests.parsing.transforming import transform

pytestmark = pytest.mark.spark

START = datetime(2026, 11, 21, 6, tzinfo=timezone.utc)
MEMBER = "pay-1-0a1b2c3d-0000-4000-8000-00000000abcd"
JAVA = "[2026-11-21 06:00:00,000] INFO [Consumer clientId=pay-1, groupId=payments] {} (org.apache.kafka.clients.consumer.internals.ConsumerCoordinator)"
STATIC = "2026-11-21 06:00:00.000  WARN 1 --- [ntainer#0-0-C-1] o.a.k.c.c.internals.ConsumerCoordinator : [Consumer instanceId=i 1, clientId=pay-1, groupId=payments] {}"
RD = "%7|1795240800.000|{}|pay-1#consumer-2| [thrd:main]: {}"

EVENTS = [
    (JAVA.format("Request joining group due to: group is already rebalancing"), None,
     {"kind": "CLIENT_REJOINS", "group_id": "payments", "client_id": "pay-1", "reason": "group is already rebalancing", "connection": None}),
    (JAVA.format(f"Member {MEMBER} sending LeaveGroup request to coordinator h:9092 (id: 2147483646 rack: null) due to the consumer is being closed"), None,
     {"kind": "CLIENT_LEAVES", "member_id": MEMBER, "reason": "the consumer is being closed"}),
    (STATIC.format("consumer poll timeout has expired. This means the time between subsequent calls to poll() was longer than"), None,
     {"kind": "CLIENT_POLL_TIMEOUT", "group_id": "payments", "instance_id": "i 1", "client_id": "pay-1"}),
    (JAVA.format(f"Successfully joined group with generation Generation{{generationId=7, memberId='{MEMBER}', protocol='range'}}"), None,
     {"kind": "CLIENT_JOINED", "generation": 7, "member_id": MEMBER}),
    (JAVA.replace("Consumer", "Worker").format("Request joining group due to: connect worker requested rejoin"), None,
     {"kind": "CLIENT_REJOINS", "reason": "connect worker requested rejoin"}),
    (RD.format("MAXPOLL", "Application maximum poll interval (8000ms) exceeded by 304ms (adjust max.poll.interval.ms for long-running message processing): leaving group"), "payments",
     {"kind": "CLIENT_POLL_TIMEOUT", "group_id": "payments", "client_id": "pay-1", "connection": "pay-1#consumer-2", "rebalance_timeout_ms": 8_000}),
    (RD.format("SESSTMOUT", "Consumer group session timed out (in join-state steady) after 8004 ms without a successful response from the group coordinator (broker -1, last error was Local: Broker transport failure): revoking assignment and rejoining group"), "payments",
     {"kind": "CLIENT_SESSION_TIMEOUT", "session_timeout_ms": 8_004, "reason": "Local: Broker transport failure"}),
    (RD.format("JOINGROUP", f"JoinGroup response: GenerationId 3, Protocol range, LeaderId {MEMBER} (me), my MemberId {MEMBER}, member metadata count 2: (no error)"), "payments",
     {"kind": "CLIENT_JOINED", "generation": 3, "member_id": MEMBER}),
    (RD.format("REBALANCE", 'Group "pay "x" ments" initiating rebalance (EAGER) in state up (join-state steady) with 2 assigned partition(s): Metadata for subscribed topic(s) has changed'), None,
     {"kind": "CLIENT_REJOINS", "group_id": 'pay "x" ments', "reason": "Metadata for subscribed topic(s) has changed"}),
    (RD.format("SUBSCRIBE", 'Group "payments": subscribe to new subscription of 2 topics (join-state steady)'), None,
     {"kind": "CLIENT_REJOINS", "reason": "subscribe to new subscription"}),
]  # fmt: skip
SKIPPED = [
    RD.format("JOINGROUP", 'I am elected leader for group "payments" with 2 member(s)'),
    RD.format("JOINGROUP", "JoinGroup response: GenerationId -1, Protocol , LeaderId , my MemberId , member metadata count 0: Broker: Not coordinator"),
    RD.format("SUBSCRIBE", 'Group "payments": subscribe to new subscription of 2 topics (join-state init)'),
    RD.format("REBALANCE", 'Group "payments" initiating rebalance (EAGER) in state up (join-state wait-metadata) with 0 assigned partition(s): Metadata for subscribed topic(s) has changed'),
    "2026-11-21 06:00:00,000 INFO com.acme.Billing - Request joining group due to: my own words, groupId=payments",
    JAVA.format("Subscribed to topic(s): orders"),
]  # fmt: skip
REFUSED = [
    (RD.format("MAXPOLL", "Application maximum poll interval (8000ms) exceeded by 304ms (adjust max.poll.interval.ms): leaving group"), "NO_GROUP"),
    (RD.format("MAXPOLL", "Application maximum pole interval"), "UNKNOWN_TEMPLATE"),
    (JAVA.format("Request joining group due to: \x1b[31mred"), "CONTROL_CHARACTERS"),
    (JAVA.format("Request joining group due to: " + "x" * 70_000), "TOO_LONG"),
]  # fmt: skip


@pytest.fixture(scope="module")
def told(spark):
    lines = [*EVENTS, *((text, "payments") for text in SKIPPED), *((text, None) for text, _ in REFUSED)]
    rows = [
        ("c", "clients", "line", "clients/app.log", n, START + timedelta(milliseconds=n), text, None, 1, context)
        for n, (text, context, *_) in enumerate(lines)
    ]
    return transform(spark.createDataFrame(rows, raw_lines.SCHEMA)).orderBy("position").collect()


@pytest.mark.parametrize("place", range(len(EVENTS)), ids=[f"{e[2]['kind']} {e[0][:12]}" for e in EVENTS])
def test_events(told, place):
    row, expected = told[place], EVENTS[place][2]
    assert (row["verdict"], row["source"], row["refusal"]) == ("event", "client", None)
    assert {name: row[name] for name in expected} == expected
    assert row["received_at"] == row["occurred_at"]


def test_what_says_nothing_is_skipped(told):
    rows = told[len(EVENTS) : len(EVENTS) + len(SKIPPED)]
    assert [(row["verdict"], row["refusal"]) for row in rows] == [("skipped", None)] * len(SKIPPED)


def test_what_is_damaged_is_refused(told):
    rows = told[len(EVENTS) + len(SKIPPED) :]
    assert [(row["verdict"], row["refusal"]) for row in rows] == [("quarantine", reason) for _, reason in REFUSED]
