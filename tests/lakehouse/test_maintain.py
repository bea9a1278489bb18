"""`rebalance maintain` on tables that are written without Spark."""

import json
import os
import shutil
import signal
import subprocess
import sys
import threading
from datetime import datetime, timedelta, timezone
from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable, write_deltalake

from jobs.cli import entry
from jobs.common.errors import UserError
from jobs.common.exit_codes import UNUSABLE
from jobs.lakehouse import delta_files, locks, opening, tables
from jobs.lakehouse.delta_files import ChangedError, data_files
from jobs.lakehouse.folder import Lakehouse
from jobs.lakehouse.maintain import Policy, maintain
from jobs.lakehouse.reader import TableReader, table_rows
from jobs.pipeline.tracking import track
from schemas.names import FINDINGS, GROUP_EVENTS, INGEST, QUARANTINE, REBALANCES_PROVISIONAL, TRACK
from tests.effort import long
from tests.lakehouse.rows import DAY, TABLES, empty_lakehouse, finding, line, open_rebalance, provisional, rebalance, track_is_at, write

pytestmark = pytest.mark.slow

HOUR = 3_600_000
NOW = datetime.fromtimestamp(DAY / 1_000, timezone.utc) + timedelta(days=1)
AT_ONCE = Policy(grace=timedelta(0))


@pytest.fixture(scope="module")
def twenty_batches(tmp_path_factory):
    """Twenty batches, an hour each, of ten groups."""
    lakehouse = tmp_path_factory.mktemp("twenty") / "lake"
    empty_lakehouse(lakehouse)
    for batch in range(20):
        events = [line(group=f"group-{number}", at=batch * HOUR + number, position=batch) for number in range(10)]
        write(lakehouse, *events, rebalance(start=batch * HOUR, total=0), finding(occurred_at=DAY + batch * HOUR), batch=batch)
    return lakehouse


@pytest.fixture
def lake(twenty_batches, tmp_path):
    """A copy of them."""
    return Path(shutil.copytree(twenty_batches, tmp_path / "lake"))


def rows(lake, name):
    return sorted(map(repr, table_rows(lake / name)))


def work(lake, policy=AT_ONCE, **options):
    return {done.table: done for done in maintain(lake, policy, now=NOW, **options)}


def listing(folder):
    return sorted((str(path), path.stat().st_size) for path in folder.rglob("*") if path.is_file() and not path.name.endswith(".lock"))


def test_small_files_become_one_with_the_same_rows(lake):
    before = {name: rows(lake, name) for name in (GROUP_EVENTS, "rebalances", "findings")}
    assert work(lake)[GROUP_EVENTS].files == (20, 1)
    assert {name: rows(lake, name) for name in before} == before
    assert work(lake)[GROUP_EVENTS].files == (1, 1)
    # What was written last is known afterwards.
    assert opening.opened(lake / "rebalances").transaction_version("test") == 19
    write(lake, rebalance(), batch=19)
    assert rows(lake, "rebalances") == before["rebalances"]
    write(lake, rebalance(), batch=20)
    assert len(rows(lake, "rebalances")) == len(before["rebalances"]) + 1


def test_what_is_open_is_kept_however_old_it_is_and_goes_once_it_has_ended(lake):
    write(lake, open_rebalance("stuck"), open_rebalance("done"), open_rebalance("again"), batch=30)
    write(lake, open_rebalance("stuck", total=9_000), open_rebalance("done", outcome="ENDED"), batch=31)
    write(lake, open_rebalance("again", outcome="ENDED"), open_rebalance("again", start=9_000), batch=31 + 1)
    assert work(lake)["rebalances_provisional"].rows_removed == 4

    def left():
        rows = table_rows(lake / "rebalances_provisional", ["group_id", "outcome", "batch_id"])
        return sorted((row["group_id"], row["outcome"], row["batch_id"]) for row in rows)

    assert left() == [("again", "OPEN", 32), ("done", "ENDED", 31), ("stuck", "OPEN", 31)]
    assert work(lake, Policy(keep=timedelta(0), grace=timedelta(0)))["rebalances_provisional"].rows_removed == 1
    assert left() == [("again", "OPEN", 32), ("stuck", "OPEN", 31)]


