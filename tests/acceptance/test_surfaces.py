"""One fact, one number: what two surfaces show of a recording is equal, in the same order and the same words."""

from __future__ import annotations

import contextlib
import io
import json
import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from jobs.alerts.queue import past_findings
from jobs.answers import questions
from jobs.answers.duckdb_views import QuestionReader
from jobs.answers.formats import as_json
from jobs.answers.news import News
from jobs.answers.report import read_overview
from jobs.cli import entry
from jobs.dashboard.first_page import first_page
from jobs.dashboard.store import Store
from tests.answers import asking
from tests.dashboard.saved_page import Page
from tests.effort import long

pytestmark = pytest.mark.slow

RECORDINGS = ("recordings/kafka-4.2.0", long("mixed-groups"), long("recordings/kafka-3.9.1"))
ALL = ("--limit", "1000")
SINCE = "2020-01-01"
COST = ("rebalances", "total_ms", "unavailable_partition_ms")
BURSTS = {"REBALANCE_STORM", "ROLLING_RESTART"}


@dataclass
class Surfaces:
    """What each surface says of one lakehouse."""

    folder: Path
    reader: QuestionReader
    json: dict[str, Any]
    text: str
    page: Page
    dashboard: dict[str, Any]


def words(text: str) -> str:
    return " ".join(text.split())


@pytest.fixture(scope="module", params=RECORDINGS)
def shown(request, recorded_lakehouse):
    lake = recorded_lakehouse(request.param)
    said = {form: command("report", "--lakehouse", lake, "--format", form, *ALL) for form in ("json", "text")}
    entries = len(json.loads(said["json"])["attention"])
    said["html"] = command("report", "--lakehouse", lake, "--format", "html", "--limit", entries)  # not a page of each rebalance
    dashboard = json.loads(Store(lake).reply(("overview",), lambda reader: first_page(reader, read_overview(reader))).body)
    return Surfaces(lake, QuestionReader(lake, keeps=True), json.loads(said["json"]), said["text"], Page(said["html"]), dashboard)


def command(*arguments: object) -> str:
    """What a command writes."""
    written = io.BytesIO()
    with contextlib.redirect_stdout(io.TextIOWrapper(written, encoding="utf-8", write_through=True)) as out:
        assert entry.main([str(argument) for argument in arguments]) == 0
        out.flush()
    return written.getvalue().decode()


def asked(shown: Surfaces, question: str, **given: str) -> list[dict[str, Any]]:
    """The rows of an answer, as `--format json` has them."""
    answer: list[dict[str, Any]] = json.loads(as_json(asking.asked(shown.reader, question, limit="1000", **given)))
    return answer


def test_entries_stand_in_one_order_with_the_same_words_and_costs(shown):
    entries, told = shown.json["attention"], shown.dashboard["entries"]
    assert len(entries) > 5
    for name in ("severity", "code", "groups", "findings", "followed_by", "message", *COST):
        assert [one[name] for one in told] == [one[name] for one in entries], name
    assert [one["advice"] for one in told] == [" ".join(one["advice"]) for one in entries]
    heads = re.findall(r"^ *\d+\. (ERROR|WARNING|INFO) +(.+)\n {9,}([A-Z_]+)  ", shown.text, re.MULTILINE)
    assert heads == [(one["severity"], one["title"], one["code"]) for one in told]
    assert shown.page.answers["overview"] == shown.dashboard


def test_an_entry_has_its_whole_message_and_advice_everywhere(shown):
    text = words(shown.text)
    for one in shown.dashboard["entries"]:
        for said in (one["message"], one["advice"], one["cost"], one["subject"]):
            assert words(said) in text
            assert words(said) in shown.page.text


SPAN = r"((?:[\d.]+ (?:h|min|s|ms)\b ?)+)"


def seconds_of(span: str) -> float:
    """A duration as findings write it."""
    units = {"h": 3_600, "min": 60, "s": 1, "ms": 0.001}
    return sum(float(number) * units[unit] for number, unit in re.findall(r"([\d.]+) (\w+)", span))


