"""The rules of `rebalance health`, each on the least that it needs. Time is what a test says."""

from dataclasses import replace

import pytest

from jobs.common.errors import LakehouseError
from jobs.health.batch_health import BatchHealth
from jobs.health.status import FAILED, FINISHED, RUNNING, STOPPED, QueryStatus, Status
from jobs.health.verdict import Evidence, Limits, problems

NOW = 1_795_000_000_000
SECOND, MINUTE, HOUR = 1_000, 60_000, 3_600_000
QUERIES = (QueryStatus("ingest", active=True, lag_events=0), QueryStatus("track", active=True, lag_events=0))
STATUS = Status(pid=42, state=RUNNING, once=False, started_ms=NOW - HOUR, at_ms=NOW - SECOND, lag_bytes=0, queries=QUERIES)


def ingest(at, **columns):
    return BatchHealth(occurred_at=at, query="ingest", run_id="r", batch_id=0, **{"duration_ms": 3_000, "input_rows": 1_000} | columns)


def track(at, **columns):
    return BatchHealth(
        occurred_at=at, query="track", run_id="r", batch_id=0, **{"duration_ms": 2_000, "input_rows": 1_000, "lag_ms": 6_000, **columns}
    )


def steadily(make, *columns, every=MINUTE):
    """Micro-batches with these columns, the last of them now."""
    return [make(NOW - every * (len(columns) - 1 - index), **each) for index, each in enumerate(columns)]


def found(*rows, status=STATUS, running=True, limits=None):
    evidence = Evidence(NOW, running, status, sorted(rows, key=lambda row: row.occurred_at), log="spark.log")
    return [(problem.code, problem.query) for problem in problems(evidence, limits or Limits())]


def only(*rows, **known):
    """The text of the only problem."""
    evidence = Evidence(NOW, known.get("running", True), known.get("status", STATUS), rows, log="spark.log")
    (problem,) = problems(evidence, Limits())
    return problem.text()


def saying(**changes):
    """The status with track as told."""
    return replace(STATUS, queries=(QUERIES[0], replace(QUERIES[1], **changes)))


def test_a_pipeline_that_keeps_up_is_well():
    assert found(*steadily(ingest, *[{}] * 20), *steadily(track, *[{}] * 20)) == []


def test_a_pipeline_that_has_just_begun_is_well():
    assert found() == []


def test_a_probe_of_liveness_judges_only_what_a_restart_can_mend():
    rows = steadily(ingest, *[{"duration_ms": 100_000}] * 6)
    assert found(*rows) == [("SLOW", "ingest")]
    alive = Limits(process_only=True)
    assert found(*rows, limits=alive) == []
    assert found(*rows, status=replace(STATUS, at_ms=NOW - HOUR), limits=alive) == [("SILENT", None)]
    assert found(*rows, status=saying(waiting_since_ms=NOW - HOUR), limits=alive) == [("STALLED", "track")]


# The process.


def test_one_that_finished_its_input_is_well():
    assert found(status=replace(STATUS, state=FINISHED, once=True), running=False) == []


def test_one_that_was_stopped_is_not_running():
    assert only(status=replace(STATUS, state=STOPPED), running=False) == (
        "NOT_RUNNING: stopped by a signal at 2026-11-18 11:06:39 UTC; start it: the same `rebalance run` resumes where it stopped"
    )


def test_one_that_failed_says_why():
    status = replace(STATUS, state=FAILED, reason="track failed: the disk is full")
    assert "track failed: the disk is full" in only(status=status, running=False)
    assert found(status=status, running=False) == [("FAILED", None)]


def test_one_whose_topic_cannot_be_reached_waits():
    away = replace(saying(active=True), away="Connection refused")
    assert only(status=away) == (
        "AWAY: the topic's cluster does not answer: Connection refused; "
        "check that its brokers run and are reachable; the pipeline waits and continues by itself"
    )
    ended = replace(away, queries=(replace(QUERIES[0], query="ingest-topic", active=False), QUERIES[1]))
    assert found(status=ended) == [("AWAY", None)]
    assert found(status=ended, limits=Limits(process_only=True)) == []  # a restart does not bring the cluster back


def test_one_that_says_it_runs_and_holds_nothing_was_killed():
    assert "process 42 was last seen" in only(running=False)


def test_one_that_says_nothing_is_frozen():
    assert found(status=replace(STATUS, at_ms=NOW - 60 * SECOND)) == []
    assert found(status=replace(STATUS, at_ms=NOW - 60 * SECOND - 1)) == [("SILENT", None)]


def test_another_process_that_holds_the_lakehouse_tells_nothing():
    with pytest.raises(LakehouseError, match="a process other than"):
        found(status=replace(STATUS, state=FINISHED))


def test_a_query_that_ended_while_the_process_goes_on():
    assert found(status=saying(active=False)) == [("FAILED", "track")]
    assert found(status=replace(saying(active=False), state=FINISHED), running=False) == []
    assert found(status=replace(saying(active=False), stopping=True)) == []
    assert found(status=replace(saying(active=False), once=True)) == []  # of a topic all was read


