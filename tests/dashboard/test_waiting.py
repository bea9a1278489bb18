"""The page of a rebalance: the lane that the others waited for, what it did meanwhile, and what set the rebalance off."""

import re
from pathlib import Path

import pytest
from playwright.sync_api import expect

from tests.dashboard import browsing
from tests.effort import long

pytestmark = [pytest.mark.slow, pytest.mark.skipif(browsing.CHROMIUM is None, reason=browsing.MISSING)]

RECORDING = Path(__file__).parents[1] / "data" / "recordings" / "kafka-3.9.1"
WAITS = """async ([row, members, findings, rounds, beats]) => {
    const { waitsOf } = await import('/assets/waterfall.js');
    const { waits, awaited } = waitsOf(row, members, findings, rounds, beats);
    return [waits.map((wait) => `${wait.id} ${wait.from} ${wait.what}`), [...awaited]];
}"""
ROW = {
    "id": "r1", "started_at": 100_000, "joined_at": 110_000, "ended_at": 110_010, "total_ms": 10_010, "outcome": "COMPLETED",
    "finding_id": None, "slowest_member_id": "a", "leader_id": "b", "assignment_ms": 10, "group_protocol": "classic", "awaited": None,
    "waits_for": None,
}  # fmt: skip


@pytest.fixture
def its(browser, recorded):
    made = browsing.Reader(browser, recorded.url)
    yield made
    made.close()


def rebalance(served, group, **wanted):
    """The longest rebalance of a group that is like that."""
    rows = served.json("rows/rebalances", cluster=RECORDING.name, group=group)["rows"]
    return max((row for row in rows if all(row[name] == value for name, value in wanted.items())), key=lambda row: row["total_ms"])


def opened(its, served, group, **wanted):
    row = rebalance(served, group, **wanted)
    its.open("/rebalance", cluster=RECORDING.name, group=group, id=row["id"])
    return row


@pytest.mark.parametrize(
    ("group", "cause", "client", "did"),
    [
        ("room-optimizer", "SYNC_TIMEOUT", "room-optimizer-1", "all waited for it: computing the assignment 10.0 s"),
        ("loyalty-calc", "SESSION_TIMEOUT", "loyalty-calc-2", "silent 8.0 s"),
        long("photo-resize", "POLL_TIMEOUT", "photo-resize-2", "did not call poll() for 18.2 s"),
        long("night-audit", "SLOW_JOINER", "night-audit-2", "all waited for it: no heartbeat for 10.0 s"),
    ],
)
def test_the_lane_that_the_others_waited_for_stands_out_with_what_it_did(its, recorded, group, cause, client, did):
    row = opened(its, recorded, group, blamed=cause)
    lane = its.page.locator("tr.marked")
    expect(lane).to_have_count(1)
    assert its.page.locator(".waterfall tbody tr").nth(1).get_attribute("class") == "marked", "it is the first below the group"
    assert client in lane.inner_text()
    assert lane.locator(".tag.strong").inner_text() == did
    assert its.page.locator(".tag.strong").count() == 1
    drawn = lane.locator(".wf", has_text=did.removeprefix("all waited for it: "))
    expect(drawn).to_have_count(1)
    began = int(drawn.get_attribute("data-from"))
    assert began < row["started_at"] if "waited" not in did else began >= row["started_at"]
    room = its.page.locator("tr.marked .bars").bounding_box()
    assert drawn.bounding_box()["x"] >= room["x"]


def test_a_rebalance_by_a_broker_begins_with_its_trouble_and_nobody_stands_out(its, recorded):
    row = opened(its, recorded, "rate-loader", blamed="COORDINATOR_MOVED")
    assert its.page.locator("tr.marked, .tag.strong").count() == 0
    band = its.page.locator(".waterfall .look-away").first
    assert int(band.get_attribute("data-from")) < row["started_at"]
    its.page.get_by_text("Legend", exact=True).click()
    assert "a broker was down or unresponsive" in its.text(".legend")
    its.page.get_by_role("button", name=re.compile("^Join")).click()
    its.page.wait_for_url(f"**from={row['started_at']}&to={row['joined_at']}**")
    assert "no heartbeat, or no poll()" not in its.drawn().text(".legend")


def test_three_figures_are_in_a_line_and_the_others_are_folded(its, recorded):
    opened(its, recorded, "room-optimizer", blamed="SYNC_TIMEOUT")
    tiles = [" ".join(text.split()) for text in its.page.locator(".facts > li").all_inner_texts()]
    assert tiles == ["11.6 s total", "1 min unowned partition time (sum)", "2 → 3 members before → after"]
    expect(its.page.locator(".figures")).to_be_hidden()
    its.page.click("text=All figures")
    assert "SUPERSEDED" in its.text(".figures")


