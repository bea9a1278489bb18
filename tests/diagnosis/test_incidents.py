"""A broker in trouble is one fact: what it costs a group is told with it, once, and not of each member."""

import json

import pytest

from coordinator_model import events as kinds
from coordinator_model.errors import Error
from tests.diagnosis.narrated import (
    BOTH,
    LOG,
    REQUESTS,
    Group,
    causes,
    finding,
    findings,
    in_any_evidence,
    where_requests_are_seen,
    where_the_log_is_seen,
)
from tests.tracker.story import START_MS, play, table


def lost(rows):
    """Clients of the members that COORDINATOR_MOVED says were lost."""
    moved = finding(rows, "COORDINATOR_MOVED")
    details = json.loads(moved["details"])
    assert moved["severity"] == ("ERROR" if details["members_lost"] else "WARNING")
    return [member.split("-")[0] for member in details["members_lost"]]


def healthy() -> Group:
    return Group("a", "b", "c").live(60_000)


def test_a_session_timeout_of_a_healthy_cluster_is_told_as_such():
    for evidence in (LOG, REQUESTS, BOTH):
        rows = healthy().session_ends("c").live(100_000).seen(evidence)
        assert (findings(rows), causes(rows)) == ([("SESSION_TIMEOUT", "c")], ["SESSION_TIMEOUT"]), evidence


# the coordinator moves


@in_any_evidence
def test_a_move_that_all_members_live_through_is_one_finding_and_no_rebalance(evidence):
    rows = healthy().moves("broker-2").live(150_000).seen(evidence)
    assert (findings(rows), causes(rows)) == ([("COORDINATOR_MOVED", "")], [])
    moved = finding(rows, "COORDINATOR_MOVED")
    assert {k: json.loads(moved["details"])[k] for k in ("from_broker", "to_broker", "members_lost")} == {
        "from_broker": "broker-1",
        "to_broker": "broker-2",
        "members_lost": [],
    }
    assert 60_000 <= moved["occurred_at"] <= 61_500


@in_any_evidence
def test_a_member_that_does_not_find_the_new_coordinator_in_time_is_lost_to_the_move(evidence):
    """c was last heard before the move; the new coordinator starts its session again, does not hear it, and c comes back later."""
    group = healthy()
    group.moves("broker-2", 2_000).dies("c")
    # The session of c starts anew when the group is loaded. That shows in a request log when the first member is heard.
    group.live(72_100).expires("c")
    rows = group.live(76_000).comes("c").live(150_000).seen(evidence)
    assert (findings(rows), causes(rows)) == ([("COORDINATOR_MOVED", "")], ["COORDINATOR_MOVED"] * 2)
    assert lost(rows) == ["c"]
    assert "1 of its members" in finding(rows, "COORDINATOR_MOVED")["message"]


@where_the_log_is_seen
def test_a_member_that_never_comes_back_may_have_died_before_its_broker_did(evidence):
    """It was killed, or closed while it had no coordinator: what the move did to it nobody knows."""
    group = healthy().dies("c").live(62_000).moves("broker-2", 2_000)
    group.live(72_100).expires("c")
    rows = group.live(150_000).seen(evidence)
    assert (findings(rows), causes(rows)) == ([("COORDINATOR_MOVED", ""), ("SESSION_TIMEOUT", "c")], ["SESSION_TIMEOUT"])
    assert lost(rows) == []


@in_any_evidence
def test_where_the_lines_end_before_it_need_have_come_back_the_move_counts(evidence):
    group = healthy().moves("broker-2", 2_000).dies("c")
    group.live(72_100).expires("c")
    rows = group.live(78_000).seen(evidence)
    assert (findings(rows), causes(rows), lost(rows)) == ([("COORDINATOR_MOVED", "")], ["COORDINATOR_MOVED"], ["c"])


@where_requests_are_seen
def test_a_member_that_was_heard_after_the_move_fell_silent_by_itself(evidence):
    rows = healthy().moves("broker-2").live(75_000).session_ends("c").live(150_000).seen(evidence)
    assert findings(rows) == [("COORDINATOR_MOVED", ""), ("SESSION_TIMEOUT", "c")]
    assert lost(rows) == []


def test_without_a_request_log_the_time_shows_that_a_member_was_heard_after_the_move():
    """Sessions last whole seconds. One that began when the group was loaded would have ended at another time."""
    rows = healthy().moves("broker-2").live(75_400).session_ends("c").live(150_000).seen(LOG)
    assert (causes(rows), lost(rows)) == (["SESSION_TIMEOUT"], [])


@in_any_evidence
def test_a_session_that_ends_long_after_the_move_is_not_its_doing(evidence):
    rows = healthy().moves("broker-2").live(140_000).session_ends("c").live(200_000).seen(evidence)
    assert (findings(rows), causes(rows)) == ([("COORDINATOR_MOVED", ""), ("SESSION_TIMEOUT", "c")], ["SESSION_TIMEOUT"])


