"""Rows of group_events as packets of events, and back, without a JVM."""

import pandas as pd
import pyarrow as pa

from coordinator_model.events import CLOCK, COORDINATOR_ELECTED, PREPARING_REBALANCE, Assignment, Event, MemberEntry, Protocol
from coordinator_model.specification.partition import coordinator_partition
from jobs.pipeline.tracking import packets
from jobs.pipeline.tracking.spread import Spread
from schemas.names import GROUP_EVENTS
from schemas.tables import arrow_schema_of, schema_of

SHARDS = 5
SPREAD = Spread(SHARDS, tasks=3)
ROW = {
    "cluster": "c", "broker": "1", "source": "request", "origin": "f", "position": 7, "occurred_at": 1_000_999, "received_at": 990_000,
    "kind": "HEARTBEAT", "group_id": "payments", "lines": 1, "batch_id": 0,
}  # fmt: skip
EVENT = Event(
    broker="1", source="request", origin="f", position=7, at_ms=1_000, received_ms=990, kind="HEARTBEAT", group_id="payments"
)  # fmt: skip


def arrow(*rows):
    columns = pa.schema([field.with_nullable(True) for field in arrow_schema_of(GROUP_EVENTS)])
    return pa.RecordBatch.from_pylist([ROW | row for row in rows], schema=columns)


def events(*rows):
    """By cluster and shard."""
    found = {}
    for batch in packets.packed(SPREAD, [arrow(*rows)], ""):
        for cluster, key, packet in zip(*(batch[name].to_pylist() for name in batch.schema.names), strict=True):
            own_events, beats, _, _ = packets.unpacked([pd.DataFrame({"events": [packet]})])
            assert not beats
            found[cluster, SPREAD.shard(key)] = own_events
    return found


def own(group_id="payments"):
    return "c", coordinator_partition(group_id, SHARDS)


def test_every_field_of_an_event_is_a_column():
    assert {packets.COLUMN_OF.get(name, name) for name in Event._fields} <= set(schema_of(GROUP_EVENTS).names)


def test_a_field_without_a_default_is_never_null_in_the_table():
    for name in set(Event._fields) - set(Event._field_defaults):
        assert not schema_of(GROUP_EVENTS).field(packets.COLUMN_OF.get(name, name)).nullable


def test_numbers_arrive_as_pythons_own_and_times_in_whole_milliseconds():
    ((event,),) = events({}).values()
    assert event == EVENT
    assert {type(value) for value in event} == {str, int, bool, tuple, type(None)}


def test_what_is_absent_gets_the_default_of_event_and_lists_become_tuples():
    full = {
        "answer_generation": 4,
        "skip_assignment": True,
        "protocols": [{"name": "range", "topics": ["t"], "owned": [], "digest": "d"}, {"name": "x"}],
        "members": [{"member_id": "m", "error_code": 25}, {"topics": []}],
        "assignments": [{"member_id": "m", "partitions": ["t-0"]}, {"member_id": "n"}],
        "beats": [0, 5],
        "positions": [7, 9],
        "subscribed_regex": "",
        "owned": [],
    }
    found = events(full, {"owned": []}, {}, {"client_id": "x"})[own()]
    assert found == [
        EVENT._replace(
            answer_generation=4,
            skip_assignment=True,
            protocols=(Protocol("range", ("t",), (), "d"), Protocol("x", None, (), "")),
            members=(MemberEntry("m", "", 25, "", None), MemberEntry("", "", 0, "", ())),
            assignments=(Assignment("m", ("t-0",), ""), Assignment("n", None, "")),
            beats=(0, 5),
            positions=(7, 9),
            subscribed_regex="",
            owned=(),
        ),
        EVENT._replace(owned=()),
        EVENT,
        EVENT._replace(client_id="x"),
    ]


def test_an_event_goes_to_the_shard_of_its_group():
    found = events({}, {"group_id": "orders"}, {"group_id": "\N{GRINNING FACE}"}, {"group_id": "orders", "cluster": "d"})
    assert {key: [event.group_id for event in own_events] for key, own_events in found.items()} == {
        own(): ["payments"],
        own("orders"): ["orders"],
        own("\N{GRINNING FACE}"): ["\N{GRINNING FACE}"],
        ("d", own("orders")[1]): ["orders"],
    }


def test_clocks_and_lines_about_no_group_go_to_all_shards_of_their_cluster_and_other_such_rows_to_none():
    none = {"group_id": None}
    found = events(none | {"kind": CLOCK}, none | {"kind": COORDINATOR_ELECTED}, none | {"kind": PREPARING_REBALANCE})
    assert {key: [event.kind for event in own_events] for key, own_events in found.items()} == {
        ("c", shard): [CLOCK, COORDINATOR_ELECTED] for shard in range(SHARDS)
    }