def test_provisional_rows_go_that_a_newer_or_the_final_row_replaces(lake):
    joined = {"joined_at": DAY + 1_000, "start": 500}
    write(lake, provisional(**joined), provisional(generation=2, start=9_000, group="other"), batch=30)
    write(lake, provisional("DEPARTURE", **joined), provisional(generation=2, start=9_000), batch=31)
    write(lake, rebalance(**joined | {"start": 400}, total=2_100), provisional("STORAGE", generation=2, start=9_000), batch=32)
    told = work(lake, dry_run=True)
    done = work(lake)
    assert told["rebalances_provisional"].rows_removed == done["rebalances_provisional"].rows_removed == 3
    left = table_rows(lake / "rebalances_provisional", ["group_id", "generation", "waits_for"])
    assert sorted(tuple(row.values()) for row in left) == [("other", 2, "ANSWERS"), ("payments", 2, "STORAGE")]
    assert work(lake)["rebalances_provisional"].rows_removed == 0
    write(lake, rebalance(generation=2, start=9_000), rebalance(generation=2, start=9_000, group="other"), batch=33)
    assert work(lake, Policy(keep=timedelta(0), grace=timedelta(0)))["rebalances_provisional"].rows_removed == 2
    assert table_rows(lake / "rebalances_provisional") == []


def test_what_was_known_at_the_end_of_logs_that_may_grow_replaces_nothing_and_goes_with_the_next_run(lake):
    began = open_rebalance(waits_for="JOIN")
    write(lake, began, finding(message="certain"), batch=1, app=TRACK)
    before = rows(lake, FINDINGS), rows(lake, REBALANCES_PROVISIONAL)
    write(lake, finding(message="uncertain", at_end=True), began | {"outcome": "ENDED", "at_end": True}, batch=2, app=TRACK)
    work(lake)
    assert len(rows(lake, FINDINGS)) == len(before[0]) + 1
    for name in (FINDINGS, REBALANCES_PROVISIONAL):
        tables.append(lake / name, track.to_arrow([], TABLES[name], 3), TRACK, 3)
    assert (rows(lake, FINDINGS), rows(lake, REBALANCES_PROVISIONAL)) == before


def test_a_query_for_one_group_reads_little_of_what_there_is(lake):
    def read_for(group):
        """Files and row groups that may have the group, by the statistics in the log and in the files."""
        actions = pa.table(DeltaTable(str(lake / GROUP_EVENTS)).get_add_actions(flatten=True)).to_pylist()
        files = [added for added in actions if added["min.group_id"] <= group <= added["max.group_id"]]
        parts = 0
        for added in files:
            metadata = pq.read_metadata(lake / GROUP_EVENTS / added["path"])
            column = metadata.schema.to_arrow_schema().get_field_index("group_id")
            parts += sum(
                metadata.row_group(number).column(column).statistics.min
                <= group
                <= metadata.row_group(number).column(column).statistics.max
                for number in range(metadata.num_row_groups)
            )
        return len(files), parts

    assert read_for("group-3") == (20, 20)
    work(lake, Policy(grace=timedelta(0), row_group=20))
    assert read_for("group-3") == (1, 1)
    assert pq.read_metadata(DeltaTable(str(lake / GROUP_EVENTS)).file_uris()[0]).num_row_groups == 10
    assert TableReader(lake).rows("SELECT count(*) n FROM group_events WHERE group_id = 'group-3'") == [{"n": 20}]


def test_rows_that_are_old_enough_go_by_the_time_of_each_table(lake):
    write(lake, finding(occurred_at=DAY - 365 * 24 * HOUR, group_id="old"), batch=20)
    for hour in range(7, 12):  # a table that only others know
        at = pa.array([(DAY + hour * HOUR) * 1_000], pa.timestamp("us", "UTC"))
        write_deltalake(str(lake / "pipeline_health"), pa.table({"occurred_at": at, "lag": [hour]}), mode="append")
    before = {name: DeltaTable(str(lake / name)).count() for name in (GROUP_EVENTS, "rebalances", "findings")}
    policy = Policy(keep=timedelta(hours=10), keep_events=timedelta(hours=2), grace=timedelta(0))
    told = work(lake, policy, dry_run=True)
    done = work(lake, policy)
    # The newest event is of 19:00:00.009; ages are counted from it.
    assert {name: done[name].rows_removed for name in before} == {GROUP_EVENTS: 179, "rebalances": 10, "findings": 11}
    assert {name: told[name].rows_removed for name in before} == {name: done[name].rows_removed for name in before}
    assert {name: DeltaTable(str(lake / name)).count() for name in before} == {GROUP_EVENTS: 21, "rebalances": 10, "findings": 10}
    oldest = duckdb.sql(f"SELECT min(epoch_ms(ended_at)) FROM '{DeltaTable(str(lake / 'rebalances')).file_uris()[0]}'").fetchall()
    assert oldest == [(DAY + 10 * HOUR,)]
    assert (done["pipeline_health"].rows_removed, done["pipeline_health"].files) == (3, (5, 1))
    assert work(lake, policy)[GROUP_EVENTS].rows_removed == 0


