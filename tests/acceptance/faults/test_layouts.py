"""What strangers handed over in layouts of all kinds is read: the right event, of the right group, at the right time."""

from datetime import datetime, timezone

import pytest

pytestmark = pytest.mark.slow


def at(text):
    return round(datetime.fromisoformat(text).replace(tzinfo=timezone.utc).timestamp() * 1_000)


@pytest.mark.parametrize(
    ("cluster", "events"),
    [
        ("decorated-by-poster-k9s", [("STABILIZED", "2025-03-01 13:13:14.466"), ("GROUP_EMPTY", "2025-03-01 13:14:03.186")]),
        ("java-util-logging-in", [("CLIENT_POLL_TIMEOUT", "2025-03-01 13:50:29")]),
        ("layout-cfk-in", [("PREPARING_REBALANCE", "2025-03-01 19:36:10.834"), ("STABILIZED", "2025-03-01 19:36:13.834"),
                           ("ASSIGNMENT_RECEIVED", "2025-03-01 19:36:13.844")]),
        ("runs-of-blanks-in", [("GROUP_LOADED", "2025-03-01 19:49:04.211"), ("MEMBER_FAILED", "2025-03-01 19:49:14.212"),
                               ("PREPARING_REBALANCE", "2025-03-01 19:49:14.212"), ("STABILIZED", "2025-03-01 19:49:15.212"),
                               ("ASSIGNMENT_RECEIVED", "2025-03-01 19:49:15.222")]),
        ("time-elsewhere-kafka-python-piped", [("CLIENT_REJOINS", "2025-03-01 07:26:02.457"),
                                               ("CLIENT_JOINED", "2025-03-01 07:26:02.802")]),
        ("time-elsewhere-spark", [("CLIENT_POLL_TIMEOUT", "2025-03-01 20:36:36")]),
        ("two-times-client-in", [("CLIENT_POLL_TIMEOUT", "2025-03-01 11:13:11.319")]),
    ],
)  # fmt: skip
def test_each_line_is_an_event_at_its_own_time(told, cluster, events):
    assert told.rows("quarantine", cluster) == []
    rows = [row for row in told.rows("group_events", cluster) if row["group_id"] is not None]
    assert sorted((row["occurred_at"], row["kind"]) for row in rows) == sorted((at(time), kind) for kind, time in events)
    assert {row["group_id"] for row in rows} == {"g1"}


def test_a_line_that_is_refused_is_shown_as_it_stands_in_the_file(told):
    """librdkafka names no group, and ClickHouse's own words around it say more than our form of it."""
    [row] = told.rows("quarantine", "time-elsewhere-clickhouse")
    assert row["reason"] == "NO_GROUP"
    assert row["raw"].startswith(
        "2025.03.01 14:00:16.096987 [ 32591 ] {} <Warning> StorageKafka (t1): [rdk:MAXPOLL] [thrd:main]: Application"
    )
    assert row["occurred_at"] == at("2025-03-01 14:00:16.096")
