"""The named questions on a recording: DuckDB and Spark give the same rows, and the rows are what truly happened."""

import json
import re
from collections import defaultdict

import pytest
from chispa import assert_df_equality

from jobs.answers import ask, evidence, questions
from jobs.answers.duckdb_views import QuestionReader
from jobs.lakehouse.reader import TableReader
from jobs.logs.files import discover
from scripts.docs.recorded import RECORDING
from tests.answers.asking import asked
from tests.effort import every, long
from tests.frames import expected

pytestmark = [pytest.mark.spark, pytest.mark.slow]

HEALTHY = "ledger-archive"  # the control group, and what may be said of it
ABOUT_ALL = {"groups", "culprits", "timeline", "changes", "bill", "rebalances", "skew", "heartbeats", "culprits-by"}
ABOUT_ALL |= {"incidents", "first-join", "stuck", "subscriptions", "phases", "activity", "assignments", "members", "states"}
MEMBER = {"client": "app-42-1", "member": "app-42-1-", "since": "2026-11-21T06:18", "until": "2026-11-21T06:20"}
GIVEN = {
    "defaults": {},
    "all": {"cluster": "trigger-contradicts-cause-both", "group": "app-42", "limit": "500", "by": "member", **MEMBER},
    "group": {"cluster": "fenced-line-lost-both", "group": "app-75", "limit": "500"},
    "member": MEMBER,
    "by day": {"by": "day"},
    "by member": {"by": "member"},
    "by software": {"by": "software"},
    "hostile": {"group": "o'brien\" ; --", "since": "3m"},
}


def taken(name, given):
    """Those of the given values that a question takes."""
    own = {parameter: value for parameter, value in given.items() if parameter in questions.load(name).names}
    choices = {one.name: one.choices for one in questions.load(name).parameters}
    return {parameter: value for parameter, value in own.items() if value in (choices.get(parameter) or (value,))}


ASKED = [
    (pytest.param if (kind, number % 3) == ("defaults", 0) or (kind, name) == ("all", "why") else long)(name, own, id=f"{name} {kind}")
    for number, name in enumerate(questions.names())
    for kind, given in GIVEN.items()
    for own in [taken(name, given)]
    if not given or own.keys() - {"cluster", "limit"}
]


@pytest.fixture(scope="module")
def reader(many_inputs):
    """DuckDB with the tables that Spark has."""
    return QuestionReader(many_inputs, keeps=True)


@pytest.fixture(scope="module")
def kept(lakehouse):
    """DuckDB with those of the recording."""
    return QuestionReader(lakehouse, keeps=True)


def test_spark_reads_every_question_and_names_its_columns_as_duckdb_does(in_spark, reader):
    for name in questions.names():
        question = ask.BoundQuestion(reader, questions.load(name), {})
        assert in_spark.sql(question.question.text, args=question.values).columns == list(question.answer().columns), name


@pytest.mark.parametrize(("name", "given"), ASKED)
def test_duckdb_and_spark_give_the_same_rows_in_the_same_order(in_spark, reader, name, given):
    question = questions.load(name)
    question_asked = ask.BoundQuestion(reader, question, given)
    ours = question_asked.answer()
    theirs = in_spark.sql(question.text, args=question_asked.values)
    assert_df_equality(theirs, expected(theirs, ours.rows, ours.columns))
    assert ours.rows or given or name == "changes"  # nobody restarts there with other settings


@pytest.mark.parametrize("name", questions.FIFTEEN)
def test_each_of_the_fifteen_has_an_answer_here(kept, name):
    assert asked(kept, name)


NOT_BY_GROUP = {"incidents", "activity", "bill", "culprits", "culprits-by", "quarantine", "states"}
OF_ONE_PROTOCOL = {"cooperative": {"classic"}, "consumer-protocol": {"consumer"}, "storms": {"classic"}, "skew": {"classic"}}
"""Storms are counted in rebalances: the one of the recorded consumer group in 15 epochs is none. No SyncGroup has its partitions."""
NOT_HERE = {"poll-timeouts", "deploys", "changes", "unread"}  # nobody stalls, restarts or changes in the recorded consumer groups


