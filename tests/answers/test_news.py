"""What comes to a lakehouse is told once, whatever else happens to its tables meanwhile."""

import json
import shutil
from datetime import datetime, timedelta, timezone

import pytest

from jobs.answers import news
from jobs.answers.news import LATEST, News
from jobs.common.errors import LakehouseError, QuestionError
from jobs.lakehouse import tables
from jobs.lakehouse.maintain import Policy, maintain
from jobs.pipeline.tracking import track
from jobs.pipeline.tracking.incident_table import IncidentTable
from tests.lakehouse.rows import DAY, MEMBER, TABLES, empty_lakehouse, finding, line, open_rebalance, provisional, rebalance, stopped, write

pytestmark = pytest.mark.slow

AT_ONCE = Policy(grace=timedelta(0))
NOW = datetime(2026, 11, 22, tzinfo=timezone.utc)
JOINED = {"start": 5_000, "joined_at": DAY + 5_500, "generation": 2, "client_id": "app"}


@pytest.fixture
def lakehouse(tmp_path):
    folder = empty_lakehouse(tmp_path / "lake")
    write(folder, line(), batch=0)
    return folder


def said(items):
    """Group or code, and what it is blamed on, of each item."""
    return [(item.row.get("code") or item.row["group_id"], item.row.get("blamed")) for item in items]


def test_each_row_is_told_once_in_the_order_of_time(lakehouse):
    told = News(lakehouse)
    assert told.take() == []
    write(lakehouse, rebalance("late", start=9_000), finding(occurred_at=DAY + 8_000), rebalance("early"), batch=1)
    assert said(told.take()) == [("early", "MEMBER_JOINED"), ("SESSION_TIMEOUT", None), ("late", "MEMBER_JOINED")]
    write(lakehouse, rebalance("next", start=60_000), batch=2)
    assert list(maintain(lakehouse, AT_ONCE, now=NOW))
    assert said(told.take()) == [("next", "MEMBER_JOINED")]  # its file is gone: it is in the one that replaced it
    assert told.take() == []


def test_a_final_row_follows_its_provisional_ones(lakehouse):
    told = News(lakehouse)
    write(lakehouse, provisional("ANSWERS", cause="UNKNOWN", **JOINED), batch=1)
    (first,) = told.take()
    assert (first.waits_for, first.replaced) == ("ANSWERS", None)
    write(lakehouse, provisional("STORAGE", cause="MEMBER_LEFT", **JOINED | {"start": 4_800}), batch=2)
    (second,) = told.take()
    assert (second.waits_for, second.replaced.row["id"], second.is_correction) == ("STORAGE", first.row["id"], True)
    assert second.row["id"] != first.row["id"]  # its start was corrected
    write(lakehouse, rebalance(cause="MEMBER_LEFT", **JOINED | {"start": 4_800}), batch=3)
    (last,) = told.take()
    assert (last.waits_for, last.replaced.row["id"], last.is_correction) == (None, second.row["id"], False)
    write(lakehouse, provisional("STORAGE", cause="UNKNOWN", **JOINED), batch=4)  # late to be found
    assert told.take() == []


def test_a_rebalance_that_is_open_is_told_until_its_own_row_takes_its_place(lakehouse):
    told = News(lakehouse)
    write(lakehouse, open_rebalance(start=5_000, total=6_000, members_before=2), batch=1)
    (first,) = told.take()
    assert (first.waits_for, first.row["total_ms"], first.replaced) == ("JOIN", 6_000, None)
    before = rebalance(generation=1, start=1_000, total=4_000, outcome="SUPERSEDED")
    write(lakehouse, before, open_rebalance(start=5_000, total=31_000, members_before=2), batch=2)
    superseded, again = told.take()
    assert (superseded.row["outcome"], superseded.replaced) == ("SUPERSEDED", None)
    assert (again.row["total_ms"], again.replaced, again.is_correction) == (31_000, first.told, True)
    ended = provisional("ANSWERS", **JOINED | {"start": 4_900, "total": 40_000})
    write(lakehouse, open_rebalance(start=5_000, total=31_000, outcome="ENDED"), ended, batch=3)
    (last,) = told.take()
    assert (last.waits_for, last.replaced, last.replaced.goes_on) == ("ANSWERS", again.told, True)
    write(lakehouse, rebalance(**JOINED | {"start": 4_900, "total": 40_000}), batch=4)
    (final,) = told.take()
    assert (final.waits_for, final.replaced) == (None, last.told)


