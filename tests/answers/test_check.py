"""`rebalance check`: over logs and tables written by hand, no JVM."""

import json
import shutil

import pytest

from jobs.answers.check import check
from jobs.cli import entry
from jobs.common.exit_codes import FAILED, PARTLY_READ, UNUSABLE
from jobs.lakehouse import folder as lakehouses
from tests.lakehouse.rows import DAY, empty_lakehouse, line, provisional, rebalance, row, write

ORIGIN = "c/b1/server.log"
LINES = ["group payments, member a-1", "group orders", "a line of every group"]


@pytest.fixture
def logs(tmp_path):
    folder = tmp_path / "logs"
    (folder / "c" / "b1").mkdir(parents=True)
    stamped = [f"[2026-11-21 02:00:0{second},000] INFO {text} (kafka.Log)" for second, text in enumerate(LINES)]
    (folder / ORIGIN).write_text("".join(f"{text}\n" for text in stamped))
    return folder


def evidence(*positions):
    return json.dumps([{"source": "coordinator", "origin": ORIGIN, "position": position} for position in positions])


@pytest.fixture
def lake(tmp_path, logs):
    folder = empty_lakehouse(tmp_path / "lake")
    kinds = ["STABILIZED", "STABILIZED", "COORDINATOR_ELECTED"]
    write(
        folder,
        *(line(at=second * 1_000, origin=ORIGIN, position=second + 1, kind=kind) for second, kind in enumerate(kinds)),
        rebalance(members_before=0, members_after=1, joined=["a-1"], evidence=evidence(1, 3)),
        rebalance(start=5_000, generation=2, members_before=1, members_after=0, left=["a-1"], outcome="EMPTIED", evidence=evidence(1)),
        row("member_sessions", group_id="payments", member_id="a-1", end_kind="LEFT", ended_at=DAY + 5_000, evidence=evidence(1)),
    )
    (folder / "_checkpoints").mkdir()
    lakehouses.remember_input(lakehouses.Lakehouse(folder), logs)
    return folder


def checked(lake, capsys, *arguments, code=0):
    assert entry.main(["check", "--lakehouse", str(lake), *map(str, arguments)]) == code
    return capsys.readouterr()


def test_tables_that_keep_the_laws(lake, capsys):
    said = checked(lake, capsys)
    assert said.out == "OK: 26 laws hold (2 rebalances, 0 group_transitions, 1 member_sessions, 0 findings, and 2 lines of evidence)\n"
    assert said.err == ""


def test_only_final_rows_must_keep_the_laws_and_a_provisional_one_gets_its_final_one(lake, capsys):
    wrong = provisional("STORAGE", start=9_000, generation=3, members_before=5, members_after=5, joined=["b-1"])
    write(lake, provisional(generation=1, start=500, total=1_500), wrong, batch=1)
    assert "2 rebalances" in checked(lake, capsys).out
    write(lake, rebalance(start=12_000, generation=4, members_before=0, members_after=0), batch=2)
    (breach,) = check(lake, []).breaches
    told = "it has no final row, but a later rebalance has one; it waited for STORAGE"
    assert (breach.law, breach.text) == ("PROVISIONAL_HAS_FINAL", told)


def test_a_row_that_breaks_a_law_is_shown_with_its_id(lake, capsys):
    write(lake, rebalance(start=9_000, generation=3, members_before=5, members_after=5, joined=["b-1"], evidence=evidence(1)), batch=1)
    said = checked(lake, capsys, code=FAILED).out.splitlines()
    (row_id,) = {breach.row_id for breach in check(lake, []).breaches}
    assert said[0] == "COUNTS_ADD_UP: 1 row"
    assert said[1].startswith(f"  {row_id}  c/payments  ")
    assert said[1].endswith(" UTC  5 members before, 1 joined, 0 left, but 5 after")
    assert said[-1].startswith("2 of 26 laws broken (3 rebalances, ")


def test_five_rows_of_a_law_are_shown_unless_all_are_asked_for(lake, capsys):
    write(lake, *(rebalance(start=9_000 + n, total=0, generation=n, members_before=1, members_after=2) for n in range(3, 10)), batch=1)
    assert "  ... and 2 more (--all)" in checked(lake, capsys, code=FAILED).out.splitlines()
    every = checked(lake, capsys, "--all", code=FAILED).out
    assert "more (--all)" not in every
    assert every.count("1 members before, 0 joined, 0 left, but 2 after") == 7


def test_evidence_must_name_what_the_row_is_about(lake, capsys):
    write(lake, rebalance(start=9_000, generation=3, members_before=0, members_after=0, evidence=evidence(2)), batch=1)
    said = checked(lake, capsys, code=FAILED).out
    assert said.startswith("EVIDENCE_NAMES_ITS_ROW: 1 row\n")
    assert f"{ORIGIN}:2 names neither the group nor a client of the row" in said


def test_lines_that_are_gone_are_no_all_clear(lake, logs, capsys):
    (logs / ORIGIN).write_text("another log\n")
    said = checked(lake, capsys, code=PARTLY_READ)
    begin = "NOT FULLY CHECKED: no law is broken in the lines that were found (2 rebalances, "
    assert said.out.startswith(begin)
    assert said.out.endswith(", and 0 of 2 lines of evidence)\n")
    assert "2 of 2 lines were not found; give --input DIR with the logs that were read" in said.err


