"""What is told of Connect clusters, Kafka Streams and share groups, beside what was done to them (tests/data/kinds)."""

import gzip
import json
from collections import Counter, defaultdict
from functools import cache
from pathlib import Path

import pytest
from click.testing import CliRunner

from coordinator_model.events import SHARE_RECORDS
from jobs.answers import ask, questions
from jobs.answers.duckdb_views import QuestionReader
from jobs.cli import entry
from jobs.common.settings import Settings
from jobs.common.times import epoch_ms
from jobs.lakehouse.reader import table_rows
from jobs.pipeline import at_once
from schemas.names import FINDINGS, GROUP_EVENTS, MEMBER_SESSIONS, QUARANTINE, REBALANCES

pytestmark = pytest.mark.slow

RECORDED = Path(__file__).parents[1] / "data" / "kinds" / "kafka-4.2.0"
LAKEHOUSE, EDGE, REPORTS = CONNECT = ("connect-lakehouse", "connect-edge", "connect-reports")
FOLLOWS_MS = 9_000
"""A worker reads the config topic, and stops what it has to give up, before it asks for a rebalance."""
TOGETHER = {"create_connector", "change_connector", "delete_connector"}


@cache
def lines(name):
    return [json.loads(line) for line in (RECORDED / f"{name}.jsonl").read_text(encoding="utf-8").splitlines()]


def done(group, *actions):
    return [line["ts_ms"] for line in lines("truth") if line["group"] == group and line["action"] in actions]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("kinds")


@pytest.fixture(scope="module")
def told(folder):
    return told_by(folder, "*")


def told_by(folder, logs):
    """Rows by table and group."""
    for broker in RECORDED.glob("broker-*"):
        source = folder / "input" / "c" / broker.name
        source.mkdir(parents=True)
        for path in broker.glob(logs):
            (source / path.name).symlink_to(path)
    return rows_of(folder)


def rows_of(folder):
    assert at_once.process(folder / "input", folder / "lake", settings=Settings(), most_lines=1 << 30)
    rows = defaultdict(list)
    assert not (folder / "lake" / QUARANTINE).exists() or not list(table_rows(folder / "lake" / QUARANTINE)), "no line is damage"
    for table in (REBALANCES, FINDINGS, MEMBER_SESSIONS, GROUP_EVENTS):
        for row in table_rows(folder / "lake" / table):
            rows[table, row.get("group_id")].append(row)
    return rows


def begun(told, group, *causes):
    rows = [row for row in told[REBALANCES, group] if row["cause"] in causes]
    return sorted(epoch_ms(row["started_at"]) for row in rows)


@pytest.mark.parametrize("group", CONNECT)
def test_each_change_of_a_connector_is_the_cause_of_its_rebalances_and_of_no_others(told, group):
    changes = done(group, *TOGETHER)
    rebalances = begun(told, group, "CONNECTOR_CHANGED")
    assert all(any(0 <= at_ms - change_ms <= FOLLOWS_MS for change_ms in changes) for at_ms in rebalances)
    assert all(any(0 <= at_ms - change_ms <= FOLLOWS_MS for at_ms in rebalances) for change_ms in changes)


@pytest.mark.parametrize("group", CONNECT)
def test_the_connector_that_changed_is_named(told, group):
    """But for one whose tasks stay as they are: no assignment shows that."""
    changes = [(line["ts_ms"], line["connector"]) for line in lines("truth") if line["group"] == group and line["action"] in TOGETHER]
    for row in (row for row in told[REBALANCES, group] if row["cause"] == "CONNECTOR_CHANGED"):
        near = {name for at_ms, name in changes if 0 <= epoch_ms(row["started_at"]) - at_ms <= FOLLOWS_MS}
        assert row["reason"] in near or row["reason"].startswith("Updating metadata for member")


@pytest.mark.parametrize("group", CONNECT)
def test_no_worker_is_said_to_have_joined_again_without_a_reason(told, group):
    assert begun(told, group, "LEADER_REJOINED", "MEMBER_REJOINED", "METADATA_CHANGED", "UNKNOWN") == []


