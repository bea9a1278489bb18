"""What waits behind a query, from what Spark says of its sources and from what lies there."""

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from jobs.health.lag import rows_behind, slice_rows, topic_records
from jobs.lakehouse import opening
from jobs.lakehouse.added_files import LAST
from jobs.lakehouse.delta_files import data_files, rewrite
from jobs.lakehouse.folder import Lakehouse
from jobs.logs.slice_files import SliceFiles
from schemas.names import GROUP_EVENTS, INGEST
from tests.lakehouse.rows import empty_lakehouse, line, write


def rows(count):
    return pa.table({"n": pa.array(range(count), pa.int64())})


@pytest.fixture
def lake(tmp_path):
    """Five micro-batches of ingest in group_events, the first two put together; three slices, and one that is not published."""
    lake = empty_lakehouse(tmp_path / "lake")
    for batch, count in enumerate((3, 5, 2, 7, 1)):
        write(lake, *(line(position=number) for number in range(count)), batch=batch, app=INGEST)
    table = opening.opened(lake / GROUP_EVENTS)
    rewrite(lake / GROUP_EVENTS, [file for file in data_files(table) if file.batch.batch_id < 2], lake / "_spill", order="position")
    files = SliceFiles(Lakehouse(lake).spool)
    files.make()
    for number, count in ((1, 4), (2, 10), (3, 6), (4, 9)):
        pq.write_table(rows(count), files.path(number))
    files.publish(3)
    (files.slices / "slice-of-bread.parquet").write_bytes(b"")
    return lake


def test_slices_behind_the_last_one_taken_wait(lake):
    assert [slice_rows(SliceFiles(Lakehouse(lake).spool), taken) for taken in range(5)] == [20, 16, 6, 0, 0]


def test_records_of_a_topic_wait_from_where_each_partition_is():
    end = {"logs": {"0": 10, "1": 20}}
    assert topic_records(end, {"logs": {"0": 15, "1": 20}}) == 5
    assert topic_records(end, {"logs": {"0": 15, "1": 20, "2": 7}}) == 12  # a new partition
    assert topic_records(end, {"logs": {"0": 9, "1": 21}}) == 1  # a topic made anew: less than nothing waits nowhere
    assert topic_records(end, None) is None


def test_a_source_is_told_by_its_offsets(lake):
    house = Lakehouse(lake)
    of_slices = {"endOffset": {"slice": 1}, "latestOffset": None}
    of_events = {"endOffset": {INGEST: [1, LAST]}, "latestOffset": None}
    of_topic = {"endOffset": {"logs": {"0": 1}}, "latestOffset": {"logs": {"0": 6}}}
    assert rows_behind(house, [of_slices]) == 16
    assert rows_behind(house, [of_events]) == 10
    assert rows_behind(house, [{**of_events, "endOffset": {INGEST: [2, LAST]}}]) == 8
    write(lake, *(line(position=number) for number in range(9)), batch=5, app=INGEST)
    assert rows_behind(house, [of_events]) == 19
    assert rows_behind(house, [of_topic]) == 5
    assert rows_behind(house, [of_topic, of_slices]) == 21
    assert rows_behind(house, [{"endOffset": None}, {"endOffset": {"rate": 1}, "latestOffset": 3}]) is None
