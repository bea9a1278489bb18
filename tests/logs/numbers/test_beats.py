"""Heartbeats as numbers: whatever a log holds, its lines say the same whether some of them became numbers or not."""

import json
import re
from collections import Counter

import numpy as np
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from jobs.logs.heartbeats.beat_numbers import WIDTH
from jobs.logs.slice_rows import ARROW_SCHEMA, folded
from tests.logs.log_makers import PROMPT, consumer_heartbeat, coordinator, fetch, heartbeat, request, write
from tests.logs.spooling import run

STEADY = consumer_heartbeat(0)
UNSTEADY = (
    consumer_heartbeat(0, answer_epoch=4),
    consumer_heartbeat(0, epoch=0, answer_epoch=3),
    consumer_heartbeat(0, epoch=-1),
    STEADY.replace(b'"rackId":null', b'"rackId":"r1"'),
    STEADY.replace(b'"rebalanceTimeoutMs":-1', b'"rebalanceTimeoutMs":300000'),
    STEADY.replace(b'"subscribedTopicNames":null', b'"subscribedTopicNames":["a"]'),
    STEADY.replace(b'"subscribedTopicRegex":null', b'"subscribedTopicRegex":""'),
    STEADY.replace(b'"serverAssignor":null', b'"serverAssignor":"range"'),
    STEADY.replace(b'"topicPartitions":null}', b'"topicPartitions":[]}'),
    STEADY.replace(b'"errorCode":0,"errorMessage":null', b'"errorCode":110,"errorMessage":"fenced"'),
    STEADY.replace(b'"assignment":null', b'"assignment":{"topicPartitions":[]}'),
    STEADY.replace(b'"memberId":"WR0lBCwrTxSoqM5Yd3xUww","memberEpoch":3,"heartbeat', b'"memberId":"other","memberEpoch":3,"heartbeat'),
)
"""Each says something new, in the request or in the answer."""
_VARIES = re.compile(rb'^\[[^\]]*\]|(?<="correlationId":)\d+|(?<=TimeMs":)[\d.]+(?=,"[a-zA-Z]+(?:TimeMs|Protocol)")')


def rows_of(tmp_path, lines, **settings):
    """The rows of a log with and without folding."""
    write(tmp_path / "in/c/b/kafka-request.log", lines)
    return [run(tmp_path / "in", tmp_path / f"out-{fold}", fold=fold, **settings)[0].rows for fold in (False, True)]


def numbers(row):
    """(position, time, arrival, correlation id) of the lines that repeat a row."""
    since = np.frombuffer(row["repeated"] or b"", np.int64).reshape(-1, WIDTH)
    return (since + np.array([row["position"], 0, 0, 0])).tolist()


def same(plain, folded):
    """Asserts that the folded rows say what the plain ones say. Returns the number of lines that became numbers."""
    by_position = {row["position"]: row for row in plain if row["record"] == "line"}
    count = 0
    for row in folded:
        if row["record"] != "line":
            continue
        first = by_position.pop(row["position"])
        assert {**first, "repeated": None, "lines": 0} == {**row, "repeated": None, "lines": 0}
        assert row["lines"] == 1 + len(numbers(row))
        for position, at_ms, received_us, correlation in numbers(row):
            line = by_position.pop(position)
            read = json.loads(line["text"][line["text"].index("{") : line["text"].rindex("}") + 1])
            assert line["fault"] is None
            assert _VARIES.sub(b"", line["text"].encode()) == _VARIES.sub(b"", first["text"].encode())
            assert at_ms == line["at"].timestamp() * 1_000
            assert correlation == read["requestHeader"]["correlationId"]
            assert received_us == at_ms * 1_000 - duration_us(read)
            count += 1
    assert not by_position
    assert [row for row in plain if row["record"] != "line"] == [row for row in folded if row["record"] != "line"]
    return count


def duration_us(read):
    """The total, unless its parts exceed it (jobs/parsing/request_checks.py)."""
    parts = sum(read[f"{name}TimeMs"] for name in ("requestQueue", "local", "remote", "responseQueue", "send"))
    overlap = read["localTimeMs"] if read["remoteTimeMs"] == 0 else 0
    return round(read["totalTimeMs"] * 1_000) if parts <= read["totalTimeMs"] + overlap + 0.01 else 0


def test_a_line_that_repeats_another_becomes_numbers(tmp_path):
    lines = [heartbeat(0), heartbeat(5, "b"), heartbeat(3_000, number="8", times=(1.25, 0.5, 0.25, 0.0, 0.25, 0.25)), heartbeat(3_005, "b")]
    plain, folded = rows_of(tmp_path, lines)
    assert same(plain, folded) == 2
    first, *_ = folded
    ((position, at_ms, received_us, correlation),) = numbers(first)
    assert (position, correlation, at_ms * 1_000 - received_us) == (3, 8, 1_250)


def test_another_answer_or_member_is_another_line(tmp_path):
    lines = [heartbeat(0), heartbeat(1, error=27), heartbeat(2, "b"), request(3), request(4), fetch(5), coordinator(6)]
    plain, folded = rows_of(tmp_path, lines)
    assert same(plain, folded) == 0
    assert same(plain, folded) == 0


