"""The report over small tables written by hand: no JVM."""

from __future__ import annotations

import io
import json
import re

import pytest
from rich.console import Console

from jobs.answers import report
from jobs.cli.output.report_text import render
from jobs.common.errors import LakehouseError
from jobs.common.text import printable, short_member, who
from jobs.common.times import duration, instant
from jobs.lakehouse import reader
from jobs.pipeline import track
from schemas.tables import TABLES, TRACK_TABLES
from tests.lakehouse.rows import DAY, HOSTILE, MEMBER, finding, line, rebalance, row, transition, write


def text(lakehouse, *, group=None, terminal=None, **options):
    out = io.StringIO()
    console = Console(file=out, width=terminal or 80, force_terminal=terminal is not None, color_system=None)
    render(report.read_report(lakehouse, group), console, **options)
    return out.getvalue()


def test_what_is_no_broker_is_not_called_one(lakehouse):
    write(lakehouse, line(broker="b1"), line(at=1_000, broker="b1"), line(at=2_000, broker="clients"), line(at=3_000, broker="offsets"))
    assert "  Brokers b1\n  And     logs of clients, records of __consumer_offsets\n" in text(lakehouse)


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
            members_before=0, members_after=3,
        ),
        finding(occurred_at=DAY + 5_000, member_id=MEMBER, client_id="app-1"),
    )  # fmt: skip
    shown = text(lakehouse)
    assert "2026-11-21 00:00:00.000 to 2026-11-21 00:01:30.000 UTC (1 m 30 s)" in shown
    assert "1,000 read: 900 unrelated, 99 events, 1 unreadable" in shown
    assert re.search(r"payments +Stable +1 +3 +1 +2\.0 s +MEMBER_JOINED", shown)
    assert re.search(r"00:00:01\.000 +1 +MEMBER_JOINED +app-1@10\.0\.0\.7 d5592b52 +2\.0 s +0 ms +2\.0 s +COMPL", shown)
    assert "0 > 3" in shown
    assert re.search(r"00:00:05\.000 ERROR +SESSION_TIMEOUT +payments +app-1 d5592b52", shown)
    assert "Advice: Look at it." in shown


def test_nothing_found_is_said_plainly(lakehouse):
    write(lakehouse, line(group=None))
    assert "Nothing found: no line names any consumer group." in text(lakehouse)
    assert "Nothing found: no line names group no\\nsuch." in text(lakehouse, group="no\nsuch")


def test_a_healthy_group_has_no_findings_and_no_rebalances(lakehouse):
    write(lakehouse, line())
    shown = text(lakehouse)
    assert "No rebalances." in shown
    assert "No findings: nothing here needs attention." in shown
    assert re.search(r"payments +not seen", shown)


def test_groups_of_the_new_protocol_are_named_as_such(lakehouse):
    write(lakehouse, line(kind="CONSUMER_GROUP_HEARTBEAT"))
    assert re.search(r"payments +consumer protocol", text(lakehouse))


def test_one_group_alone(lakehouse):
    write(lakehouse, line("a"), line("b"), rebalance("a"), rebalance("b"), finding(group_id="b"))
    shown = text(lakehouse, group="a")
    assert "Groups (1)" in shown
    assert "Rebalances (1)" in shown
    assert "No findings" in shown


def test_the_costliest_rebalances_are_kept_in_time_order(lakehouse):
    write(lakehouse, line(), *(rebalance(start=n * 10_000, total=n * 1_000, generation=n) for n in range(1, 7)))
    shown = text(lakehouse, rebalances_per_group=2)
    assert re.findall(r"00:0\d:\d\d\.000 +(\d)", shown) == ["5", "6"]
    assert "4 more" in shown


@pytest.mark.parametrize("terminal", [None, 40, 80, 200])
def test_hostile_ids_are_escaped_and_cut(lakehouse, terminal):
    ids = {"group_id": HOSTILE, "member_id": HOSTILE, "client_id": HOSTILE, "client_host": HOSTILE}
    write(
        lakehouse,
        line(HOSTILE, broker=HOSTILE),
        rebalance(**ids, instance_id=HOSTILE),
        finding(**ids, message=HOSTILE, advice=HOSTILE),
    )
    shown = text(lakehouse, terminal=terminal)
    assert len(shown) < 20_000
    assert not re.search(r"[^\n\x20-\x7e…─━╸]", shown)
    assert "evil[bold]" in shown or terminal == 40
    if terminal:
        tables = shown.split("Findings")[0]
        assert max(map(len, tables[tables.index("Groups") :].splitlines())) <= terminal


def test_json_has_everything_and_is_ascii(lakehouse):
    write(lakehouse, line(HOSTILE), rebalance(HOSTILE, start=1_234), finding(details='{"gap_ms": 7}'))
    shown = report.to_json(report.read_report(lakehouse))
    assert shown.isascii()
    found = json.loads(shown)
    assert found["rebalances"][0]["started_at"] == "2026-11-21T00:00:01.234Z"
    assert found["rebalances"][0]["group_id"] == HOSTILE
    assert found["findings"][0]["details"] == {"gap_ms": 7}
    assert set(found["rebalances"][0]) == set(TRACK_TABLES["rebalances"].names) - {"batch_id"} | {"id"}


def test_a_folder_without_a_lakehouse_is_refused(tmp_path):
    with pytest.raises(LakehouseError, match="no lakehouse at"):
        report.read_report(tmp_path / "nowhere")


def test_the_account_of_an_empty_lakehouse_is_zero(lakehouse):
    assert set(reader.account(lakehouse).values()) == {0}
    assert set(reader.account(lakehouse / "nowhere").values()) == {0}


def test_a_batch_that_comes_twice_is_written_once(lakehouse):
    write(lakehouse, rebalance())
    write(lakehouse, rebalance())
    assert reader.account(lakehouse)["rebalances"] == 1


def test_a_column_that_the_tracker_forgot_is_an_error():
    broken = rebalance()
    del broken["cause"]
    with pytest.raises(KeyError, match="cause"):
        track.to_arrow([broken], TABLES["rebalances"], 0)


def test_small_texts():
    assert [duration(n) for n in (None, 0, 999, 1_000, 59_900, 230_000, 7_500_000)] == [
        "-", "0 ms", "999 ms", "1.0 s", "59.9 s", "3 m 50 s", "2 h 5 m",
    ]  # fmt: skip
    assert instant(DAY + 5) == "2026-11-21 00:00:00.005"
    assert short_member(MEMBER) == "d5592b52"
    assert short_member("a" * 20 + "-tail") == "…aaaaaaaaaa-tail"
    assert who("app", "/h", MEMBER, "inst") == "app=inst@h d5592b52"
    assert who(None, None, None) == "-"
    assert printable("a\tb\ud800") == "a\\tb\\ud800"
    assert len(printable("\x00" * 1_000, 50)) == 50
