"""The report over small tables written by hand: no JVM."""

import io
import json
import re

import pytest
from rich.console import Console

from jobs.answers import report
from jobs.answers.incidents.bills import Records
from jobs.cli import entry
from jobs.cli.output.report_text import LIMIT, render
from jobs.common.errors import LakehouseError
from jobs.common.exit_codes import UNUSABLE
from jobs.common.text import printable, short_member, who
from jobs.common.times import duration, instant
from jobs.health import status
from jobs.lakehouse import locks, reader
from jobs.lakehouse.folder import Lakehouse
from jobs.pipeline.tracking import track
from schemas.tables import TABLES, TRACK_TABLES
from tests.answers.asking import asked, reader_of
from tests.lakehouse.rows import DAY, HOSTILE, MEMBER, finding, line, rebalance, row, transition, write

pytestmark = pytest.mark.slow

WAITS = {"waits_for", "awaited", "awaited_unnamed", "limit_ms", "broker"}
CULPRIT = {"began_with", "blamed", "culprit_broker", "culprit_client_id", "culprit_client_host", "culprit_member_id", "finding_id"}
RECORDS = set(Records().figures())


def text(lakehouse, *, terminal=None, limit=LIMIT, **scope):
    out = io.StringIO()
    console = Console(file=out, width=terminal or 80, force_terminal=terminal is not None, color_system=None)
    render(report.read_report(reader_of(lakehouse), report.Scope(**scope), limit=limit), console, limit=limit)
    return out.getvalue()


def as_json(lakehouse, **scope):
    return json.loads(report.to_json(report.read_report(reader_of(lakehouse), report.Scope(**scope))))


def run(capsys, *arguments):
    """What `rebalance report` prints on standard output and on stderr."""
    assert entry.main(["report", "--lakehouse", *map(str, arguments)]) == 0
    return capsys.readouterr()


def test_what_is_no_broker_is_not_called_one(lakehouse):
    write(lakehouse, line(broker="b1"), line(at=1_000, broker="b1"), line(at=2_000, broker="clients"), line(at=3_000, broker="offsets"))
    assert "  Brokers b1\n  Also    client logs, records of __consumer_offsets\n" in text(lakehouse)


def test_a_cluster_may_have_no_broker_that_one_can_read(lakehouse):
    write(lakehouse, line(broker="poll"), line(at=1_000, broker="poll"))
    assert "  From    polls\n" in text(lakehouse)


def test_a_report_names_cause_culprit_and_duration(lakehouse):
    write(
        lakehouse,
        line(),
        line(at=90_000),
        row("input_lines", broker="b1", lines_read=1_000, skipped=900, events=99, quarantined=1),
        transition("PreparingRebalance", 1_000, 0),
        transition("CompletingRebalance", 3_000, 1),
        transition("Stable", 3_000, 1),
        rebalance(
            start=1_000, join_ms=2_000, sync_ms=0, member_id=MEMBER, client_id="app-1", client_host="/10.0.0.7",
            members_before=1, members_after=3, unavailable_partition_ms=80_000,
        ),
        finding(occurred_at=DAY + 5_000, member_id=MEMBER, client_id="app-1"),
    )  # fmt: skip
    shown = text(lakehouse)
    assert "2026-11-21 00:00:00.000 to 2026-11-21 00:01:30.000 UTC (1 min 30 s)" in shown
    assert "1,000 read: 900 unrelated, 99 events, 1 unreadable" in shown
    assert re.search(r"payments +1 min 20 s +2\.0 s +1 +MEMBER_JOINED +Stable +3\n", shown)
    assert re.search(
        r"00:00:01\.000 +1 +MEMBER_JOINED +app-1@10\.0\.0\.7 d5592b52 +2\.0 s +0 ms +2\.0 s +1 min 20 s +- +1 > 3 +COMPLETED\n", shown
    )
    assert re.search(r"d5592b52 +2\.0 s +0 ms +2\.0 s +1 min 20 s +- +1 > 3 +COMPLETED\n", text(lakehouse, terminal=160))
    assert re.search(r"SESSION_TIMEOUT  payments  00:00:05 \(id f[0-9a-f]{11}\)\n", shown)
    assert "Who     app-1" in shown
    assert "Advice  Look at it." in shown
    assert shown.index("What needs attention") < shown.index("Groups (1)") < shown.index("Rebalances (1)")


