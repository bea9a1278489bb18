"""Whether the client of a member whose session ended came back, and after how long."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tests.diagnosis.narrated import Group, finding, in_any_evidence, where_requests_are_seen


def back(group: Group, client: str, ms: int, **how: Any) -> Group:
    """A process is killed, and started again so long after its session has ended."""
    return group.session_ends(client).live(group.now + ms).comes(client, **how)


@in_any_evidence
@pytest.mark.parametrize(
    ("story", "said"),
    [
        (lambda: back(Group("a", "b").live(60_000), "b", 5_000), " Its client was back 5.1 s later, under a new member id."),
        (lambda: back(Group("a", "b", static=True).live(60_000), "b", 5_000, instance="i-b"), " Its client was back 5.1 s later, under"),
        (lambda: back(Group("a", "b").live(60_000), "b", 15_000), " It had not come back ten seconds later."),
        (lambda: back(Group("a", "b").live(60_000), "b", 4_000).leaves("b"), " Its client was back 4.1 s later"),
    ],
)
def test_whether_the_client_came_back_is_told(evidence: str, story: Callable[[], Group], said: str) -> None:
    group = story()
    assert said in finding(group.live(group.now + 60_000).seen(evidence), "SESSION_TIMEOUT")["message"]


@where_requests_are_seen
def test_how_long_a_static_member_was_away_is_what_its_session_timeout_needs(evidence: str) -> None:
    group = back(Group("a", "b", static=True).live(60_000), "b", 5_000, instance="i-b")
    advice = finding(group.live(group.now + 60_000).seen(evidence), "SESSION_TIMEOUT")["advice"]
    assert "It was back 15.1 s after it was last heard: if that was a restart, session.timeout.ms must be above 151" in advice


@where_requests_are_seen
def test_where_it_is_not_known_whether_the_client_came_back_nothing_is_said(evidence: str) -> None:
    early = Group("a", "b").live(60_000).session_ends("b").live(75_000)
    shared = Group("a", "b").live(60_000)
    shared.consumers["a"].client = shared.consumers["b"].client = "same"
    for group in (early, shared.session_ends("b").live(120_000)):
        message = finding(group.seen(evidence), "SESSION_TIMEOUT")["message"]
        assert message.endswith(("(session.timeout.ms 10000).", "within the session timeout.")), message
