"""Rules of single releases that no recorded trace reaches, and the edges of the specification itself."""

import pytest

from coordinator_model.errors import Error
from coordinator_model.specification import requests
from coordinator_model.specification.config import CoordinatorConfig
from coordinator_model.specification.effects import ExceptionThrown
from coordinator_model.specification.loading import load_group
from coordinator_model.specification.transitions import Trigger
from coordinator_model.states import State
from tests.specification.small_groups import JOIN, RANGE, RR, STATIC, completing, errors, new_group


@pytest.mark.parametrize(("release", "state"), [("2.3.1", "CompletingRebalance"), ("2.5.1", "CompletingRebalance")])
def test_a_static_restart_before_the_group_is_stable(release, state):
    group = completing(release, STATIC)
    outcome = group.handle(STATIC._replace(fresh_member_id="b"), 10, "join b")
    (reply,) = outcome.replies
    assert (reply.answer.error, group.state.value) == (Error.NONE, state)
    # 2.3 and 2.4: at once, the same generation, the old id as leader. Since 2.5: a rebalance.
    assert reply.answer.leader == ("a" if release == "2.3.1" else "b")
    assert group.generation == (1 if release == "2.3.1" else 2)


def test_2_3_does_not_ask_what_a_restarted_member_supports():
    # The member no longer supports what the group agreed on; the next answer that needs its metadata throws, as in
    # Kafka.
    group = completing("2.3.1", STATIC._replace(protocols=(RANGE, RR)))
    group.handle(STATIC._replace(protocols=(RR,), fresh_member_id="b"), 10, "join b")
    outcome = group.handle(requests.SyncGroup("b", 1, (("b", b"P"),), "i"), 20, "sync b")
    assert errors(outcome) == {"sync b": "UNKNOWN_SERVER_ERROR"}
    assert outcome.effects == [ExceptionThrown(20, "IllegalArgumentException")]


@pytest.mark.claims("A20")
def test_before_3_0_an_unknown_instance_id_did_not_matter():
    for release, error in (("2.8.2", Error.NONE), ("3.0.0", Error.UNKNOWN_MEMBER_ID)):
        group = completing(release)
        assert group.handle(requests.Heartbeat("a", 1, "stranger"), 5, 1).replies[0].answer.error is error


def test_before_2_2_there_was_no_size_limit_and_no_second_question():
    for release, answered in (("2.1.1", {"a": "NONE"}), ("2.2.2", {"a": "MEMBER_ID_REQUIRED"})):
        assert errors(new_group(release).handle(JOIN._replace(api_version=4, fresh_member_id="a"), 0, "a")) == answered
    for release, members in (("2.1.1", 2), ("2.2.2", 1)):
        group = new_group(release, group_max_size=1)
        for member_id in "ab":
            group.handle(JOIN._replace(fresh_member_id=member_id), 0, member_id)
        assert len(group.members) == members


def test_before_2_3_an_instance_id_meant_nothing():
    for release, members in (("2.2.2", ["a", "b"]), ("2.3.1", ["b"])):
        group = completing(release, STATIC)
        group.handle(STATIC._replace(fresh_member_id="b"), 10, "join b")
        assert list(group.members) == members
        assert bool(group.static_members) is (release == "2.3.1")


@pytest.mark.parametrize(("release", "told", "skips"), [("2.4.1", None, False), ("3.1.2", "consumer", False), ("3.2.0", "consumer", True)])
def test_what_a_restarted_static_leader_is_told(release, told, skips):
    group = completing(release, STATIC)
    group.handle(requests.SyncGroup("a", 1, (("a", b"P"),), "i"), 5, "sync a")
    outcome = group.handle(STATIC._replace(api_version=9, fresh_member_id="b"), 10, "join b")
    answer = outcome.replies[0].answer
    assert (answer.error, answer.protocol_type, answer.skip_assignment) == (Error.NONE, told, skips)
    assert answer.leader == ("b" if skips else "a")
    assert bool(answer.members) is skips


def test_before_2_6_members_that_have_not_rejoined_keep_their_seats():
    for release, error in (("2.5.1", "GROUP_MAX_SIZE_REACHED"), ("2.6.3", None)):
        group = new_group(release, group_max_size=2)
        for member_id in "ab":
            group.handle(JOIN._replace(fresh_member_id=member_id), 0, member_id)
        assert len(group.members) == 2
        assert group.state is State.PREPARING_REBALANCE
        assert errors(group.handle(JOIN._replace(fresh_member_id="c"), 1, "c")).get("c") == error


def test_a_vote_that_nobody_can_cast_throws_and_what_a_timer_throws_is_lost():
    # A protocol that is named twice counts twice: with two members it looks as if both supported it (Kafka, too).
    group = new_group("4.2.0", group_initial_rebalance_delay_ms=3_000)
    group.handle(JOIN._replace(protocols=(RANGE, RR), fresh_member_id="a"), 0, "a")
    group.handle(JOIN._replace(protocols=(RANGE, RANGE), fresh_member_id="b"), 1, "b")
    outcome = group.advance(60_000)
    assert outcome.replies == []
    assert outcome.effects == [ExceptionThrown(6_000, "IllegalArgumentException")]
    assert group.state is State.PREPARING_REBALANCE


