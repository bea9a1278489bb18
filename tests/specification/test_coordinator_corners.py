"""Corners of a coordinator that neither Kafka's tests nor the recorded traces turn: surviving mutants asked for these tests."""

from dataclasses import replace

import pytest

from coordinator_model.errors import Error
from coordinator_model.specification.config import CoordinatorConfig
from coordinator_model.specification.effects import Transition
from coordinator_model.specification.requests import Heartbeat, HeartbeatAnswer, LeaveGroup, LeavingMember, OffsetCommit, Reply, SyncGroup
from coordinator_model.specification.transitions import Trigger
from coordinator_model.states import State
from tests.specification.small_groups import JOIN, RANGE, RR, errors, new_coordinator


def triggers_of(outcome):
    return [effect.trigger for _, effect in outcome.effects if isinstance(effect, Transition)]


def too_large_for_its_new_coordinator(release):
    """A coordinator, and what happened when it began to take one member a group: this one has a and b."""
    coordinator = new_coordinator(release)
    for member_id in "ab":
        coordinator.handle("g", JOIN._replace(fresh_member_id=member_id), 0, member_id)
    coordinator.handle("g", JOIN._replace(member_id="a"), 0, "a again")
    coordinator.handle("g", SyncGroup("a", 2), 0, "sync")
    return coordinator, coordinator.restart(replace(coordinator.config, group_max_size=1), 10)


def test_a_group_that_is_too_large_for_its_new_coordinator_says_so():
    _, outcome = too_large_for_its_new_coordinator("4.2.0")
    assert triggers_of(outcome) == [Trigger.UNLOADED, Trigger.OVER_CAPACITY_AFTER_LOAD]


def test_before_2_6_a_stranger_to_a_group_that_is_too_large_is_told_that_it_is_one():
    coordinator, _ = too_large_for_its_new_coordinator("2.5.1")
    asked = {who: coordinator.handle("g", JOIN._replace(member_id=who), 20, who) for who in ("x", "a", "b")}
    assert [errors(outcome).get(who) for who, outcome in asked.items()] == ["UNKNOWN_MEMBER_ID", "GROUP_MAX_SIZE_REACHED", "NONE"]


def test_a_fail_over_does_not_prolong_the_life_of_offsets():
    coordinator = new_coordinator("4.2.0", offsets_retention_minutes=20)
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
    coordinator = new_coordinator("4.2.0")
    coordinator.handle("g", JOIN._replace(fresh_member_id="a"), 0)
    coordinator.handle("other", JOIN._replace(fresh_member_id="b"), 0)
    outcome = coordinator.handle("other", Heartbeat("b", 1), 9_000)
    assert outcome.replies == [Reply(0, 9_000, HeartbeatAnswer(Error.NONE))]
    outcome = coordinator.handle("other", Heartbeat("b", 1), 15_000)
    assert triggers_of(outcome) == [Trigger.SESSION_EXPIRED, Trigger.JOIN_PHASE_ENDED_EMPTY]


@pytest.mark.parametrize(("ends_ms", "gone_ms"), [(599_999, 600_000), (600_000, 1_200_000)])
def test_of_one_millisecond_the_clean_up_goes_first(ends_ms, gone_ms):
    coordinator = new_coordinator("4.2.0")
    coordinator.handle("g", JOIN._replace(fresh_member_id="a"), ends_ms - 10_000)
    coordinator.advance(gone_ms - 1)
    assert coordinator.groups["g"].state is State.EMPTY
    assert triggers_of(coordinator.advance(gone_ms)) == [Trigger.OFFSETS_EXPIRED]


def test_the_orphan_also_spoils_a_group_that_was_never_written():
    coordinator = new_coordinator("0.10.0.1")
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
    coordinator = new_coordinator("4.2.0")
    coordinator.handle("g", JOIN._replace(fresh_member_id="a"), 0, "join")
    another = (coordinator.partition("g") + 1) % 50
    outcome = getattr(coordinator, move)(another, 15_000)
    assert triggers_of(outcome) == [Trigger.SESSION_EXPIRED, Trigger.JOIN_PHASE_ENDED_EMPTY]
    assert getattr(coordinator, move)(another, 15_000) == ([], [])


def test_before_a_coordinator_restarts_what_was_due_happens():
    coordinator = new_coordinator("4.2.0")
    coordinator.handle("g", JOIN._replace(fresh_member_id="a"), 0, "join")
    outcome = coordinator.restart(coordinator.config, 15_000)
    assert triggers_of(outcome) == [Trigger.SESSION_EXPIRED, Trigger.JOIN_PHASE_ENDED_EMPTY, Trigger.UNLOADED]
    assert outcome.replies == []
    assert triggers_of(coordinator.restart(coordinator.config, 15_000)) == [Trigger.UNLOADED]


def test_a_partition_that_moves_on_while_it_is_loaded_is_led_elsewhere():
    coordinator = new_coordinator("4.2.0")
    partition = coordinator.partition("g")
    coordinator.load_begin(partition, 0)
    coordinator.unload(partition, 1)
    assert errors(coordinator.handle("g", Heartbeat("a", 1), 2, 1)) == {1: "NOT_COORDINATOR"}


def test_a_group_that_only_has_offsets_begins_anew_after_a_fail_over():
    coordinator = new_coordinator("4.2.0")
    coordinator.handle("g", OffsetCommit("", -1), 0, "commit")
    coordinator.restart(coordinator.config, 10)
    assert coordinator.groups["g"].state is State.EMPTY
    joined = coordinator.handle("g", JOIN._replace(fresh_member_id="a"), 20, "join")
    assert [reply.answer.generation for reply in joined.replies] == [1]


def test_a_coordinator_may_restart_as_another_release():
    coordinator = new_coordinator("2.3.1")
    leave = LeaveGroup((LeavingMember("a"),))
    assert errors(coordinator.handle("g", leave, 0, "leave")) == {"leave": "UNKNOWN_MEMBER_ID"}
    coordinator.restart(CoordinatorConfig.of("2.4.1"), 10)
    assert errors(coordinator.handle("g", leave, 20, "leave")) == {"leave": "NONE"}


def test_the_clean_up_of_a_restarted_broker_is_counted_from_the_restart():
    coordinator = new_coordinator("3.9.1")
    coordinator.handle("g", JOIN._replace(fresh_member_id="a"), 0, "join")
    coordinator.handle("g", LeaveGroup((LeavingMember("a"),)), 10, "leave")
    coordinator.restart(coordinator.config, 100_000)
    assert triggers_of(coordinator.advance(699_999)) == []
    assert triggers_of(coordinator.advance(700_000)) == [Trigger.OFFSETS_EXPIRED]


@pytest.mark.parametrize(("committed_ms", "kept"), [(0, False), (1, True)])
def test_offsets_expire_when_they_are_as_old_as_the_retention(committed_ms, kept):
    coordinator = new_coordinator("4.2.0", offsets_retention_minutes=20)
    coordinator.handle("g", OffsetCommit("", -1), committed_ms, "commit")
    coordinator.advance(1_200_000)
    assert ("g" in coordinator.offsets) is kept
