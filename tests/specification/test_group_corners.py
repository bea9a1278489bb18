"""Corners of a group that neither Kafka's tests nor the recorded traces turn: surviving mutants asked for these tests."""

import pytest

from coordinator_model.errors import Error
from coordinator_model.specification import requests
from coordinator_model.specification.codec import encode
from coordinator_model.specification.config import CoordinatorConfig
from coordinator_model.specification.effects import GroupWritten, MemberRemoved, RemovalCause, Transition
from coordinator_model.specification.group import ClassicGroup
from coordinator_model.specification.hash_maps import MapOrder
from coordinator_model.specification.loading import load_group
from coordinator_model.specification.timers import Timers
from coordinator_model.specification.transitions import Trigger
from coordinator_model.states import State
from tests.specification.small_groups import (
    JOIN,
    RR,
    STATIC,
    WITH_SECOND_QUESTION,
    completing,
    errors,
    new_group,
    of_kind,
    stable,
    two_members,
)


def test_who_does_not_say_speaks_a_recent_version():
    assert requests.JoinGroup("", 1, 1, "consumer", ()).api_version == 9
    assert requests.OffsetCommit("", -1).api_version == 8


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
    assert {reply.answer.generation for reply in outcome.replies} == {2}


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
    outcome = group.handle(requests.LeaveGroup((requests.LeavingMember("a"),)), 5, "leave")
    assert of_kind(outcome, MemberRemoved) == [MemberRemoved(5, "a", True, RemovalCause.LEAVE)]


def test_a_group_whose_members_left_during_the_initial_delay_accepts_any_protocol():
    # Kafka counts: of no members, none supports it, which is all of them.
    group = new_group("4.2.0", group_initial_rebalance_delay_ms=3_000)
    group.handle(JOIN._replace(fresh_member_id="a"), 0, "a")
    group.handle(requests.LeaveGroup((requests.LeavingMember("a"),)), 1_000, "leave")
    assert (group.state, group.members) == (State.PREPARING_REBALANCE, {})
    group.handle(JOIN._replace(protocols=(RR,), fresh_member_id="b"), 2_000, "b")
    group.advance(6_000)
    assert group.protocol == "rr"


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
    group.handle(requests.LeaveGroup((requests.LeavingMember("a"), requests.LeavingMember("b"))), 4_000, "leave")
    assert group.state is State.EMPTY
    group.handle(JOIN._replace(fresh_member_id="c"), 10_000, "c")
    assert errors(group.advance(13_000)) == {}
    assert errors(group.advance(16_000)) == {"c": "NONE"}


def test_before_0_10_1_a_group_died_of_its_last_member():
    group = stable("0.10.0.1")
    outcome = group.handle(requests.LeaveGroup((requests.LeavingMember("a"),)), 5, "leave")
    triggers = [(effect.trigger, effect.to_state) for effect in of_kind(outcome, Transition)]
    assert triggers == [(Trigger.LEAVE, State.PREPARING_REBALANCE), (Trigger.LAST_MEMBER_GONE, State.DEAD)]


# Sessions.


def test_an_id_that_was_never_used_expires_as_what_it_was():
    group = new_group("4.2.0")
    group.handle(WITH_SECOND_QUESTION._replace(fresh_member_id="a"), 0, "a")
    outcome = group.advance(10_000)
    assert of_kind(outcome, MemberRemoved) == [MemberRemoved(10_000, "a", True, RemovalCause.SESSION_EXPIRED)]


def test_who_leaves_takes_all_session_timers_along():
    group = two_members("0.10.2.2")
    for _ in range(3):
        group.handle(requests.Heartbeat("a", 2), 100, "heartbeat")
    assert len(group.open_sessions["a"]) == 3
    group.handle(requests.LeaveGroup((requests.LeavingMember("a"),)), 200, "leave")
    assert "a" not in group.open_sessions
    assert "a" not in group.session_ends
    group.handle(JOIN._replace(member_id="b", session_timeout_ms=60_000), 300, "rejoin b")
    group.handle(requests.SyncGroup("b", 3), 300, "sync b")
    assert group.advance(20_000).effects == []


