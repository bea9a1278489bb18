"""The pages in a browser: all of them, on a filled lakehouse, on none, and while it grows. No JVM."""

import json
from functools import partial

import pytest

from jobs.answers import ask, questions
from jobs.answers.duckdb_views import QuestionReader
from jobs.common.text import printable
from jobs.common.times import duration
from jobs.dashboard.pages import PAGES
from tests.dashboard import browsing
from tests.dashboard.serving import serving
from tests.effort import long
from tests.lakehouse.rows import DAY, MEMBER, empty_lakehouse, finding, line, open_rebalance, rebalance, row, transition, write

pytestmark = [pytest.mark.slow, pytest.mark.skipif(browsing.CHROMIUM is None, reason=browsing.MISSING)]

HOSTILE = "<script>document.title='owned'</script>\u202eevil<img src=x onerror=\"document.title='owned'\">"
OTHER = MEMBER.replace("app-1", "app-2")


@pytest.fixture(scope="module")
def told(tmp_path_factory):
    """A lakehouse with the story of two groups."""
    lakehouse = empty_lakehouse(tmp_path_factory.mktemp("told") / "lake")
    for batch, group in enumerate(("payments", "orders")):
        story(lakehouse, group, batch)
    return lakehouse


@pytest.fixture
def pages(reader, shown):
    """Tabs of that dashboard."""
    return partial(reader, shown.url)


def request(kind, at, until, member, generation=2, **values):
    known = {"member_id": member, "answer_generation": generation, "error_code": 0, "source": "request", "client_id": "app-1"}
    return line(at=until, kind=kind, received_at=DAY + at, **known, **values)


def story(lakehouse, group="payments", batch=0, **names):
    """A member joins, all wait for another one; later that one goes silent."""
    known = {"group_id": group}
    given = [{"member_id": MEMBER, "partitions": ["orders-0", "orders-1"], "digest": None}]
    rows = (
        line(group=group),
        line(group=group, at=90_000),
        {**transition("Stable", 1_000, 1), **known},
        {**transition("PreparingRebalance", 20_000, 1), **known},
        {**transition("Stable", 23_000, 2), **known},
        rebalance(group=group, members_before=0, members_after=1, start=500, total=500),
        rebalance(
            group=group, start=20_000, total=3_000, generation=2, joined_at=DAY + 22_990, join_ms=2_990, sync_ms=10, member_id=OTHER,
            client_id="app-2", client_host="10.0.0.8", slowest_member_id=MEMBER, leader_id=MEMBER, members_before=1, members_after=2,
            unavailable_partition_ms=6_000, partitions=4, partitions_moved=2, group_protocol="classic", first_fetch_ms=5, **names,
        ),
        request("JOIN_GROUP", 20_000, 22_990, OTHER, group=group),
        request("JOIN_GROUP", 22_900, 22_990, MEMBER, group=group),
        request("SYNC_GROUP", 22_991, 23_000, MEMBER, group=group, generation=2, assignments=given),
        row("member_sessions", member_id=MEMBER, client_id="app-1", client_host="10.0.0.7", joined_at=DAY + 1_000, ended_at=DAY + 80_000,
            end_kind="SESSION_TIMEOUT", **known),
        finding(
            occurred_at=DAY + 80_000, member_id=MEMBER, client_id="app-1", client_host="10.0.0.7", details=json.dumps({"silent_ms": 9_000}),
            **known,
        ),
    )  # fmt: skip
    write(lakehouse, *rows, batch=batch)


def rebalance_id(served, group="payments"):
    return served.json("rows/rebalances", cluster="c", group=group)["rows"][-1]["id"]


def test_an_empty_lakehouse_is_no_error(reader, served):
    its = reader(served.url).open("/")
    assert "No line read so far names a consumer group." in its.text()
    assert "do not mention" in its.open("/group", cluster="c", group="g").text()
    assert "There is no such rebalance" in its.open("/rebalance", id="rffff").text()


def test_the_group_says_what_happened_and_the_rebalance_who_held_it_up(pages, shown):
    its = pages().open("/group", cluster="c", group="payments")
    row = its.page.locator("button.row")
    assert "app-1 missed the session timeout" in row.inner_text()
    assert "Look at it." in row.inner_text()
    row.click()
    assert "SESSION_TIMEOUT" in its.text(".detail")
    its.open("/rebalance", cluster="c", group="payments", id=rebalance_id(shown))
    text = its.text()
    assert "app-2 joined" in its.text("h1")
    assert "MEMBER_JOINED" in text
    assert "It took 3.0 s: join 3.0 s, waited for app-1@10.0.0.7 d5592b52; sync 10 ms" in text
    assert "all waited for it" in text
    assert "orders-0 orders-1" in text


