"""What the report and the page say of rebalances that have not ended: no JVM."""

import io
import json

import pytest
from rich.console import Console

from jobs.answers import ask, rebalance_words, report
from jobs.answers.duckdb_views import QuestionReader
from jobs.cli import entry
from jobs.cli.output.report_text import render
from jobs.common.exit_codes import DONE, NEEDS_ATTENTION
from schemas.tables import PROVISIONAL_TABLES
from tests.answers.asking import asked, reader_of
from tests.dashboard.saved_page import page_of
from tests.lakehouse.rows import DAY, MEMBER, line, open_rebalance, provisional, rebalance, transition, write

pytestmark = pytest.mark.slow

MINUTE = 60_000
KNOWN = {"limit_ms": 5 * MINUTE, "member_id": "late-1", "client_id": "late", "cause": "MEMBER_JOINED", "members_before": 3}


def text(lakehouse, **scope):
    out = io.StringIO()
    render(report.read_report(reader_of(lakehouse), report.Scope(**scope)), Console(file=out, width=80, color_system=None))
    return " ".join(out.getvalue().split())


def entries(lakehouse, **scope):
    return report.read_overview(reader_of(lakehouse), report.Scope(**scope)).attention


def fails(lakehouse, least):
    return entry.main(["report", "--lakehouse", str(lakehouse), "--fail-on", least])


def test_an_open_rebalance_is_an_entry_a_row_and_no_quiet_group(lakehouse, capsys):
    write(lakehouse, line(at=0), line(at=5 * MINUTE), transition("PreparingRebalance", MINUTE, 1), open_rebalance(start=MINUTE, **KNOWN))
    shown = text(lakehouse)
    assert "What needs attention (1 warning)" in shown
    assert "The group has been in its join phase (PreparingRebalance) since 2026-11-21 00:01:00 UTC: for 4 min" in shown
    assert "It began with MEMBER_JOINED of late" in shown
    assert "1 member has not rejoined, as far as lines show: app-1 d5592b52." in shown
    assert "max.poll.interval.ms (now 5 min) (in Kafka Connect: rebalance.timeout.ms)" in shown
    assert "Rebalances (1)" in shown
    assert "OPEN" in shown
    for lie in ("No problem found", "Nothing needs attention", "No rebalances", "Healthy", "no rebalance", "provisional"):
        assert lie not in shown
    assert (fails(lakehouse, "error"), fails(lakehouse, "warning")) == (DONE, NEEDS_ATTENTION)
    capsys.readouterr()


def test_it_is_an_error_once_it_exceeds_its_limit_or_the_usual_one(lakehouse):
    limits = {"payments": 5 * MINUTE, "other": None, "long": 10 * MINUTE}
    rows = [open_rebalance(group, start=MINUTE, **KNOWN | {"limit_ms": limit_ms}) for group, limit_ms in limits.items()]
    write(lakehouse, line(at=0), line(at=6 * MINUTE), *rows)
    found = {one.gravest["group_id"]: one for one in entries(lakehouse)}
    assert {group: one.severity for group, one in found.items()} == {"payments": "ERROR", "other": "ERROR", "long": "WARNING"}
    assert "when the log of b1 ends, longer than its rebalance timeout of 5 min. " in found["payments"].message
    assert "longer than the usual rebalance timeout (no request shows this group's) of 5 min" in found["other"].message
    assert fails(lakehouse, "error") == NEEDS_ATTENTION


def test_one_that_has_only_begun_is_a_note(lakehouse):
    usual = [rebalance("slow", start=number * MINUTE, total=40_000, generation=number) for number in range(3)]
    began = {"slow": 30_000, "quick": 4_000, "other": 30_000}
    rows = [open_rebalance(group, start=10 * MINUTE - ago, **KNOWN) for group, ago in began.items()]
    write(lakehouse, line(at=10 * MINUTE), *usual, *rows)
    found = {one.gravest["group_id"]: one.severity for one in entries(lakehouse)}
    assert found == {"slow": "INFO", "quick": "INFO", "other": "WARNING"}


def test_where_no_line_shows_the_end_of_any_rebalance_it_may_have_ended(lakehouse):
    cut = [rebalance(start=number * MINUTE, total=1_000, generation=number, end_seen=False) for number in range(3)]
    write(lakehouse, line(at=20 * MINUTE), *cut, open_rebalance(start=4 * MINUTE, **KNOWN))
    (one,) = entries(lakehouse)
    assert one.severity == "WARNING"
    assert one.advice[0].endswith("(an excerpt, another broker's log, a rotated log).")


