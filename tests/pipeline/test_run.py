"""The whole way from log files to tables, on real logs of one broker."""

import contextlib
import gzip
import os
import signal
import subprocess
import time
from pathlib import Path

import psutil
import pytest
from chispa.rows_comparer import assert_basic_rows_equality
from deltalake import DeltaTable

from coordinator_model.events import FETCH, TOPIC_NAMED
from jobs.cli import health
from jobs.common.disks import told_if_full
from jobs.common.errors import DiskFullError, QueryFailedError
from jobs.common.settings import Settings
from jobs.health.verdict import Limits
from jobs.lakehouse.folder import Lakehouse
from jobs.lakehouse.reader import table_rows
from jobs.logs.slice_files import SliceFiles
from jobs.pipeline import run as pipeline
from schemas.names import INGEST
from schemas.tables import TABLES
from tests.effort import every
from tests.frames import rows_of
from tests.laws.kept import assert_laws_are_kept

pytestmark = pytest.mark.spark

RECORDING = Path(__file__).parents[1] / "data" / "recordings" / "kafka-3.9.1"
ZONE = "America/New_York"
SHARDS = 4
"""Fewer than the default: a micro-batch of the tracker takes the longer the more there are."""
# Of other micro-batches, and of slices cut elsewhere, the rest of the account is the same.
ACCOUNT = ("lines_read", "skipped", "events", "quarantined", "rebalances", "findings")


@pytest.fixture(scope="module")
def logs(tmp_path_factory):
    """One broker's logs, of both kinds: 4,711 lines."""
    folder = tmp_path_factory.mktemp("logs")
    (folder / "c" / "broker-2").mkdir(parents=True)
    for name in ("kafka-request.log", "server.log"):
        (folder / "c" / "broker-2" / name).write_bytes(gzip.decompress((RECORDING / "broker-2" / f"{name}.gz").read_bytes()))
    return folder


def run(spark, logs, lakehouse, *, once=True, show=lambda _: None, **settings):
    return pipeline.run(logs, lakehouse, settings=Settings(timezone=ZONE, shards=SHARDS, **settings), once=once, spark=spark, show=show)


@pytest.fixture(scope="module")
def reference(spark, logs, tmp_path_factory):
    """The lakehouse that one batch makes."""
    lakehouse = tmp_path_factory.mktemp("reference") / "lake"
    return lakehouse, run(spark, logs, lakehouse)


def test_every_line_is_accounted_for_and_rebalances_are_found(reference, logs):
    lakehouse, outcome = reference
    lines = sum(path.read_bytes().count(b"\n") for path in logs.rglob("*.log"))
    added = outcome.added
    assert added["lines_read"] == lines == added["skipped"] + added["events"] + added["quarantined"]
    assert added["rebalances"] > 10
    assert outcome.late_events == 0
    assert_laws_are_kept(lakehouse, logs)
    assert {name for name in TABLES if DeltaTable.is_deltatable(str(lakehouse / name))} == set(TABLES)


def test_tasks_side_by_side_whose_planners_are_killed_give_the_same_tables(spark, reference, logs, tmp_path):
    killed = []

    def kill(_):
        for process in psutil.Process().children(recursive=True) if len(killed) < 3 else ():
            with contextlib.suppress(psutil.Error):
                if "pyspark.sql.streaming.python_streaming_source_runner" in process.cmdline() and process.pid not in killed:
                    process.kill()
                    killed.append(process.pid)

    lakehouse = tmp_path / "lake"
    outcome = run(spark, logs, lakehouse, show=kill, slice_lines=600, stretch_bytes=1 << 17)
    assert killed
    assert {name: outcome.added[name] for name in ACCOUNT} == {name: reference[1].added[name] for name in ACCOUNT}
    assert_basic_rows_equality(rows_of(lakehouse), rows_of(reference[0]))
    assert_basic_rows_equality(rows_of(lakehouse, ("quarantine",)), rows_of(reference[0], ("quarantine",)))
    assert unfolded(lakehouse) == unfolded(reference[0])
    assert len(list((lakehouse / "group_events").glob(f"{INGEST}-*-0*.parquet"))) > 1  # the driver's own have the last number


def unfolded(lakehouse, *, by_log=True):
    """The lines that became events: their places, kinds and times of arrival. Batches decide which of FETCH and METADATA have rows."""
    found = []
    for row in table_rows(lakehouse / "group_events"):
        at_ms = row["received_at"].timestamp() * 1_000 // 1
        if row["source"] != "clock" and row["kind"] not in (FETCH, TOPIC_NAMED):
            beats = zip(row["beats"] or [0], row["positions"] or [row["position"]], strict=True)
            found += [(row["origin"] if by_log else "", place, row["kind"], at_ms + beat, row["lines"] > 0) for beat, place in beats]
    return sorted(found)


def test_a_run_that_has_read_all_leaves_nothing_to_take(reference):
    files = SliceFiles(Lakehouse(reference[0]).spool)
    assert not [*files.slices.iterdir(), *files.parts.iterdir()]


