"""Members and clients, findings and questions in a browser: over a recording, over hostile names, and while tables grow. No JVM."""

import json
import re

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import expect

from jobs.answers import ask, questions
from jobs.common.times import duration
from jobs.dashboard.pages import PAGES
from tests.dashboard import browsing
from tests.dashboard.serving import serving
from tests.effort import every, long
from tests.lakehouse.rows import DAY, MEMBER, finding, line, rebalance, row, write

pytestmark = [pytest.mark.slow, pytest.mark.skipif(browsing.CHROMIUM is None, reason=browsing.MISSING)]

HOSTILE = "<script>document.title='owned'</script><img src=x onerror=\"document.title='owned'\">\u202e\x1b[31m=1+1"
WIDE, PHONE = {"width": 1280, "height": 900}, {"width": 390, "height": 844}
VIEWS = ("", "near", "margins", "members")


@pytest.fixture(scope="module")
def recorded(recorded_lakehouse):
    folder = recorded_lakehouse("recordings/kafka-3.9.1")
    with serving(folder) as served:
        served.folder = folder
        yield served


@pytest.fixture
def reader(reader):
    """Tabs of a dashboard that is served."""
    return lambda served, **context: reader(served.url, **context)


def asked(served, name, **given):
    """The rows of a question as `rebalance ask` has them, not as the server sends them."""
    return ask.BoundQuestion(served.folder, questions.load(name), given).answer().by_name()


def cells(its):
    """The texts of the table, row by row."""
    return its.page.eval_on_selector_all("tbody tr", "rows => rows.map(row => [...row.cells].map(cell => cell.innerText.trim()))")


def addresses(served):
    """Every page, and the states of these three that look different."""
    found = asked(served, "findings", severity="ERROR", limit="1")[0]
    of = {"cluster": found["cluster"], "group": found["group_id"]}
    one = asked(served, "rebalances", group=found["group_id"])[0]
    states = [("/members", {"view": view}) for view in VIEWS[1:]] + [("/members", {"by": "software"}), ("/findings", {"id": found["id"]})]
    states += [("/questions", {"name": "why"}), ("/findings", {"text": "nothing has this"})]
    deep = [("/group", of), ("/group", of | {"tab": "findings"}), ("/rebalance", of | {"id": one["id"]})]
    few = {"limit": 8}  # axe looks at every cell
    return [*((page.path, few) for page in PAGES), *deep, *((path, few | values) for path, values in states)]


@pytest.mark.parametrize(("limit", "least"), [("1", 1), long("12", 30)])
def test_no_time_over_the_lanes_of_a_rebalance_is_cut_off(reader, recorded, limit, least):
    its = reader(recorded)
    labels = 0
    for one in asked(recorded, "rebalances", limit=limit):
        its.open("/rebalance", cluster=one["cluster"], group=one["group_id"], id=one["id"])
        its.page.wait_for_selector(".waterfall")
        room, spans = its.page.evaluate(
            """() => {
                const ends = (each) => { const box = each.getBoundingClientRect(); return [box.left, box.right]; };
                return [ends(document.querySelector(".waterfall thead .bars")), [...document.querySelectorAll(".tick-label")].map(ends)];
            }"""
        )
        assert all(room[0] <= left and right <= room[1] for left, right in spans), one["id"]
        labels += len(spans)
    assert labels > least


@pytest.mark.parametrize("share", every(9, range(9)))
def test_every_page_shows_a_recording_to_everybody(reader, recorded, share):
    """By day on a wide screen, and by night on a phone."""
    its = reader(recorded, bypass_csp=True)  # axe is put into the page
    for path, values in addresses(recorded)[share::9]:
        its.page.set_viewport_size(WIDE)
        its.page.emulate_media(color_scheme="light")
        its.open(path, **values)
        assert its.page.get_attribute("main", "data-drawn") != "problem", path
        found = violations(its, {"resultTypes": ["violations"]})
        assert its.page.evaluate("document.documentElement.scrollWidth <= innerWidth"), f"{path} {values} is wider than the screen"
        its.page.set_viewport_size(PHONE)
        its.page.emulate_media(color_scheme="dark")
        assert its.page.evaluate("document.documentElement.scrollWidth <= innerWidth"), f"{path} {values} is wider than a phone"
        found += violations(its, {"runOnly": ["color-contrast", "scrollable-region-focusable", "target-size"]})
        assert [(path, values, *one) for one in found] == []


