"""What kept a client from polling, and for how long: a frozen process is no stalled poll loop, and a stall is as long as it was."""

import json

import pytest

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("mode", ["both", "request"])
@pytest.mark.parametrize("code", ["SLOW_JOINER", "UNKNOWN_MEMBER"])
def test_a_frozen_process_is_not_told_to_poll_faster(told, mode, code):
    """app-37-2 was stopped from 06:19:54.319 to 06:20:16.321."""
    (row,) = told.rows("findings", f"frozen-advice-{mode}", code=code)
    assert row["client_id"] == "app-37-2"
    assert (
        "Check its log and its host (SIGKILL, out of memory, long JVM or container pause, CPU limit, network) from 06:19:5" in row["advice"]
    )
    assert not any(name in row["advice"] for name in ("max.poll", "between two polls", "session.timeout.ms"))


@pytest.mark.parametrize("mode", ["both", "request"])
def test_a_static_stall_is_as_long_as_it_was(told, mode):
    """app-30-3 did not poll from 06:19:31.164 to 06:19:57.364, which its heartbeats, every 2 s, show to a second."""
    (row,) = told.rows("findings", f"static-stall-gap-{mode}", code="POLL_TIMEOUT")
    details = json.loads(row["details"])
    assert (row["client_id"], details["max_poll_interval_ms"]) == ("app-30-3", 9_000)
    assert 26_200 - 1_000 <= details["poll_gap_ms"] <= 26_200 + 1_000