def test_at_first_the_latest_rows_are_told_unless_a_time_is_given(lakehouse):
    rows = [rebalance(f"g{n:02}", start=n * 1_000, generation=n) for n in range(LATEST)]
    write(lakehouse, line(at=60_000), *rows, finding(occurred_at=DAY + 30_000), batch=1)
    latest = News(lakehouse)
    assert said(latest.take()) == [*((f"g{n:02}", "MEMBER_JOINED") for n in range(1, LATEST)), ("SESSION_TIMEOUT", None)]
    assert len(News(lakehouse, since="60s").take()) == LATEST + 1
    assert said(News(lakehouse, since="52s").take()) == [("g08", "MEMBER_JOINED"), ("g09", "MEMBER_JOINED"), ("SESSION_TIMEOUT", None)]
    assert said(News(lakehouse, since="2026-11-21T00:00:09").take()) == [("g09", "MEMBER_JOINED"), ("SESSION_TIMEOUT", None)]
    latest._logs.clear()
    assert latest.take() == []  # nor are the others told when the tables are read again


def test_at_first_a_rebalance_has_what_it_cost_in_records_where_that_is_known(lakehouse):
    """Later it comes without: minutes pass until that is known."""
    known, cost = rebalance("known"), {"reread_min": 0, "reread_max": 133}
    write(lakehouse, known, stopped(of=known, **cost), rebalance("unknown", start=9_000), finding(), batch=1)
    told = News(lakehouse)
    assert [item.records.in_words() for item in told.take()] == ["", "up to 133 records read twice", ""]  # a finding is the first
    later = rebalance("later", start=60_000)
    write(lakehouse, later, stopped(of=later, **cost), batch=2)
    assert [item.records.in_words() for item in told.take()] == [""]
    shutil.rmtree(lakehouse / "rebalance_offsets")
    assert [item.records.in_words() for item in News(lakehouse).take()] == [""] * 4


def test_a_span_counts_back_from_the_first_events(tmp_path):
    lakehouse = empty_lakehouse(tmp_path / "lake")
    told = News(lakehouse, since="5s")
    write(lakehouse, rebalance("old"), rebalance("new", start=59_000), batch=1)
    assert told.take() == []
    write(lakehouse, line(at=60_000), batch=2)
    assert said(told.take()) == [("new", "MEMBER_JOINED")]
    with pytest.raises(QuestionError):
        News(lakehouse, since="soon")


def test_one_group_of_one_cluster(lakehouse):
    told = News(lakehouse, cluster="c", group="b")
    other = News(lakehouse, cluster="other")
    write(lakehouse, rebalance("a"), rebalance("b"), finding(group_id="a"), finding(group_id="b", code="SLOW_JOINER"), batch=1)
    assert said(told.take()) == [("SLOW_JOINER", None), ("b", "MEMBER_JOINED")]
    assert other.take() == []


def test_a_lakehouse_that_is_made_anew_tells_what_is_another_than_before(lakehouse, tmp_path):
    write(lakehouse, rebalance("a"), rebalance("b", start=5_000, generation=3, cause="UNKNOWN"), finding(), batch=1)
    told = News(lakehouse)
    assert len(told.take()) == 3
    shutil.rmtree(lakehouse)
    assert told.take() == []
    anew = empty_lakehouse(tmp_path / "anew")
    write(anew, line(), rebalance("a"), rebalance("b", start=5_000, generation=3, cause="MEMBER_LEFT"), finding(), batch=1)
    anew.rename(lakehouse)
    (corrected,) = told.take()
    assert (said([corrected]), corrected.is_correction) == ([("b", "MEMBER_LEFT")], True)


def test_only_so_much_is_remembered(lakehouse, monkeypatch):
    monkeypatch.setattr(news, "_MOST", 3)
    told = News(lakehouse)
    told.take()
    for batch in range(1, 6):
        write(lakehouse, rebalance(f"g{batch}", start=batch * 1_000), batch=batch)
        assert len(told.take()) == 1
    told._logs.clear()
    assert told.take() == []
    assert len(told._told) == 3


def test_files_that_are_gone_are_looked_for_again_but_not_for_ever(lakehouse, monkeypatch):
    monkeypatch.setattr(news, "_TRIALS", 2)
    told = News(lakehouse)
    told.take()
    write(lakehouse, rebalance("a"), batch=1)
    (data,) = (lakehouse / "rebalances").glob("*.parquet")
    data.rename(lakehouse / "aside")
    assert told.take() == []
    (lakehouse / "aside").rename(data)
    assert said(told.take()) == [("a", "MEMBER_JOINED")]
    data.unlink()
    write(lakehouse, rebalance("b"), batch=2)
    assert [told.take(), told.take()] == [[], []]
    with pytest.raises(LakehouseError, match="cannot be read"):
        told.take()


