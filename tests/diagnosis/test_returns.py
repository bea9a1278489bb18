"""Whether the client of a member whose session ended came back, and after how long."""

import json
from collections.abc import Callable
from typing import Any

import pytest

from coordinator_model import events as kinds
from tests.diagnosis.narrated import Group, finding, in_any_evidence, where_requests_are_seen
from tests.tracker.story import START_MS, play


def back(group: Group, client: str, ms: int, **how: Any) -> Group:
    """A process is killed, and started again so long after its session has ended."""
    return group.session_ends(client).live(group.now + ms).comes(client, **how)


@in_any_evidence
@pytest.mark.parametrize(
    ("story", "said"),
    [
        (lambda: back(Group("a", "b").live(60_000), "b", 5_000), " A client with its name joined 5.1 s later, under a new member id."),
        (lambda: back(Group("a", "b", static=True).live(60_000), "b", 5_000, instance="i-b"), " It was back 5.1 s later, under a new"),
        (lambda: back(Group("a", "b").live(60_000), "b", 15_000), " It was not back within ten seconds."),
        (lambda: back(Group("a", "b").live(60_000), "b", 4_000).leaves("b"), " A client with its name joined 4.1 s later"),
    ],
)
def test_whether_the_client_came_back_is_told(evidence: str, story: Callable[[], Group], said: str) -> None:
    group = story()
    assert said in finding(group.live(group.now + 60_000).seen(evidence), "SESSION_TIMEOUT")["message"]


@where_requests_are_seen
def test_how_long_a_static_member_was_away_is_what_its_session_timeout_needs(evidence: str) -> None:
    group = back(Group("a", "b", static=True).live(60_000), "b", 5_000, instance="i-b")
    advice = finding(group.live(group.now + 60_000).seen(evidence), "SESSION_TIMEOUT")["advice"]
    assert "It was back 15.1 s after its last heartbeat: if that was a restart, set session.timeout.ms above 15.2 s" in advice
    assert advice.count("session.timeout.ms") == 1, "one setting, one order"


@where_requests_are_seen
def test_no_longer_session_would_have_kept_a_dynamic_member_whose_process_was_another(evidence: str) -> None:
    """It was killed, and a client of its name joined. One that had stood still is refused under its old id first."""
    row = finding(back(Group("a", "b").live(60_000), "b", 5_000).live(140_000).seen(evidence), "SESSION_TIMEOUT")
    assert json.loads(row["details"])["away_ms"] is None


@where_requests_are_seen
def test_where_it_is_not_known_whether_the_client_came_back_nothing_is_said(evidence: str) -> None:
    early = Group("a", "b").live(60_000).session_ends("b").live(75_000)
    shared = Group("a", "b").live(60_000)
    shared.consumers["a"].client = shared.consumers["b"].client = "same"
    for group in (early, shared.session_ends("b").live(120_000)):
        message = finding(group.seen(evidence), "SESSION_TIMEOUT")["message"]
        assert message.endswith(("(session.timeout.ms is 10 s).", "within the session timeout.")), message


@pytest.mark.parametrize("reads_back", [False, True])
def test_where_a_broker_reads_the_group_back_another_may_have_heard_its_members(reads_back):
    """It writes nothing for 8 s, and then ends the session of c, which it heard at 57.5 s."""
    group = Group("a", "b", "c").live(60_000).is_at(68_000)
    group["c"].runs = False
    if reads_back:
        group.moves("broker-1", 0)
    events = group.live(68_100).expires("c").comes("c").live(150_000).evidence()
    clock = next(event for event in events if event.kind == kinds.CLOCK)
    rows = play([[*(event for event in events if event is not clock), clock._replace(received_ms=START_MS, beats=(0, 59, 68, 150))]])
    assert (json.loads(finding(rows, "COORDINATOR_MOVED")["details"])["unheard_ms"] is None) == reads_back
