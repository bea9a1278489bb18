"""Corners that neither Kafka's tests nor the recorded traces turn: each test here was asked for by a surviving mutant."""

from dataclasses import replace

import pytest

from coordinator_model.errors import Error
from coordinator_model.specification.codec import encode
from coordinator_model.specification.config import CoordinatorConfig
from coordinator_model.specification.coordinator import Coordinator
from coordinator_model.specification.effects import GroupWritten, MemberRemoved, RemovalCause, Transition
from coordinator_model.specification.group import ClassicGroup
from coordinator_model.specification.loading import load_group
from coordinator_model.specification.map_order import MapOrder
from coordinator_model.specification.requests import (
    Heartbeat,
    HeartbeatAnswer,
    JoinGroup,
    LeaveGroup,
    LeavingMember,
    OffsetCommit,
    Reply,
    SyncGroup,
)
from coordinator_model.specification.timers import Timers
from coordinator_model.specification.transitions import Trigger
from coordinator_model.states import State

RANGE, RR = ("range", b"v1"), ("rr", b"v1")
JOIN = JoinGroup("", 10_000, 30_000, "consumer", (RANGE,), api_version=3)
STATIC = JOIN._replace(instance_id="i")
WITH_SECOND_QUESTION = JOIN._replace(api_version=4)


def new_group(release, **settings):
    return ClassicGroup("g", replace(CoordinatorConfig.of(release), **{"group_initial_rebalance_delay_ms": 0, **settings}), 0)


def errors(outcome):
    return {reply.ticket: reply.answer.error.name for reply in outcome.replies}


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


def test_who_does_not_say_speaks_a_recent_version():
    assert JoinGroup("", 1, 1, "consumer", ()).api_version == 9
    assert OffsetCommit("", -1).api_version == 8


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
    outcome = group.handle(LeaveGroup((LeavingMember("a"),)), 5, "leave")
    assert of_kind(outcome, MemberRemoved) == [MemberRemoved(5, "a", True, RemovalCause.LEAVE)]


def test_a_group_whose_members_left_during_the_initial_delay_accepts_any_protocol():
    # Kafka counts: of no members, none supports it, which is all of them.
    group = new_group("4.2.0", group_initial_rebalance_delay_ms=3_000)
    group.handle(JOIN._replace(fresh_member_id="a"), 0, "a")
    group.handle(LeaveGroup((LeavingMember("a"),)), 1_000, "leave")
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
    group.handle(LeaveGroup((LeavingMember("a"), LeavingMember("b"))), 4_000, "leave")
    assert group.state is State.EMPTY
    group.handle(JOIN._replace(fresh_member_id="c"), 10_000, "c")
    assert errors(group.advance(13_000)) == {}
    assert errors(group.advance(16_000)) == {"c": "NONE"}


def test_before_0_10_1_a_group_died_of_its_last_member():
    group = stable("0.10.0.1")
    outcome = group.handle(LeaveGroup((LeavingMember("a"),)), 5, "leave")
    triggers = [(effect.trigger, effect.to_state) for effect in of_kind(outcome, Transition)]
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
    assert "a" not in group.open_sessions
    assert "a" not in group.session_ends
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


def test_a_group_that_is_loaded_is_in_its_state_for_as_long_as_the_log_says():
    """So that the offsets of an Empty one expire when they are due, whichever broker has it by then (KIP-211)."""
    stored = new_group("4.2.0").stored()._replace(state_since_ms=123)
    assert load_group("g", CoordinatorConfig.of("4.2.0"), stored, 5_000).stored().state_since_ms == 123


def test_a_group_that_nobody_asks_follows_the_clock():
    group = new_group("4.2.0")
    group.advance(5_000)
    assert group.now_ms == 5_000
    assert group.handle(Heartbeat("a", 1), 4_000).replies == [Reply(0, 5_000, HeartbeatAnswer(Error.UNKNOWN_MEMBER_ID))]


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
    copied.handle(Heartbeat("a", 2), 100, "heartbeat")
    copied.advance(200_000)
    assert encode(copied) != stored
    assert (encode(group), group.open_sessions) == (stored, sessions)
    for name in ClassicGroup.__slots__:
        value = getattr(group, name)
        if isinstance(value, dict | list | Timers | MapOrder):
            assert getattr(group.copy(), name) is not value, name


# Coordinators.


def start(release, **settings):
    return Coordinator(replace(CoordinatorConfig.of(release), **{"group_initial_rebalance_delay_ms": 0, **settings}), 0, range(50))