def test_a_lakehouse_without_groups_says_so_in_a_line_with_what_to_do(lakehouse, capsys):
    said = run(capsys, lakehouse).out
    assert said == "Nothing to report: no line was read yet. `rebalance run --input LOGS --lakehouse LAKE --once` reads a folder of logs.\n"
    write(lakehouse, line(group=None), row("input_lines", broker="b1", lines_read=1_000, skipped=900, events=99, quarantined=1))
    said = run(capsys, lakehouse).out
    assert said.startswith("Nothing to report: 1,000 lines were read and none names a consumer group; 1 could not be read (`rebalance ask")
    assert "docs/capture.md" in said
    assert said.count("\n") == 1
    said = run(capsys, lakehouse, "--format", "json")
    assert json.loads(said.out)["groups"] == []
    assert "Nothing to report" in said.err


def test_the_first_micro_batch_is_waited_for(tmp_path, lakehouse, capsys):
    house = Lakehouse(lakehouse)
    with locks.held(house.lock, "busy"):
        said = run(capsys, lakehouse).out
        assert said.startswith("Nothing yet: no line read; `rebalance run` is processing its first micro-batch: ask again in a minute")
        queries = (status.QueryStatus("ingest", active=True, finished_ms=5),)
        status.write(house.status, status.Status(1, status.RUNNING, once=False, started_ms=1, at_ms=5, queries=queries))
        write(lakehouse, row("input_lines", broker="b1", lines_read=7, skipped=7))
        said = run(capsys, lakehouse).out
        assert said.startswith("Nothing yet: 7 lines read, none of them names a consumer group; `rebalance run` is running: ask again")
    new = tmp_path / "new"
    new.mkdir()
    with locks.held(Lakehouse(new).lock, "busy"):
        assert entry.main(["report", "--lakehouse", str(new)]) == UNUSABLE
        assert "no table group_events in it; `rebalance run` is processing its first micro-batch" in capsys.readouterr().err


def test_a_name_that_no_line_has_is_said_with_one_that_is_near(lakehouse, capsys):
    write(lakehouse, line("payments"))
    assert run(capsys, lakehouse, "--group", "paiments").out == "The logs do not mention group paiments. Did you mean payments?\n"
    assert run(capsys, lakehouse, "--group", "no\nsuch").out == "The logs do not mention group no\\nsuch.\n"
    assert run(capsys, lakehouse, "--cluster", "d").out == "The logs do not mention cluster d.\n"


def test_a_healthy_group_has_no_findings_and_no_rebalances(lakehouse):
    write(lakehouse, line(), line(at=90_000), transition("Stable", 0, 1))
    shown = text(lakehouse)
    assert "No rebalances." in shown
    assert "Nothing needs attention in 1 group: payments. The lines cover 1 min 30 s and show no trouble." in shown
    assert "The lines cover 30.0 s and show no trouble." in text(lakehouse, since="30s")
    assert "Not judged" not in shown
    assert "Healthy and no rebalance, Stable (1): payments" in shown


def test_a_group_that_waited_for_a_broker_is_not_said_to_have_had_no_trouble_at_all(lakehouse):
    late = line(at=90_000, kind="OFFSET_COMMIT", source="request", received_at=DAY + 85_000, error_code=7)
    write(lakehouse, line(), late, transition("Stable", 0, 1))
    assert "and show no trouble of clients, but a broker took up to 5.0 s to answer." in text(lakehouse)


