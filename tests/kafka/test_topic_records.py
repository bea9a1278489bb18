"""The shipper's records: what they hold is read as it was written, and which key they have."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobs.kafka.topic_records import bundle_headers, clock_headers, line_headers, line_source, lines_in, log_headers, record_key
from tests.kafka.topic_reader import RecordError, read_record
from tests.logs.log_makers import coordinator, request

TEXTS = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=20)


@given(
    TEXTS,
    TEXTS,
    TEXTS,
    st.integers(0, 1 << 50),
    st.none() | st.integers(-1, 1 << 45),
    st.sampled_from(["", "TOO_LONG"]),
    TEXTS | st.just(""),
)
def test_a_line_is_read_as_it_was_written(cluster, broker, origin, position, at_ms, fault, context):
    headers = line_headers(log_headers(cluster, broker, "line", origin), "request", position, at_ms, fault, context)
    record = read_record(headers, "Grüße".encode())
    assert (record.cluster, record.broker, record.origin, record.position) == (cluster, broker, origin, position)
    assert (record.source, record.at_ms, record.fault, record.context) == ("request", at_ms, fault or None, context or None)
    assert (record.record, record.text, record.lines, record.read_ms) == ("line", "Grüße", None, None)


def test_a_clock_is_read_as_it_was_written():
    record = read_record(clock_headers(log_headers("c", "b", "clock", "o"), 7, None, 3, None), b"[]")
    assert (record.record, record.position, record.at_ms, record.lines, record.read_ms, record.text) == ("clock", 7, None, 3, None, "[]")
    assert read_record([*clock_headers(log_headers("c", "b", "clock", "o"), 7, 5, 3, 6), ("new", b"\xff")], b"[]").read_ms == 6


def test_headers_tell_how_many_lines_a_record_holds():
    bundle = bundle_headers(log_headers("c", "b", "heartbeats", "o"), 7, 950, b"value")
    line, clock = (
        line_headers(log_headers("c", "b", "line", "o"), "request", 1, 2),
        clock_headers(log_headers("c", "b", "clock", "o"), 7, 1, 9, 1),
    )
    assert [lines_in(headers) for headers in (bundle, line, clock, [])] == [950, 1, 0, 1]
    assert [lines_in([*bundle, ("lines", value)]) for value in (b"", b"x", b"1" * 30, b"-5")] == [1] * 4


@pytest.mark.parametrize(
    ("name", "value", "said"),
    [
        ("position", None, "no header position"),
        ("position", b"x", "no number"),
        ("record", b"other", "record is other"),
        ("at", b"1" * 30, "no number"),
    ],
)
def test_a_record_of_somebody_else_is_told(name, value, said):
    headers = dict(line_headers(log_headers("c", "b", "line", "o"), "request", 1, 2))
    headers.pop(name)
    if value is not None:
        headers[name] = value
    with pytest.raises(RecordError, match=said):
        read_record(list(headers.items()), b"")
    with pytest.raises(RecordError, match="no header cluster"):
        read_record(None, None)


@pytest.mark.parametrize(
    ("broker", "line", "context", "source", "key"),
    [
        ("b", request(0, group="payments"), "", "request", b"payments"),
        ("b", request(0, group='a\\"b'), "", "request", b'a\\"b'),
        ("b", request(0).replace(b"groupId", b"key"), "", "request", b"o"),
        ("b", coordinator(0, "Stabilized group payments generation 1 with 3 members."), "", "coordinator", b"payments"),
        ("b", coordinator(0, "Elected as the coordinator"), "", "coordinator", b"o"),
        ("clients", b'%7|1.000|JOINGROUP|app| [thrd:main]: Group "payments": joining', "", "client", b"payments"),
        ("clients", b"[Consumer clientId=a, groupId=payments] Request joining group due to: x", "", "client", b"payments"),
        ("clients", b"%4|1.000|MAXPOLL|app| [thrd:main]: late", "payments", "client", b"payments"),
        ("poll", b'{"group":"payments"}', "", "poll", b"o"),
    ],
)
def test_lines_of_a_group_have_its_key(broker, line, context, source, key):
    assert line_source(broker, line) == source
    assert record_key(source, line, context, "o") == key
