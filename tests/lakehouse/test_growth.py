"""Following tables: what counts as new while others write, merge, delete and replace."""

from __future__ import annotations

import shutil
from datetime import datetime, timedelta, timezone

import pytest
from deltalake import DeltaTable, write_deltalake

from jobs.lakehouse.growth import GrowingTable
from jobs.lakehouse.maintain import Policy, maintain
from jobs.lakehouse.reader import table_rows
from jobs.lakehouse.swap import exchange
from tests.lakehouse.rows import empty_lakehouse, line, rebalance, write

pytestmark = pytest.mark.slow

AT_ONCE = Policy(grace=timedelta(0), log_grace=timedelta(0))
NOW = datetime(2026, 11, 22, tzinfo=timezone.utc)


@pytest.fixture
def lake(tmp_path):
    folder = empty_lakehouse(tmp_path / "lake")
    write(folder, line(), batch=0)
    return folder


def maintained(folder):
    assert list(maintain(folder, AT_ONCE, now=NOW))


def groups(folder, growth):
    """The groups of the rows that came, or None for the rows of the whole table."""
    if growth is None:
        return []
    rows = table_rows(folder / "rebalances", ["group_id"], files=growth.files)
    return sorted(row["group_id"] for row in rows), growth.files is None


def test_each_new_file_counts_once(tmp_path):
    lake = tmp_path / "lake"
    table = GrowingTable(lake / "rebalances")
    assert table.look() is None
    empty_lakehouse(lake)
    assert groups(lake, table.look()) == ([], True)
    write(lake, rebalance("a"), batch=1)
    write(lake, rebalance("b"), rebalance("c"), batch=2)
    assert groups(lake, table.look()) == (["a", "b", "c"], False)
    assert table.look() is None
    write(lake, rebalance("d"), batch=3)
    assert groups(lake, table.look()) == (["d"], False)


def test_what_was_merged_is_not_new(lake):
    table = GrowingTable(lake / "rebalances")
    for batch in range(1, 4):
        write(lake, rebalance(f"g{batch}"), batch=batch)
    table.look()
    maintained(lake)
    assert len(DeltaTable(str(lake / "rebalances")).file_uris()) == 1
    assert table.look() is None
    write(lake, rebalance("new"), batch=5)
    assert groups(lake, table.look()) == (["new"], False)


def test_where_commits_are_missing_the_whole_table_counts(lake):
    table = GrowingTable(lake / "rebalances")
    table.look()
    for batch in range(1, 13):
        write(lake, rebalance(f"g{batch:02}"), batch=batch)
    maintained(lake)  # with a checkpoint, which makes the commits unnecessary
    assert groups(lake, table.look()) == ([f"g{batch:02}" for batch in range(1, 13)], True)


def test_another_table_in_the_place_counts_as_a_whole(lake, tmp_path):
    table = GrowingTable(lake / "rebalances")
    other = empty_lakehouse(tmp_path / "other")
    write(lake, rebalance("old"), batch=1)
    write(other, rebalance("anew"), batch=1)  # the same version, and the same id of the table
    table.look()
    if not exchange(other, lake):
        pytest.skip("this system cannot exchange folders")
    assert groups(lake, table.look()) == (["anew"], True)
    shutil.rmtree(lake)
    assert table.look() is None
    shutil.copytree(other, lake)
    assert groups(lake, table.look()) == (["old"], True)


def test_a_partitioned_table_counts_as_a_whole_each_time(lake):
    write(lake, rebalance("a"), batch=1)
    rows = DeltaTable(str(lake / "rebalances")).to_pyarrow_dataset().to_table(use_threads=False)
    shutil.rmtree(lake / "rebalances")
    write_deltalake(str(lake / "rebalances"), rows, partition_by=["group_id"])
    table = GrowingTable(lake / "rebalances")
    for count in (1, 2):
        assert groups(lake, table.look()) == (["a"] * count, True)
        write_deltalake(str(lake / "rebalances"), rows, mode="append")
    table.look()
    table.forget()
    assert groups(lake, table.look()) == (["a"] * 3, True)
