"""`rebalance ask` as a user sees it: tables, JSON, CSV, and what is said when nothing was found."""

import csv
import io
import json
import re
import subprocess
import sys
from datetime import datetime, timedelta, timezone

import pytest
from rich.console import Console

from jobs.answers import ask, questions
from jobs.answers.duckdb_views import Answer
from jobs.answers.formats import as_csv
from jobs.cli import entry
from jobs.cli.output import answer_text
from jobs.common.exit_codes import UNUSABLE
from tests.lakehouse.rows import DAY, HOSTILE, line, provisional, rebalance, transition, write

pytestmark = pytest.mark.slow


def table(answer, width=None, fixed=("cluster", "group_id")):
    out = io.StringIO()
    answer_text.render(answer, Console(file=out, width=width or 80, force_terminal=width is not None, color_system=None), fixed)
    return out.getvalue()


def test_more_rows_than_the_limit_are_said(lakehouse, capsys):
    write(lakehouse, line(at=90_000), *(rebalance(start=n, generation=n) for n in range(5)))
    assert entry.main(["ask", "rebalances", "--lakehouse", str(lakehouse), "--limit", "3", "--format", "json"]) == 0
    out, err = capsys.readouterr()
    assert len(json.loads(out)) == 3
    assert "Only the first 3" in err
    assert entry.main(["ask", "rebalances", "--lakehouse", str(lakehouse), "--limit", "5"]) == 0
    assert capsys.readouterr().err == ""


def test_a_limit_hides_rows_and_no_columns(lakehouse, capsys):
    write(lakehouse, line(at=90_000), *(rebalance(start=n, generation=n, group=f"g{n}") for n in range(5)))

    def columns(*arguments):
        assert entry.main(["ask", "rebalances", "--lakehouse", str(lakehouse), *arguments]) == 0
        return next(text.split() for text in capsys.readouterr().out.splitlines() if "generation" in text)

    assert columns("--limit", "1") == columns("--limit", "5")
    assert "group" in columns("--limit", "1")
    assert [name for name in columns("--limit", "1") if name != "group"] == columns("--group", "g1")


def test_a_provisional_row_is_shown_and_marked_until_its_final_one_is_there(lakehouse, capsys):
    def asked(*arguments):
        assert entry.main([*arguments, "--lakehouse", str(lakehouse)]) == 0
        return capsys.readouterr()

    joined = {"joined_at": DAY + 5_500, "client_id": "app"}
    write(lakehouse, line(at=90_000), rebalance(generation=1), provisional(start=5_000, generation=2, cause="UNKNOWN", **joined), batch=0)
    write(lakehouse, provisional("DEPARTURE, STORAGE", start=5_000, generation=2, cause="MEMBER_LEFT", members_before=3, **joined), batch=1)
    shown, notes = asked("ask", "rebalances")
    assert "waits for" in shown
    assert "DEPARTURE, STORAGE" in shown
    assert "Later lines may correct 1 rebalance: " in notes
    assert "Later lines may correct 1 rebalance: " in asked("ask", "why").err
    assert "provisional" not in asked("ask", "why", "--group", "other").err
    assert "MEMBER_LEFT *" in (report := asked("report").out)
    assert "* provisional: lines still to come may change this row" in report
    rows = json.loads(asked("report", "--format", "json").out)["rebalances"]
    assert sorted(row["waits_for"] or "" for row in rows) == ["", "DEPARTURE, STORAGE"]
    write(lakehouse, rebalance(start=4_000, total=3_000, generation=2, cause="POLL_TIMEOUT", members_before=3, **joined), batch=2)
    shown, notes = asked("ask", "rebalances")
    assert "POLL_TIMEOUT" in shown
    assert "DEPARTURE" not in shown
    assert "MEMBER_LEFT" not in shown
    assert notes == ""


def test_json_keeps_what_was_logged_and_times_are_iso(lakehouse, capsys):
    write(lakehouse, line(at=90_000), rebalance(start=1_234, client_id=HOSTILE))
    assert entry.main(["ask", "rebalances", "--lakehouse", str(lakehouse), "--format", "json"]) == 0
    out = capsys.readouterr().out
    assert out.isascii()
    (found,) = json.loads(out)
    assert found["started_at"] == "2026-11-21T00:00:01.234Z"
    assert found["client_id"] == HOSTILE
    assert found["total_ms"] == 2_000


HTML = "<script>alert(1)</script>"


def test_a_table_escapes_and_cuts_what_a_client_sent(lakehouse):
    write(
        lakehouse, line(at=90_000), rebalance(client_id=HOSTILE, member_id=HOSTILE, reason=HOSTILE), rebalance("b", start=5, client_id=HTML)
    )
    answer = ask.BoundQuestion(lakehouse, questions.load("rebalances"), {}).answer()
    for width in (None, 40, 80, 200):
        shown = table(answer, width)
        assert len(shown) < 4_000
        assert not re.search(r"[^\n\x20-\x7e…]", shown)
        assert ("\\x1b" if width else HTML) in shown


def test_a_spreadsheet_takes_nothing_for_a_formula():
    cells = ["=HYPERLINK(1)", "+1", "-1", "@x", "\t=1", HOSTILE, 'a "b", c', "a\r\nb", None]
    text = as_csv(Answer(("text", "n"), [(cell, -5) for cell in cells]))
    rows = list(csv.reader(io.StringIO(text)))
    assert rows[0] == ["text", "n"]
    shown = [cell for cell, _ in rows[1:]]
    assert shown[:4] == ["'=HYPERLINK(1)", "'+1", "'-1", "'@x"]
    assert shown[6:] == ['a "b", c', "a\\r\\nb", ""]
    assert {number for _, number in rows[1:]} == {"-5"}
    assert all(cell.isprintable() and len(cell) <= 32_767 for cell in shown)
    assert not any(cell[:1] in "=+-@" for cell in shown if cell)


