"""The files of sql/, and asking them: over small tables written by hand, no JVM."""

from __future__ import annotations

import csv
import io
import json
import re
import subprocess
import sys
from datetime import datetime, timedelta, timezone
from pathlib import Path

import pytest
from deltalake import DeltaTable, write_deltalake
from rich.console import Console

from jobs.answers import ask, questions
from jobs.answers.duckdb_views import Answer, QuestionReader
from jobs.cli import answer_text, entry
from jobs.cli.terminal import UNUSABLE
from jobs.common.errors import LakehouseError, QuestionError, UserError
from jobs.common.times import EPOCH
from schemas.tables import TABLES
from tests.lakehouse.rows import DAY, HOSTILE, MEMBER, empty_lakehouse, finding, line, rebalance, row, write

NOW = datetime(2026, 11, 21, 6, 30, tzinfo=timezone.utc)
# What differs between DuckDB and Spark, or between one run and the next.
FOREIGN = re.compile(
    r""""|\\|::|\bnow\(|\bcurrent_(?:date|time|timestamp)\b|\brandom\(|\brand\(|\bqualify\b|\bilike\b|\basof\b|\bunnest\b|;""",
    re.IGNORECASE,
)


@pytest.fixture
def lakehouse(tmp_path):
    return empty_lakehouse(tmp_path)


def asked(lakehouse, name, **given):
    return ask.BoundQuestion(lakehouse, questions.load(name), given).answer().by_name()


def table(answer, width=None):
    out = io.StringIO()
    answer_text.render(answer, Console(file=out, width=width or 80, force_terminal=width is not None, color_system=None))
    return out.getvalue()


@pytest.mark.parametrize("name", questions.names())
def test_a_question_says_what_it_asks_and_stays_within_both_dialects(name):
    question = questions.load(name)
    assert len(question.question) < 130
    assert question.answer
    body = question.text.split("\n\n", 1)[1]
    assert not FOREIGN.search(body)
    assert all(len(text) <= 140 for text in question.text.splitlines())
    assert "ORDER BY" in body
    assert body.rstrip().endswith("LIMIT :limit")
    assert re.fullmatch(r"[a-z]+(-[a-z]+)*", name)


def test_the_fifteen_are_there_and_so_are_those_of_every_day():
    known = questions.names()
    assert [name for name in known if name in questions.FIFTEEN] == list(questions.FIFTEEN)
    assert {"groups", "worst", "culprits", "timeline", "changes", "heartbeats", "skew", "bill", "findings"} < set(known)


def test_only_declared_names_are_rewritten_for_duckdb():
    text = "-- Is it so?\n--\n-- It is.\n--\n-- :group       which\n-- :limit = 3  rows\n\nSELECT a:group, :group, :limit, ':groups' FROM t"
    with pytest.raises(ValueError, match="groups"):
        questions.parse("x", text)
    question = questions.parse("x", text.replace("':groups'", "b::limit"))
    assert question.for_duckdb().endswith("SELECT a:group, $group, $limit, b::limit FROM t")
    assert question.question == "Is it so?"
    assert question.answer == "It is."
    assert [(p.name, p.default) for p in question.parameters] == [("group", None), ("limit", "3")]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("SELECT 1", "begins without a question"),
        ("-- What is it?\n\nSELECT 1", "begins without a question"),
        ("-- What is it?\n--\n-- This.\n--\n-- :group  which\n\nSELECT 1", "not used"),
    ],
)
def test_a_file_that_says_too_little_is_refused(text, said):
    with pytest.raises(ValueError, match=said):
        questions.parse("x", text)


def test_a_question_without_parameters_stays_as_it_is():
    assert questions.parse("x", "-- So?\n--\n-- Yes.\n\nSELECT ':a'".replace(":a", "a")).for_duckdb().endswith("SELECT 'a'")


def test_an_unknown_question_is_told_with_the_nearest():
    with pytest.raises(QuestionError, match="did you mean storms"):
        questions.load("Storm")
    with pytest.raises(QuestionError, match="lists them"):
        questions.load("../../etc/passwd")


