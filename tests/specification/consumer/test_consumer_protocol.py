"""The bytes of subscriptions and assignments in the classic protocol, as the Java client writes them."""

import pytest

from coordinator_model.specification.consumer.consumer_protocol import (
    EmbeddedAssignment,
    EmbeddedSubscription,
    MalformedProtocolError,
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


@pytest.mark.parametrize("data", [b"", b"\x00", b"\x00\x00\x00\x00\x00\x01\x00\x09abc", write_subscription(FULL)[:-1]])
def test_bytes_that_end_early_are_malformed(data):
    with pytest.raises(MalformedProtocolError):
        read_subscription(data)
