"""Coordinators that hang, die and move, and clocks that are wrong: nobody is blamed for what a broker did."""

from __future__ import annotations

import pytest

pytestmark = [pytest.mark.spark, pytest.mark.slow]


def findings(told, cluster):
    return [(row["code"], row["member_id"]) for row in told.rows("findings", cluster)]


@pytest.mark.parametrize("cluster", ["queued-heartbeats-both", "queued-heartbeats-request"])
def test_heartbeats_that_waited_behind_a_slow_commit_are_no_silence(told, cluster):
    """The commits of both members arrived in time. They were answered 3.97 s later, and four heartbeats of each were read then."""
    assert findings(told, cluster) == []
