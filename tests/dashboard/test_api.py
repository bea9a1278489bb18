"""What the dashboard answers, without a browser, over small tables written by hand: no JVM."""

import json
import subprocess
import sys

import pytest

from jobs.answers import ask, questions
from jobs.answers.duckdb_views import QuestionReader
from jobs.answers.formats import for_browser
from jobs.cli import entry
from jobs.dashboard.pages import PAGES
from tests.dashboard.serving import serving
from tests.lakehouse.rows import DAY, empty_lakehouse, finding, line, rebalance, transition, write

pytestmark = pytest.mark.slow


def fill(lakehouse):
    write(
        lakehouse,
        line(),
        line(at=90_000),
        transition("Stable", 1_000, 1),
        *(rebalance(start=1_000 * number, generation=number, unavailable_partition_ms=number, members_before=3) for number in range(5)),
        finding(client_id="app-1", client_host="10.0.0.7"),
    )
    return lakehouse


@pytest.fixture
def filled(lakehouse):
    return fill(lakehouse)


@pytest.fixture(scope="module")
def told(tmp_path_factory):
    """A filled lakehouse that nobody writes to."""
    return fill(empty_lakehouse(tmp_path_factory.mktemp("told") / "lake"))


def test_answers_are_those_of_the_named_questions(shown, told):
    reader = QuestionReader(told)
    for name in questions.names():
        given = {"group": "payments"} if "group" in questions.load(name).names else {}
        answer = ask.BoundQuestion(reader, questions.load(name), given).answer()
        replied = shown.json(f"ask/{name}", **given)
        assert (replied["columns"], replied["rows"]) == (list(answer.columns), json.loads(for_browser(answer.rows))), name


def test_an_answer_as_a_file_is_what_the_command_prints(shown, told, capfd):
    for form, media in (("csv", "text/csv; charset=utf-8"), ("json", "application/json")):
        status, headers, body = shown.get(f"/api/export/findings.{form}", group="payments", limit="5")
        assert (status, headers["Content-Type"]) == (200, media)
        assert headers["Content-Disposition"] == f'attachment; filename="findings.{form}"'
        entry.main(["ask", "findings", "--lakehouse", str(told), "--group", "payments", "--limit", "5", "--format", form])
        assert body.decode() == capfd.readouterr().out
    assert shown.get("/api/export/findings.xls")[0] == 404
    status, _, body = shown.get("/api/export/findings.csv", limit="no")
    assert (status, json.loads(body)["problem"]) == (400, "limit: must be a whole number from 1 to 1000000, not no")


def test_a_question_says_what_its_parameters_take(shown):
    known = {one["name"]: {each["name"]: each for each in one["parameters"]} for one in shown.json("questions")}
    assert known["culprits-by"]["by"]["choices"] == ["application", "host", "software"]
    assert known["findings"]["severity"]["choices"] == ["ERROR", "WARNING", "INFO"]
    assert (known["findings"]["group"]["option"], known["findings"]["text"]["option"]) == (True, False)


@pytest.mark.usefixtures("filled")
def test_the_same_answer_is_not_sent_twice(served, lakehouse):
    _, headers, body = served.get("/api/ask/worst")
    again = served.get("/api/ask/worst", headers={"If-None-Match": headers["ETag"]})
    assert (again[0], again[2]) == (304, b"")
    write(lakehouse, rebalance(group="orders", start=60_000, members_before=1), batch=1)
    while (changed := served.get("/api/ask/worst", headers={"If-None-Match": headers["ETag"]}))[0] == 304:
        pass  # a look at the folders is shared for half a second
    assert changed[0] == 200
    assert changed[2] != body


@pytest.mark.usefixtures("filled")
def test_the_version_changes_with_the_tables_alone(served, lakehouse):
    before = served.json("version")
    assert served.json("version") == before
    write(lakehouse, line(at=91_000), batch=1)
    while (after := served.json("version")) == before:
        pass
    assert {name for name in after["tables"] if after["tables"][name] != before["tables"][name]} == {"group_events"}
    assert after["version"] != before["version"]


