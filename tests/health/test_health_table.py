"""`pipeline_health` as it is written and read, the tally behind it, and `rebalance health` on a folder: all but Spark."""

from __future__ import annotations

import fcntl
import json
import os
from dataclasses import asdict, fields, replace
from pathlib import Path
from types import SimpleNamespace

import pytest
from deltalake import DeltaTable
from prometheus_client import generate_latest

from jobs.cli import entry
from jobs.cli import health as health_command
from jobs.common.errors import LakehouseError
from jobs.common.settings import Settings
from jobs.health import health_table, reading, status
from jobs.health.batch_health import BatchCounts, BatchHealth, Memory, batch_health, measured
from jobs.health.health_table import COMMIT_MS, HealthTable
from jobs.health.status import QueryStatus, Status
from jobs.health.tally import Tally
from jobs.health.verdict import Limits
from jobs.lakehouse import folder, locks
from jobs.lakehouse.folder import Lakehouse
from schemas import names
from schemas.tables import HEALTH_TABLES, schema_of
from tests.health.metrics_text import read_metrics
from tests.lakehouse.rows import empty_lakehouse

NOW = 1_795_000_000_000
DAY = 86_400_000
ROW = BatchHealth(
    occurred_at=NOW, query="track", run_id="r", batch_id=7, duration_ms=2_000, input_rows=5, event_time=NOW - 6_000, lag_ms=6_000, groups=3
)
STATUS = Status(pid=os.getpid(), state=status.RUNNING, once=False, started_ms=NOW, at_ms=NOW, queries=(QueryStatus("track", active=True),))


def rows(lake):
    return reading.read_rows(lake / "pipeline_health")


def files(lake):
    return sorted((lake / "pipeline_health").glob("*.parquet"))


def test_the_names_of_rows_and_of_the_table_are_the_same():
    assert {field.name for field in fields(BatchHealth)} == set(schema_of(names.PIPELINE_HEALTH).names)
    assert list(HEALTH_TABLES) == [names.PIPELINE_HEALTH]


def test_a_row_comes_out_as_it_went_in(tmp_path):
    table = HealthTable(tmp_path)
    full = BatchHealth(**{field.name: field.name if "str" in str(field.type) else NOW - index for index, field in enumerate(fields(ROW))})
    for row in (ROW, full):
        table.add(row)
    table.flush(NOW, at_once=True)
    assert rows(tmp_path) == [full, ROW]
    assert table.problem is None


def test_rows_gather_until_it_is_time_and_nothing_is_written_without_any(tmp_path):
    table = HealthTable(tmp_path)
    table.flush(NOW)
    for second in range(30):
        table.add(replace(ROW, batch_id=second))
        table.flush(NOW + second * 1_000)
    assert not (tmp_path / "pipeline_health").exists()
    table.flush(NOW + COMMIT_MS)
    assert (DeltaTable(str(tmp_path / "pipeline_health")).version(), len(rows(tmp_path))) == (1, 30)
    table.flush(NOW + 2 * COMMIT_MS)
    table.flush(NOW, at_once=True)
    assert DeltaTable(str(tmp_path / "pipeline_health")).version() == 1


def test_rows_that_cannot_be_written_are_kept_for_the_next_time(tmp_path):
    table = HealthTable(tmp_path)
    (tmp_path / "pipeline_health").write_text("a file where the folder should be")
    table.add(ROW)
    table.flush(NOW, at_once=True)
    assert table.problem is not None
    assert table.problem.startswith("DeltaError: Kernel error: Invalid table location: ")
    assert table.problem.isprintable()
    assert table.failures == 1
    (tmp_path / "pipeline_health").unlink()
    table.add(replace(ROW, batch_id=8))
    table.flush(NOW, at_once=True)
    assert [row.batch_id for row in rows(tmp_path)] == [7, 8]
    assert table.problem is None


