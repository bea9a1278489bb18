"""A real run, watched: its rows in `pipeline_health`, its metrics while it runs, and what `rebalance health` says of it."""

import os
import shutil
import signal
import socket
import time
import urllib.request
from collections import Counter, defaultdict
from functools import partial
from pathlib import Path

import pytest
from prometheus_client import CONTENT_TYPE_PLAIN_0_0_4

from jobs.cli import health as health_command
from jobs.common.alert_settings import AlertSettings, ReceiverSettings
from jobs.common.settings import Settings
from jobs.health import reading, watch
from jobs.health.group_tally import GroupTally
from jobs.health.verdict import Limits
from jobs.lakehouse.reader import table_rows
from jobs.pipeline import run as pipeline
from schemas.tables import TRACK_TABLES
from tests.alerts.webhooks import hook, secret_file
from tests.health.metrics_text import read_metrics
from tests.waiting import PATIENCE_SECONDS

pytestmark = [pytest.mark.spark, pytest.mark.slow]

RECORDING = Path(__file__).parents[1] / "data" / "recordings" / "kafka-3.9.1"
LINES = 4_711
UNREADABLE = 20
# The recording is old, and this machine may be slow: neither is what is tested.
PATIENT = Limits(max_lag_ms=10**13, max_batch_ms=10**9, max_stall_ms=10**9)


@pytest.fixture(scope="module")
def logs(tmp_path_factory):
    """One broker's logs, and lines that cannot be read."""
    folder = tmp_path_factory.mktemp("logs")
    shutil.copytree(RECORDING / "broker-2", folder / "c" / "broker-2")
    bad = '[2026-11-21 01:29:00,000] DEBUG Completed request:{"requestHeader":{"requestApiKeyName":"HEARTBEAT"}} (kafka.request.logger)\n'
    (folder / "c" / "broker-2" / "kafka-request.log.2").write_text(bad * UNREADABLE)
    return folder


def run(spark, logs, lake, *, alerts=AlertSettings(), **options):  # noqa: B008 - it never changes
    settings = Settings(timezone="America/New_York", slice_lines=2_500, shards=8, alerts=alerts)
    return pipeline.run(logs, lake, settings=settings, spark=spark, **options)


def judge(lake):
    said = []
    code = health_command.write_verdict(lake, PATIENT, "text", time.time_ns() // 1_000_000, said.append)
    return code, said


def health(lake):
    return reading.read_rows(lake / "pipeline_health")


def table(lake, name):
    return table_rows(lake / name)


def scrape(port):
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=PATIENCE_SECONDS) as answer:
        assert answer.headers["Content-Type"] == CONTENT_TYPE_PLAIN_0_0_4
        return read_metrics(answer.read())


@pytest.fixture(scope="module")
def watched(spark, logs, tmp_path_factory):
    """A run that follows until everything is tracked: the lakehouse, its last metrics, and what was said of it while it ran."""
    lake = tmp_path_factory.mktemp("watched") / "lake"
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    seen = {}
    deadline = time.monotonic() + PATIENCE_SECONDS
    folder = tmp_path_factory.mktemp("receivers")

    def show(reached):
        if not reached.tracked or seen.get("stopped"):
            return
        seen["metrics"] = scrape(port)
        seen["judged"] = judge(lake)
        is_done = _everything_is_tracked(lake, seen["metrics"]) and ", 0 rows wait" in seen["judged"][1][0] and hangs.got
        if is_done or time.monotonic() > deadline:
            seen["stopped"] = True
            seen["hung"] = len(hangs.got)  # a request that is released may be followed by another one before the run has ended
            hangs.release.set()
            os.kill(os.getpid(), signal.SIGTERM)

    with hook() as takes, hook() as hangs, pytest.MonkeyPatch.context() as patch:
        patch.setattr(watch, "GroupTally", partial(GroupTally, first_seconds=0))
        hangs.answers = [(0,)] * 100
        urls = [secret_file(folder, each.url, name) for name, each in (("takes", takes), ("hangs", hangs))]
        receivers = tuple(ReceiverSettings(url.name, "json", str(url), severity="INFO", timeout_ms=300_000) for url in urls)
        alerts = AlertSettings(receivers=receivers, max_age_ms=31_536_000_000)
        seen["told"] = []
        run(spark, logs, lake, once=False, metrics=("127.0.0.1", port), show=show, warn=seen["told"].append, alerts=alerts)
        seen["alerts"] = takes.findings()
    return lake, seen


def _everything_is_tracked(lake, metrics):
    rows = metrics.labelled("rebalance_input_rows_total", "query")
    return rows == {"ingest": LINES + UNREADABLE, "track": len(table(lake, "group_events"))}


def test_every_batch_has_a_row_and_the_rows_add_up(watched):
    lake, _ = watched
    rows = defaultdict(list)
    for row in health(lake):
        rows[row.query].append(row)
    accounts = Counter()
    refused = Counter()
    for line in table(lake, "input_lines"):
        accounts[line["batch_id"]] += line["lines_read"]
        refused[line["batch_id"]] += line["quarantined"]
    assert set(rows) == {"ingest", "track"}
    assert {row.batch_id: row.input_rows for row in rows["ingest"]} == accounts
    assert accounts.total() == LINES + UNREADABLE
    assert sum(row.quarantined for row in rows["ingest"]) == refused.total() == UNREADABLE
    assert sum(row.input_rows for row in rows["track"]) == len(table(lake, "group_events"))
    written = Counter(line["batch_id"] for name in TRACK_TABLES for line in table(lake, name))
    assert {row.batch_id: row.output_rows for row in rows["track"] if row.output_rows} == written


