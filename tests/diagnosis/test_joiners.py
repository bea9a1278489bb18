"""Who kept the others waiting for the end of a join phase: SLOW_JOINER, and who only seems to be one."""

import json

import pytest

from coordinator_model import events as kinds
from coordinator_model.errors import Error
from tests.diagnosis.narrated import (
    LOG,
    Group,
    causes,
    ends,
    finding,
    findings,
    in_any_evidence,
    where_requests_are_seen,
    where_the_log_is_seen,
)
from tests.tracker.story import JOINED, Story, table


def healthy(**how) -> Group:
    """Sessions of 45 s, the default: nobody is lost while a phase waits. Heartbeats come every 3 s until 57.5 s."""
    return Group("a", "b", "c", **{"session_ms": 45_000, **how}).live(60_000)


def waited_for(rows):
    """The member that the last rebalance waited for longest."""
    return table(rows, "rebalances")[-1]["slowest_member_id"]


@where_requests_are_seen
def test_the_last_to_rejoin_kept_all_others_waiting(evidence):
    rows = healthy().comes("d", asks={"b": 8_000}).live(120_000).seen(evidence)
    assert findings(rows) == [("SLOW_JOINER", "b")]
    told = finding(rows, "SLOW_JOINER")
    details = {"join_ms": 8_001, "max_poll_interval_ms": 30_000, "session_timeout_ms": 45_000, "waited_for": [told["member_id"]]}
    assert (told["occurred_at"], told["generation"], json.loads(told["details"])) == (68_001, 2, details)
    assert told["message"] == "The group waited 8 s for this member: it rejoined last."
    assert waited_for(rows) == told["member_id"]


def test_the_coordinator_log_does_not_tell_who_rejoined_last():
    assert findings(healthy().comes("d", asks={"b": 8_000}).live(120_000).seen(LOG)) == []


@where_requests_are_seen
def test_nobody_is_slow_within_a_heartbeat_interval(evidence):
    assert findings(healthy().comes("d", asks={"b": 4_900}).live(120_000).seen(evidence)) == []


@where_requests_are_seen
def test_nobody_is_the_slow_one_where_two_rejoin_late_together(evidence):
    """One of them had to be last."""
    assert findings(healthy().comes("d", asks={"b": 8_000, "c": 12_000}).live(120_000).seen(evidence)) == []


@in_any_evidence
def test_a_member_that_the_join_timer_drops_is_slow(evidence):
    """Frozen, with a session longer than max.poll.interval.ms: the group waits for all of the rebalance timeout."""
    rows = healthy().comes("d", absent=["c"]).live(120_000).seen(evidence)
    assert findings(rows) == [("SLOW_JOINER", "c")]
    told = finding(rows, "SLOW_JOINER")
    assert (told["occurred_at"], "did not rejoin before the rebalance timeout" in told["message"]) == (90_000, True)


@where_requests_are_seen
@pytest.mark.parametrize(("beats", "advice"), [(False, "Its heartbeats stopped too"), (True, "Shorten its work between two polls")])
def test_a_process_that_froze_is_told_from_a_poll_loop_that_stalled(evidence, beats, advice):
    """While a poll loop stalls, the heartbeats go on."""
    group = healthy()
    slow = group["c"]
    for ms in range(63_000, 90_000, 3_000) if beats else ():
        group.at(ms).heartbeat(slow.member, 1, Error.REBALANCE_IN_PROGRESS, **slow.who())
    rows = group.is_at(60_000).comes("d", absent=["c"]).live(120_000).seen(evidence)
    assert findings(rows) == [("SLOW_JOINER", "c")]
    assert advice in finding(rows, "SLOW_JOINER")["advice"]


@in_any_evidence
def test_members_that_the_join_timer_drops_together_are_one_finding(evidence):
    rows = healthy().comes("d", absent=["b", "c"]).live(120_000).seen(evidence)
    assert findings(rows) == [("SLOW_JOINER", "")]
    told = finding(rows, "SLOW_JOINER")
    (rebalance,) = [row for row in table(rows, "rebalances") if row["generation"] == 2]
    limit = "" if evidence == LOG else " (max.poll.interval.ms, 30 s)"
    why = f"they did not rejoin before the rebalance timeout{limit}, and the coordinator removed them."
    assert told["message"].endswith(f" for 2 members: {why}")
    assert json.loads(told["details"])["waited_for"] == rebalance["left"]


@where_requests_are_seen
def test_a_static_member_that_does_not_rejoin_keeps_its_place_and_is_slow_all_the_same(evidence):
    rows = healthy(static=True).comes("d", instance="i-d", absent=["c"]).seen(evidence)
    assert findings(rows) == [("SLOW_JOINER", "c")]
    told = finding(rows, "SLOW_JOINER")
    assert "it did not rejoin before the rebalance timeout (" in told["message"]
    assert waited_for(rows) == told["member_id"]


@where_requests_are_seen
def test_static_members_that_do_not_rejoin_are_one_finding(evidence):
    rows = healthy(static=True).comes("d", instance="i-d", absent=["b", "c"]).seen(evidence)
    assert findings(rows) == [("SLOW_JOINER", "")]
    told = finding(rows, "SLOW_JOINER")
    assert told["message"].endswith(" they are static, and stay members.")
    assert len(json.loads(told["details"])["waited_for"]) == 2


@where_requests_are_seen
def test_a_static_member_that_the_group_did_not_wait_for_is_not_slow(evidence):
    """Its session ended long before the timeout: it is dead, not slow."""
    group = healthy(static=True, session_ms=10_000).dies("c")
    group.at(69_000).log(kinds.MEMBER_FAILED, member_id=group["c"].member)
    del group.consumers["c"]
    rows = group.is_at(60_000).comes("d", instance="i-d", ends=9_000).live(120_000).seen(evidence)
    assert findings(rows) == [("SESSION_TIMEOUT", "c")]


