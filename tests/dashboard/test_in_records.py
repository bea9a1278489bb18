"""What rebalances cost in records, on the pages of a group and of a rebalance, and the lane with the lag of a group. No JVM."""

import shutil

import pytest
from playwright.sync_api import expect

from jobs.answers.incidents.bills import Records
from jobs.answers.report import read_report
from tests.dashboard import browsing
from tests.dashboard.saved_page import page_of
from tests.lakehouse.rows import DAY, MEMBER, empty_lakehouse, line, rebalance, row, stopped, transition, write

pytestmark = pytest.mark.slow
seen = pytest.mark.skipif(browsing.CHROMIUM is None, reason=browsing.MISSING)

OF = {"cluster": "c", "group": "payments"}


def polled(at, *offsets, group="payments", **values):
    """A poll that found (partition, committed offset, end of the log) of each partition that changed."""
    names = ("partition", "offset", "end")
    told = [{"topic_id": None, **dict(zip(names, each, strict=True))} for each in offsets]
    return line(group, at, kind="OFFSETS_POLLED", source="poll", broker="poll", offsets=told, **values)


def story(lakehouse):
    """A member joins; while its partitions stop the lag grows, and goes back."""
    begun = rebalance(
        start=20_000, total=3_000, members_before=1, members_after=2, generation=2, client_id="app-2", unavailable_partition_ms=6_000
    )
    its = {"from_client_id": "app-1", "from_member_id": MEMBER, "to_client_id": "app-2", "unread_ms": 3_400, "resumed_offset": 700}
    known = {"reread_min": 0, "reread_max": 66, "lag_added": 600, "caught_up_at": DAY + 32_000, "lag_before": 3}
    write(
        lakehouse,
        line(),
        line(at=90_000),
        transition("Stable", 1_000, 1),
        rebalance(start=500, total=500, members_before=0, members_after=1),
        begun,
        stopped("orders-0", begun, **its, **known),
        stopped("orders-1", begun, **its, **known | {"reread_max": 67, "lag_added": 750}),
        row("member_sessions", group_id="payments", member_id=MEMBER, client_id="app-1", joined_at=DAY + 1_000),
        polled(5_000, ("orders-0", 700, 710), ("orders-1", -1, 500)),
        polled(24_000, ("orders-0", 700, 1_300), ("orders-1", 500, 1_250)),
        polled(40_000, ("orders-0", 1_400, 1_400)),
        polled(60_000, ("orders-1", 1_600, 1_500)),
        polled(85_000, ("a-0", 1, 1), group="other"),
    )  # fmt: skip
    return lakehouse


@pytest.fixture(scope="module")
def told(tmp_path_factory):
    """A lakehouse of the story."""
    return story(empty_lakehouse(tmp_path_factory.mktemp("told") / "lake"))


def lag(served, **values):
    return [(point["at"] - DAY, point["lag"]) for point in served.json("rows/lag", **OF, **values)["rows"]]


def test_the_lag_is_that_of_all_partitions_as_last_polled(shown):
    assert lag(shown) == [(5_000, 10), (24_000, 1_350), (40_000, 750), (60_000, 0), (85_000, 0)]
    assert lag(shown, since=DAY + 30_000, until=DAY + 50_000) == [(30_000, 1_350), (40_000, 750)]
    assert lag(shown, since=DAY + 30_000, until=DAY + 35_000) == [(30_000, 1_350)], "no poll, and nothing changed"
    assert lag(shown, until=DAY + 4_000) == []
    assert lag(shown, limit=2) == [(24_000, 1_350), (60_000, 0)], "the largest of each half"


def test_there_are_at_most_so_many_points_and_the_largest_is_one(served, lakehouse):
    write(lakehouse, *(polled(1_000 * number, ("orders-0", 0, 5_000 if number == 4_321 else number % 10)) for number in range(6_000)))
    points = lag(served)
    assert 1_900 < len(points) <= 2_000
    assert (4_321_000, 5_000) in points
    assert points == sorted(points)


def test_pages_have_the_figures_of_the_tables(shown):
    rows = shown.json("group", **OF)["rebalances"]["rows"]
    known = {"reread_min": 0, "reread_max": 133, "lag_added": 1_350, "catch_up_ms": 12_000, "gaps": False}
    known |= {"read_twice": "0 to 133", "in_records": "up to 133 records read twice, lag about +1,350, back after 12.0 s", "lag": "+1,350"}
    assert [{name: one[name] for name in known} for one in rows] == [
        Records().figures() | {"read_twice": "-", "in_records": "", "lag": "-"},
        known,
    ]
    page = shown.json("rebalance", id=rows[1]["id"])
    assert page["rebalance"].items() >= known.items()
    assert [(one["partition"], one["read_twice"]) for one in page["stopped"]] == [("orders-0", "0 to 66"), ("orders-1", "0 to 67")]
    assert shown.json("rebalance", id=rows[0]["id"])["stopped"] == []