def test_only_steady_heartbeats_of_the_consumer_protocol_become_numbers(tmp_path):
    steady = [consumer_heartbeat(0), consumer_heartbeat(5, "b"), consumer_heartbeat(5_000, number="8"), consumer_heartbeat(5_005, "b")]
    plain, folded = rows_of(tmp_path / "steady", steady)
    assert same(plain, folded) == 2
    for number, differs in enumerate(UNSTEADY):
        lines = [consumer_heartbeat(0), differs, differs.replace(b"06:00:00,000", b"06:00:01,000")]
        plain, folded = rows_of(tmp_path / str(number), lines)
        assert same(plain, folded) == 0, differs


def test_numbers_that_java_does_not_write_stay_text(tmp_path):
    odd = [
        heartbeat(1, number="007"), heartbeat(2, number="-1"), heartbeat(3, number="1e3"), heartbeat(4, number="12345678901"),
        heartbeat(5, times=("", *PROMPT[1:])), heartbeat(6, times=("00.4", *PROMPT[1:])), heartbeat(7, times=(".4", *PROMPT[1:])),
        heartbeat(8, times=("1.0E7", *PROMPT[1:])), heartbeat(9, times=("-0.4", *PROMPT[1:])), heartbeat(10)[:-9], heartbeat(11) + b"x",
    ]  # fmt: skip
    plain, folded = rows_of(tmp_path, [heartbeat(0), *odd])
    assert same(plain, folded) == 0


def test_names_with_escapes_stay_text(tmp_path):
    plain, folded = rows_of(tmp_path, [heartbeat(n, member='a\\"') for n in range(3)])
    assert plain == folded


def test_a_repetition_is_never_that_of_another_slice(tmp_path):
    plain, folded = rows_of(tmp_path, [heartbeat(n * 1_000) for n in range(400)], slice_lines=100)
    assert same(plain, folded) > 300
    assert Counter(row["record"] for row in folded)["line"] > 1


_TIMES = st.tuples(*[st.sampled_from([0.0, 0.05, 0.1, 1.234, 20.5, 100_000.0])] * 6)
_LINES = st.one_of(
    st.builds(
        heartbeat,
        st.integers(0, 50),
        st.sampled_from("ab"),
        st.sampled_from(["0", "7", "123456789", "2147483647"]),
        st.just(PROMPT) | _TIMES,
        st.sampled_from([0, 27]),
    ),
    st.builds(
        consumer_heartbeat,
        st.integers(0, 50),
        st.sampled_from("ab"),
        st.sampled_from(["0", "7", "123456789"]),
        st.just(PROMPT) | _TIMES,
        epoch=st.sampled_from([0, 3]),
        answer_epoch=st.sampled_from([None, 4]),
    ),
    st.builds(request, st.integers(0, 50)),
    st.builds(fetch, st.integers(0, 50)),
    st.builds(coordinator, st.integers(0, 50)),
    st.sampled_from([b"", b"\tat kafka.Server.run(Server.scala:1)", b"\xff\xfe"]),
)
_DAMAGE = st.tuples(st.integers(0, 10**6), st.sampled_from([b"", b'"', b"0", b"\\", b"}", b"x"]))


@given(lines=st.lists(_LINES, max_size=40), damage=st.lists(_DAMAGE, max_size=3), slice_lines=st.sampled_from([7, 1_000]))
def test_any_log_says_the_same(tmp_path_factory, lines, damage, slice_lines):
    text = b"\n".join(lines)
    for place, instead in damage:
        at = place % (len(text) + 1)
        text = text[:at] + instead + text[at + 1 :]
    same(*rows_of(tmp_path_factory.mktemp("log"), text.split(b"\n"), slice_lines=slice_lines))


def refolded(rows):
    """Rows whose heartbeats were folded again, over all slices."""
    beats = [row for row in rows if row["record"] == "line" and row["repeated"] is not None]
    table = pa.Table.from_pylist(beats, schema=ARROW_SCHEMA)
    again = folded(pa.concat_tables([table.slice(0, 0), *(table.slice(row, 3) for row in range(0, len(table), 3))])).to_pylist()
    return [*again, *(row for row in rows if row not in beats)]


def test_heartbeats_of_all_slices_become_one_row_for_each_member(tmp_path):
    plain, in_slices = rows_of(tmp_path, [heartbeat(n * 1_000, "abc"[n % 3]) for n in range(400)], slice_lines=100)
    assert same(plain, refolded(in_slices)) == 397


@given(lines=st.lists(_LINES, max_size=40), slice_lines=st.sampled_from([3, 7]))
def test_any_log_says_the_same_when_it_is_folded_again(tmp_path_factory, lines, slice_lines):
    plain, in_slices = rows_of(tmp_path_factory.mktemp("log"), lines, slice_lines=slice_lines)
    assert same(plain, refolded(in_slices)) >= same(plain, in_slices)
