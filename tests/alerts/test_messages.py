"""What a message says, in each form: complete, safe to show, and of one key for the same findings."""

import json
import re
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobs.alerts.finding import Finding, wanted_by
from jobs.alerts.messages import message
from jobs.alerts.queue import past_findings
from jobs.alerts.sender import sample
from jobs.answers.duckdb_views import QuestionReader
from jobs.common.alert_settings import ReceiverSettings
from tests.alerts.webhooks import finding, found
from tests.lakehouse.rows import HOSTILE, MEMBER, empty_lakehouse, line, write

DASHBOARD = "https://dash.example/rebalance/"
AT = 1_795_242_420_123
ONE = replace(sample(), cluster="prod", group_id="orders", code="POLL_TIMEOUT", occurred_ms=AT, client_id="c-1", client_host="/10.0.0.1")


def receiver(form):
    return ReceiverSettings("r", form, "no-file")


def content(form, *findings, dashboard=DASHBOARD, now_ms=AT):
    return json.loads(message(receiver(form), findings, dashboard, now_ms).body)


def test_the_id_is_the_one_by_which_evidence_finds_the_row(tmp_path):
    lake = empty_lakehouse(tmp_path / "lake")
    rows = finding("a|b", member_id=MEMBER, generation=7), finding("é", severity="INFO"), finding(occurred_at=AT)
    found(lake, *rows)
    asked = QuestionReader(lake).ask("SELECT v.group_id, v.id FROM findings_with_id AS v", {}).by_name()
    assert {one.group_id: one.id for one in past_findings(lake, timedelta(days=36_500))} == {row["group_id"]: row["id"] for row in asked}


def test_rows_of_one_id_that_say_something_else_have_keys_of_their_own():
    others = [replace(ONE, client_id="c-2"), replace(ONE, client_host="/10.0.0.2"), replace(ONE, message="Again.")]
    assert {one.id for one in others} == {ONE.id}
    assert len({one.key for one in [ONE, *others]}) == 4
    assert len(ONE.key) == 21


def test_what_a_broker_did_to_its_groups_is_one_problem_and_the_first():
    def moved(group, broker="broker-2"):
        did = {"id": broker, "broker": broker, "cause": "COORDINATOR_MOVED", "message": f"Groups left {broker}.", "advice": "Look at it."}
        return replace(ONE, code="COORDINATOR_MOVED", group_id=group, incident=did | {"members_lost": []}, client_id=None, client_host=None)

    storm = [replace(ONE, group_id=f"s{n}", occurred_ms=AT - 9_000 + n) for n in range(12)]
    told = content("slack", *storm, *(moved(f"g{n}") for n in range(6)), moved("other", "broker-3"))["attachments"]
    assert [one["title"] for one in told[:2]] == [
        "Groups left broker-2 (broker-2 of prod)  COORDINATOR_MOVED",
        "Groups left broker-3 (broker-3 of prod)  COORDINATOR_MOVED",
    ]
    assert "*Groups:* `g0`, `g1`, `g2`, `g3` and 2 more" in told[0]["text"]
    assert told[2]["title"] == "c-1 did not poll in time (group s0 of prod)  POLL_TIMEOUT"


def test_the_broker_is_that_of_the_incident(tmp_path):
    """What the groups left at last only stood in for the broker that was lost."""
    lake = empty_lakehouse(tmp_path / "lake")
    write(lake, line())

    def moved(source, target, at):
        details = json.dumps({"from_broker": source, "to_broker": target}, separators=(",", ":"))
        return finding(code="COORDINATOR_MOVED", occurred_at=AT + at, details=details)

    found(lake, moved("b3", "b1", 0), moved("b1", "b3", 20_000), finding("other"))
    told = past_findings(lake, timedelta(days=36_500))
    assert {(one.code, one.incident and one.incident["broker"]) for one in told} == {("COORDINATOR_MOVED", "b3"), ("SESSION_TIMEOUT", None)}
    assert [part["title"] for part in content("slack", *told)["attachments"]] == [
        "At least 1 group moved from b3 to b1, and it had moved back by 06:27:20 UTC (b3 of c)  COORDINATOR_MOVED",
        "payments-1 missed the session timeout (group other of c)  SESSION_TIMEOUT",
    ]