def test_a_scheduled_delay_ends_when_it_was_over(told):
    rebalances = begun(told, LAKEHOUSE, "DELAY_ENDED")
    due = done(LAKEHOUSE, "rebalance_delay_over")
    assert len(rebalances) == len(due) == 4
    assert all(abs(at_ms - due_ms) <= 2_000 for at_ms, due_ms in zip(rebalances, due, strict=True))
    by_whom = [row["client_id"] for row in told[REBALANCES, LAKEHOUSE] if row["cause"] == "DELAY_ENDED"]
    assert sorted(by_whom) == ["connect-worker-b", "connect-worker-b", "connect-worker-c", "connect-worker-c"]
    assert begun(told, EDGE, "DELAY_ENDED") == begun(told, REPORTS, "DELAY_ENDED") == []


def test_requests_alone_tell_the_same(told, tmp_path):
    alone = told_by(tmp_path, "kafka-request*")
    for group in (*CONNECT, "click-counter", "stock-totals"):
        causes = [{row["generation"]: row["cause"] for row in rows[REBALANCES, group]} for rows in (told, alone)]
        assert causes[0].items() <= causes[1].items()


def test_a_log_that_begins_amid_a_move_names_no_change_of_a_connector(tmp_path):
    """Its first rebalance follows one that it does not have: whether the config topic had news is not known."""
    for broker in RECORDED.glob("broker-*"):
        source = tmp_path / "input" / "c" / broker.name
        source.mkdir(parents=True)
        for path in broker.iterdir():
            with gzip.open(path, "rt") as log:
                (source / path.stem).write_text("".join(line for line in log if line[12:24] >= "08:40:31,500"))
    rows = rows_of(tmp_path)[REBALANCES, LAKEHOUSE]
    assert min(row["generation"] for row in rows) == 21
    assert "CONNECTOR_CHANGED" not in {row["cause"] for row in rows}


def test_tasks_of_a_lost_worker_wait_for_it_and_how_long_is_told(told):
    """By the logs of workers. They show when a process was killed; a broker has heard of it at most one interval of heartbeats before."""
    waits = sorted((row for row in told[FINDINGS, LAKEHOUSE] if row["code"] == "CONNECT_TASKS_WAIT"), key=lambda row: row["occurred_at"])
    details = [json.loads(row["details"]) for row in waits]
    assert [(one["worker_cause"], one["tasks"], one["delay_ms"], one["kept"]) for one in details] == [
        ("SESSION_TIMEOUT", 4, 25_000, 0),
        ("SESSION_TIMEOUT", 4, 25_000, 0),
        ("SESSION_TIMEOUT", 4, 25_000, 4),  # it was frozen, and back in time
        ("MEMBER_LEFT", 4, 25_000, 0),
        ("SESSION_TIMEOUT", 4, 25_000, 0),  # it was killed and started again at once, under a new member id
    ]
    (lost,) = [row for row in told[MEMBER_SESSIONS, LAKEHOUSE] if row["member_id"] == waits[4]["member_id"]]
    assert lost["end_kind"] == "SESSION_TIMEOUT"
    assert details[2]["task_ms"] == 0
    assert waits[3]["message"].endswith("They ran nowhere for at least 25.7 s, 1 min 43 s in sum, since it left.")
    assert waits[2]["message"].endswith("It was back 9.6 s later, and they stayed with it.")
    (thawed,) = [row for row in told[FINDINGS, LAKEHOUSE] if row["code"] == "UNKNOWN_MEMBER"]
    assert "No other worker had its tasks by then: the scheduled delay ran." in thawed["advice"]
    for row, one in zip(waits, details, strict=True):
        if one["worker_cause"] == "SESSION_TIMEOUT" and not one["kept"]:
            at_ms = epoch_ms(row["occurred_at"])
            gaps = [gap["ms"] for gap in lines("unassigned") if gap["group"] == LAKEHOUSE and gap["from_ms"] < at_ms < gap["to_ms"]]
            assert len(gaps) == 4
            assert -100 <= one["waited_ms"] - max(gaps) <= 3_000  # a task starts a moment after its assignment


