"""The bytes of subscriptions and assignments in the classic protocol, as Kafka's clients write them."""

import base64
import contextlib
import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from coordinator_model.kafka_bytes import UnreadableError
from coordinator_model.specification.consumer.consumer_protocol import (
    EmbeddedAssignment,
    EmbeddedSubscription,
    read_assignment,
    read_subscription,
    version_of,
    write_assignment,
    write_subscription,
)

FULL = EmbeddedSubscription(("a", "b"), (("a", (0, 1)),), 7, "rack")


@pytest.mark.parametrize(
    ("version", "kept"),
    [
        (0, FULL._replace(owned=(), generation=-1, rack_id=None)),
        (1, FULL._replace(generation=-1, rack_id=None)),
        (2, FULL._replace(rack_id=None)),
        (3, FULL),
    ],
)
def test_each_version_of_a_subscription_has_its_fields(version, kept):
    data = write_subscription(FULL._replace(version=version))
    assert version_of(data) == version
    assert read_subscription(data) == kept._replace(version=version)


def test_the_bytes_are_kafkas():
    assert write_subscription(EmbeddedSubscription(("t",), version=0)).hex() == "000000000001000174ffffffff"
    assert write_subscription(EmbeddedSubscription((), (), 7, "r", version=1)).hex() == "000100000000ffffffff00000000"
    assert write_subscription(EmbeddedSubscription((), (), 7, "r", version=2)).hex() == "000200000000ffffffff0000000000000007"
    assert write_assignment((("t", (5,)),), 1).hex() == "0001000000010001740000000100000005ffffffff"
    assert write_subscription(EmbeddedSubscription((), version=3)).hex() == "000300000000ffffffff00000000ffffffffffff"


def test_an_empty_rack_is_not_an_absent_one():
    assert read_subscription(write_subscription(FULL._replace(rack_id=""))).rack_id == ""


def test_a_subscription_is_of_version_3_unless_told_otherwise():
    assert version_of(write_subscription(EmbeddedSubscription(("t",)))) == 3


def test_an_assignment_comes_back_with_the_data_of_its_assignor():
    data = write_assignment((("a", (2, 0)),), 3)
    assert read_assignment(data) == EmbeddedAssignment((("a", (2, 0)),))
    assert read_assignment(data[:-4] + bytes([0, 0, 0, 2, 8, 9])) == EmbeddedAssignment((("a", (2, 0)),), b"\x08\x09")
    assert read_assignment(b"") == EmbeddedAssignment(())


@pytest.mark.parametrize("version", [0, 1, 2, 3])
def test_each_version_of_an_assignment_is_read(version):
    partitions = (("orders", (0, 1)), ("b", (5,)), ("none", ()))
    assert read_assignment(write_assignment(partitions, version)).partitions == partitions


def test_a_newer_version_is_read_as_the_newest_known_and_its_additions_are_left():
    newer = FULL._replace(version=9)
    assert read_subscription(write_subscription(newer) + b"more") == newer
    assert read_assignment(write_assignment((("a", (1,)),), 9) + b"more").partitions == (("a", (1,)),)


@pytest.mark.parametrize("user_data", ["ffffffff", "00000000", "00000003616263"])
def test_the_data_of_an_assignor_is_passed_over(user_data):
    data = bytes.fromhex("00010000000100016f" + user_data + "0000000100016f0000000200000000" + "00000002")
    assert read_subscription(data) == EmbeddedSubscription(("o",), (("o", (0, 2)),), version=1)


def test_real_bytes():
    java = "AAMAAAABAAZvcmRlcnP/////AAAAAP///////w=="  # kafka-clients 3.9.1
    librdkafka = "AAMAAAABAAZvcmRlcnMAAAAAAAAAAP////8AAA=="  # 2.16.0
    assert read_subscription(base64.b64decode(java)) == EmbeddedSubscription(("orders",))
    assert read_subscription(base64.b64decode(librdkafka)) == EmbeddedSubscription(("orders",), rack_id="")
    assigned = base64.b64decode("AAAAAAABAAZvcmRlcnMAAAADAAAAAAAAAAEAAAACAAAAAA==")
    assert read_assignment(assigned).partitions == (("orders", (0, 1, 2)),)


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\x00",
        b"\x00\x00\x00\x00\x00\x01\x00\x09abc",
        write_subscription(FULL)[:-1],
        b"\xff\xff\x00\x00\x00\x00\xff\xff\xff\xff",  # negative version
        struct.pack(">hi", 0, 1 << 30),  # more topics than bytes
        struct.pack(">hi", 0, -5),
        bytes.fromhex("0000000000010001ffffffffff"),  # not UTF-8
    ],
)
def test_what_no_consumer_writes_is_unreadable(data):
    with pytest.raises(UnreadableError):
        read_subscription(data)


@given(st.binary(max_size=64), st.sampled_from([read_subscription, read_assignment]))
def test_any_bytes_are_read_or_unreadable(data, read):
    with contextlib.suppress(UnreadableError):
        read(data)