def moved(group="payments", at=20_000, **details):
    """The finding that a broker lost a group, or members of it."""
    known = {"from_broker": "b1", "to_broker": "b2"} | details
    return finding(group_id=group, occurred_at=DAY + at, code="COORDINATOR_MOVED", details=json.dumps(known, separators=(",", ":")))


def culprits(items):
    """What each item is blamed on, who did it, and whether that corrects what was told."""
    return [(item.row["blamed"], item.row["culprit_broker"] or item.row["culprit_client_id"], item.is_correction) for item in items]


def test_what_a_finding_blames_later_is_a_correction_and_the_only_one(lakehouse):
    """As the report has it: the first member that joins again is innocent."""
    told = News(lakehouse)
    told.take()
    ended = {"start": 20_000, "client_id": "app-1", "left": [MEMBER], "members_before": 2, "members_after": 1}
    write(lakehouse, rebalance("other", start=20_000), rebalance(**ended), batch=1)
    assert [item.row["blamed"] for item in told.take()] == ["MEMBER_JOINED"] * 2
    write(lakehouse, moved(members_lost=[MEMBER]), batch=2)
    broker, corrected = told.take()
    assert (broker.table, broker.row["culprit_broker"]) == ("findings", "b1")
    assert culprits([corrected]) == [("COORDINATOR_MOVED", "b1", True)]
    assert corrected.replaced.row["id"] == corrected.row["id"]
    write(lakehouse, rebalance("next", start=60_000), batch=3)
    assert said(told.take()) == [("next", "MEMBER_JOINED")]


def test_a_final_row_is_blamed_as_its_provisional_one_on_a_finding_from_before_the_first_look(lakehouse):
    late = {**JOINED, "cause": "MEMBER_JOINED", "total": 40_000}
    write(lakehouse, provisional("STORAGE", **late), finding(occurred_at=DAY + 30_000, client_id="app-2"), batch=1)
    told = News(lakehouse)
    first, _ = sorted(told.take(), key=lambda item: item.table, reverse=True)
    assert culprits([first]) == [("SESSION_TIMEOUT", "app-2", False)]
    write(lakehouse, rebalance(**late), batch=2)
    (last,) = told.take()
    assert culprits([last]) == [("SESSION_TIMEOUT", "app-2", False)]


def test_what_happened_to_a_broker_is_told_once_the_table_of_incidents_has_it(lakehouse, monkeypatch):
    """The tracker writes that table last. Who asks in between would name the broker that only took a group over."""
    monkeypatch.setattr(news, "_TRIALS", 2)
    told = News(lakehouse)
    told.take()
    away, back = moved(at=1_000), moved(at=9_000, from_broker="b2", to_broker="b1")
    tables.append(lakehouse / "findings", track.to_arrow([away, back], TABLES["findings"], 1), "test", 1)
    assert told.take() == []
    IncidentTable(lakehouse).refresh()
    assert [item.row["culprit_broker"] for item in told.take()] == ["b1", "b1"]
    tables.append(lakehouse / "findings", track.to_arrow([moved(at=900_000, from_broker="b3")], TABLES["findings"], 2), "test", 2)
    assert [told.take(), told.take()] == [[], []]
    assert [(item.row["culprit_broker"], item.replaced) for item in told.take()] == [(None, None)]  # a pipeline may have been killed
    IncidentTable(lakehouse).refresh()
    (corrected,) = told.take()
    assert (corrected.row["culprit_broker"], corrected.is_correction) == ("b3", True)
    assert told.take() == []


def test_no_row_is_told_because_it_is_read_again(lakehouse):
    """Of a table with many rows only the last are told at first; those before them stay untold, whoever is blamed for them."""
    rows = [rebalance(start=n * 1_000, generation=n, cause="COORDINATOR_MOVED") for n in range(2 * LATEST)]
    write(lakehouse, *rows, moved(at=1_000), batch=1)
    told = News(lakehouse)
    assert len(told.take()) == LATEST
    write(lakehouse, moved(at=2_000), batch=2)
    assert [item.table for item in told.take() if item.replaced is None] == ["findings"]


def test_files_from_before_are_read_again_only_for_a_while(lakehouse, monkeypatch):
    monkeypatch.setattr(news, "_LATELY_MS", dict.fromkeys(news._LATELY_MS, -1))
    told = News(lakehouse)
    told.take()
    for batch in (1, 2):
        write(lakehouse, rebalance(f"g{batch}", start=batch * 10_000), finding(occurred_at=DAY + batch * 1_000), batch=batch)
        assert [item.table for item in told.take()] == ["findings", "rebalances"]