def test_several_heartbeats_in_one_millisecond_are_closed_by_the_next():
    group = two_members("0.10.2.2")
    for _ in range(3):
        group.handle(requests.Heartbeat("a", 2), 100, "heartbeat")
    group.handle(requests.Heartbeat("a", 2), 101, "heartbeat")
    assert len(group.open_sessions["a"]) == 1
    assert group.advance(10_100).effects == []
    assert of_kind(group.advance(10_101), MemberRemoved) == [MemberRemoved(10_101, "a", False, RemovalCause.SESSION_EXPIRED)]


# The group between its requests.


def test_what_a_timer_writes_succeeds_whatever_failed_before():
    stored = stable("4.2.0").stored()
    untouched = load_group("g", CoordinatorConfig.of("4.2.0"), stored, 0)
    after_a_failure = stable("4.2.0")
    failed = after_a_failure.handle(requests.OffsetCommit("a", 1), 0, "commit", append_error=Error.NOT_LEADER_OR_FOLLOWER)
    assert errors(failed) == {"commit": "NOT_COORDINATOR"}
    for group in (untouched, after_a_failure):
        (written,) = of_kind(group.advance(10_000), GroupWritten)
        assert (written.stored.generation, written.stored.members) == (2, ())


def test_a_group_that_is_loaded_is_in_its_state_for_as_long_as_the_log_says():
    """So that the offsets of an Empty one expire when they are due, whichever broker has it by then (KIP-211)."""
    stored = new_group("4.2.0").stored()._replace(state_since_ms=123)
    assert load_group("g", CoordinatorConfig.of("4.2.0"), stored, 5_000).stored().state_since_ms == 123


def test_a_group_that_nobody_asks_follows_the_clock():
    group = new_group("4.2.0")
    group.advance(5_000)
    assert group.now_ms == 5_000
    assert group.handle(requests.Heartbeat("a", 1), 4_000).replies == [
        requests.Reply(0, 5_000, requests.HeartbeatAnswer(Error.UNKNOWN_MEMBER_ID))
    ]


def test_nothing_is_left_in_a_dead_group_that_could_still_happen():
    group = two_members("0.10.2.2")
    group.transition_to(Trigger.UNLOADED)
    assert (group.timers.deadlines, group.open_sessions) == ({}, {})
    group = new_group("4.2.0")
    group.handle(WITH_SECOND_QUESTION._replace(fresh_member_id="a"), 0, "a")
    group.transition_to(Trigger.UNLOADED)
    assert (group.timers.deadlines, group.pending_members) == ({}, {})


@pytest.mark.parametrize("release", ["0.10.2.2", "3.9.1", "4.2.0"])
def test_a_copy_shares_nothing_that_changes(release):
    group = two_members(release)
    copied = group.copy()
    assert encode(copied) == encode(group)
    stored, sessions = encode(group), {member_id: list(numbers) for member_id, numbers in group.open_sessions.items()}
    copied.handle(JOIN._replace(instance_id="i", fresh_member_id="c"), 100, "c")
    copied.handle(WITH_SECOND_QUESTION._replace(fresh_member_id="d"), 100, "d")
    copied.handle(requests.Heartbeat("a", 2), 100, "heartbeat")
    copied.advance(200_000)
    assert encode(copied) != stored
    assert (encode(group), group.open_sessions) == (stored, sessions)
    for name in ClassicGroup.__slots__:
        value = getattr(group, name)
        if isinstance(value, dict | list | Timers | MapOrder):
            assert getattr(group.copy(), name) is not value, name


def test_of_two_protocols_of_one_hash_the_one_that_is_voted_for_first_wins():
    # Members vote in the order of the map, which is not that of joining: of these, b is in front of s.
    a, b = ("Aa", b""), ("BB", b"")
    group = new_group("4.2.0", group_initial_rebalance_delay_ms=3_000)
    group.handle(JOIN._replace(protocols=(a, b), fresh_member_id="s"), 0, "s")
    group.handle(JOIN._replace(protocols=(b, a), fresh_member_id="b"), 1, "b")
    assert [member.member_id for member in group.members_in_map_order()] == ["b", "s"]
    group.advance(10_000)
    assert group.protocol == "BB"
