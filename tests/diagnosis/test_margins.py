"""What is not yet a fault: members that nearly ran out of time, that have nothing to do, or that have much more than others."""

import json

import pytest

from coordinator_model import events as kinds
from tests.diagnosis.narrated import LOG, Group, finding, findings, in_any_evidence, where_requests_are_seen
from tests.tracker.story import START_MS, play, table


def pauses(group: Group, ms: int) -> Group:
    """c, with a session of 10 s, is heard now and not again for so long; then it goes on as if nothing had been."""
    paused = group["c"]
    group.at(group.now).heartbeat(paused.member, 1, took=0, **paused.who())
    paused.runs = False
    group.live(group.now + ms)
    paused.runs = True
    group.at(group.now).heartbeat(paused.member, 1, took=0, **paused.who())
    return group


def silent_for(ms: int) -> Group:
    """It pauses at 60 s."""
    return pauses(Group("a", "b", "c").live(60_000), ms)


@where_requests_are_seen
@pytest.mark.parametrize(("ms", "told"), [(7_900, []), (8_000, [("HEARTBEAT_NEAR_MISS", "c")]), (9_900, [("HEARTBEAT_NEAR_MISS", "c")])])
def test_a_member_that_is_heard_in_the_last_fifth_of_its_session_nearly_lost_it(evidence, ms, told):
    assert findings(silent_for(ms).live(100_000).seen(evidence)) == told


def test_how_near_it_was_is_told():
    told = finding(silent_for(9_000).live(100_000).seen(), "HEARTBEAT_NEAR_MISS")
    assert (told["occurred_at"], told["severity"], json.loads(told["details"])) == (
        69_000,
        "WARNING",
        {"session_timeout_ms": 10_000, "silent_ms": 9_000},
    )
    assert told["message"].endswith("silent for 9 s; after 10 s (session.timeout.ms) the coordinator would have removed it.")
    assert len(json.loads(told["evidence"])) == 2


def test_the_coordinator_log_shows_no_heartbeats():
    assert findings(silent_for(9_000).live(100_000).seen(LOG)) == []


@where_requests_are_seen
def test_a_member_that_nearly_loses_its_session_again_is_told_once_in_a_generation(evidence):
    group = pauses(silent_for(9_000).live(80_000), 9_000)
    assert findings(group.live(120_000).seen(evidence)) == [("HEARTBEAT_NEAR_MISS", "c")]


@where_requests_are_seen
def test_who_is_silent_while_its_broker_is_in_trouble_is_not_told(evidence):
    """A heartbeat of b waits for 2.5 s: so did those of c."""
    group = silent_for(9_000)
    group.at(64_600).request(kinds.HEARTBEAT, group["b"].member, took=2_500, generation=1, beats=(0,), **group["b"].who())
    assert findings(group.live(200_000).seen(evidence)) == []


@where_requests_are_seen
def test_a_heartbeat_that_waited_behind_a_slow_commit_is_no_silence(evidence):
    """The broker reads no request of a connection while it handles one: the heartbeat arrives when the commit is answered."""
    group = Group("a", "b", "c").live(60_000)
    busy = group["c"]
    group.at(60_000).heartbeat(busy.member, 1, took=0, **busy.who())
    busy.runs = False
    group.live(69_000)
    group.at(68_900).request(kinds.OFFSET_COMMIT, busy.member, took=8_400, generation=1, error_code=0, **busy.who())
    group.at(69_000).heartbeat(busy.member, 1, took=0, **busy.who())
    busy.runs = True
    rows = group.live(75_000).leaves("c").live(120_000).seen(evidence)
    assert findings(rows) == []
    (session,) = table(rows, "member_sessions")
    assert session["longest_gap_ms"] == 8_500  # its timer ran meanwhile


@where_requests_are_seen
def test_a_heartbeat_may_be_logged_in_the_millisecond_before_the_commit_that_it_waited_behind(evidence):
    """Its arrival is computed from whole milliseconds. What took 1.5 s is no trouble of the broker, but a request of c all the same."""
    group = silent_for(9_000)
    group.at(69_001).request(kinds.OFFSET_COMMIT, group["c"].member, took=1_500, generation=1, error_code=0, **group["c"].who())
    assert findings(group.live(120_000).seen(evidence)) == []