def test_tables_without_offsets_have_pages(served, lakehouse):
    shutil.rmtree(lakehouse / "rebalance_offsets")
    write(lakehouse, line(), rebalance())
    (found,) = served.json("group", **OF)["rebalances"]["rows"]
    assert (found["reread_max"], served.json("rebalance", id=found["id"])["stopped"], lag(served)) == (None, [], [])


@seen
def test_a_group_has_a_lane_of_its_lag_and_its_rebalances_what_they_cost_in_records(reader, shown):
    its = reader(shown.url).open("/group", **OF)
    canvas = its.page.locator(".timeline-canvas")
    expect(canvas).to_have_attribute("aria-label", "Timeline: 2 rebalances, 0 findings, 1 lane; lag at most 1,350 records")
    expect(its.page.locator(".legend")).to_contain_text("lag: records behind the committed offsets, as polled")
    box = canvas.bounding_box()
    its.page.mouse.move(box["x"] + 0.65 * box["width"], box["y"] + 150)
    expect(its.page.locator(".tip")).to_have_text("Lag 750 records" + "from 2026-11-21 00:00:40.000, as polled")
    cells = [text.strip() for text in its.page.locator("#table tbody tr").first.locator("td").all_inner_texts()]
    names = its.page.locator("#table th").all_inner_texts()
    assert dict(zip(names, cells, strict=True)).items() >= {"Read twice": "0 to 133", "Lag added": "+1,350", "Unowned": "6.0 s"}.items()
    its.page.focus(".timeline-canvas")
    its.page.keyboard.press("p")
    assert "6.0 s of unowned partition time (sum) · up to 133 records read twice, lag about +1,350, back after 12.0 s" in its.text(
        ".timeline-said"
    )
    its.page.keyboard.press("Enter")
    its.page.wait_for_url("**/rebalance?**")
    its.drawn()
    stops = its.page.locator("section:has(> h2:has-text('Partitions that stopped'))")
    assert "up to 133 records read twice" in stops.locator("h2").inner_text()
    rows = [" ".join(text.split()) for text in stops.locator("tbody tr").all_inner_texts()]
    assert rows[1] == "orders-1 00:00:16.000 app-1 d5592b52 700 00:00:23.400 app-2 700 3.4 s +750 0 to 67"
    its.page.click("text=All figures")
    assert "records read twice 0 to 133 lag added +1,350 until the lag was back 12.0 s" in its.text(".figures")


@seen
def test_without_polls_there_is_no_lane_and_without_offsets_no_column_and_a_share_group_has_none(reader, served, lakehouse):
    write(lakehouse, line(), line(at=90_000), rebalance(start=20_000), row("member_sessions", group_id="payments", member_id=MEMBER))
    logged = {"source": "coordinator", "kind": "CONSUMER_GROUP_LOG", "state": "JOINED", "protocol_type": "share"}
    write(lakehouse, line("shared", **logged), line("shared", 5_000, position=2, **logged), batch=1)
    its = reader(served.url).open("/group", **OF)
    label = its.page.locator(".timeline-canvas").get_attribute("aria-label")
    assert label == "Timeline: 1 rebalance, 0 findings, 1 lane"
    assert not {"Read twice", "Lag added"} & set(its.page.locator("#table th").all_inner_texts())
    assert "lag" not in its.text(".legend")
    assert "no committed offsets" not in its.text()
    its.page.locator("#table a").first.click()
    its.page.wait_for_url("**/rebalance?**")
    assert "Partitions that stopped" not in its.drawn().text()
    its.open("/group", cluster="c", group="shared")
    assert "Share groups have no committed offsets: records are delivered again one by one." in its.text()


@seen
def test_a_saved_report_has_the_lane(browser, tmp_path, told):
    page = page_of(told, read_report(told))
    (held,) = page.at("rows/lag?cluster=c&group=payments")
    assert max(point["lag"] for point in held["rows"]) == 1_350
    (tmp_path / "out.html").write_text(page.source)
    context = browser.new_context()
    its = context.new_page()
    its.goto(f"{(tmp_path / 'out.html').as_uri()}#/group?cluster=c&group=payments")
    expect(its.locator(".timeline-canvas")).to_have_attribute(
        "aria-label", "Timeline: 2 rebalances, 0 findings, 1 lane; lag at most 1,350 records"
    )
    context.close()
