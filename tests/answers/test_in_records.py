"""What rebalances cost in records, and when that makes an entry an error: in the words and the tables of the report, and in its JSON."""

import io
import json
import re
import shutil
from datetime import datetime, timedelta, timezone

import pytest
from rich.console import Console

from jobs.answers import report
from jobs.answers.incidents.bills import Rebalanced, Records, RecordsOf
from jobs.cli.output.report_text import render
from jobs.common.times import epoch_ms
from tests.answers.test_attention import EXPIRED, found, of, rebalanced
from tests.lakehouse.rows import DAY, MEMBER, finding, line, rebalance, stopped, write

DAY_ONE = datetime(2026, 11, 21, tzinfo=timezone.utc)
FIGURES = ("reread_min", "reread_max", "lag_added", "catch_up_ms")


def text(lakehouse, **scope):
    out = io.StringIO()
    render(report.read_report(lakehouse, report.Scope(**scope)), Console(file=out, width=120, color_system=None))
    return out.getvalue()


def two_rebalances(lakehouse, *rows, group="payments", **values):
    """A member is removed: the group rebalances, and again when the member is back."""
    first = rebalance(group, cause="SESSION_TIMEOUT", member_id=MEMBER, unavailable_partition_ms=40_000, **values)
    second = rebalance(group, 5_000, 1_000, generation=2, unavailable_partition_ms=3_000)
    lost = finding(group_id=group, member_id=MEMBER, client_id="app-1")
    write(
        lakehouse, line(group), line(group, at=90_000), first, second, lost, *(stopped(partition, first, **its) for partition, its in rows)
    )


@pytest.mark.parametrize(
    ("records", "said"),
    [
        (Records(), ""),
        (Records(0, 133, 1_350, 12_000), "up to 133 records read twice, lag about +1,350, back after 12.0 s"),
        (Records(20, 1_330, 0), "20 to 1,330 records read twice, lag +0"),
        (Records(20, 20), "20 records read twice"),
        (Records(0, 0), "0 records read twice"),
        (Records(0, 1, told=" (2 rebalances unknown)"), "up to 1 record read twice (2 rebalances unknown)"),
        (Records(7, None, 7), "7 or more records read twice, lag about +7"),
        (Records(0, None, 7), "lag about +7"),
        (Records(0, 18, 87, gaps=True), "up to 18 records read twice, lag up to +87"),
    ],
)
def test_only_what_rows_tell_is_said(records, said):
    assert records.in_words() == said


@pytest.mark.slow
def test_a_report_says_what_an_incident_and_each_rebalance_cost_in_records(lakehouse):
    known = {"reread_min": 0, "reread_max": 66, "lag_added": 600, "caught_up_at": DAY + 12_000}
    two_rebalances(lakehouse, ("orders-0", known), ("orders-1", known | {"reread_max": 67, "lag_added": 750, "caught_up_at": DAY + 9_000}))
    shown = text(lakehouse)
    told = "40.0 s of unowned partition time (sum), up to 133 records read twice, lag about +1,350, back after 12.0 s"
    assert told in " ".join(shown.split())
    assert re.search(r"Unowned +Read twice +Lag +Moved", shown)
    assert re.search(r"40\.0 s +0 to 133 +\+1,350 +-", shown)
    assert re.search(r" 3\.0 s +- +- +-", shown), "nothing stopped with the second one"
    written = json.loads(report.to_json(report.read_report(lakehouse)))
    assert [[row[name] for name in FIGURES] for row in written["rebalances"]] == [[0, 133, 1_350, 12_000], [None] * 4]
    assert [written["attention"][0][name] for name in FIGURES] == [0, 133, 1_350, 12_000]
    shutil.rmtree(lakehouse / "rebalance_offsets")
    assert "40.0 s of unowned partition time (sum)\n" in text(lakehouse), "tables of an earlier version"


@pytest.mark.parametrize(
    ("start_ms", "unowned_ms", "told"),
    [(20, 5, " (1 rebalance unknown)"), (20, None, " (1 rebalance unknown)"), (20, 0, ""), (19, 5, "")],  # the first one ends at 19
)
def test_a_rebalance_without_a_row_is_unknown_unless_no_partition_stopped_with_it(start_ms, unowned_ms, told):
    at = [DAY_ONE + timedelta(milliseconds=ms) for ms in (10, 19)]
    row = {"cluster": "c", "group_id": "g", "started_at": at[0], "ended_at": at[1], "reread_min": 0, "reread_max": 4, "gaps": False}
    told_of = RecordsOf([row | {"lag_added": None, "catch_up_ms": None}])
    first, second = ((epoch_ms(DAY_ONE) + ms for ms in span) for span in ((10, 19), (start_ms, 30)))
    own = [Rebalanced("c", "g", "r", *first, 9, 9, None), Rebalanced("c", "g", "s", *second, 9, unowned_ms, None)]
    assert told_of.together(own) == Records(0, 4, told=told)
    emptied = own[0]._replace(start_ms=own[0].start_ms - 5, end_ms=own[0].start_ms - 5, unavailable_ms=None)
    assert told_of.together([emptied, own[0]]) == Records(0, 4), "what its last member left unread is told as somebody comes"
    assert told_of.together(own[1:]) == Records(), "there is no number that it could be missing in"


