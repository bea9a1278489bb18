"""jobs/lakehouse/tables.py: every reader sees what was appended, once, whoever else writes to the table."""

import shutil

import pyarrow as pa
import pytest
from chispa import assert_df_equality
from deltalake import DeltaTable, TableFeatures, write_deltalake

from jobs.common import store_clients
from jobs.lakehouse import added_files, followers, opening, tables
from jobs.lakehouse.reader import table_rows
from schemas.names import AT_END
from tests.lab.store_proxy import StoreProxy

APP = "a-test"
SCHEMA = pa.schema([pa.field("cluster", pa.string(), nullable=False), ("number", pa.int32())])


@pytest.fixture
def on_disk(tmp_path):
    return tables.ensure_table(tmp_path, "numbers", SCHEMA)


@pytest.fixture(params=["disk", pytest.param("store", marks=pytest.mark.slow)])
def table(request, tmp_path):
    return tables.ensure_table(tmp_path if request.param == "disk" else request.getfixturevalue("on_store"), "numbers", SCHEMA)


def rows(*numbers):
    return pa.table({"cluster": ["c"] * len(numbers), "number": pa.array(numbers, pa.int32())})


def append(table, number, version=None, app=APP):
    return tables.append(table, rows(number), app, number if version is None else version)


def read(table):
    """The numbers, as delta-rs and this project see them."""
    numbers = sorted(DeltaTable(str(table)).to_pyarrow_table()["number"].to_pylist())
    assert numbers == sorted(row["number"] for row in table_rows(table, ["number"]))
    return numbers


def test_what_was_appended_is_there_once(table):
    assert [append(table, number) for number in (0, 1, 1, 0, 2)] == [True, True, False, False, True]
    assert append(table, 2, app="another")
    assert read(table) == [0, 1, 2, 2]
    assert {app: DeltaTable(str(table)).transaction_version(app) for app in (APP, "another")} == {APP: 2, "another": 2}


def test_what_was_known_at_the_end_of_the_logs_goes_with_the_next_version_and_is_written_once(tmp_path):
    table = tables.ensure_table(tmp_path, "ends", SCHEMA.append(pa.field(AT_END, pa.bool_())))

    def add(version, *numbers, ends=()):
        at_end = pa.array([False] * len(numbers) + [True] * len(ends), pa.bool_())
        return tables.append(table, rows(*numbers, *ends).append_column(AT_END, at_end), APP, version)

    assert [add(0, 1, 2, ends=[9]), add(0, 1, 2, ends=[9])] == [True, False]
    assert read(table) == [1, 2, 9]
    add(1)
    assert read(table) == [1, 2]
    add(2, ends=[8])
    add(3, 3, ends=[7, 6])
    assert read(table) == [1, 2, 3, 6, 7]
    add(4, 4)
    add(5, 5)
    assert read(table) == [1, 2, 3, 4, 5]
    before = DeltaTable(str(table)).version()
    add(6)
    assert DeltaTable(str(table)).version() == before


def test_files_skip_by_their_statistics(table):
    append(table, 0)
    append(table, 7)
    added = pa.table(DeltaTable(str(table)).get_add_actions(flatten=True)).sort_by("min.number").to_pylist()
    assert [(file["min.number"], file["max.number"], file["num_records"], file["null_count.number"]) for file in added] == [
        (0, 0, 1, 0),
        (7, 7, 1, 0),
    ]


def test_every_hundred_commits_have_a_checkpoint(on_disk):
    for number in range(205):
        append(on_disk, number)
    assert sorted(path.name[:20] for path in (on_disk / "_delta_log").glob("*.checkpoint.parquet")) == [f"{99:020d}", f"{199:020d}"]
    assert read(on_disk) == list(range(205))
    assert not append(on_disk, 204)


def _compacted(table):
    DeltaTable(str(table)).optimize.compact()


def _written(table):
    write_deltalake(str(table), rows(100), mode="append")


def _widened(table):
    tables.ensure_table(table.parent, table.name, SCHEMA.append(pa.field("reason", pa.string())))