def test_the_end_of_a_delay_pays_for_it_and_who_comes_meanwhile_for_nothing(told):
    rows = sorted((row for row in told[REBALANCES, LAKEHOUSE]), key=lambda row: row["started_at"])
    assert [round(row["unavailable_partition_ms"], -3) for row in rows if row["cause"] == "DELAY_ENDED"] == [
        109_000,
        102_000,
        103_000,
        117_000,
    ]
    assert {row["unavailable_partition_ms"] for row in rows if row["generation"] in (8, 18, 22, 24, 31)} == {0}  # those that lost workers
    during = [row["generation"] for row in rows if row["cause"] == "MEMBER_JOINED" and row["generation"] in (9, 23)]
    assert during == [9, 23]
    assert [row["unavailable_partition_ms"] for row in rows if row["generation"] in during] == [0, 0]


def test_what_a_round_takes_from_a_worker_for_another_costs_the_time_until_that_has_it(told):
    """Within a second for each task, by the logs of workers."""
    moved = [row for row in told[REBALANCES, LAKEHOUSE] if row["cause"] == "REVOCATION_FOLLOW_UP" and row["partitions_moved"]]
    assert len(moved) == 4
    for row in moved:
        gaps = [
            gap["ms"] for gap in lines("unassigned") if gap["group"] == LAKEHOUSE and abs(gap["to_ms"] - epoch_ms(row["ended_at"])) < 1_000
        ]
        assert abs(row["unavailable_partition_ms"] - sum(gaps)) <= 1_000 * len(gaps) == 1_000 * row["partitions_moved"]


def test_an_eager_worker_stops_its_tasks_when_it_is_told_of_a_rebalance(told):
    """By the logs of workers, within a second for each task. Of joins: a newcomer has no task to stop before it asks."""
    joins = [row for row in told[REBALANCES, EDGE] if row["cause"] == "MEMBER_JOINED" and row["unavailable_partition_ms"]]
    assert len(joins) == 4
    for row in joins:
        gaps = [gap["ms"] for gap in lines("unassigned") if gap["group"] == EDGE and 0 <= gap["to_ms"] - epoch_ms(row["ended_at"]) < 2_500]
        assert len(gaps) >= 12
        assert 0 <= sum(gaps) - row["unavailable_partition_ms"] <= 1_000 * len(gaps)


def test_what_no_broker_hears_of_is_unknown(told):
    """Tasks that a changed connector starts again where they are, and those that a worker stops before it asks, or leaves."""
    costs = {row["generation"]: row["unavailable_partition_ms"] for row in told[REBALANCES, EDGE]}
    assert [number for number, ms in sorted(costs.items()) if ms is None] == [5, 6, 12, 15, 16]
    unknown = [row["generation"] for row in told[REBALANCES, LAKEHOUSE] if row["unavailable_partition_ms"] is None]
    assert sorted(unknown) == [11, 14]


@pytest.mark.parametrize("group", CONNECT)
def test_no_worker_is_idle_or_burdened_by_the_count_of_its_tasks(told, group):
    assert {row["code"] for row in told[FINDINGS, group]}.isdisjoint({"IDLE_MEMBERS", "ASSIGNMENT_SKEW"})


def test_a_cluster_that_was_left_alone_has_no_finding_but_that_its_broker_died(told):
    assert {row["code"] for row in told[FINDINGS, REPORTS]} <= {"COORDINATOR_MOVED"}
    assert told[FINDINGS, "stock-audit"] == []


