"""The lakehouse of the recording that the pages of docs/ show, and that of the inputs of tests/data/faults."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.fixture(scope="session")
def lakehouse(recorded_lakehouse: Callable[[str], Path]) -> Path:
    """Its folder. Nothing writes to it."""
    return recorded_lakehouse("recordings/kafka-4.2.0")


@pytest.fixture(scope="session")
def many_inputs(recorded_lakehouse: Callable[[str], Path]) -> Path:
    """A lakehouse with a row for almost every question. Nothing writes to it."""
    return recorded_lakehouse("faults")


@pytest.fixture(scope="session")
def in_spark(spark: SparkSession, many_inputs: Path) -> SparkSession:
    """Spark with the tables and views of many inputs."""
    from tests.acceptance.in_spark import with_views  # some tests load no Spark

    return with_views(spark, many_inputs)
