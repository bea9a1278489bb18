"""The lakehouse of all inputs of tests/data/faults: a cluster for each input, and for each kind of evidence that it comes with.

It is made without Spark: tests/acceptance/test_at_once.py holds that its rows are those of a run.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import pytest

FAULTS = Path(__file__).parents[2] / "data" / "faults"


class Told(NamedTuple):
    """What the tables say of all inputs. Times are epoch milliseconds."""

    lakehouse: Path

    def rows(self, table: str, cluster: str, **values: object) -> list[dict[str, Any]]:
        """The rows of an input in a table, those with these values."""
        from jobs.common.times import epoch_ms

        wanted = {"cluster": cluster, **values}
        rows = [row for row in _rows(self.lakehouse / table) if all(row[name] == value for name, value in wanted.items())]
        return [{k: epoch_ms(v) if isinstance(v, datetime) else v for k, v in row.items()} for row in rows]


@cache
def _rows(table: Path) -> list[dict[str, Any]]:
    from jobs.lakehouse.reader import table_rows  # other tests load none of this

    return table_rows(table)


@pytest.fixture(scope="session")
def told(recorded_lakehouse: Callable[[str], Path]) -> Told:
    """Its tables. Nothing writes to it."""
    return Told(recorded_lakehouse("faults"))
