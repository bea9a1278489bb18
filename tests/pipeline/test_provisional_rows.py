"""Provisional rows on their way through Spark, into their table and out of the views, until the final row is there."""

import pytest
from chispa import assert_df_equality

from coordinator_model import events as kinds
from jobs.answers.duckdb_views import QuestionReader
from jobs.answers.spark_views import create_views
from jobs.common.settings import Settings
from jobs.lakehouse.folder import Lakehouse
from jobs.lakehouse.reader import table_rows
from jobs.pipeline.queries import finish
from jobs.pipeline.tracking.track import start_track
from schemas.names import INGEST
from tests.frames import expected
from tests.lakehouse.rows import DAY, MEMBER, empty_lakehouse, line, write
from tests.laws.kept import assert_laws_are_kept
from tests.tracker.story import JOINED

pytestmark = pytest.mark.spark

QUESTION = "SELECT r.id, r.waits_for, r.cause, r.client_id, r.ended_at FROM rebalances_with_id AS r ORDER BY r.id"


def track(spark, lake):
    finish(start_track(spark, Lakehouse(lake), Settings(shards=2)))


def log(kind, at, **values):
    return line(at=at, source="coordinator", kind=kind, origin="c/b1/server.log", position=at, lines=1, **values)


def read_until(second):
    """What says that the log was read up to a second, and that the broker wrote in each before."""
    at = second * 1_000
    return line(None, at, source="clock", kind=kinds.CLOCK, received_at=DAY, beats=[0, second])


def shown(lake):
    return QuestionReader(lake).ask(QUESTION, {}).rows


def test_a_rebalance_that_waits_is_shown_by_duckdb_and_spark_until_its_final_row_is_there(spark, tmp_path):
    lake = empty_lakehouse(tmp_path / "lake")
    rows = [
        log(kinds.PREPARING_REBALANCE, 1_000, generation=0, reason=JOINED.format(MEMBER), member_id=MEMBER),
        log(kinds.STABILIZED, 4_000, generation=1, member_count=1),
        log(kinds.ASSIGNMENT_RECEIVED, 4_010, generation=1, leader_id=MEMBER, member_count=1),
    ]
    write(lake, *rows, read_until(10), batch=0, app=INGEST)
    track(spark, lake)
    ((row_id, waits_for, cause, client_id, ended_at),) = shown(lake)
    assert (waits_for, cause, client_id) == ("ANSWERS, STORAGE", "MEMBER_JOINED", "app-1")
    assert table_rows(lake / "rebalances") == []
    create_views(spark, lake, QUESTION)
    theirs = spark.sql(QUESTION)
    assert_df_equality(theirs, expected(theirs, shown(lake)))
    write(lake, read_until(20), batch=1, app=INGEST)
    track(spark, lake)
    assert shown(lake) == [(row_id, None, cause, client_id, ended_at)]
    assert [row["waits_for"] for row in table_rows(lake / "rebalances_provisional")] == [waits_for]
    assert_laws_are_kept(lake)
