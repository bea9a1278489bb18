"""The lakehouse of the recording that the pages of docs/ show."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession


@pytest.fixture(scope="session")
def lakehouse(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Its folder. Nothing writes to it."""
    from jobs.common.settings import Settings  # tests that need no Spark load none of this
    from jobs.pipeline import run
    from scripts.docs import questions as page

    folder = tmp_path_factory.mktemp("recorded") / "lake"
    run.run(page.RECORDING, folder, settings=Settings(shards=8), once=True, spark=spark)
    return folder