def test_a_group_that_was_not_judged_is_not_called_healthy(lakehouse):
    write(lakehouse, line())
    shown = text(lakehouse)
    assert "No problem found, but too little evidence to call it healthy." in shown
    assert "Not judged (1)\n  payments: no line shows its state\n    Next    Get the lines with 'payments' from the server.log" in shown
    assert "Not judged and no rebalance, state not seen (1): payments" in shown
    assert [group["state"] for group in as_json(lakehouse)["groups"]] == ["UNKNOWN"]


def test_a_group_with_a_finding_is_told_apart_from_one_that_could_not_be_judged(lakehouse):
    write(lakehouse, line(), line("b"), line("b", at=90_000), transition("Stable", 0, 1), finding())
    shown = text(lakehouse)
    assert "With findings but no rebalance, Stable (1): payments" in shown
    assert "Not judged and no rebalance, state not seen (1): b" in shown


def test_groups_of_the_new_protocol_are_named_as_such(lakehouse):
    write(lakehouse, line(kind="CONSUMER_GROUP_HEARTBEAT", source="request", error_code=0))
    assert "Healthy and no rebalance, consumer protocol (1): payments" in text(lakehouse)


def test_one_group_alone(lakehouse):
    write(lakehouse, line("a"), line("b"), rebalance("a"), rebalance("b"), finding(group_id="b"))
    shown = text(lakehouse, group="a")
    assert "Groups (1)" in shown
    assert "Rebalances (1)" in shown
    assert "What needs attention" not in shown


def test_the_costliest_rebalances_are_kept_in_time_order(lakehouse):
    write(lakehouse, line(), *(rebalance(start=n * 10_000, total=n * 1_000, generation=n) for n in range(1, 7)))
    shown = text(lakehouse, limit=2)
    assert re.findall(r"00:0\d:\d\d\.000 +(\d)", shown) == ["5", "6"]
    assert "Rebalances (2 of 6, the most expensive)" in shown
    assert "… and 4 more: --limit 6 shows all" in shown


def test_a_change_of_protocol_stands_between_the_rebalances_of_one_group(lakehouse):
    protocols = ((1, "classic"), (2, "classic"), (3, "consumer"))
    write(lakehouse, line(), *(rebalance(start=9_000 * n, generation=n, group_protocol=protocol) for n, protocol in protocols))
    lines = text(lakehouse, group="payments").splitlines()
    number = lines.index("  from here on: consumer protocol")
    assert [re.split(" +", lines[number + step])[2] for step in (-2, -1, 1)] == ["1", "2", "3"]
    assert "from here on" not in text(lakehouse)


def test_groups_come_by_what_they_cost_and_quiet_ones_share_a_line(lakehouse):
    start = rebalance("started", members_before=0, members_after=2)
    costs = {"b": 5_000, "a": 90_000, "c": 5_000}
    write(
        lakehouse,
        *(line(group) for group in ("idle", "started", "unknown", *costs)),
        start,
        *(rebalance(group, members_before=2, unavailable_partition_ms=cost) for group, cost in costs.items()),
        rebalance("c", start=9_000, members_before=2),
        rebalance("unknown", total=600_000, members_before=2),  # no request log: what its partitions lost is not known
    )
    shown = text(lakehouse)
    table = shown[shown.index("Groups (6)") : shown.index("Rebalances (")]
    assert re.findall(r"^(\w+) +(?:≥|\d|-)", table, re.MULTILINE) == ["a", "c", "b", "unknown"]
    assert "Not judged and no rebalance, state not seen (2): idle, started" in table
    assert [row["group_id"] for row in as_json(lakehouse)["groups"]][:4] == ["a", "c", "b", "unknown"]
    shown = text(lakehouse, limit=1)
    assert "… and 3 more groups: --limit 4 shows all" in shown


