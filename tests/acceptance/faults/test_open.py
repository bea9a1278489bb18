"""Rebalances that have not ended when the log does, and that end in a second run, which reads on."""

from __future__ import annotations

import gzip
from datetime import datetime, timezone
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from chispa import assert_df_equality

pytestmark = [pytest.mark.spark, pytest.mark.slow]

STAGED = Path(__file__).parents[2] / "data" / "staged" / "kafka-4.2.0-consumer" / "broker-1"
CUT = "2026-11-23 13:31:58"
"""Amid a rebalance in which a member is slow to give partitions up; the recording calls the group so."""
SLOW = "revokes-slowly-java"
FAULTS = Path(__file__).parents[2] / "data" / "faults"
MINUTE = 60_000
JOINED = "(reason: Adding new member {} with group instance id None; client reason: not provided)"
NAMES = ("bill-1", "bill-2", "calm-1", "find-1", "find-3")
IDS = {name: f"{name}-00000000-0000-4000-8000-00000000000{number}" for number, name in enumerate(NAMES)}
CLEANED = "[GroupMetadataManager brokerId=1] Removed 0 expired offsets in 0 milliseconds."


def preparing(group, generation, reason, partition=5):
    """As Kafka 2.1 to 3.x write it."""
    offsets = f"(__consumer_offsets-{partition})"
    return f"Preparing to rebalance group {group} in state PreparingRebalance with old generation {generation} {offsets} {reason}"


def stabilized(group, generation, members, partition=5):
    return f"Stabilized group {group} generation {generation} (__consumer_offsets-{partition}) with {members} members"


def assigned(group, generation, members, leader):
    text = f"Assignment received from leader {IDS[leader]} for group {group} for generation {generation}."
    return f"{text} The group has {members} members, 0 of which are static."


def log(*lines):
    """Lines of a coordinator: time and text."""
    texts = ((time, text if text[0] == "[" else f"[GroupCoordinator 1]: {text}") for time, text in lines)
    return "".join(f"[2026-03-02 08:{time}] INFO {text} (kafka.coordinator.group.GroupCoordinator)\n" for time, text in texts)


BEFORE = log(
    ("00:00,000", stabilized("billing", 3, 2)),
    ("00:00,010", assigned("billing", 3, 2, "bill-1")),
    ("00:01,000", preparing("calm", 0, JOINED.format(IDS["calm-1"]), 7)),
    ("00:04,001", stabilized("calm", 1, 1, 7)),
    ("00:04,020", assigned("calm", 1, 1, "calm-1")),
    ("05:00,000", f"Member {IDS['bill-2']} in group billing has failed, removing it from the group"),
    ("05:00,001", preparing("billing", 3, f"(reason: removing member {IDS['bill-2']} on heartbeat expiration)")),
    ("06:00,000", preparing("search", 8, JOINED.format(IDS["find-3"]), 9)),
    ("06:02,000", stabilized("search", 9, 3, 9)),
    ("08:00,000", "Preparing to restabilize group old with old generation 5"),  # Kafka 0.9 to 0.10
    ("09:00,000", CLEANED),
)
AFTER = log(
    ("12:00,001", stabilized("billing", 4, 1)),
    ("12:00,031", assigned("billing", 4, 1, "bill-1")),
    ("12:01,000", assigned("search", 9, 3, "find-1")),
    ("20:00,000", CLEANED),
)


def at(text: str) -> int:
    return round(datetime.fromisoformat(text).replace(tzinfo=timezone.utc).timestamp() * 1_000)


class Runs(NamedTuple):
    """A lakehouse after the first run and after the second one."""

    first: dict[str, Any]
    second: dict[str, Any]
    lakehouse: Path


def seen(lakehouse: Path) -> dict[str, Any]:
    """What the surfaces say."""
    from jobs.answers.report import read_report
    from tests.answers.asking import asked

    report = read_report(lakehouse)
    return {
        "open": {row["group_id"]: row for row in asked(lakehouse, "rebalances", limit="1000") if row["outcome"] == "OPEN"},
        "stuck": {row["group_id"]: row for row in asked(lakehouse, "stuck", limit="1000") if row["outcome"] == "OPEN"},
        "entries": {one.gravest["group_id"]: one for one in report.attention if one.code == "OPEN_REBALANCE"},
        "groups": {row["group_id"]: row for row in report.groups},
        "rebalances": report.rebalances,
    }


@pytest.fixture(scope="module")
def runs(spark, tmp_path_factory) -> Runs:
    from jobs.common.settings import Settings
    from jobs.pipeline import run
    from tests.laws.kept import assert_laws_are_kept

    folder = tmp_path_factory.mktemp("open")
    logs, lake = folder / "logs", folder / "lake"
    texts = {"written/broker-1/server.log": (BEFORE, AFTER)}
    for name in ("server.log", "kafka-request.log"):
        staged = gzip.decompress((STAGED / f"{name}.gz").read_bytes()).decode().splitlines(keepends=True)
        lines = [line for line in staged if SLOW in line or "group" not in line.lower()]
        dates = [number for number, line in enumerate(lines) if line[1:20] > CUT and line[0] == "["]
        texts[f"staged/broker-1/{name}"] = "".join(lines[: dates[0]]), "".join(lines[dates[0] :])
    told = []
    for part in (0, 1):
        for place, parts in texts.items():
            (logs / place).parent.mkdir(parents=True, exist_ok=True)
            with (logs / place).open("a", encoding="utf-8") as file:
                file.write(parts[part])
        run.run(logs, lake, settings=Settings(shards=2, slice_lines=500), once=True, spark=spark)
        assert_laws_are_kept(lake, logs)
        told.append(seen(lake))
    return Runs(*told, lake)


