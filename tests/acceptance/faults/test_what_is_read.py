"""Every line of the inputs is understood: what the tables say of them is concluded, and not for want of a line."""

from __future__ import annotations

import pytest

from tests.acceptance.faults.conftest import FAULTS

pytestmark = pytest.mark.slow
NAMELESS = {"time-elsewhere-clickhouse"}  # its group is unknown
CLUSTERS = sorted({path.name for path in FAULTS.iterdir()} - NAMELESS)


@pytest.mark.parametrize("cluster", CLUSTERS)
def test_no_line_is_quarantined(told, cluster):
    assert told.rows("quarantine", cluster) == []
    assert told.rows("group_events", cluster)
