"""Subscriptions and assignments of a line as entries of its row."""

from coordinator_model.specification.consumer.consumer_protocol import EmbeddedSubscription, write_assignment, write_subscription
from jobs.parsing import consumer_protocol as protocol

OWNED = (("orders", (0, 2)), ("b", ()), ("a", (5,)))


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
