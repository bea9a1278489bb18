"""The lakehouse as DuckDB sees it, no JVM."""

from datetime import datetime, timezone

import pytest
from deltalake import DeltaTable, write_deltalake

from jobs.answers.duckdb_views import QuestionReader
from jobs.common.errors import LakehouseError
from schemas.tables import TABLES
from tests.answers.asking import asked
from tests.lakehouse.rows import empty_lakehouse, line, rebalance, write


@pytest.mark.parametrize("name", ["it's lake", "lake [1]", "lake*", "läke", 'a "lake"'])
def test_a_folder_with_any_name_is_read(tmp_path, name):
    folder = empty_lakehouse(tmp_path / "lake")
    write(folder, line(at=90_000), rebalance())
    folder.rename(tmp_path / name)
    assert len(asked(tmp_path / name, "rebalances")) == 1


def test_a_table_of_an_older_version_says_what_to_do(tmp_path):
    folder = empty_lakehouse(tmp_path / "lake")
    write(folder, line(at=90_000), rebalance())
    rows = DeltaTable(str(folder / "rebalances")).to_pyarrow_dataset().to_table(use_threads=False).drop_columns(["cause"])
    write_deltalake(str(folder / "rebalances"), rows, mode="overwrite", schema_mode="overwrite")
    with pytest.raises(LakehouseError, match="of another version: make a new one of its events with `rebalance replay --from"):
        asked(folder, "why")


def test_a_table_that_is_not_there_is_named(tmp_path):
    folder = empty_lakehouse(tmp_path)
    (folder / "findings").rename(folder / "gone")
    with pytest.raises(LakehouseError, match="no table findings"):
        asked(folder, "findings")


def test_every_column_type_is_known_to_duckdb(lakehouse):
    found = QuestionReader(lakehouse).ask("SELECT * FROM group_events", {})
    assert list(found.columns) == TABLES["group_events"].names


def test_times_come_back_in_utc_to_the_microsecond(lakehouse):
    write(lakehouse, line(at=1_001))
    (found,) = QuestionReader(lakehouse).ask("SELECT e.occurred_at FROM group_events AS e", {}).rows
    assert found == (datetime(2026, 11, 21, 0, 0, 1, 1_000, tzinfo=timezone.utc),)