def test_who_is_waited_for_is_said_as_far_as_it_is_known(lakehouse):
    rows = {
        "named": {"awaited": ["b-1", "c-1"], "awaited_unnamed": 1},
        "unnamed": {"awaited": [], "awaited_unnamed": 2},
        "empty": {"awaited": [], "members_before": 0},
        "leader": {"waits_for": "SYNC", "awaited": ["b-1"], "joined_at": DAY + 500},
        "nobody": {"waits_for": "SYNC", "awaited": [], "joined_at": DAY + 500},
        "consumers": {"waits_for": "RECONCILE", "awaited": ["b-1"], "group_protocol": "consumer", "generation": 7},
        "unsaid": {"cause": "UNKNOWN", "client_id": None, "member_id": None, "start_seen": False},
        "named-only": {"cause": "UNKNOWN"},
    }
    write(lakehouse, line(at=MINUTE), *(open_rebalance(group, **KNOWN | values) for group, values in rows.items()))
    said = {one.gravest["group_id"]: (one.message, one.advice[0]) for one in entries(lakehouse)}
    assert said["named"][0].endswith("3 members have not rejoined, as far as lines show: b-1, c-1, 1 unnamed.")
    assert said["unnamed"][0].endswith("2 members have not rejoined, as far as lines show: 2 unnamed.")
    assert said["empty"][0].endswith("No line shows which member it waits for.")
    assert "group.initial.rebalance.delay.ms" in said["empty"][1]
    assert said["leader"][0].endswith("no line shows that the leader b-1 has sent the assignment.")
    assert said["nobody"][0].endswith("no line shows that the leader has sent the assignment.")
    assert said["consumers"][0].endswith("1 member has not reached epoch 7, or not given up partitions: b-1.")
    assert "since, at the latest, 2026-11-21" in said["unsaid"][0]
    assert "No line shows what began it." in said["unsaid"][0]
    assert "It began with late." in said["named-only"][0]


def test_it_has_its_place_in_every_list_and_none_once_it_has_ended(lakehouse):
    write(lakehouse, line(at=0), line(at=2 * MINUTE), open_rebalance(start=MINUTE, total=6_000, **KNOWN))
    (row,) = asked(lakehouse, "rebalances")
    assert (row["outcome"], row["total_ms"], row["waits_for"]) == ("OPEN", MINUTE, "JOIN")
    write(lakehouse, line(at=5 * MINUTE), batch=1)
    (later,) = asked(lakehouse, "rebalances")
    assert (later["id"], later["total_ms"]) == (row["id"], 4 * MINUTE)
    ended = provisional(start=MINUTE, total=4 * MINUTE, joined_at=DAY + 4 * MINUTE)
    write(lakehouse, open_rebalance(start=MINUTE, total=6_000, outcome="ENDED", **KNOWN), ended, batch=2)
    for batch, waits_for in ((2, "ANSWERS"), (3, None)):
        (row,) = asked(lakehouse, "rebalances")
        assert (row["outcome"], row["total_ms"], row["waits_for"]) == ("COMPLETED", 4 * MINUTE, waits_for)
        assert report.read_report(reader_of(lakehouse)).groups[0]["rebalancing_ms"] == 4 * MINUTE
        assert entries(lakehouse) == []
        write(lakehouse, rebalance(start=MINUTE, total=4 * MINUTE, joined_at=DAY + 4 * MINUTE), batch=batch + 1)


def test_another_brokers_lines_do_not_prove_that_it_goes_on(lakehouse):
    write(lakehouse, line(at=2 * MINUTE), line(at=60 * MINUTE, broker="b2"), open_rebalance(start=MINUTE, **KNOWN))
    (row,) = asked(lakehouse, "rebalances")
    assert row["total_ms"] == MINUTE


def test_a_part_of_the_time_has_it_if_it_was_open_then(lakehouse):
    write(lakehouse, line(at=0), line(at=60 * MINUTE), open_rebalance(start=10 * MINUTE, **KNOWN))
    assert len(entries(lakehouse, since="5m")) == 1
    shown = text(lakehouse, since="5m")
    assert "Rebalances (1)" in shown
    assert "No rebalances" not in shown
    assert "Rebalances (1)" in text(lakehouse, since="2026-11-21T00:20", until="2026-11-21T00:30")
    assert "No rebalances." in text(lakehouse, until="2026-11-21T00:05")
    assert len(entries(lakehouse, until="2026-11-21T00:20")) == 1
    assert entries(lakehouse, until="2026-11-21T00:05") == []
    assert entries(lakehouse, group="other") == []


def test_the_page_and_json_have_it(lakehouse):
    write(lakehouse, line(at=0), line(at=60 * MINUTE), open_rebalance(start=10 * MINUTE, **KNOWN))
    made = report.read_report(lakehouse)
    page = page_of(lakehouse, made)
    assert [one["code"] for one in page.entries] == ["OPEN_REBALANCE"]
    assert [one["rebalance"]["waits_for"] for one in page.at("rebalance?")] == ["JOIN"]
    known = json.loads(report.to_json(made))
    assert [one["code"] for one in known["attention"]] == ["OPEN_REBALANCE"]
    assert [(one["outcome"], one["total_ms"]) for one in known["rebalances"]] == [("OPEN", 50 * MINUTE)]
    assert known["attention"][0]["clients"] == [{"client_id": "app-1", "client_host": None, "findings": 1}]


def test_the_view_has_the_columns_of_its_table_in_their_order(lakehouse):
    columns = QuestionReader(lakehouse).ask("SELECT * FROM rebalances_open", {}).columns
    assert list(columns) == PROVISIONAL_TABLES["rebalances_provisional"].names


def test_it_is_no_correction_to_come(lakehouse):
    write(lakehouse, line(at=60 * MINUTE), open_rebalance(start=10 * MINUTE, **KNOWN), provisional("STORAGE", group="other"))
    bound = ask.BoundQuestion(lakehouse, ask.questions.load("rebalances"), {})
    assert bound.provisional() == 1
    assert rebalance_words.is_open(asked(lakehouse, "rebalances", group="payments")[0])
    assert MEMBER in asked(lakehouse, "stuck")[0]["waited_for"]
