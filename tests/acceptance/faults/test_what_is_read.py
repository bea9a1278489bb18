"""Every line of the inputs is understood: what the tables say of them is concluded, and not for want of a line."""

import pytest

from jobs.lakehouse.reader import table_rows
from tests.acceptance.faults.conftest import FAULTS

pytestmark = pytest.mark.slow
NAMELESS = {"time-elsewhere-clickhouse"}  # its group is unknown


def test_no_line_is_quarantined(told):
    damaged, events = (
        {row["cluster"] for row in table_rows(told.lakehouse / name, ("cluster",))} for name in ("quarantine", "group_events")
    )
    assert damaged <= NAMELESS
    assert events >= {path.name for path in FAULTS.iterdir()} - NAMELESS
