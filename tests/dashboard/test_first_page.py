"""The first screen over a recording, as the dashboard and as the HTML report: a sentence, all groups over time, incidents with advice."""

import json
import re
from pathlib import Path
from types import SimpleNamespace
from urllib.parse import parse_qs, urlsplit

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import expect

from jobs.answers.attention_words import title, trouble
from jobs.answers.report import Scope, read_report
from jobs.common.times import epoch_ms
from tests.dashboard import browsing
from tests.dashboard.saved_page import page_of
from tests.dashboard.serving import serving
from tests.lakehouse.rows import DAY, finding, line, rebalance, write

pytestmark = [pytest.mark.slow, pytest.mark.skipif(browsing.CHROMIUM is None, reason=browsing.MISSING)]

RECORDING = Path(__file__).parents[1] / "data" / "recordings" / "kafka-3.9.1"
WIDE, PHONE, LARGE = {"width": 1280, "height": 900}, {"width": 390, "height": 844}, {"width": 2560, "height": 1440}
LINE = """(all) => Math.max(...all.map(each => {
    const pen = document.createElement("canvas").getContext("2d");
    pen.font = getComputedStyle(each).font;
    return each.clientWidth / (pen.measureText(each.textContent).width / each.textContent.length);
}))"""
"""How many characters the longest line of some elements has room for."""


@pytest.fixture(scope="module")
def recorded(recorded_lakehouse, tmp_path_factory):
    lake = recorded_lakehouse("recordings/kafka-3.9.1")
    report = read_report(lake, Scope(), limit=100)
    page = tmp_path_factory.mktemp("recorded") / "report.html"
    page.write_text(page_of(lake, report, [RECORDING]).source)
    with serving(lake) as served:
        yield SimpleNamespace(url=served.url, served=served, report=report, page=page)


def fits(page, selector):
    """Whether all of it lies on the first screen."""
    script = """(all, room) => all.map(each => each.getBoundingClientRect())
        .every(box => box.top >= 0 && box.bottom <= innerHeight && box.left >= 0 && box.right <= innerWidth)"""
    return page.locator(selector).count() > 0 and page.locator(selector).evaluate_all(script)


def test_the_sentence_and_the_lanes_are_on_the_first_screen(reader, recorded):
    its = reader(recorded.url, bypass_csp=True)
    for size in (PHONE, WIDE):
        its.page.set_viewport_size(size)
        its.open("/")
        assert its.page.inner_text("h1").strip() == title(recorded.report.attention[0])
        for part in ("h1", ".bandname", ".lane .name", ".lane .track"):
            assert fits(its.page, part), (size, part)
        assert its.page.locator(".bar").bounding_box()["height"] < 60, "more than one line"
        assert its.page.evaluate("document.documentElement.scrollWidth <= innerWidth")


def test_an_incident_is_a_row_and_its_prose_and_lines_are_in_a_panel(reader, recorded):
    its = reader(recorded.url).open("/")
    entries = recorded.served.json("overview")["entries"]
    rows = its.page.locator("button.row")
    for place, (row, entry) in enumerate(zip(rows.all(), entries, strict=False)):
        text = " ".join(row.inner_text().split())
        assert text.startswith(f"{entry['title']} {entry['subject']} " if place else f"{entry['subject']} ")  # the heading has the first
        assert text.endswith(entry["change"])
        assert row.bounding_box()["height"] < 100
    assert entries[1]["message"] not in its.text()
    rows.nth(1).focus()
    its.page.keyboard.press("Enter")
    panel = its.page.locator(".detail")
    expect(panel.locator(".place").first).to_be_visible()
    assert entries[1]["message"] in panel.inner_text()
    assert entries[1]["advice"] in panel.inner_text()
    assert panel.bounding_box()["x"] > rows.nth(1).bounding_box()["x"] + rows.nth(1).bounding_box()["width"], "beside the rows"
    again = reader(recorded.url, viewport=PHONE).open(its.page.url.removeprefix(recorded.url))
    parts = (".detail", "button.row >> nth=1", "button.row >> nth=2")
    below, its_row, following = (again.page.locator(part).bounding_box() for part in parts)
    assert its_row["y"] + its_row["height"] <= below["y"] < below["y"] + below["height"] <= following["y"]
    its.page.keyboard.press("Enter")
    expect(panel).to_have_count(0)
    expect(rows.nth(1)).to_be_focused()


