"""The files of sql/, and the values of their parameters: over small tables written by hand, no JVM."""

import json
import re
from datetime import datetime, timedelta, timezone
from pathlib import Path

import pytest

from jobs.answers import ask, questions
from jobs.cli.ask import ask as command
from jobs.common.errors import QuestionError, UserError
from jobs.common.places import SQL
from jobs.common.times import EPOCH
from tests.answers.asking import asked
from tests.lakehouse.rows import DAY, MEMBER, empty_lakehouse, finding, line, rebalance, stopped, transition, write

NOW = datetime(2026, 11, 21, 6, 30, tzinfo=timezone.utc)
# What differs between DuckDB and Spark, or between one run and the next.
FOREIGN = re.compile(
    r""""|\\|::|\bnow\(|\bcurrent_(?:date|time|timestamp)\b|\brandom\(|\brand\(|\bqualify\b|\bilike\b|\basof\b|\bunnest\b|;""",
    re.IGNORECASE,
)


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


def test_clients_do_not_say_what_now_is_where_brokers_do(lakehouse):
    """Their zone may not be known: three hours ahead, they would move the last hour of a report behind all that happened."""
    client = {"broker": "clients", "source": "client", "kind": "CLIENT_LEAVES"}
    alone = line(at=10_860_000, **client) | {"cluster": "alone"}
    write(lakehouse, line(at=60_000), line(at=10_860_000, **client), alone)
    values = ask.BoundQuestion(lakehouse, questions.load("worst"), {}).values
    assert values["until"] == datetime.fromtimestamp((DAY + 60_000) / 1000, tz=timezone.utc)
    values = ask.BoundQuestion(lakehouse, questions.load("worst"), {"cluster": "alone"}).values
    assert values["until"] == datetime.fromtimestamp((DAY + 10_860_000) / 1000, tz=timezone.utc)


def test_spark_collects_local_times():
    values = ask.values(questions.load("why"), {}, NOW.astimezone().replace(tzinfo=None))
    assert values["until"] == NOW


@pytest.mark.parametrize(
    ("name", "given", "said"),
    [
        ("why", {"member": "x"}, "why takes no member"),
        ("why", {"limit": "0"}, "whole number from 1"),
        ("why", {"limit": "1; DROP TABLE x"}, "whole number"),
        ("deploys", {"gap_ms": "many"}, "gap_ms: must be a whole number"),
        ("changes", {"around": "wide"}, "not a duration"),
        ("bill", {"by": "software"}, "by: must be one of application, client, member, group, day, not software"),
        ("culprits-by", {"by": "day"}, "by: must be one of application, host, software, not day"),
        ("findings", {"severity": "error"}, "severity: must be one of ERROR, WARNING, INFO, not error"),
    ],
)
def test_values_of_no_use(name, given, said):
    with pytest.raises(UserError, match=said):
        ask.values(questions.load(name), given, NOW)


@pytest.mark.slow
def test_an_empty_lakehouse_answers_everything_with_nothing(lakehouse):
    assert [name for name in questions.names() if asked(lakehouse, name)] == []


def test_values_are_bound_not_pasted(lakehouse):
    group = "o'brien\" OR 1=1 --"
    write(lakehouse, line(group), rebalance(group), rebalance("other"))
    assert [found["group_id"] for found in asked(lakehouse, "rebalances", group=group)] == [group]
    assert asked(lakehouse, "rebalances", group="x' OR '1'='1") == []


def test_findings_of_a_severity_and_with_words_in_them(lakehouse):
    write(
        lakehouse, line(), finding(message="Silent."), finding(code="X", severity="INFO", advice="Be QUIET 100%."), finding(client_id="A_b")
    )

    def found(**given):
        return sorted(row["code"] + row["message"] for row in asked(lakehouse, "findings", **given))

    assert found(severity="INFO") == found(text="quiet 100%") == ["XIt went silent."]
    assert found(severity="ERROR", text="SILENT.") == ["SESSION_TIMEOUTIt went silent.", "SESSION_TIMEOUTSilent."]
    assert found(text="a_B") == ["SESSION_TIMEOUTIt went silent."]
    assert found(text="a%b") == []


