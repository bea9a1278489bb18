"""A broker some of whose clients attack whoever reads its logs: all of it through the pipeline, then looked at in every way there is."""

import json
import re
from collections import Counter

import pytest
from deltalake import DeltaTable

from jobs.answers import questions
from jobs.cli.entry import main
from jobs.common.settings import Settings
from jobs.lakehouse import reader
from jobs.pipeline import at_once
from schemas.names import REBALANCE_ROUNDS
from schemas.tables import TRACK_TABLES
from tests.effort import every, long
from tests.laws.kept import assert_laws_are_kept
from tests.security import hostile

pytestmark = pytest.mark.slow

LONGEST_LINE = 1_000  # characters of a line of text that anybody is shown; a line of a table has some ten names


def read(lakehouse, name):
    return DeltaTable(str(lakehouse / name)).to_pyarrow_table().to_pylist()


@pytest.fixture(scope="module")
def told(tmp_path_factory):
    """Inputs and lakehouses: of the broker's own groups alone, and of all."""
    folder = tmp_path_factory.mktemp("told")
    places = {}
    for what, kinds in (("alone", []), ("among", list(hostile.NAMES))):
        source, lakehouse = hostile.write_logs(folder / f"{what}-in", kinds), folder / f"{what}-lake"
        assert at_once.process(source, lakehouse, settings=Settings(timezone=hostile.ZONE, shards=8), most_lines=1 << 30)
        places[what] = source, lakehouse
    return places


@pytest.fixture(scope="module")
def lakehouse(told):
    return told["among"][1]


def rows_with_lines(source, lakehouse, name):
    """Rows of the broker's own groups, each with the lines that prove it in the place of their numbers."""
    logs = {path.relative_to(source).as_posix(): path.read_bytes().split(b"\n") for path in source.rglob("broker-2/*.log")}
    found = []
    for row in read(lakehouse, name):
        if row["group_id"] in hostile.SPARED:
            evidence = [logs[ref["origin"]][ref["position"] - 1] for ref in json.loads(row.pop("evidence"))]
            found.append(repr((sorted((key, value) for key, value in row.items() if key != "batch_id"), evidence)))
    return Counter(found)


@pytest.mark.parametrize("name", sorted(TRACK_TABLES.keys() - {REBALANCE_ROUNDS}))  # the recording has no group of the consumer protocol
def test_the_rows_of_the_others_are_as_without_them(told, name):
    alone, among = (rows_with_lines(*told[what], name) for what in ("alone", "among"))
    assert sum(alone.values()) >= 4
    assert among == alone


def test_the_tables_keep_the_laws(lakehouse):
    assert_laws_are_kept(lakehouse)


def test_every_line_is_accounted_for(told):
    source, lakehouse = told["among"]
    lines = sum(path.read_bytes().count(b"\n") for path in source.rglob("*") if path.is_file())
    account = reader.account(lakehouse)
    assert account["lines_read"] == lines == account["skipped"] + account["events"] + account["quarantined"]
    assert account["quarantined"] == len(read(lakehouse, "quarantine"))


@pytest.mark.parametrize("kind", [kind for kind in hostile.NAMES if kind != "surrogate"])
def test_a_group_is_followed_whatever_it_is_called(lakehouse, kind):
    rows = [row for row in read(lakehouse, "rebalances") if row["group_id"] == hostile.name(kind)]
    own = [row for row in read(lakehouse, "rebalances") if row["group_id"] == hostile.GROUP]
    assert [row["generation"] for row in rows] == [row["generation"] for row in own]
    assert any((row["client_id"] or "").startswith(hostile.name(kind)) for row in rows)


def test_half_a_character_is_a_question_mark(lakehouse):
    assert "a?b?c~surrogate" in {row["group_id"] for row in read(lakehouse, "rebalances")}


def test_names_stand_in_the_tables_as_they_are(lakehouse):
    """They are what rows are joined by."""
    assert {row["client_id"] for row in read(lakehouse, "rebalances") if row["group_id"] == "group~long"} >= {hostile.LONG + "-1"}


def test_what_is_quarantined_is_cut_and_shows_what_it_is(lakehouse):
    rows = read(lakehouse, "quarantine")
    assert not hostile.harm_in("".join(row["raw"] + row["reason"] for row in rows))
    assert max(len(row["raw"]) for row in rows) <= 4_096
    assert {row["reason"] for row in rows} >= {"NOT_TEXT", "TOO_LONG"}