def test_a_link_leads_to_the_group_at_that_time():
    link = urlsplit(replace(ONE, group_id="a b&c=d/é").link(DASHBOARD))
    assert (link.scheme, link.netloc, link.path) == ("https", "dash.example", "/rebalance/group")
    shown = {name: value for name, (value,) in parse_qs(link.query).items()}
    assert (shown["cluster"], shown["group"], shown["tab"]) == ("prod", "a b&c=d/é", "findings")
    assert int(shown["from"]) < AT < int(shown["to"])
    assert shown["finding"] == replace(ONE, group_id="a b&c=d/é").id
    assert ONE.link("") == ""


def test_plain_json_has_every_finding_whole():
    told = content("json", ONE, replace(ONE, details='{"max_poll_interval_ms": 300000}'))
    first, second = told["findings"]
    assert first == {
        "key": ONE.key, "id": ONE.id, "cluster": "prod", "group": "orders", "occurred_at": "2026-11-21T06:27:00.123Z",
        "code": "POLL_TIMEOUT", "severity": "ERROR", "member_id": None, "client_id": "c-1", "client_host": "/10.0.0.1",
        "generation": None, "message": ONE.message, "advice": ONE.advice, "details": {}, "open": None, "at_end": False,
        "link": ONE.link(DASHBOARD), "title": "c-1 did not poll in time",
    }  # fmt: skip
    assert second["details"] == {"max_poll_interval_ms": 300_000}
    assert content("json", ONE, dashboard="")["findings"][0]["link"] is None


def test_a_message_has_one_key_for_the_same_findings():
    keys = {message(receiver(form), [ONE], DASHBOARD, now_ms).key for form in ("slack", "json", "alertmanager") for now_ms in (AT, AT + 1)}
    assert len(keys) == 1
    assert message(receiver("json"), [ONE, ONE], DASHBOARD, AT).key not in keys


def test_alertmanager_has_one_alert_for_a_problem_of_a_client():
    later = replace(ONE, occurred_ms=AT + 1_000, message="Again.")
    other = replace(ONE, client_id=None)
    alert, of_group = content("alertmanager", later, ONE, other, now_ms=AT + 5_000)
    assert alert["labels"] == {
        "alertname": "POLL_TIMEOUT", "severity": "error", "cluster": "prod", "group": "orders", "client": "c-1", "source": "rebalance",
    }  # fmt: skip
    assert (alert["startsAt"], alert["endsAt"]) == ("2026-11-21T06:27:00.123Z", "2026-11-21T06:42:05.123Z")
    assert alert["annotations"]["description"] == "Again."
    assert (alert["annotations"]["findings"], alert["annotations"]["key"]) == ("2", later.key)
    assert alert["generatorURL"] == later.link(DASHBOARD)
    assert "client" not in of_group["labels"]


def test_what_is_open_stands_in_alertmanager_until_it_has_ended():
    began = replace(ONE, code="OPEN_REBALANCE", client_id=None, row_id="r0123456789a", open=True)
    (alert,) = content("alertmanager", began, now_ms=AT + 5_000)
    assert alert["endsAt"] == "2026-11-22T06:27:05.123Z"
    (ended,) = content("alertmanager", replace(began, open=False), now_ms=AT + 60_000)
    assert (ended["labels"], ended["endsAt"]) == (alert["labels"], "2026-11-21T06:28:00.123Z")
    colours = [content("slack", replace(began, open=one))["attachments"][0]["color"] for one in (True, False)]
    assert len(set(colours)) == 2
    assert began.link(DASHBOARD) == "https://dash.example/rebalance/rebalance?cluster=prod&group=orders&id=r0123456789a"


def test_an_alert_never_ends_before_it_starts():
    (alert,) = content("alertmanager", ONE, now_ms=0)
    assert alert["startsAt"] < alert["endsAt"]