def test_rows_that_cannot_be_written_for_long_do_not_fill_the_memory(tmp_path, monkeypatch):
    monkeypatch.setattr(health_table, "BUFFERED_ROWS", 100)
    table = HealthTable(tmp_path)
    for number in range(105):
        table.add(replace(ROW, batch_id=number))
    table.flush(NOW, at_once=True)
    assert {row.batch_id for row in rows(tmp_path)} == set(range(5, 105))


@pytest.fixture
def often(monkeypatch):
    """Tables are tidied without waiting for readers: as in a real run these tests would take an hour."""
    for name, value in {"TIDY_COMMITS": 10, "LOG_CHECKPOINT_COMMITS": 8, "READER_HOURS": 0}.items():
        monkeypatch.setattr(health_table, name, value)


@pytest.mark.usefixtures("often")
def test_old_rows_go_and_many_files_become_few(tmp_path):
    table = HealthTable(tmp_path)
    for number in range(10):
        table.add(replace(ROW, batch_id=number, occurred_at=NOW - (31 * DAY if number % 2 else 29 * DAY)))
        table.flush(NOW, at_once=True)
    assert table.problem is None
    assert sorted(row.batch_id for row in rows(tmp_path)) == list(range(0, 10, 2))
    assert len(DeltaTable(str(tmp_path / "pipeline_health")).file_uris()) == 1


@pytest.mark.usefixtures("often")
def test_what_no_reader_needs_any_more_leaves_the_disk(tmp_path):
    """What a tidying replaced is gone from the disk, and days later the log of then is, up to its checkpoint."""
    table = HealthTable(tmp_path)
    log = tmp_path / "pipeline_health" / "_delta_log"

    def write(numbers):
        for number in numbers:
            table.add(replace(ROW, batch_id=number))
            table.flush(NOW, at_once=True)
        assert table.problem is None

    write(range(10))
    assert len(files(tmp_path)) == 1
    for path in log.iterdir():
        _age(path, days=3)
    write(range(10, 40))
    assert sorted(row.batch_id for row in rows(tmp_path)) == list(range(40))
    assert len(files(tmp_path)) < 10
    versions = [int(path.stem) for path in sorted(log.glob("*.json"))]
    assert versions[0] == 7  # where the newest checkpoint of then was made


def _age(path: Path, days: int) -> None:
    then = path.stat().st_mtime - days * 86_400
    os.utime(path, (then, then))


# From Spark's words to a row.

PROGRESS = {
    "runId": "r",
    "timestamp": "2026-11-18T11:06:38.000Z",
    "batchId": 7,
    "batchDuration": 2_001,
    "numInputRows": 500,
    "durationMs": {
        "triggerExecution": 2_000, "latestOffset": 3, "queryPlanning": 43, "addBatch": 1_117, "walCommit": 38,
        "commitOffsets": 39,
    },
    "stateOperators": [{"commitTimeMs": 250}],
}  # fmt: skip


def test_a_row_says_what_spark_and_the_query_say():
    counted = BatchCounts(input_rows=100, output_rows=4, event_time=NOW - 6_000)
    row = batch_health("track", PROGRESS, counted, lag_events=12, lag_bytes=None, memory=Memory(1, 2, 3))
    assert row == BatchHealth(
        occurred_at=NOW, query="track", run_id="r", batch_id=7, duration_ms=2_000, latest_offset_ms=3, planning_ms=43,
        add_batch_ms=1_117, commit_ms=77, state_commit_ms=250, input_rows=100, output_rows=4, event_time=NOW - 6_000,
        lag_ms=6_000, lag_events=12, driver_memory_bytes=1, jvm_memory_bytes=2, worker_memory_bytes=3,
    )  # fmt: skip


def test_a_query_that_counts_nothing_is_told_by_spark_alone():
    row = batch_health("other", {**PROGRESS, "stateOperators": []}, BatchCounts(), lag_events=None, lag_bytes=None, memory=Memory())
    assert (row.input_rows, row.lag_ms, row.state_commit_ms) == (500, None, None)