def test_what_an_entry_demands_of_a_setting_stands_in_the_list_of_those_that_were_too_short(shown):
    entries, _, rest = shown.text.partition("Settings that were too low")
    block = re.findall(rf"^ +(\S+): (?:the group's )?(\S+).* above {SPAN}", rest.partition("\n\n")[0], re.MULTILINE)
    listed = {(group, setting): seconds_of(span) for group, setting, span in block}
    of_brokers = {group for one in shown.json["attention"] if one["incident"] for group in one["groups"]}
    assert [(group, span) for group, _, span in block if group not in of_brokers and span not in entries] == []
    for one in (one for one in shown.json["attention"] if not one["incident"] and one["code"] != "HEARTBEAT_NEAR_MISS"):
        group = one["groups"][0]
        for kind, span in re.findall(rf"(session|max\.poll)[. ]\S+(?: \(now [^)]+\))? above {SPAN}", " ".join(one["advice"])):
            needed = [value for (name, setting), value in listed.items() if (name, setting[:3]) == (group, kind[:3])]
            assert max(needed) >= seconds_of(span)


def test_what_a_broker_did_comes_first(shown):
    """In each recording a broker was killed."""
    first, *others = shown.json["attention"]
    assert (first["severity"], first["incident"]["cause"]) == ("ERROR", "BROKER_CRASHED")
    assert len(first["groups"]) > 1
    assert all(one["incident"] is None for one in others if one["severity"] == "ERROR")


def cost(rows: Iterable[dict[str, Any]]) -> tuple[int, ...]:
    """The costs of some rows, added up."""
    rows = list(rows)
    return tuple(sum(row[name] or 0 for row in rows) for name in COST)


def test_incidents_are_those_that_are_asked_for(shown):
    """And so are their figures, those of the entry and the sentences with them."""
    figures = {
        "groups_moved": "moved",
        "groups_returned": "returned",
        "groups_held_up": "held_up",
        "groups_waited": "waited",
        "rebalance_ms": "total_ms",
    }
    of_report = {one["incident"]["id"]: one for one in shown.json["attention"] if one["incident"]}
    found = {row["id"]: row for row in asked(shown, "incidents")}
    assert of_report.keys() == found.keys() != set()
    for row_id, one in of_report.items():
        incident, row = one["incident"], found[row_id]
        for name in ("severity", "cause", "broker", "began_at", "back_at", "message", "advice", "rebalances", "unavailable_partition_ms"):
            assert row[name] == incident[name], name
        assert {mine: incident[mine] for mine in figures} == {mine: row[its] for mine, its in figures.items()}
        assert row["lost"] == len(incident["members_lost"])
        assert cost([row]) == cost([one])
        assert len(one["groups"]) >= len(incident["groups"])
        moved, lost = incident["groups_moved"], len(incident["members_lost"])
        assert not moved or f"At least {moved} group" in incident["message"]
        assert not lost or f"{lost} member" in incident["message"]


def test_what_a_broker_cost_is_what_is_blamed_on_it(shown):
    brokers = {one["incident"]["broker"] for one in shown.json["attention"] if one["incident"]}
    blamed = [row for row in shown.json["rebalances"] if row["culprit_broker"] in brokers]
    why, bill = asked(shown, "why"), asked(shown, "bill")
    for broker in brokers:
        own = cost(one for one in shown.json["attention"] if one["incident"] and one["incident"]["broker"] == broker)
        assert own == cost(row for row in why if row["broker"] == broker)
        assert own == cost(row for row in bill if row["payer"] == broker)
        assert own == cost(row | {"rebalances": 1} for row in blamed if row["culprit_broker"] == broker)


