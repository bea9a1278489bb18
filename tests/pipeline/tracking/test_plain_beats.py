"""Rows of plain heartbeats pass to the tracker column by column, and are the heartbeats that the rows are."""

from itertools import chain

import pandas as pd
import pyarrow as pa
import pytest

from coordinator_model.tracker.quiet import runs
from jobs.pipeline.tracking import packets, plain_beats
from jobs.pipeline.tracking.spread import Spread
from schemas.names import GROUP_EVENTS
from schemas.tables import arrow_schema_of

ROW = {
    "cluster": "c", "broker": "1", "source": "request", "origin": "f", "position": 7, "occurred_at": 1_000_000, "received_at": 990_000,
    "kind": "HEARTBEAT", "group_id": "payments", "coordinator_partition": 3, "api_version": 4, "connection": "a:1-b:2-3",
    "correlation_id": 9, "client_id": "app", "client_host": "b", "software": "java 4.2.0", "member_id": "app-1", "instance_id": None,
    "generation": 5, "error_code": 0, "lines": 1, "batch_id": 0, "beats": [0], "positions": [7], "beat_count": 1,
}  # fmt: skip
SCHEMA = pa.schema([field.with_nullable(True) for field in arrow_schema_of(GROUP_EVENTS)])


def arrow(*rows):
    return pa.RecordBatch.from_pylist([ROW | row for row in rows], schema=SCHEMA)


def are_plain(rows):
    return plain_beats.are_plain(rows, plain_beats.senders_of(rows))


def unpacked(rows):
    """What the tracker gets: events, and heartbeats as numbers."""
    (batch,) = packets.packed(Spread(1, 1), [rows], "")
    return packets.unpacked([pd.DataFrame({"events": batch["events"].to_pylist()})])


PLAIN = [
    {},
    {"error_code": None},
    {"instance_id": "i-1", "client_id": None, "client_host": None, "software": None, "connection": None, "api_version": None},
    {"beats": [0, 3_000, 6_001], "positions": [7, 70, 12], "beat_count": 3, "longest_gap_ms": 3_001},
    {"received_at": 900_999, "occurred_at": 1_000_000},  # 100 ms
    {"group_id": "\N{GRINNING FACE}"},
    {"beats": [0, 300_000], "positions": [7, 8]},
]
NOT_PLAIN = [
    {"kind": "OFFSET_COMMIT"},
    {"kind": "CONSUMER_GROUP_HEARTBEAT"},
    {"source": "coordinator"},
    {"error_code": 27},
    {"received_at": 899_000},  # a late answer
    {"beats": None, "positions": None},
    {"beats": [0, 0], "positions": [7, 8]},
    {"beats": [0, 3_000, 2_999], "positions": [7, 8, 9]},
    {"beats": [0, 300_001], "positions": [7, 8]},
    {"beats": [0, 1], "positions": [7]},
    {"beats": [1, 2], "positions": [7, 8]},
    {"positions": [8]},
    {"generation": None},
    {"group_id": None},
    {"member_id": None},
    {"client_id": "a\0b"},
    {"reason": "x"},
    {"answer_generation": 5},
    {"protocols": []},
]


@pytest.mark.parametrize("row", PLAIN)
def test_a_plain_heartbeat_is_numbers_and_the_same_heartbeats_as_its_row(row):
    rows = arrow(row)
    assert are_plain(rows).to_pylist() == [True]
    events, (beats,), _, _ = unpacked(rows)
    assert not events
    (told,) = (dict(zip(packets.Event._fields, fields, strict=True)) for fields in packets._fields(rows))
    told |= {name: tuple(told[name]) for name in ("beats", "positions")}
    assert [run.event() for run in beats.runs()] == runs.as_runs(packets.Event(**told))


@pytest.mark.parametrize("row", NOT_PLAIN)
def test_whatever_says_more_is_an_event(row):
    # Beside others: each row is judged by itself, whatever its neighbours have.
    rows = arrow({}, row, {"beats": [0, 3], "positions": [7, 8]})
    assert are_plain(rows).to_pylist() == [True, False, True]
    events, beats, _, _ = unpacked(rows)
    assert len(events) == (row.get("group_id", "") is not None)
    assert [run.event().beats for group in beats for run in group.runs()] == [(0,), (0, 3)]


def test_heartbeats_of_a_group_come_together_and_those_of_others_apart():
    others = [{"cluster": "d"}, {"generation": 6}, {"broker": "2"}, {"origin": "g"}, {"group_id": "orders"}]
    rows = arrow(*chain.from_iterable([{"member_id": f"m-{number}"}, other] for number, other in enumerate(others)))
    found = [
        (cluster, beats.shared, beats.member_ids)
        for cluster, beats in plain_beats.by_group(rows, plain_beats.senders_of(rows), are_plain(rows))
    ]
    assert len(found) == len({one[:2] for one in found}) == 6
    assert sorted(map(len, (members for *_, members in found))) == [1, 1, 1, 1, 1, 5]