def batch(batch_id, shard, *, late=0, at_ms=NOW, groups=2, divergences=0, cluster="c"):
    from jobs.health.batches import TrackedBatch

    summary = {
        "rows": 500, "groups": groups, "held_events": 1, "late_events": 50, "new_late_events": late, "state_bytes": 100,
        "at_ms": at_ms,
    }  # fmt: skip
    found = {"code": "MODEL_DIVERGENCE" if divergences else "POLL_TIMEOUT", "cluster": cluster}
    rows = {"rebalances": [{}] * 3, "rebalances_provisional": [{}], "findings": [found] * max(divergences, 1)}
    return TrackedBatch(batch_id, rows, {(cluster, shard): summary})


def test_shards_that_a_micro_batch_does_not_touch_keep_what_they_had():
    tally = Tally()
    tally.tracked(batch(0, shard=0, late=5))
    tally.tracked(batch(1, shard=1, late=2, at_ms=NOW - 1, groups=7, divergences=1))
    counted = tally.batch_counts("track", 1)
    assert counted == BatchCounts(
        input_rows=500, output_rows=4, late_events=2, divergences=1, event_time=NOW, groups=9, held_events=2, state_bytes=200
    )
    assert tally.batch_counts("track", 1) == tally.batch_counts("track", 0) == BatchCounts()  # told once; older ones are forgotten


def test_metrics_are_sums_by_cluster_and_query():
    from jobs.health.batches import IngestedBatch

    tally = Tally()
    tally.ingested("ingest", IngestedBatch(0, {"c": (5, 3, 2), 'd"\n': (1, 0, 0)}))
    tally.ingested("ingest-topic", IngestedBatch(0, {"c": (0, 10, 0)}))
    tally.tracked(batch(0, shard=0, late=5))
    tally.tracked(batch(1, shard=0, late=1, groups=4))
    tally.tracked(batch(2, shard=0, cluster="e", divergences=2))
    tally.finished(ROW)
    tally.finished(replace(ROW, duration_ms=30_000, input_rows=6, planning_ms=500))
    found = read_metrics(generate_latest(SimpleNamespace(collect=tally.metrics)))
    assert found.value("rebalance_lines_total", cluster="c", outcome="event") == 13
    assert found.value("rebalance_lines_total", cluster='d"\n', outcome="skipped") == 1
    assert found.value("rebalance_late_events_total", cluster="c") == 6
    assert found.labelled("rebalance_divergences_total", "cluster") == {"c": 0, "e": 2}
    assert found.value("rebalance_groups", cluster="c") == 4
    assert found.value("rebalance_state_bytes", cluster="c") == 100
    assert found.value("rebalance_rows_written_total", table="rebalances") == 9
    assert found.value("rebalance_event_time_seconds", cluster="e") == NOW / 1_000
    assert found.value("rebalance_input_rows_total", query="track") == 11
    assert found.value("rebalance_batch_duration_seconds_bucket", query="track", le="20.0") == 1
    assert found.value("rebalance_batch_duration_seconds_sum", query="track") == 32
    assert found.value("rebalance_batch_phase_seconds_total", query="track", phase="planning") == 0.5


def test_the_memory_of_this_process_is_known():
    memory = measured(os.getppid())
    assert memory.driver > 1 << 20
    assert memory.workers >= memory.driver  # we are one of those that our parent started


# The command.


@pytest.fixture
def lake(tmp_path):
    """A lakehouse in which this very process works and keeps up."""
    house = Lakehouse(tmp_path)
    table = HealthTable(tmp_path)
    table.add(ROW)
    table.flush(NOW, at_once=True)
    status.write(house.status, STATUS)
    with house.lock.open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield tmp_path


def judge(lake, form="text", now=NOW + 1_000):
    said = []
    code = health_command.write_verdict(lake, Limits(), form, now, said.append)
    return code, said


def test_one_that_is_well(lake):
    code, (line,) = judge(lake)
    assert code == 0
    assert line == (
        "OK: running since 2026-11-18 11:06:40 UTC, logs read up to 2026-11-18 11:06:34, 6.0 s behind, 3 groups tracked, 0 rows wait, "
        "1 micro-batches in the last 1 h, 2.0 s each"
    )