@pytest.mark.parametrize(
    ("typed", "meant"),
    [
        ("24h", NOW - timedelta(hours=24)),
        ("90s", NOW - timedelta(seconds=90)),
        ("1.5h", NOW - timedelta(minutes=90)),
        ("250ms", NOW - timedelta(milliseconds=250)),
        ("2w", NOW - timedelta(weeks=2)),
        ("999999999w", EPOCH),
        ("2026-11-21T05:10:00", datetime(2026, 11, 21, 5, 10, tzinfo=timezone.utc)),
        ("2026-11-21 05:10", datetime(2026, 11, 21, 5, 10, tzinfo=timezone.utc)),
        ("2026-11-21T05:10:00Z", datetime(2026, 11, 21, 5, 10, tzinfo=timezone.utc)),
        ("2026-11-21t05:10:00.123z", datetime(2026, 11, 21, 5, 10, 0, 123_000, tzinfo=timezone.utc)),
        ("2026-11-21T05:10:00+02:00", datetime(2026, 11, 21, 3, 10, tzinfo=timezone.utc)),
        ("05:10", datetime(2026, 11, 21, 5, 10, tzinfo=timezone.utc)),
        ("05:10:01.500", datetime(2026, 11, 21, 5, 10, 1, 500_000, tzinfo=timezone.utc)),
        ("2026-11-20", datetime(2026, 11, 20, tzinfo=timezone.utc)),
    ],
)
def test_times_as_they_are_typed(typed, meant):
    assert ask.parse_instant(typed, NOW, name="since") == meant


def test_a_day_as_until_is_its_end():
    assert ask.parse_instant("2026-11-20", NOW, name="until") == datetime(2026, 11, 20, 23, 59, 59, 999_999, tzinfo=timezone.utc)


@pytest.mark.parametrize("typed", ["", "yesterday", "-5m", "5", "2026-13-01", "9999-12-31T23:00-05:00", "\x1b[31m", "25:00"])
def test_times_of_no_use(typed):
    with pytest.raises(QuestionError, match="neither a time"):
        ask.parse_instant(typed, NOW, name="since")


def test_values_have_defaults_and_now_is_the_newest_time_in_the_tables(lakehouse):
    write(lakehouse, line(at=60_000), line(at=90_000), line(at=999_999, kind="end"))
    newest = datetime.fromtimestamp((DAY + 90_000) / 1000, tz=timezone.utc)
    values = ask.BoundQuestion(lakehouse, questions.load("worst"), {}).values
    assert values == {"cluster": None, "since": newest - timedelta(hours=24), "until": newest, "limit": 10}
    values = ask.BoundQuestion(lakehouse, questions.load("changes"), {"around": "90s", "at": "30s"}).values
    assert values["around"] == 90_000
    assert values["at"] == newest - timedelta(seconds=30)
    assert ask.BoundQuestion(lakehouse, questions.load("why"), {}).values["since"] == EPOCH


def test_spark_collects_local_times():
    values = ask.values(questions.load("why"), {}, NOW.astimezone().replace(tzinfo=None))
    assert values["until"] == NOW


@pytest.mark.parametrize(
    ("name", "given", "said"),
    [
        ("why", {"member": "x"}, "why takes no member"),
        ("why", {"limit": "0"}, "whole number from 1"),
        ("why", {"limit": "1; DROP TABLE x"}, "whole number"),
        ("storms", {"least": "many"}, "least: must be a whole number"),
        ("changes", {"around": "wide"}, "not a duration"),
    ],
)
def test_values_of_no_use(name, given, said):
    with pytest.raises(UserError, match=said):
        ask.values(questions.load(name), given, NOW)


@pytest.mark.parametrize("name", questions.names())
def test_an_empty_lakehouse_answers_everything_with_nothing(lakehouse, name):
    assert asked(lakehouse, name) == []


def test_values_are_bound_not_pasted(lakehouse):
    group = "o'brien\" OR 1=1 --"
    write(lakehouse, line(group), rebalance(group), rebalance("other"))
    assert [found["group_id"] for found in asked(lakehouse, "rebalances", group=group)] == [group]
    assert asked(lakehouse, "rebalances", group="x' OR '1'='1") == []


def test_ids_follow_from_the_content_alone(tmp_path):
    ids = []
    for number in (1, 2):
        folder = empty_lakehouse(tmp_path / str(number))
        write(folder, line(), finding(member_id=MEMBER, generation=3), finding(member_id=MEMBER), rebalance(), batch=number)
        ids.append({found["id"] for name in ("findings", "rebalances") for found in asked(folder, name)})
    assert ids[0] == ids[1]
    assert len(ids[0]) == 3
    assert all(re.fullmatch(r"[fr][0-9a-f]{11}", one) for one in ids[0])


