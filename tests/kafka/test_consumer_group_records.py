"""Records of groups of the consumer protocol, as a real coordinator wrote them; and bytes that no coordinator writes."""

from __future__ import annotations

import base64
import contextlib
import json
import struct
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from coordinator_model.kafka_bytes import UnreadableError
from jobs.kafka.consumer_group_records import (
    ASSIGNMENT_KEY,
    CONSUMER_GROUP_KEYS,
    EPOCH_KEY,
    EXPRESSION_KEY,
    MEMBER_KEY,
    SHARE_KEY,
    TARGET_KEY,
    TOPICS_KEY,
    ConsumerGroupRecord,
    StoredAssignment,
    StoredMember,
    StoredTarget,
    StoredTopics,
    decode_consumer_group_record,
)
from jobs.kafka.group_metadata import UnsupportedVersionError

REAL = Path(__file__).parents[1] / "data" / "offsets" / "kafka-4.2.0-consumer.jsonl"
TOPIC = "PoXy_d3qQpOGkRtEOEpFtQ"


def real() -> list[tuple[bytes, bytes | None]]:
    lines = [json.loads(line) for line in REAL.read_text().splitlines()[1:]]
    return [tuple(None if line[name] is None else base64.b64decode(line[name]) for name in ("key", "value")) for line in lines]


def decoded() -> list[ConsumerGroupRecord]:
    found = [decode_consumer_group_record(*record) for record in real()]
    return [record for record in found if record is not None]


def text(value: str) -> bytes:
    return struct.pack(">h", len(value.encode())) + value.encode()


def key(kind: int, *subjects: str) -> bytes:
    return struct.pack(">h", kind) + text("orders") + b"".join(map(text, subjects))


def test_a_real_brokers_records_are_read_to_their_ends():
    """c1 joins; c2, a static member, joins; c3 subscribes to an expression; c1 to another topic; c2 is away for 2 s; all leave; deleted."""
    records = decoded()
    assert len(records) == len(real()) == 74
    counts = Counter((record.key, record.value is None) for record in records)
    assert {kind for kind, _ in counts} == CONSUMER_GROUP_KEYS
    assert counts[TOPICS_KEY, True] == 1
    assert {record.group_id for record in records} == {"telemetry"}


def test_epochs_follow_one_another_and_a_tombstone_ends_them():
    epochs = [record.value for record in decoded() if record.key == EPOCH_KEY]
    assert [epoch and epoch.epoch for epoch in epochs] == [*range(1, 9), None]
    hashes = [epoch.metadata_hash for epoch in epochs if epoch is not None]
    assert hashes == [hashes[0], *[hashes[1]] * 3, *[hashes[4]] * 2, hashes[1], None]  # c1 also subscribes to refunds in 5 and 6
    assert len(set(hashes)) == 4


def test_what_members_say_of_themselves():
    said = [record.value for record in decoded() if record.key == MEMBER_KEY and isinstance(record.value, StoredMember)]
    assert said[0] == StoredMember("", "c1", "127.0.0.1", ("orders",), "", 300_000, "", -1)
    assert [one[:2] for one in said if one.instance_id] == [("i-2", "c2"), ("i-2", "c2")]
    assert {one.regex for one in said if one.client_id == "c3"} == {"(^ref.*)"}  # as librdkafka writes ^ref.*
    assert [one.topics for one in said if one.client_id == "c1"] == [("orders",), ("orders", "refunds")]


def test_what_members_have_and_give_up():
    steps = [record for record in decoded() if record.key == ASSIGNMENT_KEY and isinstance(record.value, StoredAssignment)]
    first, told = steps[0].value, next(one.value for one in steps if one.value.pending)
    assert (first.epoch, first.previous_epoch, first.state, len(first.assigned), first.pending) == (1, 0, "STABLE", 4, ())
    assert (told.epoch, told.state, len(told.assigned), len(told.pending)) == (1, "UNREVOKED_PARTITIONS", 3, 1)
    assert {*told.assigned, *told.pending} == {*first.assigned}
    topic_id, _, number = first.assigned[0].rpartition("-")
    assert (len(base64.urlsafe_b64decode(topic_id + "==")), number) == (16, "0")
    assert [one.value.epoch for one in steps if one.value.epoch < 0] == [-2, -2]


