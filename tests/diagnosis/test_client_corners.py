"""Logs of clients that name nobody, name too many, or come too late; and what is told where a limit is not known."""

import json

import pytest

from coordinator_model import events as kinds
from tests.diagnosis.narrated import CLOSED, LOG, LOG_AND_CLIENTS, REQUESTS, STALLED, Consumer, Group, causes, ends, finding, findings
from tests.diagnosis.test_causes import pair


@pytest.mark.parametrize(("words", "cause"), [(STALLED, "POLL_TIMEOUT"), (CLOSED, "MEMBER_LEFT")])
def test_a_client_whose_clock_is_ahead_says_why_it_leaves_after_it_left(words, cause):
    group = pair()
    member = group["b"].member
    group.writes("b", kinds.CLIENT_JOINED, member_id=member, generation=1).is_at(60_002).leaves("b")
    rows = group.writes("b", kinds.CLIENT_LEAVES, 61_500, member_id=member, reason=words).live(120_000).seen(LOG_AND_CLIENTS)
    assert causes(rows) == [cause]
    assert findings(rows) == ([("POLL_TIMEOUT", "b")] if cause == "POLL_TIMEOUT" else [])


def test_a_log_that_begins_late_names_the_only_one_who_left_under_its_client_id():
    """No line says which member id the client had; of those who left lately without a word only one was its."""
    group = Group("a", "b", "c").live(60_000).leaves("b").live(60_500).leaves("c")
    rows = group.writes("b", kinds.CLIENT_POLL_TIMEOUT, 61_500).live(120_000).rows()
    assert (causes(rows), findings(rows)) == (["POLL_TIMEOUT", "MEMBER_LEFT"], [("POLL_TIMEOUT", "b")])
    assert ends(rows) == [("b", "POLL_TIMEOUT"), ("c", "LEFT")]


def test_words_of_a_client_that_is_no_member_are_about_nobody():
    group = pair().writes("x", kinds.CLIENT_REJOINS, reason="subscription has changed from [a] to [b]").is_at(60_003)
    assert causes(group.rejoins("a").live(90_000).seen(LOG_AND_CLIENTS)) == ["LEADER_REJOINED"]


@pytest.mark.parametrize(("kept", "told"), [(False, []), (True, [("POLL_TIMEOUT", "c")])])
def test_what_a_log_calls_a_member_is_remembered_for_256_names(kept, told):
    """Clients up to 2.5 do not log their member id as they join: such lines push nobody out."""
    group = pair().comes("c").live(90_000)
    group.writes("b", kinds.CLIENT_JOINED, member_id=group["c"].member, connection="b#consumer-7")
    for number in range(300):
        group.writes("x", kinds.CLIENT_JOINED, member_id="" if kept else f"x-{number}", connection=f"x#consumer-{number}")
    group.writes("b", kinds.CLIENT_POLL_TIMEOUT, connection="b#consumer-7")
    assert findings(group.is_at(90_002).leaves("c").live(130_000).seen(LOG_AND_CLIENTS)) == told


def test_how_long_a_client_did_not_poll_cannot_be_told_where_its_limit_was_not_seen():
    """The log begins after its JoinGroup, so that max.poll.interval.ms is not known. That it stalled is told all the same."""
    group = Group("a", "b", "c").live(30_000)
    late = group.events[-1].at_ms - 15_000
    group.leaves("c").live(40_000).comes_back("c").live(90_000)
    group.events = [event for event in group.events if event.at_ms > late]
    rows = group.seen(REQUESTS)
    assert ("POLL_TIMEOUT", "c") in findings(rows)
    told = finding(rows, "POLL_TIMEOUT")
    assert json.loads(told["details"])["max_poll_interval_ms"] is None


def test_a_rebalance_that_is_about_no_client_does_not_count_as_a_restart():
    """The broker could not store an assignment, in the middle of a rolling restart."""

    def rolling(*, disturbed: bool) -> Group:
        group = Group("a", "b", "c", "d").live(120_000)
        for client in ("a", "b", "c"):
            group.leaves(client).live(group.now + 5_000)
            if disturbed and client == "b":
                group.rebalance("Error NOT_COORDINATOR when storing group assignment", Consumer("", "", "")).live(group.now + 500)
            group.comes(client).live(group.now + 5_000)
        return group.live(300_000)

    usual, disturbed = (finding(rolling(disturbed=it).seen(LOG), "ROLLING_RESTART") for it in (False, True))
    assert json.loads(disturbed["details"])["rebalances"] == json.loads(usual["details"])["rebalances"]
    assert json.loads(disturbed["details"])["restarted"] == json.loads(usual["details"])["restarted"]
