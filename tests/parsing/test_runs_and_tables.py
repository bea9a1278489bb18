"""Runs of heartbeats, partitions of groups, and tables that are written once."""

from __future__ import annotations

import json
from collections import Counter
from datetime import datetime, timedelta, timezone
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable
from hypothesis import given
from hypothesis import strategies as st
from pyspark.sql.types import StructType

from jobs.common.errors import UserError
from jobs.common.settings import Settings
from jobs.lakehouse import tables
from jobs.lakehouse.folder import Lakehouse
from jobs.logs.workers import THIS_PROCESS
from jobs.parsing.rows import PARSED
from jobs.parsing.runs import heartbeat_runs as members
from jobs.parsing.runs.heartbeat_runs import heartbeat_runs
from jobs.pipeline import ingest
from schemas import names
from schemas.tables import INGEST_TABLES, columns_of, schema_of
from tests.parsing.reading import read_lines

MEASURED = json.loads((Path(__file__).parents[1] / "data" / "traces" / "group_partition.json").read_text("utf-8"))
START = datetime(2026, 11, 21, 5, 0, tzinfo=timezone.utc)


REQUEST = (
    '[t] DEBUG Completed request:{"isForwarded":false,"requestHeader":{"requestApiKey":12,"requestApiVersion":4,"correlationId":3,'
    '"clientId":"b1","requestApiKeyName":"HEARTBEAT"},"request":{"groupId":"g","generationId":4,"memberId":"m"},"response":'
    '{"errorCode":0},"connection":"127.0.0.1:9092-10.0.0.9:53676-0-2","totalTimeMs":1.0,"requestQueueTimeMs":0.0,'
    '"localTimeMs":1.0,"remoteTimeMs":0.0,"responseQueueTimeMs":0.0,"sendTimeMs":0.0} (kafka.request.logger)'
)


def runs(*beats):
    """(arrival of the first, beats, longest gap, positions) of the runs of beats (arrival in ms since START, error code)."""
    member = {
        "cluster": "c", "broker": "b", "source": "request", "origin": "f", "kind": "HEARTBEAT", "group_id": "g", "member_id": "m",
        "generation": 4, "connection": "x", "correlation_id": 1, "api_version": 4, "lines": 1, "verdict": "event",
    }  # fmt: skip
    rows = []
    for position, (ms, error) in enumerate(beats, 1):
        arrival = START + timedelta(milliseconds=ms)
        rows.append({**member, "position": position, "error_code": error, "received_at": arrival, "occurred_at": arrival})
    found = heartbeat_runs(pa.Table.from_pylist(rows, schema=PARSED)).to_pylist()
    return sorted((row["received_at"], list(row["beats"]), row["longest_gap_ms"], list(row["positions"])) for row in found)


def test_a_run_is_cut_where_the_rhythm_or_the_answer_changes():
    steady = [(3000 * n, 0) for n in range(5)]
    after_a_gap = [(25_000 + 3100 * n, 0) for n in range(3)]
    refused = [(40_000, 27)]
    found = runs(*steady, *after_a_gap, *refused)
    assert [run[1:] for run in found] == [
        ([0, 3000, 6000, 9000, 12_000], 3000, [1, 2, 3, 4, 5]),
        ([0], None, [6]),  # the gap before it is another rhythm, and so is the gap after it
        ([0, 3100], 3100, [7, 8]),
        ([0], None, [9]),
    ]


def test_beats_are_in_the_order_of_their_arrival():
    ((_, beats, _, positions),) = runs((3001, 0), (1, 0), (6001, 0))
    assert (beats, positions) == ([0, 3000, 6000], [2, 1, 3])


def test_a_beat_that_lost_its_time_is_in_no_run_with_others():
    """It stands at the beginning of 1970: a row counts its beats in 32 bits from the first one."""
    since_1970_ms = -round((START - datetime(1970, 1, 1, tzinfo=timezone.utc)) / timedelta(milliseconds=1))
    assert [beats for _, beats, *_ in runs((since_1970_ms, 0), (0, 0), (3_000, 0))] == [[0], [0, 3_000]]


def test_arrival_and_offset_are_cut_alike():
    """Whichever beat is the first of its row, the sum is the arrival in whole milliseconds."""
    beats = [(1000 * n + part, 0) for n, part in enumerate([0.3, 0.9, 1.5, 0.001, 0.999, 0.5], 1)]

    def arrivals(*batches):
        found = Counter()
        for batch in batches:
            for received, offsets, _, _ in runs(*batch):
                first = (received.astimezone(timezone.utc) - START) // timedelta(milliseconds=1)  # collected naive, in local time
                found.update(first + offset for offset in offsets)
        return found

    assert arrivals(beats) == arrivals(beats[:1], beats[1:4], beats[4:]) == Counter([1000, 2000, 3001, 4000, 5000, 6000])