def test_advice_names_what_the_member_has(told):
    """A worker of Connect, and a thread of Streams, whose close() does not leave."""
    advice = {
        group: {row["advice"] for row in told[FINDINGS, group] if row["code"] == "SESSION_TIMEOUT"} for group in (EDGE, "click-counter")
    }
    assert all("SIGTERM leaves as soon as its tasks have stopped. Raise session.timeout.ms of the worker" in text for text in advice[EDGE])
    assert any("KafkaStreams.close() does not leave the group by itself" in text for text in advice["click-counter"])
    assert not any("Call close() on planned stops" in text for texts in advice.values() for text in texts)
    stalled = {row["advice"] for row in told[FINDINGS, "click-counter"] if row["code"] == "POLL_TIMEOUT"}
    assert stalled
    assert not any("polling thread" in text for text in stalled)
    refused = [row["advice"] for row in told[FINDINGS, EDGE] if row["code"] == "UNKNOWN_MEMBER"]
    assert refused
    assert all("raise session.timeout.ms of the worker (now 10 s)" in text for text in refused)


def test_a_worker_that_is_killed_again_and_again_is_a_storm_and_nothing_else_is_one(told):
    (storm,) = [row for rows in told.values() for row in rows if row.get("code") == "REBALANCE_STORM"]
    begin, end = done(LAKEHOUSE, "storm_begin")[0], done(LAKEHOUSE, "storm_end")[0]
    assert (storm["group_id"], storm["client_id"]) == (LAKEHOUSE, "connect-worker-c")
    assert begin <= epoch_ms(storm["occurred_at"]) <= end


@pytest.mark.parametrize("group", ["click-counter", "stock-totals"])
def test_streams_plans_its_probing_rebalances(told, group):
    rebalances, due = begun(told, group, "PROBING_REBALANCE"), done(group, "probing_rebalance_due")
    assert all(any(0 <= at_ms - due_ms <= 2_000 for at_ms in rebalances) for due_ms in due)
    assert len(rebalances) == len(due)
    assert begun(told, group, "MEMBER_REJOINED", "LEADER_REJOINED") == []


@pytest.mark.parametrize("group", ["click-sessions", "mail-queue", "audit-queue"])
def test_each_member_of_a_share_or_a_streams_group_has_its_client(told, group):
    """The coordinator's log names none: the request with which it joined does."""
    assert all(row["client_id"].startswith(group) and row["client_host"] for row in told[MEMBER_SESSIONS, group])
    named = Counter(bool(row["client_id"]) for row in told[REBALANCES, group] if row["member_id"])
    assert named[True] > 0 == named[False]


def test_missing_source_topics_and_a_refused_topology_of_streams_are_told(told):
    findings = {row["code"]: row for row in told[FINDINGS, "late-joiner-app"]}
    assert "Source topics late-joiner-app-src are missing" in findings["COORDINATOR_ERROR"]["message"]
    assert "Create these topics" in findings["COORDINATOR_ERROR"]["advice"]
    refused = findings["CLIENT_REFUSED"]
    assert refused["client_id"].startswith("late-joiner-app-3")
    assert "Topology updates are not supported yet." in refused["message"]
    assert "one topology" in refused["advice"]


def test_a_share_consumer_that_acknowledges_too_late_is_told_and_what_was_delivered_again(told):
    (late,) = [row for rows in told.values() for row in rows if row.get("code") == "SHARE_LOCK_EXPIRED"]
    held = [line for line in lines("truth") if line["action"] == "hold"]
    assert [(line["group"], line["client"]) for line in held] == [(late["group_id"], late["client_id"])]
    assert 0 <= epoch_ms(late["occurred_at"]) - held[0]["ts_ms"] <= 20_000
    assert "is locked for a member for 10 s, then others get it" in late["message"]
    again = [row["member_count"] for row in told[GROUP_EVENTS, "resize-queue"] if row["kind"] in SHARE_RECORDS]
    assert sum(again) == 6


@pytest.mark.parametrize("group", ["click-sessions", "mail-queue"])
def test_who_goes_on_after_its_removal_from_a_share_or_a_streams_group_is_told(told, group):
    thawed = done(group, "sigcont")
    unknown = [row for row in told[FINDINGS, group] if row["code"] == "UNKNOWN_MEMBER"]
    assert all(any(0 <= epoch_ms(row["occurred_at"]) - at_ms <= 2_000 for row in unknown) for at_ms in thawed)
    assert "ZOMBIE_COMMIT" not in {row["code"] for row in told[FINDINGS, group]}  # what was refused are heartbeats


