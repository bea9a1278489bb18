"""Time is one control: a line with the time through all pictures of a page, a drag that zooms, axes without an empty beginning."""

import json
import re
from functools import partial

import pytest
from playwright.sync_api import expect

from tests.dashboard import browsing
from tests.dashboard.browsing import Reader
from tests.lakehouse.rows import DAY, MEMBER, empty_lakehouse, finding, line, rebalance, row, transition, write

pytestmark = [pytest.mark.slow, pytest.mark.skipif(browsing.CHROMIUM is None, reason=browsing.MISSING)]

MINUTE = 60_000
AGAIN = MEMBER.replace("d5592b52", "0abc1234")


@pytest.fixture(scope="module")
def told(serve, tmp_path_factory):
    """A dashboard of the story."""
    return serve(story(empty_lakehouse(tmp_path_factory.mktemp("told") / "lake")))


@pytest.fixture
def reader(reader, told):
    """Tabs of that dashboard."""
    return partial(reader, told.url)


def story(lakehouse, *more):
    """Ten minutes of nothing, then a client that falls silent for 8 s, is removed, and comes back under another member id."""
    known = {"group_id": "payments"}
    silent = {"member_id": MEMBER, "client_id": "app-1", "client_host": "10.0.0.7"}
    returned = {**silent, "member_id": AGAIN}
    removed_at = DAY + 11 * MINUTE + 8_000
    beats = {"kind": "HEARTBEAT", "error_code": 0, "source": "request", "session_timeout_ms": 8_000, **silent}
    write(
        lakehouse,
        line(group="other"),
        line(group="other", at=15 * MINUTE),
        line(group="payments", at=10 * MINUTE),
        line(group="payments", at=10 * MINUTE, received_at=DAY + 10 * MINUTE, last_at=DAY + 11 * MINUTE, beat_count=20, **beats),
        {**transition("Stable", 10 * MINUTE, 1), **known},
        rebalance(start=11 * MINUTE + 8_000, total=3_000, cause="SESSION_TIMEOUT", unavailable_partition_ms=9_000, **silent),
        rebalance(start=12 * MINUTE, total=3_000, generation=3, **returned),
        row("member_sessions", joined_at=DAY + 10 * MINUTE, ended_at=removed_at, end_kind="SESSION_TIMEOUT", **known, **silent),
        row("member_sessions", joined_at=DAY + 12 * MINUTE, ended_at=DAY + 14 * MINUTE, end_kind="LEFT", **known, **returned),
        finding(occurred_at=removed_at, details=json.dumps({"silent_ms": 8_000}), **known, **silent),
        *more,
    )  # fmt: skip
    return lakehouse


def view(its):
    return [int(value) for value in re.findall(r"(?:from|to)=(\d+)", its.page.url)]


def drag(its, selector, begin, end, *, shift=False):
    """Drags over a picture, from one share of its width to another."""
    box = its.page.locator(selector).first.bounding_box()
    y = box["y"] + box["height"] - 12
    if shift:
        its.page.keyboard.down("Shift")
    its.page.mouse.move(box["x"] + begin * box["width"], y)
    its.page.mouse.down()
    its.page.mouse.move(box["x"] + end * box["width"], y, steps=4)
    its.page.mouse.up()
    its.page.keyboard.up("Shift")