@in_any_evidence
def test_a_dead_member_is_not_slow(evidence):
    """c is killed, and before its session is over d comes: all wait for c until then."""
    group = healthy(session_ms=10_000)
    group.at(60_000).heartbeat(group["c"].member, 1, took=0, **group["c"].who())
    group.at(70_000).log(kinds.MEMBER_FAILED, member_id=group["c"].member)
    del group.consumers["c"]
    rows = group.live(61_000).comes("d", ends=9_000).live(120_000).seen(evidence)
    assert (findings(rows), causes(rows)) == ([("SESSION_TIMEOUT", "c")], ["MEMBER_JOINED"])


@where_requests_are_seen
def test_a_member_that_is_refused_a_place_is_not_slow(evidence):
    """group.max.size is 3: d took the last place while c had not rejoined, so c is refused, and goes."""
    group = healthy()
    late = group.consumers.pop("c")
    group.at(65_900).heartbeat(late.member, 1, Error.REBALANCE_IN_PROGRESS, **late.who())
    group.at(66_000).request(
        kinds.JOIN_GROUP, late.member, error_code=Error.GROUP_MAX_SIZE_REACHED, session_timeout_ms=45_000, rebalance_timeout_ms=30_000,
        api_version=9, protocol_type="consumer", protocols=group.events[-3].protocols, **late.who(),
    )  # fmt: skip
    rows = group.is_at(60_000).comes("d", ends=6_000).live(120_000).seen(evidence)
    assert [code for code, _ in findings(rows) if code != "MODEL_DIVERGENCE"] == ["GROUP_TOO_LARGE"]
    assert ends(rows) == [("c", "GROUP_OVER_CAPACITY")]


@where_requests_are_seen
@pytest.mark.parametrize(("asks_after", "told"), [(45_000, []), (50_900, []), (70_000, [("SLOW_JOINER", "b")])])
def test_nobody_is_slow_while_a_broker_is_in_trouble(evidence, asks_after, told):
    group = healthy().moves("broker-2").live(60_000 + asks_after)
    rows = group.comes("d", asks={"b": 8_000}).live(250_000).seen(evidence)
    assert findings(rows) == [("COORDINATOR_MOVED", ""), *told]


@where_requests_are_seen
def test_nobody_is_slow_in_the_first_rebalance(evidence):
    """The initial delay waits for whoever comes."""
    group = Group()
    for client in ("a", "b"):
        group.consumers[client] = group._new(client)
    group.rebalance("Adding new member a", "a", new=["a", "b"], asks={"b": 7_000}, ends=10_000).live(60_000)
    assert findings(group.seen(evidence)) == []


@where_requests_are_seen
def test_a_newcomer_that_comes_late_is_not_slow(evidence):
    """e joins while b is waited for, and comes last: nobody waited for somebody who was not there."""
    group = healthy()
    group.consumers["e"] = group._new("e")
    group._asks_for_an_id(group["e"], 67_900)
    group.consumers["d"] = group._new("d")
    rows = group.rebalance("Adding new member d", "d", new=["d", "e"], asks={"b": 1_900, "e": 7_900}).live(120_000).seen(evidence)
    assert [code for code, _ in findings(rows) if code == "SLOW_JOINER"] == []
    assert waited_for(rows) == group["b"].member


@where_the_log_is_seen
def test_a_phase_whose_end_was_not_seen_is_nobodys_fault(evidence):
    group = healthy().is_at(60_000)
    group.at(60_000).log_preparing(1, "Adding new member d", "d")
    assert findings(group.is_at(90_000).seen(evidence)) == []


def test_a_group_waits_to_the_end_for_a_member_that_it_refused_as_others_had_taken_its_place() -> None:
    """The group may have two members. c-1 takes the place of b-1, which rejoins 1.5 s later and is refused from then on."""
    limit, full = {"rebalance_timeout_ms": 12_000}, {"error_code": Error.GROUP_MAX_SIZE_REACHED}
    story = Story().at(0).join("a-1", 1, "a-1", ("a-1", "b-1"), waited=3_000, **limit).join("b-1", 1, "a-1", waited=2_900, **limit)
    story.at(5).sync("a-1", 1, {"a-1": ("orders-0",), "b-1": ("orders-1",)}).sync("b-1", 1, {"b-1": ("orders-1",)})
    story.beats(["a-1", "b-1"], 1, 3_000, 20_000).at(20_000).log_preparing(1, JOINED.format("c-1"), "c-1")
    story.at(21_500).request(kinds.JOIN_GROUP, "b-1", **full).at(32_000).log_stabilized(2, members=2)
    story.at(32_001).join("a-1", 2, "a-1", ("a-1", "c-1"), waited=11_000, **limit).join("c-1", 2, "a-1", waited=12_001, **limit)
    story.log_assignment(2, leader="a-1", members=2).at(34_000).request(kinds.JOIN_GROUP, "b-1", **full)
    rows = story.rows()
    waited = [row for row in table(rows, "findings") if row["code"] == "GROUP_TOO_LARGE"][-1]
    assert (waited["member_id"], waited["occurred_at"], json.loads(waited["details"])["join_ms"]) == ("b-1", 32_000, 12_000)
    assert waited["message"].endswith("Its client was left outside the group.")
    assert table(rows, "rebalances")[-1]["slowest_member_id"] == "b-1"
    assert "SLOW_JOINER" not in [row["code"] for row in table(rows, "findings")]