def test_more_rows_than_the_limit_are_said(lakehouse, capsys):
    write(lakehouse, line(at=90_000), *(rebalance(start=n, generation=n) for n in range(5)))
    assert entry.main(["ask", "rebalances", "--lakehouse", str(lakehouse), "--limit", "3", "--format", "json"]) == 0
    out, err = capsys.readouterr()
    assert len(json.loads(out)) == 3
    assert "Only the first 3" in err
    assert entry.main(["ask", "rebalances", "--lakehouse", str(lakehouse), "--limit", "5"]) == 0
    assert capsys.readouterr().err == ""


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


@pytest.mark.parametrize("width", [None, 40, 80, 200])
def test_a_table_escapes_and_cuts_what_a_client_sent(lakehouse, width):
    write(
        lakehouse, line(at=90_000), rebalance(client_id=HOSTILE, member_id=HOSTILE, reason=HOSTILE), rebalance("b", start=5, client_id=HTML)
    )
    shown = table(ask.BoundQuestion(lakehouse, questions.load("rebalances"), {}).answer(), width)
    assert len(shown) < 4_000
    assert not re.search(r"[^\n\x20-\x7e…]", shown)
    if width:
        assert "\\x1b" in shown
    else:
        assert HTML in shown


def test_a_spreadsheet_takes_nothing_for_a_formula():
    cells = ["=HYPERLINK(1)", "+1", "-1", "@x", "\t=1", HOSTILE, 'a "b", c', "a\r\nb", None]
    text = answer_text.to_csv(Answer(("text", "n"), [(cell, -5) for cell in cells]))
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
    day = timedelta(days=1)
    shown = table(Answer(("at", "n"), [(NOW, 1), (NOW - day, None)]))
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

    assert "No line names group paiments. Did you mean payments?" in said("why", "--group", "paiments")
    assert "No line names cluster c\\n2." in said("why", "--cluster", "c\n2")
    assert "needs kafka-request.log" in said("zombies")
    assert said("why", "--group", "payments") == "Nothing found.\n"


def test_the_list_and_the_text_need_no_lakehouse(capsys):
    assert entry.main(["ask"]) == 0
    listed = capsys.readouterr().out
    assert all(re.search(rf"^  {name} ", listed, re.MULTILINE) for name in questions.names())
    assert entry.main(["ask", "storms", "--show"]) == 0
    shown = capsys.readouterr().out
    assert shown.startswith(questions.load("storms").text)
    assert "--set gap_ms=... --set least=..." in shown
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
    write(lakehouse, line(at=90_000), *(rebalance(start=n * 3_000, generation=n) for n in range(3)))
    common = ["ask", "storms", "--lakehouse", str(lakehouse), "--format", "json"]
    assert entry.main([*common, "--set", "least=3"]) == 0
    assert [found["rebalances"] for found in json.loads(capsys.readouterr().out)] == [3]
    assert entry.main([*common, "--set", "least=3", "--set", "gap_ms=500"]) == 0
    out, err = capsys.readouterr()
    assert json.loads(out) == []
    assert "Nothing found" in err


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


# The lakehouse as DuckDB sees it.


@pytest.mark.parametrize("name", ["it's lake", "lake [1]", "lake*", "läke", 'a "lake"'])
def test_a_folder_with_any_name_is_read(tmp_path, name):
    folder = empty_lakehouse(tmp_path / "lake")
    write(folder, line(at=90_000), rebalance())
    folder.rename(tmp_path / name)
    assert len(asked(tmp_path / name, "rebalances")) == 1


def test_tables_that_are_more_than_their_files_are_read_as_well(tmp_path):
    folder = empty_lakehouse(tmp_path / "lake")
    write(folder, line(at=90_000), rebalance("a", left=["m1"]), rebalance("b"))
    rows = DeltaTable(str(folder / "rebalances")).to_pyarrow_dataset().to_table(use_threads=False)
    write_deltalake(str(tmp_path / "split"), rows, partition_by=["group_id"])
    (folder / "rebalances").rename(tmp_path / "old")
    (tmp_path / "split").rename(folder / "rebalances")
    assert {found["group_id"] for found in asked(folder, "rebalances")} == {"a", "b"}


def test_a_table_of_an_older_version_says_what_to_do(tmp_path):
    folder = empty_lakehouse(tmp_path / "lake")
    write(folder, line(at=90_000), rebalance())
    rows = DeltaTable(str(folder / "rebalances")).to_pyarrow_dataset().to_table(use_threads=False).drop_columns(["cause"])
    write_deltalake(str(folder / "rebalances"), rows, mode="overwrite", schema_mode="overwrite")
    with pytest.raises(LakehouseError, match="not those of this version"):
        asked(folder, "why")


