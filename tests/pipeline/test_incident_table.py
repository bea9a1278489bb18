"""The table `incidents` follows from the others: whenever a micro-batch may have changed an incident, it is written anew."""

import json

import pytest
from deltalake import DeltaTable

from jobs.lakehouse.reader import table_rows
from jobs.lakehouse.tables import append
from jobs.pipeline.tracking import track
from jobs.pipeline.tracking.incident_table import IncidentTable
from schemas.tables import TABLES
from tests.lakehouse.rows import DAY, empty_lakehouse, finding, line, rebalance

pytestmark = pytest.mark.slow


@pytest.fixture
def lake(tmp_path):
    return empty_lakehouse(tmp_path / "lake")


MOVED = {"cause": "COORDINATOR_MOVED"}


def take(lake, table, *rows, batch=0):
    """A micro-batch with these rows."""
    by_table = {name: [row for row in rows if row["table"] == name] for name in TABLES}
    for name, own in by_table.items():
        if own:
            append(lake / name, track.to_arrow(own, TABLES[name], batch), "test", batch)
    table.take(by_table, brokers=any(row["source"] == "broker" for row in by_table["group_events"]))


def told(lake):
    return table_rows(lake / "incidents")


def moved(group, at, source="broker-1", target="broker-2", **details):
    details = {"from_broker": source, "to_broker": target, "members_lost": [], "session_timeouts_ms": []} | details
    known = {"code": "COORDINATOR_MOVED", "severity": "WARNING", "details": json.dumps(details)}
    return finding(group_id=group, occurred_at=DAY + at * 1_000, **known)


def broker_line(kind, at):
    return line(None, at * 1_000, broker="broker-1", source="broker", kind=kind, origin="server.log", position=at)


def test_groups_that_a_broker_lost_are_one_incident_with_what_it_cost(lake):
    table = IncidentTable(lake)
    take(
        lake, table, moved("a", 100), moved("b", 101, members_lost=["m"]), rebalance("b", 100_000, unavailable_partition_ms=7_000, **MOVED)
    )
    (row,) = told(lake)
    assert (row["broker"], row["cause"], row["severity"]) == ("broker-1", "COORDINATOR_MOVED", "ERROR")
    assert (row["groups"], row["groups_moved"], row["members_lost"]) == (["a", "b"], 2, ["m"])
    assert (row["rebalances"], row["rebalance_ms"], row["unavailable_partition_ms"]) == (1, 2_000, 7_000)


def test_what_comes_later_belongs_to_it(lake):
    """The groups come back, the broker's own log comes, and a rebalance that it caused ends: each in a micro-batch of its own."""
    table = IncidentTable(lake)
    take(lake, table, moved("a", 100))
    (first,) = told(lake)
    take(lake, table, rebalance("a", 130_000, **MOVED), batch=1)
    take(lake, table, broker_line("BROKER_FAILED", 99), batch=2)
    take(lake, table, broker_line("BROKER_STARTED", 120), moved("a", 125, "broker-2", "broker-1"), batch=3)
    (row,) = told(lake)
    assert row["id"] == first["id"]
    assert (row["cause"], row["groups_returned"], row["rebalances"]) == ("BROKER_FAILED", 1, 1)
    assert [row[name].timestamp() * 1_000 - DAY for name in ("began_at", "back_at")] == [99_000, 120_000]


def test_it_is_written_only_when_it_changes(lake):
    table = IncidentTable(lake)
    take(lake, table, moved("a", 100))
    version = DeltaTable(lake / "incidents").version()
    take(lake, table, rebalance("b", 110_000), broker_line("BROKER_STARTED", 500), batch=1)
    take(lake, table, rebalance("a", 3_000_000), batch=2)
    assert DeltaTable(lake / "incidents").version() == version


def test_a_process_that_was_killed_before_it_wrote_the_table_writes_it_at_its_next_start(lake):
    append(lake / "findings", track.to_arrow([moved("a", 100)], TABLES["findings"], 0), "test", 0)
    assert told(lake) == []
    IncidentTable(lake).refresh()
    assert [row["groups"] for row in told(lake)] == [["a"]]
