"""Records of groups of the consumer protocol, as a real coordinator wrote them; and bytes that no coordinator writes."""

import base64
import contextlib
import json
import struct
from datetime import datetime, timezone
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from coordinator_model import events as e
from coordinator_model.kafka_bytes import UnreadableError
from jobs.logs.record_judge import GROUP_KEYS
from jobs.parsing.stored_records import UnsupportedVersionError, record_rows

REAL = Path(__file__).parents[2] / "data" / "offsets" / "kafka-4.2.0-consumer.jsonl"
TOPIC = "PoXy_d3qQpOGkRtEOEpFtQ"
EPOCH_KEY, TOPICS_KEY, MEMBER_KEY, TARGET_KEY, SHARE_KEY, ASSIGNMENT_KEY = range(3, 9)
EXPRESSION_KEY = 16
CONSUMER_GROUP_KEYS = GROUP_KEYS - {2}
AT = datetime(2026, 11, 21, tzinfo=timezone.utc)


def record_columns(key: bytes, value: bytes | None) -> dict | None:
    return next(iter(record_rows(key, value, AT)), None)


def real() -> list[tuple[bytes, bytes | None]]:
    lines = [json.loads(line) for line in REAL.read_text().splitlines()[1:]]
    return [tuple(None if line[name] is None else base64.b64decode(line[name]) for name in ("key", "value")) for line in lines]


def rows(kind: str | None = None) -> list[dict]:
    """The rows of the real records, of one kind if it is given."""
    found = [row for record in real() if (row := record_columns(*record)) is not None]
    return [row for row in found if kind in (None, row["kind"])]


def text(value: str) -> bytes:
    return struct.pack(">h", len(value.encode())) + value.encode()


def key(kind: int, *subjects: str) -> bytes:
    return struct.pack(">h", kind) + text("orders") + b"".join(map(text, subjects))


def test_a_real_brokers_records_are_read_to_their_ends():
    """c1 joins; c2, a static member, joins; c3 subscribes to an expression; c1 to another topic; c2 is away for 2 s; all leave; deleted."""
    assert len(rows()) == len(real()) == 74
    assert {struct.unpack(">h", own_key[:2])[0] for own_key, _ in real()} == CONSUMER_GROUP_KEYS
    assert [row.get("state") for row in rows(e.TOPICS_STORED)] == [e.REMOVED]
    assert {row["group_id"] for row in rows()} == {"telemetry"}


def test_epochs_follow_one_another_and_a_tombstone_ends_them():
    *epochs, last = rows(e.EPOCH_STORED)
    assert [row["generation"] for row in epochs] == [*range(1, 9)]
    assert last == {"kind": e.EPOCH_STORED, "group_id": "telemetry", "state": e.REMOVED}
    hashes = [row["reason"] for row in epochs]
    assert hashes == [hashes[0], *[hashes[1]] * 3, *[hashes[4]] * 2, hashes[1], None]  # c1 also subscribes to refunds in 5 and 6
    assert len(set(hashes)) == 4


def test_what_members_say_of_themselves():
    said = [row for row in rows(e.MEMBER_STORED) if "state" not in row]
    first = {name: value for name, value in said[0].items() if name not in {"kind", "group_id", "member_id"}}
    assert first == {
        "instance_id": None, "client_id": "c1", "client_host": "127.0.0.1", "session_timeout_ms": None, "rebalance_timeout_ms": 300_000,
        "subscribed_regex": "", "protocols": [{"name": "consumer", "topics": ["orders"], "owned": None, "digest": None}],
    }  # fmt: skip
    assert [(row["instance_id"], row["client_id"]) for row in said if row["instance_id"]] == [("i-2", "c2"), ("i-2", "c2")]
    assert {row["subscribed_regex"] for row in said if row["client_id"] == "c3"} == {"(^ref.*)"}  # as librdkafka writes ^ref.*
    assert [row["protocols"][0]["topics"] for row in said if row["client_id"] == "c1"] == [["orders"], ["orders", "refunds"]]