def test_entries_cost_what_why_tells_of_the_failures_of_their_group(shown):
    """All entries but those of brokers, and of groups in which a storm or a rolling restart tells of failures as well."""
    entries = [one for one in shown.json["attention"] if not one["incident"]]
    bursts = {one["groups"][0] for one in entries if one["code"] in BURSTS}
    why, codes = asked(shown, "why"), {row["id"]: row["code"] for row in shown.json["findings"]}
    for group in {one["groups"][0] for one in entries if one["rebalances"]} - bursts:
        own = [one for one in entries if one["groups"] == [group]]
        told = {code for one in own for code in (one["code"], *(codes[row] for row in one["followed_by"]))}
        causes = {"SESSION_TIMEOUT" if code == "STATIC_MEMBER_AWAY" else code for code in told}
        assert cost(own) == cost(row for row in why if row["group_id"] == group and row["cause"] in causes), group


def test_storms_are_the_entries(shown):
    entries = {one["groups"][0]: one for one in shown.json["attention"] if one["code"] == "REBALANCE_STORM"}
    rows = asked(shown, "storms")
    assert {row["group_id"] for row in rows} == set(entries)
    assert sorted(row["id"] for row in rows) == sorted(finding for one in entries.values() for finding in one["findings"])
    for group, one in entries.items():
        assert cost([one]) == cost(row for row in rows if row["group_id"] == group)
    for row in rows:
        told = asked(shown, "why", group=row["group_id"], since=row["started_at"], until=row["ended_at"])
        assert row["cause"] in {one["cause"] for one in told if one["rebalances"] == max(other["rebalances"] for other in told)}


def test_rolling_restarts_are_among_the_deploys_with_the_same_costs(shown):
    rows = {(row["group_id"], row["started_at"]): row for row in asked(shown, "deploys")}
    tiles = {(row["group_id"], row["started_at"]) for row in shown.dashboard["deploys"]["rows"]}
    assert len(tiles) == min(len(rows), 5)
    found = [row for row in shown.json["findings"] if row["code"] == "ROLLING_RESTART"]
    for finding in found:
        row = rows[finding["group_id"], finding["occurred_at"]]
        assert row["verdict"] == "ROLLING"
        assert cost([row]) == cost([finding["details"]])
        assert row["restarts"] == len(finding["details"]["restarted"])
    stormy = {row["group_id"] for row in shown.json["findings"] if row["code"] == "REBALANCE_STORM"}
    assert not {group for group, _ in rows} & stormy


def test_poll_timeouts_that_are_certain_are_the_findings(shown):
    certain = {(row["group_id"], row["member_id"]) for row in asked(shown, "poll-timeouts") if row["sure"] == "CERTAIN"}
    found = {(row["group_id"], row["member_id"]) for row in shown.json["findings"] if row["code"] == "POLL_TIMEOUT" and row["member_id"]}
    assert certain == found


def test_zombies_are_those_whose_refusals_are_findings(shown):
    zombies = asked(shown, "zombies")
    refusals = [f for code in ("UNKNOWN_MEMBER", "ZOMBIE_COMMIT", "ILLEGAL_GENERATION") for f in asked(shown, "findings", code=code)]
    fenced = {one["member_id"] for one in asked(shown, "findings", code="FENCED_INSTANCE")}
    told = {(one["group_id"], one["client_id"]) for one in zombies if one["member_id"] not in fenced}
    assert told == {(one["group_id"], one["client_id"]) for one in refusals}


def test_a_membership_has_one_longest_gap_wherever_it_is_shown(shown):
    beats = {(one["group_id"], one["member_id"]): one["longest_gap_ms"] for one in asked(shown, "heartbeats")}
    ended = {(one["group_id"], one["member_id"]): one["longest_gap_ms"] for one in asked(shown, "members") if one["ended_at"]}
    both = {member: (gap_ms or 0, beats[member] or 0) for member, gap_ms in ended.items() if member in beats}
    other = {group for (group, _), (one, another) in both.items() if abs(one - another) > 150}
    assert other <= {"returns-desk", "recommendation"}, "a killed broker held back answers there: lines in another order than requests"