def test_lines_of_evidence_have_what_matters_marked_and_the_rest_folded(its, recorded):
    row = opened(its, recorded, "night-audit", blamed="SLOW_JOINER")
    its.page.wait_for_selector(".evidence mark")
    marks = set(its.page.locator(".evidence mark").all_text_contents())
    assert {"night-audit", row["culprit_member_id"], "generation 2", '"requestApiKeyName":"JOIN_GROUP"'} <= marks
    assert any(text.startswith("(reason: Adding new member") for text in marks)
    assert not any("requestQueueTimeMs" in text for text in marks)
    folded = its.page.locator(".evidence details").last
    expect(folded.locator("pre")).to_be_hidden()
    folded.locator("summary").click()
    expect(folded.locator("pre")).to_contain_text("requestQueueTimeMs")
    # A drag over the waterfall zooms it.
    its.page.locator("tr.marked .bars").scroll_into_view_if_needed()
    box = its.page.locator("tr.marked .bars").bounding_box()
    its.page.mouse.move(box["x"] + 200, box["y"] + 5)
    expect(its.page.locator(".cross")).to_be_visible()
    its.page.mouse.down()
    its.page.mouse.move(box["x"] + 400, box["y"] + 5, steps=4)
    its.page.mouse.up()
    its.page.wait_for_url(lambda url: "from=" in url)
    first, last = (int(value) for value in re.findall(r"(?:from|to)=(\d+)", its.drawn().page.url))
    assert row["started_at"] < first < last < row["ended_at"]


def test_what_is_said_of_a_wait_is_what_lines_show(its):
    """A silent member, one whose heartbeats went on, one of which no heartbeat is logged, and members of the consumer protocol."""
    its.open("/groups")

    def waits(findings=(), rounds=(), beats=(), requests=(), back=109_900, **values):
        asked = [{"received_at": at} for at in requests]
        members = [
            {"id": "a", "back": back, "requests": asked, "membership": {"ended_at": None}},
            {"id": "b", "back": None, "requests": [], "membership": None},
        ]
        return its.page.evaluate(WAITS, [ROW | values, members, list(findings), list(rounds), list(beats)])

    beats = [{"member_id": "a", "first_at": 100_000, "beats": [1_000, 4_000, 7_000]}]
    assert waits(beats=beats, requests=[109_900]) == [["a 100000 no poll(), or in its revocation callback, for 9.9 s"], ["a"]]
    assert waits(requests=[109_900]) == [["a 100000 no heartbeat for 9.9 s"], ["a"]]
    assert waits() == [["a 100000 rejoined after 9.9 s"], ["a"]], "no request log"
    assert waits(back=None) == [["a 100000 did not rejoin for 10.0 s"], ["a"]]
    assert waits(back=100_500) == [[], []], "it came back at once: the phase did not wait for it"
    assert waits(back=100_500, assignment_ms=9_000)[0] == ["b 110000 computing the assignment 9.0 s"]
    late = {"occurred_at": 110_005, "member_id": "b", "code": "SYNC_TIMEOUT", "details": {"leader": True}, "id": "f1"}
    assert waits([late], back=100_500, joined_at=100_600)[0] == ["b 100600 sent no SyncGroup for 9.4 s"], "it may have stood still"
    earlier = {"occurred_at": 90_000, "member_id": "b", "code": "SESSION_TIMEOUT", "details": {"silent_ms": 8_000}, "id": "f2"}
    assert waits([earlier], back=100_500)[0] == [], "a silence of another rebalance"
    paused = {
        "occurred_at": 100_000,
        "member_id": "b",
        "code": "POLL_TIMEOUT",
        "details": {"silent_ms": 8_000, "max_poll_interval_ms": 5_000},
    }
    assert waits([paused], back=100_500) == [["b 92000 silent 8.0 s"], ["b"]], "its process stood still, not its poll loop alone"
    consumer = {"group_protocol": "consumer", "joined_at": None, "slowest_member_id": None, "back": None}
    assert waits(**consumer | {"slowest_member_id": "a", "back": 101_900})[0] == ["a 100000 next heartbeat after 1.9 s"]
    told = '[{"member_id": "b", "partitions": 2, "told_at": 101000, "ended_at": 108000, "end": "ACKNOWLEDGED"}]'
    assert waits(rounds=[{"revocations": told}], **consumer) == [["b 101000 gave up 2 partitions in 7.0 s"], ["b"]]
    held = {"occurred_at": 110_000, "member_id": "a", "code": "REBALANCE_TIMEOUT", "details": {"rebalance_timeout_ms": 9_000}, "id": "f3"}
    assert waits([held], **consumer) == [["a 101000 did not give partitions up for 9.0 s"], ["a"]]
    unended = {"outcome": "OPEN", "waits_for": "JOIN", "awaited": ["a", "b"]}
    assert waits(**unended) == [["a 100000 did not rejoin for 10.0 s", "b 100000 did not rejoin for 10.0 s"], ["a", "b"]]
