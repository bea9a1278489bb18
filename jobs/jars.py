"""Spark's own JARs of this project: which, and where `make` has put them."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

COORDINATES: Final = (
    "io.delta:delta-spark_4.0_2.13:4.4.0",
    # Not 4.0.5 as Spark itself: spark-token-provider-kafka-0-10, which it needs, resolves up to 4.0.0 only.
    "org.apache.spark:spark-sql-kafka-0-10_2.13:4.0.0",
)
"""As `spark-submit --packages` takes them, joined with commas."""

PROJECT: Final = Path(__file__).resolve().parents[1]


def jar_dir() -> Path:
    """The folder with the JARs: REBALANCE_JARS, else `.jars` in the project."""
    return Path(os.environ.get("REBALANCE_JARS") or PROJECT / ".jars")


def jar_paths() -> list[str]:
    """The JARs of `jar_dir()`, sorted. Empty if there are none: then Spark has to resolve COORDINATES itself."""
    return sorted(str(path.resolve()) for path in jar_dir().glob("*.jar"))
