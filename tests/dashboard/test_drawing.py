"""How time is drawn: an axis that stays, its whole width, three colours."""

from functools import partial

import pytest

from tests.dashboard import browsing
from tests.lakehouse.rows import DAY, MEMBER, empty_lakehouse, line, rebalance, row, transition, write

pytestmark = [pytest.mark.slow, pytest.mark.skipif(browsing.CHROMIUM is None, reason=browsing.MISSING)]

MINUTE = 60_000
WIDE = {"width": 2560, "height": 1300}


@pytest.fixture(scope="module")
def told(tmp_path_factory):
    """A lakehouse in which 30 groups start one after another, and end with a rebalance."""
    lakehouse = empty_lakehouse(tmp_path_factory.mktemp("told") / "lake")
    for number in range(30):
        name, begin = f"group-{number}", number * 19_000
        write(
            lakehouse, line(group=name), line(group=name, at=10 * MINUTE), {**transition("Stable", 5_000, 1), "group_id": name},
            rebalance(group=name, start=begin, total=4_000), rebalance(group=name, start=10 * MINUTE - 1_000, total=900, generation=2),
            row("member_sessions", group_id=name, member_id=MEMBER, client_id="app-1", client_host="10.0.0.7", joined_at=DAY + begin),
            batch=number,
        )  # fmt: skip
    return lakehouse


@pytest.fixture
def pages(reader, shown):
    """Tabs of that dashboard."""
    return partial(reader, shown.url)


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