def shown(capsys, *arguments, code=0):
    assert main(list(map(str, arguments))) == code
    out, err = capsys.readouterr()
    assert not hostile.harm_in(err)
    return out


def check_text(text):
    assert not hostile.harm_in(text)
    assert max(map(len, text.splitlines())) <= LONGEST_LINE


@pytest.mark.parametrize("columns", ["60", long("400")])
def test_the_report_shows_every_name_harmless_and_cut(lakehouse, capsys, monkeypatch, columns):
    monkeypatch.setenv("COLUMNS", columns)
    text = shown(capsys, "report", "--lakehouse", lakehouse)
    check_text(text)
    for kind in ("html", "sql", "ansi", "osc", "c1", "bidi", "tabs", "markup"):
        assert hostile.NAMES[kind].encode("unicode_escape").decode().replace("\\\\", "\\")[:20] in text
    assert "[red]red[/red]" in text  # no markup of ours


def test_the_report_as_json_is_ascii(lakehouse, capsys):
    text = shown(capsys, "report", "--lakehouse", lakehouse, "--format", "json")
    assert text.isascii()
    assert not hostile.harm_in(text)
    assert {hostile.name("ansi"), hostile.name("bidi"), hostile.name("nul")} <= {row["group_id"] for row in json.loads(text)["groups"]}


@pytest.mark.parametrize("question", every(12, questions.names()))
def test_every_answer_is_harmless(lakehouse, capsys, question):
    limit = ["--limit", "1000"] if "limit" in questions.load(question).names else []
    check_text(shown(capsys, "ask", question, "--lakehouse", lakehouse, *limit))


@pytest.mark.parametrize("question", every(16, questions.names()))
def test_every_answer_is_harmless_to_programs(lakehouse, capsys, question):
    limit = ["--limit", "1000"] if "limit" in questions.load(question).names else []
    table = shown(capsys, "ask", question, "--lakehouse", lakehouse, *limit, "--format", "csv")
    assert not hostile.harm_in(table)
    assert not re.search(r'(?:^|[,;])"?\s*[=+@]', re.sub(r'"(?:[^"]|"")*"', lambda cell: cell[0][:2], table), re.MULTILINE)
    text = shown(capsys, "ask", question, "--lakehouse", lakehouse, *limit, "--format", "json")
    assert text.isascii()
    json.loads(text)


@pytest.mark.parametrize("kind", every(9, [kind for kind in hostile.NAMES if kind != "surrogate"]))  # which no argument can hold
def test_a_name_is_a_value_never_a_part_of_the_question(lakehouse, capsys, kind):
    text = shown(capsys, "ask", "why", "--lakehouse", lakehouse, "--group", hostile.name(kind), "--format", "json")
    assert {row["group_id"] for row in json.loads(text)} == {hostile.name(kind)}
    text = shown(capsys, "ask", "why", "--lakehouse", lakehouse, "--group", hostile.name(kind) + "'; DROP TABLE rebalances; --")
    assert "do not mention group" in text


def test_the_lines_that_prove_a_row_are_shown_harmless(told, capsys):
    source, lakehouse = told["among"]
    found = json.loads(shown(capsys, "ask", "rebalances", "--lakehouse", lakehouse, "--format", "json", "--limit", "1000"))
    ids = {row["group_id"]: row["id"] for row in found}
    assert len(ids) > len(hostile.NAMES)
    for group in [*map(hostile.name, ("c1", "bidi", "marks", "lines", "forged", "html")), "group~long"]:
        check_text(shown(capsys, "evidence", ids[group], "--lakehouse", lakehouse, "--input", source, "--chars", "300"))
    assert shown(capsys, "evidence", ids["group~long"], "--lakehouse", lakehouse, "--input", source, "--format", "json").isascii()


def test_nothing_of_it_stands_in_the_commits_of_the_tables(lakehouse):
    """Their statistics have the least and the greatest name of a file, as they are: JSON keeps control characters from doing harm."""
    for log in lakehouse.glob("*/_delta_log/*.json"):
        for line in log.read_text(encoding="utf-8").splitlines():
            entry = json.loads(line)
            assert not any(name in json.dumps(entry.get("commitInfo", {})) for name in ("~", "alert(1)", "xxxx"))
            assert not re.search(r"[\x00-\x1f\x7f]", line)
