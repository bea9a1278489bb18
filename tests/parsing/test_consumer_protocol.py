"""Subscriptions and assignments of every version, as Kafka's clients encode them."""

from __future__ import annotations

import base64
import contextlib
import struct

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyspark.sql.pandas.types import to_arrow_schema

from jobs.parsing import consumer_protocol as protocol
from jobs.parsing.rows import PARSED

TOPIC = "orders"


def text(value):
    data = value.encode()
    return struct.pack(">h", len(data)) + data


def array(items):
    return struct.pack(">i", len(items)) + b"".join(items)


def partitions(owned):
    return array([text(topic) + array([struct.pack(">i", number) for number in numbers]) for topic, numbers in owned.items()])


def subscription(version, topics, owned=None, *, user_data=b"\xff\xff\xff\xff", rack=None):
    data = struct.pack(">h", version) + array([text(topic) for topic in topics]) + user_data
    if version >= 1:
        data += partitions(owned or {})
    if version >= 2:
        data += struct.pack(">i", 7)
    if version >= 3:
        data += b"\xff\xff" if rack is None else text(rack)
    return data


def assignment(version, owned, user_data=b"\xff\xff\xff\xff"):
    return struct.pack(">h", version) + partitions(owned) + user_data


@pytest.mark.parametrize("version", [0, 1, 2, 3])
@pytest.mark.parametrize("user_data", [b"\xff\xff\xff\xff", b"\x00\x00\x00\x00", b"\x00\x00\x00\x03abc"])
def test_subscription(version, user_data):
    data = subscription(version, ["a", TOPIC], {TOPIC: [0, 2], "b": []}, user_data=user_data)
    assert protocol.decode_subscription(data) == (["a", TOPIC], ["orders-0", "orders-2"] if version else [])


def test_subscription_with_a_rack():
    assert protocol.decode_subscription(subscription(3, [TOPIC], rack="eu-1a")) == ([TOPIC], [])


def test_a_newer_version_is_read_as_the_newest_known_and_its_additions_are_left():
    assert protocol.decode_subscription(subscription(9, [TOPIC]) + b"more") == ([TOPIC], [])
    assert protocol.decode_assignment(assignment(9, {TOPIC: [1]}) + b"more") == ["orders-1"]


@pytest.mark.parametrize("version", [0, 1, 2, 3])
def test_assignment(version):
    assert protocol.decode_assignment(assignment(version, {TOPIC: [0, 1], "b": [5]})) == ["orders-0", "orders-1", "b-5"]


def test_no_bytes_are_no_partitions():
    assert protocol.decode_assignment(b"") == []


def test_real_blobs():
    java = "AAMAAAABAAZvcmRlcnP/////AAAAAP///////w=="  # kafka-clients 3.9.1
    librdkafka = "AAMAAAABAAZvcmRlcnMAAAAAAAAAAP////8AAA=="  # 2.16.0
    assert protocol.decode_subscription(base64.b64decode(java)) == ([TOPIC], [])
    assert protocol.decode_subscription(base64.b64decode(librdkafka)) == ([TOPIC], [])
    assert protocol.decode_assignment(base64.b64decode("AAAAAAABAAZvcmRlcnMAAAADAAAAAAAAAAEAAAACAAAAAA==")) == [
        "orders-0",
        "orders-1",
        "orders-2",
    ]


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\x00",
        b"\xff\xff\x00\x00\x00\x00",  # negative version
        subscription(3, [TOPIC])[:-1],
        subscription(3, [TOPIC]) + b"\x00",
        struct.pack(">hi", 0, 1 << 30),  # more topics than bytes
        struct.pack(">hi", 0, -5),
        b"\x00\x00" + array([b"\x00\x01\xff"]) + b"\xff\xff\xff\xff",  # not UTF-8
    ],
)
def test_what_no_consumer_writes_is_refused(data):
    with pytest.raises(protocol.UnreadableError):
        protocol.decode_subscription(data)


@given(st.binary(max_size=64), st.sampled_from([protocol.decode_subscription, protocol.decode_assignment]))
def test_any_bytes_are_read_or_refused(data, decode):
    with contextlib.suppress(protocol.UnreadableError):
        decode(data)


def test_other_protocol_types_keep_their_digest_alone():
    data = base64.b64encode(subscription(1, [TOPIC])).decode()
    blobs = {"protocols": [{"name": "sessioned", "metadata": data}], "members": None, "assignments": None}
    rows = [{"protocol_type": name, "blobs": blobs} for name in ("connect", "consumer", None)]
    read = protocol.decoded(pa.Table.from_pylist(rows, schema=to_arrow_schema(PARSED)))
    (connect,), (consumer,), (unnamed,) = read["protocols"].to_pylist()
    assert (connect["topics"], connect["owned"], len(connect["digest"])) == (None, None, 16)
    assert (consumer["topics"], consumer["owned"]) == ([TOPIC], [])
    assert unnamed == consumer
    assert read["members"].null_count == read["assignments"].null_count == 3