@pytest.mark.parametrize("name", every(3, sorted(set(questions.names()) - NOT_BY_GROUP - NOT_HERE)))
def test_groups_of_both_protocols_get_an_answer(kept, name):
    protocols = {row["group_id"]: row["group_protocol"] for row in asked(kept, "groups", limit="1000")}
    found = {protocols[row["group_id"]] for row in asked(kept, name, limit="100000")}
    assert found == OF_ONE_PROTOCOL.get(name, {"classic", "consumer"})


@pytest.mark.parametrize("name", sorted(set(questions.names()) - ABOUT_ALL))
def test_nothing_is_said_against_a_healthy_group(kept, name):
    assert [row for row in asked(kept, name, limit="100000") if row["group_id"] == HEALTHY] == []


DECOYS = {"s22", "s24", "s26"}  # of truth.jsonl: healthy, offsets without a group, much that looks like trouble


def test_healthy_groups_and_decoys_have_no_finding_but_what_a_broker_did(kept):
    truth = [json.loads(text) for text in (RECORDING / "truth.jsonl").read_text(encoding="utf-8").splitlines()]
    groups = {line["group"] for line in truth if line["scenario"] in DECOYS}
    assert HEALTHY in groups
    assert len(groups) == len(DECOYS)
    codes = {row["code"] for group in groups for row in asked(kept, "findings", group=group, limit="1000")}
    assert codes <= {"COORDINATOR_MOVED", "HEARTBEAT_NEAR_MISS"}


def test_a_rolling_restart_is_one_finding_with_its_bill_and_no_storm(lakehouse, kept):
    rows = TableReader(lakehouse).rows(
        "SELECT code, details FROM findings WHERE group_id = 'checkout-api' AND code IN ('ROLLING_RESTART', 'REBALANCE_STORM')"
    )
    assert [row["code"] for row in rows] == ["ROLLING_RESTART"]
    bill = json.loads(rows[0]["details"])
    assert (bill["rebalances"], len(bill["restarted"])) == (8, 4)
    (wave,) = [row for row in asked(kept, "deploys", until="06:15") if row["group_id"] == "checkout-api"]
    assert (bill["total_ms"], bill["unavailable_partition_ms"]) == (wave["total_ms"], wave["unavailable_partition_ms"])


# What was staged (README.md of the recording), and what the questions say of it.


def test_who_crashes_in_a_loop_is_to_blame_for_the_rebalances_that_wait_for_it(kept):
    first = asked(kept, "why", group="thumbnailer")[0]
    assert (first["cause"], first["client_id"]) == ("SESSION_TIMEOUT", "thumbnailer-3")
    assert first["rebalances"] >= 10


def test_a_refused_commit_is_explained_by_how_the_member_was_removed(kept):
    (row,) = asked(kept, "failed-commits", group="parcel-tracker")
    assert (row["error"], row["removed_by"]) == ("UNKNOWN_MEMBER_ID", "SESSION_TIMEOUT")
    assert row["removed_at"] < row["first_at"]


def test_poll_timeouts_of_java_are_certain_and_those_of_librdkafka_are_found(kept):
    found = {(row["group_id"], row["client_id"]) for row in asked(kept, "poll-timeouts")}
    assert found == {
        ("menu-service", "menu-service-1"),
        ("menu-service", "menu-service-2"),
        ("image-resize", "image-resize-1"),
        ("image-resize", "image-resize-2"),
        ("catalog-index", "catalog-index-2"),
        ("price-feed", "price-feed-3"),  # static: it does not leave, its own log tells
        ("telemetry-static", "telemetry-static-1"),  # as is this one, of the consumer protocol
    }
    certain = {row["group_id"] for row in asked(kept, "poll-timeouts") if row["sure"] == "CERTAIN"}
    assert "menu-service" in certain


def test_the_member_that_everybody_waited_for_was_slow_to_rejoin(kept):
    rows = asked(kept, "heartbeat-errors", limit="1000")
    slow = {row["group_id"] for row in rows if row["verdict"] == "SLOW"}
    assert "stock-sync" in slow
    assert len(slow) < len(rows) / 5


