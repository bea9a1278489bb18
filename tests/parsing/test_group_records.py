"""Lines of dumps and polls as rows of group_events."""

import base64
import json
from datetime import datetime, timedelta, timezone
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobs.logs.bytes import open_log
from jobs.logs.files import discover
from jobs.logs.mark import KeptLines
from jobs.logs.reader import LogReader
from jobs.logs.record_judge import RecordJudge, RecordTimes, record_source
from tests.parsing.reading import read_lines

REAL = Path(__file__).parents[1] / "data" / "offsets" / "kafka-4.2.0.jsonl"
CONSUMER = REAL.with_name("kafka-4.2.0-consumer.jsonl")
AT = datetime(2026, 11, 21, 15, 10, 1, tzinfo=timezone.utc)
ANSWER = {
    "timestamp": 1_795_273_798_131,
    "group": "g",
    "type": "classic",
    "state": "Stable",
    "assignor": "range",
    "coordinator": {"id": 1, "address": "broker:9092"},
    "members": [{"member_id": "c1-1", "instance_id": None, "client_id": "c1", "host": "/10.0.0.7", "partitions": ["t-0", "t-1"]}],
}


def rows(text, source="offsets"):
    text = text if isinstance(text, str) else json.dumps(text)
    found = read_lines([("c", source, "line", f"c/{source}/x.jsonl", 3, AT, text, None, 1, None, None)]).to_pylist()
    assert [row["lines"] for row in found] == [1, *[0] * (len(found) - 1)]
    return found


def test_a_stored_group_is_a_row_and_one_for_each_member():
    group, *members = rows(REAL.read_text().splitlines()[3])
    assert (group["kind"], group["verdict"], group["group_id"], group["generation"]) == ("GROUP_STORED", "event", "g", 2)
    assert (group["protocol"], group["state"], group["member_count"], group["coordinator_partition"]) == ("range", "Stable", 2, 3)
    assert [entry["topics"] for entry in group["members"]] == [["orders"], ["orders"]]
    assert [entry["partitions"] for entry in group["assignments"]] == [
        ["orders-0", "orders-1", "orders-2"],
        ["orders-3", "orders-4", "orders-5"],
    ]
    assert AT - timedelta(hours=1) < group["received_at"] < AT
    assert [(row["kind"], row["client_id"], row["client_host"], row["session_timeout_ms"]) for row in members] == [
        ("GROUP_MEMBER", "c1", "127.0.0.1", 6_000),
        ("GROUP_MEMBER", "c2", "127.0.0.1", 6_000),
    ]


def test_a_record_without_a_value_is_a_dead_group():
    (row,) = rows({"timestamp": 1, "partition": 3, "offset": 9, "key": "AAIAAWc=", "value": None})
    assert (row["kind"], row["state"], row["group_id"]) == ("GROUP_STORED", "Dead", "g")


def of_consumer_group():
    """The rows of a real dump, one for each record."""
    return [row for text in CONSUMER.read_text().splitlines()[1:] for row in rows(text)]


def test_each_record_of_a_consumer_group_is_a_row():
    found = of_consumer_group()
    assert {row["verdict"] for row in found} == {"event"}
    assert {(row["group_id"], row["coordinator_partition"]) for row in found} == {("telemetry", 1)}
    first = found[:5]
    assert [row["kind"] for row in first] == ["MEMBER_STORED", "EPOCH_STORED", "TARGET_MEMBER_STORED", "TARGET_STORED", "CURRENT_STORED"]
    member, epoch, share, target, assignment = first
    assert (member["client_id"], member["client_host"], member["rebalance_timeout_ms"]) == ("c1", "127.0.0.1", 300_000)
    assert (member["protocols"][0]["topics"], member["subscribed_regex"], member["session_timeout_ms"]) == (["orders"], "", None)
    assert (epoch["generation"], target["generation"]) == (1, 1)
    assert (assignment["generation"], assignment["answer_generation"], assignment["state"]) == (0, 1, "STABLE")
    assert [len(entry["partitions"]) for entry in assignment["assignments"]] == [4, 0]
    assert assignment["assignments"][0]["partitions"] == share["assignments"][0]["partitions"]
    assert {row["member_id"] for row in (member, share, assignment)} == {member["member_id"]}