def test_a_join_phase_of_an_hour_leads_the_report(told):
    cluster = "stuck-in-join-coordinator"
    (row,) = told.rows("rebalances_provisional", cluster, outcome="OPEN")
    assert (row["started_at"], row["client_id"], row["waits_for"]) == (at("2025-03-01T10:10:00"), "c3", "JOIN")
    assert len(row["awaited"]) + row["awaited_unnamed"] == 2
    from jobs.answers.report import Scope, read_report
    from tests.dashboard.saved_page import page_of

    report = read_report(told.lakehouse, Scope(cluster=cluster))
    (first,) = report.attention
    assert (first.severity, first.code, first.gravest["group_id"]) == ("ERROR", "OPEN_REBALANCE", "g1")
    assert " ends, longer than the usual rebalance timeout" in first.message
    assert "It began with MEMBER_JOINED of c3" in first.message
    assert "2 members have not rejoined" in first.message
    assert [(row["outcome"], row["total_ms"]) for row in report.rebalances if row["outcome"] == "OPEN"] == [("OPEN", 60 * MINUTE)]
    assert report.groups[0]["rebalances"] == 2
    page = page_of(told.lakehouse, report, [FAULTS])
    assert "[2025-03-01 10:10:00,000] INFO [GroupCoordinator 1]: Preparing to rebalance group g1" in page.source


def test_what_is_open_is_told_of_each_group_and_phase(runs):
    waits = {group: (row["waits_for"], row["started_at"], row["total_ms"], row["cause"]) for group, row in runs.first["open"].items()}
    times = {"billing": "2026-03-02T08:05:00.001", "search": "2026-03-02T08:06", "old": "2026-03-02T08:08", SLOW: "2026-11-23T13:31:45.944"}
    began = {group: datetime.fromisoformat(text).replace(tzinfo=timezone.utc) for group, text in times.items()}
    assert waits == {
        "billing": ("JOIN", began["billing"], 4 * MINUTE - 1, "SESSION_TIMEOUT"),
        "search": ("SYNC", began["search"], 3 * MINUTE, "MEMBER_JOINED"),
        "old": ("JOIN", began["old"], MINUTE, "UNKNOWN"),
        SLOW: ("RECONCILE", began[SLOW], waits[SLOW][2], "MEMBER_JOINED"),
    }
    assert 12_000 < waits[SLOW][2] < 14_000
    assert runs.first["stuck"].keys() == runs.first["entries"].keys() == waits.keys()
    assert {group: (row["phase"], row["total_ms"]) for group, row in runs.first["stuck"].items()} == {
        group: (wait, total) for group, (wait, _, total, _) in waits.items()
    }
    assert {one.severity for one in runs.first["entries"].values()} == {"WARNING"}


def test_a_consumer_group_names_the_member_that_has_not_acknowledged(runs):
    (slow,) = runs.first["entries"][SLOW].gravest["details"]["waited_for"]
    assert slow == "Es2hkLYdRuWnW63UER-m5A"  # as the finding STUCK_RECONCILING of the whole recording
    assert "The rebalance timeout, max.poll.interval.ms (now " in runs.first["entries"][SLOW].advice[0]


def test_nothing_is_open_once_the_log_shows_the_ends_and_nothing_counts_twice(runs):
    assert {group for group in runs.second["open"] if group != "old"} == set()
    assert {group for group in runs.second["entries"] if group != "old"} == set()
    assert runs.second["open"]["old"]["total_ms"] == 12 * MINUTE
    assert runs.second["entries"]["old"].severity == "ERROR"
    ended = {(row["group_id"], row["generation"]): row for row in runs.second["rebalances"]}
    assert len(ended) == len(runs.second["rebalances"])
    assert (ended["billing", 4]["outcome"], ended["billing", 4]["total_ms"]) == ("COMPLETED", 7 * MINUTE + 30)
    assert (ended["search", 9]["outcome"], ended["search", 9]["sync_ms"]) == ("COMPLETED", 6 * MINUTE - 1_000)
    assert runs.second["groups"]["billing"]["rebalancing_ms"] == 7 * MINUTE + 30
    assert (ended[SLOW, 3]["outcome"], ended[SLOW, 3]["total_ms"] > 18_000) == ("COMPLETED", True)


def test_the_same_log_in_one_batch_and_in_many_of_two_runs_shows_the_same(runs, tmp_path):
    from jobs.answers.duckdb_views import QuestionReader
    from jobs.common.settings import Settings
    from jobs.pipeline import at_once

    shown = "SELECT * EXCLUDE (batch_id) FROM rebalances_open ORDER BY cluster, group_id"
    logs = runs.lakehouse.parent / "logs"
    assert at_once.process(logs, tmp_path / "once", settings=Settings(shards=2), most_lines=1 << 30)
    once, many = (QuestionReader(folder).ask(shown, {}).rows for folder in (tmp_path / "once", runs.lakehouse))
    assert once == many
    assert len(once) == 1


@pytest.mark.long
@pytest.mark.parametrize("name", ["stuck", "rebalances", "groups"])
def test_duckdb_and_spark_give_the_same_rows(in_spark, told, name):
    from jobs.answers import ask, questions
    from jobs.answers.duckdb_views import QuestionReader
    from tests.frames import expected

    question = questions.load(name)
    bound = ask.BoundQuestion(QuestionReader(told.lakehouse), question, {"cluster": "stuck-in-join-coordinator"})
    ours, theirs = bound.answer(), in_spark.sql(question.text, args=bound.values)
    assert_df_equality(theirs, expected(theirs, ours.rows, ours.columns))
    assert ours.rows