def test_nor_are_lines_of_which_some_are_gone(lake, logs, capsys):
    path = logs / ORIGIN
    path.write_text("".join(path.read_text().splitlines(keepends=True)[:2]))
    said = checked(lake, capsys, code=PARTLY_READ)
    assert said.out.endswith(", and 1 of 2 lines of evidence)\n")


@pytest.mark.parametrize("form", ["text", "json"])
def test_the_wrong_logs_are_no_all_clear(lake, tmp_path, capsys, form):
    other = tmp_path / "others" / "c" / "b1"
    other.mkdir(parents=True)
    (other / "server.log").write_text("[2026-11-21 02:00:00,250] INFO starting (kafka.server.KafkaServer)\n")
    said = checked(lake, capsys, "--input", tmp_path / "others", "--format", form, code=PARTLY_READ)
    assert "OK" not in said.out
    assert "2 of 2 lines were not found" in said.err


def test_a_broken_law_comes_before_lines_that_are_gone(lake, logs, capsys):
    write(lake, rebalance(start=9_000, generation=3, members_before=0, members_after=1), batch=1)
    (logs / ORIGIN).write_text("another log\n")
    assert "1 of 26 laws broken" in checked(lake, capsys, code=FAILED).out


def test_logs_whose_folder_is_gone_are_counted_too(lake, logs, capsys):
    shutil.rmtree(logs)
    said = checked(lake, capsys, code=PARTLY_READ)
    assert said.out.startswith("NOT FULLY CHECKED")
    assert "2 of 2 lines were not found" in said.err


def test_a_folder_that_is_named_must_be_there(lake, tmp_path, capsys):
    said = checked(lake, capsys, "--input", str(tmp_path / "nowhere"), code=UNUSABLE)
    assert "no such file or folder" in said.err


def test_json(lake, capsys):
    write(lake, rebalance(start=9_000, generation=3, members_before=0, members_after=1), batch=1)
    told = json.loads(checked(lake, capsys, "--format", "json", code=FAILED).out)
    assert told["rows"]["rebalances"] == 3
    assert (told["laws"], told["lines"], told["lines_gone"]) == (26, 2, 0)
    assert told["broken"] == {"COUNTS_ADD_UP": 1}
    (breach,) = told["breaches"]
    assert breach["law"] == "COUNTS_ADD_UP"
    assert breach["group_id"] == "payments"


def test_a_folder_without_tables(tmp_path, capsys):
    said = checked(tmp_path, capsys, code=UNUSABLE)
    assert "no lakehouse at" in said.err


def test_what_was_not_tracked_yet_breaks_no_law(tmp_path, capsys):
    folder = empty_lakehouse(tmp_path / "lake")
    assert checked(folder, capsys).out.startswith("OK: 25 laws hold (0 rebalances, ")


def test_the_times_of_the_lines_are_read(lake):
    """The line that is to prove the second rebalance, which ended at 7 s, was written at 20 s."""
    write(lake, line(at=20_000, origin=ORIGIN, position=4, kind="STABILIZED"), batch=1)
    late = rebalance(start=5_000, generation=2, members_before=1, members_after=1, total=2_000, evidence=evidence(4))
    write(lake, late, batch=2)
    told = [breach.text for breach in check(lake, []).breaches if breach.law == "EVIDENCE_IN_TIME"]
    assert told == [f"{ORIGIN}:4 was written 10500 ms too late to be evidence of a rebalance to 2"]


def test_how_far_a_log_was_read_is_no_line_of_it(lake):
    """A row of the clock has the place of the log's last line, and the time up to which nothing came after it."""
    said = line(at=7_000, origin=ORIGIN, position=4, kind="STABILIZED")
    clock = line(None, at=40_000, source="clock", origin=ORIGIN, position=4, kind="followed")
    write(lake, clock, said, clock, batch=1)
    write(lake, rebalance(start=5_000, generation=2, members_before=1, members_after=1, total=2_000, evidence=evidence(4)), batch=2)
    assert [breach for breach in check(lake, []).breaches if breach.law == "EVIDENCE_IN_TIME"] == []


@pytest.mark.parametrize(
    ("values", "laws"),
    [
        ({}, {"HEARD_IN_TIME"}),
        ({"error_code": 15}, set()),  # it did not take effect, as far as this line shows
        ({"broker": "b2"}, set()),  # by another clock
        ({"kind": "OFFSET_COMMIT", "generation": -1}, set()),  # a simple consumer's, which renews no session
        ({"kind": "OFFSET_COMMIT", "generation": 1}, {"HEARD_IN_TIME"}),
    ],
)
def test_the_requests_of_a_member_that_is_called_silent_are_read(lake, values, laws):
    beat = {"kind": "HEARTBEAT", "source": "request", "member_id": "a-1", "error_code": 0, "origin": "c/b1/requests.log", "broker": "b1"}
    details = {"session_timeout_ms": 10_000}
    silent = row(
        "findings", group_id="payments", code="SESSION_TIMEOUT", severity="ERROR", member_id="a-1", occurred_at=DAY + 30_000,
        details=json.dumps(details), evidence=evidence(1),
    )  # fmt: skip
    write(lake, line(at=25_000, **beat | values), silent, batch=1)
    assert {breach.law for breach in check(lake, []).breaches} == laws


def test_the_report_is_read(lake):
    write(lake, row("group_transitions", group_id="payments", from_state="Stable", to_state="Empty", occurred_at=DAY + 5_000), batch=1)
    assert check(lake, []).breaches == []
