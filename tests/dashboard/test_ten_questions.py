"""Ten questions of an incident, answered from the first page of five recordings, each with one click at most.

`pytest tests/dashboard/test_ten_questions.py -s` prints what was clicked, how long that took, and each answer.
"""

import re
import time

import pytest

from jobs.answers.attention_words import OVER, STILL_ON
from tests.dashboard import browsing
from tests.dashboard.serving import serving
from tests.effort import long

pytestmark = [pytest.mark.slow, pytest.mark.skipif(browsing.CHROMIUM is None, reason=browsing.MISSING)]

NAMES = (
    "recordings/kafka-4.2.0",
    *map(long, ("recordings/kafka-3.9.1", "staged/kafka-3.9.1", "staged/kafka-4.2.0-to-4.4.0", "staged/kafka-4.4.0-consumer")),
)


@pytest.fixture(scope="module", params=NAMES)
def recorded(request, recorded_lakehouse):
    with serving(recorded_lakehouse(request.param)) as served:
        served.cluster = request.param.rpartition("/")[2]
        yield served


class Asking:
    """A reader at the first page, who counts clicks and seconds."""

    def __init__(self, its, name):
        self.its, self.name = its, name

    def ask(self, question, find, click=None):
        """The answer to a question, on the first page or after a click on what leads there."""
        began = time.monotonic()
        if click is not None:
            self.its.page.locator(click).first.click()
            self.its.drawn()
        answer = " ".join(find(self.its.page).split())
        clicks = int(click is not None)
        print(f"{self.name:28} {question:28} {clicks} click{'s' if clicks != 1 else ' '} {time.monotonic() - began:5.2f} s  {answer[:110]}")  # noqa: T201
        return answer


def test_ten_questions_are_answered_with_one_click_at_most(browser, recorded, request):
    overview = recorded.json("overview")
    first = overview["entries"][0]
    its = browsing.Reader(browser, recorded.url)
    asking = Asking(its.open("/"), request.node.callspec.id)
    row, panel = "button.row >> nth=0", ".detail"

    def of_panel(pattern):
        return lambda page: re.search(pattern, page.locator(panel).inner_text(), re.DOTALL)[1]

    minute = next(row["occurred_at"] for lane in overview["lanes"] for row in lane["findings"]) // 60_000 * 60_000
    script = (
        "(marks, at) => marks.filter(mark => mark.dataset.from >= at && mark.dataset.from < at + 60000).map(mark => mark.title).join('; ')"
    )
    happened = asking.ask("what happened at that time", lambda page: page.locator(".wf-mark").evaluate_all(script, minute))
    assert happened
    who = first["clients"].split(",")[0].partition(" (")[0] or first["subject"].partition(",")[0].removeprefix(f"{recorded.cluster}/")
    assert who in asking.ask("who did it", lambda page: page.locator(".sentence").inner_text())
    groups = asking.ask("which groups", lambda page: page.locator(panel).inner_text(), row)
    assert all(group in groups for group in first["groups"])
    lasted = first["last_at"] - first["first_at"]
    assert asking.ask("how long", of_panel(r"(\d\d:\d\d:\d\d(?: to [^,\n]*?\))?)")).endswith(")") == (lasted >= 1_000)
    # Where the lines end before that is known, the card says nothing of it, and the group's page has its state at their end.
    if first["outcome"]:
        assert asking.ask("is it over", of_panel(f"({OVER}|{STILL_ON})")) == first["outcome"]
    else:
        state = asking.ask("is it over", lambda page: page.locator(".facts > li").first.inner_text(), ".lane .name")
        assert state.partition(" ")[0] in {"Stable", "Empty", "Dead", "PreparingRebalance", "CompletingRebalance", "Reconciling", "UNKNOWN"}
        its.open("/")
    assert asking.ask("what do I change", lambda page: page.locator(f"{row} >> .change").inner_text()) == first["change"]
    deploys = recorded.ask("deploys", limit=5)
    told = asking.ask("was it a deploy", lambda page: page.locator("#deploys").inner_text(), "a[href='#deploys']")
    assert all(row["group_id"] in told for row in deploys)
    assert deploys or "came back under a new member id twice or more" in told
    repeated = asking.ask("does it repeat", lambda page: page.locator(row).inner_text())
    assert (f"{len(first['findings'])} times" in repeated) == (len(first["findings"]) > 1 and not first["away"])
    clients = asking.ask("which client costs most", lambda page: page.locator("#clients").inner_text(), "a[href='#clients']")
    culprits = recorded.ask("culprits", limit=5, since="2020-01-01")
    assert all(row["client_id"][:30] in clients for row in culprits if row["client_id"])
    assert "main cause" in clients.lower()  # the one that took most of the time, not the most frequent
    assert "findings" not in clients.lower()  # which name fewer clients
    lines = recorded.json(f"evidence/{first['id']}")["lines"]

    def proven(page):
        page.locator(f"{panel} .place").first.wait_for()
        return page.locator(panel).inner_text()

    its.open("/")
    proof = asking.ask("what proves it", proven, row)
    assert lines
    assert all(line["place"] in proof for line in lines)
    its.close()