def test_the_topics_that_brokers_before_4_1_stored():
    racks = b"\x02" + struct.pack(">i", 0) + b"\x02" + b"\x02r" + b"\x00"
    value = b"\x00\x00\x03" + b"".join(
        bytes(16) + bytes([len(name) + 1]) + name + struct.pack(">i", 6) + own + b"\x00" for name, own in ((b"b", b"\x01"), (b"a", racks))
    )
    assert decode_consumer_group_record(key(TOPICS_KEY), value + b"\x00").value == StoredTopics(("a", "b"))


def test_a_member_of_the_classic_protocol_has_a_session_timeout():
    plain = next(value for own, value in real() if own[:2] == b"\x00\x05" and value is not None)
    classic = b"\x01" + struct.pack(">i", 45_000) + b"\x01" + b"\x00"
    none = b"\x01\x00\x01\x00"  # one tagged field, of tag 0 and one byte: null
    value = decode_consumer_group_record(
        key(MEMBER_KEY, "a-1"), plain.removesuffix(none) + b"\x01\x00" + bytes([len(classic)]) + classic
    ).value
    assert (value.client_id, value.session_timeout_ms) == ("c1", 45_000)


def test_what_a_later_kafka_adds_is_passed_over():
    value = b"\x00\x00" + struct.pack(">i", 7) + b"\x01\x09\x03new"
    assert decode_consumer_group_record(key(TARGET_KEY), value).value.epoch == 7


@pytest.mark.parametrize(
    ("own_key", "stored", "read"),
    [
        (
            key(ASSIGNMENT_KEY, "m"),
            "AAAAAAAFAAAABAECPoXy/d3qQpOGkRtEOEpFtQMAAAAAAAAAAgEACQMAAAADAAAABQI+hfL93epCk4aRG0Q4SkW1AgAAAAEBAAUCAAAAAgA=",
            StoredAssignment(5, 4, "UNREVOKED_PARTITIONS", (f"{TOPIC}-0", f"{TOPIC}-2"), (f"{TOPIC}-1",)),
        ),
        (key(TARGET_KEY), "AAAAAAAFAQAIAAABofzIfQc=", StoredTarget(5, timed=True)),
    ],
)
def test_records_of_4_4_with_the_epochs_of_partitions_and_the_time_of_the_target(own_key, stored, read):
    """Written by ConsumerGroupCurrentMemberAssignmentValue and ConsumerGroupTargetAssignmentMetadataValue of Kafka 4.4.0."""
    assert decode_consumer_group_record(own_key, base64.b64decode(stored)).value == read


@pytest.mark.parametrize("kind", [0, 1, 2, 9, 10, 15, 17, 22, 999, -1])
def test_records_about_other_things_are_of_no_concern(kind):
    assert decode_consumer_group_record(key(kind), b"anything") is None


@pytest.mark.parametrize(
    ("damaged", "why"),
    [
        ((key(EPOCH_KEY, "more"), None), "left over in the key"),
        ((key(MEMBER_KEY), None), "ends too early"),
        ((key(EXPRESSION_KEY)[:-1], None), "ends too early"),
        ((key(EPOCH_KEY), b""), "ends too early"),
        ((key(EPOCH_KEY), b"\x00\x00\x00\x00\x00\x07\x00x"), "left over in the value"),
        ((key(SHARE_KEY, "a-1"), b"\x00\x00\x00\x00"), "a negative length"),
        ((key(SHARE_KEY, "a-1"), b"\x00\x00\xff\xff\xff\xff\x0f"), "ends too early"),
    ],
)
def test_damage_to_a_record_of_these_is_told(damaged, why):
    with pytest.raises(UnreadableError, match=why):
        decode_consumer_group_record(*damaged)


def test_a_version_that_these_do_not_have_is_refused():
    with pytest.raises(UnsupportedVersionError, match=r"^1$"):
        decode_consumer_group_record(key(EPOCH_KEY), b"\x00\x01\x00\x00\x00\x07\x00")


@given(st.sampled_from(real()), st.data())
def test_one_wrong_byte_of_a_real_record_is_no_crash(record, data):
    whole = [bytearray(part or b"") for part in record]
    part = data.draw(st.sampled_from([one for one in whole if one]))
    part[data.draw(st.integers(0, len(part) - 1))] = data.draw(st.integers(0, 255))
    with contextlib.suppress(UnreadableError):
        decode_consumer_group_record(bytes(whole[0]), bytes(whole[1]))


@given(st.sampled_from(sorted(CONSUMER_GROUP_KEYS)), st.binary(max_size=40), st.binary(max_size=200))
def test_no_bytes_are_too_much_for_these(kind, rest, value):
    with contextlib.suppress(UnreadableError):
        decode_consumer_group_record(struct.pack(">h", kind) + rest, b"\x00\x00" + value)
