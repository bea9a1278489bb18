"""A broker whose clock is seconds off: its events are told at other times, and nothing more is found."""

import gzip
import re
from collections import Counter
from datetime import datetime, timedelta
from itertools import chain

import pyarrow as pa
import pytest
from deltalake import DeltaTable

from coordinator_model.tracker.shard import Shard
from jobs.common.settings import Settings
from jobs.lakehouse.reader import table_rows
from jobs.pipeline import at_once
from jobs.pipeline.tracking import packets
from jobs.pipeline.tracking.spread import Spread
from schemas.names import GROUP_EVENTS
from schemas.tables import arrow_schema_of
from tests.acceptance.faults.conftest import FAULTS

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


def set_back(folder, ms):
    """The logs of a broker whose clock was set back by 60 s, as if it had been set by `ms`."""
    for path in sorted((FAULTS / "clock-steps-back-both/broker-2").iterdir()):
        lines, last, is_behind = [], "", False
        for line in gzip.decompress(path.read_bytes()).decode().splitlines():
            time = line[1:24] if re.match(r"\[\d{4}-", line) else ""
            is_behind = is_behind or "" < time < last[:20]  # milliseconds may go back by themselves
            last = time or last
            moved = datetime.strptime(time, "%Y-%m-%d %H:%M:%S,%f") + timedelta(milliseconds=60_000 + ms) if time and is_behind else None  # noqa: DTZ007
            lines.append(line if moved is None else f"[{moved:%Y-%m-%d %H:%M:%S},{moved.microsecond // 1000:03}{line[24:]}")
        (folder / path.stem).write_text("\n".join([*lines, ""]))


@pytest.mark.parametrize("slice_lines", [200, 100_000])
@pytest.mark.parametrize("ms", [0, -5_000, -60_000, -3_600_000, 5_000, 3_600_000, 86_400_000])
def test_a_clock_that_is_set_invents_nothing(tmp_path, ms, slice_lines):
    place = tmp_path / "in/k/broker-2"
    place.mkdir(parents=True)
    set_back(place, ms)
    said = []
    settings = Settings(shards=1, slice_lines=slice_lines)
    at_once.process(tmp_path / "in", tmp_path / "lake", settings=settings, most_lines=10_000, warn=said.append)
    rebalances, findings = (table_rows(tmp_path / "lake" / name) for name in ("rebalances", "findings"))
    assert [row["generation"] for row in rebalances] == list(range(1, 9))
    codes = [row["code"] for row in findings]
    assert codes == ["SESSION_TIMEOUT"] if ms <= 0 else "MODEL_DIVERGENCE" not in codes
    steps = [text for text in said if "stepped back" in text]
    assert [text[: text.index(" UTC")] for text in steps] == [
        f"the clock of broker-2 stepped back by {-ms // 1000:,} s at 2026-11-26 10:25:59" for _ in range(ms < 0)
    ]