def test_tombstones_and_expressions_of_a_consumer_group_are_rows():
    found = of_consumer_group()
    removed = [row["kind"] for row in found if row.get("state") == "REMOVED"]
    assert {"EPOCH_STORED", "TOPICS_STORED", "TARGET_STORED", "MEMBER_STORED", "TARGET_MEMBER_STORED", "CURRENT_STORED"} <= set(removed)
    expressions = [(row["reason"], row.get("member_count"), row.get("state")) for row in found if row["kind"] == "EXPRESSION_STORED"]
    assert expressions == [("(^ref.*)", 1, None), ("(^ref.*)", 2, None), ("(^ref.*)", None, "REMOVED")]


@pytest.mark.parametrize(
    ("key", "value", "reason"),
    [
        (b"\x00\x03\x00\x01g", b"\x00\x00\x00", "UNREADABLE_RECORD: ends too early"),
        (b"\x00\x03\x00\x01g", b"\x00\x01\x00\x00\x00\x01\x00", "UNSUPPORTED_VERSION: 1"),
        (b"\x00\x08\x00\x01g", None, "UNREADABLE_RECORD: ends too early"),
        (b"\x00\x05\x00\x01g\x00\x01\xff", None, "UNREADABLE_RECORD: a name is not UTF-8"),
        (b"\x00\x10\x00\x01g\x00\x01aa", None, "UNREADABLE_RECORD: bytes are left over in the key"),
    ],
)
def test_a_damaged_record_of_a_consumer_group_is_refused_with_a_reason(key, value, reason):
    (row,) = rows({"key": base64.b64encode(key).decode(), "value": None if value is None else base64.b64encode(value).decode()})
    assert (row["verdict"], row["refusal"]) == ("quarantine", reason)
    assert row["raw"]


COMMIT = {"timestamp": 1, "partition": 3, "offset": 9, "key": "AAEAAWcABm9yZGVycwAAAAM="}


def test_a_committed_offset_is_a_row():
    (row,) = rows({**COMMIT, "value": "AAQAAAABAAAABwAAAAUFbm90ZQAAAaIXAnl/AQAQ/+xQ4F4ETQueJqQy4F4E+Q=="})
    assert (row["kind"], row["verdict"], row["group_id"], row["coordinator_partition"]) == ("OFFSETS_STORED", "event", "g", 3)
    assert row["offsets"] == [{"partition": "orders-3", "offset": (1 << 32) + 7, "end": None, "topic_id": "_-xQ4F4ETQueJqQy4F4E-Q"}]
    assert row["received_at"] == AT


def test_a_commit_without_a_value_is_a_row_without_an_offset():
    (row,) = rows({**COMMIT, "value": None})
    assert (row["kind"], row["offsets"]) == ("OFFSETS_STORED", [{"partition": "orders-3", "offset": -1, "end": None, "topic_id": None}])


def test_a_record_of_a_share_group_is_skipped():
    (row,) = rows({"timestamp": 1, "key": base64.b64encode(b"\x00\x0b\x00\x01g").decode(), "value": "AAA="})
    assert row["verdict"] == "skipped"


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("{", "INVALID_JSON"),
        ("[1]", "INVALID_JSON"),
        ("[" * 100_000, "INVALID_JSON"),
        ({"timestamp": 1}, "MISSING_FIELD: key"),
        ({"key": "AAIAAWc", "value": None}, "INVALID_BASE64: key"),
        ({"key": 7, "value": None}, "INVALID_BASE64: key"),
        ({"key": "AAIAAWc=", "value": "AAA"}, "INVALID_BASE64: value"),
        ({"key": "AAIAAWc=", "value": "AAM="}, "UNREADABLE_RECORD: ends too early"),
        ({"key": "AAIAAWc=", "value": "AAk="}, "UNSUPPORTED_VERSION: 9"),
        ({**COMMIT, "value": "AAk="}, "UNSUPPORTED_VERSION: 9"),
        ({**COMMIT, "value": "AAMA"}, "UNREADABLE_RECORD: ends too early"),
        ({**COMMIT, "key": "AAEAAWc=", "value": None}, "UNREADABLE_RECORD: ends too early"),
    ],
)
def test_a_bad_record_is_refused_with_a_reason(line, reason):
    (row,) = rows(line)
    assert (row["verdict"], row["refusal"]) == ("quarantine", reason)
    assert row["raw"]


def test_a_name_may_hold_any_character():
    (row,) = rows({"key": "AAIAAQA=", "value": None})
    assert (row["verdict"], row["group_id"]) == ("event", "\x00")
    group, member = rows({**ANSWER, "group": "g\x1b[31m\n"}, "poll")
    assert (group["verdict"], group["group_id"], member["group_id"]) == ("event", "g\x1b[31m\n", "g\x1b[31m\n")