def test_a_table_that_is_not_there_is_named(tmp_path):
    folder = empty_lakehouse(tmp_path)
    (folder / "findings").rename(folder / "gone")
    with pytest.raises(LakehouseError, match="no table findings"):
        asked(folder, "findings")


def test_every_column_type_is_known_to_duckdb(lakehouse):
    found = QuestionReader(lakehouse).ask("SELECT * FROM group_events", {})
    assert list(found.columns) == TABLES["group_events"].names


def test_times_come_back_in_utc_to_the_microsecond(lakehouse):
    write(lakehouse, line(at=1_001))
    (found,) = QuestionReader(lakehouse).ask("SELECT e.at FROM group_events AS e", {}).rows
    assert found == (datetime(2026, 11, 21, 0, 0, 1, 1_000, tzinfo=timezone.utc),)


# What the questions say, where small tables tell it better than a recording.


def session(**values):
    return row("member_sessions", **{"group_id": "payments", "member_id": MEMBER, "end_kind": "LEFT"} | values)


def test_a_group_that_is_still_in_a_rebalance_is_stuck(lakehouse):
    step = {"group_id": "payments", "from_state": "Stable", "to_state": "PreparingRebalance", "trigger": "MEMBER_LEFT", "generation": 4}
    write(lakehouse, line(at=90_000), row("group_transitions", at=DAY + 60_000, **step))
    (found,) = asked(lakehouse, "stuck")
    assert (found["outcome"], found["phase"], found["total_ms"]) == ("OPEN", "JOIN", 30_000)
    write(lakehouse, rebalance(start=60_000, total=7_000, join_ms=6_900, sync_ms=100, members_before=2), batch=1)
    (found,) = asked(lakehouse, "stuck")
    assert (found["outcome"], found["phase"], found["total_ms"]) == ("COMPLETED", "JOIN", 7_000)


def test_the_state_of_a_group_that_moved_within_a_millisecond(lakehouse):
    def step(from_state, to_state, generation):
        known = {"group_id": "payments", "at": DAY + 5, "trigger": "x"}
        return row("group_transitions", **known, from_state=from_state, to_state=to_state, generation=generation)

    write(lakehouse, line(at=90_000), step("Dead", "Stable", 2), step("Stable", "Dead", 2))
    assert asked(lakehouse, "groups")[0]["state"] == "Stable"


def test_a_version_that_changed_is_a_change(lakehouse):
    def join(at, member, software, timeout):
        return line(
            at=at, kind="JOIN_GROUP", source="request", error_code=0, client_id="app", answer_member_id=member,
            software=software, session_timeout_ms=timeout,
        )  # fmt: skip

    write(lakehouse, join(0, "m1", "java 3.9.1", 45_000), join(60_000, "m2", "java 4.2.0", 10_000))
    found = asked(lakehouse, "changes", at="2026-11-21T00:01:00", around="1s")
    assert {(change["what"], change["detail"]) for change in found} == {
        ("member came", "java 4.2.0"),
        ("client version", "java 3.9.1 > java 4.2.0"),
        ("session.timeout.ms", "45000 > 10000"),
    }


def test_applications_are_clients_without_their_number(lakehouse):
    clients = ["orders-1", "orders-2", "orders-7d9c5b6f4d-x2x1z", "consumer-orders-3", "12", None]
    write(lakehouse, line(at=90_000), *(rebalance(start=n, generation=n, client_id=client) for n, client in enumerate(clients)))
    found = {bill["payer"]: bill["rebalances"] for bill in asked(lakehouse, "bill")}
    assert found == {"orders": 3, "consumer-orders": 1, "12": 1, "(not known)": 1}


@pytest.mark.parametrize(
    ("by", "payers"),
    [("client", {"orders-1": 2, "(not known)": 1}), ("member", {"m-1": 1, "m-2": 1, "(not known)": 1}), ("group", {"payments": 3}),
     ("day", {"2026-11-20": 1, "2026-11-21": 2})],
)  # fmt: skip
def test_a_bill_is_made_out_to_whom_one_says(lakehouse, by, payers):
    write(
        lakehouse,
        line(at=90_000),
        rebalance(start=-1, generation=1, client_id="orders-1", member_id="m-1"),
        rebalance(start=0, generation=2, client_id="orders-1", member_id="m-2"),
        rebalance(start=80_000, generation=3),
    )
    assert {bill["payer"]: bill["rebalances"] for bill in asked(lakehouse, "bill", by=by)} == payers
    assert asked(lakehouse, "bill", by=by, group="others") == []


