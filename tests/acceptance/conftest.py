"""The lakehouse of the recording that the pages of docs/ show."""

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
def in_spark(spark: SparkSession, lakehouse: Path) -> SparkSession:
    """Spark with its tables and views."""
    from tests.acceptance.in_spark import with_views  # some tests load no Spark

    return with_views(spark, lakehouse)
