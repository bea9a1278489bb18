"""What waits behind a query, from what Spark says of its sources and from what lies there."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable, write_deltalake

from jobs.health.lag import Backlog, DeltaCommits, slice_rows, topic_records


def rows(count):
    return pa.table({"n": pa.array(range(count), pa.int64())})


@pytest.fixture
def events(tmp_path):
    """A table of five commits: made, 3 rows, 5 rows, made into one file, 2 rows."""
    table = tmp_path / "group_events"
    DeltaTable.create(str(table), schema=rows(0).schema)
    write_deltalake(str(table), rows(3), mode="append")
    write_deltalake(str(table), rows(5), mode="append")
    DeltaTable(str(table)).optimize.compact()
    write_deltalake(str(table), rows(2), mode="append")
    return table


@pytest.fixture
def slices(tmp_path):
    folder = tmp_path / "slices"
    folder.mkdir()
    for number, count in ((1, 4), (2, 10), (3, 6)):
        pq.write_table(rows(count), folder / f"slice-{number:09d}.parquet")
    (folder / "slice-000000004.parquet").write_bytes(b"half")
    (folder / "slice-of-bread.parquet").write_bytes(b"")
    return folder


def test_commits_that_wait_are_counted_by_their_rows_and_a_compaction_is_none(events):
    commits = DeltaCommits(events)
    assert [commits.rows_from(version) for version in range(6)] == [10, 10, 7, 2, 2, 0]


def test_commits_that_come_later_count_as_well(events):
    commits = DeltaCommits(events)
    assert commits.rows_from(4) == 2
    write_deltalake(str(events), rows(9), mode="append")
    assert commits.rows_from(4) == 11
    assert commits.rows_from(5) == 9


def test_slices_behind_the_last_one_done_wait(slices):
    assert [slice_rows(slices, done) for done in range(5)] == [20, 16, 6, 0, 0]


def test_records_of_a_topic_wait_from_where_each_partition_is():
    end = {"logs": {"0": 10, "1": 20}}
    assert topic_records(end, {"logs": {"0": 15, "1": 20}}) == 5
    assert topic_records(end, {"logs": {"0": 15, "1": 20, "2": 7}}) == 12  # a new partition
    assert topic_records(end, {"logs": {"0": 9, "1": 21}}) == 1  # a topic made anew: less than nothing waits nowhere
    assert topic_records(end, None) is None


def test_a_source_is_told_by_its_offsets(slices, events):
    backlog = Backlog(slices, events)
    of_slices = {"endOffset": {"logOffset": 0}, "latestOffset": None}
    of_events = {"endOffset": {"sourceVersion": 1, "reservoirVersion": 2, "index": -1}, "latestOffset": None}
    of_topic = {"endOffset": {"logs": {"0": 1}}, "latestOffset": {"logs": {"0": 6}}}
    assert backlog.rows([of_slices]) == 16
    assert backlog.rows([of_events]) == 7
    assert backlog.rows([{**of_events, "endOffset": {**of_events["endOffset"], "index": 0}}]) == 2  # the file of commit 2 was read
    assert backlog.rows([of_topic]) == 5
    assert backlog.rows([of_topic, of_slices]) == 21
    assert backlog.rows([{"endOffset": None}, {"endOffset": {"rate": 1}, "latestOffset": 3}]) is None