def test_a_rebalance_that_has_not_ended_is_seen_on_every_page(reader, served, lakehouse):
    known = {"awaited": [MEMBER, OTHER], "awaited_unnamed": 1, "members_before": 3, "client_id": "app-3", "member_id": OTHER}
    rows = line(at=0), line(at=400_000), {**transition("PreparingRebalance", 60_000, 1), "group_id": "stuck"}
    write(lakehouse, *rows, line(group="stuck", at=60_000), open_rebalance("stuck", start=60_000, total=6_000, **known))
    its = reader(served.url).open("/")
    assert its.text("h1") == "stuck was still rebalancing"
    assert its.text("button.row").startswith("stuck 00:01:00 ")
    its.open("/group", cluster="c", group="stuck")
    assert "OPEN open: waiting for members to rejoin" in its.text()
    assert "Nothing here needs attention" not in its.text()
    its.page.get_by_role("table").get_by_role("link").first.click()
    its.drawn()
    shown = its.text()
    assert its.text(".lead").startswith(
        "The group has been in its join phase (PreparingRebalance) since 2026-11-21 00:01:00 UTC: for 5 min 40 s"
    )
    assert "3 members have not rejoined, as far as lines show: app-1 d5592b52, app-2 d5592b52, 1 unnamed." in its.text(".lead")
    assert "OPEN_REBALANCE" in shown
    assert "began it" in shown
    assert "to blame" not in shown
    assert its.wrong == []


def test_every_number_is_that_of_the_named_question(pages, told):
    reader = QuestionReader(told)

    def asked(name, **given):
        return ask.BoundQuestion(reader, questions.load(name), given).answer().by_name()

    its = pages().open("/")
    states = [f"{one['groups']} {one['state']}, {one['members']} members" for one in asked("states")]
    assert [" ".join(text.split()) for text in its.page.locator(".facts > li").all_inner_texts()] == states
    (client,) = asked("culprits")
    cells = [" ".join(text.split()) for text in its.page.locator("#clients tbody td").all_inner_texts()]
    cost = duration(client["total_ms"]), duration(client["unavailable_partition_ms"])
    assert cells == [f"{client['client_id']}@{client['client_host']}", client["cause"], str(client["rebalances"]), *cost]
    its.open("/groups", order="name")
    (group,) = asked("groups", group="orders")
    cells = [" ".join(text.split()) for text in its.page.locator("tbody tr").first.locator("td").all_inner_texts()]
    assert cells[0] == "orders"
    assert cells[3:] == [
        str(group["members"]),
        str(group["rebalances"]),
        duration(group["total_ms"]),
        group["last_cause"],
        str(group["findings"]),
    ]
    its.open("/group", cluster="c", group="orders", tab="members")
    (one, *others) = asked("members", group="orders")
    assert its.page.locator("#table tbody tr").count() == 1 + len(others)
    assert its.page.locator(".views a").all_inner_texts()[:3] == ["Rebalances 2", f"Members {1 + len(others)}", "Findings 1"]
    assert one["end_kind"] is None or "SESSION_TIMEOUT" in its.text("#table")


@pytest.mark.parametrize(
    "places",
    [
        (("/", {}), ("/group", {"cluster": "c", "group": HOSTILE}), ("/rebalance", {})),
        long((("/groups", {}), ("/group", {"cluster": "c", "group": HOSTILE, "tab": "steps"}))),
    ],
)
def test_hostile_names_are_shown_and_do_nothing(reader, served, lakehouse, places):
    story(lakehouse, group=HOSTILE, reason=HOSTILE, protocol=HOSTILE)
    its = reader(served.url)
    found = rebalance_id(served, HOSTILE)
    for path, values in places:
        its.open(path, **values | ({"id": found} if path == "/rebalance" else {}))
        assert "<script>document.title" in its.page.inner_text("main"), path
        assert "\u202e" not in its.page.inner_text("body")
        assert "\\u202eevil" in its.page.inner_text("body")
        assert its.page.locator("main script, main img").count() == 0
        assert its.page.title() != "owned"


