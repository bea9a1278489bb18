"""One file with the lines of brokers and of clients, whose containers write in two zones."""

from datetime import datetime, timezone

import pytest

from jobs.common.times import epoch_ms

pytestmark = [pytest.mark.spark, pytest.mark.slow]

CLUSTER = "compose-mixed-zones-in"


def at(time: str) -> int:
    return epoch_ms(datetime.fromisoformat(f"2025-03-01T{time}").replace(tzinfo=timezone.utc))


def test_workers_nine_hours_ahead_of_their_broker_are_read_in_their_own_zone(told):
    clients = told.rows("group_events", CLUSTER, source="client")
    assert {(row["kind"], row["occurred_at"], row["generation"]) for row in clients} == {
        ("CLIENT_LEAVES", at("10:33:55.645"), None),
        ("CLIENT_NOTE", at("10:33:56.019"), None),
        ("CLIENT_JOINED", at("10:33:56.022"), 5),
    }
    assert {row["group_id"] for row in clients} == {"g1"}


def test_no_line_of_theirs_is_called_damaged_and_none_counts_twice(told):
    assert told.rows("quarantine", CLUSTER) == []
    assert sum(row["lines_read"] for row in told.rows("input_lines", CLUSTER)) == 6
    assert {row["broker"] for row in told.rows("group_events", CLUSTER)} == {"broker-1", "clients"}


def test_nothing_lasts_nine_hours(told):
    times = [row["occurred_at"] for row in told.rows("group_events", CLUSTER)]
    assert max(times) - min(times) < 1_000
    assert all(row["total_ms"] is None or row["total_ms"] < 1_000 for row in told.rows("rebalances", CLUSTER))