def test_time_has_the_whole_width_and_prose_has_lines_of_80_characters(reader, recorded):
    its = reader(recorded.url, viewport=LARGE).open("/")
    for part in (".lane .track", ".grid2", ".incidents"):
        box = its.page.locator(part).last.bounding_box()
        assert box["x"] + box["width"] > 2500, part
    assert its.page.locator(".lane .track").last.bounding_box()["width"] > 2200
    assert 60 < its.page.locator(".detail > p:not(.note)").evaluate_all(LINE) <= 80  # that of the first is open where there is room
    for size in (WIDE, PHONE):
        its.page.set_viewport_size(size)
        assert its.page.locator(".detail > p:not(.note)").evaluate_all(LINE) <= 80, size


def test_a_lane_counts_the_rebalances_that_the_page_of_groups_counts(reader, recorded):
    """Start-ups are drawn, and belong to no count."""
    its = reader(recorded.url).open("/")
    lanes = [one["group_id"] for one in recorded.served.json("overview")["lanes"]]
    told = its.page.locator(".lane .name .sr").all_text_contents()
    counted = {row["group_id"]: row["rebalances"] for row in recorded.served.ask("groups")}
    assert [int(re.match(r": (\d+) rebalances?\b", text)[1]) for text in told] == [counted[group] for group in lanes[: len(told)]]


def test_a_saved_report_is_the_dashboard_in_one_file(reader, recorded):
    its = reader(recorded.url).open("/")
    parts = (".lane .name", ".bandname", "button.row")
    served = [its.page.locator(part).all_inner_texts() for part in parts]
    saved = reader(recorded.page.as_uri(), bypass_csp=True)
    saved.open("")
    assert [saved.page.locator(part).all_inner_texts() for part in parts] == served
    for size in (PHONE, WIDE):
        saved.page.set_viewport_size(size)
        assert saved.page.inner_text("h1").strip() == title(recorded.report.attention[0])
        assert fits(saved.page, ".bandname, .lane .name")
        assert saved.page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    found = Axe().run(saved.page, options={"resultTypes": ["violations"]}).response["violations"]
    assert [one["id"] for one in found if one["impact"] in {"serious", "critical"}] == []
    saved.page.click(".lane .name >> nth=0")
    group = recorded.served.json("overview")["lanes"][0]["group_id"]
    expect(saved.page.locator("h1")).to_have_text(group)
    saved.page.click("#table tbody a >> nth=0")
    expect(saved.page.locator(".waterfall")).to_be_visible()
    expect(saved.page.locator(".evidence .line").first).to_be_visible()
    saved.page.go_back()
    expect(saved.page.locator("h1")).to_have_text(group)
    saved.page.click("text=At a glance")
    listed = [entry for place, entry in enumerate(recorded.report.attention) if place < 10 or entry.severity == "ERROR"]
    expect(saved.page.locator("button.row")).to_have_count(len(listed))
    assert saved.asked == [recorded.page.as_uri()]


def test_a_saved_report_needs_no_scripts_and_holds_no_other(reader, recorded):
    its = reader(recorded.page.as_uri(), java_script_enabled=False)
    its.page.goto(its.url)
    assert its.page.inner_text("main").startswith("What needs attention (3 errors, 8 warnings)")


def test_a_click_opens_the_group_and_its_time(reader, recorded):
    its = reader(recorded.url).open("/")
    first = its.page.locator(".lane:not(.axis)").first
    (lane, *_) = recorded.served.json("overview")["lanes"]
    mark = first.locator(".wf-mark").first
    mark.click()
    its.page.wait_for_url("**/group?**")
    given = {name: values[0] for name, values in parse_qs(urlsplit(its.drawn().page.url).query).items()}
    assert given["group"] == lane["group_id"]
    assert int(given["from"]) < lane["findings"][0]["occurred_at"] < int(given["to"])
    its.open("/")
    its.page.locator(".lane .name").first.focus()
    its.page.keyboard.press("Enter")
    its.page.wait_for_url("**/group?**")
    assert lane["group_id"] in its.drawn().text("h1")


