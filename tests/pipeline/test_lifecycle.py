"""Maintained, replayed and swapped lakehouses against undisturbed ones, on real logs of one broker."""

from __future__ import annotations

import gzip
import shutil
import threading
from contextlib import contextmanager
from datetime import datetime, timedelta, timezone
from pathlib import Path

import pytest
from deltalake import DeltaTable
from pyspark.sql.pandas.types import to_arrow_schema

from jobs.common.errors import UserError
from jobs.common.settings import Settings
from jobs.lakehouse import delta_log, swap
from jobs.lakehouse import tables as delta_tables
from jobs.lakehouse.event_copy import CopyLimits
from jobs.lakehouse.folder import Lakehouse
from jobs.lakehouse.maintain import Policy, maintain, unread_from
from jobs.lakehouse.reader import table_rows
from jobs.pipeline import run as pipeline
from jobs.pipeline.alone import ingest_files
from jobs.pipeline.replay import replay
from jobs.pipeline.tracking import track
from schemas.names import GROUP_EVENTS
from schemas.tables import TABLES, TRACK_TABLES

pytestmark = [pytest.mark.spark, pytest.mark.slow]

RECORDING = Path(__file__).parents[1] / "data" / "recordings" / "kafka-3.9.1"
SETTINGS = Settings(timezone="America/New_York", slice_lines=350, shards=8)
NOW = datetime(2026, 11, 21, tzinfo=timezone.utc)
AT_ONCE = Policy(grace=timedelta(0))


@pytest.fixture(scope="module")
def halves():
    """The lines of one broker, and how many of them come first."""
    path = RECORDING / "broker-2"
    lines = gzip.decompress((path / "kafka-request.log.gz").read_bytes()).splitlines(keepends=True)
    return lines, len(lines) // 2


@pytest.fixture(scope="module")
def undisturbed(spark, halves, tmp_path_factory):
    """The lakehouse that is made of all lines, by a run for each half."""
    folder = tmp_path_factory.mktemp("undisturbed")
    for part in (1, 2):
        run(spark, logs(folder, halves, part), folder / "lake")
    return folder / "lake"


def logs(folder, halves, part):
    """The input, as far as its first or its second half was written."""
    lines, half = halves
    file = folder / "logs" / "c" / "broker-2" / "kafka-request.log"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(b"".join(lines if part == 2 else lines[:half]))
    return folder / "logs"


def run(spark, source, lake):
    forget(spark)
    return pipeline.run(source, lake, settings=SETTINGS, once=True, spark=spark)


def forget(spark):
    """Each command is a process of its own, whose Spark remembers no table of another."""
    spark._jvm.org.apache.spark.sql.delta.DeltaLog.clearCache()


def tables(lake, names=tuple(TRACK_TABLES)):
    """Rows of the tables without their batch, as sorted texts: doubled rows stay doubled."""
    found = {}
    for name in names:
        rows = [{**row, "batch_id": None} for row in table_rows(lake / name)]
        found[name] = sorted(map(repr, rows))
    return found


def takes_out_files(table):
    """Commits that took files out."""
    return [commit.version for commit in delta_log.commits(table, 0) if any("remove" in action for action in commit.actions)]


def last_batches(lake):
    """What each application wrote last, by table."""
    names = [path.parent.name for path in lake.glob("*/_delta_log")]
    return {name: delta_log.transactions(lake / name, DeltaTable(str(lake / name)).version()) for name in names}


@contextmanager
def maintained_again_and_again(lake):
    """While in it, a thread does nothing else, as soon as track has read something."""
    ended = threading.Event()
    failures = []

    def work():
        while not ended.wait(0.3):
            if (lake / "_checkpoints" / "track" / "commits" / "0").exists():
                try:
                    list(maintain(lake, AT_ONCE, now=NOW))
                except Exception as error:  # noqa: BLE001 - told by the main thread
                    failures.append(error)
                    return

    thread = threading.Thread(target=work)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()
    assert not failures