def test_rows_are_those_of_the_tables(shown):
    rows = shown.json("rows/rebalances", cluster="c", group="payments")["rows"]
    assert [(row["started_at"], row["generation"], row["look"]) for row in rows] == [(DAY + 1_000 * n, n, "came") for n in range(5)]
    part = shown.json("rows/rebalances", cluster="c", group="payments", since=DAY + 3_500, until=DAY + 3_900, limit=1)
    assert ([row["generation"] for row in part["rows"]], part["cut"]) == ([2], True)
    (found,) = shown.json("rows/findings", cluster="c", group="payments")["rows"]
    assert found["details"] == {}


def test_what_cannot_be_asked_is_refused_in_a_sentence(shown):
    for path, values in (("ask/worse", {}), ("ask/worst", {"limit": "-1"}), ("rows/x", {}), ("rows/states", {}), ("rows/rebalance", {})):
        status, _, body = shown.get(f"/api/{path}", **values)
        assert status == 400
        assert json.loads(body)["problem"]
    status, _, body = shown.get("/api/rows/states", cluster="c", group="g", until="tomorrow")
    assert status == 400
    assert "whole milliseconds" in json.loads(body)["problem"]


def test_without_a_lakehouse_there_is_a_sentence_and_later_the_rows(tmp_path):
    with serving(tmp_path / "none") as served:
        status, _, body = served.get("/api/ask/worst")
        assert status == 200
        assert "no lakehouse" in json.loads(body)["problem"]
        assert served.json("version")["tables"] == {}
        for page in PAGES:
            assert served.get(page.path)[0] == 200


def test_an_empty_lakehouse_has_no_rows(served):
    assert served.ask("worst") == []
    assert served.json("attention")["entries"] == []
    assert served.json("health")["ok"] is None


def test_pages_load_nothing_from_elsewhere_and_run_no_script_in_them(shown):
    for page in PAGES:
        status, headers, body = shown.get(page.path)
        assert status == 200
        assert "default-src 'none'; script-src 'self'; style-src 'self'" in headers["Content-Security-Policy"]
        assert "unsafe" not in headers["Content-Security-Policy"]
        assert body.count(b"<script") == body.count(b'<script src="/assets/') + body.count(b'<script type="module" src="/assets/')
        assert shown.get(f"/assets/{page.module}")[0] == 200
        for foreign in (b"http:", b"https:", b"//"):
            assert foreign not in body


def test_other_addresses_are_not_found(shown):
    for path in ("/nothing", "/assets/nothing.js", "/assets/..%2fapp.py", "/assets/%2e%2e%2fapp.py"):
        status, _, body = shown.get(path)
        assert status == 404
        assert b"There is no such page" in body


def test_a_page_elsewhere_cannot_give_its_name_to_this_machine(shown):
    assert shown.get("/api/version", headers={"Host": "evil.example"})[0] == 400
    assert shown.get("/api/version", headers={"Host": "localhost:1"})[0] == 200


def test_it_loads_no_library_that_it_does_not_need(told):
    """DuckDB loads pandas and pyarrow with the first value that is bound, unless they are hidden from it: 80 MB, and half a second."""
    program = (
        "import sys; from pathlib import Path; from jobs.answers.report import read_overview;"
        "from jobs.dashboard import first_page, queries, store as stores;"
        f"store = stores.Store(Path({str(told)!r}));"
        "store.reply(('ask',), lambda reader: queries.answer(reader, 'groups', {'group': 'payments'}));"
        "store.reply(('overview',), lambda reader: first_page.first_page(reader, read_overview(reader)));"
        "print([name for name in ('pyspark', 'pandas', 'pyarrow', 'numpy') if name in sys.modules])"
    )
    ended = subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, text=True)
    assert ended.stdout == "[]\n"
