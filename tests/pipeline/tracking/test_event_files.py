"""Rows of group_events that a task reads by itself: those that Spark has found, each once."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from jobs.pipeline.tracking.event_files import rows_in, splits_of

if TYPE_CHECKING:
    from pathlib import Path

COLUMNS = ("cluster", "group_id", "position", "occurred_at", "beats")
UTC_US = pa.timestamp("us", "UTC")


def write(path: Path, positions: range, rows: int | None = None) -> Path:
    """A file with some columns of group_events. `rows`: of a row group."""
    table = pa.table(
        {
            "cluster": pa.array(["c"] * len(positions)),
            "group_id": pa.array([f"g{position % 7}" for position in positions]),
            "position": pa.array(positions, pa.int64()),
            "occurred_at": pa.array([position * 1_000 for position in positions], UTC_US),
            "beats": pa.array([[position, position + 1] if position % 2 else None for position in positions], pa.list_(pa.int64())),
        }
    )
    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(table, path, row_group_size=rows or len(positions), compression="none")
    return path


def split(path: Path, rows: int, start: int = 0, length: int = 1 << 40) -> pa.RecordBatch:
    """What Spark says about so many rows of a file."""
    uri = path.as_uri()
    return pa.RecordBatch.from_pydict({"uri": [uri] * rows, "start": [start] * rows, "length": [length] * rows})


def test_all_rows_of_a_file(tmp_path):
    path = write(tmp_path / "a b%20c/é.parquet", range(25_000))
    read = pa.Table.from_batches(rows_in([split(path, 20_000), split(path, 5_000)], COLUMNS))
    assert read.column_names == list(COLUMNS)
    assert read["position"].to_pylist() == list(range(25_000))
    assert read["beats"].to_pylist()[:4] == [None, [1, 2], None, [3, 4]]
    assert read["occurred_at"].cast(pa.int64()).to_pylist()[:3] == [0, 1_000, 2_000]


def test_a_file_with_other_rows_than_spark_has_found_is_an_error(tmp_path):
    path = write(tmp_path / "a.parquet", range(3))
    with pytest.raises(RuntimeError, match="2 rows at 0, and 3 were read"):
        list(rows_in([split(path, 2)], COLUMNS))


@pytest.mark.spark
@pytest.mark.parametrize("split_bytes", [1_000, 5_000, 40_000, 1 << 30])
def test_every_row_is_read_once_however_spark_cuts_the_files(spark, tmp_path, split_bytes):
    """Row groups that lie in two splits belong to one of them."""
    folder = tmp_path / "group events"
    for number, rows in enumerate((7, 100, 450, 1_000)):
        write(folder / f"{number}.parquet", range(number * 1_000, (number + 1) * 1_000), rows=rows)
    before = {name: spark.conf.get(name) for name in ("spark.sql.files.maxPartitionBytes", "spark.sql.files.openCostInBytes")}
    try:
        spark.conf.set("spark.sql.files.maxPartitionBytes", str(split_bytes))
        spark.conf.set("spark.sql.files.openCostInBytes", "0")
        files = splits_of(spark.read.parquet(str(folder)))
        partitions = files.rdd.getNumPartitions()
        read = files.mapInArrow(partial(rows_in, names=["position"]), "position bigint").toArrow()
    finally:
        for name, value in before.items():
            spark.conf.set(name, value)
    assert sorted(read["position"].to_pylist()) == list(range(4_000))
    assert (partitions > 50) == (split_bytes < 10_000)
