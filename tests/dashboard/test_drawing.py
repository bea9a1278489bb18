"""How time is drawn: an axis that stays, its whole width, three colours."""

from functools import partial

import pytest
from playwright.sync_api import expect

from tests.dashboard import browsing
from tests.lakehouse.rows import MEMBER, line, rebalance, write

pytestmark = [pytest.mark.slow, pytest.mark.skipif(browsing.CHROMIUM is None, reason=browsing.MISSING)]

CLUSTER = "kafka-3.9.1"
SIGNS_OF_A_LINE = """() => {
    const prose = [...document.querySelectorAll("main :is(p:not(.sentence > *), li:not(:has(p)))")];
    return prose.filter(each => each.checkVisibility() && each.textContent.length > 160).map(each => {
        const range = document.createRange();
        range.selectNodeContents(each);
        return each.textContent.length / new Set([...range.getClientRects()].map(one => Math.round(one.bottom / 12))).size;
    });
}"""


@pytest.fixture
def pages(reader, recorded):
    """Tabs of that dashboard."""
    return partial(reader, recorded.url)


def box(its, selector):
    return its.page.locator(selector).first.bounding_box()


@pytest.mark.parametrize("width", [390, 1280, 2560])
def test_the_axis_stays_in_view_and_no_tick_breaks(pages, width):
    its = pages(viewport={"width": width, "height": 400}).open("/", lanes="all")
    before = box(its, ".lane.axis")["y"]
    its.page.locator(".lane").last.scroll_into_view_if_needed()
    stays = box(its, ".lane.axis")
    bar = box(its, ".bar")
    assert 0 <= stays["y"] < before
    assert stays["y"] >= bar["y"] + bar["height"] - 2
    ticks, room = its.page.locator(".lane.axis .tick-label"), box(its, ".lane.axis .track")
    for tick in [tick.bounding_box() for tick in ticks.all()]:
        assert tick["height"] < 24, "two lines"
        assert room["x"] - 1 <= tick["x"] < tick["x"] + tick["width"] <= room["x"] + room["width"] + 1


def test_time_has_the_whole_width_and_prose_80_characters(pages):
    its = pages(viewport={"width": 2560, "height": 1300})
    for path, picture in (("/", ".lane .track"), ("/group", ".timeline-canvas")):
        its.open(path, cluster=CLUSTER, group="room-optimizer")
        shown = box(its, picture)
        assert shown["x"] + shown["width"] > 2500, path
        assert max(its.page.evaluate(SIGNS_OF_A_LINE)) <= 80, path


def test_the_timeline_of_a_group_is_on_the_first_400_pixels_and_no_table_is_cut(pages):
    its = pages(viewport={"width": 1280, "height": 800})
    for tab in ("rebalances", "members", "findings", "steps"):
        its.open("/group", cluster=CLUSTER, group="room-optimizer", tab=tab)
        canvas = box(its, ".timeline-canvas")
        assert canvas["y"] + canvas["height"] < 400
        assert its.text(".timeline-tools").endswith("3 clients")
        assert its.page.locator("#table .scroll").evaluate("each => each.scrollWidth <= each.clientWidth"), tab


def test_the_waterfall_begins_when_its_rebalance_did(pages, recorded):
    rows = recorded.json("rows/rebalances", cluster=CLUSTER, group="loyalty-calc")["rows"]
    row = next(row for row in rows if row["blamed"] == "SESSION_TIMEOUT")
    its = pages().open("/rebalance", cluster=CLUSTER, group="loyalty-calc", id=row["id"])
    whole, first = ".waterfall tbody .bars", f".group-row [data-from='{row['started_at']}']"
    assert box(its, first)["x"] - box(its, whole)["x"] < 0.05 * box(its, whole)["width"]
    its.page.get_by_role("button", name="With the 8.0 s before").click()
    its.page.wait_for_url(lambda url: "from=" in url)
    its.drawn()
    assert box(its, first)["x"] - box(its, whole)["x"] > 0.5 * box(its, whole)["width"]


def test_partitions_of_the_consumer_protocol_have_the_names_that_metadata_told(reader, served, lakehouse):
    topic, unknown = "ZiIvh65vQPOxTeW80lTaIA", "QWTE6grBRii7qDNQrCCjTw"
    given = [{"member_id": MEMBER, "partitions": [f"{topic}-0", f"{unknown}-1"], "digest": None}]
    write(
        lakehouse, line(), line(at=90_000), line(None, kind="TOPIC_NAMED", offsets=[{"partition": "orders", "topic_id": topic}]),
        rebalance(start=20_000, total=3_000, generation=2, group_protocol="consumer", member_id=MEMBER),
        line(at=21_000, kind="CONSUMER_GROUP_HEARTBEAT", member_id=MEMBER, answer_generation=2, error_code=0, assignments=given),
    )  # fmt: skip
    row = served.json("rows/rebalances", cluster="c", group="payments")["rows"][-1]
    its = reader(served.url).open("/rebalance", cluster="c", group="payments", id=row["id"])
    assert "QWTE…-1 orders-0" in its.text("section:has(> h2:text('before and after'))")


def test_three_colours_and_patterns_and_a_legend_for_who_wants_them(reader, recorded):
    its = reader(recorded.url).open("/", lanes="all")
    look = "each => [getComputedStyle(each).backgroundColor, getComputedStyle(each).backgroundImage]"

    def looks():
        names = ("failed", "broker", "came", "changed", "startup")
        return [its.page.locator(f".track .look-{name}").first.evaluate(look) for name in names]

    failed, broker, came, changed, startup = plain = looks()
    assert failed == broker != came == changed != startup
    assert {image for _, image in plain} == {"none"}
    assert its.page.locator(".legend").is_hidden()
    its.page.get_by_text("Legend", exact=True).click()
    its.page.get_by_role("button", name="Patterns and letters").click()
    assert len({image for _, image in looks()}) == 4, "the start-up has none"
    canvas = "each => new Set(new Uint32Array(each.getContext('2d').getImageData(0, 60, each.width, 60).data.buffer)).size"
    its.open("/group", cluster=CLUSTER, group="rate-loader")  # it is remembered
    patterned = its.page.locator(".timeline-canvas").evaluate(canvas)
    its.page.get_by_text("Legend", exact=True).click()
    its.page.get_by_role("button", name="Patterns and letters").click()
    forced = reader(recorded.url, forced_colors="active").open("/group", cluster=CLUSTER, group="rate-loader")
    assert forced.page.locator(".timeline-canvas").evaluate(canvas) == patterned
    assert its.page.locator("html").get_attribute("data-patterns") is None
    its.page.emulate_media(forced_colors="active")
    expect(its.page.locator("html")).to_have_attribute("data-patterns", "")
    expect(its.page.get_by_role("button", name="Patterns and letters")).to_have_attribute("aria-pressed", "true")
    its.page.emulate_media(forced_colors="none")
    expect(its.page.get_by_role("button", name="Patterns and letters")).to_have_attribute("aria-pressed", "false")
