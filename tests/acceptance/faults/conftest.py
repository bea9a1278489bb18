"""The lakehouse of all inputs of tests/data/faults: a cluster for each input, and for each kind of evidence that it comes with.

It is made without Spark: tests/acceptance/test_at_once.py holds that its rows are those of a run.
"""

from __future__ import annotations

from datetime import datetime
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
        from jobs.lakehouse.reader import table_rows

        wanted = {"cluster": cluster, **values}
        rows = [row for row in table_rows(self.lakehouse / table) if all(row[name] == value for name, value in wanted.items())]
        return [{k: epoch_ms(v) if isinstance(v, datetime) else v for k, v in row.items()} for row in rows]


@pytest.fixture(scope="session")
def told(tmp_path_factory: pytest.TempPathFactory) -> Told:
    """Its tables. Nothing writes to it."""
    from jobs.common.settings import Settings  # other tests load none of this
    from jobs.pipeline import at_once

    folder = tmp_path_factory.mktemp("faults") / "lake"
    result = at_once.process(FAULTS, folder, settings=Settings(shards=8), most_lines=1 << 30)
    assert result is not None
    return Told(folder)
