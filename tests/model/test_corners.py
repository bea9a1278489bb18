"""Corners that neither Kafka's tests nor the recorded traces turn: each test here was asked for by a surviving mutant."""

from dataclasses import replace

import pytest

from coordinator_model.config import CoordinatorConfig
from coordinator_model.effects import GroupWritten, MemberRemoved, RemovalCause, Transitioned
from coordinator_model.errors import Error
from coordinator_model.group import ClassicGroup
from coordinator_model.loading import load_group
from coordinator_model.requests import (
    Answered,
    Heartbeat,
    HeartbeatAnswer,
    JoinGroup,
    LeaveGroup,
    LeavingMember,
    OffsetCommit,
    SyncGroup,
)
from coordinator_model.states import State
from coordinator_model.transitions import Trigger

RANGE, RR = ("range", b"v1"), ("rr", b"v1")
JOIN = JoinGroup("", 10_000, 30_000, "consumer", (RANGE,), api_version=3)
STATIC = JOIN._replace(instance_id="i")
WITH_SECOND_QUESTION = JOIN._replace(api_version=4)


def new_group(release, **settings):
    return ClassicGroup("g", replace(CoordinatorConfig.of(release), **{"group_initial_rebalance_delay_ms": 0, **settings}), 0)


def errors(outcome):
    return {answered.ticket: answered.answer.error.name for answered in outcome.answers}


def of_kind(outcome, kind):
    return [effect for effect in outcome.effects if isinstance(effect, kind)]


def completing(release, join=JOIN, **settings):
    """a has joined."""
    group = new_group(release, **settings)
    group.handle(join._replace(fresh_member_id="a"), 0, "join a")
    assert group.state is State.COMPLETING_REBALANCE
    return group


def stable(release, join=JOIN, **settings):
    """a has its assignment."""
    group = completing(release, join, **settings)
    group.handle(SyncGroup("a", 1, (("a", b"P"),), join.instance_id), 0, "sync a")
    assert group.state is State.STABLE
    return group


# JoinGroup.


def test_an_id_that_finds_no_seat_is_taken_back():
    group = new_group("4.2.0", group_max_size=1)
    for member_id in "ab":
        group.handle(WITH_SECOND_QUESTION._replace(fresh_member_id=member_id), 0, member_id)
    group.handle(WITH_SECOND_QUESTION._replace(member_id="a"), 1, "a")
    assert group.has_all_members_joined() is False  # b holds an id
    outcome = group.handle(WITH_SECOND_QUESTION._replace(member_id="b"), 2, "b")
    assert errors(outcome)["b"] == "GROUP_MAX_SIZE_REACHED"
    assert of_kind(outcome, MemberRemoved) == [MemberRemoved(2, "b", True, RemovalCause.GROUP_MAX_SIZE)]


def test_a_dead_group_does_not_count_its_members():
    group = completing("4.2.0", group_max_size=1)
    group.transition_to(Trigger.UNLOADED)
    assert errors(group.handle(JOIN._replace(fresh_member_id="b"), 1, "b")) == {"b": "COORDINATOR_NOT_AVAILABLE"}


@pytest.mark.parametrize("release", ["2.3.1", "2.4.1"])
def test_a_static_restart_in_the_join_phase_waits_with_the_others(release):
    group = stable(release, STATIC)
    group.handle(JOIN._replace(fresh_member_id="b"), 10, "join b")
    assert group.state is State.PREPARING_REBALANCE
    outcome = group.handle(STATIC._replace(fresh_member_id="c"), 20, "join c")
    assert errors(outcome) == {"join b": "NONE", "join c": "NONE"}
    assert {answered.answer.generation for answered in outcome.answers} == {2}


@pytest.mark.parametrize(("release", "written"), [("2.3.1", 0), ("2.4.1", 0), ("2.5.1", 1)])
def test_before_2_5_a_static_restart_was_not_written(release, written):
    outcome = stable(release, STATIC).handle(STATIC._replace(fresh_member_id="c"), 20, "join c")
    assert errors(outcome) == {"join c": "NONE"}
    assert len(of_kind(outcome, GroupWritten)) == written


@pytest.mark.parametrize("release", ["3.9.1", "4.2.0"])
def test_a_static_restart_that_cannot_be_written_starts_the_session_of_the_old_id_again(release):
    group = stable(release, STATIC)
    restart = STATIC._replace(fresh_member_id="c")
    outcome = group.handle(restart, 9_000, "join c", append_error=Error.NOT_LEADER_OR_FOLLOWER)
    assert errors(outcome) == {"join c": "NOT_COORDINATOR"}
    group.advance(18_999)
    assert list(group.members) == ["a"]
    outcome = group.advance(19_000)
    assert of_kind(outcome, MemberRemoved) == [MemberRemoved(19_000, "a", False, RemovalCause.SESSION_EXPIRED)]


# LeaveGroup.


def test_an_id_that_was_never_used_leaves_as_what_it_was():
    group = new_group("4.2.0")
    group.handle(WITH_SECOND_QUESTION._replace(fresh_member_id="a"), 0, "a")
    outcome = group.handle(LeaveGroup((LeavingMember("a"),)), 5, "leave")
    assert of_kind(outcome, MemberRemoved) == [MemberRemoved(5, "a", True, RemovalCause.LEAVE)]


# Join phases.