@where_requests_are_seen
@pytest.mark.parametrize(("later_ms", "told"), [(1, []), (100, []), (101, [("HEARTBEAT_NEAR_MISS", "c")])])
def test_heartbeats_that_come_together_were_sent_one_after_the_other_and_waited_on_their_way(evidence, later_ms, told):
    group = silent_for(9_000)
    group.at(69_000 + later_ms).heartbeat(group["c"].member, 1, took=0, **group["c"].who())
    assert findings(group.live(120_000).seen(evidence)) == told


@where_requests_are_seen
def test_a_commit_that_waited_for_replicas_shows_a_broker_in_trouble(evidence):
    """It is of b, and is answered 5 s after the heartbeat of c."""
    group = silent_for(9_000)
    group.at(74_000).request(kinds.OFFSET_COMMIT, group["b"].member, took=7_000, generation=1, error_code=0, **group["b"].who())
    assert findings(group.live(120_000).seen(evidence)) == []


@where_requests_are_seen
@pytest.mark.parametrize(("seconds", "told"), [((0, 61, 67, 120), []), ((0, 61, 66, 120), [("HEARTBEAT_NEAR_MISS", "c")])])
def test_who_is_silent_while_its_broker_stands_still_is_not_told(evidence, seconds, told):
    """It writes no line for 5 or 4 s, about nobody: then the heartbeats of a and b have waited, too. The session of c is 10 s."""
    group = Group("a", "b", "c").live(60_000)
    group.at(60_000).heartbeat(group["c"].member, 1, took=0, **group["c"].who())
    group.is_at(67_500).at(69_000).heartbeat(group["c"].member, 1, took=0, **group["c"].who())
    events = group.live(120_000).evidence(evidence)
    (clock,) = (event for event in events if event.kind == kinds.CLOCK)
    rows = play([[*(event for event in events if event is not clock), clock._replace(received_ms=START_MS, beats=seconds)]])
    assert findings(rows) == told


# what members have to do


def shares(*counts: int, rounds: int = 1) -> Group:
    """Members with so many partitions each: a, b, c … `rounds`: how often the group rebalances and shares them out so."""
    clients = "abcdefgh"[: len(counts)]
    group, given, first = Group(*clients).live(20_000), {}, 0
    for client, count in zip(clients, counts, strict=True):
        given[client], first = tuple(f"orders-{number}" for number in range(first, first + count)), first + count
    for _ in range(rounds):
        group.rejoins("a", gives=given).live(group.now + 70_000)
    return group


@where_requests_are_seen
@pytest.mark.parametrize(("counts", "told"), [
    ((2, 2, 2), []),
    ((1, 1, 0), [("IDLE_MEMBERS", "")]),
    ((8, 2, 2), [("ASSIGNMENT_SKEW", "a")]),
    ((2, 9, 3), [("ASSIGNMENT_SKEW", "b")]),
    ((7, 2, 2), []),  # five more
    ((12, 6, 5), []),  # not three times as many
    ((6, 0, 0), [("ASSIGNMENT_SKEW", "a")]),  # there were enough partitions for all
    ((0, 0, 0), []),  # nothing to share: the topic is not there yet
])  # fmt: skip
def test_partitions_that_are_shared_unevenly_or_not_enough_of_them_are_told(evidence, counts, told):
    assert findings(shares(*counts).seen(evidence)) == told


def test_who_has_how_many_is_told():
    told = finding(shares(9, 2, 3).seen(), "ASSIGNMENT_SKEW")
    details = json.loads(told["details"])
    assert (sorted(details["partitions"].values()), details["assignor"], told["severity"]) == ([2, 3, 9], "range", "INFO")
    assert told["message"] == "One member has 9 partitions, another 2."
    idle = json.loads(finding(shares(1, 1, 0).seen(), "IDLE_MEMBERS")["details"])
    assert (len(idle["idle"]), idle["members"], idle["partitions"]) == (1, 3, 2)


@where_requests_are_seen
@pytest.mark.parametrize(("counts", "code"), [((9, 2, 2), "ASSIGNMENT_SKEW"), ((1, 1, 0), "IDLE_MEMBERS")])
def test_a_division_that_stays_as_it_is_is_told_once(evidence, counts, code):
    assert [told for told, _ in findings(shares(*counts, rounds=3).seen(evidence))] == [code]


@in_any_evidence
def test_a_log_without_assignments_says_nothing_of_them(evidence):
    group = shares(9, 2, 2)
    group.events = [event._replace(assignments=()) for event in group.events]
    assert findings(group.seen(evidence)) == []
