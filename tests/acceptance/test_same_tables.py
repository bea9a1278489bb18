"""The law of the product, on the real pipeline: the same events give the same tables.

However the logs are cut into batches, in whatever order lines come within the lateness, whatever damage stands between
them, and wherever the process is killed (test_kill.py). Compared are all rows of the four tables, without batch_id.
"""

import gzip
import json
import random
from collections import Counter
from pathlib import Path

import pytest
from deltalake import DeltaTable

from coordinator_model.events import FIND_COORDINATOR
from jobs.common.settings import Settings
from jobs.lakehouse.reader import table_rows
from jobs.logs.lines import LineLimits
from jobs.logs.spool import SpoolSettings
from jobs.pipeline import at_once, feeder
from jobs.pipeline.run import run
from tests.acceptance.damage import mixed_in
from tests.effort import long
from tests.laws.kept import assert_laws_are_kept

pytestmark = [pytest.mark.spark, pytest.mark.slow]

RECORDING = Path(__file__).parents[1] / "data" / "recordings" / "kafka-3.9.1"
ZONE = "America/New_York"
TABLES = ("group_transitions", "rebalances", "member_sessions", "findings")
ONE_BATCH = 1_000_000


def track(spark, source, folder, *, slice_lines=ONE_BATCH):
    """Runs the pipeline to the end of the input; returns the lakehouse. Without `spark`: in this process."""
    settings = Settings(timezone=ZONE, shards=4, slice_lines=slice_lines)
    if spark is None:
        assert at_once.process(source, folder, settings=settings, most_lines=1 << 30)
    else:
        run(source, folder, settings=settings, once=True, spark=spark)
    assert_laws_are_kept(folder, source)
    return folder


def rows(lakehouse, *, evidence=True):
    """All rows of the four tables as a multiset. Without evidence where lines have other numbers than in the recording."""
    found = Counter()
    for table in TABLES:
        for row in table_rows(lakehouse / table):
            del row["batch_id"]
            if not evidence:
                del row["evidence"]
            found[json.dumps([table, row], sort_keys=True, default=str)] += 1
    return found


def spoken_for(lakehouse):
    """The brokers that spoke for each group; who its coordinator is, any broker may be asked."""
    events = table_rows(lakehouse / "group_events", ["group_id", "broker", "kind"])
    brokers = {}
    for event in events:
        if event["group_id"] is not None and event["kind"] != FIND_COORDINATOR:
            brokers.setdefault(event["group_id"], set()).add(event["broker"])
    return brokers


def batches(lakehouse):
    """How many batches ingest wrote."""
    return len({row["batch_id"] for row in table_rows(lakehouse / "group_events", ["batch_id"])})


def copy(target, change):
    """The recording with `change(log name, lines)` applied to every log, as plain files."""
    for log in sorted(RECORDING.glob("broker-*/*.log.gz")):
        lines = gzip.decompress(log.read_bytes()).split(b"\n")[:-1]
        path = target / RECORDING.name / log.parent.name / log.name.removesuffix(".gz")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"".join(line + b"\n" for line in change(f"{log.parent.name}/{log.name}", lines)))
    return target


@pytest.fixture(scope="module")
def plain(tmp_path_factory):
    """The recording as plain files, so that origins and clusters are named alike in all tests."""
    return copy(tmp_path_factory.mktemp("recording"), lambda _, lines: lines)


@pytest.fixture(scope="module")
def reference(plain, tmp_path_factory):
    """The tables of one batch."""
    lakehouse = track(None, plain, tmp_path_factory.mktemp("reference") / "lakehouse")
    assert batches(lakehouse) == 1
    return lakehouse


@pytest.mark.parametrize(("slice_lines", "least"), [(2_400, 4), long(1_600, 6), long(800, 12)])
def test_logs_cut_into_many_slices(spark, plain, reference, tmp_path, monkeypatch, slice_lines, least):
    class Small(SpoolSettings, frozen=True):
        limits: LineLimits = LineLimits(block_bytes=1 << 15)

    monkeypatch.setattr(feeder, "SpoolSettings", Small)
    sliced = track(spark, plain, tmp_path / "lakehouse", slice_lines=slice_lines)
    assert batches(sliced) >= least
    assert rows(sliced) == rows(reference)


def test_lines_shuffled_within_the_lateness(reference, tmp_path):
    chance = random.Random(3)

    def shuffle(_, lines):
        arrivals, clock = [], 0
        for number, line in enumerate(lines):
            if line[:1] == b"[" and line[24:25] == b"]":
                hours, minutes, seconds = int(line[12:14]), int(line[15:17]), int(line[18:20])
                clock = ((hours * 60 + minutes) * 60 + seconds) * 1000 + int(line[21:24])
                arrivals.append((clock + chance.randrange(4_500), number, line))
            else:
                arrivals.append((clock, number, line))
        return [line for _, _, line in sorted(arrivals)]

    shuffled = track(None, copy(tmp_path / "input", shuffle), tmp_path / "lakehouse", slice_lines=3_000)
    assert rows(shuffled, evidence=False) == rows(reference, evidence=False)


def test_a_thousand_damaged_lines_change_nothing_for_the_intact_ones(reference, tmp_path):
    made = []

    def damage(name, lines):
        # Line by line as the logs are long: 1,000 in all.
        mixed, count = mixed_in(lines, 400 if "broker-1" in name and "request" in name else 200, seed=len(made))
        made.append((count, len(mixed)))
        return mixed

    source = copy(tmp_path / "input", damage)
    damaged = track(None, source, tmp_path / "lakehouse", slice_lines=4_000)
    assert sum(count for count, _ in made) == 1_000
    account = table_rows(damaged / "input_lines")
    totals = {name: sum(row[name] for row in account) for name in ("lines_read", "skipped", "events", "quarantined")}
    assert totals["lines_read"] == sum(total for _, total in made)
    assert totals["lines_read"] == totals["skipped"] + totals["events"] + totals["quarantined"]
    assert totals["quarantined"] == DeltaTable(str(damaged / "quarantine")).count()
    groups = {json.loads(row)[1]["group_id"] for row in rows(reference)}
    intact = Counter({row: n for row, n in rows(damaged, evidence=False).items() if json.loads(row)[1]["group_id"] in groups})
    assert intact == rows(reference, evidence=False)


def test_a_log_cut_short_expires_nobody_after_the_cut(tmp_path):
    """Broker 1's logs end in the middle of the recording; its groups' members live on, unseen."""
    half = b"01:27:40"

    def cut(name, lines):
        return [line for line in lines if line[12:20] < half or line[:1] != b"["] if "broker-1" in name else lines

    lakehouse = track(None, copy(tmp_path / "input", cut), tmp_path / "lakehouse")
    only_here = {group for group, names in spoken_for(lakehouse).items() if names == {"broker-1"}}
    assert len(only_here) > 5
    for row in rows(lakehouse):
        table, values = json.loads(row)
        if values["group_id"] in only_here and table in ("findings", "member_sessions"):
            ended = values["occurred_at"] if table == "findings" else values["ended_at"]
            assert ended < "2026-11-21 06:27:40", row