def test_a_row_says_how_long_it_took_and_what_it_holds(watched):
    rows = health(watched[0])
    for row in rows:
        assert row.duration_ms > 0
        assert row.add_batch_ms > 0
        assert row.latest_offset_ms + row.planning_ms + row.add_batch_ms + row.commit_ms <= row.duration_ms
        assert row.driver_memory_bytes > 1 << 20
        assert row.jvm_memory_bytes > 1 << 20
        assert row.query == "ingest" or row.worker_memory_bytes > 1 << 20  # which needs none; track's may not be there yet
        assert row.lag_events is not None
    track = [row for row in rows if row.query == "track"]
    assert len({(row.query, row.run_id) for row in rows}) == 2
    newest = max(track, key=lambda row: row.batch_id)
    assert newest.lag_ms == newest.occurred_at - newest.event_time > 0
    assert newest.groups > 0
    assert newest.state_bytes > 1_000
    assert newest.late_events == newest.divergences == 0
    assert newest.lag_events == 0


def test_metrics_say_the_same_while_it_runs(watched):
    lake, seen = watched
    metrics = seen["metrics"]
    rows = health(lake)
    for query in ("ingest", "track"):
        of_query = [row for row in rows if row.query == query]
        assert metrics.value("rebalance_query_active", query=query) == 1
        assert metrics.value("rebalance_input_rows_total", query=query) == sum(row.input_rows for row in of_query)
        assert metrics.value("rebalance_batch_duration_seconds_count", query=query) == len(of_query)
    assert metrics.value("rebalance_lines_total", cluster="c", outcome="quarantined") == UNREADABLE
    assert metrics.value("rebalance_groups", cluster="c") == max(row.groups for row in rows if row.groups)
    assert metrics.value("rebalance_lag_bytes") == 0
    assert metrics.value("rebalance_resident_memory_bytes", process="jvm") > 1 << 20


def test_metrics_of_groups_are_those_of_the_tables(watched):
    lake, seen = watched
    metrics = seen["metrics"]
    rebalances = Counter((row["group_id"], row["cause"]) for row in table(lake, "rebalances"))
    findings = Counter((row["group_id"], row["code"]) for row in table(lake, "findings"))
    assert counted(metrics, "rebalance_group_rebalances_total", "group", "cause") == rebalances
    assert counted(metrics, "rebalance_group_findings_total", "group", "code") == findings
    changes = sorted(table(lake, "group_transitions"), key=lambda row: row["occurred_at"])
    states = {row["group_id"]: row["to_state"] for row in changes}
    alive = {(group, state): 1 for group, state in states.items() if state != "Dead"}
    assert alive
    assert counted(metrics, "rebalance_group_state", "group", "state") == alive
    assert set(metrics.labelled("rebalance_group_members", "group")) <= {group for group, _ in alive}


def counted(metrics, name, *labels):
    return {tuple(dict(given)[label] for label in labels): value for (sample, given), value in metrics.samples.items() if sample == name}


def test_every_finding_is_posted_once_while_another_receiver_hangs(watched):
    lake, seen = watched
    posted = Counter((one["group"], one["code"], one["message"], one["member_id"]) for one in seen["alerts"])
    crashed = {one for one in posted if one[1] == "BROKER_CRASHED"}  # told at once; which groups moved is known a minute later
    assert all(posted.pop(one) == 1 for one in crashed)
    assert posted
    assert posted == Counter((row["group_id"], row["code"], row["message"], row["member_id"]) for row in table(lake, "findings"))
    assert seen["hung"] == 1
    assert f"alerts: {len(seen['alerts'])} findings not sent to hangs yet: the next run sends what waits" in seen["told"]


def test_health_speaks_of_what_runs_and_of_what_was_stopped(watched):
    lake, seen = watched
    code, (text,) = seen["judged"]
    assert code == 0, text
    assert text.startswith("OK: running since ")
    assert "0 rows wait" in text
    code, said = judge(lake)
    assert code == 1
    assert [line.split(":")[0] for line in said] == ["NOT_RUNNING"]


@pytest.mark.long
def test_a_table_that_cannot_be_written_stops_nothing(spark, logs, tmp_path):
    lake = tmp_path / "lake"
    lake.mkdir()
    (lake / "_lock").touch()  # it is a lakehouse
    (lake / "pipeline_health").write_text("a file where the folder should be")
    told = []
    outcome = run(spark, logs, lake, once=True, warn=told.append)
    assert outcome.added["lines_read"] == LINES + UNREADABLE
    assert outcome.added["rebalances"] > 10
    assert len(told) == 1
    assert "health cannot be written" in told[0]
    code, said = judge(lake)
    assert code == 1
    assert [line.split(":")[0] for line in said] == ["UNWRITTEN"]
