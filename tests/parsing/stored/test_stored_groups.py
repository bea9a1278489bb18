"""Group records of every version, as coordinators encode them; and bytes that nobody encodes."""

import base64
import contextlib
import json
import struct
from datetime import datetime, timedelta, timezone
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from coordinator_model.kafka_bytes import FieldReader, UnreadableError
from jobs.parsing.stored_records import UnsupportedVersionError, record_rows

REAL = Path(__file__).parents[2] / "data" / "offsets" / "kafka-4.2.0.jsonl"
SINCE_MS = 1_800_000_000_000
SINCE = datetime.fromtimestamp(SINCE_MS / 1_000, timezone.utc)
AT = SINCE + timedelta(hours=1)


def decode(key, value, at=AT):
    return record_rows(key, value, at)


def text(value, *, compact=False):
    if value is None:
        return b"\x00" if compact else b"\xff\xff"
    data = value.encode()
    return (varint(len(data) + 1) if compact else struct.pack(">h", len(data))) + data


def blob(data, *, compact=False):
    return (varint(len(data) + 1) if compact else struct.pack(">i", len(data))) + data


def varint(number):
    out = b""
    while number >= 0x80:
        out += bytes([number & 0x7F | 0x80])
        number >>= 7
    return out + bytes([number])


def key(group="orders", kind=2):
    return struct.pack(">h", kind) + text(group)


def member(version, name, *, instance=None, tags=b"\x00"):
    compact = version >= 4
    data = text(name, compact=compact)
    if version >= 3:
        data += text(instance, compact=compact)
    data += text("app", compact=compact) + text("/10.0.0.7", compact=compact)
    if version >= 1:
        data += struct.pack(">i", 300_000)
    data += struct.pack(">i", 45_000)
    data += blob(b"sub", compact=compact) + blob(b"ass", compact=compact)
    return data + (tags if compact else b"")


def value(version, members=(), *, generation=7, protocol="range", leader="a-1", since=SINCE_MS, tags=b"\x00"):
    compact = version >= 4
    data = struct.pack(">h", version) + text("consumer", compact=compact) + struct.pack(">i", generation)
    data += text(protocol, compact=compact) + text(leader, compact=compact)
    if version >= 2:
        data += struct.pack(">q", since)
    data += varint(len(members) + 1) if compact else struct.pack(">i", len(members))
    return data + b"".join(members) + (tags if compact else b"")


@pytest.mark.parametrize("version", range(5))
def test_every_version(version):
    group, first, second = decode(key(), value(version, [member(version, "a-1", instance="i-1"), member(version, "b-2")]))
    since, instance = SINCE if version >= 2 else AT, "i-1" if version >= 3 else None
    names = ("kind", "state", "group_id", "protocol_type", "generation", "protocol", "leader_id", "member_count", "received_at")
    assert [group[name] for name in names] == ["GROUP_STORED", "Stable", "orders", "consumer", 7, "range", "a-1", 2, since]
    assert [(entry["member_id"], entry["instance_id"]) for entry in group["members"]] == [("a-1", instance), ("b-2", None)]
    assert [entry["member_id"] for entry in group["assignments"]] == ["a-1", "b-2"]
    assert first == {
        "kind": "GROUP_MEMBER", "group_id": "orders", "generation": 7, "member_id": "a-1", "instance_id": instance, "client_id": "app",
        "client_host": "10.0.0.7", "rebalance_timeout_ms": 300_000 if version else None, "session_timeout_ms": 45_000, "received_at": since,
    }  # fmt: skip
    assert (second["member_id"], second["instance_id"]) == ("b-2", None)


@pytest.mark.parametrize("version", range(5))
def test_an_empty_group_has_no_leader(version):
    (group,) = decode(key(), value(version, protocol=None, leader=None))
    assert [group[name] for name in ("state", "protocol", "leader_id", "members")] == ["Empty", None, None, []]


def test_a_record_without_a_value_removes_the_group():
    assert decode(key("one-off"), None) == [{"kind": "GROUP_STORED", "group_id": "one-off", "state": "Dead"}]