@pytest.mark.parametrize("between", [_compacted, _written, _widened])
def test_others_may_write_in_between(table, between):
    append(table, 0)
    append(table, 1)
    between(table)
    append(table, 2)
    append(table, 3)
    assert [number for number in read(table) if number != 100] == [0, 1, 2, 3]
    assert not append(table, 3)


def test_another_writer_may_come_first_at_the_last_moment(table, monkeypatch):
    append(table, 0)
    commit = tables.commit

    def late(*arguments):
        monkeypatch.setattr(tables, "commit", commit)
        _written(table)
        commit(*arguments)

    monkeypatch.setattr(tables, "commit", late)
    assert append(table, 1)
    assert read(table) == [0, 1, 100]


@pytest.mark.slow
def test_an_append_reads_no_commit_but_the_last_two(store, on_store, monkeypatch):
    """To look what was written, delta-rs would read all commits since the last checkpoint: 50 requests, as a rule."""
    with StoreProxy(store.endpoint) as proxy:
        monkeypatch.setenv("AWS_ENDPOINT_URL", proxy.endpoint)
        store_clients.forget()
        table = tables.ensure_table(on_store, "numbers", SCHEMA)
        for number in range(20):
            append(table, number)
        proxy.clear()
        for number in range(20, 25):
            append(table, number)
        assert proxy.counts() == {"GET": 20, "LIST": 15, "PUT": 10}


def test_of_two_that_write_the_same_version_one_does(table, monkeypatch):
    append(table, 0)
    commit = tables.commit

    def late(*arguments):
        monkeypatch.setattr(tables, "commit", commit)
        commit(table, opening.opened(table), [], {APP: 1})  # as another process that has paused
        commit(*arguments)

    monkeypatch.setattr(tables, "commit", late)
    assert not append(table, 1)
    assert read(table) == [0]


def test_another_table_may_lie_in_its_place(on_disk):
    table = on_disk  # in a store nothing is renamed
    append(table, 0)
    append(table, 1)
    shutil.rmtree(table)
    tables.ensure_table(table.parent, table.name, SCHEMA)
    append(table, 0)
    assert append(table, 1)
    assert read(table) == [0, 1]


def test_rows_that_do_not_fit_are_refused_and_nothing_is_written(table):
    append(table, 0)
    with pytest.raises(ValueError, match="cluster"):
        tables.append(table, pa.table({"cluster": pa.array([None], pa.string()), "number": pa.array([1], pa.int32())}), APP, 1)
    assert read(table) == [0]
    assert append(table, 1)


def test_a_table_may_have_other_features(table):
    DeltaTable(str(table)).alter.add_feature(TableFeatures.ChangeDataFeed, allow_protocol_versions_increase=True)
    assert append(table, 0)
    assert append(table, 1)
    assert not append(table, 1)
    assert read(table) == [0, 1]


def test_a_batch_without_rows_counts_as_written(table):
    assert tables.append(table, rows(), APP, 0)
    assert not tables.append(table, rows(), APP, 0)
    assert read(table) == []


@pytest.mark.spark
def test_spark_reads_and_follows_it(spark, on_disk):
    for number in range(3):
        append(on_disk, number)
    found = spark.read.format("delta").load(f"file://{on_disk}")
    wanted = spark.createDataFrame([("c", number) for number in range(3)], "cluster string, number int")
    assert_df_equality(found, wanted, ignore_row_order=True, ignore_nullable=True)


def test_files_say_which_batch_wrote_them(table):
    append(table, 0)
    append(table, 12)
    assert [new.file[:2] for new in followers.files_after(opening.opened(table), {}, (APP,))] == [(APP, 0), (APP, 12)]
    assert [new.file[:2] for new in followers.files_after(opening.opened(table), {APP: [0, added_files.LAST]}, (APP,))] == [(APP, 12)]
    assert followers.is_whole(opening.opened(table))
    _compacted(table)
    assert not followers.is_whole(opening.opened(table))