def test_a_table_says_once_what_all_rows_share(lakehouse):
    write(lakehouse, line(at=90_000), rebalance(cause="MEMBER_LEFT"), rebalance(start=9_000, cause="POLL_TIMEOUT"))
    shown = table(ask.BoundQuestion(lakehouse, questions.load("why"), {}).answer())
    assert shown.startswith("cluster c, group payments, 2026-11-21 UTC\n")
    assert "00:00:09.000" in shown
    assert "2.0 s" in shown
    assert shown.count("payments") == 1


def test_times_of_several_days_have_their_day():
    at = datetime(2026, 11, 21, 6, 30, tzinfo=timezone.utc)
    shown = table(Answer(("at", "n"), [(at, 1), (at - timedelta(days=1), None)]))
    assert "2026-11-21 06:30:00.000" in shown
    assert "2026-11-20 06:30:00.000" in shown


def test_a_terminal_too_narrow_for_columns_gets_a_block_a_row(lakehouse):
    write(lakehouse, line(at=90_000), rebalance(client_id="app-1"))
    answer = ask.BoundQuestion(lakehouse, questions.load("rebalances"), {}).answer()
    shown = table(answer, 40)
    assert re.search(r"^  client +app-1$", shown, re.MULTILINE)
    assert "1.\n" in shown


def test_nothing_found_says_why(lakehouse, capsys):
    write(lakehouse, line("payments", source="coordinator"))

    def said(*arguments):
        assert entry.main(["ask", *arguments, "--lakehouse", str(lakehouse)]) == 0
        return capsys.readouterr().out

    assert "The logs do not mention group paiments. Did you mean payments?" in said("why", "--group", "paiments")
    assert "The logs do not mention cluster c\\n2." in said("why", "--cluster", "c\n2")
    assert "needs kafka-request.log" in said("zombies")
    unjudged = "Nothing found. But not everything could be judged: `rebalance report` says what is missing.\n"
    assert said("why", "--group", "payments") == unjudged
    write(lakehouse, transition("Stable", 0, 1))
    assert said("why", "--group", "payments") == "Nothing found.\n"


def test_a_time_outside_of_the_data_is_told_with_the_span_of_the_data(lakehouse, capsys):
    write(lakehouse, line("payments", at=1_000), line("payments", at=90_000), transition("Stable", 1_000, 1))
    span = " The data is from 2026-11-21 00:00:01 to 2026-11-21 00:01:30 UTC; "
    for arguments, said in (
        (["--since", "2026-11-20", "--until", "2026-11-20"], f"{span}--until 2026-11-20 23:59:59 is before that."),
        (["--since", "2026-11-20"], ""),
    ):
        assert entry.main(["ask", "why", "--lakehouse", str(lakehouse), *arguments]) == 0
        assert capsys.readouterr().out == f"Nothing found.{said}\n"


def test_the_list_and_the_text_need_no_lakehouse(capsys):
    assert entry.main(["ask"]) == 0
    listed = capsys.readouterr().out
    assert all(re.search(rf"^  {name} ", listed, re.MULTILINE) for name in questions.names())
    assert entry.main(["ask", "cooperative", "--show"]) == 0
    shown = capsys.readouterr().out
    assert shown.startswith(questions.load("cooperative").text)
    assert "--set gap_ms=... --set endless=..." in shown
    assert entry.main(["ask", "why", "--show"]) == 0
    assert capsys.readouterr().out == questions.load("why").text


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["nosuch"], "no question named"),
        (["why"], "give --lakehouse"),
        (["why", "--lakehouse", "nowhere"], "no lakehouse"),
        (["why", "--lakehouse", "nowhere", "--set", "limit"], "write NAME=VALUE"),
    ],
)
def test_what_cannot_be_asked_is_told_in_one_line(capsys, arguments, said):
    assert entry.main(["ask", *arguments]) == UNUSABLE
    out, err = capsys.readouterr()
    assert out == ""
    assert said in err
    assert err.count("\n") == 1


def test_other_parameters_are_set_by_name(lakehouse, capsys):
    rounds = (rebalance(start=n * 3_000, generation=n, cause="REVOCATION_FOLLOW_UP", members_before=2) for n in range(3))
    write(lakehouse, line(at=30_000), *rounds)
    common = ["ask", "cooperative", "--lakehouse", str(lakehouse), "--format", "json"]
    assert entry.main([*common, "--set", "endless=3"]) == 0
    assert [(found["rounds"], found["verdict"]) for found in json.loads(capsys.readouterr().out)] == [(3, "ENDLESS")]
    assert entry.main([*common, "--set", "endless=3", "--set", "gap_ms=500"]) == 0
    assert [found["rounds"] for found in json.loads(capsys.readouterr().out)] == [1, 1, 1]


def test_asking_loads_neither_spark_nor_pandas(lakehouse):
    write(lakehouse, line(at=90_000), rebalance())
    script = (
        "import sys; from jobs import cli;"
        f"code = cli.main(['ask', 'why', '--lakehouse', {str(lakehouse)!r}, '--group', 'payments']);"
        f"code += cli.main(['report', '--lakehouse', {str(lakehouse)!r}]);"
        "print(code, [name for name in ('pyspark', 'pandas', 'pyarrow', 'numpy') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.endswith("0 []\n")
    assert "MEMBER_JOINED" in done.stdout