def test_a_band_a_column_and_a_dragged_pointer_choose_the_time_of_the_whole_page(reader, recorded):
    its = reader(recorded.url).open("/")
    (band,) = [found for entry in recorded.report.attention if (found := trouble(entry))]
    its.page.locator(".bandname").click()
    its.page.wait_for_url(lambda url: "from=" in url)
    assert int(its.drawn().page.url.partition("from=")[2].partition("&")[0]) < epoch_ms(band["from"])
    assert its.text("h1").startswith("broker-2 crashed or was killed")
    assert "SYNC_TIMEOUT" not in its.text()
    its.page.click("text=Whole time")
    its.page.wait_for_url(lambda url: "from=" not in url)
    box = its.drawn().page.locator(".lane:not(.axis) .track").nth(3).bounding_box()
    its.page.mouse.move(box["x"] + 100, box["y"] + 8)
    its.page.mouse.down()
    its.page.mouse.move(box["x"] + 300, box["y"] + 8, steps=4)
    its.page.mouse.up()
    its.page.wait_for_url(lambda url: "from=" in url)
    chosen = [int(value) for value in re.findall(r"(?:from|to)=(\d+)", its.drawn().page.url)]
    period = recorded.served.json("overview")["period"]
    first, last = period["from"], period["to"]
    assert first < chosen[0] < chosen[1] < last
    its.open("/")
    (step,) = {row["began_at"] for row in recorded.served.ask("activity", step="5s", since="1d") if row["cause"] == "COORDINATOR_MOVED"}
    its.page.locator(".chart").first.locator(".step:has(.look-broker)").click()
    its.page.wait_for_url(lambda url: f"from={step}" in url)


def test_many_groups_are_folded_and_the_gravest_come_first(reader, served, lakehouse):
    names = [f"g{number:02}" for number in range(60)]
    write(
        lakehouse, line(), line(at=90_000), *(line(group=name, at=1_000) for name in names),
        *(rebalance(group=name, start=1_000 * number, unavailable_partition_ms=number) for number, name in enumerate(names)),
        finding(group_id="g07", occurred_at=DAY + 5_000),
        rebalance(group="late", start=85_000, unavailable_partition_ms=0),
    )  # fmt: skip
    its = reader(served.url).open("/")
    shown = its.page.locator(".lane .name > span:first-of-type").all_inner_texts()
    assert shown[:3] == ["g07", "g59", "g58"]
    assert len(shown) == 22
    assert "late" not in shown
    last, chart = its.page.locator(".chart >> nth=0 >> .step").last.bounding_box(), its.page.locator(".chart").first.bounding_box()
    assert last["x"] + last["width"] <= chart["x"] + chart["width"] + 1, "a group without a lane has its columns within the chart"
    its.page.click("text=Show 18 more of 61 groups")
    expect(its.page.locator(".lane .name")).to_have_count(40)


def test_a_band_goes_through_the_lanes_of_the_groups_that_the_broker_hit_alone(reader, served, lakehouse):
    moved = {"code": "COORDINATOR_MOVED", "severity": "WARNING", "details": json.dumps({"from_broker": "b3", "to_broker": "b1"})}
    groups = [("c", "payments"), ("c", "orders"), ("c", "calm"), ("d", "payments")]
    rows = [row for _, name in groups for row in (line(), line(at=90_000), rebalance(group=name, start=20_000, unavailable_partition_ms=9))]
    rows = [{**row, "cluster": cluster} for (cluster, _), row in zip([one for one in groups for _ in range(3)], rows, strict=True)]
    write(lakehouse, *rows, *(finding(group_id=name, occurred_at=DAY + 15_000, **moved) for cluster, name in groups[:2]))
    its = reader(served.url).open("/")
    assert "groups left b3" in its.text(".bandname")
    found = its.page.locator(".lane:not(.axis)").all()
    bands = {lane.locator(".name").inner_text(): lane.locator(".look-away").count() for lane in found}
    assert sorted(bands.values()) == [0, 0, 1, 1]
    assert its.page.locator(".lane.dim").count() == 2
    assert its.page.locator(".outage .look-away").count() == 1
    assert its.text("figcaption").startswith("2 clusters, ")


def test_columns_of_unowned_time_say_at_least_where_some_of_it_is_not_known(reader, served, lakehouse):
    known = rebalance(start=20_000, unavailable_partition_ms=9_000, members_before=2)
    write(lakehouse, line(), line(at=90_000), known)
    its = reader(served.url).open("/")
    heading = "h2:text('Unowned partition time')"
    assert its.text(heading) == "Unowned partition time summed over all partitions"
    write(lakehouse, rebalance(start=20_500, total=100, generation=3, members_before=2), batch=1)
    expect(its.page.locator(heading)).to_have_text("Unowned partition time at least, summed over all partitions")
    its.page.locator(".chart").nth(1).locator(".step").hover()
    expect(its.page.locator(".tip:visible")).to_contain_text("≥ 9.0 s MEMBER_JOINED")