def asked(folder, question, **values):
    answer = ask.BoundQuestion(QuestionReader(folder / "lake", keeps=True), questions.load(question), values).answer()
    return [dict(zip(answer.columns, row, strict=True)) for row in answer.rows]


def test_a_restart_that_nobody_made_is_no_deployment(told, folder):
    """Kills stand apart from what was closed and started again, which Streams by the classic protocol does without a word to its group."""
    assert told[REBALANCES, EDGE]
    waves = {row["group_id"]: row["verdict"] for row in asked(folder, "deploys")}
    rolling = {group for group, verdict in waves.items() if verdict == "ROLLING"}
    assert rolling == {line["group"] for line in lines("truth") if line["action"] == "rolling_restart_begin"} & waves.keys()
    assert rolling == {"click-counter", "click-sessions"}
    assert {group for group, verdict in waves.items() if verdict == "UNCLEAN"} >= {EDGE, "stock-totals", "mail-queue"}


def test_who_is_a_member_of_a_share_or_a_streams_group_now(told, folder):
    assert told[MEMBER_SESSIONS, "mail-queue"]
    for group, count in {"mail-queue": 3, "audit-queue": 2, "resize-queue": 1, "click-sessions": 2}.items():
        there = [row["client_id"] for row in asked(folder, "members", group=group) if row["ended_at"] is None]
        assert len(there) == count
        assert all(client.startswith(group) for client in there)
    states = {row["group_id"]: (row["state"], row["members"]) for row in asked(folder, "groups")}
    assert states["mail-queue"] == ("Stable", 3)
    assert states["audit-queue"] == ("Stable", 2)


def test_a_bill_tells_clusters_apart_and_what_a_lost_worker_cost(told, folder):
    """Workers are named by their address unless they have a client.id."""
    assert told[REBALANCES, REPORTS]
    bill = {row["payer"]: row for row in asked(folder, "bill", limit="100")}
    assert {EDGE, "click-counter", "click-sessions"} <= bill.keys()
    assert not any(payer.endswith(":") for payer in bill)
    assert bill["connect-worker-c"]["by_failures_ms"] > 200_000
    assert 100_000 < bill["connect-worker-b"]["by_failures_ms"] < 110_000  # it was killed once, and stopped with SIGTERM once


def test_every_question_has_an_answer(told, folder):
    """Nothing in it is a surprise to a question: a connector is no partition, and has no number."""
    assert told[REBALANCES, EDGE]
    reader = QuestionReader(folder / "lake", keeps=True)
    for name in questions.names():
        assert ask.BoundQuestion(reader, questions.load(name), {}).answer().columns, name
    rows = asked(folder, "assignments", group=EDGE)
    assert {(row["generation"], row["partitions"]) for row in rows} >= {(16, 4), (14, 5), (14, 4)}


def test_the_report_is_written_for_a_browser(told, folder):
    """With the pictures of all groups and of their longest rebalances."""
    assert told[REBALANCES, LAKEHOUSE]
    result = CliRunner().invoke(entry.cli, ["report", "--lakehouse", str(folder / "lake"), "--format", "html"])
    assert (result.exit_code, result.exception) == (0, None)
    assert LAKEHOUSE in result.stdout


def test_a_broker_that_only_gives_records_to_a_share_group_is_not_its_coordinator(told, folder):
    """Broker 1 was killed after that. It had nothing to do with the group."""
    assert {row["broker"] for row in told[GROUP_EVENTS, "resize-queue"] if row["kind"] == "SHARE_FETCH"} >= {"broker-1"}
    result = CliRunner().invoke(entry.cli, ["report", "--lakehouse", str(folder / "lake"), "--format", "json"])
    judged = json.loads(result.stdout)["not_judged"]
    assert not any("resize-queue" in str(row) for row in judged)