def test_a_link_holds_what_is_seen(pages):
    its = pages().open("/group", cluster="c", group="payments", **{"from": DAY + 18_000, "to": DAY + 25_000}, tab="members", tz="local")
    seen = its.text()
    assert "00:00:18 to 00:00:25" in its.text(".timeline-tools")
    its.page.click(".views a:has-text('Findings')")
    its.page.wait_for_url("**tab=findings**")
    again = pages(timezone_id="UTC").open(f"/group?{its.page.url.partition('?')[2]}")
    assert again.page.locator(".views [aria-current]").inner_text().startswith("Findings")
    assert "00:00:18 to 00:00:25" in again.text(".timeline-tools")
    assert seen != again.text()


def test_the_timeline_follows_keys_and_pointer(pages, shown):
    its = pages().open("/group", cluster="c", group="payments")
    its.page.focus(".timeline-canvas")
    for key in ("n", "n"):
        its.page.keyboard.press(key)
    assert "app-2 joined (MEMBER_JOINED)" in its.text(".timeline-said")
    its.page.keyboard.press("+")
    its.page.keyboard.press("ArrowRight")
    its.page.wait_for_url(lambda url: "from=" in url)
    its.page.keyboard.press("0")
    its.page.wait_for_url(lambda url: "from=" not in url)
    its.page.keyboard.press("Enter")
    its.page.wait_for_url("**/rebalance?**")
    assert rebalance_id(shown) in its.drawn().page.url
    its.page.keyboard.press("p")
    its.page.wait_for_url(lambda url: rebalance_id(shown) not in url)
    assert its.drawn().text("h1").endswith("started up")


def test_everything_can_be_reached_by_keyboard(reader, served, lakehouse):
    story(lakehouse)
    its = reader(served.url).open("/")
    its.page.keyboard.press("Tab")
    assert its.page.evaluate("document.activeElement.textContent") == "Skip to the content"
    reached = set()
    for _ in range(60):
        its.page.keyboard.press("Tab")
        reached.add(its.page.evaluate("document.activeElement.textContent.trim()"))
    assert {"At a glance", "Groups", "UTC", "what to change"} <= reached
    assert any(text.startswith("payments: ") for text in reached)
    its.page.keyboard.press("?")
    assert "the browser" in its.text("dialog")
    its.page.keyboard.press("Escape")
    its.page.keyboard.press("d")
    assert its.page.get_attribute("html", "data-theme") == "dark"


def test_every_page_says_what_is_missing_and_a_page_follows_the_tables(browser, tmp_path):
    with serving(tmp_path / "lake") as served:
        its = browsing.Reader(browser, served.url)
        for page in PAGES:
            its.open(page.path)
            assert len(its.text()) > 10, page.path
        its.open("/group", cluster="c", group="payments")
        assert "no lakehouse at" in its.text()
        lakehouse = empty_lakehouse(tmp_path / "lake")
        story(lakehouse)
        its.page.wait_for_selector("h1:text('payments')")
        its.page.wait_for_selector(".views a:has-text('Rebalances 2')")
        write(lakehouse, rebalance(start=60_000, generation=3, members_before=2), batch=1)
        its.page.wait_for_selector(".views a:has-text('Rebalances 3')")
        its.close()


def test_the_pages_write_times_and_names_as_the_terminal_does(pages):
    its = pages().open("/")
    spans = [0, 999, 1_000, 59_949, 59_950, 60_000, 61_499, 3_599_999, 3_600_000, 7_260_000, 172_799_499, 172_800_000, 900_000_000]
    format_js = "async (values) => { const its = await import('/assets/format.js'); return values.map((value) => its.duration(value)); }"
    assert its.page.evaluate(format_js, spans) == [duration(span) for span in spans]
    names = [
        "plain", "\u202eevil", "\x1b[31m", "\x9b", "a\u0301\u0302", "\u3164", "\U000e0101", "tab\there", "x" * 300,
        "caf\u00e9 \u4e2d\u6587 \U0001f600", "\u00a0",
    ]  # fmt: skip
    dom_js = "async (values) => { const its = await import('/assets/dom.js'); return values.map((value) => its.printable(value)); }"
    assert its.page.evaluate(dom_js, names) == [printable(name) for name in names]