def test_a_described_group():
    group, member = rows(ANSWER, "poll")
    assert (group["kind"], group["state"], group["protocol"], group["coordinator_address"]) == (
        "GROUP_DESCRIBED", "Stable", "range", "broker:9092",
    )  # fmt: skip
    assert group["assignments"][0]["partitions"] == ["t-0", "t-1"]
    assert (member["member_id"], member["client_id"], member["client_host"]) == ("c1-1", "c1", "10.0.0.7")


def test_a_described_group_of_the_consumer_protocol():
    group, member = rows({**ANSWER, "type": "consumer", "state": "Reconciling"}, "poll")
    assert (group["kind"], group["state"]) == ("CONSUMER_GROUP_DESCRIBED", "Reconciling")
    assert (member["member_id"], member["client_id"]) == ("c1-1", "c1")


OFFSETS = {
    "timestamp": 1_795_273_798_140,
    "group": "g",
    "offsets": {"my-orders-0": [7, 12], "my-orders-11": [-1, 3], "parcels-0": [5, None]},
    "ids": {"my-orders": "luYOBvZtQMueJqQy4F4ETQ"},
}


def test_polled_offsets_are_one_row():
    (row,) = rows(OFFSETS, "poll")
    assert (row["kind"], row["verdict"], row["group_id"]) == ("OFFSETS_POLLED", "event", "g")
    assert [tuple(entry[name] for name in ("partition", "offset", "end", "topic_id")) for entry in row["offsets"]] == [
        ("my-orders-0", 7, 12, "luYOBvZtQMueJqQy4F4ETQ"),
        ("my-orders-11", -1, 3, "luYOBvZtQMueJqQy4F4ETQ"),
        ("parcels-0", 5, None, None),
    ]


NO_OFFSETS = (
    None, [[1, 2]], {"t-0": 7}, {"t-0": [7]}, {"t-0": ["7", 8]}, {"t-0": [None, 8]}, {"t-0": [True, 8]}, {"t-0": [-2, 8]},
    {"t-0": [0, 1 << 63]},
)  # fmt: skip


@pytest.mark.parametrize(
    ("answer", "verdict", "reason"),
    [
        (OFFSETS | {"error": "offsets: Group authorization failed"}, "skipped", None),
        (OFFSETS | {"ids": {}}, "event", None),
        (OFFSETS | {"ids": {"my-orders": None}}, "event", None),
        (OFFSETS | {"offsets": {}}, "event", None),
        *((OFFSETS | {"offsets": offsets}, "quarantine", "MISSING_FIELD: offsets") for offsets in NO_OFFSETS),
        (OFFSETS | {"offsets": {"\ud800-0": [0, 1]}}, "quarantine", "CONTROL_CHARACTERS"),
        (OFFSETS | {"ids": 7}, "quarantine", "MISSING_FIELD: ids"),
        (OFFSETS | {"ids": {"my-orders": 7}}, "quarantine", "MISSING_FIELD: my-orders"),
        (OFFSETS | {"group": None}, "quarantine", "MISSING_FIELD: group"),
        (ANSWER | {"error": "GROUP_AUTHORIZATION_FAILED"}, "skipped", None),
        (ANSWER | {"state": "Unknown"}, "skipped", None),
        (ANSWER | {"state": "Confused"}, "quarantine", "UNKNOWN_STATE: Confused"),
        (ANSWER | {"state": None}, "quarantine", "MISSING_FIELD: state"),
        (ANSWER | {"group": 7}, "quarantine", "MISSING_FIELD: group"),
        (ANSWER | {"members": [7]}, "quarantine", "MISSING_FIELD: members"),
        (ANSWER | {"members": [{}]}, "quarantine", "MISSING_FIELD: member_id"),
        (ANSWER | {"members": [{"member_id": "a", "partitions": [1]}]}, "quarantine", "MISSING_FIELD: partitions"),
        (ANSWER | {"group": "\ud800"}, "quarantine", "CONTROL_CHARACTERS"),
    ],
)
def test_answers_that_say_nothing_or_nonsense(answer, verdict, reason):
    (row,) = rows(answer, "poll")
    assert (row["verdict"], row.get("refusal")) == (verdict, reason)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda x: st.lists(x, max_size=3) | st.dictionaries(st.text(), x, max_size=3),
    max_leaves=20,
)
PAIRS = st.dictionaries(st.text(), st.lists(JSON, min_size=2, max_size=2), max_size=3)