def test_one_that_is_not(lake):
    code, said = judge(lake, now=NOW + 120_000)
    assert code == 1
    assert [line.split(":")[0] for line in said] == ["SILENT"]


def test_programs_get_the_same(lake):
    code, (text,) = judge(lake, "json", now=NOW + 120_000)
    found = json.loads(text)
    assert (code, found["ok"], found["running"]) == (1, False, True)
    assert [problem["code"] for problem in found["problems"]] == ["SILENT"]
    assert found["newest"]["track"] == asdict(ROW)


def test_what_a_process_says_of_its_end_is_printable(lake):
    Lakehouse(lake).lock.unlink()
    status.write(Lakehouse(lake).status, replace(STATUS, state=status.FAILED, reason="track failed: \x1b[31m\u202e"))
    code, (line,) = judge(lake)
    assert code == 1
    assert line.isprintable()
    assert r"\x1b[31m\u202e" in line


def test_where_nothing_is_known_nothing_is_said(tmp_path):
    with pytest.raises(LakehouseError, match="no such folder"):
        judge(tmp_path / "none")
    with pytest.raises(LakehouseError, match="health unknown"):
        judge(tmp_path)
    Lakehouse(tmp_path).status.write_text('{"version": 99}')
    with pytest.raises(LakehouseError, match="health unknown"):
        judge(tmp_path)


def test_tables_that_spark_submit_made_are_named_as_such(tmp_path):
    lake = empty_lakehouse(tmp_path / "lake")
    with pytest.raises(LakehouseError, match="; jobs that spark-submit starts report to Spark's own metrics"):
        judge(lake)


def test_a_status_comes_out_as_it_went_in_and_what_a_newer_program_adds_is_passed_over(tmp_path):
    path = tmp_path / "status.json"
    status.write(path, STATUS)
    assert status.read(path) == STATUS
    said = json.loads(path.read_text())
    path.write_text(json.dumps({**said, "mood": "good", "queries": [{**query, "mood": "good"} for query in said["queries"]]}))
    assert status.read(path) == STATUS
    path.write_text(json.dumps([said]))
    assert status.read(path) is None


def test_a_process_that_has_written_no_row_yet_is_judged_by_what_it_says(tmp_path):
    status.write(Lakehouse(tmp_path).status, replace(STATUS, state=status.FINISHED))
    assert judge(tmp_path)[0] == 0


def test_a_table_that_is_damaged_is_an_error_in_one_line(lake):
    for path in files(lake):
        path.write_bytes(b"nothing")
    with pytest.raises(LakehouseError, match=r"^cannot read ") as failure:
        judge(lake)
    assert "\n" not in str(failure.value)


def test_a_look_at_the_lock_does_not_take_it(tmp_path):
    assert not locks.is_held(Lakehouse(tmp_path).lock)
    with folder.opened(tmp_path, Settings()):
        assert locks.is_held(Lakehouse(tmp_path).lock)
        assert locks.is_held(Lakehouse(tmp_path).lock)
    assert not locks.is_held(Lakehouse(tmp_path).lock)
    with folder.opened(tmp_path, Settings()):
        pass


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--max-lag", "soon"], "--max-lag soon: not a duration"),
        (["--window", "2d"], "--window: 24h at most"),
        (["--max-quarantined", "101"], "101"),
    ],
)
def test_limits_that_are_none_are_errors_in_one_line(lake, options, message, capsys):
    assert entry.main(["health", "--lakehouse", str(lake), *options]) == 2
    assert message in capsys.readouterr().err


def test_the_exit_code_is_the_verdict(lake, capsys):
    assert entry.main(["health", "--lakehouse", str(lake), "--window", "24h"]) == 1  # its status is of 2026-11-18
    assert capsys.readouterr().out.startswith("SILENT: ")
    assert entry.main(["health", "--lakehouse", str(lake / "none")]) == 2
