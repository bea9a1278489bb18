"""One fact, one number: what two surfaces show of a recording is equal, in the same order and the same words."""

from __future__ import annotations

import contextlib
import io
import json
import re
from collections import Counter
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from jobs.alerts.queue import past_findings
from jobs.answers.news import News
from jobs.answers.report import read_overview
from jobs.cli import entry
from jobs.dashboard.first_page import first_page
from jobs.dashboard.store import Store
from tests.dashboard.saved_page import Page

pytestmark = pytest.mark.slow

RECORDINGS = Path(__file__).parents[1] / "data" / "recordings"
ALL = ("--limit", "1000")
SINCE = ("--since", "2020-01-01")
COST = ("rebalances", "total_ms", "unavailable_partition_ms")


@dataclass
class Surfaces:
    """What each surface says of one lakehouse."""

    folder: Path
    json: dict[str, Any]
    text: str
    page: Page
    dashboard: dict[str, Any]


def words(text: str) -> str:
    return " ".join(text.split())


@pytest.fixture(scope="module", params=sorted(path.name for path in RECORDINGS.iterdir() if path.is_dir()))
def shown(request, recorded_lakehouse):
    lake = recorded_lakehouse(f"recordings/{request.param}")
    said = {form: command("report", "--lakehouse", lake, "--format", form, *ALL) for form in ("json", "text")}
    entries = len(json.loads(said["json"])["attention"])
    said["html"] = command("report", "--lakehouse", lake, "--format", "html", "--limit", entries)  # not a page of each rebalance
    dashboard = json.loads(Store(lake).reply(("overview",), lambda reader: first_page(reader, read_overview(reader))).body)
    return Surfaces(lake, json.loads(said["json"]), said["text"], Page(said["html"]), dashboard)


def command(*arguments: object) -> str:
    """What a command writes."""
    written = io.BytesIO()
    with contextlib.redirect_stdout(io.TextIOWrapper(written, encoding="utf-8", write_through=True)) as out:
        assert entry.main([str(argument) for argument in arguments]) == 0
        out.flush()
    return written.getvalue().decode()


def asked(shown: Surfaces, question: str, *more: str) -> list[dict[str, Any]]:
    """The rows of an answer."""
    answer: list[dict[str, Any]] = json.loads(command("ask", question, "--lakehouse", shown.folder, "--format", "json", *more))
    return answer


def test_entries_stand_in_one_order_with_the_same_words_and_costs(shown):
    entries, told = shown.json["attention"], shown.dashboard["entries"]
    assert len(entries) > 5
    for name in ("severity", "code", "groups", "findings", "followed_by", "message", *COST):
        assert [one[name] for one in told] == [one[name] for one in entries], name
    assert [one["advice"] for one in told] == [" ".join(one["advice"]) for one in entries]
    heads = re.findall(r"^ *\d+\. (ERROR|WARNING|INFO) +(\w+) ", shown.text, re.MULTILINE)
    assert heads == [(one["severity"], one["code"]) for one in entries]
    assert shown.page.answers["overview"] == shown.dashboard


def test_an_entry_has_its_whole_message_and_advice_everywhere(shown):
    text = words(shown.text)
    for one in shown.dashboard["entries"]:
        for said in (one["message"], one["advice"], one["cost"], one["subject"]):
            assert words(said) in text
            assert words(said) in shown.page.text


def test_what_a_broker_did_comes_first(shown):
    """In each recording a broker was killed."""
    first, *others = shown.json["attention"]
    assert (first["severity"], first["incident"]["cause"]) == ("ERROR", "BROKER_CRASHED")
    assert len(first["groups"]) > 1
    assert all(one["incident"] is None for one in others if one["severity"] == "ERROR")


def test_incidents_are_those_that_are_asked_for(shown):
    names = ("id", "severity", "cause", "broker", "groups_moved", "rebalances", "message")
    of_report = [one["incident"] for one in shown.json["attention"] if one["incident"]]
    found = {row["id"]: row for row in asked(shown, "incidents", *ALL)}
    assert {row["id"] for row in of_report} == set(found)
    for row in of_report:
        assert {name: found[row["id"]][name] for name in names if name in found[row["id"]]} == {
            name: row[name] for name in names if name in found[row["id"]]
        }


def test_groups_are_counted_alike(shown):
    groups = shown.json["groups"]
    assert f"\nGroups ({len(groups)})" in shown.text
    assert len(asked(shown, "groups", *ALL)) == len(groups)
    assert sum(cluster["groups"] for cluster in shown.json["clusters"] if "groups" in cluster) in (0, len(groups))


def test_the_worst_groups_are_the_first_of_the_report_with_its_costs(shown):
    """The report counts the rebalances of start-ups too; a question about what is wrong leaves them out."""
    worst = asked(shown, "worst", *SINCE, *ALL)
    of_report = [row for row in shown.json["groups"] if row["rebalances"] > row["startups"]]
    assert [row["group_id"] for row in worst] == [row["group_id"] for row in of_report]
    for mine, its in zip(of_report, worst, strict=True):
        assert its["rebalances"] == mine["rebalances"] - mine["startups"]
        assert its["total_ms"] == mine["rebalancing_ms"] - mine["startup_ms"]
        assert its["unavailable_partition_ms"] == mine["unavailable_partition_ms"]
        assert its["cause"] == mine["worst_cause"]


def test_a_rebalance_has_one_cause_and_one_cost_wherever_it_is_told(shown):
    of_report = {row["id"]: row for row in shown.json["rebalances"]}
    for question in ("phases", "rebalances", "stuck"):
        rows = asked(shown, question, *ALL)
        assert rows
        for row in rows:
            mine = of_report[row["id"]]
            told = (row["group_id"], row["total_ms"], row["cause"])
            assert told == (mine["group_id"], mine["total_ms"], mine["blamed"]), (question, row["id"])


def test_watch_tells_of_each_rebalance_what_the_report_tells(shown):
    of_report = {row["id"]: row for row in shown.json["rebalances"]}
    told = [item for item in News(shown.folder, since=SINCE[1]).take() if item.table == "rebalances"]
    assert {item.row["id"] for item in told} == set(of_report)
    for item in told:
        for name in ("blamed", "startup", "culprit_broker", "culprit_client_id", "total_ms", "members_before", "members_after"):
            assert item.row[name] == of_report[item.row["id"]][name], (item.row["id"], name)


def test_watch_and_alerts_fold_what_a_broker_did_as_the_report_does(shown):
    incidents = [one["incident"] for one in shown.json["attention"] if one["incident"]]
    watched = Counter(item.row["culprit_broker"] for item in News(shown.folder, since=SINCE[1]).take() if item.table == "findings")
    alerted = Counter(one.broker for one in past_findings(shown.folder, timedelta(days=36_500)))
    for broker in {row["broker"] for row in incidents}:
        of_report = sum(len(row["findings"]) for row in incidents if row["broker"] == broker)
        assert watched[broker] == alerted[broker] == of_report


def test_why_adds_up_the_rebalances_of_the_report(shown):
    counted = Counter((row["group_id"], row["blamed"]) for row in shown.json["rebalances"] if not row["startup"])
    why = asked(shown, "why", *ALL)
    added: Counter[tuple[str, str]] = Counter()
    for row in why:
        added[row["group_id"], row["cause"]] += row["rebalances"]
    assert added == counted