@given(st.sampled_from(sorted(ANSWER)), JSON)
def test_no_value_of_any_field_is_too_much(name, some):
    rows(ANSWER | {name: some}, "poll")


@given(st.sampled_from(["group", "offsets", "ids"]), JSON | PAIRS)
def test_no_value_of_any_field_of_polled_offsets_is_too_much(name, some):
    rows(OFFSETS | {name: some}, "poll")


@given(st.sampled_from([0, 1, 2, 3, 5, 8, 16]), st.binary(max_size=80), st.none() | st.binary(max_size=200))
def test_no_bytes_are_too_much(kind, key, value):
    encoded = None if value is None else base64.b64encode(value).decode()
    rows({"key": base64.b64encode(bytes([0, kind]) + key).decode(), "value": encoded})


def read(path):
    kept = KeptLines()
    reader = LogReader(lambda: open_log(path), RecordTimes("UTC"), judge=RecordJudge)
    while reader.read(kept):
        pass
    return kept, reader


def test_the_reader_keeps_records_of_groups_and_hears_the_rest(tmp_path):
    path = tmp_path / "x.jsonl"
    lines = [
        '{"format":"rebalance-offsets-1","from":"b:1","began":"2026"}',
        '{"timestamp":1795273794875,"partition":3,"offset":0,"key":"AAIAAWc=","value":null}',
        '{"timestamp":1795283794875,"partition":3,"offset":1,"key":"AAEAAWc=","value":null}',
        '{"timestamp":1795293794875,"partition":3,"offset":2,"key":"AAsAAWc=","value":null}',
        '{"timestamp": 1795273794000, "partition": 4, "offset": 0, "key": "AAIAAWc=", "value": null}',
        "",
        '{"timestamp":-1,"partition":3,"offset":2,"key":"AAIAAWc=","value":null}',
        '{"partition":3,"offset":2,"key":"AAIAAWc=","value":null}',
        '{"timestamp":1795303794875,"read":9}',
        '{"timestamp":1795303794876,"partition":3,"offset":3,"key":"AAMAAWc=","value":null}',
        '{"timestamp":1795303794877,"partition":3,"offset":4,"key":"ABAAAWcAAWE=","value":null}',
    ]
    path.write_text("\n".join(lines) + "\n")
    kept, reader = read(path)
    assert list(zip(kept.positions, kept.ats, strict=True)) == [
        *((2, 1795273794875), (3, 1795283794875), (5, 1795273794000), (7, None), (8, None)),
        *((10, 1795303794876), (11, 1795303794877)),  # of groups of the consumer protocol
    ]
    assert [kept.faults.get(index) for index in range(7)] == [None, None, None, "BAD_TIMESTAMP", "NO_TIMESTAMP", None, None]
    assert reader.mark.newest_ms == 1795303794877


def test_the_reader_of_a_poll_keeps_groups(tmp_path):
    path = tmp_path / "x.jsonl"
    path.write_text(f'{json.dumps(ANSWER)}\n{json.dumps(OFFSETS)}\n{{"timestamp":1795273799000,"polled":1,"took_ms":3}}\n')
    kept, reader = read(path)
    assert kept.positions == [1, 2]
    assert reader.mark.newest_ms == 1795273799000


def test_files_of_records_are_found_beside_brokers(tmp_path):
    for name in (
        "c/b1/server.log",
        "c/offsets/a.jsonl",
        "c/poll/b.jsonl.gz",
        "c/b1/poll/deep.jsonl",
        "c/other/truth.jsonl",
        "c/poll/.x.jsonl",
    ):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    found = {file.origin: (file.cluster, file.broker) for file in discover(tmp_path)}
    assert found == {
        "c/b1/server.log": ("c", "b1"), "c/offsets/a.jsonl": ("c", "offsets"), "c/poll/b.jsonl.gz": ("c", "poll"),
        "c/b1/poll/deep.jsonl": ("c", "poll"),
    }  # fmt: skip
    assert {(file.cluster, file.broker) for file in discover(tmp_path / "c")} >= {("c", "offsets"), ("c", "poll")}


def test_a_file_that_is_named_directly_is_told_by_how_it_begins(tmp_path):
    (tmp_path / "a.jsonl").write_text(json.dumps(ANSWER))
    assert [file.broker for file in discover(tmp_path / "a.jsonl")] == ["poll"]
    assert [file.broker for file in discover(REAL)] == ["offsets"]
    assert record_source(b'{"format":"rebalance-poll-1"}') == "poll"