def violations(its, options):
    """What axe takes for serious."""
    found = Axe().run(its.page, options=options).response["violations"]
    serious = [one for one in found if one["impact"] in {"serious", "critical"}]
    return [(one["id"], [node["html"][:120] for node in one["nodes"][:3]]) for one in serious]


def test_the_league_has_the_numbers_of_its_questions(reader, recorded):
    its = reader(recorded)
    for by, name in (("", "culprits"), ("software", "culprits-by")):
        rows = asked(recorded, name, limit="50", **({"by": by} if by else {}))
        its.open("/members", by=by)
        shown = cells(its)
        assert len(shown) == len(rows) > 0
        for texts, one in zip(shown, rows, strict=True):
            numbers = [duration(one["total_ms"]), duration(one["unavailable_partition_ms"]), one["cause"]]
            named = [one["client_id"], one["client_host"]] if not by else [one["culprit"], str(one["clients"]), str(one["hosts"])]
            assert texts[: len(named)] == named
            assert texts[len(named) + 1 : len(named) + 6] == [str(one["rebalances"]), str(one["failures"]), *numbers]


def test_near_misses_are_silences_that_the_session_survived(reader, recorded):
    its = reader(recorded)
    for session, wanted in (("", False), ("expired", True)):
        rows = [one for one in asked(recorded, "silences", limit="1000") if one["expired"] is wanted]
        its.open("/members", view="near", session=session, limit=1000)
        assert [(texts[0], texts[6]) for texts in cells(its)] == [(one["client_id"], duration(one["silent_ms"])) for one in rows]


def test_filters_go_to_the_address_and_the_address_to_the_filters(reader, recorded):
    its = reader(recorded).open("/findings")
    its.page.get_by_role("button", name="Warning").click()
    expect(its.page).to_have_url(re.compile(r"severity=WARNING"))
    its.page.get_by_label("Code").select_option("COORDINATOR_MOVED")
    its.page.get_by_label("Search").fill("BROKER")
    expect(its.page).to_have_url(re.compile(r"severity=WARNING&code=COORDINATOR_MOVED&text=BROKER"))
    rows = asked(recorded, "findings", severity="WARNING", code="COORDINATOR_MOVED", text="BROKER")
    expect(its.page.locator(".finding")).to_have_count(len(rows))
    again = reader(recorded).open(its.page.url.removeprefix(recorded.url))
    assert again.text(".out") == its.text(".out")
    assert again.page.get_by_label("Search").input_value() == "BROKER"
    assert again.page.get_by_role("button", name="Warning").get_attribute("aria-pressed") == "true"
    again.page.get_by_role("button", name="Clear the filters").click()
    expect(again.page.get_by_label("Search")).to_have_value("")
    again.page.go_back()
    expect(again.page.get_by_label("Search")).to_have_value("BROKER")
    assert again.drawn().text(".out") == its.text(".out")


def test_a_finding_has_advice_and_the_lines_that_prove_it(reader, recorded):
    (found,) = asked(recorded, "findings", severity="ERROR", limit="1")
    its = reader(recorded).open("/findings", id=found["id"], severity="INFO")  # its address, whatever the filters say
    (whole,) = recorded.json("rows/finding", id=found["id"], limit=1)["rows"]
    expect(its.page.locator(".finding .more")).to_contain_text(whole["advice"])
    lines = recorded.json(f"evidence/{found['id']}")["lines"]
    assert len(lines) > 0
    expect(its.page.locator("pre.line")).to_have_text([one["text"] for one in lines])
    its.open("/findings", id="f00000000000")
    assert "No finding has the id f00000000000." in its.text()