@in_any_evidence
def test_each_move_is_told_once(evidence):
    """There and back within a minute: two facts. What the new coordinator says again and again is none."""
    group = healthy().moves("broker-2").live(80_000).moves("broker-1").live(200_000)
    rows = group.seen(evidence)
    assert findings(rows) == [("COORDINATOR_MOVED", "")] * 2
    details = [json.loads(row["details"]) for row in table(rows, "findings")]
    assert [(d["from_broker"], d["to_broker"]) for d in details] == [("broker-1", "broker-2"), ("broker-2", "broker-1")]


@where_the_log_is_seen
def test_the_lost_member_may_be_logged_before_the_trouble(evidence):
    """Both are written within moments. A session timeout is held for 10 s until it is known whether a broker was the reason."""
    group = healthy().session_ends("c").live(78_000)
    rows = group.moves("broker-2").live(79_000).comes("c").live(160_000).seen(evidence)
    assert findings(rows) == [("COORDINATOR_MOVED", "")]
    assert lost(rows) == ["c"]


@where_the_log_is_seen
def test_but_not_more_than_ten_seconds_before(evidence):
    group = healthy().session_ends("c").live(82_000)
    rows = group.moves("broker-2").live(160_000).seen(evidence)
    assert findings(rows) == [("SESSION_TIMEOUT", "c"), ("COORDINATOR_MOVED", "")]


# COORDINATOR_MOVED as a cause


@in_any_evidence
def test_a_client_of_the_group_that_comes_back_under_a_new_id_did_not_join(evidence):
    group = healthy().moves("broker-2", 2_000)
    group.dies("c").live(72_100).expires("c")
    rows = group.live(80_000).comes("c").live(150_000).seen(evidence)
    assert causes(rows) == ["COORDINATOR_MOVED", "COORDINATOR_MOVED"]
    back = [row for row in table(rows, "rebalances") if row["cause"] == "COORDINATOR_MOVED"][-1]
    assert back["client_id"] == "c"


@in_any_evidence
def test_a_client_that_did_not_belong_to_the_group_joins_after_a_move_as_ever(evidence):
    rows = healthy().moves("broker-2").live(70_000).comes("d").live(150_000).seen(evidence)
    assert causes(rows) == ["MEMBER_JOINED"]


@in_any_evidence
def test_after_a_minute_a_client_that_comes_back_has_its_own_reasons(evidence):
    group = healthy().moves("broker-2", 2_000)
    group.dies("c").live(72_100).expires("c")
    rows = group.live(130_000).comes("c").live(200_000).seen(evidence)
    assert causes(rows) == ["SESSION_TIMEOUT", "MEMBER_JOINED"]


@in_any_evidence
def test_a_client_that_had_left_by_itself_was_started_again(evidence):
    rows = healthy().moves("broker-2").live(70_000).leaves("c").live(90_000).comes("c").live(160_000).seen(evidence)
    assert causes(rows) == ["MEMBER_LEFT", "MEMBER_JOINED"]


@in_any_evidence
def test_one_that_left_right_before_the_move_belonged_to_the_group_too(evidence):
    """Its session ended at the old coordinator, and it came back at the new one: within a minute that is one story."""
    group = healthy().session_ends("c").live(78_000)
    rows = group.moves("broker-2").live(85_000).comes("c").live(160_000).seen(evidence)
    assert causes(rows)[-1] == "COORDINATOR_MOVED"


# another broker is lost, and the coordinator stays


@where_the_log_is_seen
@pytest.mark.parametrize("elected_after", [-5_000, 9_000])
def test_a_client_that_lives_and_loses_its_session_beside_an_election_was_not_heard(evidence, elected_after):
    """The coordinator waited for the replica that it lost: sessions end, and their clients come back at once under other ids."""
    group = healthy().session_ends("c").comes("c")
    group.elected(4, 70_000 + elected_after)
    rows = group.live(170_000).seen(evidence)
    assert findings(rows) == [("COORDINATOR_MOVED", "")]
    assert lost(rows) == ["c"]
    told = finding(rows, "COORDINATOR_MOVED")
    assert "did not answer in time" in told["message"]
    assert "Check whether another broker was lost at that time" in told["advice"]
    needed = "above 10.2 s: the last heartbeat of c that was accepted came 10.1 s before its coordinator heard it again, or could have."
    unknown = " Raise session.timeout.ms: it was too short to survive this."
    assert told["advice"].endswith(needed if evidence == BOTH else unknown)
    lines = {(e.origin, e.position): e.kind for e in group.events}
    proof = {lines[ref["origin"], ref["position"]] for ref in json.loads(told["evidence"])}
    assert proof == {kinds.COORDINATOR_ELECTED, kinds.MEMBER_FAILED}


