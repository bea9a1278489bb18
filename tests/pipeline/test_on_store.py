"""A lakehouse in a real object store is what one on disk is: made, maintained, replayed, copied, moved, and gone on with."""

from collections import Counter
from datetime import datetime, timedelta, timezone

import pytest
from chispa.rows_comparer import assert_basic_rows_equality

from jobs.common.errors import UserError
from jobs.common.stores import StorePath, copy_tree
from jobs.lakehouse.folder import Lakehouse
from jobs.lakehouse.maintain import Policy, maintain
from jobs.lakehouse.reader import account
from jobs.pipeline import run as pipeline
from jobs.pipeline.replay import replay
from schemas.names import GROUP_EVENTS
from tests.dashboard.serving import serving
from tests.effort import long
from tests.frames import rows_of
from tests.lab.local_store import BUCKET
from tests.lab.store_proxy import PASSING, Fault
from tests.laws.kept import assert_laws_are_kept
from tests.pipeline.parts import PARTS, SETTINGS, logs, run
from tests.reaching import reached

pytestmark = [pytest.mark.spark, pytest.mark.slow]

AT_ONCE = Policy(grace=timedelta(0))
NOW = datetime(2026, 11, 22, tzinfo=timezone.utc)


@pytest.fixture(scope="module", autouse=True)
def reachable(store):
    """This process asks the store itself."""
    with reached(store):
        yield


def assert_few(requests):
    """Holds that a run asks a store for little, at its start and for each micro-batch, but for what it asks by the clock.

    At its start that is some 45 requests for each table.
    """
    by_clock = ("_lock", "_status.json", "_spool/newest", "_spool/slices", "_last_checkpoint", "pipeline_health", "group_events/_delta_log")
    asked = [one for one in requests if not any(part in f"{one.path}?{one.query}" for part in by_clock)]

    def batches(query):
        return sum(one.method == "PUT" and f"/{query}/commits/" in one.path and one.path[-1].isdigit() for one in requests)

    assert len(asked) <= 550 + 60 * batches("ingest") + 60 * batches("track"), Counter((one.kind, one.path) for one in asked)


@pytest.mark.long
def test_a_lakehouse_goes_on_where_it_was_moved_or_copied_to(spark, checkpoints_in_store, store_prefix, tmp_path):
    """From one folder to another, to the store, and back to a disk, with new lines each time."""
    run(spark, logs(tmp_path, 1), tmp_path / "first")
    (tmp_path / "first").rename(tmp_path / "second")
    run(spark, logs(tmp_path, 2), tmp_path / "second")
    on_store = StorePath(BUCKET, store_prefix)
    copy_tree(tmp_path / "second", on_store)
    with checkpoints_in_store():
        assert run(spark, logs(tmp_path, 3), on_store).added["lines_read"] > 0
    copy_tree(on_store, tmp_path / "third")
    run(spark, logs(tmp_path, 4), tmp_path / "third")
    for part in range(1, PARTS + 1):  # where a run ends, some rows are decided without what comes later
        run(spark, logs(tmp_path / "beside", part), tmp_path / "undisturbed")
    assert account(tmp_path / "third") == account(tmp_path / "undisturbed")
    assert_basic_rows_equality(rows_of(tmp_path / "third"), rows_of(tmp_path / "undisturbed"))
    assert_laws_are_kept(tmp_path / "third", tmp_path / "logs")  # evidence finds its lines


@pytest.mark.parametrize("replayed", [False, long(True)])
def test_a_lakehouse_in_a_store_is_what_one_on_disk_is(
    spark, store_proxy, checkpoints_in_store, store_prefix, undisturbed, tmp_path, replayed
):
    lake = StorePath(BUCKET, f"{store_prefix}/lake")
    first = StorePath(BUCKET, f"{store_prefix}/old") if replayed else lake
    with checkpoints_in_store():
        run(spark, logs(tmp_path, PARTS // 2), first)
        if replayed:
            list(maintain(first, AT_ONCE, now=NOW))
            replay(first, lake, settings=SETTINGS, spark=spark, swap_them=True)
            assert not Lakehouse(lake).replay.exists()
        store_proxy.clear()
        run(spark, logs(tmp_path, PARTS), lake)
        assert_few(store_proxy.requests())
        list(maintain(lake, AT_ONCE, now=NOW))
    assert account(lake) == account(undisturbed)
    assert_basic_rows_equality(rows_of(lake), rows_of(undisturbed))
    assert_laws_are_kept(lake, tmp_path / "logs")
    assert len([path for path in (lake / GROUP_EVENTS).iterdir() if path.is_listed()]) == 1

    with serving(lake) as served, serving(undisturbed) as on_disk:
        for question in ("rebalances", "findings", "groups"):
            asked, expected = (sorted(map(repr, dashboard.ask(question))) for dashboard in (served, on_disk))
            assert asked == expected
        assert served.get("/")[0] == 200


@pytest.mark.long
def test_credentials_that_expire_while_a_run_works_end_it_with_what_to_do(spark, store_proxy, checkpoints_in_store, store_prefix, tmp_path):
    def expire(_):
        store_proxy.faults, store_proxy.fail_every = (Fault.EXPIRED,), 1

    refused = pytest.raises(UserError, match=r"the store refuses the credentials|token has expired|may have expired")
    try:
        with checkpoints_in_store(), refused:
            pipeline.run(logs(tmp_path, 2), StorePath(BUCKET, store_prefix), settings=SETTINGS, once=True, spark=spark, show=expire)
    finally:
        store_proxy.faults, store_proxy.fail_every = PASSING, 0