def triggers_of(outcome):
    return [effect.trigger for _, effect in outcome.effects if isinstance(effect, Transition)]


def test_a_group_that_is_too_large_for_its_new_coordinator_says_so():
    coordinator = start("4.2.0")
    for member_id in "ab":
        coordinator.handle("g", JOIN._replace(fresh_member_id=member_id), 0, member_id)
    coordinator.handle("g", JOIN._replace(member_id="a"), 0, "a again")
    coordinator.handle("g", SyncGroup("a", 2), 0, "sync")
    outcome = coordinator.restart(replace(coordinator.config, group_max_size=1), 10)
    assert triggers_of(outcome) == [Trigger.UNLOADED, Trigger.OVER_CAPACITY_AFTER_LOAD]


def test_before_2_6_a_stranger_to_a_group_that_is_too_large_is_told_that_it_is_one():
    coordinator = start("2.5.1")
    for member_id in "ab":
        coordinator.handle("g", JOIN._replace(fresh_member_id=member_id), 0, member_id)
    coordinator.handle("g", JOIN._replace(member_id="a"), 0, "a again")
    coordinator.handle("g", SyncGroup("a", 2), 0, "sync")
    coordinator.restart(replace(coordinator.config, group_max_size=1), 10)
    asked = {who: coordinator.handle("g", JOIN._replace(member_id=who), 20, who) for who in ("x", "a", "b")}
    assert [errors(outcome).get(who) for who, outcome in asked.items()] == ["UNKNOWN_MEMBER_ID", "GROUP_MAX_SIZE_REACHED", "NONE"]


def test_a_fail_over_does_not_prolong_the_life_of_offsets():
    coordinator = start("4.2.0", offsets_retention_minutes=20)
    coordinator.handle("g", JOIN._replace(fresh_member_id="a"), 0, "join")
    coordinator.handle("g", SyncGroup("a", 1), 0, "sync")
    coordinator.handle("g", OffsetCommit("a", 1), 0, "commit")
    coordinator.handle("g", LeaveGroup((LeavingMember("a"),)), 5_000, "leave")
    coordinator.restart(coordinator.config, 600_000)
    coordinator.advance(1_200_000)
    assert "g" in coordinator.offsets
    coordinator.advance(1_800_000)
    assert "g" not in coordinator.offsets


def test_a_coordinator_first_lets_happen_what_was_due():
    coordinator = start("4.2.0")
    coordinator.handle("g", JOIN._replace(fresh_member_id="a"), 0)
    coordinator.handle("other", JOIN._replace(fresh_member_id="b"), 0)
    outcome = coordinator.handle("other", Heartbeat("b", 1), 9_000)
    assert outcome.replies == [Reply(0, 9_000, HeartbeatAnswer(Error.NONE))]
    outcome = coordinator.handle("other", Heartbeat("b", 1), 15_000)
    assert triggers_of(outcome) == [Trigger.SESSION_EXPIRED, Trigger.JOIN_PHASE_ENDED_EMPTY]


@pytest.mark.parametrize(("ends_ms", "gone_ms"), [(599_999, 600_000), (600_000, 1_200_000)])
def test_of_one_millisecond_the_clean_up_goes_first(ends_ms, gone_ms):
    coordinator = start("4.2.0")
    coordinator.handle("g", JOIN._replace(fresh_member_id="a"), ends_ms - 10_000)
    coordinator.advance(gone_ms - 1)
    assert coordinator.groups["g"].state is State.EMPTY
    assert triggers_of(coordinator.advance(gone_ms)) == [Trigger.OFFSETS_EXPIRED]


def test_the_orphan_also_spoils_a_group_that_was_never_written():
    coordinator = start("0.10.0.1")
    partition = coordinator.partition("g")
    coordinator.handle("g", JOIN._replace(fresh_member_id="a"), 0, "a")
    coordinator.handle("g", JOIN._replace(session_timeout_ms=20_000, fresh_member_id="b"), 10, "b")
    coordinator.handle("g", JOIN._replace(member_id="a"), 20, "a again")
    coordinator.handle("g", JOIN._replace(member_id="a", protocols=(RANGE, RR)), 30, "a asks for more")
    assert coordinator.groups["g"].state is State.PREPARING_REBALANCE
    coordinator.unload(partition, 40)
    coordinator.load(partition, 50)
    assert not coordinator.groups
    # The session of the last member of the old group ends at 20 020, its join phase at 20 030.
    coordinator.handle("g", JOIN._replace(fresh_member_id="c"), 20_019, "c")
    assert errors(coordinator.handle("g", JOIN._replace(fresh_member_id="d"), 20_025, "d")) == {"d": "UNKNOWN_SERVER_ERROR"}