def test_times_in_the_tables_are_utc(reference):
    rebalances = reference[0] / "rebalances"
    assert {row["started_at"].hour for row in table_rows(rebalances)} == {6}  # 01:26 in New York
    (field,) = [field for field in DeltaTable(str(rebalances)).schema().fields if field.name == "started_at"]
    assert field.type.type == "timestamp"  # of UTC; without a zone it would be timestamp_ntz


def test_a_second_run_finds_nothing_new_and_does_not_need_spark(reference, logs, monkeypatch):
    lakehouse, _ = reference
    before = rows_of(lakehouse, tuple(TABLES))
    monkeypatch.setattr(pipeline, "started_spark", None)
    outcome = run(object(), logs, lakehouse)
    assert outcome.nothing_new
    assert_basic_rows_equality(rows_of(lakehouse, tuple(TABLES)), before)


def test_a_run_that_may_have_been_cut_short_is_continued_and_adds_nothing(spark, reference, logs):
    lakehouse, _ = reference
    (lakehouse / "_checkpoints" / "complete").unlink()
    assert run(spark, logs, lakehouse).nothing_new


def test_the_events_alone_give_the_same_tables_in_a_new_lakehouse(spark, reference, tmp_path):
    from jobs.pipeline.queries import finish
    from jobs.pipeline.tracking.track import start_track

    finish(start_track(spark, Lakehouse(tmp_path / "lake"), Settings(), events_from=reference[0]))
    assert_basic_rows_equality(rows_of(tmp_path / "lake"), rows_of(reference[0]))


def test_following_ends_when_it_is_told_to_and_lines_added_later_are_taken_up(spark, logs, tmp_path):
    def stop_when_tracked(reached):
        if reached.tracked and reached.rebalances:
            os.kill(os.getpid(), signal.SIGTERM)

    folder = tmp_path / "logs" / "c" / "broker-2"
    folder.mkdir(parents=True)
    text = (logs / "c" / "broker-2" / "server.log").read_bytes().splitlines(keepends=True)
    cut = [number for number, line in enumerate(text) if b"Stabilized group" in line][8]
    (folder / "server.log").write_bytes(b"".join(text[:cut]))
    handler = signal.getsignal(signal.SIGTERM)
    first = run(spark, tmp_path / "logs", tmp_path / "lake", once=False, show=stop_when_tracked)
    assert first.signal == signal.SIGTERM
    assert signal.getsignal(signal.SIGTERM) is handler
    with (folder / "server.log").open("ab") as file:
        file.writelines(text[cut:])
    second = run(spark, tmp_path / "logs", tmp_path / "lake")
    assert first.added["lines_read"] + second.added["lines_read"] == len(text)
    assert second.added["rebalances"] > 0
    assert second.before == first.after


def test_a_stage_that_fails_says_why_in_one_line(spark, logs, tmp_path, monkeypatch):
    from jobs.pipeline.tracking import track

    def fail(*_):
        raise ValueError("the disk\nis full")

    monkeypatch.setattr(track, "to_arrow", fail)
    with pytest.raises(QueryFailedError, match=r"^track failed: ") as failure:
        run(spark, logs, tmp_path / "lake")
    assert "\n" not in str(failure.value)
    (problem,) = verdict(tmp_path / "lake")
    assert problem.startswith(f"FAILED: not running: {failure.value} (")
    monkeypatch.undo()
    # What failed is repaired by running again.
    assert run(spark, logs, tmp_path / "lake").added["rebalances"] > 10


@pytest.mark.slow
@pytest.mark.parametrize("size", every(2, ["150k", "250k"]))
def test_a_full_disk_is_named_and_with_room_the_run_goes_on(spark, reference, logs, tmp_path, size):
    disk = tmp_path / "disk"
    disk.mkdir()
    if subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", disk], check=False, stderr=subprocess.DEVNULL).returncode:
        pytest.skip("needs the right to mount a file system")
    try:
        with pytest.raises(DiskFullError, match=f"^the disk is full: {disk / 'lake'}.*; make room there"), told_if_full(disk / "lake"):
            run(spark, logs, disk / "lake")
        subprocess.run(["mount", "-o", "remount,size=50m", disk], check=True)
        outcome = run(spark, logs, disk / "lake")
        assert [outcome.after[name] for name in ACCOUNT] == [reference[1].after[name] for name in ACCOUNT]
        assert_basic_rows_equality(rows_of(disk / "lake"), rows_of(reference[0]))
    finally:
        subprocess.run(["umount", "--lazy", disk], check=True)


def verdict(lakehouse):
    """What `rebalance health` finds wrong."""
    said = []
    health.write_verdict(lakehouse, Limits(), "text", time.time_ns() // 1_000_000, said.append)
    return said


def commits(table):
    """Data commits of a Delta table."""
    return DeltaTable(str(table)).version() if DeltaTable.is_deltatable(str(table)) else 0