def test_a_row_without_a_time_is_kept(lake):
    for at in (None, DAY - 100 * HOUR):
        table = pa.table(
            {"cluster": ["c"], "broker": ["b"], "raw": ["x"], "reason": ["NO_TIME"], "source": ["unknown"], "origin": ["o"],
             "position": [1], "occurred_at": pa.array([at and at * 1_000], pa.timestamp("us", "UTC")), "batch_id": [0]}
        )  # fmt: skip
        tables.append(lake / QUARANTINE, table, f"at-{at}", 0)
    write(lake, line(at=50 * 365 * 24 * HOUR), batch=20)  # an event of the future makes nothing old
    done = work(lake, Policy(keep=timedelta(days=2)))
    assert (done["quarantine"].rows_removed, done[GROUP_EVENTS].rows_removed) == (1, 0)
    assert [row["occurred_at"] for row in table_rows(lake / "quarantine")] == [None]


def test_replaced_files_stay_for_readers_and_go_afterwards(lake):
    folder = lake / "rebalances"
    reader = TableReader(lake)
    assert work(lake, Policy())["rebalances"].deleted == 0
    assert reader.rows("SELECT count(*) n FROM rebalances WHERE cause IS NOT NULL") == [{"n": 20}]
    (folder / "part-of-a-write-that-goes-on.parquet").write_bytes(b"x")
    killed = folder / "part-of-a-write-that-was-killed.parquet"
    killed.write_bytes(b"x")
    os.utime(killed, (1_000_000_000, 1_000_000_000))
    done = work(lake)["rebalances"]
    assert (done.deleted, len(list(folder.glob("*.parquet")))) == (21, 2)
    assert (folder / "part-of-a-write-that-goes-on.parquet").exists()


@pytest.fixture
def followed(tmp_path):
    """Ten micro-batches of ingest."""
    lake = empty_lakehouse(tmp_path / "followed")
    for batch in range(10):
        write(lake, line(at=batch * HOUR, position=batch), batch=batch, app=INGEST)
    return lake


def test_what_track_has_not_read_stays_as_it_is(followed):
    folder = followed / GROUP_EVENTS
    before = {file.batch.batch_id: file.path for file in data_files(DeltaTable(str(folder)))}
    done = work(followed)[GROUP_EVENTS]  # nobody tracks it
    assert (done.files, done.deleted) == ((10, 10), 0)
    track_is_at(followed, 5)
    old = Policy(keep=timedelta(hours=2), grace=timedelta(0))
    assert (work(followed)[GROUP_EVENTS].files, work(followed, old)[GROUP_EVENTS].rows_removed) == ((10, 5), 6)
    left = {file.batch.batch_id: file.path for file in data_files(DeltaTable(str(folder)))}
    assert left == {batch: before[batch] for batch in range(6, 10)}
    assert {path.name for path in folder.glob("*.parquet")} == set(left.values())
    track_is_at(followed, 9)
    assert work(followed, old)[GROUP_EVENTS].rows_removed == 1
    assert [row["position"] for row in table_rows(folder)] == [7, 8, 9]


def test_what_no_receiver_of_alerts_has_got_stays_as_it_is(followed):
    for batch in range(4):
        write(followed, finding(occurred_at=DAY + batch * HOUR), batch=batch, app=TRACK)
    house = Lakehouse(followed)
    house.alerts.mkdir(parents=True)
    (house.alerts / "oncall.json").write_text('{"done": {"batch": 2, "row": 0}}')
    assert work(followed)["findings"].files == (4, 3)


def test_files_that_another_program_replaced_are_not_replaced_again(lake):
    folder = lake / "rebalances"
    files = data_files(DeltaTable(str(folder)))
    DeltaTable(str(folder)).optimize.compact()
    before = rows(lake, "rebalances")
    with pytest.raises(ChangedError, match="run the command again"):
        delta_files.rewrite(folder, files, lake / "_maintain", order="group_id")
    assert rows(lake, "rebalances") == before