def test_a_lakehouse_that_is_maintained_replayed_and_swapped_is_as_if_nothing_had_been(spark, halves, undisturbed, tmp_path):
    lake, new = tmp_path / "lake", tmp_path / "new"
    events = lake / GROUP_EVENTS

    # Maintained beside the pipeline.
    with maintained_again_and_again(lake):
        run(spark, logs(tmp_path, halves, 1), lake)
    list(maintain(lake, AT_ONCE, now=NOW))
    assert takes_out_files(events)
    assert len(DeltaTable(str(events)).file_uris()) == 1

    # Replayed from files that mix batches.
    forget(spark)
    outcome = replay(lake, new, settings=SETTINGS, spark=spark, copy_limits=CopyLimits(300, 700))
    assert (outcome.before, outcome.without_events, outcome.events) == (None, 0, DeltaTable(str(events)).count())
    assert len(DeltaTable(str(new / GROUP_EVENTS)).file_uris()) > 1
    assert tables(new) == tables(lake)
    with pytest.raises(UserError, match="being made by `rebalance replay`"):
        run(spark, tmp_path / "logs", new)

    # Track is behind while files that it has to read are replaced, their rows deleted, and all that is not needed is deleted.
    ingest_files(logs(tmp_path, halves, 2), lake, settings=SETTINGS, once=True, spark=spark)
    last = last_batches(lake)
    before = DeltaTable(str(events)).count()
    unread = unread_from(Lakehouse(lake).track_checkpoint)
    needed = [path for commit in delta_log.commits(events, unread + 1) for path in commit.appended]
    assert needed
    DeltaTable(str(events), version=unread).create_checkpoint()
    done = list(maintain(lake, Policy(keep_events=timedelta(seconds=5), grace=timedelta(0), log_grace=timedelta(0)), now=NOW))
    assert delta_log.versions(events)[0] == unread
    assert sum(one.rows_removed for one in done) > before - 1_000
    assert all((events / path).exists() for path in needed)
    assert not {Path(uri).name for uri in DeltaTable(str(events)).file_uris()} & set(needed)
    assert last_batches(lake) == last
    run(spark, tmp_path / "logs", lake)
    assert tables(lake) == tables(undisturbed)

    # The replay takes up what came since, and takes the lakehouse's place.
    account = tables(lake, ("input_lines", "quarantine"))
    forget(spark)
    outcome = replay(lake, new, settings=SETTINGS, spark=spark, swap_them=True)
    assert outcome.before == swap.before_of(lake)
    assert not new.exists()
    assert tables(lake) == tables(undisturbed)
    assert tables(lake, (GROUP_EVENTS,)) == tables(undisturbed, (GROUP_EVENTS,))
    assert tables(lake, ("input_lines", "quarantine")) == account
    assert last_batches(lake)[GROUP_EVENTS].items() >= last[GROUP_EVENTS].items()

    # No line is read twice, and those that come are read on.
    lines, _ = halves
    with (tmp_path / "logs" / "c" / "broker-2" / "kafka-request.log").open("ab") as file:
        file.write(lines[-1])
    (lake / "_checkpoints" / "complete").unlink(missing_ok=True)
    assert run(spark, tmp_path / "logs", lake).added["lines_read"] == 1
    assert tables(lake)["rebalances"] == tables(undisturbed)["rebalances"]


def test_a_writer_at_work_goes_on_after_the_log_was_tidied(tmp_path):
    table = delta_tables.ensure_table(tmp_path, GROUP_EVENTS, TABLES[GROUP_EVENTS])
    rows = to_arrow_schema(TABLES[GROUP_EVENTS]).empty_table()
    for batch in range(5):
        delta_tables.append(table, rows, "app", batch)
    DeltaTable(str(table)).create_checkpoint()
    assert delta_log.tidy(table, unread_from=99, older_than_s=0) == 5
    for batch in range(3, 8):
        delta_tables.append(table, rows, "app", batch)
    assert delta_tables.last_version(table, "app") == 7
    assert DeltaTable(str(table)).version() == 8


def test_a_track_that_has_read_nothing_is_sent_to_replay_where_the_log_was_tidied(spark, undisturbed, tmp_path):
    shutil.copytree(undisturbed / GROUP_EVENTS, tmp_path / "lake" / GROUP_EVENTS)
    events = tmp_path / "lake" / GROUP_EVENTS
    DeltaTable(str(events)).create_checkpoint()
    assert delta_log.tidy(events, unread_from=99, older_than_s=0) > 0
    checkpoint = tmp_path / "checkpoint"
    with pytest.raises(UserError, match="rebalance replay --from"):
        track.start_track(spark, lakehouse=tmp_path / "new", checkpoint=checkpoint, settings=SETTINGS, once=True, events_from=events.parent)