def test_frozen_processes_are_told_from_killed_ones(kept):
    fate = {row["client_id"]: row["fate"] for row in asked(kept, "session-timeouts", until="06:15", limit="100")}
    assert fate["parcel-tracker-1"] == fate["fraud-scoring-1"] == "PAUSED"
    assert fate["billing-worker-2"] == fate["geo-enrich-1"] == "GONE"
    assert fate["session-store-3"] == "REJOINED"
    assert fate["price-feed-3"] == "STALLED"


def test_a_rolling_restart_is_one_wave_and_a_crash_loop_is_a_storm(kept):
    rows = asked(kept, "deploys", until="06:15", limit="100")
    waves = {row["group_id"]: (row["verdict"], row["clients"], row["rebalances"]) for row in rows}
    assert waves["checkout-api"] == ("ROLLING", 4, 8)
    assert waves["session-store"][0] == "ROLLING"
    assert not {"thumbnailer", "xml-importer", "billing-worker"} & waves.keys()
    assert asked(kept, "deploys", since="06:15:30", limit="100") == []


def test_storms_are_the_staged_ones_first(kept):
    assert {row["group_id"] for row in asked(kept, "storms", limit="2")} == {"thumbnailer", "xml-importer"}


def test_who_was_waited_for(kept):
    rows = {row["group_id"]: row for row in asked(kept, "stuck", until="06:15", limit="100") if row["phase"] != "DELAY"}
    assert rows["stock-sync"]["waited_for"].startswith("stock-sync-1-")
    assert (rows["shipment-planner"]["phase"], rows["shipment-planner"]["put_out"]) == ("JOIN", 1)
    assert (rows["route-optimizer"]["phase"], rows["route-optimizer"]["outcome"]) == ("SYNC", "SUPERSEDED")


def test_where_the_time_went_and_who_was_slow(kept):
    rows = {row["group_id"]: row for row in reversed(asked(kept, "phases", until="06:15", limit="500"))}
    assert (rows["stock-sync"]["longest"], rows["stock-sync"]["slowest_client_id"]) == ("JOIN", "stock-sync-1")
    assert (rows["catalog-index"]["longest"], rows["catalog-index"]["slowest_client_id"]) == ("JOIN", "catalog-index-2")
    assert (rows["route-optimizer"]["longest"], rows["route-optimizer"]["leader_client_id"]) == ("ASSIGN", "route-optimizer-1")
    assert (rows[HEALTHY]["longest"], rows[HEALTHY]["slowest_client_id"]) == ("DELAY", None)
    begun = [row["first_fetch_ms"] for row in asked(kept, "phases", limit="500") if row["first_fetch_ms"] is not None]
    assert len(begun) > 140
    assert 0 <= max(begun) < 100


@pytest.mark.parametrize("by", questions.load("bill").parameters[0].choices)
def test_every_bill_adds_up_to_all_rebalances_but_start_ups(lakehouse, kept, by):
    rows = asked(kept, "bill", by=by, limit="1000")
    (whole,) = (
        QuestionReader(lakehouse)
        .ask(
            "SELECT count(*) n, sum(total_ms)::BIGINT total, sum(unavailable_partition_ms)::BIGINT lost, "
            "sum(partitions_moved)::BIGINT moved FROM rebalances_with_culprit WHERE NOT startup",
            {},
        )
        .by_name()
    )
    sums = [sum(row[name] or 0 for row in rows) for name in ("rebalances", "total_ms", "unavailable_partition_ms", "partitions_moved")]
    assert sums == list(whole.values())
    assert all((row["by_failures_ms"] or 0) <= (row["unavailable_partition_ms"] or 0) for row in rows)
    assert len({row["payer"] for row in rows}) == len(rows) > (by != "day") * 30


def test_a_name_in_use_twice_is_told_from_a_restart(kept):
    verdict = {row["instance_id"]: row["verdict"] for row in asked(kept, "fenced", until="06:15")}
    assert verdict["pos-gateway-1"] == "DISPUTED"
    assert verdict["session-store-2"] == verdict["telemetry-static-2"] == "REJOINED"
    assert {row["instance_id"]: row["verdict"] for row in asked(kept, "fenced")}["session-store-2"] == "STOPPED"  # librdkafka, by 82


def test_cooperative_rebalances_take_two_rounds_at_most(kept):
    rows = asked(kept, "cooperative")
    assert {row["group_id"] for row in rows} == {"loyalty-points", "seat-allocator"}
    assert {row["rounds"] for row in rows} == {1, 2}