def test_all_that_adds_costs_up_adds_up_the_same(shown):
    """The report's groups and rebalances, its page, and five questions. Start-ups are left out where nobody is to blame for them."""
    of_report = cost(row | {"rebalances": 1} for row in shown.json["rebalances"] if not row["startup"])
    groups = shown.json["groups"]
    assert of_report == (
        sum(row["rebalances"] for row in groups),
        sum(row["rebalancing_ms"] or 0 for row in groups),
        sum(row["unavailable_partition_ms"] or 0 for row in groups),
    )
    for question in ("why", "bill", "worst"):
        assert cost(asked(shown, question, since=SINCE)) == of_report, question
    for payer in ("client", "member", "group", "day"):
        assert cost(asked(shown, "bill", by=payer)) == of_report
    of_clients = cost(row | {"rebalances": 1} for row in shown.json["rebalances"] if not row["startup"] and row["culprit_client_id"])
    assert cost(asked(shown, "culprits")) == of_clients
    assert cost(asked(shown, "culprits-by")) == of_clients
    for activity in (asked(shown, "activity", since=SINCE), shown.dashboard["activity"]):
        assert cost(row for row in activity if row["cause"] != "STARTUP") == of_report


def test_the_state_of_a_group_is_one_wherever_it_is_shown(shown):
    names = ("generation", "members")
    of_report = {row["group_id"]: row for row in shown.json["groups"]}
    for row in asked(shown, "groups"):
        mine = of_report[row["group_id"]]
        assert mine["protocol"] == row["group_protocol"]
        assert (mine["state"], *(mine[name] for name in names)) == (row["state"], *(row[name] for name in names))
        assert row["rebalances"] == mine["rebalances"]
        assert (row["total_ms"] or 0) == (mine["rebalancing_ms"] or 0)
        assert row["findings"] == sum(one["group_id"] == row["group_id"] for one in shown.json["findings"])
    counted = Counter(row["state"] for row in of_report.values())
    for states in (asked(shown, "states"), shown.dashboard["states"]):
        tiles: Counter[str] = Counter()
        for row in states:
            tiles[row["state"]] += row["groups"]
        assert tiles == counted
        assert sum(row["members"] or 0 for row in states) == sum(row["members"] or 0 for row in of_report.values())


def test_the_text_shows_the_groups_with_the_figures_of_the_data(shown):
    table = shown.text[shown.text.index("\nGroups (") :].splitlines()[2:]
    shown_so = [line.split() for line in table[: table.index("") if "" in table else None]]
    rows = {words[0]: words for words in shown_so if words}
    for row in (one for one in shown.json["groups"] if one["rebalances"]):
        told = rows[row["group_id"]]
        assert str(row["rebalances"]) in told
        unknown = ["not", "seen"] if row["protocol"] == "classic" else [row["protocol"], "protocol"]
        state = unknown if row["state"] == "UNKNOWN" else [row["state"]]
        assert told[-len(state) - 1 :] == [*state, "-" if row["members"] is None else str(row["members"])]


def test_each_third_of_the_time_has_one_cost_of_what_brokers_did(shown):
    """What an entry costs is what the time that is shown has, as in the tables below it; and lines go on after it."""
    first, last = (datetime.fromisoformat(shown.json["clusters"][0][name]) for name in ("first_at", "last_at"))
    third = (last - first) / 3
    for number in range(3):
        since, until = ((first + part * third).isoformat() for part in (number, number + 1))
        told = json.loads(command("report", "--lakehouse", shown.folder, "--format", "json", "--since", since, "--until", until, *ALL))
        blamed = cost(row | {"rebalances": 1} for row in told["rebalances"] if row["culprit_broker"])
        assert blamed == cost(one for one in told["attention"] if one["incident"])
        assert blamed == cost(row for row in asked(shown, "why", since=since, until=until) if row["broker"])
        assert number == 2 or not any("when the lines end" in gap["why"] for gap in told["not_judged"])


