"""The report as one HTML file, over small tables written by hand: no JVM."""

import base64
import hashlib
import json
import re
from datetime import timedelta

import pytest

from jobs.answers.attention import AttentionEntry
from jobs.answers.attention_words import title
from jobs.answers.report import Scope, read_report
from jobs.cli import entry
from jobs.cli import report as command
from jobs.common import exit_codes, store_clients
from jobs.common.stores import copy_tree
from jobs.common.times import EPOCH
from jobs.lakehouse import reader
from tests.dashboard import saved_page
from tests.dashboard.saved_page import Page
from tests.lab.store_proxy import StoreProxy
from tests.lakehouse.rows import DAY, MEMBER, empty_lakehouse, finding, line, rebalance, row, transition, write

pytestmark = pytest.mark.slow

HOSTILE = "</script>\"'><img src=//x onerror=x>&amp;\u202eevil\x1b[31m</title></style>-->"


def hostile(where):
    """A name of a client, say, that wants to be part of the page."""
    return f"<script>{where}{HOSTILE}"


SERVER_LOG = "[2026-11-21 00:00:20,000] INFO Member {member} in group payments has failed, removing it (x) <b>&amp;\n"


def member(name, joined, ended, end_kind="SESSION_TIMEOUT", **values):
    known = {"group_id": "payments", "member_id": name, "client_id": "app-1", "joined_at": DAY + joined, "ended_at": DAY + ended}
    return row("member_sessions", **known | {"end_kind": end_kind, "client_host": "10.0.0.7"} | values)


def page_of(lakehouse, inputs=(), limit=200, **scope):
    return saved_page.page_of(lakehouse, read_report(lakehouse, Scope(**scope), limit=limit), inputs, limit)


def incident(lakehouse, cluster="c", batch=0, **values):
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
    write(lakehouse, *({**each, "cluster": cluster} for each in rows), batch=batch)


@pytest.fixture(scope="module")
def told(tmp_path_factory):
    """A lakehouse of that, which nobody writes to."""
    lakehouse = empty_lakehouse(tmp_path_factory.mktemp("told") / "lake")
    incident(lakehouse)
    return lakehouse


@pytest.fixture(scope="module")
def page(told):
    """Its page."""
    return page_of(told)


def test_a_page_holds_what_happened_to_whom_what_it_cost_and_what_to_do(page):
    (one,) = page.entries
    assert (one["severity"], one["code"], one["groups"], one["subject"]) == ("ERROR", "SESSION_TIMEOUT", ["payments"], "payments")
    assert (one["title"], one["clients"]) == ("app-1 missed the session timeout", "app-1@10.0.0.7")
    assert (one["message"], one["advice"]) == ("It went silent.", "Look at it.")
    assert one["cost"] == "1 rebalance, 3.0 s of rebalancing, 1 min 20 s of unowned partition time (sum)"
    (group,) = page.at("group?")
    assert [row["blamed"] for row in group["rebalances"]["rows"]] == ["SESSION_TIMEOUT"]
    assert [row["end_kind"] for row in group["members"]["rows"]] == ["SESSION_TIMEOUT"]
    (rebalance,) = page.at("rebalance?")
    assert rebalance["rebalance"]["id"] == group["rebalances"]["rows"][0]["id"]
    assert [row["code"] for row in rebalance["findings"]] == ["SESSION_TIMEOUT"]


def test_without_scripts_a_page_is_the_report_as_text(page):
    text = page.text
    assert "What needs attention (1 error), 2026-11-21 UTC Broker failures first" in text
    assert " 1. ERROR app-1 missed the session timeout SESSION_TIMEOUT payments 00:00:20" in text
    assert "Cost 1 rebalance, 3.0 s of rebalancing, 1 min 20 s of unowned partition time (sum) Advice Look at it." in text
    assert "00:00:20.000 2 SESSION_TIMEOUT app-1@10.0.0.7 d5592b52" in text


def test_a_broker_that_groups_left_has_a_lane_of_its_own(lakehouse):
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
    away = {"from": DAY + 15_000, "to": DAY + 40_000, "text": "groups left b3", "broker": "b3"}
    assert page_of(lakehouse).entries[0]["away"] == away


