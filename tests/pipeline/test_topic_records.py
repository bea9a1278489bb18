"""jobs/pipeline/topic_records.py: Kafka records as log lines, whatever anybody writes to the topic."""

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobs.kafka.topic_records import bundle_headers, clock_headers, line_headers, log_headers
from jobs.pipeline.topic_records import PLACE_BITS, as_lines

HEADER = pa.struct([("key", pa.string()), ("value", pa.binary())])
KAFKA = pa.schema(
    [("topic", pa.string()), ("partition", pa.int32()), ("offset", pa.int64()), ("value", pa.binary()), ("headers", pa.list_(HEADER))]
)
LINE = line_headers(log_headers("c", "b", "line", "server@1"), "request", 7, 1_795_240_800_123)
OTHER_VERSION = ", this program reads 2: run the same version here and in `rebalance ship`, or ship with --raw"
MS = 1_000


def kafka(*records, partition=2):
    """Records, each (headers, value), as Spark hands them to a task."""
    rows = [
        {
            "topic": "logs",
            "partition": partition,
            "offset": offset,
            "value": value,
            "headers": headers and [{"key": key, "value": data} for key, data in headers],
        }
        for offset, (headers, value) in enumerate(records)
    ]
    return pa.RecordBatch.from_pylist(rows, KAFKA)


def rows(*records):
    return as_lines(kafka(*records)).to_pylist()


def with_headers(**changes):
    """The headers of a line, some of them changed; None: absent."""
    return [(name, value) for name, value in ({**dict(LINE), **changes}).items() if value is not None]


def test_a_line_keeps_its_log_its_position_and_its_time():
    (row,) = rows((line_headers(log_headers("c", "b", "line", "server@1"), "client", 7, 1_795_240_800_123, "NO_TIME", "orders"), b"text"))
    at = row.pop("at")
    assert at.timestamp() * MS == 1_795_240_800_123
    assert row == {
        "cluster": "c", "broker": "b", "record": "line", "origin": "server@1", "position": 7, "text": "text",
        "fault": "NO_TIME", "lines": 1, "context": "orders", "repeated": None, "around": None, "place": 2 << PLACE_BITS,
    }  # fmt: skip


def test_a_line_without_a_time_has_none():
    (row,) = rows((line_headers(log_headers("c", "b", "line", "o"), "request", 7, None), None))
    assert (row["at"], row["text"], row["fault"], row["context"]) == (None, "", None, None)


def test_a_clock_stands_for_no_line_and_says_when_its_broker_was_read():
    shared = log_headers("c", "b", "clock", "o")
    read, unread = rows((clock_headers(shared, 7, 5, 3, 6), b"[1, 2]"), (clock_headers(shared, 7, None, 3, None), b"[]"))
    assert [(row["record"], row["lines"], row["text"], row["fault"]) for row in (read, unread)] == [
        ("clock", 0, "6|[1, 2]", None),
        ("clock", 0, "|[]", None),
    ]


def test_a_bundle_stays_bytes_beside_its_checksum():
    headers = bundle_headers(log_headers("c", "b", "heartbeats", "o"), 7, 950, b"\xff\x00")
    (row,) = rows((headers, b"\xff\x00"))
    assert (row["record"], row["repeated"], row["text"], row["context"]) == (
        "heartbeats",
        b"\xff\x00",
        dict(headers)["crc"].decode(),
        "logs-2",
    )


def test_of_headers_of_one_name_the_last_one_counts():
    (row,) = rows(([("cluster", b"first"), ("unknown", b"\xff"), *LINE, ("position", b"9")], b""))
    assert (row["cluster"], row["position"]) == ("c", 9)
    (row,) = rows(([*LINE, ("position", None)], b""))
    assert row["fault"] == "NOT_SHIPPED: no header position"


def test_bytes_that_are_no_text_are_replaced_in_their_record_alone():
    damaged, sound = rows((with_headers(cluster=b"\xffc"), b"\xff\x00"), (LINE, "Grüße".encode()))
    assert (damaged["cluster"], damaged["text"]) == ("\ufffdc", "\ufffd\x00")
    assert (sound["cluster"], sound["text"]) == ("c", "Grüße")