def test_input_that_waits_while_nothing_is_finished():
    assert found(status=saying(waiting_since_ms=NOW - 300 * SECOND, lag_events=7)) == []
    assert found(status=saying(waiting_since_ms=NOW - 301 * SECOND, lag_events=7)) == [("STALLED", "track")]
    assert found(status=saying(waiting_since_ms=NOW - 301 * SECOND), limits=Limits(max_stall_ms=HOUR)) == []


def test_a_table_that_cannot_be_written():
    assert found(status=replace(STATUS, unwritten="OSError: no room")) == [("UNWRITTEN", None)]


# Lag.


BEHIND = saying(lag_events=500)


def test_behind_while_input_waits():
    assert found(track(NOW, lag_ms=60 * SECOND), status=BEHIND) == []
    assert found(track(NOW, lag_ms=60 * SECOND + 1), status=BEHIND) == [("LAG", "track")]
    assert found(track(NOW, lag_ms=61 * SECOND), status=replace(STATUS, lag_bytes=1)) == [("LAG", "track")]
    assert found(track(NOW, lag_ms=61 * SECOND), status=BEHIND, limits=Limits(max_lag_ms=2 * MINUTE)) == []


def test_catching_up_says_how_long_it_takes():
    rows = steadily(track, {"lag_ms": 3 * HOUR}, {"lag_ms": 2 * HOUR}, every=10 * MINUTE)
    assert "track is 2 h behind, and input waits; it is catching up: at this pace in 20 min" in only(*rows, status=BEHIND)
    assert "not catching up" in only(*steadily(track, {"lag_ms": 2 * HOUR}, {"lag_ms": 2 * HOUR}), status=BEHIND)


def test_a_folder_that_is_worked_through_once_may_be_of_any_age():
    assert found(*steadily(track, *[{"lag_ms": 90 * 24 * HOUR}] * 5), status=replace(BEHIND, once=True)) == []


def test_events_that_are_old_when_they_come_though_nothing_waits():
    rows = steadily(track, *[{"lag_ms": 4 * HOUR}] * 3)
    assert found(*rows) == [("LATE_INPUT", "track")]
    assert found(*rows[1:]) == []  # the end of an old log
    assert found(*rows[:2], track(NOW, lag_ms=SECOND)) == []
    assert found(*(replace(row, occurred_at=row.occurred_at - 6 * MINUTE) for row in rows)) == []  # nothing came since


def test_events_from_the_future():
    assert found(track(NOW, lag_ms=-60 * SECOND)) == []
    assert found(track(NOW, lag_ms=-4 * HOUR)) == [("AHEAD", "track")]


def test_more_and_more_that_waits():
    def growing(*counts):
        return found(*steadily(ingest, *({"lag_events": count} for count in counts)))

    assert growing(0, 10, 40_000, 50_000, 90_000, 100_000) == [("LAG_GROWING", "ingest")]
    assert growing(0, 10, 40_000, 50_000, 90_000) == []  # too few to tell
    assert growing(0, 0, 100_000, 100_000, 0, 0) == []  # caught up
    assert growing(60_000, 60_000, 80_000, 80_000, 100_000, 100_000) == []
    assert growing(0, 0, 0, 0, 10_000, 10_000) == []  # a few seconds' work


# What micro-batches say.


def test_micro_batches_that_take_too_long():
    assert found(*steadily(ingest, *[{"duration_ms": 60_001}] * 3)) == [("SLOW", "ingest")]
    assert found(*steadily(ingest, *[{"duration_ms": 60_000}] * 3)) == []
    assert found(*steadily(ingest, *[{"duration_ms": 60_001}] * 2)) == []
    assert found(*steadily(ingest, {"duration_ms": 900_000}, {}, {})) == []  # one is no rule


def test_lines_that_cannot_be_read():
    assert found(ingest(NOW, quarantined=11)) == [("QUARANTINE", None)]
    assert found(ingest(NOW, quarantined=10)) == []
    assert found(ingest(NOW, quarantined=9, input_rows=9)) == []
    assert found(ingest(NOW - 2 * HOUR, quarantined=500), ingest(NOW, quarantined=0)) == []


def test_events_that_came_too_late():
    assert found(track(NOW, late_events=10, input_rows=9_000)) == [("LATE_EVENTS", None)]
    assert found(track(NOW, late_events=10, input_rows=10_000)) == []


def test_answers_against_the_rules():
    assert found(track(NOW, divergences=1)) == [("DIVERGENCE", None)]
    assert found(track(NOW, divergences=1), limits=Limits(max_divergences=1)) == []
    assert found(track(NOW - 2 * HOUR, divergences=1)) == []


def test_what_a_run_that_ended_came_to_is_judged_later_as_well():
    ended = replace(STATUS, state=FINISHED, once=True, at_ms=NOW - 5 * HOUR)
    assert found(ingest(NOW - 5 * HOUR, quarantined=500), status=ended, running=False) == [("QUARANTINE", None)]


def test_state_that_grows_though_the_groups_do_not():
    mega = 1 << 20

    def growing(before, after):
        sizes = [{"groups": groups, "state_bytes": size * mega} for groups, size in (before, after)]
        return found(*steadily(track, *sizes, every=20 * HOUR))

    assert growing((100, 30), (100, 70)) == [("STATE_GROWING", "track")]
    assert growing((100, 30), (250, 70)) == []
    assert growing((100, 10), (100, 60)) == []
