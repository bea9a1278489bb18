"""What tests of lakehouses that are maintained, moved or replayed share."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.fixture(scope="session")
def undisturbed(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The lakehouse on disk that is made in one place, by a run for each half of a log. Nothing writes to it."""
    from tests.pipeline.parts import PARTS, logs, run  # some tests load no Spark

    folder = tmp_path_factory.mktemp("undisturbed")
    for part in (PARTS // 2, PARTS):
        run(spark, logs(folder, part), folder / "lake")
    return folder / "lake"