@pytest.mark.parametrize(
    ("headers", "problem"),
    [
        (None, "no header cluster"),
        ([], "no header cluster"),
        (with_headers(broker=b""), "no header broker"),
        (with_headers(record=b"other"), "header record is neither line, heartbeats nor clock"),
        (with_headers(record=b"heartbeats"), "heartbeats of version none, this program reads 2"),
        (with_headers(record=b"heartbeats", version=b"1"), f"heartbeats of version 1{OTHER_VERSION}"),
        (with_headers(record=b"heartbeats", version=b"3" * 50), f"heartbeats of version {'3' * 20}{OTHER_VERSION}"),
        (with_headers(cluster=b"c" * 250), "header cluster is longer than 249"),
        (with_headers(origin=b"o" * 4_097), "header origin is longer than 4096"),
        (with_headers(context=b"g" * 32_768), "header context is longer than 32767"),
        (with_headers(fault=b"no code"), "header fault is no code"),
        (with_headers(fault=b"CODE\n"), "header fault is no code"),
        (with_headers(position=b"-1"), "header position is no number that can be"),
        (with_headers(position=b"1\n"), "header position is no number that can be"),
        (with_headers(position=b"%d" % ((1 << 53) + 1)), "header position is no number that can be"),
        (with_headers(at=b"1" * 30), "header at is no number that can be"),
        (with_headers(at=b"999999999999999999"), "header at is no number that can be"),
        (with_headers(record=b"clock", read=b"tomorrow"), "header read is no number that can be"),
        (with_headers(crc=b""), "header crc is no number that can be"),
    ],
)
def test_what_no_shipper_wrote_is_a_line_with_a_fault_under_the_topics_name(headers, problem):
    unknown, known = rows((headers, b"text"), (LINE, b"text"))
    assert unknown.pop("fault").startswith(f"NOT_SHIPPED: {problem}")
    assert unknown == {
        "cluster": "", "broker": "", "record": "line", "origin": "logs-2", "position": 0, "at": None, "text": "text",
        "lines": 1, "context": None, "repeated": None, "around": None, "place": 2 << PLACE_BITS,
    }  # fmt: skip
    assert (known["cluster"], known["position"], known["fault"]) == ("c", 7, None)


def test_the_longest_names_and_greatest_numbers_are_read():
    headers = with_headers(
        cluster="ü".encode() * 249, origin=b"o" * 4_096, context=b"g" * 32_767, fault=b"A" * 40, position=b"%d" % (1 << 53), at=b"0"
    )
    (row,) = rows((headers, b""))
    assert (row["cluster"], row["position"], row["fault"], row["at"].timestamp()) == ("ü" * 249, 1 << 53, "A" * 40, 0)


def test_no_records_are_no_lines():
    assert rows() == []
    assert as_lines(kafka((LINE, b"a"), (LINE, b"b")).slice(1)).to_pylist()[0]["text"] == "b"


NAMES = st.sampled_from(["cluster", "broker", "record", "origin", "position", "at", "fault", "context", "read", "version", "crc", "x"])
VALUES = st.one_of(st.none(), st.sampled_from([b"", b"1", b"line", b"clock", b"heartbeats", b"\xff"]), st.binary(max_size=30))
HEADERS = st.lists(st.tuples(NAMES, VALUES), max_size=12)
RECORDS = st.tuples(st.one_of(st.none(), HEADERS, HEADERS.map(lambda more: [*LINE, *more])), st.one_of(st.none(), st.binary(max_size=20)))


@given(st.lists(RECORDS, max_size=6))
def test_a_record_reads_the_same_beside_any_others(records):
    together = rows(*records)
    assert len(together) == len(records)
    for offset, record in enumerate(records):
        (alone,) = as_lines(kafka(*records).slice(offset, 1)).to_pylist()
        assert alone == together[offset], record
