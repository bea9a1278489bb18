"""What `rebalance explain` makes of a small input without Spark: the rows of `run`."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from chispa.rows_comparer import assert_basic_rows_equality
from deltalake import DeltaTable

from jobs.common.settings import Settings
from jobs.pipeline import at_once, feeder
from jobs.pipeline.run import run
from schemas.names import READABLE, REBALANCES_PROVISIONAL
from tests.effort import long
from tests.frames import rows_of
from tests.security import hostile

pytestmark = [pytest.mark.spark, pytest.mark.slow]

DATA = Path(__file__).parents[1] / "data"
SETTINGS = Settings(shards=4)


def inputs(step: int) -> dict[str, Path]:
    """Small inputs of the tests, every `step`th, by the name of the cluster that each becomes."""
    folders = [folder for kind in ("faults", "staged", "old") for folder in sorted((DATA / kind).iterdir())[::step] if folder.is_dir()]
    others = {"java-formats": DATA / "clients" / "java-formats", "clients": DATA / "clients" / "cluster", "types": DATA / "group-types"}
    others |= {"incidents": DATA / "staged" / "kafka-4.2.0-to-4.4.0"}  # brokers that are upgraded one by one
    return {f"{folder.parent.name}-{folder.name}": folder for folder in folders} | others


@pytest.fixture(scope="module", params=[8, long(1)])
def lakes(spark, tmp_path_factory, request) -> tuple[Path, Path]:
    """What a run of the pipeline makes of the inputs, and what one process makes of them."""
    folder = tmp_path_factory.mktemp("at-once")
    for name, place in inputs(request.param).items():
        shutil.copytree(place, folder / "input" / name, ignore=shutil.ignore_patterns("*.md", "truth.jsonl"))
    shutil.copytree(DATA / "offsets", folder / "input" / "records" / "offsets")
    hostile.write_logs(folder / "input", ["forged", "surrogate"])
    # The run goes on where the input was too large for one process.
    assert at_once.process(folder / "input", folder / "run", settings=SETTINGS, most_lines=10) is None
    run(folder / "input", folder / "run", settings=SETTINGS, once=True, spark=spark)
    assert at_once.process(folder / "input", folder / "at-once", settings=SETTINGS, most_lines=1 << 30)
    return folder / "run", folder / "at-once"


@pytest.mark.parametrize("table", READABLE)
def test_every_row_is_that_of_a_run(lakes, table):
    of_run, at_once_rows = (rows_of(lake, (table,)) for lake in lakes)
    assert of_run or table == REBALANCES_PROVISIONAL  # which may be empty at the end of a log
    assert_basic_rows_equality(at_once_rows, of_run)


def test_heartbeats_that_lie_apart_are_read(tmp_path, monkeypatch):
    """Many of them get a file of their own, which a task of Spark's would parse and write."""
    source = DATA / "faults" / "queued-heartbeats-both"
    at_once.process(source, tmp_path / "together", settings=SETTINGS, most_lines=1 << 30)

    class Apart(feeder.SpoolSettings, frozen=True):
        beats_apart: int = 1

    monkeypatch.setattr(feeder, "SpoolSettings", Apart)
    at_once.process(source, tmp_path / "apart", settings=SETTINGS, most_lines=1 << 30)
    files = [len(DeltaTable(tmp_path / name / "group_events").file_uris()) for name in ("together", "apart")]
    assert files == [1, 2]
    assert_basic_rows_equality(rows_of(tmp_path / "apart", READABLE), rows_of(tmp_path / "together", READABLE))
