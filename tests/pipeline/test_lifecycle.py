"""Maintained, replayed and swapped lakehouses against undisturbed ones, on real logs of one broker."""

import shutil
import threading
from contextlib import contextmanager
from datetime import datetime, timedelta, timezone
from pathlib import Path

import pytest
from chispa.rows_comparer import assert_basic_rows_equality
from deltalake import DeltaTable

from jobs.common.errors import UserError
from jobs.lakehouse import event_copy, opening, swap
from jobs.lakehouse.folder import Lakehouse, present
from jobs.lakehouse.followers import files_after, tracked
from jobs.lakehouse.maintain import Policy, maintain
from jobs.pipeline.alone import ingest_files
from jobs.pipeline.replay import replay
from jobs.pipeline.tracking import track
from schemas.names import GROUP_EVENTS, INGEST, INGEST_TOPIC, TRACK
from tests.frames import rows_of
from tests.pipeline.parts import PARTS, SETTINGS, lines, logs, run

pytestmark = [pytest.mark.spark, pytest.mark.slow]

NOW = datetime(2026, 11, 22, tzinfo=timezone.utc)
AT_ONCE = Policy(grace=timedelta(0))


def last_batches(lake):
    """What each application wrote last, by table."""
    apps = (INGEST, INGEST_TOPIC, TRACK)
    return {name: {app: opening.opened(lake / name).transaction_version(app) for app in apps} for name in present(lake)}


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


def test_a_lakehouse_that_is_maintained_replayed_and_swapped_is_as_if_nothing_had_been(spark, undisturbed, tmp_path, monkeypatch):
    lake, new = tmp_path / "lake", tmp_path / "new"
    events = lake / GROUP_EVENTS

    # Maintained beside the pipeline.
    with maintained_again_and_again(lake):
        run(spark, logs(tmp_path, PARTS // 2), lake)
    list(maintain(lake, AT_ONCE, now=NOW))
    assert len(DeltaTable(str(events)).file_uris()) == 1

    # Replayed from files that mix batches.
    monkeypatch.setattr(event_copy, "CHUNK_ROWS", 300)
    monkeypatch.setattr(event_copy, "RANGE_ROWS", 700)
    outcome = replay(lake, new, settings=SETTINGS, spark=spark)
    assert (outcome.before, outcome.without_events, outcome.events) == (None, 0, DeltaTable(str(events)).count())
    assert len(DeltaTable(str(new / GROUP_EVENTS)).file_uris()) > 1
    assert_basic_rows_equality(rows_of(new), rows_of(lake))
    with pytest.raises(UserError, match="being made by `rebalance replay`"):
        run(spark, tmp_path / "logs", new)

    # Track is behind while rows that it has read are deleted, and all that is not needed.
    ingest_files(logs(tmp_path, PARTS), lake, settings=SETTINGS, once=True, spark=spark)
    last = last_batches(lake)
    before = DeltaTable(str(events)).count()
    needed = {new.path for new in files_after(opening.opened(events), tracked(Lakehouse(lake).track_checkpoint))}
    assert needed
    done = list(maintain(lake, Policy(keep_events=timedelta(seconds=5), grace=timedelta(0)), now=NOW))
    assert sum(one.rows_removed for one in done) > before // 3
    assert needed <= {Path(uri).name for uri in DeltaTable(str(events)).file_uris()}
    assert last_batches(lake) == last
    run(spark, tmp_path / "logs", lake)
    assert_basic_rows_equality(rows_of(lake), rows_of(undisturbed))

    # The replay takes up what came since, and takes the lakehouse's place.
    account = rows_of(lake, ("input_lines", "quarantine"))
    outcome = replay(lake, new, settings=SETTINGS, spark=spark, swap_them=True)
    assert outcome.before == swap.before_of(lake)
    assert not new.exists()
    assert_basic_rows_equality(rows_of(lake), rows_of(undisturbed))
    assert_basic_rows_equality(rows_of(lake, (GROUP_EVENTS,)), rows_of(undisturbed, (GROUP_EVENTS,)))
    assert_basic_rows_equality(rows_of(lake, ("input_lines", "quarantine")), account)
    assert last_batches(lake)[GROUP_EVENTS].items() >= last[GROUP_EVENTS].items()

    # No line is read twice, and those that come are read on.
    with (tmp_path / "logs" / "c" / "broker-2" / "kafka-request.log").open("ab") as file:
        file.write(lines()[-1])
    (lake / "_checkpoints" / "complete").unlink(missing_ok=True)
    assert run(spark, tmp_path / "logs", lake).added["lines_read"] == 1
    assert_basic_rows_equality(rows_of(lake, ("rebalances",)), rows_of(undisturbed, ("rebalances",)))


def test_a_track_that_has_read_nothing_is_sent_to_replay_where_files_were_put_together(spark, undisturbed, tmp_path):
    shutil.copytree(undisturbed / GROUP_EVENTS, tmp_path / "lake" / GROUP_EVENTS)
    events = tmp_path / "lake" / GROUP_EVENTS
    DeltaTable(str(events)).optimize.compact()
    with pytest.raises(UserError, match="rebalance replay --from"):
        track.start_track(spark, Lakehouse(tmp_path / "new"), SETTINGS, events_from=events.parent)


def test_state_that_was_deleted_is_told_with_its_remedy(spark, tmp_path):
    run(spark, logs(tmp_path, 1), tmp_path / "lake")
    shutil.rmtree(tmp_path / "lake" / "_checkpoints" / "track" / "state")
    with pytest.raises(UserError, match=r"track cannot go on: .*/_checkpoints/track/state/\S+ is gone, .*`rebalance replay`"):
        run(spark, logs(tmp_path, 2), tmp_path / "lake")