def test_a_join_phase_of_one_millisecond_is_one():
    group = stable("4.2.0", JOIN._replace(rebalance_timeout_ms=1))
    outcome = group.handle(JOIN._replace(rebalance_timeout_ms=1, fresh_member_id="b"), 10, "join b")
    assert (errors(outcome), group.state) == ({}, State.PREPARING_REBALANCE)
    assert errors(group.advance(11)) == {"join b": "NONE"}
    assert list(group.members) == ["b"]


def test_an_initial_delay_of_one_millisecond_is_one():
    group = new_group("4.2.0", group_initial_rebalance_delay_ms=1)
    group.handle(JOIN._replace(fresh_member_id="a"), 0, "a")
    assert group.state is State.PREPARING_REBALANCE
    assert errors(group.advance(1)) == {"a": "NONE"}


def test_a_member_that_came_when_the_delay_could_not_be_extended_extends_the_next_one():
    # Kafka forgets that a member came only when it extends a delay because of it.
    group = new_group("4.2.0", group_initial_rebalance_delay_ms=3_000)
    short = JOIN._replace(rebalance_timeout_ms=2_000)
    group.handle(short._replace(fresh_member_id="a"), 0, "a")
    group.handle(short._replace(fresh_member_id="b"), 1_000, "b")
    assert errors(group.advance(3_000)) == {"a": "NONE", "b": "NONE"}
    group.handle(LeaveGroup((LeavingMember("a"), LeavingMember("b"))), 4_000, "leave")
    assert group.state is State.EMPTY
    group.handle(JOIN._replace(fresh_member_id="c"), 10_000, "c")
    assert errors(group.advance(13_000)) == {}
    assert errors(group.advance(16_000)) == {"c": "NONE"}


def test_before_0_10_1_a_group_died_of_its_last_member():
    group = stable("0.10.0.1")
    outcome = group.handle(LeaveGroup((LeavingMember("a"),)), 5, "leave")
    triggers = [(effect.trigger, effect.to_state) for effect in of_kind(outcome, Transitioned)]
    assert triggers == [(Trigger.LEAVE, State.PREPARING_REBALANCE), (Trigger.LAST_MEMBER_GONE, State.DEAD)]


# Sessions.


def test_an_id_that_was_never_used_expires_as_what_it_was():
    group = new_group("4.2.0")
    group.handle(WITH_SECOND_QUESTION._replace(fresh_member_id="a"), 0, "a")
    outcome = group.advance(10_000)
    assert of_kind(outcome, MemberRemoved) == [MemberRemoved(10_000, "a", True, RemovalCause.SESSION_EXPIRED)]


def two_members(release):
    """a, whose session is the shorter one, and b; Stable."""
    group = stable(release)
    group.handle(JOIN._replace(session_timeout_ms=60_000, fresh_member_id="b"), 0, "join b")
    group.handle(JOIN._replace(member_id="a"), 0, "rejoin a")
    group.handle(SyncGroup("a", 2, (("a", b"P"),)), 0, "sync a")
    group.handle(SyncGroup("b", 2), 0, "sync b")
    assert group.state is State.STABLE
    return group


def test_who_leaves_takes_all_session_timers_along():
    group = two_members("0.10.2.2")
    for _ in range(3):
        group.handle(Heartbeat("a", 2), 100, "heartbeat")
    assert len(group.open_sessions["a"]) == 3
    group.handle(LeaveGroup((LeavingMember("a"),)), 200, "leave")
    group.handle(JOIN._replace(member_id="b", session_timeout_ms=60_000), 300, "rejoin b")
    group.handle(SyncGroup("b", 3), 300, "sync b")
    assert group.advance(20_000).effects == []


def test_several_heartbeats_in_one_millisecond_are_closed_by_the_next():
    group = two_members("0.10.2.2")
    for _ in range(3):
        group.handle(Heartbeat("a", 2), 100, "heartbeat")
    group.handle(Heartbeat("a", 2), 101, "heartbeat")
    assert len(group.open_sessions["a"]) == 1
    assert group.advance(10_100).effects == []
    assert of_kind(group.advance(10_101), MemberRemoved) == [MemberRemoved(10_101, "a", False, RemovalCause.SESSION_EXPIRED)]


# The group between its requests.


def test_what_a_timer_writes_succeeds_whatever_failed_before():
    stored = stable("4.2.0").stored()
    untouched = load_group("g", CoordinatorConfig.of("4.2.0"), stored, 0)
    after_a_failure = stable("4.2.0")
    failed = after_a_failure.handle(OffsetCommit("a", 1), 0, "commit", append_error=Error.NOT_LEADER_OR_FOLLOWER)
    assert errors(failed) == {"commit": "NOT_COORDINATOR"}
    for group in (untouched, after_a_failure):
        (written,) = of_kind(group.advance(10_000), GroupWritten)
        assert (written.stored.generation, written.stored.members) == (2, ())


def test_a_group_that_nobody_asks_follows_the_clock():
    group = new_group("4.2.0")
    group.advance(5_000)
    assert group.now_ms == 5_000
    assert group.handle(Heartbeat("a", 1), 4_000).answers == [Answered(0, 5_000, HeartbeatAnswer(Error.UNKNOWN_MEMBER_ID))]


def test_nothing_is_left_in_a_dead_group_that_could_still_happen():
    group = two_members("0.10.2.2")
    group.transition_to(Trigger.UNLOADED)
    assert (group.timers.deadlines, group.open_sessions) == ({}, {})
    group = new_group("4.2.0")
    group.handle(WITH_SECOND_QUESTION._replace(fresh_member_id="a"), 0, "a")
    group.transition_to(Trigger.UNLOADED)
    assert (group.timers.deadlines, group.pending_members) == ({}, {})