def test_findings_are_below_the_rows_of_their_incidents(reader, recorded):
    its = reader(recorded).open("/findings")
    entries = recorded.json("attention")["entries"]
    rows = its.page.locator(".result details:has(> .row)")
    expect(rows).to_have_count(len(entries))
    for place, entry in enumerate(entries):
        shown = rows.nth(place).locator(".finding").evaluate_all("all => all.map(each => each.id.slice(8))")
        assert shown
        assert set(shown) <= {*entry["findings"], *entry["followed_by"]}
        assert rows.nth(place).locator(".row").inner_text().startswith(entry["title"])
        assert its.page.locator(f"#finding-{shown[0]}").is_hidden(), "folded"
    assert its.page.locator(".finding").count() == len(asked(recorded, "findings", limit="1000"))
    rows.first.locator(".row").click()
    rows.first.locator(".finding > summary").nth(1).click()
    its.page.wait_for_url("**id=f**")
    expect(rows.first.locator(".finding .more .place").first).to_be_visible()
    rows.first.locator(".finding > summary").nth(1).click()
    its.page.wait_for_url(lambda url: "id=" not in url)
    expect(rows.first.locator(".finding").first).to_be_visible()


def test_the_keyboard_does_all(reader, recorded):
    its = reader(recorded).open("/findings")
    press, active = its.page.keyboard.press, lambda script: its.page.evaluate(f"document.activeElement.{script}")
    press("/")
    assert active("id") == "field-text"
    its.page.keyboard.type("session")
    expect(its.page).to_have_url(re.compile("text=session"))
    assert active("id") == "field-text"  # it is drawn again, and one goes on typing
    its.drawn()
    press("Tab")
    assert active("id") == "field-group"
    its.page.evaluate("document.activeElement.blur()")
    press("j")
    press("j")
    press("k")
    press("Enter")
    first = its.page.locator(".finding").first.get_attribute("id").removeprefix("finding-")
    expect(its.page).to_have_url(re.compile(f"id={first}"))
    expect(its.page.locator(f"#finding-{first} .more")).to_be_visible()
    assert active("dataset.key") == first
    its.open("/members")
    wanted = its.page.eval_on_selector_all(
        "a[href], button, input, select, [tabindex='0']", "all => all.filter(each => each.checkVisibility()).length"
    )
    reached = set()
    for _ in range(wanted + 2):
        press("Tab")
        reached.add(its.page.evaluate("[...document.querySelectorAll('*')].indexOf(document.activeElement)"))
    assert len(reached) >= wanted


def test_a_question_is_asked_with_its_parameters(reader, recorded):
    its = reader(recorded).open("/questions")
    its.page.get_by_role("searchbox").fill("nothing has this")
    expect(its.page.locator(".library a")).to_have_count(0)
    its.page.get_by_role("searchbox").fill("payer expensive")
    its.page.locator(".library a").first.click()
    expect(its.page).to_have_url(re.compile("name=bill"))
    its.page.get_by_label("by").select_option("day")
    expect(its.page).to_have_url(re.compile("by=day"))
    rows = asked(recorded, "bill", by="day")
    expect(its.page.locator("tbody tr")).to_have_count(len(rows))
    assert cells(its.drawn())[0][:4] == [rows[0]["payer"], *(str(rows[0][name]) for name in ("clients", "groups", "rebalances"))]
    assert its.text(".command code") == "rebalance ask bill --lakehouse DIR --set by=day"
    with its.page.expect_download() as download:
        its.page.get_by_role("link", name="CSV").click()
    assert download.value.suggested_filename == "bill.csv"
    assert download.value.path().read_bytes() == recorded.get("/api/export/bill.csv", by="day")[2]