def test_the_command_line_has_an_option_for_each_parameter_that_is_said_to_have_one():
    options = {name for parameter in command.params for name in parameter.opts}
    declared = {parameter.name for name in questions.names() for parameter in questions.load(name).parameters}
    assert {name for name in declared if f"--{name}" in options} == set(questions.OPTIONS)


def test_ids_follow_from_the_content_alone(tmp_path):
    ids = []
    for number in (1, 2):
        folder = empty_lakehouse(tmp_path / str(number))
        write(folder, line(), finding(member_id=MEMBER, generation=3), finding(member_id=MEMBER), rebalance(), batch=number)
        ids.append({found["id"] for name in ("findings", "rebalances") for found in asked(folder, name)})
    assert ids[0] == ids[1]
    assert len(ids[0]) == 3
    assert all(re.fullmatch(r"[fr][0-9a-f]{11}", one) for one in ids[0])


def test_the_questions_are_where_a_wheel_puts_them():
    project = Path(__file__).parents[2]
    listed = (project / "pyproject.toml").read_text(encoding="utf-8")
    for folder in ("sql", "sql/views", "sql/duckdb", "sql/pages", "sql/rows"):
        assert f'"share/kafka-rebalance/{folder}" = ["{folder}/*.sql"]' in listed


def test_each_query_of_the_program_is_read():
    code = "".join(path.read_text(encoding="utf-8") for path in (Path(__file__).parents[2] / "jobs").rglob("*.py"))
    assert [path.stem for path in (SQL / "rows").iterdir() if not re.search(rf"[\"']{path.stem}[\"']", code)] == []


def test_each_question_names_the_sums_of_which_some_parts_are_not_known(lakehouse):
    """Pairs of rebalances: of the second of each no line shows the time, nor what it cost."""
    who, unknown = (
        {"client_id": "app-1", "member_id": MEMBER, "members_before": 2, "members_after": 2},
        {"total_ms": None, "start_seen": False},
    )
    costs = {"unavailable_partition_ms": 7_000, "partitions_moved": 2}
    rounds = [("sticky", "MEMBER_LEFT", "REVOCATION_FOLLOW_UP"), ("stalls", *2 * ["POLL_TIMEOUT"]), ("moves", *2 * ["COORDINATOR_MOVED"])]
    pairs = [
        rebalance(group, start, cause=cause, generation=start, **who, **own)
        for group, *causes in rounds
        for start, cause, own in zip((1_000, 5_000), causes, (costs, unknown), strict=True)
    ]
    told = {"rebalances": 2, "span_ms": 4_000, "unavailable_partition_ms": 7_000, "at_least": "unavailable_partition_ms"}
    moved = {"from_broker": "b1", "to_broker": "b2", "common_causes": []}
    write(
        lakehouse,
        line("stalls"),
        line("no-members"),
        *(line("moves", at, broker=broker, source="coordinator") for at, broker in ((500, "b1"), (800, "b2"), (90_000, "b2"))),
        *(transition("Stable", 4_000, 1, group) for group in ("stalls", "no-members")),
        *pairs,
        *(stopped(of=pair, reread_min=1, reread_max=known, lag_added=known) for pair, known in zip(pairs[:2], (9, None), strict=True)),
        finding(group_id="stalls", code="POLL_TIMEOUT", occurred_at=DAY + 1_000, member_id=MEMBER),
        finding(group_id="moves", code="COORDINATOR_MOVED", occurred_at=DAY + 900, details=json.dumps(moved)),
        *(finding(code=code, details=json.dumps(told)) for code in ("ROLLING_RESTART", "REBALANCE_STORM")),
    )
    both = "total_ms, unavailable_partition_ms"
    named = dict.fromkeys(("why", "worst", "culprits", "culprits-by", "activity", "incidents"), both)
    named |= {"bill": f"{both}, by_failures_ms, partitions_moved", "cooperative": "total_ms, partitions_moved, unavailable_partition_ms"}
    named |= dict.fromkeys(("deploys", "storms", "coordinators"), "unavailable_partition_ms")
    named |= {"groups": "total_ms", "poll-timeouts": "rebalance_total_ms", "rereads": "reread_max, lag_added", "states": "members"}
    assert {name for name in questions.names() if "known_sum(" in (SQL / f"{name}.sql").read_text(encoding="utf-8")} <= named.keys()
    for name, sums in named.items():
        assert sums in {row["at_least"] for row in asked(lakehouse, name)}, name