def test_a_page_loads_nothing(page):
    assert not {"link", "img", "iframe", "object", "embed", "base", "image", "audio", "video"} & set(page.tags)
    scripts = re.findall(r"<script>(.*?)</script>", page.source, re.DOTALL)
    digests = [base64.b64encode(hashlib.sha256(script.encode()).digest()).decode() for script in scripts]
    assert len(digests) == 2
    assert not re.findall(r"@import|url\(", "".join(re.findall(r"<style>(.*?)</style>", page.source, re.DOTALL)))
    (policy,) = (value for value in page.attributes if value.startswith("default-src"))
    assert policy.startswith("default-src 'none';")
    allowed = " ".join(f"'sha256-{digest}'" for digest in digests)
    assert f"script-src {allowed};" in policy


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
    assert page.tags.count("script") == 3  # the theme, the answers, the modules
    assert "img" not in page.tags
    assert not {"\u202e", "\x1b"} & set(page.source)
    for where in ("group", "message", "advice", "host", "culprit", "cluster"):
        assert f"<script>{where}" in page.text, "it is not shown"
    for where in ("group", "message", "advice", "host", "reason", "culprit", "client", "cluster", "line"):
        assert f"<script>{where}" in json.dumps(page.answers), "it is not held"


def test_log_lines_that_prove_an_incident_are_in_the_page(lakehouse, tmp_path):
    logs = tmp_path / "logs" / "broker-1"
    logs.mkdir(parents=True)
    (logs / "server.log").write_text(SERVER_LOG.format(member=MEMBER), "utf-8")
    incident(lakehouse)
    page = page_of(lakehouse, [tmp_path / "logs"])
    (line,) = page.answers[f"evidence/{page.entries[0]['id']}"]["lines"]
    assert (line["place"], line["text"]) == ("broker-1/server.log:1", SERVER_LOG.format(member=MEMBER).strip())
    (logs / "server.log").write_text("another line\n", "utf-8")
    page = page_of(lakehouse, [tmp_path / "logs"])
    assert page.answers[f"evidence/{page.entries[0]['id']}"]["lines"][0]["text"] is None


def test_without_logs_a_page_says_why_there_are_no_lines(page):
    told = page.answers[f"evidence/{page.entries[0]['id']}"]["problem"]
    assert told.startswith("the lakehouse does not record where its logs are")


def test_it_has_pages_of_the_groups_and_rebalances_that_cost_most(lakehouse):
    write(
        lakehouse,
        line(),
        line(at=90_000),
        *(line(group=f"g{number}") for number in range(8)),
        *(rebalance(group=f"g{number}", start=1_000 * number, unavailable_partition_ms=number) for number in range(8)),
    )
    page = page_of(lakehouse, limit=3)
    assert [one["about"]["rows"][0]["group_id"] for one in page.at("group?")] == ["g7", "g6", "g5"]
    assert [one["rebalance"]["group_id"] for one in page.at("rebalance?")] == ["g7", "g6", "g5"]
    assert len(page.answers["overview"]["lanes"]) == 8


def test_a_broker_that_crashed_is_told_in_one_sentence():
    row = {
        "broker": "broker-3", "cause": "BROKER_CRASHED", "began_at": EPOCH, "back_at": EPOCH + timedelta(seconds=50), "groups_moved": 11,
        "groups_held_up": 1, "members_lost": ["a", "b"], "message": "broker-3 crashed or was killed: it found no file; it was there again.",
    }  # fmt: skip
    entry = AttentionEntry([], row)
    told = "broker-3 crashed or was killed, back after 50.0 s: at least 11 groups moved and 1 group got no answer in time;"
    assert title(entry) == f"{told} 2 members were removed"
    row |= {"back_at": None, "groups_held_up": 0, "members_lost": []}
    assert title(entry) == "broker-3 crashed or was killed: at least 11 groups moved"
    row |= {
        "cause": "COORDINATOR_MOVED",
        "message": "11 groups moved from broker-3 to broker-1. 1 member was removed.",
        "members_lost": ["a"],
    }
    assert title(entry) == "11 groups moved from broker-3 to broker-1; 1 member was removed"


@pytest.mark.long
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
    page = page_of(lakehouse, [tmp_path / "logs"], command.PAGE_LIMIT)
    assert len(page.source.encode()) < 3_000_000
    assert "… and" in page.text


def test_a_calm_lakehouse_says_that_nothing_needs_attention(lakehouse):
    write(lakehouse, line(), line(at=90_000), rebalance(members_before=0), transition("Stable", 2_000, 1))
    page = page_of(lakehouse)
    assert "Nothing needs attention in 1 group: payments." in page.text
    assert page.answers["overview"]["calm"].startswith("Nothing needs attention in 1 group: payments.")
    assert page.answers["overview"]["all_clear"]


def test_a_page_says_what_could_not_be_judged(lakehouse):
    write(lakehouse, line(broker="clients", source="client"), line(at=90_000, broker="clients", source="client"))
    page = page_of(lakehouse)
    assert "Nothing needs attention" not in page.text
    (gap,) = page.answers["overview"]["gaps"]
    assert gap["why"].startswith("payments: only application logs mention it")
    assert not page.answers["overview"]["all_clear"]