def test_one_line_with_the_time_goes_through_all_pictures_of_a_page(reader):
    its = reader(viewport={"width": 1280, "height": 2000}).open("/")
    box = its.page.locator(".lane .track").nth(1).bounding_box()
    its.page.mouse.move(box["x"] + box["width"] / 2, box["y"] + 5)
    lines = its.page.locator(".cross")
    expect(lines).to_have_count(3)
    told = lines.all_inner_texts()
    assert len(set(told)) == 1
    assert re.fullmatch(r"00:1\d:\d\d(\.\d{3})?", told[0]), told
    its.page.mouse.move(2, 2)
    expect(its.page.locator(".cross:not([hidden])")).to_have_count(0)
    labels = its.page.locator(".lane.axis .tick-label").all_inner_texts()
    assert (labels[0], labels[-1]) == ("00:11:10", "00:12:00"), "the axis begins where something happens"
    drag(its, ".chart", 0.3, 0.8)  # columns are dragged over as lanes are
    its.page.wait_for_url(lambda url: "from=" in url)
    assert "Whole time" in its.drawn().text("figcaption")
    its.open("/group", cluster="c", group="payments")
    canvas = its.page.locator(".timeline-canvas").bounding_box()
    its.page.mouse.move(canvas["x"] + 700, canvas["y"] + 80)
    expect(its.page.locator(".timeline-frame .cross")).to_be_visible()
    its.page.mouse.move(canvas["x"] + 700, canvas["y"] + 10)  # the whole time is another axis
    expect(its.page.locator(".timeline-frame .cross")).to_be_hidden()


def test_a_drag_zooms_the_timeline_and_shift_moves_it(reader):
    its = reader().open("/group", cluster="c", group="payments", **{"from": DAY + 10 * MINUTE, "to": DAY + 14 * MINUTE})
    drag(its, ".timeline-canvas", 0.4, 0.6)
    its.page.wait_for_url(lambda url: str(DAY + 10 * MINUTE) not in url)
    first, last = view(its)
    assert DAY + 10 * MINUTE < first < last < DAY + 14 * MINUTE
    drag(its, ".timeline-canvas", 0.6, 0.5, shift=True)
    its.page.wait_for_url(lambda url: str(first) not in url)
    moved = view(its)
    assert moved[0] > first
    assert moved[1] - moved[0] == pytest.approx(last - first, abs=2)
    assert "/group" in its.page.url, "the drag opened what lay under it"


def test_the_timeline_begins_where_something_happens_and_has_a_lane_for_each_client(reader):
    its = reader().open("/group", cluster="c", group="payments")
    assert re.search(r"2026-11-21 00:09:\d\d to 00:15:\d\d UTC \(.*\), 1 client$", its.text(".timeline-tools"))
    its.page.get_by_role("button", name="Show the whole time").click()
    expect(its.page.locator(".timeline-tools")).to_contain_text("2026-11-20 23:59")


def test_the_legend_explains_what_is_drawn_alone(reader):
    its = reader().open("/group", cluster="c", group="payments")
    expect(its.page.locator(".legend")).to_contain_text("no heartbeat, or no poll()")
    its.page.get_by_text("Legend", exact=True).click()
    told = its.text(".legend")
    for part in ("finding: error", "went silent", "in the group", "state Stable", "removed", "left by itself"):
        assert part in told, part
    for part in ("broker", "start-up", "finding: note", "Reconciling", "Dead"):
        assert part not in told, part
    # "Show" shows the whole incident.
    its.page.locator("button.row").click()
    its.page.get_by_role("button", name="Show", exact=True).click()
    its.page.wait_for_url(lambda url: "from=" in url)
    first, last = view(its)
    assert first < DAY + 11 * MINUTE, "its silence"
    assert DAY + 11 * MINUTE + 11_000 < last < DAY + 12 * MINUTE, "its rebalance, and not the next one"


def test_two_processes_with_one_client_id_have_a_lane_each(browser, served, lakehouse):
    beside = {"client_id": "app-1", "client_host": "10.0.0.7", "member_id": AGAIN.replace("0abc", "1abc"), "group_id": "payments"}
    story(lakehouse, row("member_sessions", joined_at=DAY + 10 * MINUTE, ended_at=DAY + 14 * MINUTE, end_kind="LEFT", **beside))
    its = Reader(browser, served.url).open("/group", cluster="c", group="payments")
    assert its.text(".timeline-tools").endswith("2 clients")
    its.close()