@pytest.fixture
def lakehouse(tmp_path):
    for name, schema in INGEST_TABLES.items():
        tables.ensure_table(tmp_path, name, schema)
    return tmp_path


def table(lakehouse, name):
    return DeltaTable(str(lakehouse / name)).to_pyarrow_table().to_pylist()


@pytest.fixture(scope="module")
def rows():
    """Rows of PARSED: an event, a line that is refused, one that is skipped. Parsed once."""
    texts = (REQUEST, "\x1b[31m Completed request:{", "something else")
    raw = [("c", "b", "line", "f", n, START, text, None, 1, None, None) for n, text in enumerate(texts)]
    return read_lines(raw)


def test_a_batch_that_is_run_again_changes_nothing(rows, lakehouse):
    for batch_id in (0, 0, 1, 0, 1):
        ingest.LineWriter(lakehouse).write(rows, batch_id, THIS_PROCESS)
    assert sorted(row["batch_id"] for row in table(lakehouse, names.GROUP_EVENTS)) == [0, 1]
    assert sorted(row["batch_id"] for row in table(lakehouse, names.QUARANTINE)) == [0, 1]
    assert {row["raw"] for row in table(lakehouse, names.QUARANTINE)} == {"\\x1b[31m Completed request:{"}
    accounts = [(row["lines_read"], row["skipped"], row["events"], row["quarantined"]) for row in table(lakehouse, names.INPUT_LINES)]
    assert accounts == [(3, 1, 1, 1)] * 2


def test_after_a_crash_between_two_tables_the_rest_is_written(rows, lakehouse, monkeypatch):
    append = tables.append

    def killed(path, *how):
        if path.name == names.QUARANTINE:
            raise KeyboardInterrupt
        append(path, *how)

    with monkeypatch.context() as crash:
        crash.setattr(tables, "append", killed)
        with pytest.raises(KeyboardInterrupt):
            ingest.LineWriter(lakehouse).write(rows, 0, THIS_PROCESS)
    assert [len(table(lakehouse, name)) for name in INGEST_TABLES][:2] == [1, 0]  # tables are written side by side
    ingest.LineWriter(lakehouse).write(rows, 0, THIS_PROCESS)
    assert [len(table(lakehouse, name)) for name in INGEST_TABLES] == [1, 1, 1]


@pytest.mark.spark
def test_a_lakehouse_and_its_checkpoint_belong_together(spark, rows, lakehouse):
    ingest.LineWriter(lakehouse).write(rows, 0, THIS_PROCESS)
    with pytest.raises(UserError, match="keep or delete both"):
        ingest.start_ingest(spark, Lakehouse(lakehouse), Settings())


def test_tables_have_their_columns_comments(lakehouse):
    written = StructType.fromJson(json.loads(DeltaTable(str(lakehouse / names.GROUP_EVENTS)).schema().to_json()))
    pages = columns_of(names.GROUP_EVENTS).items()
    expected = [(name, kind.strip("`"), null == "yes", meaning) for name, (kind, null, meaning) in pages]
    assert [(field.name, field.dataType.simpleString(), field.nullable, field.metadata["comment"]) for field in written] == expected


def test_a_table_of_an_older_version_gets_the_columns_that_came_since(rows, tmp_path):
    older = pa.schema([field for field in schema_of(names.GROUP_EVENTS) if not field.name.startswith("coordinator_")])
    tables.ensure_table(tmp_path, names.GROUP_EVENTS, older)
    for name, schema in INGEST_TABLES.items():
        tables.ensure_table(tmp_path, name, schema)
    ingest.LineWriter(tmp_path).write(rows, 0, THIS_PROCESS)
    (event,) = table(tmp_path, names.GROUP_EVENTS)
    assert event.keys() == set(schema_of(names.GROUP_EVENTS).names)
    version = DeltaTable(str(tmp_path / names.GROUP_EVENTS)).version()
    tables.ensure_table(tmp_path, names.GROUP_EVENTS, schema_of(names.GROUP_EVENTS))
    assert DeltaTable(str(tmp_path / names.GROUP_EVENTS)).version() == version  # nothing to do: no commit


VALUES = st.tuples(st.sampled_from([None, "", "a", "b"]), st.sampled_from([None, 0, 1]), st.sampled_from([None, "a"]))


@pytest.mark.parametrize("most", [3, 1 << 62], ids=["numbered anew at each column", "numbered once"])
@given(st.lists(VALUES))
def test_rows_with_the_same_values_have_the_same_number(most, keys):
    """Members are told apart by their columns as tuples of their values would tell them."""
    types = pa.string(), pa.int32(), pa.string()
    beats = pa.table({f"column {n}": pa.array([key[n] for key in keys], own) for n, own in enumerate(types)})
    numbers: dict[tuple[object, ...], int] = {}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(members, "_MOST_NUMBERS", most)
        found = members.numbered(beats, beats.column_names)
    assert found.tolist() == [numbers.setdefault(key, len(numbers)) for key in keys]