def test_a_sum_with_unknown_parts_is_what_is_known_and_not_0(lakehouse):
    """Of `a` nothing is known but that one rebalance cost nothing; of `b` one cost 7 s, of `c` all cost nothing."""
    costs = {"a": (0, None), "b": (7_000, None), "c": (0, 0)}
    parts = [(group, cost, at) for group, pair in costs.items() for at, cost in enumerate(pair)]
    who = {"cause": "SESSION_TIMEOUT", "members_before": 2}
    member = {group: {"client_id": f"{group}-1", "member_id": f"{group}-1-m"} for group in costs}
    write(
        lakehouse,
        line("a", at=90_000),
        *(finding(group_id=group, occurred_at=DAY + 1_000, **member[group]) for group in costs),
        *(rebalance(group, 9_000 * at, generation=at, unavailable_partition_ms=cost, **who, **member[group]) for group, cost, at in parts),
    )
    told = {"a": None, "b": 7_000, "c": 0}
    report = as_json(lakehouse)
    assert {row["group_id"]: row["unavailable_partition_ms"] for row in report["groups"]} == told
    assert {row["groups"][0]: row["unavailable_partition_ms"] for row in report["attention"]} == told
    assert {row["group_id"]: row["unavailable_partition_ms"] for row in asked(lakehouse, "why")} == told
    some = {"a": None, "b": "unavailable_partition_ms", "c": None}
    assert {row["group_id"]: row["at_least"] for row in report["groups"]} == some
    assert {row["groups"][0]: row["at_least"] for row in report["attention"]} == some
    assert {row["group_id"]: row["at_least"] for row in asked(lakehouse, "why")} == some
    shown = text(lakehouse)
    assert "2 rebalances, 4.0 s of rebalancing, at least 7.0 s of unowned partition time (sum)" in shown
    assert re.search(r"^b +≥ 7\.0 s +4\.0 s", shown, re.MULTILINE)
    for name in ("worst", "culprits", "culprits-by", "bill"):
        assert [row["unavailable_partition_ms"] for row in asked(lakehouse, name)].count(0) == 1, name
    assert sorted(str(row["by_failures_ms"]) for row in asked(lakehouse, "bill")) == ["0", "7000", "None"]


def test_a_start_up_is_told_from_other_joins(lakehouse):
    write(
        lakehouse,
        line(at=90_000),
        rebalance(members_before=0, members_after=2),
        rebalance(start=9_000, generation=2, members_before=2, members_after=3, unavailable_partition_ms=1),
        rebalance(start=20_000, generation=3, members_before=0, members_after=3, outcome="SUPERSEDED"),  # a start that failed
    )
    shown = text(lakehouse)
    assert "0 > 2" not in shown
    assert "Rebalances (2)" in shown
    assert "SUPERSEDED: the next rebalance began before this one had ended" in shown
    assert "1 start-up is not shown (the first rebalance of a group that was new or empty): 2.0 s of rebalancing" in shown
    assert re.search(r"00:00:20.000 +3 +MEMBER_JOINED", shown)
    assert re.search(r"00:00:00.000 +1 +STARTUP .* 0 > 2", text(lakehouse, group="payments"))
    found = as_json(lakehouse)
    assert [row["startup"] for row in found["rebalances"]] == [True, False, False]
    told = {row["id"]: row["blamed"] for row in found["rebalances"]}
    assert sorted(told.values()) == ["MEMBER_JOINED", "MEMBER_JOINED", "STARTUP"]
    for question in ("rebalances", "phases"):
        assert {row["id"]: row["cause"] for row in asked(lakehouse, question)} == told
    assert asked(lakehouse, "rebalances", cause="STARTUP")[0]["members_after"] == 2
    assert [found["groups"][0][name] for name in ("rebalances", "startups", "rebalancing_ms", "startup_ms")] == [2, 1, 4_000, 2_000]