def test_a_bill_for_nobody_that_is_known_is_refused(lakehouse):
    with pytest.raises(QuestionError, match="by: must be one of application, client, member, group, day, not weekday"):
        asked(lakehouse, "bill", by="weekday")


@pytest.mark.parametrize(
    ("values", "longest"),
    [
        ({"join_ms": 1_500, "sync_ms": 500}, "JOIN"),
        ({"join_ms": 400, "sync_ms": 1_600}, "ASSIGN"),
        ({"join_ms": 1_500, "sync_ms": 500, "members_before": 0}, "DELAY"),
        ({"join_ms": 1_500, "sync_ms": 500, "first_fetch_ms": 1_999}, "JOIN"),
        ({"join_ms": 1_500, "sync_ms": 500, "first_fetch_ms": 14_000, "first_fetch_member_id": MEMBER}, "START"),
        ({}, "JOIN"),
    ],
)
def test_what_took_longest_in_a_rebalance(lakehouse, values, longest):
    came = line(kind="MEMBER_ADDED", source="coordinator", member_id=MEMBER)
    write(lakehouse, line(at=90_000), came, rebalance(slowest_member_id=MEMBER, leader_id="unheard-of", **values))
    (row,) = asked(lakehouse, "phases")
    assert (row["longest"], row["slowest_client_id"], row["leader_client_id"]) == (longest, "app-1", None)
    assert row["starter_client_id"] == ("app-1" if longest == "START" else None)


def test_who_paused_who_came_back_and_who_is_gone(lakehouse):
    def gone(member, client):
        return session(member_id=member, client_id=client, end_kind="SESSION_TIMEOUT", ended_at=DAY + 50_000, session_timeout_ms=10_000)

    request = {"source": "request", "client_id": "b"}
    write(
        lakehouse,
        gone("a1", "a"),
        gone("b1", "b"),
        gone("c1", "c"),
        line(at=60_000, kind="HEARTBEAT", member_id="a1", error_code=25, source="request"),
        line(at=55_000, kind="JOIN_GROUP", answer_member_id="b2", error_code=0, **request),
        line(at=30_000, kind="JOIN_GROUP", answer_member_id="c0", error_code=0, source="request", client_id="c"),
        line(at=90_000),
    )
    found = {end["client_id"]: (end["fate"], end["back_at"]) for end in asked(lakehouse, "session-timeouts")}
    assert {client: fate for client, (fate, _) in found.items()} == {"a": "PAUSED", "b": "REJOINED", "c": "GONE"}
    assert found["b"][1] == datetime(2026, 11, 21, 0, 0, 55, tzinfo=timezone.utc)


def test_partitions_that_pile_up_on_one_member(lakehouse):
    def sync(member, count, at=0):
        own = [{"member_id": member, "partitions": [f"t-{n}" for n in range(count)], "digest": member}]
        return line(at=at, kind="SYNC_GROUP", source="request", error_code=0, generation=2, member_id=member, assignments=own)

    write(lakehouse, sync("m1", 7), sync("m2", 2), line("idle", at=1))
    (found,) = asked(lakehouse, "skew")
    assert (found["verdict"], found["most"], found["least"], found["partitions"]) == ("SKEWED", 7, 2, 9)


def test_members_that_want_different_topics(lakehouse):
    def join(member, topics, at):
        protocols = [{"name": name, "topics": topics, "owned": [], "digest": ""} for name in ("range", "sticky")]
        return line(at=at, kind="JOIN_GROUP", source="request", error_code=0, answer_member_id=member, protocols=protocols, position=at)

    write(lakehouse, join("m1", ["b", "a"], 1), join("m2", ["c"], 2), session(member_id="m3", ended_at=DAY + 9), join("m3", ["d"], 3))
    write(lakehouse, line(at=90_000), batch=1)
    found = {(sets["topics"], sets["members"]) for sets in asked(lakehouse, "subscriptions")}
    assert found == {("a, b", 1), ("c", 1), ("d", 0)}
    assert asked(lakehouse, "subscriptions")[0]["verdict"] == "UNEQUAL"


def test_the_questions_are_where_a_wheel_puts_them():
    project = Path(__file__).parents[2]
    listed = (project / "pyproject.toml").read_text(encoding="utf-8")
    for folder in ("sql", "sql/views", "sql/duckdb"):
        assert f'"share/kafka-rebalance/{folder}" = ["{folder}/*.sql"]' in listed