@pytest.mark.parametrize("move", ["unload", "load_begin", "load"])
def test_before_a_partition_moves_what_was_due_happens_in_all(move):
    coordinator = start("4.2.0")
    coordinator.handle("g", JOIN._replace(fresh_member_id="a"), 0, "join")
    another = (coordinator.partition("g") + 1) % 50
    outcome = getattr(coordinator, move)(another, 15_000)
    assert triggers_of(outcome) == [Trigger.SESSION_EXPIRED, Trigger.JOIN_PHASE_ENDED_EMPTY]
    assert getattr(coordinator, move)(another, 15_000) == ([], [])


def test_before_a_coordinator_restarts_what_was_due_happens():
    coordinator = start("4.2.0")
    coordinator.handle("g", JOIN._replace(fresh_member_id="a"), 0, "join")
    outcome = coordinator.restart(coordinator.config, 15_000)
    assert triggers_of(outcome) == [Trigger.SESSION_EXPIRED, Trigger.JOIN_PHASE_ENDED_EMPTY, Trigger.UNLOADED]
    assert outcome.replies == []
    assert triggers_of(coordinator.restart(coordinator.config, 15_000)) == [Trigger.UNLOADED]


def test_a_partition_that_moves_on_while_it_is_loaded_is_led_elsewhere():
    coordinator = start("4.2.0")
    partition = coordinator.partition("g")
    coordinator.load_begin(partition, 0)
    coordinator.unload(partition, 1)
    assert errors(coordinator.handle("g", Heartbeat("a", 1), 2, 1)) == {1: "NOT_COORDINATOR"}


def test_a_group_that_only_has_offsets_begins_anew_after_a_fail_over():
    coordinator = start("4.2.0")
    coordinator.handle("g", OffsetCommit("", -1), 0, "commit")
    coordinator.restart(coordinator.config, 10)
    assert coordinator.groups["g"].state is State.EMPTY
    joined = coordinator.handle("g", JOIN._replace(fresh_member_id="a"), 20, "join")
    assert [reply.answer.generation for reply in joined.replies] == [1]


def test_a_coordinator_may_restart_as_another_release():
    coordinator = start("2.3.1")
    leave = LeaveGroup((LeavingMember("a"),))
    assert errors(coordinator.handle("g", leave, 0, "leave")) == {"leave": "UNKNOWN_MEMBER_ID"}
    coordinator.restart(CoordinatorConfig.of("2.4.1"), 10)
    assert errors(coordinator.handle("g", leave, 20, "leave")) == {"leave": "NONE"}


def test_the_clean_up_of_a_restarted_broker_is_counted_from_the_restart():
    coordinator = start("3.9.1")
    coordinator.handle("g", JOIN._replace(fresh_member_id="a"), 0, "join")
    coordinator.handle("g", LeaveGroup((LeavingMember("a"),)), 10, "leave")
    coordinator.restart(coordinator.config, 100_000)
    assert triggers_of(coordinator.advance(699_999)) == []
    assert triggers_of(coordinator.advance(700_000)) == [Trigger.OFFSETS_EXPIRED]


@pytest.mark.parametrize(("committed_ms", "kept"), [(0, False), (1, True)])
def test_offsets_expire_when_they_are_as_old_as_the_retention(committed_ms, kept):
    coordinator = start("4.2.0", offsets_retention_minutes=20)
    coordinator.handle("g", OffsetCommit("", -1), committed_ms, "commit")
    coordinator.advance(1_200_000)
    assert ("g" in coordinator.offsets) is kept


def test_of_two_protocols_of_one_hash_the_one_that_is_voted_for_first_wins():
    # Members vote in the order of the map, which is not that of joining: of these, b is in front of s.
    a, b = ("Aa", b""), ("BB", b"")
    group = new_group("4.2.0", group_initial_rebalance_delay_ms=3_000)
    group.handle(JOIN._replace(protocols=(a, b), fresh_member_id="s"), 0, "s")
    group.handle(JOIN._replace(protocols=(b, a), fresh_member_id="b"), 1, "b")
    assert [member.member_id for member in group.members_in_map_order()] == ["b", "s"]
    group.advance(10_000)
    assert group.protocol == "BB"
