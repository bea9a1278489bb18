"""What `rebalance explain` makes of a small input without Spark: the rows of `run`."""

from __future__ import annotations

import json
import shutil
from collections import Counter
from pathlib import Path

import pytest

from jobs.common.settings import Settings
from jobs.lakehouse.reader import table_rows
from jobs.pipeline import at_once
from jobs.pipeline.run import run
from schemas.names import READABLE, REBALANCES_PROVISIONAL

pytestmark = [pytest.mark.spark, pytest.mark.slow]

DATA = Path(__file__).parents[1] / "data"
SETTINGS = Settings(shards=8)


def inputs() -> dict[str, Path]:
    """All small inputs of the tests, by the name of the cluster that each becomes."""
    folders = [folder for kind in ("faults", "staged", "old") for folder in sorted((DATA / kind).iterdir()) if folder.is_dir()]
    others = {"java-formats": DATA / "clients" / "java-formats", "clients": DATA / "clients" / "cluster", "types": DATA / "group-types"}
    return {f"{folder.parent.name}-{folder.name}": folder for folder in folders} | others


def rows(lakehouse: Path, table: str) -> Counter[str]:
    """The rows of a table, without the number of their micro-batch."""
    found = [{name: value for name, value in row.items() if name != "batch_id"} for row in table_rows(lakehouse / table)]
    return Counter(json.dumps(row, sort_keys=True, default=str) for row in found)


@pytest.fixture(scope="module")
def lakes(spark, tmp_path_factory) -> tuple[Path, Path]:
    """What a run of the pipeline makes of all inputs, and what one process makes of them."""
    folder = tmp_path_factory.mktemp("at-once")
    for name, place in inputs().items():
        shutil.copytree(place, folder / "input" / name, ignore=shutil.ignore_patterns("*.md", "truth.jsonl"))
    shutil.copytree(DATA / "offsets", folder / "input" / "records" / "offsets")
    run(folder / "input", folder / "run", settings=SETTINGS, once=True, spark=spark)
    result = at_once.process(folder / "input", folder / "at-once", settings=SETTINGS, most_lines=1 << 30)
    assert result is not None
    return folder / "run", folder / "at-once"


@pytest.mark.parametrize("table", READABLE)
def test_every_row_is_that_of_a_run(lakes, table):
    of_run, at_once_rows = (rows(lake, table) for lake in lakes)
    assert of_run or table == REBALANCES_PROVISIONAL  # which may be empty at the end of a log
    assert at_once_rows - of_run == of_run - at_once_rows == Counter()
