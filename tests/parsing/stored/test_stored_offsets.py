"""Records with committed offsets, of every version, as Kafka writes them; and bytes that nobody writes."""

import base64
import contextlib
from datetime import datetime, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from coordinator_model.kafka_bytes import UnreadableError
from jobs.parsing.stored_records import UnsupportedVersionError, record_rows

KEY = base64.b64decode("AAEAAWcABm9yZGVycwAAAAM=")
OLD_KEY = base64.b64decode("AAAAAWcABm9yZGVycwAAAAM=")
VALUES = [  # written by OffsetCommitValue of Kafka 4.4.0: offset 2^32 + 7, with metadata; v4 has the id of the topic
    base64.b64decode(text)
    for text in (
        "AAAAAAABAAAABwAEbm90ZQAAAaIXAnl/",
        "AAEAAAABAAAABwAEbm90ZQAAAaIXAnl/AAABohcLoT8=",
        "AAIAAAABAAAABwAEbm90ZQAAAaIXAnl/",
        "AAMAAAABAAAABwAAAAUABG5vdGUAAAGiFwJ5fw==",
        "AAQAAAABAAAABwAAAAUFbm90ZQAAAaIXAnl/AQAQ/+xQ4F4ETQueJqQy4F4E+Q==",
    )
]
TOPIC_ID = "_-xQ4F4ETQueJqQy4F4E-Q"
AT = datetime(2026, 11, 21, tzinfo=timezone.utc)


def commit(group, partition, offset, topic_id=None):
    offsets = [{"partition": partition, "offset": offset, "topic_id": topic_id}]
    return [{"kind": "OFFSETS_STORED", "group_id": group, "offsets": offsets}]


@pytest.mark.parametrize("version", range(5))
@pytest.mark.parametrize("key", [KEY, OLD_KEY])
def test_every_version(key, version):
    stored = commit("g", "orders-3", (1 << 32) + 7, TOPIC_ID if version == 4 else None)
    assert record_rows(key, VALUES[version], AT) == stored


def test_a_record_without_a_value_says_that_there_is_no_offset():
    assert record_rows(KEY, None, AT) == commit("g", "orders-3", -1)


def test_what_kafka_4_2_stored():
    key = base64.b64decode("AAEADHRpbGwtZ2F0ZXdheQAGb3JkZXJzAAAABQ==")
    value = base64.b64decode("AAQAAAAAAAAAEAAAAAABAAABohcCeX8BABCg21hXevhFEI7rnSAZz9GZ")
    assert record_rows(key, value, AT) == commit("till-gateway", "orders-5", 16, "oNtYV3r4RRCO650gGc_RmQ")


def test_what_a_later_kafka_adds_is_passed_over():
    added = VALUES[4].replace(b"\x01\x00\x10", b"\x02\x00\x10") + b"\x07\x03new"
    assert record_rows(KEY, added, AT) == record_rows(KEY, VALUES[4], AT)
    assert record_rows(KEY, VALUES[4][:-19] + b"\x00", AT) == commit("g", "orders-3", (1 << 32) + 7)


@pytest.mark.parametrize("version", [-1, 5, 300])
def test_a_version_that_no_kafka_writes_is_refused(version):
    with pytest.raises(UnsupportedVersionError, match=f"^{version}$"):
        record_rows(KEY, version.to_bytes(2, "big", signed=True) + VALUES[3][2:], AT)


@pytest.mark.parametrize(
    ("damaged", "why"),
    [
        ((b"", None), "ends too early"),
        ((KEY[:-1], None), "ends too early"),
        ((KEY + b"x", None), "left over in the key"),
        ((b"\x00\x01\x00\x01\xff\x00\x01t\x00\x00\x00\x00", None), "not UTF-8"),
        ((KEY, b""), "ends too early"),
        ((KEY, VALUES[3][:-1]), "ends too early"),
        ((KEY, VALUES[3] + b"x"), "left over in the value"),
        ((KEY, b"\x00\x02" + VALUES[1][2:]), "left over in the value"),
        ((KEY, VALUES[4][:-18] + b"\x00\x02id"), "ends too early"),
    ],
)
def test_damage_is_told(damaged, why):
    with pytest.raises(UnreadableError, match=why):
        record_rows(*damaged, AT)


@given(st.sampled_from([KEY, OLD_KEY]), st.sampled_from(VALUES), st.data())
def test_one_wrong_byte_is_no_crash(key, value, data):
    whole = bytearray(key + value)
    whole[data.draw(st.integers(0, len(whole) - 1))] = data.draw(st.integers(0, 255))
    with contextlib.suppress(UnreadableError):
        record_rows(bytes(whole[: len(key)]), bytes(whole[len(key) :]), AT)


@given(st.sampled_from([0, 1]), st.binary(max_size=40), st.integers(0, 4), st.binary(max_size=80))
def test_no_bytes_are_too_much(kind, rest, version, value):
    with contextlib.suppress(UnreadableError):
        record_rows(bytes([0, kind]) + rest, bytes([0, version]) + value, AT)