def test_a_part_of_the_time(lakehouse):
    times = {1: 0, 2: 20_000, 3: 40_000, 4: 60_000}
    write(
        lakehouse,
        line(),
        line(at=60_000),
        *(rebalance(start=at, generation=n, members_before=2) for n, at in times.items()),
        *(finding(occurred_at=DAY + at, generation=n) for n, at in times.items()),
    )
    for scope, generations in (
        ({"since": "30s"}, [3, 4]),  # back from the newest line, at 60 s
        ({"since": "00:00:20", "until": "2026-11-21T00:00:40Z"}, [2, 3]),
        ({"until": "40s"}, [1, 2]),
        ({"since": "25s", "until": "15s"}, [2, 3]),  # back from --until, 45 s
        ({"cluster": "c", "since": "2026-11-20"}, [1, 2, 3, 4]),
        ({"cluster": "d"}, []),
    ):
        found = as_json(lakehouse, **scope)
        assert [row["generation"] for row in found["rebalances"]] == generations, scope
        assert [row["generation"] for row in found["findings"]] == generations, scope
        assert sum(row["rebalances"] for row in found["groups"]) == len(generations), scope
        assert sum(len(entry["findings"]) for entry in found["attention"]) == len(generations), scope


def test_the_part_of_the_time_is_said(lakehouse):
    write(lakehouse, line(), line(at=60_000), rebalance())
    assert "Shown: from 2026-11-21 00:00:30 UTC to the end\n" in text(lakehouse, since="30s")
    assert "Shown: from 2026-11-20 00:01:00 UTC to 2026-11-21 00:01:00 UTC (the data begin later)" in text(
        lakehouse, since="24h", until="0s"
    )


def test_a_time_without_data_is_said_with_the_span_of_the_data_and_one_that_is_none_is_refused(lakehouse, capsys):
    write(lakehouse, line(), line(at=60_000), rebalance(), finding())
    said = "The data is from 2026-11-21 00:00:00 to 2026-11-21 00:01:00 UTC; "
    out = run(capsys, lakehouse, "--since", "2026-11-22").out
    assert out.endswith(f"{said}--since 2026-11-22 00:00:00 is after that.\n")
    assert "Groups" not in out
    out, err = run(capsys, lakehouse, "--until", "2026-11-19", "--format", "json")
    assert err == f"rebalance: {said}--until 2026-11-19 23:59:59 is before that.\n"
    assert json.loads(out)["rebalances"] == json.loads(out)["findings"] == []
    for command in (["report"], ["ask", "why"]):
        assert entry.main([*command, "--lakehouse", str(lakehouse), "--since", "00:00:30", "--until", "00:00:10"]) == UNUSABLE
        assert "--since 2026-11-21 00:00:30 is after --until 2026-11-21 00:00:10" in capsys.readouterr().err
    assert entry.main(["report", "--lakehouse", str(lakehouse), "--since", "yesterday"]) == UNUSABLE
    assert "--since yesterday: neither a time in UTC" in capsys.readouterr().err


def test_a_time_ends_with_the_logs_of_brokers(lakehouse):
    """Those of clients may have another zone than they were read with."""
    write(lakehouse, line(), line(at=60_000), line(at=3_600_000, broker="clients"))
    ends = [report.read_overview(reader_of(lakehouse), report.Scope(until=until)).ends["c"] for until in (None, "01:00", "00:00:30")]
    assert [((one.at - ends[2].at).seconds, one.of_logs) for one in ends] == [(30, True), (30, True), (0, False)]


def test_a_narrow_terminal_keeps_who_and_what_it_cost(lakehouse):
    write(lakehouse, line(), rebalance(members_before=2, client_id="app-1", member_id=MEMBER, unavailable_partition_ms=80_000))
    for terminal, names in ((160, "Outcome"), (100, "Members"), (64, "Unowned"), (52, "Total")):
        shown = text(lakehouse, terminal=terminal)
        tables = shown[shown.index("\nGroup ") :].splitlines()
        assert any(line.rstrip().endswith(names) for line in tables if line.startswith(("  Time", "  At")))
        assert max(map(len, (line for line in tables if "MEMBER_JOINED" in line))) <= terminal
        assert "app-1 d5592b52" in shown
        assert re.search(r"payments +1 min 20 s", shown)


