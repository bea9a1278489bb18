"""A broker whose clock is seconds off: its events are told at other times, and nothing more is found."""

from collections import Counter
from itertools import chain

import pyarrow as pa
import pytest
from deltalake import DeltaTable

from coordinator_model.tracker.shard import Shard
from jobs.pipeline.tracking import packets
from jobs.pipeline.tracking.spread import Spread
from schemas.names import GROUP_EVENTS
from schemas.tables import arrow_schema_of

pytestmark = pytest.mark.slow
SCHEMA = arrow_schema_of(GROUP_EVENTS)


def findings(events, beats, broker, ms):
    """What is found where the clock of a broker is so far ahead."""
    moved = [e._replace(at_ms=e.at_ms + ms, received_ms=e.received_ms + ms) if e.broker == broker else e for e in events]
    ours = [b._replace(arrivals=[at + ms for at in b.arrivals]) if b.shared.broker == broker else b for b in beats]
    rows = Shard().observe(moved, ours)
    return Counter((row.values["group_id"], row.values["code"], row.values["member_id"]) for row in rows if row.table == "findings")


@pytest.mark.parametrize("cluster", ["clock-five-seconds-behind-both", "dead-twice-both", "queued-heartbeats-both"])
def test_a_clock_that_is_seconds_off_finds_nothing_more(told, cluster):
    table = DeltaTable(told.lakehouse / "group_events").to_pyarrow_table(partitions=None)
    table = table.filter(pa.compute.equal(table["cluster"], cluster)).select(packets.COLUMNS)
    table = table.cast(pa.schema([SCHEMA.field(name) for name in packets.COLUMNS])).combine_chunks()
    packed = packets.packed(Spread(1, 1), table.to_batches(), "")
    events, beats, _, _ = packets.decoded(chain.from_iterable(batch["events"].to_pylist() for batch in packed))
    expected = findings(events, beats, "", 0)
    for broker in sorted({event.broker for event in events} - {""}):
        for ms in (-20_000, -5_000, 5_000, 20_000):
            assert findings(events, beats, broker, ms) - expected == Counter(), (broker, ms)


def test_a_member_that_leaves_in_the_millisecond_of_its_answer_has_joined(told):
    """Six members of a sink connector: by their times, one of them left before its JoinGroup was answered. The broker was right."""
    cluster = "sink-leaves-at-once-both"
    assert [row["code"] for row in told.rows("findings", cluster)] == ["IDLE_MEMBERS"]
    assert {row["generation"] for row in told.rows("rebalances", cluster)} >= {1, 3}
