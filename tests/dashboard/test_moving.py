"""From page to page without a blank one, with the keyboard alone, and marks that explain themselves at once."""

import pytest
from playwright.sync_api import expect

from jobs.common.settings import Settings
from jobs.lakehouse.folder import Lakehouse, check_layout
from schemas.names import INGEST
from tests.dashboard import browsing
from tests.lakehouse.rows import line, provisional, track_is_at, transition, write

pytestmark = [pytest.mark.slow, pytest.mark.skipif(browsing.CHROMIUM is None, reason=browsing.MISSING)]


@pytest.fixture
def its(reader, recorded):
    """A tab of that dashboard."""
    return reader(recorded.url)


@pytest.mark.parametrize(
    ("path", "click", "asked"),
    [
        ("/", ".lane .name", "**/api/group?**"),
        ("/", "nav >> text=Findings", "**/api/ask/findings?**"),
        ("/groups", "nav >> text=Members", "**/api/ask/culprits?**"),
        ("/questions?name=why", ".library a >> nth=0", "**/api/ask/activity**"),
    ],
)
def test_what_is_shown_stays_until_the_next_page_has_something_to_show(its, path, click, asked):
    its.open(path)
    before = its.text("h1")
    its.page.evaluate("document.kept = true")
    its.page.route(asked, lambda _: None)  # no answer until this is taken back
    with its.page.expect_request(asked):
        its.page.click(click)
    assert its.text("h1") == before
    its.page.unroute(asked)
    assert its.drawn().text("h1") != before
    assert its.page.evaluate("document.kept"), "it is loaded anew"


def test_back_leads_to_the_place_that_was_left(its):
    its.open("/")
    its.page.evaluate("scrollTo(0, 400)")
    its.page.click("button.row >> nth=1")
    its.page.click(".detail a")
    assert its.drawn().text("h1") == "room-optimizer"
    assert its.page.evaluate("scrollY") == 0
    its.page.go_back()
    expect(its.drawn().page.locator(".detail")).to_contain_text("room-optimizer-1")
    its.page.wait_for_function("scrollY === 400")


def test_a_mark_tells_cause_who_and_cost_at_once(its, recorded):
    entry = recorded.json("overview")["entries"][1]
    its.open("/").page.locator(".lane:has-text('room-optimizer') .wf-mark").first.hover()
    tip = its.page.locator(".tip:visible")
    for part in (entry["title"], entry["subject"], entry["cost"], entry["change"]):
        expect(tip).to_contain_text(part)
    its.page.locator(".lane:has-text('room-optimizer') .look-failed").first.hover()
    expect(tip).to_contain_text("room-optimizer-1 joined but did not sync in time (SYNC_TIMEOUT)")
    expect(tip).to_contain_text("of unowned partition time")
    its.page.locator("h1").hover()
    expect(tip).to_have_count(0)


def test_keys_work_before_anything_is_clicked(its):
    press = its.open("/").page.keyboard.press
    for key in ("n", "n", "Enter"):
        press(key)
    expect(its.page.locator(".detail")).to_contain_text("room-optimizer-1 joined but did not sync in time")
    press("+")
    its.page.wait_for_url("**from=**")
    its.drawn()
    press("0")
    its.page.wait_for_url(lambda url: "from=" not in url)
    its.drawn()
    press("/")
    its.page.wait_for_url("**/groups**")
    expect(its.drawn().page.locator("#find")).to_be_focused()
    its.open("/group", cluster="kafka-3.9.1", group="room-optimizer")
    press("n")
    expect(its.page.locator(".timeline-said")).to_contain_text("room-optimizer")
    press("+")
    its.page.wait_for_url("**from=**")
    press("Enter")
    its.page.wait_for_url("**/rebalance?**")
    its.drawn()


def test_a_question_is_the_heading_of_its_page_and_its_name_is_a_tag(its, recorded):
    (why,) = [one for one in recorded.json("questions") if one["name"] == "why"]
    its.open("/questions", name="why")
    assert its.text("h1") == why["question"]
    assert its.page.title() == f"{why['question']} · rebalance"
    assert its.text(".library [aria-current]") == f"{why['question']} why"


def test_the_live_page_sends_nobody_for_lines_that_are_on_the_way(reader, served, lakehouse):
    check_layout(Lakehouse(lakehouse), Settings())
    rows = line(source="coordinator"), transition("Stable", 0, 1), provisional(group="payments", cause="UNKNOWN", members_before=2)
    write(lakehouse, *rows, app=INGEST)
    track_is_at(lakehouse, 0)
    live = reader(served.url).open("/")
    assert "is not known yet Next: Wait for the lines that come next" in live.text(".gaps")
    assert "Get the line" not in live.text()