def test_nothing_is_wider_than_120_columns_in_a_pipe(lakehouse):
    names = {"client_id": "checkout-service-7f9c6d5b8-abcde-consumer", "client_host": "/2001:db8::8a2e:370:7334", "member_id": MEMBER}
    write(
        lakehouse,
        line("a-group-with-a-long-name-as-they-are-in-production", broker="broker-1"),
        rebalance("a-group-with-a-long-name-as-they-are-in-production", members_before=2, unavailable_partition_ms=80_000, **names),
        finding(group_id="a-group-with-a-long-name-as-they-are-in-production", message="x " * 200, **names),
    )
    assert max(map(len, text(lakehouse).splitlines())) <= 120


def test_hostile_ids_are_escaped_and_cut(lakehouse):
    ids = {"group_id": HOSTILE, "member_id": HOSTILE, "client_id": HOSTILE, "client_host": HOSTILE}
    write(lakehouse, line(HOSTILE, broker=HOSTILE), rebalance(**ids, instance_id=HOSTILE), finding(**ids, message=HOSTILE, advice=HOSTILE))
    for terminal in (None, 40, 80, 200):
        shown = text(lakehouse, terminal=terminal)
        assert len(shown) < 20_000
        assert not re.search(r"[^\n\x20-\x7e…─━╸]", shown)
        assert "evil[bold]" in shown or terminal == 40
        if terminal:
            assert max(map(len, shown[shown.index("Rebalances (") :].splitlines())) <= terminal


def test_json_has_everything_and_is_ascii(lakehouse):
    write(lakehouse, line(HOSTILE), rebalance(HOSTILE, start=1_234), finding(details='{"gap_ms": 7}'))
    shown = report.to_json(report.read_report(lakehouse))
    assert shown.isascii()
    found = json.loads(shown)
    assert found["rebalances"][0]["started_at"] == "2026-11-21T00:00:01.234Z"
    assert found["rebalances"][0]["group_id"] == HOSTILE
    assert found["findings"][0]["details"] == {"gap_ms": 7}
    assert (
        set(found["rebalances"][0]) == set(TRACK_TABLES["rebalances"].names) - {"batch_id"} | {"id", "startup"} | WAITS | CULPRIT | RECORDS
    )


def test_a_folder_without_a_lakehouse_is_refused(tmp_path):
    with pytest.raises(LakehouseError, match="no lakehouse at"):
        report.read_report(tmp_path / "nowhere")


def test_the_account_of_an_empty_lakehouse_is_zero(lakehouse):
    assert set(reader.account(lakehouse).values()) == {0}
    assert set(reader.account(lakehouse / "nowhere").values()) == {0}


def test_a_column_that_the_tracker_forgot_is_an_error():
    broken = rebalance()
    del broken["cause"]
    with pytest.raises(KeyError, match="cause"):
        track.to_arrow([broken], TABLES["rebalances"], 0)


def test_small_texts():
    assert [duration(n) for n in (None, 0, 999, 1_000, 59_900, 59_990, 230_000, 7_500_000, 273_600_000)] == [
        "-", "0 ms", "999 ms", "1.0 s", "59.9 s", "1 min", "3 min 50 s", "2 h 5 min", "3 d 4 h",
    ]  # fmt: skip
    assert instant(DAY + 5) == "2026-11-21 00:00:00.005"
    assert short_member(MEMBER) == "d5592b52"
    assert short_member("a" * 20 + "-tail") == "…aaaaaaaaaa-tail"
    assert who("app", "/h", MEMBER, "inst") == "app=inst@h d5592b52"
    assert who(None, None, None) == "-"
    assert printable("a\tb\ud800") == "a\\tb\\ud800"
    assert len(printable("\x00" * 1_000, 50)) == 50