def test_a_subscription_that_changed_and_changed_back(kept):
    rows = [row for row in asked(kept, "subscriptions", limit="100") if row["verdict"] != "EQUAL"]
    changed = ("recommendation", "telemetry-static")  # of the classic and of the consumer protocol
    assert [(row["group_id"], row["topics"]) for row in rows] == [
        (name, topics) for name in changed for topics in ("orders", "orders, payments")
    ]


def test_groups_of_the_broker_that_was_killed_moved_and_came_back(kept):
    rows = [row for row in asked(kept, "coordinators", limit="100") if row["group_id"] == "payment-settlement"]
    assert [row["to_broker"] for row in rows] == ["broker-3", "broker-1"]
    assert all(row["refused"] > 0 for row in rows)


def test_the_first_join_waits_for_the_broker_s_delay(kept):
    (row,) = [row for row in asked(kept, "first-join", limit="100") if row["group_id"] == HEALTHY]
    assert (row["delays"], row["members"]) == (2, 3)


def test_zombies_and_how_long_they_lived(kept):
    rows = {row["group_id"]: row for row in asked(kept, "zombies")}
    assert rows["parcel-tracker"]["zombie_ms"] > 10_000
    assert rows["wallet-txn"]["commits"] == 1


def test_groups_of_the_consumer_protocol(kept):
    rows = asked(kept, "consumer-protocol", limit="100")
    fenced = {row["member_id"] for row in rows if row["fenced"]}
    assert len(fenced) == 2
    assert {row["group_id"] for row in rows if row["migration"]} == {"search-ingest"}
    groups = {row["group_id"]: row for row in asked(kept, "groups")}
    assert {name for name, row in groups.items() if row["group_protocol"] == "consumer"} == {
        "search-ingest",
        "telemetry-static",
        "telemetry-v2",
    }
    assert groups["telemetry-v2"]["state"] == groups["payment-settlement"]["state"] == groups["audit-tail"]["state"] == "Stable"
    assert groups["telemetry-v2"]["members"] == 2


def test_more_members_than_partitions(kept):
    assert [row["group_id"] for row in asked(kept, "skew", limit="100") if row["verdict"] != "EVEN"] == ["audit-tail"]


# Every row's evidence opens the lines that prove it.


@pytest.mark.parametrize("table", sorted(view for _, view, _ in evidence.KINDS.values()))
def test_every_line_of_evidence_is_there_and_speaks_of_the_row(lakehouse, table):
    files = discover(RECORDING)
    rows = QuestionReader(lakehouse).ask(f"SELECT * FROM {table}", {}).by_name()
    assert len({row["id"] for row in rows}) == len(rows)
    wanted = defaultdict(set)
    for row in rows:
        refs = json.loads(row["evidence"])
        assert refs, row
        for ref in refs:
            wanted[ref["origin"]].add(ref["position"])
    lake = QuestionReader(lakehouse)
    lines = {}
    for origin, positions in wanted.items():
        times = evidence.line_times(lake, origin)
        assert positions <= set(times)
        for number, (_, text) in evidence.find_lines(origin, {n: times[n] for n in positions}, files).items():
            lines[origin, number] = text.decode()
    for row in rows:
        texts = [lines[ref["origin"], ref["position"]] for ref in json.loads(row["evidence"])]
        names = {*row.get("groups", ()), row.get("group_id"), row.get("member_id"), row.get("instance_id")} - {None}
        said = [text for text in texts if any(name in text for name in names)]
        # A line that tells of a whole broker, or of an instance alone, may stand among others; one names the group or its member. Clients
        # of libraries name theirs in other lines.
        assert said or re.search(r"__consumer_offsets|instance|poll interval", " ".join(texts)), (row, texts)


def test_the_command_opens_the_lines_of_a_finding(lakehouse, kept, capsys):
    from jobs.cli import entry

    (row, *_) = asked(kept, "findings", group="parcel-tracker", code="SESSION_TIMEOUT", until="06:15")
    assert entry.main(["evidence", row["id"], "--lakehouse", str(lakehouse)]) == 0
    assert "has failed, removing it from the group" in capsys.readouterr().out