def test_what_members_have_and_give_up():
    steps = [row for row in rows(e.CURRENT_STORED) if row.get("state") != e.REMOVED]
    shares = [tuple(one["partitions"] for one in row["assignments"]) for row in steps]
    (first, none), (kept, given) = shares[0], next(share for share in shares if share[1])
    assert (steps[0]["answer_generation"], steps[0]["generation"], steps[0]["state"], len(first), none) == (1, 0, "STABLE", 4, [])
    told = steps[shares.index((kept, given))]
    assert (told["answer_generation"], told["state"], len(kept), len(given)) == (1, "UNREVOKED_PARTITIONS", 3, 1)
    assert {*kept, *given} == {*first}
    topic_id, _, number = first[0].rpartition("-")
    assert (len(base64.urlsafe_b64decode(topic_id + "==")), number) == (16, "0")
    assert [row["answer_generation"] for row in steps if row["answer_generation"] < 0] == [-2, -2]
    assert {one["member_id"] for row in steps for one in row["assignments"]} == {row["member_id"] for row in steps}


def test_the_topics_that_brokers_before_4_1_stored():
    racks = b"\x02" + struct.pack(">i", 0) + b"\x02" + b"\x02r" + b"\x00"
    value = b"\x00\x00\x03" + b"".join(
        bytes(16) + bytes([len(name) + 1]) + name + struct.pack(">i", 6) + own + b"\x00" for name, own in ((b"b", b"\x01"), (b"a", racks))
    )
    assert record_columns(key(TOPICS_KEY), value + b"\x00") == {"kind": e.TOPICS_STORED, "group_id": "orders", "member_count": 2}


def test_a_member_of_the_classic_protocol_has_a_session_timeout():
    plain = next(value for own, value in real() if own[:2] == b"\x00\x05" and value is not None)
    classic = b"\x01" + struct.pack(">i", 45_000) + b"\x01" + b"\x00"
    none = b"\x01\x00\x01\x00"  # one tagged field, of tag 0 and one byte: null
    row = record_columns(key(MEMBER_KEY, "a-1"), plain.removesuffix(none) + b"\x01\x00" + bytes([len(classic)]) + classic)
    assert (row["member_id"], row["client_id"], row["session_timeout_ms"]) == ("a-1", "c1", 45_000)


def test_what_a_later_kafka_adds_is_passed_over():
    value = b"\x00\x00" + struct.pack(">i", 7) + b"\x01\x09\x03new"
    assert record_columns(key(TARGET_KEY), value)["generation"] == 7


def test_records_of_4_4_with_the_epochs_of_partitions_and_the_time_of_the_target():
    """Written by ConsumerGroupCurrentMemberAssignmentValue and ConsumerGroupTargetAssignmentMetadataValue of Kafka 4.4.0."""
    stored = "AAAAAAAFAAAABAECPoXy/d3qQpOGkRtEOEpFtQMAAAAAAAAAAgEACQMAAAADAAAABQI+hfL93epCk4aRG0Q4SkW1AgAAAAEBAAUCAAAAAgA="
    row = record_columns(key(ASSIGNMENT_KEY, "m"), base64.b64decode(stored))
    assert (row["answer_generation"], row["generation"], row["state"]) == (5, 4, "UNREVOKED_PARTITIONS")
    assert [one["partitions"] for one in row["assignments"]] == [[f"{TOPIC}-0", f"{TOPIC}-2"], [f"{TOPIC}-1"]]
    row = record_columns(key(TARGET_KEY), base64.b64decode("AAAAAAAFAQAIAAABofzIfQc="))
    assert (row["generation"], row["state"]) == (5, e.TIMED)


@pytest.mark.parametrize("kind", [9, 10, 15, 17, 22, 999])
def test_records_about_other_things_are_of_no_concern(kind):
    assert record_columns(key(kind), b"anything") is None


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
        record_columns(*damaged)


def test_a_version_that_these_do_not_have_is_refused():
    with pytest.raises(UnsupportedVersionError, match=r"^1$"):
        record_columns(key(EPOCH_KEY), b"\x00\x01\x00\x00\x00\x07\x00")


@given(st.sampled_from(real()), st.data())
def test_one_wrong_byte_of_a_real_record_is_no_crash(record, data):
    whole = [bytearray(part or b"") for part in record]
    part = data.draw(st.sampled_from([one for one in whole if one]))
    part[data.draw(st.integers(0, len(part) - 1))] = data.draw(st.integers(0, 255))
    with contextlib.suppress(UnreadableError):
        record_columns(bytes(whole[0]), bytes(whole[1]))


@given(st.sampled_from(sorted(CONSUMER_GROUP_KEYS)), st.binary(max_size=40), st.binary(max_size=200))
def test_no_bytes_are_too_much_for_these(kind, rest, value):
    with contextlib.suppress(UnreadableError):
        record_columns(struct.pack(">h", kind) + rest, b"\x00\x00" + value)