@pytest.mark.parametrize("since", [SINCE_MS + 3_600_001, (1 << 63) - 1, -5])
def test_a_group_that_entered_its_state_at_no_time_before_has_that_of_the_record(since):
    assert decode(key(), value(3, since=since))[0]["received_at"] == AT


def test_what_a_later_kafka_adds_to_a_flexible_record_is_passed_over():
    added = b"\x01" + varint(9) + varint(3) + b"new"
    group, _ = decode(key(), value(4, [member(4, "a-1", tags=added)], tags=added))
    assert group["members"][0]["member_id"] == "a-1"


@pytest.mark.parametrize("version", [-1, 5, 300])
def test_a_version_that_no_kafka_writes_is_refused(version):
    with pytest.raises(UnsupportedVersionError, match=f"^{version}$"):
        decode(key(), struct.pack(">h", version) + value(3)[2:])


@pytest.mark.parametrize(
    ("damaged", "why"),
    [
        ((b"", None), "ends too early"),
        ((b"\xff\xff", None), "a negative type"),
        ((key() + b"x", None), "left over in the key"),
        ((b"\x00\x02\x00\x02\xff\xfe", None), "not UTF-8"),
        ((key(), b""), "ends too early"),
        ((key(), value(3) + b"x"), "left over in the value"),
        ((key(), value(3, [member(3, "a-1")])[:-1]), "ends too early"),
        ((key(), struct.pack(">h", 4) + b"\xff" * 9), "a number that does not end"),
        ((key(), value(1)[:-4] + b"\x7f\xff\xff\xff"), "ends too early"),
        ((key(), value(1)[:-4] + b"\x80\x00\x00\x00"), "a negative length"),
    ],
)
def test_damage_is_told(damaged, why):
    with pytest.raises(UnreadableError, match=why):
        decode(*damaged)


@given(st.binary(max_size=60), st.one_of(st.none(), st.binary(max_size=300)))
def test_no_bytes_are_too_much_for_it(some_key, some_value):
    with contextlib.suppress(UnreadableError):
        decode(some_key, some_value)


@given(st.integers(0, 4), st.binary(max_size=200))
def test_nor_are_bytes_that_begin_as_they_should(version, rest):
    with contextlib.suppress(UnreadableError):
        decode(key(), struct.pack(">h", version) + rest)


@given(st.integers(0, 4), st.data())
def test_nor_is_one_wrong_byte(version, data):
    whole = bytearray(value(version, [member(version, "a-1", instance="i"), member(version, "b")]))
    whole[data.draw(st.integers(0, len(whole) - 1))] = data.draw(st.integers(0, 255))
    with contextlib.suppress(UnreadableError):
        decode(key(), bytes(whole))


def test_a_varint_of_five_bytes_is_the_longest():
    assert FieldReader(b"\xff\xff\xff\xff\x0f").unsigned_varint() == 0xFFFFFFFF


def test_what_a_real_broker_stored():
    """Kafka 4.2.0: c1 joins, c2 joins, c1 closes, c2 closes."""
    records = [json.loads(line) for line in REAL.read_text().splitlines()[1:]]
    times = [datetime.fromtimestamp(record["timestamp"] / 1_000, timezone.utc) for record in records]
    found = [decode(*(base64.b64decode(record[name]) for name in ("key", "value")), at) for record, at in zip(records, times, strict=True)]
    assert [(group["generation"], group["member_count"], group["protocol"], [m["client_id"] for m in own]) for group, *own in found] == [
        (0, 0, None, []),
        (1, 1, "range", ["c1"]),
        (2, 2, "range", ["c1", "c2"]),
        (3, 1, "range", ["c2"]),
        (4, 0, None, []),
    ]
    assert {m["client_host"] for _, *own in found for m in own} == {"127.0.0.1"}
    for at, (group, *_) in zip(times, found, strict=True):
        assert timedelta() <= at - group["received_at"] < timedelta(seconds=1)  # the join phase ended just before