@where_the_log_is_seen
@pytest.mark.parametrize("elected_after", [-55_000, -5_000])
def test_a_process_that_dies_after_an_election_died_by_itself(evidence, elected_after):
    """It does not come back. A session timeout alone does not show what the broker had to do with it, nor whose partition it took over."""
    group = healthy().session_ends("c")
    group.elected(4, 70_000 + elected_after)
    rows = group.live(170_000).seen(evidence)
    assert (findings(rows), causes(rows)) == ([("SESSION_TIMEOUT", "c")], ["SESSION_TIMEOUT"])
    assert "had become the coordinator" not in finding(rows, "SESSION_TIMEOUT")["message"]


@where_the_log_is_seen
def test_how_long_before_its_broker_took_this_group_over_is_told(evidence):
    group = healthy().moves("broker-2").live(75_400).session_ends("c")
    told = finding(group.live(170_000).seen(evidence), "SESSION_TIMEOUT")
    assert told["message"].endswith(" The broker had become the coordinator 25.4 s before.")
    assert json.loads(told["details"])["coordinator_elected_ms_before"] == 25_400


# a broker that hangs


@where_requests_are_seen
@pytest.mark.parametrize(("still_ms", "told"), [(8_000, [("COORDINATOR_MOVED", "")]), (4_000, [("SESSION_TIMEOUT", "c")])])
def test_members_that_expire_because_their_broker_stood_still_are_lost_to_it(evidence, still_ms, told):
    """It writes nothing from 60 s on. Then it ends the session of c, which it heard at 57.5 s; the client comes back at once."""
    group = healthy().is_at(60_000 + still_ms)
    group["c"].runs = False
    group.live(68_100).expires("c").comes("c")
    events = group.live(150_000).evidence(evidence)
    (clock,) = (event for event in events if event.kind == kinds.CLOCK)
    seconds = (0, 59, 60 + still_ms // 1_000, 150)
    rows = play([[*(event for event in events if event is not clock), clock._replace(received_ms=START_MS, beats=seconds)]])
    assert findings(rows) == told
    assert told[0][0] != "COORDINATOR_MOVED" or lost(rows) == ["c"]


def test_a_member_that_was_heard_after_the_election_fell_silent_by_itself():
    """It freezes, and thaws when its session is over."""
    group = healthy().elected(4, 55_000).session_ends("c").comes("c")
    assert findings(group.live(170_000).seen(BOTH)) == [("SESSION_TIMEOUT", "c")]


@where_the_log_is_seen
@pytest.mark.parametrize(("epoch", "elected_after"), [(0, -5_000), (4, -61_000), (4, 11_000)])
def test_a_first_election_is_no_loss_and_one_at_another_time_has_nothing_to_do_with_it(epoch, elected_after, evidence):
    group = healthy().session_ends("c").comes("c")
    group.elected(epoch, 70_000 + elected_after)
    rows = group.live(170_000).seen(evidence)
    assert findings(rows) == [("SESSION_TIMEOUT", "c")]


@where_the_log_is_seen
def test_elections_that_cost_nobody_anything_are_not_told(evidence):
    rows = healthy().elected(4).live(150_000).seen(evidence)
    assert findings(rows) == []


@where_requests_are_seen
@pytest.mark.parametrize(
    "sign",
    [
        {"kind": kinds.HEARTBEAT, "took": 2_500, "generation": 1, "beats": (0,)},
        {"kind": kinds.OFFSET_COMMIT, "took": 5_000, "generation": 1, "error_code": Error.REQUEST_TIMED_OUT},
        {"kind": kinds.OFFSET_COMMIT, "took": 5_000, "generation": 1, "error_code": Error.COORDINATOR_NOT_AVAILABLE},
    ],
)
def test_heartbeats_that_wait_and_commits_that_time_out_show_a_broker_in_trouble(evidence, sign):
    group = healthy()
    group.at(62_600).request(member=group["b"].member, **sign, **group["b"].who())
    rows = group.session_ends("c").comes("c").live(170_000).seen(evidence)
    assert ("COORDINATOR_MOVED", "") in findings(rows)
    assert ("SESSION_TIMEOUT", "c") not in findings(rows)
    assert lost(rows) == ["c"]


@where_requests_are_seen
@pytest.mark.parametrize("error", [Error.NOT_COORDINATOR, Error.COORDINATOR_LOAD_IN_PROGRESS])
def test_a_member_that_never_comes_back_may_have_died_while_its_broker_started_again(evidence, error):
    """The broker is alone: no other one took the group over. tests/data/staged has a real one (group orphaned)."""
    group = healthy()
    group.at(62_600).request(kinds.HEARTBEAT, group["b"].member, generation=1, beats=(0,), error_code=error, **group["b"].who())
    rows = group.session_ends("c").live(170_000).seen(evidence)
    assert findings(rows) == [("SESSION_TIMEOUT", "c")]


@where_requests_are_seen
@pytest.mark.parametrize("answered", [[(73_000, 8_000)], [(62_600, 2_500), (73_000, 8_000)], [(73_000, 8_000), (73_001, 1_500)]])
def test_a_member_whose_session_ends_while_its_request_waits_is_lost_to_the_broker(evidence, answered):
    """Its heartbeat came 5 s before its session ended at 70 s, and was handled 3 s after that. It is closed, and never comes back."""
    group = healthy()
    client, who = group["c"].member, group["c"].who()
    group.session_ends("c")
    for at, took in answered:
        error = Error.UNKNOWN_MEMBER_ID if at > 70_000 else Error.NONE
        group.at(at).request(kinds.HEARTBEAT, client, took=took, generation=1, beats=(0,), error_code=error, **who)
    rows = group.live(170_000).seen(evidence)
    assert [code for code, _ in findings(rows) if code in ("COORDINATOR_MOVED", "SESSION_TIMEOUT")] == ["COORDINATOR_MOVED"]
    assert lost(rows) == ["c"]


@where_requests_are_seen
def test_a_heartbeat_that_waits_a_little_shows_nothing(evidence):
    group = healthy()
    group.at(62_600).request(kinds.HEARTBEAT, group["b"].member, took=1_900, generation=1, beats=(0,), **group["b"].who())
    rows = group.session_ends("c").live(170_000).seen(evidence)
    assert findings(rows) == [("SESSION_TIMEOUT", "c")]


@where_requests_are_seen
def test_a_transaction_in_progress_shows_nothing_of_the_coordinator_of_the_group(evidence):
    group = healthy()
    error = Error.COORDINATOR_NOT_AVAILABLE
    group.at(62_600).request(kinds.TXN_OFFSET_COMMIT, group["b"].member, generation=1, error_code=error, **group["b"].who())
    rows = group.session_ends("c").live(170_000).seen(evidence)
    assert ("COORDINATOR_MOVED", "") not in findings(rows)


@where_requests_are_seen
def test_trouble_that_cost_nobody_anything_is_not_told(evidence):
    group = healthy()
    group.at(62_600).request(kinds.HEARTBEAT, group["b"].member, took=2_500, generation=1, beats=(0,), **group["b"].who())
    assert findings(group.live(170_000).seen(evidence)) == []


@where_requests_are_seen
def test_another_broker_in_trouble_says_nothing_of_the_coordinator(evidence):
    """A client that asks the wrong broker is told so: NOT_COORDINATOR is the trouble of none that has the group."""
    group = healthy()
    group.on("broker-2").at(62_600).heartbeat(group["b"].member, 1, Error.NOT_COORDINATOR, **group["b"].who())
    group.on("broker-1")
    rows = group.session_ends("c").live(170_000).seen(evidence)
    assert findings(rows) == [("SESSION_TIMEOUT", "c")]


# a client that gives up its id


@where_requests_are_seen
def test_an_id_that_its_client_gave_up_is_no_session_timeout(evidence):
    """librdkafka asks for a new id after it has heard nothing for long: the old one's session ends, nobody is silent."""
    group = healthy()
    old = group["c"]
    group.at(60_000).heartbeat(old.member, 1, took=0, **old.who())
    del group.consumers["c"]
    group.live(62_000)
    group.at(70_000).log(kinds.MEMBER_FAILED, member_id=old.member)
    group.comes("c", connection=old.connection, ends=8_000)  # all wait for the old id
    rows = group.live(120_000).seen(evidence)
    assert [code for code, _ in findings(rows)] == []
    assert causes(rows) == ["MEMBER_JOINED"]


@pytest.mark.parametrize("took_ms", [0, 1, 40])
def test_the_request_that_shows_the_move_may_be_the_one_that_began_the_rebalance(took_ms):
    """A former member comes back to the new coordinator under another id: it asked before its answer was logged."""
    group = Group("a", "b").live(60_000)
    group.dies("b")
    del group.consumers["b"]
    group.on("broker-2").is_at(70_000 + took_ms)
    back = group._new("b")
    group.consumers["b"] = back
    group.at(70_000 + took_ms).id_issued(back.member, back.session_ms, back.patience_ms, took=took_ms, **back.who())
    group.is_at(70_001 + took_ms).rebalance("", "b", new=("b",), asks={"b": -took_ms})
    rows = group.live(120_000).seen(REQUESTS)
    assert causes(rows)[-1] == "COORDINATOR_MOVED"