def test_the_lines_behind_each_kind_of_entry_can_be_seen(shown):
    for one in {one["code"]: one for one in shown.json["attention"]}.values():
        for row_id in filter(None, (one["incident"] and one["incident"]["id"], one["findings"][0])):
            assert f"{row_id}  {one['severity']} " in command("evidence", row_id, "--lakehouse", shown.folder) or one["incident"]


def test_groups_are_counted_alike(shown):
    groups = shown.json["groups"]
    assert f"\nGroups ({len(groups)})" in shown.text
    assert len(asked(shown, "groups")) == len(groups)
    assert sum(cluster["groups"] for cluster in shown.json["clusters"] if "groups" in cluster) in (0, len(groups))


def test_the_worst_groups_are_the_first_of_the_report_with_its_costs(shown):
    worst = asked(shown, "worst", since=SINCE)
    of_report = [row for row in shown.json["groups"] if row["rebalances"]]
    assert [row["group_id"] for row in worst] == [row["group_id"] for row in of_report]
    for mine, its in zip(of_report, worst, strict=True):
        assert its["rebalances"] == mine["rebalances"]
        assert its["total_ms"] == mine["rebalancing_ms"]
        assert its["unavailable_partition_ms"] == mine["unavailable_partition_ms"]
        assert its["cause"] == mine["worst_cause"]


def test_a_row_has_the_same_values_in_the_report_and_in_all_questions(shown):
    """Rebalances and findings, by their ids. Some questions have the culprit for client and member, others who began."""
    of_report = {row["id"]: row | {"cause": row["blamed"]} for row in shown.json["rebalances"]}
    of_report |= {row["id"]: row for row in shown.json["findings"]}
    compared = set()
    for question in questions.names():
        given = {"since": SINCE} if "since" in questions.load(question).names else {}
        for row in asked(shown, question, **given):
            mine = of_report.get(row.get("id"), {})
            for name in row.keys() & mine.keys():
                assert row[name] in (mine[name], mine.get(f"culprit_{name}", mine[name])), (question, row["id"], name)
                compared.add((question, name))
    assert {(question, "cause") for question in ("phases", "rebalances", "stuck")} <= compared
    assert {(question, "client_id") for question in ("changes", "findings", "timeline")} <= compared


def test_watch_tells_of_each_rebalance_what_the_report_tells(shown):
    of_report = {row["id"]: row for row in shown.json["rebalances"]}
    told = [item for item in News(shown.folder, since=SINCE).take() if item.table == "rebalances"]
    assert {item.row["id"] for item in told} == set(of_report)
    for item in told:
        for name in ("blamed", "startup", "culprit_broker", "culprit_client_id", "total_ms", "members_before", "members_after"):
            assert item.row[name] == of_report[item.row["id"]][name], (item.row["id"], name)


def test_watch_and_alerts_fold_what_a_broker_did_as_the_report_does(shown):
    incidents = [one["incident"] for one in shown.json["attention"] if one["incident"]]
    watched = Counter(item.row["culprit_broker"] for item in News(shown.folder, since=SINCE).take() if item.table == "findings")
    alerted = Counter(one.incident["broker"] for one in past_findings(shown.folder, timedelta(days=36_500)) if one.incident)
    for broker in {row["broker"] for row in incidents}:
        of_report = sum(len(row["findings"]) for row in incidents if row["broker"] == broker)
        assert watched[broker] == alerted[broker] == of_report


def test_why_adds_up_the_rebalances_of_the_report(shown):
    counted = Counter((row["group_id"], row["blamed"]) for row in shown.json["rebalances"] if not row["startup"])
    why = asked(shown, "why")
    added: Counter[tuple[str, str]] = Counter()
    for row in why:
        added[row["group_id"], row["cause"]] += row["rebalances"]
    assert added == counted
