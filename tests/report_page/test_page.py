"""The report as a page, over small tables written by hand: no JVM."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from datetime import timedelta

import pytest

from jobs.answers.attention import AttentionEntry
from jobs.answers.report import Scope, read_report
from jobs.cli import entry
from jobs.common import exit_codes
from jobs.common.times import EPOCH
from jobs.report_page.incidents import headline
from jobs.report_page.page import render_page
from tests.lakehouse.rows import DAY, MEMBER, empty_lakehouse, finding, line, provisional, rebalance, row, transition, write
from tests.report_page.page import Page

pytestmark = pytest.mark.slow

HOSTILE = "</script>\"'><img src=//x onerror=x>&amp;\u202eevil\x1b[31m</title></style>-->"


def hostile(where):
    """A name of a client, say, that wants to be part of the page."""
    return f"<script>{where}{HOSTILE}"


SERVER_LOG = "[2026-11-21 00:00:20,000] INFO Member {member} in group payments has failed, removing it (x) <b>&amp;\n"


@pytest.fixture
def lakehouse(tmp_path):
    return empty_lakehouse(tmp_path / "lake")


def member(name, joined, ended, end_kind="SESSION_TIMEOUT", **values):
    known = {"group_id": "payments", "member_id": name, "client_id": "app-1", "joined_at": DAY + joined, "ended_at": DAY + ended}
    return row("member_sessions", **known | {"end_kind": end_kind, "client_host": "10.0.0.7"} | values)


def page_of(lakehouse, inputs=(), limit=200, **scope):
    return Page(render_page(lakehouse, read_report(lakehouse, Scope(**scope), limit=limit), list(inputs), limit=limit))


def incident(lakehouse, cluster="c", **values):
    """A member goes silent; its group rebalances without it."""
    evidence = json.dumps([{"source": "coordinator", "origin": "broker-1/server.log", "position": 1}])
    known = {"occurred_at": DAY + 20_000, "member_id": MEMBER, "client_id": "app-1", "client_host": "10.0.0.7", "evidence": evidence}
    details = json.dumps({"silent_ms": 9_000, "session_timeout_ms": 9_000})
    rows = (
        line(),
        line(at=20_000, origin="broker-1/server.log", position=1, source="coordinator"),
        line(at=90_000),
        transition("Stable", 1_000, 1),
        transition("PreparingRebalance", 20_000, 1),
        transition("Stable", 23_000, 2),
        rebalance(
            start=20_000, total=3_000, generation=2, cause="SESSION_TIMEOUT", member_id=MEMBER, client_id="app-1", client_host="10.0.0.7",
            join_ms=2_990, sync_ms=10, members_before=3, members_after=2, unavailable_partition_ms=80_000, partitions=6, partitions_moved=2,
        ),
        member(MEMBER, 1_000, 20_000),
        finding(**known | {"details": details} | values),
    )  # fmt: skip
    write(lakehouse, *({**each, "cluster": cluster} for each in rows))


def test_a_page_says_what_happened_to_whom_what_it_cost_and_what_to_do(lakehouse):
    incident(lakehouse)
    page = page_of(lakehouse)
    head = page.text[: page.text.index("Each group")]
    sentence = "payments: It went silent. 00:00:20 UTC app-1@10.0.0.7 d5592b52 1 rebalance, 3.0 s of rebalancing, 1 min 20 s"
    assert sentence in head[: head.index("All groups over time")]
    assert head.index("All groups over time") < head.index("What needs attention")
    assert "2026-11-21 00:00:00 to 00:01:30 UTC (1 min 30 s)" in head
    assert "1 error in 1 of 1 group; 1 rebalance besides start-ups, 3.0 s of rebalancing" in head
    assert "1. ERROR SESSION_TIMEOUT payments 00:00:20 UTC What It went silent. Who app-1@10.0.0.7 d5592b52 Cost 1 rebalance" in head
    assert "Advice Look at it." in page.text
    assert "1 rebalance, 3.0 s of rebalancing, 1 min 20 s of unowned partition time (sum)" in page.text
    assert (
        "00:00:20.000 F SESSION_TIMEOUT app-1@10.0.0.7 d5592b52 3.0 s 3.0 s + 10 ms 1 min 20 s 2 of 6 3 → 2 COMPLETED 2 r"
        in page.text
    )  # fmt: skip


def test_pictures_show_members_silences_states_and_who_began_a_rebalance(lakehouse):
    incident(lakehouse)
    page = page_of(lakehouse)
    for title in (
        "member d5592b52 from 00:00:01.000, SESSION_TIMEOUT 00:00:20.000",
        "silent for 9.0 s",
        "PreparingRebalance from 00:00:20.000, 3.0 s",
        "00:00:20.000 SESSION_TIMEOUT by app-1@10.0.0.7 d5592b52, 3.0 s, 1 min 20 s of unowned partition time (sum), COMPLETED",
        "00:00:20.000 ERROR SESSION_TIMEOUT app-1@10.0.0.7 (incident 1)",
    ):
        assert f"<title>{title}</title>" in page.source
        assert any(title in spoken for spoken in page.attributes), "a screen reader does not say it"


def test_what_overlaps_of_one_client_has_a_lane_each(lakehouse):
    incident(lakehouse)
    write(lakehouse, member("app-1-other", 10_000, 60_000, "LEFT"), member("app-1-third", 61_000, 70_000, "LEFT"), batch=1)
    lanes = re.findall(r'<div class="lname">(app-1[^<]*)</div>', page_of(lakehouse).source)
    assert set(lanes) == {"app-1@10.0.0.7", "app-1@10.0.0.7 (2)"}


def test_a_broker_that_was_away_is_a_band_through_all_groups(lakehouse):
    moved = {"code": "COORDINATOR_MOVED", "severity": "WARNING"}
    there, back = ({"from_broker": a, "to_broker": b} for a, b in (("b3", "b1"), ("b1", "b3")))
    write(
        lakehouse,
        line(),
        line(at=90_000),
        *(rebalance(group=group, start=20_000, cause="COORDINATOR_MOVED") for group in ("payments", "orders")),
        *(finding(group_id=group, occurred_at=DAY + 15_000, details=json.dumps(there), **moved) for group in ("payments", "orders")),
        *(finding(group_id=group, occurred_at=DAY + 40_000, details=json.dumps(back), **moved) for group in ("payments", "orders")),
    )
    page = page_of(lakehouse)
    assert "b3 away 00:00:15 to 00:00:40 (incident 1)" in page.text
    assert page.source.count('class="s away"') > 2


def test_every_link_leads_to_a_place_in_the_page(lakehouse):
    incident(lakehouse)
    page = page_of(lakehouse)
    assert {link[1:] for link in page.links} <= set(page.ids)
    assert {link[0] for link in page.links} == {"#"}


def test_a_page_loads_nothing(lakehouse):
    incident(lakehouse)
    page = page_of(lakehouse)
    assert not {"link", "img", "iframe", "object", "embed", "base", "image", "audio", "video", "form"} & set(page.tags)
    assert re.findall(r"https?:|//\w|@import|url\((?!#)", page.source.split("<script>")[0]) == []
    (script,) = re.findall(r"<script>(.*?)</script>", page.source, re.DOTALL)
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    (policy,) = (value for value in page.attributes if value.startswith("default-src"))
    assert policy.startswith("default-src 'none';")
    assert f"script-src 'sha256-{digest}';" in policy


def test_hostile_names_are_shown_and_do_nothing(lakehouse, tmp_path):
    logs = tmp_path / "logs" / "broker-1"
    logs.mkdir(parents=True)
    (logs / "server.log").write_text(SERVER_LOG.format(member=hostile("line")), "utf-8")
    cluster, group = hostile("cluster"), hostile("group")
    incident(lakehouse, cluster, group_id=group, message=hostile("message"), advice=hostile("advice"), client_host=hostile("host"))
    rows = (
        line(group=group),
        rebalance(group=group, start=30_000, reason=hostile("reason"), client_id=hostile("culprit"), member_id=hostile("id")),
        member(hostile("member"), 1_000, 20_000, group_id=group, client_id=hostile("client"), instance_id=hostile("instance")),
    )
    write(lakehouse, *({**each, "cluster": cluster} for each in rows), batch=1)
    page = page_of(lakehouse, [tmp_path / "logs"])
    assert page.tags.count("script") == 1
    assert "img" not in page.tags
    assert not {"\u202e", "\x1b"} & set(page.source)
    for where in ("group", "message", "advice", "host", "reason", "culprit", "client", "cluster", "line"):
        assert f"<script>{where}" in page.text, "it is not shown"


def test_log_lines_that_prove_an_incident_are_in_the_page(lakehouse, tmp_path):
    logs = tmp_path / "logs" / "broker-1"
    logs.mkdir(parents=True)
    (logs / "server.log").write_text(SERVER_LOG.format(member=MEMBER), "utf-8")
    incident(lakehouse)
    page = page_of(lakehouse, [tmp_path / "logs"])
    assert f"broker-1/server.log:1 {SERVER_LOG.format(member=MEMBER).strip()}" in page.text
    (logs / "server.log").write_text("another line\n", "utf-8")
    assert "Not found: the file is gone, or holds another line at this place." in page_of(lakehouse, [tmp_path / "logs"]).text


def test_without_logs_a_page_says_where_the_lines_are(lakehouse):
    incident(lakehouse)
    text = page_of(lakehouse).text
    assert "The log lines are not shown: the lakehouse does not record where its logs are" in text
    assert re.search(r"broker-1/server.log:1 rebalance evidence f[0-9a-f]{11} shows it", text)


def test_rounds_of_the_consumer_protocol_and_provisional_rows_are_told(lakehouse):
    consumer = {"group_protocol": "consumer", "generation": 6, "first_epoch": 5, "rounds": 2, "cause": "MEMBER_JOINED"}
    write(
        lakehouse,
        line(),
        line(at=90_000),
        rebalance(start=20_000, **consumer),
        *(
            row("rebalance_rounds", group_id="payments", generation=6, epoch=epoch, started_at=DAY + 20_000 + epoch, cause="MEMBER_JOINED",
                superseded=epoch == 5, client_id="app-1")
            for epoch in (5, 6)
        ),
        provisional(start=60_000, generation=7),
    )  # fmt: skip
    text = page_of(lakehouse).text
    assert "Epoch 5 at 00:00:20.005: app-1 joined. Epoch 6 followed before all members had the new assignment." in text
    assert "Epoch 6 at 00:00:20.006: app-1 joined. No line shows when all members had the new assignment." in text
    assert "provisional: it waits for ANSWERS" in text


def test_lists_are_bounded_and_say_so(lakehouse):
    write(
        lakehouse,
        line(),
        line(at=90_000),
        *(rebalance(group=f"g{number}", start=1_000 * number, unavailable_partition_ms=number) for number in range(8)),
        *(finding(group_id=f"g{number}", occurred_at=DAY + 1_000 * number, client_id="c") for number in range(8)),
    )
    text = page_of(lakehouse, limit=3).text
    assert "… and 5 more incidents: --limit 8 shows all" in text
    assert "incidents: " not in text.partition("more incidents: ")[0]
    assert "3 of 8 rebalances are shown, those that cost most: --limit 8 shows all" in text


def test_the_list_at_the_top_has_eight_incidents_and_a_link_to_all(lakehouse):
    found = (finding(group_id=f"g{number}", occurred_at=DAY + 1_000 * number) for number in range(9))
    write(lakehouse, line(), line(at=90_000), *found)
    page = page_of(lakehouse)
    assert page.source.partition('<details id="all">')[0].count("<article") == 8
    assert "and 8 more incidents" in page.text
    assert "All 9 incidents: 1 more" in page.text
    assert page.source.count("<article") == 9


def test_the_axis_begins_where_something_happens(lakehouse):
    """The start-up an hour before is not: it would leave most of the picture empty."""
    incident(lakehouse)
    write(lakehouse, line(at=-3_600_000), rebalance(start=-3_600_000, total=500, members_before=0), batch=1)
    assert "All groups, 2026-11-21 00:00:18 to 00:00:25 UTC" in page_of(lakehouse).text


def test_a_broker_that_crashed_is_told_in_one_sentence():
    row = {
        "broker": "broker-3", "cause": "BROKER_CRASHED", "began_at": EPOCH, "back_at": EPOCH + timedelta(seconds=50), "groups_moved": 11,
        "groups_held_up": 1, "members_lost": ["a", "b"], "message": "broker-3 crashed or was killed: it found no file; it was there again.",
    }  # fmt: skip
    entry = AttentionEntry([], row)
    told = "broker-3 crashed or was killed, back after 50.0 s: 11 groups moved, 1 group had to wait, 2 members were removed."
    assert headline(entry) == told
    row |= {"back_at": None, "groups_held_up": 0, "members_lost": []}
    assert headline(entry) == "broker-3 crashed or was killed: 11 groups moved."
    row |= {
        "cause": "COORDINATOR_MOVED",
        "message": "11 groups moved from broker-3 to broker-1. 1 member was removed.",
        "members_lost": ["a"],
    }
    assert headline(entry) == "11 groups moved from broker-3 to broker-1; 1 member was removed."


def test_a_large_page_stays_below_3_mb(lakehouse, tmp_path):
    logs = tmp_path / "logs" / "broker-1"
    logs.mkdir(parents=True)
    (logs / "server.log").write_text("".join(f"[2026-11-21 00:00:00,000] INFO {'<' * 3_000} (x)\n" for _ in range(300)), "utf-8")
    evidence = [json.dumps([{"source": "coordinator", "origin": "broker-1/server.log", "position": at}]) for at in range(1, 301)]
    numbers = range(300)
    write(
        lakehouse,
        line(),
        line(at=900_000),
        *(line(origin="broker-1/server.log", position=number + 1, source="coordinator") for number in numbers),
        *(rebalance(group=f"g{number}", start=1_000 * number, reason="r" * 300, client_id="c" * 100) for number in numbers),
        *(rebalance(group="storm", start=1_000 * number) for number in range(1_000)),
        *(finding(group_id=f"g{number}", message="m" * 600, advice="a" * 600, evidence=evidence[number]) for number in numbers),
        *(member(f"m{number}", 1_000 * number, 1_000 * number + 500, group_id=f"g{number % 10}") for number in range(3_000)),
    )
    page = page_of(lakehouse, [tmp_path / "logs"])
    assert len(page.source.encode()) < 3_000_000
    assert "… and" in page.text


def test_a_calm_lakehouse_says_that_nothing_needs_attention(lakehouse):
    write(lakehouse, line(), line(at=90_000), rebalance(members_before=0), transition("Stable", 2_000, 1))
    text = page_of(lakehouse).text
    assert "Nothing needs attention in 1 group: payments." in text
    assert "(1 group, 1 rebalance, 1 start-up among them.)" in text
    assert "Quiet (1): payments." in text


def test_a_page_says_what_could_not_be_judged(lakehouse):
    write(lakehouse, line(broker="clients", source="client"), line(at=90_000, broker="clients", source="client"))
    text = page_of(lakehouse).text
    assert "Nothing needs attention" not in text
    assert "Quiet" not in text
    assert "What could not be judged, and what would tell (1)" in text
    assert "payments: only application logs name it" in text


def test_a_time_without_data_and_an_empty_lakehouse_are_told(lakehouse, capsysbinary):
    assert entry.main(["report", "--lakehouse", str(lakehouse), "--format", "html"]) == 0
    assert "Nothing to report: no line was read yet." in Page(capsysbinary.readouterr().out.decode()).text
    incident(lakehouse)
    assert "The data is from 2026-11-21 00:00:00" in page_of(lakehouse, since="2027-01-01").text
    assert entry.main(["report", "--lakehouse", str(lakehouse), "--format", "html", "--group", "payment"]) == 0
    assert "The logs do not mention group payment. Did you mean payments?" in Page(capsysbinary.readouterr().out.decode()).text


def test_the_time_that_was_asked_for_is_shown(lakehouse):
    incident(lakehouse)
    page = page_of(lakehouse, group="payments", since="2026-11-21T00:00:10", until="2026-11-21T00:00:30")
    assert "Shown: group payments from 2026-11-21 00:00:10 UTC to 2026-11-21 00:00:30 UTC" in page.text
    assert "00:00:22" in page.text
    assert "00:01:00" not in page.text


def test_the_same_tables_give_the_same_page(lakehouse):
    incident(lakehouse)
    assert page_of(lakehouse).source == page_of(lakehouse).source


@pytest.mark.parametrize(
    ("severity", "fail_on", "code"),
    [
        ("ERROR", "error", exit_codes.NEEDS_ATTENTION),
        ("ERROR", "warning", exit_codes.NEEDS_ATTENTION),
        ("WARNING", "error", exit_codes.DONE),
        ("WARNING", "warning", exit_codes.NEEDS_ATTENTION),
        ("INFO", "warning", exit_codes.DONE),
        ("ERROR", None, exit_codes.DONE),
    ],
)
def test_fail_on_ends_with_a_code_of_its_own(lakehouse, severity, fail_on, code):
    incident(lakehouse, severity=severity)
    assert entry.main(["report", "--lakehouse", str(lakehouse), *(["--fail-on", fail_on] if fail_on else [])]) == code


def test_fail_on_tells_what_was_not_judged_from_what_is_well(lakehouse):
    arguments = ["report", "--lakehouse", str(lakehouse), "--fail-on", "error"]
    assert entry.main(arguments) == exit_codes.NOT_JUDGED
    write(lakehouse, line())
    assert entry.main(arguments) == exit_codes.NOT_JUDGED
    write(lakehouse, transition("Stable", 0, 1))
    assert entry.main(arguments) == exit_codes.DONE
    assert entry.main([*arguments, "--since", "2027-01-01"]) == exit_codes.NOT_JUDGED


def test_fail_on_ends_after_the_whole_report(lakehouse, capsysbinary):
    incident(lakehouse)
    for form, end in (("json", b"}\n"), ("html", b"</html>\n")):
        assert entry.main(["report", "--lakehouse", str(lakehouse), "--format", form, "--fail-on", "error"]) == exit_codes.NEEDS_ATTENTION
        assert capsysbinary.readouterr().out.endswith(end)