def test_a_chat_gets_a_headline_and_a_part_for_each_problem():
    told = content("slack", ONE, replace(ONE, occurred_ms=AT + 60_000, client_id="c-2"), replace(ONE, code="IDLE_MEMBERS", severity="INFO"))
    assert told["text"] == "*2 errors, 1 info* in group `orders` of `prod`"
    first, second = told["attachments"]
    assert first["title"] == "c-1 and c-2 did not poll in time (group orders of prod)  POLL_TIMEOUT"
    assert first["title_link"] == ONE.link(DASHBOARD)
    assert "*Client:* `c-1@10.0.0.1`, `c-2@10.0.0.1`" in first["text"]
    assert first["text"].endswith("*When:* 2026-11-21 06:27:00 to 2026-11-21 06:28:00 UTC")
    assert first["color"] != second["color"]
    assert second["title"] == "orders has more members than partitions (group orders of prod)  IDLE_MEMBERS"
    assert first["footer"] == f"rebalance evidence {replace(ONE, occurred_ms=AT + 60_000).id}"


def test_a_flood_is_ten_parts_and_a_count_of_the_rest():
    flood = [replace(ONE, group_id=f"g{n % 30}", occurred_ms=AT + n) for n in range(300)]
    told = content("slack", *flood)
    assert told["text"] == "*300 errors* in 30 groups of `prod`"
    assert len(told["attachments"]) == 11
    assert told["attachments"][-1]["text"] == "… and 200 findings in 20 groups (POLL_TIMEOUT 200): `rebalance report` has all"
    assert len(json.dumps(told)) < 20_000


def test_no_code_is_hidden_in_the_rest():
    """A storm that stands behind a dozen errors of other groups is named, though it has no part of its own."""
    errors = [replace(ONE, group_id=f"g{n}", occurred_ms=AT + n) for n in range(12)]
    storm = replace(ONE, code="REBALANCE_STORM", severity="WARNING")
    (*_, rest) = content("slack", *errors, storm)["attachments"]
    assert rest["text"] == "… and 3 findings in 3 groups (POLL_TIMEOUT 2, REBALANCE_STORM 1): `rebalance report` has all"


def test_the_gravest_come_first():
    mixed = [replace(ONE, code=severity, severity=severity) for severity in ("INFO", "WARNING", "ERROR")]
    assert [part["title"].split()[0] for part in content("slack", *mixed)["attachments"]] == ["ERROR", "WARNING", "INFO"]


@pytest.mark.parametrize("name", [HOSTILE, "<!channel>", "@channel", "<https://evil.example|click>", "`code` *bold*", "&lt;", "\u202egnp"])
def test_no_name_calls_somebody_or_becomes_markup(name):
    hostile = replace(ONE, cluster=name, group_id=name, client_id=name, client_host=name, message=name, advice=name)
    told = content("slack", hostile)
    texts = [told["text"], *(part[field] for part in told["attachments"] for field in ("title", "text", "fallback", "footer"))]
    for text in texts:
        assert "<" not in text
        assert "@channel" not in re.sub("`[^`]*`", "", text)
        assert "\x1b" not in text
        assert "\u202e" not in text
        assert len(text) < 6_000
    assert told["text"].count("`") == 4


@given(st.builds(Finding, occurred_ms=st.integers(0, 4_000_000_000_000), details=st.just("{}"), generation=st.none()))
def test_whatever_a_finding_says_every_form_can_tell_it(one):
    for form in ("slack", "json", "alertmanager"):
        assert content(form, one, now_ms=0)


def test_severities_of_newer_versions_are_wanted():
    assert wanted_by(receiver("json"), replace(ONE, severity="FATAL"))
    assert not wanted_by(receiver("json"), replace(ONE, severity="WARNING"))


def test_the_page_of_alerts_shows_the_form_that_is_posted():
    page = (Path(__file__).parents[2] / "docs" / "alerts.md").read_text(encoding="utf-8")
    assert all(f"`{name}`" in page for name in content("json", ONE)["findings"][0])
    (alert,) = content("alertmanager", ONE)
    assert all(f"`{name}`" in page for name in [*alert["labels"], *alert["annotations"]])