def test_a_clock_that_steps_back_stands_still():
    group = completing("4.2.0")
    group.handle(requests.SyncGroup("a", 1, (("a", b"P"),)), 5_000, 1)
    assert group.handle(requests.Heartbeat("a", 1), 4_000, 2).replies == [requests.Reply(2, 5_000, requests.HeartbeatAnswer(Error.NONE))]
    group.advance(1_000)
    assert group.now_ms == 5_000


def test_a_request_first_lets_happen_what_was_due():
    group = completing("4.2.0")
    outcome = group.handle(requests.SyncGroup("a", 1), 10_000, 1)
    assert errors(outcome) == {1: "UNKNOWN_MEMBER_ID"}
    assert group.state is State.EMPTY


LEAVE = requests.LeaveGroup((requests.LeavingMember("a"),))
OF_A = [requests.SyncGroup("a", 1), requests.Heartbeat("a", 1), requests.OffsetCommit("a", 1), LEAVE]


@pytest.mark.parametrize("request_", [JOIN, *OF_A, requests.DeleteGroup()])
def test_every_request_has_an_error_answer(request_):
    answer = requests.error_answer(request_, Error.UNKNOWN_SERVER_ERROR)
    assert answer.error is Error.UNKNOWN_SERVER_ERROR
    assert type(answer).__name__.removesuffix("Answer") in type(request_).__name__ + "OffsetCommit"


def test_what_is_not_in_the_table_of_log_errors_is_passed_on():
    group = completing("0.10.0.1")
    outcome = group.handle(requests.SyncGroup("a", 1), 1, 1, append_error=Error.NOT_ENOUGH_REPLICAS)
    assert errors(outcome) == {1: "NOT_ENOUGH_REPLICAS"}
    assert group.state is State.PREPARING_REBALANCE


@pytest.mark.claims("A19", "D06")
@pytest.mark.parametrize(("release", "error"), [("2.2.2", "UNKNOWN_MEMBER_ID"), ("2.3.1", "COORDINATOR_NOT_AVAILABLE"), ("4.2.0", None)])
def test_what_a_dead_group_answers(release, error):
    group = completing(release)
    group.transition_to(Trigger.UNLOADED)
    for request_ in [JOIN, JOIN._replace(member_id="a"), *OF_A]:
        assert errors(group.handle(request_, 1, 1)) == {1: error or "COORDINATOR_NOT_AVAILABLE"}
    (reply,) = group.handle(LEAVE, 1, 1).replies
    assert [entry.error.name for entry in reply.answer.members] == ([error] if error else [])
    assert errors(group.handle(requests.DeleteGroup(), 1, 1)) == {1: "GROUP_ID_NOT_FOUND"}


def test_before_2_5_the_protocol_of_a_sync_was_not_looked_at():
    for release, error in (("2.4.1", "NONE"), ("2.5.1", "INCONSISTENT_GROUP_PROTOCOL")):
        for wrong in ({"protocol": "rr"}, {"protocol_type": "connect"}):
            sync = requests.SyncGroup("a", 1, (("a", b"P"),))._replace(**wrong)
            assert errors(completing(release).handle(sync, 1, 1)) == {1: error}


def test_before_2_2_a_loaded_group_could_be_of_any_size():
    for release, state in (("2.1.1", State.STABLE), ("2.2.2", State.PREPARING_REBALANCE)):
        stored = completing(release).stored()
        two = stored._replace(members=(stored.members[0], stored.members[0]._replace(member_id="b")))
        config = CoordinatorConfig.of(release)
        assert load_group("g", config.__class__(config.version, group_max_size=1), two, 0).state is state


def test_a_rebalance_that_interrupts_the_sync_phase_clears_the_assignments():
    group = completing("4.2.0")
    group.handle(requests.SyncGroup("a", 1, (("a", b"P"),)), 1, "sync")
    group.handle(JOIN._replace(member_id="a"), 2, "again")
    assert (group.state, group.members["a"].assignment) == (State.COMPLETING_REBALANCE, b"P")
    group.handle(JOIN._replace(fresh_member_id="b"), 3, "b")
    assert (group.state, group.members["a"].assignment) == (State.PREPARING_REBALANCE, b"")


def test_many_heartbeats_at_once_move_what_each_of_them_moves():
    alone = completing("4.2.0")
    alone.handle(requests.SyncGroup("a", 1, (("a", b"all"),)), 5, "sync a")
    assert alone.state is State.STABLE
    at_once = alone.copy()
    for at_ms in (1_000, 4_000, 7_000):
        assert errors(alone.handle(requests.Heartbeat("a", 1), at_ms, "beat")) == {"beat": "NONE"}
    at_once.renew_sessions([("a", 7_000)])
    assert (at_once.now_ms, at_once.timers.next_due(7_000)) == (alone.now_ms, alone.timers.next_due(7_000))
    for group in (alone, at_once):
        group.advance(16_999)
        assert group.state is State.STABLE
        group.advance(17_000)  # 10 s after the last of them
        assert group.state is State.EMPTY