def test_what_is_no_value_is_refused_where_it_was_typed(reader, recorded):
    its = reader(recorded)
    for path in ("/findings", "/members", "/questions?name=why"):
        its.open(path)
        its.page.get_by_label("since").fill("yesterday")
        its.page.keyboard.press("Enter")
        expect(its.page.get_by_role("alert")).to_contain_text("neither a time in UTC")
        assert its.page.get_by_label("since").input_value() == "yesterday"
    assert {text for text in its.wrong if "400" not in text} == set()
    its.wrong.clear()  # Chromium logs every answer of status 400


def test_times_are_those_of_the_zone(reader, recorded):
    its = reader(recorded, timezone_id="Asia/Tokyo").open("/members")
    utc = cells(its)[0][-1]
    its.page.keyboard.press("u")
    expect(its.page).to_have_url(re.compile("tz=local"))
    expect(its.page.locator(".above")).to_contain_text("local time, UTC+09:00")
    local = cells(its.drawn())[0][-1]
    hours = [int(text[-8:-6]) for text in (utc, local)]
    assert (hours[0] + 9) % 24 == hours[1]
    assert utc[-6:] == local[-6:]


@pytest.mark.parametrize("share", every(3, range(3)))
def test_hostile_names_are_text(reader, served, lakehouse, share):
    names = {"client_id": HOSTILE, "client_host": HOSTILE, "member_id": HOSTILE}
    silent = {"kind": "HEARTBEAT", "error_code": 0, "session_timeout_ms": 6_000, "source": "request"} | names
    write(
        lakehouse,
        line(at=90_000),
        line(HOSTILE, **silent | {"kind": "JOIN_GROUP"}),
        line(HOSTILE, at=5_000, beats=[0], beat_count=1, **silent),
        row("member_sessions", group_id=HOSTILE, ended_at=DAY + 9_000, end_kind="SESSION_TIMEOUT", software=HOSTILE, **names),
        rebalance(HOSTILE, start=9_000, members_before=2, **names),
        finding(group_id=HOSTILE, message=HOSTILE, advice=HOSTILE, details=json.dumps({HOSTILE: HOSTILE}), **names),
    )
    (found,) = served.ask("findings")
    its = reader(served)
    states = [("/members", {"view": view}) for view in VIEWS] + [("/members", {"by": "application"})]
    states += [("/findings", {"id": found["id"]}), *(("/questions", {"name": name}) for name in ("findings", "why", "timeline", "members"))]
    for path, values in states[share::3]:
        its.open(path, **values)
        text = its.page.inner_text("main")
        assert "<script>document.title" in text, (path, values)
        assert not set(text) & {"\u202e", "\x1b"}, (path, values)
        assert its.page.locator("main script, main img").count() == 0
        assert its.page.title() != "owned"
    its.open("/questions", name="findings", text=HOSTILE)  # from the address
    assert its.page.locator("article, tbody tr").count() == 1


def test_pages_grow_with_the_tables_and_leave_alone_what_is_typed(reader, served, lakehouse):
    its = reader(served).open("/findings")
    assert "No findings." in its.text()
    league = reader(served).open("/members")
    assert "Nothing found." in league.text()
    its.page.get_by_label("client.id").press_sequentially("app")
    write(
        lakehouse, line(), line(at=90_000), finding(client_id="app-1", member_id=MEMBER),
        rebalance(start=1_000, members_before=2, client_id="app-1", client_host="h"),
    )  # fmt: skip
    expect(its.page.locator(".finding")).to_have_count(1)
    expect(its.page.get_by_label("client.id")).to_be_focused()
    expect(its.page.get_by_label("client.id")).to_have_value("app")
    expect(league.page.locator("tbody tr")).to_have_count(1)
    write(lakehouse, finding(occurred_at=DAY + 1, code="POLL_TIMEOUT", client_id="app-2"), batch=1)
    expect(its.page.locator(".finding h2")).to_have_text(["SESSION_TIMEOUT", "POLL_TIMEOUT"])
    assert "POLL_TIMEOUT" in its.page.get_by_label("Code").inner_text()