@pytest.mark.parametrize("times", [1, long(5)])
def test_nothing_is_lost_or_doubled_beside_a_writer(lake, times):
    ended = threading.Event()
    appended, failures = [], []

    def append():
        try:
            while not ended.is_set():
                batch = 20 + len(appended)
                write(lake, rebalance(start=batch * HOUR), batch=batch)
                appended.append(batch)
        except Exception as error:  # noqa: BLE001 - told by the main thread
            failures.append(error)

    thread = threading.Thread(target=append)
    thread.start()
    try:
        for _ in range(times):
            work(lake)
    finally:
        ended.set()
        thread.join()
    assert not failures
    assert sorted(row["batch_id"] for row in table_rows(lake / "rebalances")) == list(range(20 + len(appended)))
    assert len(appended) > 1


def test_two_cannot_maintain_at_once(lake):
    with locks.held(Lakehouse(lake).maintain_lock, "", shared=True), pytest.raises(UserError, match="another `rebalance maintain`"):
        work(lake)


def test_the_command_says_what_it_did_and_a_dry_run_touches_nothing(lake, capsys):
    before = listing(lake)
    assert entry.main(["maintain", "--lakehouse", str(lake), "--keep", "1h", "--grace", "0d", "--dry-run"]) == 0
    assert listing(lake) == before
    assert "Nothing was done" in capsys.readouterr().out
    assert entry.main(["maintain", "--lakehouse", str(lake), "--keep", "90d"]) == 0
    told = next(text for text in capsys.readouterr().out.splitlines() if text.startswith("rebalances "))
    assert "20 → 1" in told
    assert entry.main(["maintain", "--lakehouse", str(lake), "--keep", "ninety"]) == UNUSABLE
    assert entry.main(["maintain", "--lakehouse", str(lake), "--grace", "30d"]) == UNUSABLE
    assert entry.main(["maintain", "--lakehouse", str(lake / "nowhere")]) == UNUSABLE
    assert "no lakehouse" in capsys.readouterr().err


def test_a_table_of_which_rows_are_marked_as_deleted_is_left_alone(lake):
    protocol = lake / "findings" / "_delta_log" / f"{0:020}.json"
    lines = [json.loads(text) for text in protocol.read_text().splitlines()]
    for action in lines:
        if "protocol" in action:
            features = ["deletionVectors"]
            action["protocol"] = {"minReaderVersion": 3, "minWriterVersion": 7, "readerFeatures": features, "writerFeatures": features}
    protocol.write_text("".join(json.dumps(action) + "\n" for action in lines))
    done = work(lake)
    assert done["findings"].left_alone
    assert done["rebalances"].files == (20, 1)


@pytest.mark.parametrize("moments", [(2,), long((1, 3, 5, 8))])
def test_kill_9_at_any_moment_loses_and_doubles_nothing(lake, moments):
    before = {name: rows(lake, name) for name in (GROUP_EVENTS, "rebalances", "findings")}
    # Says when it begins, and works slowly enough to be killed in every part of it.
    script = (
        "import sys; from datetime import *; from pathlib import Path; from jobs.lakehouse.maintain import *;"
        "print('ready', flush=True);"
        "list(maintain(Path(sys.argv[1]), Policy(grace=timedelta(0), row_group=10), now=datetime.now(timezone.utc)))"
    )
    environment = os.environ | {"PYTHONPATH": str(Path(__file__).parents[2])}
    killed = batch = 0
    for moment in moments:
        for _ in range(3):
            write(lake, rebalance(start=batch), finding(occurred_at=DAY + batch), batch=20 + batch)
            batch += 1
        before = {name: rows(lake, name) for name in before}
        command = [sys.executable, "-c", script, str(lake)]
        process = subprocess.Popen(command, env=environment, stdout=subprocess.PIPE)
        process.stdout.readline()
        try:
            process.wait(timeout=0.05 * moment)
        except subprocess.TimeoutExpired:
            process.send_signal(signal.SIGKILL)
            killed += 1
        process.wait()
        process.stdout.close()
        assert {name: rows(lake, name) for name in before} == before
    assert killed
    done = work(lake)
    assert {name: rows(lake, name) for name in before} == before
    assert all(done[name].files[1] == 1 for name in before)