@pytest.mark.slow
def test_of_several_rebalances_that_is_told_which_is_known(lakehouse):
    two_rebalances(
        lakehouse, ("orders-0", {"reread_min": 1, "reread_max": 10, "lag_added": 5}), ("orders-1", {"resumed_at": None, "lag_added": 6})
    )
    begun = rebalance("payments", 500, 1_000, generation=2, cause="SESSION_TIMEOUT", member_id=MEMBER)
    write(lakehouse, begun, stopped("orders-1", begun, reread_min=4, lag_added=3), batch=1)
    said = " ".join(text(lakehouse).split())
    assert "40.0 s of unowned partition time (sum), 1 to 10 records read twice (1 rebalance unknown), lag about +14 Advice" in said
    assert re.search(r"1 to 10 \+11 ", said), "nobody read the other partition at all"
    assert "4 or more +3 " in said


@pytest.mark.slow
@pytest.mark.parametrize(
    ("total", "lost", "others", "severity"),
    [
        (29_000, 90_000, [], "WARNING"),
        (31_000, 90_000, [], "ERROR"),
        (31_000, 0, [], "WARNING"),  # cooperative: its partitions had owners all the time
        (31_000, 90_000, [2_000, 20_000, 18_000], "WARNING"),  # its rebalances usually take as long
        (31_000, 90_000, [2_000, 20_000, 3_000], "ERROR"),
    ],
)
def test_a_member_that_was_removed_is_an_error_if_its_group_stood_still_for_long(told, total, lost, others, severity):
    expired = found("SESSION_TIMEOUT", 10, severity="WARNING")
    usual = [rebalanced(100 + 50 * place, total=one) for place, one in enumerate(others)]
    (entry,), _ = told(expired, rebalanced(10, total=total, lost=lost, **EXPIRED), *usual)
    assert entry["severity"] == severity


@pytest.mark.slow
@pytest.mark.parametrize(("reread", "severity"), [(999, "WARNING"), (1_000, "ERROR")])
def test_an_entry_is_an_error_if_many_records_were_read_twice_for_certain(told, reread, severity):
    first = rebalanced(10, **EXPIRED)
    (entry,), _ = told(found("SESSION_TIMEOUT", 10, severity="WARNING"), first, stopped("orders-0", first, reread_min=reread))
    assert entry["severity"] == severity


@pytest.mark.slow
def test_columns_that_no_rebalance_fills_are_left_out(lakehouse):
    two_rebalances(lakehouse, ("orders-0", {"reread_min": 0, "reread_max": 3}))
    assert re.search(r"Unowned +Read twice +Moved", text(lakehouse))
    write(lakehouse, line("b"), rebalance("b"), batch=1)
    assert re.search(r"Unowned +Moved", text(lakehouse, group="b"))


@pytest.mark.slow
def test_what_a_broker_cost_one_group_is_told_where_only_that_is_shown(lakehouse):
    details = json.dumps({"from_broker": "broker-1", "to_broker": "broker-2", "members_lost": []})
    for batch, group in enumerate("ab"):
        begun = rebalance(group, 1_000, unavailable_partition_ms=3_000, cause="COORDINATOR_MOVED")
        lost = finding(group_id=group, occurred_at=DAY + 1_000, code="COORDINATOR_MOVED", severity="WARNING", details=details)
        write(lakehouse, line(group), line(group, at=90_000), begun, lost, stopped(of=begun, reread_min=0, reread_max=4), batch=batch)
    assert "2 rebalances, 4.0 s of rebalancing, 6.0 s of unowned partition time (sum), up to 8 records read twice\n" in text(lakehouse)
    assert "1 rebalance, 2.0 s of rebalancing, 3.0 s of unowned partition time (sum), up to 4 records read twice\n" in text(
        lakehouse, group="a"
    )


@pytest.mark.slow
def test_where_a_client_began_belongs_to_the_offset_that_was_gone(told):
    entries, shown = told(
        found("OFFSETS_EXPIRED", 10, partition="loyalty-1"),
        found("OFFSET_RESET", 10, partition="loyalty-1") | {"advice": "Make it idempotent."},
        found("OFFSET_RESET", 20, partition="loyalty-2"),
    )
    assert of(entries) == [("OFFSETS_EXPIRED", ["payments"], 1, 1), ("OFFSET_RESET", ["payments"], 1, 0)]
    assert entries[0]["advice"] == ["Look at it.", "Make it idempotent."]
    assert "Then    00:00:10 OFFSET_RESET: OFFSET_RESET at 10." in shown


@pytest.mark.slow
def test_what_an_outage_left_unread_whoever_comes_next_reads(told):
    out = rebalanced(10, total=64, members_after=0, outcome="EMPTIED", **EXPIRED)
    back = rebalance(start=32_000, members_before=0, members_after=1)
    (entry,), shown = told(found("SESSION_TIMEOUT", 10), out, back, stopped(of=back, reread_min=29, reread_max=33))
    assert (entry["reread_min"], entry["reread_max"], entry["rebalances"]) == (29, 33, 2)
    assert "29 to 33 records read twice" in " ".join(shown.split())
