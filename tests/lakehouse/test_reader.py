"""Reading tables without Spark."""

import json
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime, timedelta, timezone
from pathlib import Path

import pytest
from deltalake import DeltaTable, write_deltalake

from jobs.common.errors import LakehouseError
from jobs.common.settings import Settings
from jobs.dashboard.store import Store
from jobs.lakehouse.maintain import Policy, maintain
from jobs.lakehouse.reader import TableReader, table_rows
from jobs.pipeline.replay import replay
from tests.lakehouse.rows import DAY, empty_lakehouse, finding, line, rebalance, write

PROJECT = Path(__file__).resolve().parents[2]
START = datetime.fromtimestamp(DAY / 1_000, timezone.utc)


@pytest.fixture
def lakehouse(tmp_path):
    folder = empty_lakehouse(tmp_path / "lake")
    write(folder, line(), rebalance("a", start=1_001), rebalance("b", start=60_000), finding())
    return folder


def test_rows_have_aware_times_and_the_columns_that_were_named(lakehouse):
    rows = table_rows(lakehouse / "rebalances", ["started_at", "group_id"])
    assert sorted(rows, key=str) == [
        {"started_at": START + timedelta(milliseconds=1_001), "group_id": "a"},
        {"started_at": START + timedelta(minutes=1), "group_id": "b"},
    ]


def test_older_rows_are_left_out(lakehouse):
    since = START.astimezone(timezone(timedelta(hours=5))) + timedelta(minutes=1)
    assert [row["group_id"] for row in table_rows(lakehouse / "rebalances", since=("started_at", since))] == ["b"]


def partition(lakehouse):
    """Writes the table of rebalances anew, so that its files alone do not hold it."""
    table = DeltaTable(str(lakehouse / "rebalances")).to_pyarrow_dataset().to_table(use_threads=False)
    (lakehouse / "rebalances").rename(lakehouse / "old")
    write_deltalake(str(lakehouse / "rebalances"), table, partition_by=["group_id"])


def test_a_partitioned_table_is_read_as_often_as_it_is_asked(lakehouse):
    partition(lakehouse)
    reader = TableReader(lakehouse)
    for _ in range(2):
        assert reader.rows("SELECT group_id FROM rebalances ORDER BY group_id") == [{"group_id": "a"}, {"group_id": "b"}]
    assert {row["group_id"] for row in table_rows(lakehouse / "rebalances")} == {"a", "b"}


@pytest.mark.parametrize("partitioned", [False, True])
def test_readers_side_by_side_see_their_own_tables(lakehouse, tmp_path, partitioned):
    """They share a database."""
    other = empty_lakehouse(tmp_path / "other")
    write(other, line(), rebalance("c", start=1_001))
    for folder in (lakehouse, other) if partitioned else ():
        partition(folder)
    readers = [TableReader(folder) for _ in range(10) for folder in (lakehouse, other)]
    with ThreadPoolExecutor(8) as threads:
        by_readers = list(threads.map(lambda reader: reader.rows("SELECT group_id FROM rebalances"), readers))
        by_folders = list(threads.map(lambda reader: table_rows(reader.folder / "rebalances", ["group_id"]), readers))
    for found in (by_readers, by_folders):
        assert [{row["group_id"] for row in rows} for rows in found] == [{"a", "b"}, {"c"}] * 10


def test_the_memory_that_a_dashboard_allows_itself_bounds_no_other_reader(lakehouse):
    def limits():
        return TableReader(lakehouse).rows("SELECT current_setting('memory_limit') AS memory, current_setting('temp_directory') AS folder")

    before = limits()
    (within,) = json.loads(Store(lakehouse).reply((), lambda reader: reader.rows("SELECT current_setting('memory_limit') AS memory")).body)
    assert within["memory"] != before[0]["memory"]
    assert limits() == before


def test_events_in_a_form_of_earlier_versions_are_refused_by_name(lakehouse, tmp_path):
    """Their time was called `at`."""
    events = DeltaTable(str(lakehouse / "group_events")).to_pyarrow_dataset().to_table(use_threads=False)
    names = ["at" if name == "occurred_at" else name for name in events.column_names]
    write_deltalake(str(lakehouse / "group_events"), events.rename_columns(names), mode="overwrite", schema_mode="overwrite")
    said = f"the events of {lakehouse} have a form that this version does not read: read the logs into a new lakehouse"
    for use in (
        lambda: TableReader(lakehouse),
        lambda: list(maintain(lakehouse, Policy(), now=START)),
        lambda: replay(lakehouse, tmp_path / "new", settings=Settings(), spark=object()),
    ):
        with pytest.raises(LakehouseError) as refusal:
            use()
        assert str(refusal.value) == said


def test_nothing_reads_a_table_in_a_way_that_aborts_processes():
    modules = [path for folder in ("jobs", "scripts", "bench") for path in (PROJECT / folder).rglob("*.py")]
    assert modules
    assert [str(path) for path in modules if ".to_pyarrow_table(" in path.read_text(encoding="utf-8")] == []


@pytest.mark.slow
@pytest.mark.parametrize(("partitioned", "processes"), [(False, 3), (True, 1)])
def test_a_process_that_ends_right_after_reading_ends_well(lakehouse, partitioned, processes):
    if partitioned:
        table = DeltaTable(str(lakehouse / "findings")).to_pyarrow_dataset().to_table(use_threads=False)
        (lakehouse / "findings").rename(lakehouse / "old")
        write_deltalake(str(lakehouse / "findings"), table, partition_by=["group_id"])
    folder = str(lakehouse / "findings")
    read = f"from pathlib import Path; from jobs.lakehouse.reader import table_rows; print(len(table_rows(Path({folder!r}))))"
    for _ in range(processes):
        done = subprocess.run([sys.executable, "-c", read], cwd=PROJECT, capture_output=True, text=True, check=False)
        assert (done.returncode, done.stdout, done.stderr) == (0, "1\n", "")