def test_a_time_without_data_and_an_empty_lakehouse_are_told(lakehouse, capsysbinary):
    assert entry.main(["report", "--lakehouse", str(lakehouse), "--format", "html"]) == 0
    assert "Nothing to report: no line was read yet." in Page(capsysbinary.readouterr().out.decode()).text
    incident(lakehouse)
    assert "The data is from 2026-11-21 00:00:00" in page_of(lakehouse, since="2027-01-01").text
    assert entry.main(["report", "--lakehouse", str(lakehouse), "--format", "html", "--group", "payment"]) == 0
    assert "The logs do not mention group payment. Did you mean payments?" in Page(capsysbinary.readouterr().out.decode()).text


def test_the_time_that_was_asked_for_is_shown(told):
    page = page_of(told, group="payments", since="2026-11-21T00:00:10", until="2026-11-21T00:00:30")
    assert "Shown: from 2026-11-21 00:00:10 UTC to 2026-11-21 00:00:30 UTC" in page.text
    assert page.answers["overview"]["shown"] == {"since": DAY + 10_000, "until": DAY + 30_000}
    assert page.answers["overview"]["period"] == {"from": DAY + 18_000, "to": DAY + 25_000}


def test_the_page_of_one_group_says_nothing_of_others_and_its_time_begins_where_something_happens(lakehouse):
    """A start-up an hour before is not what happens: it would leave most of the picture empty."""
    incident(lakehouse)
    earlier = line(at=-3_600_000), rebalance(start=-3_600_000, total=500, members_before=0)
    write(lakehouse, *earlier, line(group="orders"), rebalance(group="orders", start=30_000, client_id="other"), batch=1)
    overview = page_of(lakehouse, group="payments").answers["overview"]
    assert {lane["group_id"] for lane in overview["lanes"]} == {"payments"}
    assert [row["client_id"] for row in overview["culprits"]["rows"]] == ["app-1"]
    assert overview["period"] == {"from": DAY + 18_000, "to": DAY + 25_000}
    assert "orders" not in json.dumps([overview["entries"], overview["activity"], overview["deploys"]])


def test_the_same_tables_give_the_same_page(told, page):
    assert page_of(told).source == page.source


def test_fail_on_ends_with_a_code_of_its_own_after_the_whole_report(lakehouse, capsysbinary):
    for batch, severity in enumerate(("ERROR", "WARNING", "INFO")):
        incident(lakehouse, severity, batch, severity=severity)
    for cluster, fail_on, code in (
        ("ERROR", "error", exit_codes.NEEDS_ATTENTION),
        ("ERROR", "warning", exit_codes.NEEDS_ATTENTION),
        ("WARNING", "error", exit_codes.DONE),
        ("WARNING", "warning", exit_codes.NEEDS_ATTENTION),
        ("INFO", "warning", exit_codes.DONE),
    ):
        arguments = ["report", "--lakehouse", str(lakehouse), "--cluster", cluster, "--fail-on", fail_on]
        assert entry.main(arguments) == code, (cluster, fail_on)
    assert entry.main(["report", "--lakehouse", str(lakehouse)]) == exit_codes.DONE
    capsysbinary.readouterr()
    for form, end in (("json", b"}\n"), ("html", b"</html>\n")):
        assert entry.main(["report", "--lakehouse", str(lakehouse), "--format", form, "--fail-on", "error"]) == exit_codes.NEEDS_ATTENTION
        assert capsysbinary.readouterr().out.endswith(end)


def test_fail_on_tells_what_was_not_judged_from_what_is_well(lakehouse):
    arguments = ["report", "--lakehouse", str(lakehouse), "--fail-on", "error"]
    assert entry.main(arguments) == exit_codes.NOT_JUDGED
    write(lakehouse, line())
    assert entry.main(arguments) == exit_codes.NOT_JUDGED
    write(lakehouse, transition("Stable", 0, 1))
    assert entry.main(arguments) == exit_codes.DONE
    assert entry.main([*arguments, "--since", "2027-01-01"]) == exit_codes.NOT_JUDGED


def test_a_page_from_a_store_reads_each_table_once(recorded_lakehouse, store, on_store, monkeypatch):
    """Its views are asked for each group: each would read the same parts of the same files again."""
    copy_tree(recorded_lakehouse("recordings/kafka-4.2.0"), on_store, without=lambda name: name == "_checkpoints")
    monkeypatch.setattr(reader, "_SMALL_BYTES", 0)  # where events are few, tables on a disk are read once, too
    with StoreProxy(store.endpoint) as proxy:
        monkeypatch.setenv("AWS_ENDPOINT_URL", proxy.endpoint)
        store_clients.forget()
        page_of(on_store, limit=10)
        assert proxy.counts()["GET"] <= 300
    monkeypatch.undo()
    store_clients.forget()
